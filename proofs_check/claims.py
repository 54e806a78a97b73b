"""What a claim is: a formula, its domain, pieces of evidence that decide it by code, and the status that follows.

A claim is written once, as a function that returns the claimed values for a case (`Case`). Every piece of evidence
takes that function as its argument and yields `Step`s, so that a mutant (a false variant of the formula) runs
through the very same code. The kind of a step is stamped by the function in `decide` that decided it:

==========  ========================================================================================
proved      symbolic, for every d, k and length law of the domain
certified   a rigorous enclosure over a box of parameters
enumerated  exact rational arithmetic over all words of small instances
simulated   a comparison with the simulator, within rounding or within sampling error
==========  ========================================================================================

The status of a claim is the strongest kind that held, unless a step failed: then it is refuted. A step that could
not be decided counts for nothing.
"""

import random
import time
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec

from analytic.errors import InputError

KINDS = ("proved", "certified", "enumerated", "simulated")
REFUTED, SKIPPED = "refuted", "skipped"
EXTRAS = {"flint": "rigor"}  # which extra of attnlag brings a package

CASES, DEEP_CASES = 8, 200  # seeded random instances an enumeration tries

registry = {}


@dataclass(frozen=True)
class Step:
    """One decision: ``held`` is True, False (then with a counterexample) or None (undecided).

    ``slack``: the measured deviation where there is a ``tolerance`` for it; else how far a bound is from its value.
    ``row``: a line of the table of theory against simulation, where the step is one; see `proofs_check.comparison`.
    """

    text: str
    kind: str
    held: bool | None
    slack: float | None = None
    tolerance: float | None = None
    counterexample: dict | None = None
    row: dict | None = None


@dataclass(frozen=True)
class Evidence:
    """A piece of evidence: a generator of steps of one kind, ``find(formula)``."""

    kind: str
    find: object
    title: str
    deep: bool = False
    needs: str | None = None

    def run(self, formula):
        """Run the steps up to the first that fails; the `Finding` says how it went."""
        if self.needs and find_spec(self.needs) is None:
            extra = f", from the extra {EXTRAS[self.needs]}" if self.needs in EXTRAS else ""
            return Finding(self.kind, None, reason=f"skipped: {self.title}: needs the package {self.needs}{extra}")
        started, steps = time.perf_counter(), []
        try:
            for step in self.find(formula):
                if step.kind != self.kind:
                    raise TypeError(f"{self.title}: a {step.kind} step in a piece of evidence that says {self.kind}")
                steps.append(step)
                if step.held is False:
                    break
        except (InputError, ZeroDivisionError) as error:  # a claimed value that does not exist or is not allowed
            steps.append(Step(self.title, self.kind, False, counterexample={"error": str(error)}))
        return Finding.summary(self, steps, time.perf_counter() - started)


@dataclass(frozen=True)
class Finding:
    """What a piece of evidence found: ``held`` is None when it was skipped or left a step undecided."""

    kind: str
    held: bool | None
    slack: float | None = None
    tolerance: float | None = None
    reason: str = ""
    counterexample: dict | None = None
    steps: tuple = ()
    seconds: float = 0.0

    @classmethod
    def summary(cls, evidence, steps, seconds):
        """The finding of ``steps``: the first that failed, else the first undecided, else the tightest measured."""
        failed = [step for step in steps if step.held is False]
        open_ = [step for step in steps if step.held is None]
        deviations = [step for step in steps if step.slack is not None and step.tolerance is not None]
        bounds = [step for step in steps if step.slack is not None and step.tolerance is None]
        worst = max(deviations, key=lambda step: step.slack / step.tolerance, default=None)
        shown = failed[0] if failed else worst or min(bounds, key=lambda step: step.slack, default=None)
        if failed:
            reason = f"fails: {failed[0].text}"
        elif open_ or not steps:
            reason = f"undecided: {open_[0].text if open_ else evidence.title}"
        else:
            reason = f"{evidence.title} ({len(steps)} {'step' if len(steps) == 1 else 'steps'})"
        return cls(
            kind=evidence.kind,
            held=False if failed else None if open_ or not steps else True,
            slack=shown.slack if shown else None,
            tolerance=shown.tolerance if shown else None,
            reason=reason,
            counterexample=failed[0].counterexample if failed else None,
            steps=tuple(steps),
            seconds=seconds,
        )


def status_of(findings):
    """The strongest kind that held, unless one failed (refuted) or nothing held (skipped)."""
    if any(finding.held is False for finding in findings):
        return REFUTED
    held = {finding.kind for finding in findings if finding.held}
    return next((kind for kind in KINDS if kind in held), SKIPPED)


@dataclass(frozen=True)
class Result:
    """A claim after its evidence ran."""

    claim: object
    status: str
    evidence: tuple
    seconds: float
    mutants: tuple = ()  # (name, killed) of each
    redundant: tuple = ()  # hypotheses whose removal changes nothing
    wider: tuple = ()  # limits of parameters outside which the exact checks find no counterexample either

    @property
    def id(self):
        """The claim's id."""
        return self.claim.id

    @property
    def counterexample(self):
        """The first counterexample found, or None."""
        return next((finding.counterexample for finding in self.evidence if finding.held is False), None)

    @property
    def comparison(self):
        """Rows of the table of theory against simulation."""
        return [step.row for finding in self.evidence for step in finding.steps if step.row]


