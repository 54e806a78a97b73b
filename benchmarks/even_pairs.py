"""Even pairs: time of a full-batch step against the machine's roof, and against other libraries.

A step (loss, both gradients, update) takes for each of the 2^(L_max + 1) - 2 strings two divisions, 1/Z and the
logistic function, and 20 multiply-adds: 14 of the exponential, and six for y f, p, c and c f and their sums by row and
by column. The roof is a loop that does just that to numbers in registers, in turns with the kernel; more operations
than these are the kernel's own loss.
"""

import numpy as np

from analytic.even_pairs import hard_margin
from analytic.gradients import even_pairs
from analytic.gradients.even_pairs_twin import labels, strings, tokens
from analytic.jit import jit

from .kernels import Model
from .peers import jax_scan, torch_descent
from .timing import shortest_times

TITLE = "Even pairs"
RATE = 1.0  # of both layers; the peers take the same steps and must arrive at the same place
SCALING = [{"max_length": length} for length in (4, 8, 10, 12, 14, 16, 18, 20)]
SETTINGS = [{"max_length": length} for length in (10, 16)]
MULTIPLY_ADDS = 20  # a string


class Arithmetic:
    """A contestant that does 20 multiply-adds and two divisions to each of many independent numbers."""

    def __init__(self, rounds=4000):
        self.numbers, self.rounds = np.ones(256), rounds

    def __call__(self):
        _arithmetic(self.numbers, self.rounds, 0.5, 0.25)

    def per_second(self, seconds):
        """Of the multiply-adds alone."""
        return MULTIPLY_ADDS * self.rounds * len(self.numbers) / seconds


@jit(fastmath={"contract"})
def _arithmetic(numbers, rounds, factor, term):
    for _ in range(rounds):
        for i in range(numbers.size):
            x = numbers[i]
            for _ in range(10):
                x = x * factor + term
            x = 1.0 / x
            for _ in range(10):
                x = x * factor + term
            numbers[i] = 1.0 / x


# ---- the peers -------------------------------------------------------------------------------------------------------


def padded(max_length):
    """Token indices of all strings, (N, L_max), padded with D; last tokens, labels and weights in the loss."""
    indices = np.full((2 ** (max_length + 1) - 2, max_length), 2 * max_length)
    last, y, weight = (np.empty(len(indices), dtype=kind) for kind in (int, float, float))
    for length in range(1, max_length + 1):
        rows, symbols = slice(2**length - 2, 2 ** (length + 1) - 2), strings(length)
        indices[rows, :length] = tokens(symbols)
        last[rows], y[rows], weight[rows] = tokens(symbols)[:, -1], labels(symbols), 1 / (max_length * 2**length)
    return indices, last, y, weight


def numpy_padded(data, W, u, steps):
    """NumPy by hand: exponentials once for each pair of tokens, gathers, and sums by `bincount`."""
    indices, last, y, weight = padded(data.max_length)
    D = data.dimension
    pairs = indices * D + last[:, None]

    def run():
        a, b = W.copy(), u.copy()
        for _ in range(steps):
            e = np.vstack([np.exp(a - a.max(axis=0)), np.zeros(D)]).ravel()
            powers, values = e[pairs], np.append(b, 0.0)[indices]
            z = powers.sum(axis=1)
            f = (powers * values).sum(axis=1) / z
            c = -weight * y / (1.0 + np.exp(y * f)) / z
            pulls = c[:, None] * powers
            d_b = np.bincount(indices.ravel(), pulls.ravel(), D + 1)[:D]
            turns = (pulls * (values - f[:, None])).ravel()
            d_a = np.bincount(pairs.ravel(), turns, (D + 1) * D)[: D * D].reshape(D, D)
            a, b = a - RATE * d_a, b - RATE * d_b
        return a, b

    return run


def torch_padded(data, W, u, steps):
    """PyTorch, tidy: autograd through one softmax over padded scores of all strings."""
    import torch

    indices, last, y, weight = (torch.tensor(array) for array in padded(data.max_length))
    real = indices < data.dimension
    at = torch.where(real, indices, 0)

    def loss(a, b):
        scores = torch.where(real, a[at, last[:, None]], -torch.inf)
        f = (torch.softmax(scores, dim=1) * b[at]).sum(dim=1)
        return (weight * torch.nn.functional.softplus(-y * f)).sum()

    return torch_descent(loss, (W, u), RATE, steps)


def torch_by_length(data, W, u, steps):
    """PyTorch as one writes it first: one-hot tokens, length by length."""
    import torch

    sets = []
    for length in range(1, data.max_length + 1):
        x = torch.nn.functional.one_hot(torch.tensor(tokens(strings(length))), data.dimension).double()
        sets.append((x, torch.tensor(labels(strings(length)), dtype=torch.float64)))

    def loss(a, b):
        parts = []
        for x, y in sets:
            shares = torch.softmax(torch.einsum("nld,de,ne->nl", x, a, x[:, -1]), dim=1)
            f = torch.einsum("nl,nld,d->n", shares, x, b)
            parts.append(torch.nn.functional.softplus(-y * f).mean())
        return sum(parts) / len(sets)

    return torch_descent(loss, (W, u), RATE, steps)


def jax_loss(data):
    """JAX, tidy: one softmax over padded scores of all strings."""
    import jax
    import jax.numpy as jnp

    indices, last, y, weight = padded(data.max_length)
    real = indices < data.dimension

    def loss(parameters, at, real, last, y, weight):
        a, b = parameters
        scores = jnp.where(real, a[at, last[:, None]], -jnp.inf)
        f = (jax.nn.softmax(scores, axis=1) * b[at]).sum(axis=1)
        return (weight * jax.nn.softplus(-y * f)).sum()

    return loss, (np.where(real, indices, 0), real, last, y, weight)


PEERS = {
    "numpy": numpy_padded,
    "jax": jax_scan(jax_loss, RATE),
    "torch": torch_padded,
    "torch, first version": torch_by_length,
}


# ---- the kernel -----------------------------------------------------------------------------------------------------


def kernel(data, W, u, steps):
    def run():
        path = even_pairs.descend(data, W, u, RATE, RATE, steps)
        return path.W[-1], path.u[-1]

    return run


MODEL = Model(
    task="even_pairs",
    kernel=kernel,
    peers=PEERS,
    work=lambda max_length: MULTIPLY_ADDS * (2 ** (max_length + 1) - 2),
    last=lambda **_: 0.7,  # no gradients
    scaling=SCALING,
    settings=SETTINGS,
    module=even_pairs,
    arithmetic=Arithmetic,
)


def gaps():
    """Milliseconds of both gaps of one state of a joint run at L_max = 10, on average over the run."""
    data, W, u = MODEL.problem(max_length=10)
    states = even_pairs.descend(data, W, u, 5.0, 5.0, 600).W[::60]
    contestants = {
        "attention": lambda: even_pairs.attention_gap(data, states),
        "output": lambda: [hard_margin(data, state) for state in states],
    }
    seconds = shortest_times(contestants, rounds=3, pause=False)
    return {name: 1e3 * taken / len(states) for name, taken in seconds.items()}


def measure(quick=False):
    return {**MODEL.measure(quick), "gaps": gaps()}


def shown(result):
    gap = result["gaps"]
    text = f"Gaps of one state at L_max = 10: attention {gap['attention']:.3f} ms, output {gap['output']:.2f} ms."
    return [*MODEL.shown(result), text]
