"""The letter model: time of a full-batch step against the machine's roofs, and against other libraries.

A step (loss, both gradients, update) needs 4 N d multiply-adds a head, for N words over d letters. Its arithmetic roof
is the rate of independent vector multiply-adds, its memory roof one read of the packed counts; both are measured in
turns with the kernel. H is the number of heads.
"""

import numpy as np

from analytic.gradients import letter

from .kernels import Model
from .peers import jax_scan, torch_descent
from .roofs import read_bytes

TITLE = "Letters"
RATE = 1.0  # of both layers; the peers take the same steps and must arrive at the same place
SETTINGS = [
    {"task": "occurrence", "train_words": 12_500, "d": 50, "heads": 1},
    {"task": "or", "train_words": 12_500, "d": 50, "heads": 1},
    {"task": "and", "train_words": 12_500, "d": 50, "heads": 4},
    {"task": "occurrence", "train_words": 200_000, "d": 200, "heads": 1},
]
SCALING = [
    {"train_words": n_words, "d": d, "heads": heads}
    for n_words, d, heads in (
        *((n, 50, 1) for n in (100, 1_250, 12_500, 125_000)),
        *((12_500, d, 1) for d in (5, 20, 200, 1_000)),
        *((12_500, 50, h) for h in (2, 4, 8)),
        (200_000, 200, 1),
    )
]


# ---- the peers -------------------------------------------------------------------------------------------------------


def numpy_products(words, alpha, beta, steps):
    """NumPy by hand: two products with the counts, two with their transpose, all heads at once."""
    counts, labels = words.counts().astype(float), words.labels
    scale = 2.0 / len(labels)

    def run():
        a, b = alpha.copy(), beta.copy()
        for _ in range(steps):
            e = np.exp(a - a.max(axis=1, keepdims=True))
            z = counts @ e.T
            o = counts @ (e * b).T / z
            c = (o.sum(axis=1, keepdims=True) - 1.0 - labels[:, None]) / z * scale
            g, k = e * (counts.T @ c).T, e * (counts.T @ (c * o)).T
            a, b = a - RATE * (b * g - k), b - RATE * g
        return a, b

    return run


def torch_products(words, alpha, beta, steps):
    """PyTorch, tidy: autograd through two products with the counts."""
    import torch

    x, y = torch.tensor(words.counts().astype(float)), torch.tensor(words.labels.astype(float))

    def loss(a, b):
        e = torch.exp(a - a.max(dim=1, keepdim=True).values)
        return ((((x @ (e * b).T) / (x @ e.T)).sum(dim=1) - 1.0 - y) ** 2).mean()

    return torch_descent(loss, (alpha, beta), RATE, steps)


def torch_softmax(words, alpha, beta, steps):
    """PyTorch as one writes it first: autograd through softmax(log n + alpha)."""
    import torch

    log_n, y = torch.tensor(words.counts().astype(float)).log(), torch.tensor(words.labels.astype(float))

    def loss(a, b):
        f = sum((torch.softmax(log_n + a[h], dim=1) * b[h]).sum(dim=1) for h in range(len(a))) - 1.0
        return ((f - y) ** 2).mean()

    return torch_descent(loss, (alpha, beta), RATE, steps)


def jax_loss(words):
    """JAX, tidy: two products with the counts."""
    import jax.numpy as jnp

    def loss(parameters, x, y):
        a, b = parameters
        e = jnp.exp(a - a.max(axis=1, keepdims=True))
        if len(a) == 1:
            f = (x @ (e[0] * b[0])) / (x @ e[0]) - 1.0
        else:
            f = ((x @ (e * b).T) / (x @ e.T)).sum(axis=1) - 1.0
        return ((f - y) ** 2).mean()

    return loss, (words.counts().astype(float), words.labels.astype(float))


PEERS = {
    "numpy": numpy_products,
    "jax": jax_scan(jax_loss, RATE),
    "torch": torch_products,
    "torch, first version": torch_softmax,
}


# ---- the kernel -----------------------------------------------------------------------------------------------------


def kernel(words, alpha, beta, steps):
    def run():
        path = letter.descend(words, alpha, beta, RATE, RATE, steps)
        return path.alpha[-1], path.beta[-1]

    return run


MODEL = Model(
    task="occurrence",
    kernel=kernel,
    peers=PEERS,
    work=lambda train_words, d, heads, **_: 4 * train_words * d * heads,
    last=lambda **_: 0.5,  # the scores, without the gradients
    scaling=SCALING,
    settings=SETTINGS,
    module=letter,
    memory=lambda words: read_bytes(words.nbytes),
    large={"train_words": 200_000, "d": 200, "heads": 1},
)
measure, shown = MODEL.measure, MODEL.shown
