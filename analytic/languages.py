"""Languages that depend on which letters occur: occurrence, OR, AND and any Boolean expression of letters.

A language is a truth table over the 2^k presence patterns of its letters S. With the Möbius coefficients

    1{y = +1} = sum over U subset of S of sign_U * 1{no letter of U occurs},

every expectation of the label reduces to P(no letter of U | length m) = (1 - |U|/d)^m.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .errors import InputError, shown, whole

MAX_LETTERS = 16  # the truth table has 2^k rows


@dataclass(frozen=True)
class Language:
    """A Boolean function of letter occurrences.

    Parameters
    ----------
    text : how users write it, e.g. ``"1 & (2 | !3)"`` (letters are 1..d in text)
    letters : the letters S it names, 0-based, ascending
    truth : ``truth[pattern]`` is True iff words with that presence pattern have label +1;
        bit i of ``pattern`` is set iff ``letters[i]`` occurs in the word

    Examples
    --------
    >>> any_of(2).truth
    (False, True, True, True)
    >>> parse_language("1 & !3").letters
    (0, 2)
    """

    text: str
    letters: tuple
    truth: tuple

    @property
    def k(self):
        return len(self.letters)

    @cached_property
    def signs(self):
        """Möbius coefficients: {U as a bit mask over ``letters``: sign_U}, zero coefficients left out."""
        # pattern P has 1{letters present are exactly P} = sum_{W subset of P} (-1)^|W| 1{none of W + complement of P}
        full = (1 << self.k) - 1
        coefficient = np.array([self.truth[full ^ absent] for absent in range(full + 1)], dtype=np.int64)
        for bit in range(self.k):  # Möbius transform over subsets of absent letters
            step = 1 << bit
            has = (np.arange(full + 1) & step) != 0
            coefficient[has] -= coefficient[np.flatnonzero(has) ^ step]
        return {mask: int(c) for mask, c in enumerate(coefficient) if c}

    def labels(self, present):
        """+1 / -1 labels (int8) from ``present``, a Boolean array (..., k) over ``letters``."""
        weights = 1 << np.arange(self.k)
        pattern = np.asarray(present, dtype=bool) @ weights
        return np.where(np.asarray(self.truth)[pattern], 1, -1).astype(np.int8)

    def positive_probability(self, d, pgf):
        """q = P(y = +1) = sum_U sign_U G(1 - |U|/d) for iid uniform letters; ``pgf`` is G, the pgf of the length."""
        return sum(sign * pgf(1.0 - mask.bit_count() / d) for mask, sign in self.signs.items())

    def check_alphabet(self, d):
        """Raise `InputError` unless the letters fit an alphabet of ``d`` letters and both labels occur."""
        whole("d", d, low=2)
        if self.letters[-1] >= d:
            raise InputError(f"task {self.text!r} names letter {self.letters[-1] + 1}, but d is {d}")
        occurring = self.truth[1:] if self.k == d else self.truth  # with all letters named, one of them occurs
        if len(set(occurring)) == 1:
            raise InputError(f"targets must be fewer than d = {d}: {self.text!r} gives every word the same label")


def any_of(k):
    """OR of letters 1..k (k = 1: occurrence of letter 1)."""
    k = whole("targets", k, 1, MAX_LETTERS)
    text = " | ".join(str(i + 1) for i in range(k))
    return Language(text, tuple(range(k)), tuple(pattern != 0 for pattern in range(1 << k)))


def all_of(k):
    """AND of letters 1..k."""
    k = whole("targets", k, 1, MAX_LETTERS)
    text = " & ".join(str(i + 1) for i in range(k))
    return Language(text, tuple(range(k)), tuple(pattern == (1 << k) - 1 for pattern in range(1 << k)))


def parse_language(text):
    """Parse a Boolean expression of letters: numbers, ``!``, ``&``, ``|``, parentheses (``!`` first, ``|`` last).

    Raises `InputError` that points at the offending character, or says that the language is trivial.
    """
    tokens = [(m.group(), m.start()) for m in re.finditer(r"\d+|\S", text)]
    tokens.append(("end", len(text)))
    position = 0

    def fail(expected):
        token, start = tokens[position]
        found = "the end" if token == "end" else shown(token)
        raise InputError(f"task {shown(text)}: unexpected {found} at character {start + 1}, expected {expected}")

    def take(*wanted):
        nonlocal position
        if tokens[position][0] in wanted:
            position += 1
            return True
        return False

    def either():  # term | term ...
        parts = [both()]
        while take("|"):
            parts.append(both())
        return lambda w: any(part(w) for part in parts)

    def both():  # factor & factor ...
        parts = [factor()]
        while take("&"):
            parts.append(factor())
        return lambda w: all(part(w) for part in parts)

    def factor():
        nonlocal position
        if take("!"):
            inner = factor()
            return lambda w: not inner(w)
        if take("("):
            inner = either()
            if not take(")"):
                fail("')'")
            return inner
        token = tokens[position][0]
        if not token.isdecimal() or len(token) > 9 or int(token) == 0:
            fail("a letter (1, 2, ...), '!' or '('")
        letter = int(token) - 1
        position += 1
        named.add(letter)
        return lambda w: letter in w

    named = set()
    try:
        evaluate = either()
    except RecursionError:
        raise InputError(f"task {shown(text)} is nested too deeply") from None
    if tokens[position][0] != "end":
        fail("'&', '|' or the end")
    letters = tuple(sorted(named))
    if len(letters) > MAX_LETTERS:
        raise InputError(f"task {shown(text)} names {len(letters)} letters, at most {MAX_LETTERS} are allowed")
    truth = tuple(
        evaluate({letters[i] for i in range(len(letters)) if pattern >> i & 1}) for pattern in range(1 << len(letters))
    )
    if len(set(truth)) == 1:
        raise InputError(f"task {shown(text)} gives every word the same label")
    return Language(text, letters, truth)
