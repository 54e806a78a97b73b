"""Even pairs: do the first and the last symbol of a binary string agree?

The data are all binary strings of the lengths 1 to L_max, for training and for testing. The token with symbol b at
position l (from 1) has the index 2 (l - 1) + b. The model is f = sum_l P_l u[x_l], P = softmax over l of W[x_l, x_L],
its loss the mean over lengths of the mean over strings of ln(1 + e^{-y f}). A string is decided correctly iff
y f > 0 (f = 0 is wrong); the accuracy is the plain mean over all strings.
"""

from dataclasses import dataclass

import numpy as np

from analytic.errors import whole
from analytic.even_pairs import hard_margin
from analytic.gradients import even_pairs

from .streams import INIT, stream


@dataclass(frozen=True)
class EvenPairs:
    """All binary strings of the lengths 1 to ``max_length``."""

    max_length: int = 10

    name = "even_pairs"
    test_metric = "test_accuracy"
    heads = 1
    layers = ("W", "u")
    axes = (("token", "last_token"), ("token",))
    gap_offsets = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 400, 600, 1000,
                   1500, 2000, 3000, 5000, 7000, 10_000, 20_000, 50_000, 100_000)  # fmt: skip

    def __post_init__(self):
        object.__setattr__(self, "max_length", whole("max_length", self.max_length, high=even_pairs.LONGEST))

    @property
    def strings(self):
        """The data."""
        return even_pairs.Strings(self.max_length)

    def settings(self):
        """All settings, as plain values."""
        return {"max_length": self.max_length}

    def facts(self):
        """What the head of a JSON result says of the task."""
        return self.settings()

    def describe(self):
        """The same for people."""
        return f"all {self.strings.n_strings} strings of at most {self.max_length} symbols"

    def nbytes(self):
        """About how much memory a run needs: tables of half strings, a few numbers for each of the 2^(L_max / 2)."""
        return 1e6 + 100.0 * 2 ** (self.max_length / 2)

    def data(self, seed):
        """Train and test strings: all, and the same for every seed."""
        return self.strings, self.strings

    def initial(self, seed, init, scale):
        """W (D, D) and u (D,), D = 2 L_max: zeros, or N(0, scale^2) entries, a scale each."""
        rng, D = stream(seed, INIT), self.strings.dimension
        if init == "zero":
            return np.zeros((D, D)), np.zeros(D)
        return scale[0] * rng.standard_normal((D, D)), scale[1] * rng.standard_normal(D)

    def descend(self, train, parameters, rate_a, rate_o, steps, loss_limit):
        """``steps`` full-batch steps; see `analytic.gradients.even_pairs.descend`."""
        return even_pairs.descend(train, *parameters, rate_a, rate_o, steps, loss_limit)

    def test(self, test, parameters):
        """Test accuracy."""
        return even_pairs.evaluate(test, *parameters)[1]

    def gaps(self, attention, output):
        """Attention and output gap, each (T, 1), of parameters W (T, D, D) and u (T, D).

        Attention: the mean, over the lengths from 2 on, of the mean over strings of y (2 P_1 - 1), P_1 the attention
        on the first token. Output: cos(u, u*), u* the hard-margin direction of the attention outputs (0 for u = 0);
        NaN where they are not separable, so that there is no u*.
        """
        return {
            "attention_gap": even_pairs.attention_gap(self.strings, attention)[:, None],
            "output_gap": self._cosines(attention, output)[:, None],
        }

    def _cosines(self, attention, output):
        cosines, W, found = np.full(len(output), np.nan), None, None
        for t, u in enumerate(output):
            if W is None or not np.array_equal(W, attention[t]):  # a frozen W keeps its direction
                W = attention[t]
                found = hard_margin(self.strings, W)
            if found.separable:
                largest = np.abs(u).max() or 1.0  # squares neither overflow nor vanish
                length = np.linalg.norm(u / largest) or 1.0
                cosines[t] = found.direction @ (u / largest) / length
        return cosines
