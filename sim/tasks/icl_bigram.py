"""In-context bigrams: which letter follows the query in this context?

A context is T + 1 distinct letters x_0, ..., x_T, uniform among d: T pairs of a key x_{l-1} and its value x_l. The
query is one of the keys, uniformly, the target its value. The model's logits are z = sum_l P_l B[:, x_l],
P = softmax over l of A[query, x_{l-1}], its loss the mean cross-entropy, in nats. A context is decided correctly iff
the target's logit is the largest, alone.
"""

from dataclasses import dataclass

import numpy as np

from analytic.errors import whole
from analytic.gradients import icl_bigram
from analytic.icl_bigram import diagonal_gap

from .streams import INIT, TEST, TRAIN, stream


@dataclass(frozen=True)
class IclBigram:
    """Contexts of ``pairs`` pairs of distinct letters from an alphabet of d.

    train_words, the number of training contexts, is 5 d^2 by default, and test_words d^2.
    """

    d: int = 50
    pairs: int = 6
    train_words: int = None
    test_words: int = None

    name = "icl_bigram"
    test_metric = "test_accuracy"
    heads = 1
    layers = ("A", "B")
    axes = (("query", "key"), ("letter", "value"))
    gap_offsets = None

    def __post_init__(self):
        d = whole("d", self.d, low=2, high=icl_bigram.MAX_LETTERS)
        filled = {
            "d": d,
            "pairs": whole("pairs", self.pairs, high=d - 1),
            "train_words": whole("train_words", 5 * d**2 if self.train_words is None else self.train_words),
            "test_words": whole("test_words", d**2 if self.test_words is None else self.test_words),
        }
        for field, value in filled.items():
            object.__setattr__(self, field, value)

    def settings(self):
        """All settings, as plain values."""
        return {name: getattr(self, name) for name in ("d", "pairs", "train_words", "test_words")}

    def facts(self):
        """What the head of a JSON result says of the task."""
        return {"d": self.d, "pairs": self.pairs}

    def describe(self):
        """The same for people."""
        return f"d {self.d}, pairs {self.pairs}, {self.train_words} train and {self.test_words} test contexts"

    def nbytes(self):
        """About how much memory the data need: 2 bytes a letter, three entries of 4 bytes and a draw of 8 a pair."""
        return 22.0 * (self.pairs + 2) * (self.train_words + self.test_words)

    def data(self, seed):
        """Train and test contexts of a seed (the same for every plan and init)."""
        return tuple(
            icl_bigram.sample_contexts(stream(seed, use), count, self.d, self.pairs)
            for use, count in ((TRAIN, self.train_words), (TEST, self.test_words))
        )

    def initial(self, seed, init, scale):
        """A and B, each (d, d): zeros, or N(0, scale^2) entries, a scale each."""
        rng = stream(seed, INIT)
        shape = (self.d, self.d)
        if init == "zero":
            return np.zeros(shape), np.zeros(shape)
        return tuple(one * rng.standard_normal(shape) for one in scale)

    def descend(self, train, parameters, rate_a, rate_o, steps, loss_limit):
        """``steps`` full-batch steps; see `analytic.gradients.icl_bigram.descend`."""
        return icl_bigram.descend(train, *parameters, rate_a, rate_o, steps, loss_limit)

    def test(self, test, parameters):
        """Test accuracy."""
        return icl_bigram.evaluate(test, *parameters)[1]

    def gaps(self, attention, output):
        """Attention and output gap, each (T, 1), of parameters (T, d, d).

        Attention: mean over letters a of softmax(A[a, :])_a - max_{j != a} softmax(A[a, :])_j. Output: the same for the
        columns of B, which belong to values.
        """
        return {
            "attention_gap": diagonal_gap(attention)[:, None],
            "output_gap": diagonal_gap(np.swapaxes(output, 1, 2))[:, None],
        }
