"""Single-location regression: time of a full-batch step against the machine's roofs, and against other libraries.

A step (loss, both gradients, update) needs 4 N L d multiply-adds and has to fetch the N L d numbers of the tokens once:
more than a cache holds, so that one read of them is the roof that binds. It is measured on the same array, in turns
with the kernel. An output phase is linear least squares and is measured as a whole.
"""

import numpy as np

from analytic.gradients import slr

from .kernels import STEPS, Model
from .peers import jax_scan, torch_array, torch_descent
from .roofs import Read
from .timing import shortest_times

TITLE = "Single-location regression"
RATE = 0.01  # of both layers; the peers take the same steps and must arrive at the same place
SETTINGS = [
    {"train_words": 12_500, "tokens": 10, "d": 50},
    {"train_words": 20_000, "tokens": 20, "d": 200},
]
SCALING = [
    {"train_words": n_contexts, "tokens": tokens, "d": d}
    for n_contexts, tokens, d in (
        *((n, 10, 50) for n in (100, 1_250, 12_500, 125_000)),
        *((12_500, 10, d) for d in (5, 20, 100)),
        *((12_500, tokens, 50) for tokens in (3, 20, 40)),
        (20_000, 20, 200),
    )
]


# ---- the peers -------------------------------------------------------------------------------------------------------


def numpy_products(data, k, v, steps):
    """NumPy by hand: one product with the tokens for scores and values, one with their transpose for the gradients."""
    n, length, d = data.tokens.shape
    flat, targets = data.tokens.reshape(-1, d), data.targets[:, None]

    def run():
        a, b = k.copy(), v.copy()
        for _ in range(steps):
            scores, values = (flat @ np.stack([a, b], axis=1)).reshape(n, length, 2).transpose(2, 0, 1)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            f = np.sum(shares * values, axis=1, keepdims=True)
            pull = (2.0 / n) * (f - targets) * shares
            d_a, d_b = np.stack([pull * (values - f), pull]).reshape(2, -1) @ flat
            a, b = a - RATE * d_a, b - RATE * d_b
        return a, b

    return run


def torch_products(data, k, v, steps):
    """PyTorch, tidy: autograd through one product with the tokens."""
    import torch

    x, y = torch_array(data.tokens), torch.tensor(data.targets)

    def loss(a, b):
        both = x @ torch.stack([a, b], dim=1)
        return (((torch.softmax(both[..., 0], dim=1) * both[..., 1]).sum(dim=1) - y) ** 2).mean()

    return torch_descent(loss, (k, v), RATE, steps)


def torch_attention(data, k, v, steps):
    """PyTorch as one writes it first: attention-weighted mean of the tokens, then the output layer."""
    import torch

    x, y = torch_array(data.tokens), torch.tensor(data.targets)

    def loss(a, b):
        return (((torch.softmax(x @ a, dim=1).unsqueeze(-1) * x).sum(dim=1) @ b - y) ** 2).mean()

    return torch_descent(loss, (k, v), RATE, steps)


def jax_loss(data):
    """JAX, tidy: one product with the tokens."""
    import jax
    import jax.numpy as jnp

    def loss(parameters, x, y):
        both = x.reshape(-1, x.shape[2]) @ jnp.stack(parameters, axis=1)
        scores, values = both.reshape(*x.shape[:2], 2).transpose(2, 0, 1)
        return (((jax.nn.softmax(scores, axis=1) * values).sum(axis=1) - y) ** 2).mean()

    return loss, (data.tokens, data.targets)


PEERS = {
    "numpy": numpy_products,
    "jax": jax_scan(jax_loss, RATE),
    "torch": torch_products,
    "torch, first version": torch_attention,
}


# ---- the kernel -----------------------------------------------------------------------------------------------------


def kernel(data, k, v, steps):
    def run():
        path = slr.descend(data, k, v, RATE, RATE, steps)
        return path.k[-1], path.v[-1]

    return run


MODEL = Model(
    task="slr",
    kernel=kernel,
    peers=PEERS,
    work=lambda train_words, tokens, d: 4 * train_words * tokens * d,
    last=lambda **_: 0.5,  # the scores, without the gradients
    scaling=SCALING,
    settings=SETTINGS,
    module=slr,
    memory=lambda data: Read(data.tokens),  # the very tokens
    large={"train_words": 60_000, "tokens": 10, "d": 50},
)


def output_phase():
    """Milliseconds of STEPS steps of the output layer alone, and of its reduction to least squares."""
    data, k, v = MODEL.problem(**SETTINGS[0])
    contestants = {
        "reduction": lambda: slr.descend(data, k, v, 0.0, RATE, 0),
        "phase": lambda: slr.descend(data, k, v, 0.0, RATE, STEPS),
        "joint": kernel(data, k, v, 10),
    }
    seconds = shortest_times(contestants, pause=False)
    return {
        "reduction_milliseconds": 1e3 * seconds["reduction"],
        "microseconds_a_step": 1e6 * (seconds["phase"] - seconds["reduction"]) / STEPS,
        "times_faster_than_joint": seconds["joint"] / 10 * STEPS / seconds["phase"],
    }


def measure(quick=False):
    return {**MODEL.measure(quick), "output_phase": output_phase()}


def shown(result):
    phase = result["output_phase"]
    text = (
        f"Output phase: {phase['reduction_milliseconds']:.1f} ms for the reduction to least squares, then "
        f"{phase['microseconds_a_step']:.2f} µs a step; {STEPS} steps are {phase['times_faster_than_joint']:.0f} times "
        "as fast as joint ones."
    )
    return [*MODEL.shown(result), text]
