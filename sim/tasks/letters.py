"""The letter tasks: which letters occur in a word decides its label.

Words have iid uniform letters and a length from a length law; the label is +1 iff the language holds.
The model is f(w) = sum over heads and letters of a_j beta_j - 1, a = softmax attention over the positions
of w with one score alpha_j per letter; a word is decided correctly iff y f > 0 (f = 0 is wrong).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from analytic.errors import InputError, whole
from analytic.gradients import letter
from analytic.languages import Language, all_of, any_of, parse_language
from analytic.lengths import LengthLaw, balanced_geometric, parse_law

from . import LETTERS
from .streams import INIT, TEST, TRAIN, stream

SETTINGS = ("d", "targets", "heads", "train_words", "test_words", "length", "test_length")


def letter_task(name, *, d=50, targets=None, heads=None, **data):
    """The letter task called ``name``: see `sim.tasks.make_task`."""
    d = whole("d", d, low=2)
    if name in LETTERS:
        if name == "occurrence" and targets not in (None, 1):
            raise InputError(f"targets of occurrence is 1, not {targets}; use task or for more letters")
        k = LETTERS[name] if targets is None else targets
        language = all_of(k) if name == "and" else any_of(k)
    elif targets is not None:
        raise InputError(f"targets goes with the tasks {', '.join(LETTERS)}; {name!r} names its letters itself")
    else:
        language = parse_language(name)
        name = language.text
    default_heads = 4 if name == "and" else 1
    return LetterTask(name, language, d, default_heads if heads is None else heads, **data)


@dataclass(frozen=True)
class LetterTask:
    """A language of letter occurrences over an alphabet of d letters, its words, and its model with some heads.

    train_words is 5 d^2 by default and test_words d^2; length laws are kept as text, by default that of the geometric
    law that balances the classes, and test_length is length.
    """

    name: str
    language: Language
    d: int
    heads: int = 1
    train_words: int = None
    test_words: int = None
    length: str = None
    test_length: str = None

    test_metric = "test_accuracy"
    layers = ("alpha", "beta")
    axes = (("head", "letter"), ("head", "letter"))
    gap_offsets = None

    def __post_init__(self):
        self.language.check_alphabet(self.d)
        length = self.length_law(self.length)
        test_length = length if self.test_length is None else self.length_law(self.test_length, "test_length")
        filled = {
            "d": int(self.d),
            "heads": whole("heads", self.heads),
            "train_words": whole("train_words", 5 * self.d**2 if self.train_words is None else self.train_words),
            "test_words": whole("test_words", self.d**2 if self.test_words is None else self.test_words),
            "length": length.text, "test_length": test_length.text,
        }
        for field, value in filled.items():
            object.__setattr__(self, field, value)

    @property
    def targets(self):
        """Number of letters the language names."""
        return self.language.k

    def settings(self):
        """All settings, as plain values."""
        names = [name for name in SETTINGS if name != "targets" or self.name in LETTERS]
        return {name: getattr(self, name) for name in names}

    def facts(self):
        """What the head of a JSON result says of the task."""
        q = self.positive_probability(parse_law(self.length))
        return {"d": self.d, "targets": self.targets, "positive_probability": q}

    def describe(self):
        """The same for people."""
        law, _, value = self.length.partition(":")
        length = f"{law}:{float(value):.6g}" if law in ("geometric", "poisson") else self.length
        return (f"d {self.d}, targets {self.targets}, heads {self.heads}, {self.train_words} train and "
                f"{self.test_words} test words, length {length}, P(y=+1) {self.facts()['positive_probability']:.6g}")

    def nbytes(self):
        """About how much memory the data need: 1.6 bytes a count."""
        return 1.6 * self.d * (self.train_words + self.test_words)

    @property
    def is_any(self):
        """Is the language an OR of its letters? Then attention may spread over them."""
        return self.language.truth == any_of(self.language.k).truth

    def length_law(self, given=None, name="length"):
        """The length law from text, a `LengthLaw`, or None for the geometric law that balances the classes."""
        if given is None:
            return _balanced(self.language, self.d)
        if isinstance(given, LengthLaw):
            return given
        if not isinstance(given, str):
            raise InputError(f"{name} must be a law such as 'geometric:0.02' or 'fixed:10', not {given!r}")
        try:
            return parse_law(given)
        except InputError as error:
            raise InputError(str(error).replace("length", name, 1)) from None

    def positive_probability(self, law):
        """q = P(y = +1) under a length law."""
        return float(self.language.positive_probability(self.d, law.pgf))

    def data(self, seed):
        """Train and test words of a seed (the same for every plan and init)."""
        return tuple(
            self.words(parse_law(law), count, stream(seed, use))
            for law, count, use in (
                (self.length, self.train_words, TRAIN),
                (self.test_length, self.test_words, TEST),
            )
        )

    def words(self, law, count, rng):
        """``count`` labelled words with lengths from ``law``."""
        return letter.sample_words(rng, law.sample(rng, count), self.d, self.language)

    def initial(self, seed, init, scale):
        """alpha and beta, each (heads, d): zeros, or N(0, scale^2) entries, a scale each."""
        rng = stream(seed, INIT)
        shape = (self.heads, self.d)
        if init == "zero":
            return np.zeros(shape), np.zeros(shape)
        return tuple(one * rng.standard_normal(shape) for one in scale)

    def descend(self, train, parameters, rate_a, rate_o, steps, loss_limit):
        """``steps`` full-batch steps; see `analytic.gradients.letter.descend`."""
        return letter.descend(train, *parameters, rate_a, rate_o, steps, loss_limit)

    def test(self, test, parameters):
        """Test accuracy."""
        return letter.evaluate(test, *parameters)[1]

    def gaps(self, alpha, beta):
        """Attention, output and logit gap, each (T, heads), of parameters (T, heads, d).

        gamma = softmax(alpha) over the alphabet. OR of S (occurrence: S = {s}):
        sum_S gamma - max_{not S} gamma;  (min_S beta - max_{not S} beta)/2.
        Other languages, S the letters named:
        max_{s in S} (gamma_s - max_{i != s} gamma_i);  max_{s in S} (|beta_s| - max_{i not in S} |beta_i|)/2.
        Logit gap: min_S alpha - max_{not S} alpha.
        """
        inside = np.zeros(self.d, dtype=bool)
        inside[list(self.language.letters)] = True
        gamma = np.exp(alpha - alpha.max(axis=-1, keepdims=True))
        gamma /= gamma.sum(axis=-1, keepdims=True)
        if self.is_any:
            attention = gamma[..., inside].sum(axis=-1) - _largest(gamma[..., ~inside])
            output = (beta[..., inside].min(axis=-1) - _largest(beta[..., ~inside], empty=-np.inf)) / 2
        else:
            first, second = _two_largest(gamma)
            others = np.where(gamma == first[..., None], second[..., None], first[..., None])
            attention = (gamma - others)[..., inside].max(axis=-1)
            size = np.abs(beta)
            output = (size[..., inside].max(axis=-1) - _largest(size[..., ~inside])) / 2
        logit = alpha[..., inside].min(axis=-1) - _largest(alpha[..., ~inside], empty=-np.inf)
        return {"attention_gap": attention, "output_gap": output, "logit_gap": logit}


_balanced = lru_cache(maxsize=1000)(balanced_geometric)  # a sweep asks for a few laws thousands of times


def _largest(values, empty=0.0):
    """Maximum over the last axis; ``empty`` where the axis has no entries (S is the whole alphabet)."""
    return values.max(axis=-1) if values.shape[-1] else np.full(values.shape[:-1], empty)


def _two_largest(values):
    ordered = np.partition(values, -2, axis=-1)
    return ordered[..., -1], ordered[..., -2]
