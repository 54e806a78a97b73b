"""Single-location regression: one token of a context, at a random position, holds what the target is read from.

A context has L tokens in R^d. One of them, at a random position J, is X_J ~ N(sqrt(d/2) k*, I/2), the others are
N(0, I), with k* and v* orthonormal; the target is y = X_J . v* + eps xi. The model is f = sum_l P_l (X_l . v),
P = softmax over l of X_l . k, its loss the mean of (f - y)^2. As everything else looks the same in all directions,
k* and v* are the first two unit vectors.
"""

from dataclasses import dataclass

import numpy as np

from analytic.errors import real, whole
from analytic.gradients import slr

from .streams import INIT, TEST, TRAIN, stream


@dataclass(frozen=True)
class SingleLocation:
    """Contexts of ``tokens`` tokens in R^d, with noise of standard deviation ``noise`` on the targets.

    train_words, the number of training contexts, is 5 d^2 by default, and test_words d^2.
    """

    d: int = 50
    tokens: int = 10
    noise: float = 0.1
    train_words: int = None
    test_words: int = None

    name = "slr"
    test_metric = "test_loss"
    heads = 1
    layers = ("k", "v")
    axes = (("coordinate",), ("coordinate",))
    gap_offsets = None

    def __post_init__(self):
        d = whole("d", self.d, low=2)
        filled = {
            "d": d,
            "tokens": whole("tokens", self.tokens),
            "noise": real("noise", self.noise, low=0.0),
            "train_words": whole("train_words", 5 * d**2 if self.train_words is None else self.train_words),
            "test_words": whole("test_words", d**2 if self.test_words is None else self.test_words),
        }
        for field, value in filled.items():
            object.__setattr__(self, field, value)

    def settings(self):
        """All settings, as plain values."""
        return {name: getattr(self, name) for name in ("d", "tokens", "noise", "train_words", "test_words")}

    def facts(self):
        """What the head of a JSON result says of the task."""
        return {"d": self.d, "tokens": self.tokens, "noise": self.noise}

    def describe(self):
        """The same for people."""
        return (f"d {self.d}, tokens {self.tokens}, noise {self.noise:g}, {self.train_words} train and "
                f"{self.test_words} test contexts")

    def one_step_unit(self):
        """Sizes of single steps, (attention, output), that keep v_1 . v* and the score of the informative token.

        From zero init v_1 = (rate_o / L) v*, and k_1 . m = rate_a (d/2) ((L - 1)/L^2) c (1 + c/L) with c = v_1 . v*.
        """
        return self.tokens / self.d, float(self.tokens)

    def nbytes(self):
        """About how much memory the data need: tokens in float64."""
        return 8.0 * self.tokens * self.d * (self.train_words + self.test_words)

    def data(self, seed):
        """Train and test contexts of a seed (the same for every plan and init)."""
        key, value = np.eye(2, self.d)
        return tuple(
            slr.sample_tokens(stream(seed, use), count, self.tokens, key, value, self.noise)
            for use, count in ((TRAIN, self.train_words), (TEST, self.test_words))
        )

    def initial(self, seed, init, scale):
        """k and v, each (d,): zeros, or N(0, scale^2) entries, a scale each."""
        rng = stream(seed, INIT)
        if init == "zero":
            return np.zeros(self.d), np.zeros(self.d)
        return tuple(one * rng.standard_normal(self.d) for one in scale)

    def descend(self, train, parameters, rate_a, rate_o, steps, loss_limit):
        """``steps`` full-batch steps; see `analytic.gradients.slr.descend`."""
        return slr.descend(train, *parameters, rate_a, rate_o, steps, loss_limit)

    def test(self, test, parameters):
        """Test loss."""
        return slr.evaluate(test, *parameters)

    def gaps(self, k, v):
        """Attention gap cos(k, k*) and output gap cos(v, v*), each (T, 1), of parameters (T, d); 0 of a zero vector."""
        return {"attention_gap": _cosine(k, 0), "output_gap": _cosine(v, 1)}


def _cosine(vectors, axis):
    """Cosine of the angle between each of the vectors and a unit vector, (T, 1)."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1.0)  # squares neither overflow nor vanish
    length = np.sqrt(np.sum(scaled**2, axis=-1, keepdims=True))
    return scaled[..., axis : axis + 1] / np.where(length > 0, length, 1.0)
