"""Training plans: "O(1x)->A(1x)->O" to phases and back.

    plan  = phase { ("->" | "→") phase }
    phase = ("A" | "O" | "AO" | "joint") [ "(" N "x)" ],  N >= 1        spaces are ignored

A trains the attention scores alpha, O the output weights beta, AO (joint) both at once from the same gradient.
(Nx) is N full-batch steps; a phase without it runs until the train loss stops falling, or to its step limit.
"""

import re
from dataclasses import dataclass

from analytic.errors import InputError, did_you_mean, shown

LAYERS = ("A", "O", "AO", "joint")
_TOKEN = re.compile(r"->|→|joint|AO|A|O|\(|\)|x|\d+|\s+|.")


@dataclass(frozen=True)
class Phase:
    """One phase: the layers it trains and its number of steps (None: to convergence)."""

    layers: str  # "A", "O" or "AO"
    steps: int | None = None

    @property
    def kind(self):
        """Which stored rate applies: "joint", "one_step" or "converge"."""
        if self.layers == "AO":
            return "joint"
        return "one_step" if self.steps == 1 else "converge"

    def __str__(self):
        return self.layers + (f"({self.steps}x)" if self.steps else "")


@dataclass(frozen=True)
class Plan:
    """A sequence of phases; ``str(plan)`` is its canonical text."""

    phases: tuple

    def training(self, layer):
        """1-based positions and phases that train ``layer`` ("A" or "O")."""
        return [(i, phase) for i, phase in enumerate(self.phases, 1) if layer in phase.layers]

    def __str__(self):
        return "->".join(map(str, self.phases))


def parse_plan(text):
    """Parse a plan.

    Examples
    --------
    >>> str(parse_plan("O (1x) → A(1x) -> O"))
    'O(1x)->A(1x)->O'
    >>> parse_plan("joint").phases
    (Phase(layers='AO', steps=None),)
    >>> parse_plan("O(1x)>A")
    Traceback (most recent call last):
    ...
    analytic.errors.InputError: plan 'O(1x)>A': unexpected '>' at character 6, expected '->' or the end
    """
    if not isinstance(text, str):
        raise InputError(f"plan must be text such as 'O(1x)->A(1x)->O', not {text!r}")
    tokens = [(m.group(), m.start() + 1) for m in _TOKEN.finditer(text) if not m.group().isspace()]
    tokens.append(("", len(text) + 1))
    position = 0

    def fail(expected):
        token, character = tokens[position]
        found = shown(token) if token else "the end"
        word = re.match(r"[A-Za-z]*", text[character - 1 :])[0]
        hint = "" if word in LAYERS else did_you_mean(word[:10], LAYERS)
        raise InputError(f"plan {shown(text)}: unexpected {found} at character {character}, expected {expected}{hint}")

    def take(expected, accept):
        nonlocal position
        token = tokens[position][0]
        if not accept(token):
            fail(expected)
        position += 1
        return token

    def phase():
        layers = take("A, O, AO or joint", lambda t: t in LAYERS)
        steps = None
        if tokens[position][0] == "(":
            take("'('", lambda t: t == "(")
            steps = int(take("a number of steps, at least 1", lambda t: t.isdecimal() and 0 < len(t.lstrip("0")) < 16))
            take("'x'", lambda t: t == "x")
            take("')'", lambda t: t == ")")
        return Phase("AO" if layers == "joint" else layers, steps)

    phases = [phase()]
    while tokens[position][0]:
        take("'->' or the end", lambda t: t in ("->", "→"))
        phases.append(phase())
    return Plan(tuple(phases))
