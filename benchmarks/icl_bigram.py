"""In-context bigrams: time of a full-batch step against the machine's roofs, and against other libraries.

A step (loss, both gradients, update) of N contexts with T pairs needs 3 T d multiply-adds and d exponentials a context:
the logits, the dots of the gradient by A, and the gradient by B. An exponential counts as 14 multiply-adds, those of
its shortest polynomial for full precision and of the reduction of its argument. The exponentials of A, one an entry and
not one a pair, are d^2/N a context and are not counted, nor is padding. A frozen layer saves T d of them.
"""

import numpy as np

from analytic.gradients import icl_bigram

from .kernels import Model, roof_table
from .peers import jax_scan, torch_descent
from .roofs import read_bytes

TITLE = "In-context bigrams"
RATE = 5.0  # of both layers; the peers take the same steps and must arrive at the same place
EXPONENTIAL = 14  # multiply-adds
SETTINGS = [
    {"train_words": 12_500, "d": 50, "pairs": 6},
    {"train_words": 12_500, "d": 200, "pairs": 20},
]
SCALING = [
    {"train_words": n_contexts, "d": d, "pairs": pairs}
    for n_contexts, d, pairs in (
        *((n, 50, 6) for n in (128, 1_250, 12_500, 125_000)),
        *((12_500, d, 6) for d in (10, 20, 100, 200, 500)),
        *((12_500, 50, pairs) for pairs in (1, 3, 12, 24)),
        (12_500, 200, 20),
    )
]
LAYERS = {"both layers": (RATE, RATE), "output only": (0.0, RATE), "attention only": (RATE, 0.0)}


# ---- the peers -------------------------------------------------------------------------------------------------------


def _places(contexts):
    """Keys, values, queries and targets as int64 arrays."""
    x, place = contexts.letters.astype(np.int64), contexts.queries.astype(np.int64)
    n = np.arange(len(x))
    return x[:, :-1], x[:, 1:], x[n, place], x[n, place + 1]


def numpy_products(contexts, attention, output, steps):
    """NumPy by hand: shares scattered into a matrix contexts x letters, and matrix products with it."""
    keys, values, query, target = _places(contexts)
    n, d = np.arange(len(keys)), contexts.d
    rows, places = n[:, None], query[:, None] * d + keys

    def run():
        a, b = attention.copy(), output.copy()
        mixed = np.zeros((len(n), d))
        for _ in range(steps):
            shares = np.exp(a.ravel()[places] - a.ravel()[places].max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            mixed[rows, values] = shares
            z = mixed @ b.T
            z -= z.max(axis=1, keepdims=True)
            np.exp(z, out=z)
            z /= z.sum(axis=1, keepdims=True) * len(n)
            z[n, target] -= 1.0 / len(n)
            dots = (z @ b)[rows, values]
            pulls = shares * (dots - (shares * dots).sum(axis=1, keepdims=True))
            d_a = np.bincount(places.ravel(), weights=pulls.ravel(), minlength=d * d).reshape(d, d)
            d_b = z.T @ mixed
            mixed[rows, values] = 0.0
            a, b = a - RATE * d_a, b - RATE * d_b
        return a, b

    return run


def torch_products(contexts, attention, output, steps):
    """PyTorch, tidy: autograd through the same products."""
    import torch

    keys, values, query, target = (torch.tensor(part) for part in _places(contexts))
    places = query[:, None] * contexts.d + keys
    blank = torch.zeros((len(keys), contexts.d), dtype=torch.float64)

    def loss(a, b):
        shares = torch.softmax(a.reshape(-1)[places], dim=1)
        return torch.nn.functional.cross_entropy(blank.scatter(1, values, shares) @ b.T, target)

    return torch_descent(loss, (attention, output), RATE, steps)


def torch_one_hot(contexts, attention, output, steps):
    """PyTorch as one writes it first: one-hot letters, attention as products of them, autograd."""
    import torch

    keys, values, query, target = (torch.tensor(part) for part in _places(contexts))
    hot = [torch.nn.functional.one_hot(part, contexts.d).double() for part in (keys, values, query)]

    def loss(a, b):
        shares = torch.softmax(torch.einsum("nd,de,nle->nl", hot[2], a, hot[0]), dim=1)
        mixed = torch.einsum("nl,nlv->nv", shares, hot[1])
        return torch.nn.functional.cross_entropy(mixed @ b.T, target)

    return torch_descent(loss, (attention, output), RATE, steps)


def jax_loss(contexts):
    """JAX, tidy: the same products."""
    import jax
    import jax.numpy as jnp

    d = contexts.d

    def loss(parameters, keys, values, query, target):
        a, b = parameters
        n = jnp.arange(len(keys))
        shares = jax.nn.softmax(a[query[:, None], keys], axis=1)
        z = jnp.zeros((len(n), d)).at[n[:, None], values].set(shares, unique_indices=True) @ b.T
        return jnp.mean(jax.nn.logsumexp(z, axis=1) - z[n, target])

    return loss, _places(contexts)


PEERS = {
    "numpy": numpy_products,
    "jax": jax_scan(jax_loss, RATE),
    "torch": torch_products,
    "torch, first version": torch_one_hot,
}


# ---- the kernel -----------------------------------------------------------------------------------------------------


def kernel(contexts, attention, output, steps, rates=(RATE, RATE)):
    def run():
        path = icl_bigram.descend(contexts, attention, output, *rates, steps)
        return path.attention[-1], path.output[-1]

    return run


def multiply_adds(train_words, d, pairs, layers=2):
    """Of one step that trains so many layers: none is the loss alone."""
    return train_words * d * ((1 + layers) * pairs + EXPONENTIAL)


MODEL = Model(
    task="icl_bigram",
    kernel=kernel,
    peers=PEERS,
    work=multiply_adds,
    last=lambda **size: multiply_adds(**size, layers=0) / multiply_adds(**size),
    scaling=SCALING,
    settings=SETTINGS,
    module=icl_bigram,
    memory=lambda contexts: read_bytes(contexts.nbytes),
)


def by_layers(size):
    """Time of a step that trains both layers or one."""
    data, *start = MODEL.problem(**size)
    steps, loss, rows = MODEL.steps(**size), multiply_adds(**size, layers=0), []
    for layers, rates in LAYERS.items():
        work = multiply_adds(**size, layers=sum(rate > 0 for rate in rates))
        run = kernel(data, *start, steps, rates)
        rows.append(MODEL.timed({"trained": layers, **size}, data, run, steps + loss / work, work))
    return rows


def measure(quick=False):
    return {**MODEL.measure(quick), "layers": by_layers(SETTINGS[0])}


def shown(result):
    return [*MODEL.shown(result), roof_table(result["layers"])]