@dataclass(eq=False)
class Claim:
    """A statement about a domain, with the code that decides it. Made by the decorator `claim`.

    Calling it with a case gives the claimed values. Parts are added by decorators:

    ``@c.proof``       generator ``(formula)`` of proved steps
    ``@c.instance``    generator ``(formula, case)`` of exact steps, run on the examples and on seeded random cases
    ``@c.enclosure``   generator ``(formula)`` of certified steps; it runs where python-flint (extra rigor) is installed
    ``@c.simulation``  generator ``(formula)`` of simulated steps
    ``c.mutant(name, key=change)``  a false variant of the value ``key``, which the evidence must refute
    """

    id: str
    statement: str
    latex: str
    domain: object
    source: str
    formula: object
    evidence: list = field(default_factory=list)
    instances: list = field(default_factory=list)
    mutants: dict = field(default_factory=dict)

    def __call__(self, case):
        return self.formula(case)

    def values(self, **parameters):
        """The claimed values at ``parameters``; `InputError` when they lie outside the domain.

        >>> from proofs_check import get
        >>> get("phase1.window").values(d=50, k=1, length="fixed:30", rate_o=20.0)["low"]
        12.5
        """
        case = self.domain.check(**parameters)
        try:
            claimed = self.formula(case)
        except AttributeError as error:  # a formula about single words or about given moments
            raise InputError(f"{self.id} is about more than its domain's parameters: {error}") from None
        return {name: value.item() if hasattr(value, "item") else value for name, value in claimed.items()}

    def _add(self, kind, function, **options):
        title = (function.__doc__ or function.__name__.strip("_")).strip().splitlines()[0].rstrip(".")
        self.evidence.append(Evidence(kind, function, title, **options))
        return function

    def proof(self, function):
        """Add symbolic steps."""
        return self._add("proved", function)

    def enclosure(self, function):
        """Add rigorous enclosures over boxes of parameters."""
        return self._add("certified", function, needs="flint")

    def simulation(self, function=None, **options):
        """Add steps that compare the formula with the simulator."""
        if function is None:
            return lambda function: self.simulation(function, **options)
        return self._add("simulated", function, **options)

    def instance(self, function):
        """Add exact checks of single cases: the domain's seeded samples, more of them in a deep run."""

        def search(count):
            def cases(formula):
                rng = random.Random(self.id)  # a string seeds it the same way everywhere
                for _ in range(count):
                    yield from function(formula, self.domain.sample(rng))

            cases.__doc__ = f"{(function.__doc__ or 'exact').splitlines()[0].rstrip('.')}: {count} seeded instances"
            return cases

        self._add("enumerated", search(CASES))
        self._add("enumerated", search(DEEP_CASES), deep=True)
        self.instances.append(function)
        return function

    def redundant(self):
        """Hypotheses without which the exact checks find no counterexample among seeded instances."""
        return tuple(text for text in self.domain.hypotheses if not self._fails_in(self.domain.without(text)))

    def wider(self):
        """Limits of single parameters outside which the exact checks find no counterexample among seeded instances."""
        return tuple(text for text, outside in self.domain.beyond() if not self._fails_in(outside))

    def _fails_in(self, outside):
        """Whether the search finds a counterexample in ``outside``, or the claim has no meaning there."""
        rng = random.Random(self.id)
        try:
            cases = [outside.sample(rng) for _ in range(CASES)]
            checks = [partial(check, case=case) for case in cases for check in self.instances]
            return not checks or any(
                Evidence("enumerated", check, "outside").run(self.formula).held is False for check in checks
            )
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
            return True

    def mutant(self, name, **changes):
        """Plant a false variant: each of ``changes`` maps (case, claimed value) to a false value."""

        original = self.formula

        def formula(case):
            claimed = original(case)
            return claimed | {key: change(case, claimed[key]) for key, change in changes.items()}

        self.mutants[name] = formula

    def run(self, deep=False, mutants=False):
        """Run the evidence, and with ``mutants`` every planted variant too; returns a `Result`."""
        started = time.perf_counter()
        pieces = [piece for piece in self.evidence if deep or not piece.deep]
        findings = tuple(piece.run(self.formula) for piece in pieces)
        killed, redundant, wider = (), (), ()
        if mutants:
            redundant, wider = self.redundant(), self.wider()
            killed = tuple(
                (name, any(piece.run(formula).held is False for piece in pieces))
                for name, formula in self.mutants.items()
            )
        seconds = time.perf_counter() - started
        return Result(self, status_of(findings), findings, seconds, killed, redundant, wider)


def claim(id, *, statement, latex, domain, source):
    """Decorator: make a claim of a function ``formula(case) -> {name: value}`` and register it."""

    def register(formula):
        if id in registry:
            raise ValueError(f"claim {id} is defined twice")
        registry[id] = Claim(id, statement, latex, domain, source, formula)
        return registry[id]

    return register
