"""The letter tasks: which letters occur in a word decides its label.

Words have iid uniform letters and a length from a length law; the label is +1 iff the language holds.
The model is f(w) = sum over heads and letters of a_j beta_j - 1, a = softmax attention over the positions
of w with one score alpha_j per letter; a word is decided correctly iff y f > 0 (f = 0 is wrong).
"""

from dataclasses import dataclass

import numpy as np

from analytic.errors import InputError, whole
from analytic.gradients import letter
from analytic.languages import Language, any_of
from analytic.lengths import LengthLaw, balanced_geometric, parse_law

TRAIN, TEST, INIT, BY_LENGTH = range(4)  # independent random streams of one seed


def stream(seed, *use):
    """The random generator of one seed for one use: made from the seed alone, on any machine."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=use))


@dataclass(frozen=True)
class LetterTask:
    """A language of letter occurrences over an alphabet of d letters, and its model with some heads."""

    name: str
    language: Language
    d: int
    heads: int = 1

    test_metric = "test_accuracy"

    def __post_init__(self):
        whole("heads", self.heads)
        self.language.check_alphabet(self.d)

    @property
    def is_any(self):
        """Is the language an OR of its letters? Then attention may spread over them."""
        return self.language.truth == any_of(self.language.k).truth

    def length_law(self, given=None, name="length"):
        """The length law from text, a `LengthLaw`, or None for the geometric law that balances the classes."""
        if given is None:
            return balanced_geometric(self.language, self.d)
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

    def data(self, config, seed):
        """Train and test words of a seed (the same for every plan and init)."""
        return tuple(
            self.words(parse_law(law), count, stream(seed, use))
            for law, count, use in (
                (config.length, config.train_words, TRAIN),
                (config.test_length, config.test_words, TEST),
            )
        )

    def words(self, law, count, rng):
        """``count`` labelled words with lengths from ``law``."""
        return letter.sample_words(rng, law.sample(rng, count), self.d, self.language)

    def initial(self, config, seed):
        """alpha and beta, each (heads, d): zeros, or N(0, init_scale^2) entries."""
        rng = stream(seed, INIT)
        shape = (self.heads, self.d)
        if config.init == "zero":
            return np.zeros(shape), np.zeros(shape)
        return tuple(scale * rng.standard_normal(shape) for scale in config.init_scale)

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


def _largest(values, empty=0.0):
    """Maximum over the last axis; ``empty`` where the axis has no entries (S is the whole alphabet)."""
    return values.max(axis=-1) if values.shape[-1] else np.full(values.shape[:-1], empty)


def _two_largest(values):
    ordered = np.partition(values, -2, axis=-1)
    return ordered[..., -1], ordered[..., -2]
