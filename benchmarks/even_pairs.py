"""Even pairs: time of a full-batch step against the machine's roof, and against other libraries.

A step (loss, both gradients, update) takes for each of the 2^(L_max + 1) - 2 strings two divisions, 1/Z and the
logistic function, and 20 multiply-adds: 14 of the exponential, and six for y f, p, c and c f and their sums by row and
by column. The roof is a loop that does just that to numbers in registers, in turns with the kernel; more operations
than these are the kernel's own loss.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from analytic.even_pairs import hard_margin
from analytic.gradients.even_pairs import Strings, attention_gap, descend
from analytic.gradients.even_pairs_twin import labels, strings, tokens
from analytic.jit import jit

from .timing import columns, machine, shortest_times

RATE = 1.0  # of both layers; the peers take the same steps and must arrive at the same place
AGREE = 1e-9
SCALING = (4, 8, 10, 12, 14, 16, 18, 20)  # L_max
SETTINGS = (10, 16)  # L_max against peers
THREADS, SEEDS, STEPS = 2, 50, 600  # of the sweep, at L_max = 10


def make(max_length, seed=0):
    """All strings, and a small random start."""
    data = Strings(max_length)
    rng = np.random.default_rng(seed)
    return data, 0.1 * rng.standard_normal((data.dimension, data.dimension)), 0.1 * rng.standard_normal(data.dimension)


def steps_for(max_length):
    """As many steps a call as keep it short, but long against the cost of a call."""
    return int(np.clip(5e6 / 2**max_length, 4, 2000))


class Arithmetic:
    """A contestant that does 20 multiply-adds and two divisions to each of many independent numbers."""

    def __init__(self, rounds=4000):
        self.numbers, self.rounds = np.ones(256), rounds

    def __call__(self):
        _arithmetic(self.numbers, self.rounds, 0.5, 0.25)

    def per_second(self, seconds):
        """Strings' worth of work."""
        return self.rounds * len(self.numbers) / seconds


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


# ---- the peers: each takes L_max, a start and steps, and returns a call that gives the last W, u ---------------------


def padded(max_length):
    """Token indices of all strings, (N, L_max), padded with D; last tokens, labels and weights in the loss."""
    indices = np.full((2 ** (max_length + 1) - 2, max_length), 2 * max_length)
    last, y, weight = (np.empty(len(indices), dtype=kind) for kind in (int, float, float))
    for length in range(1, max_length + 1):
        rows, symbols = slice(2**length - 2, 2 ** (length + 1) - 2), strings(length)
        indices[rows, :length] = tokens(symbols)
        last[rows], y[rows], weight[rows] = tokens(symbols)[:, -1], labels(symbols), 1 / (max_length * 2**length)
    return indices, last, y, weight


def numpy_padded(max_length, W, u, steps):
    """NumPy by hand: exponentials once for each pair of tokens, gathers, and sums by `bincount`."""
    indices, last, y, weight = padded(max_length)
    D = 2 * max_length
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


def torch_padded(max_length, W, u, steps):
    """PyTorch, tidy: autograd through one softmax over padded scores of all strings."""
    import torch

    torch.set_num_threads(1)
    indices, last, y, weight = (torch.tensor(array) for array in padded(max_length))
    real = indices < 2 * max_length
    at = torch.where(real, indices, 0)

    def loss(a, b):
        scores = torch.where(real, a[at, last[:, None]], -torch.inf)
        f = (torch.softmax(scores, dim=1) * b[at]).sum(dim=1)
        return (weight * torch.nn.functional.softplus(-y * f)).sum()

    return _torch_descent(torch, loss, W, u, steps)


def torch_by_length(max_length, W, u, steps):
    """PyTorch as one writes it first: one-hot tokens, length by length."""
    import torch

    torch.set_num_threads(1)
    data = []
    for length in range(1, max_length + 1):
        x = torch.nn.functional.one_hot(torch.tensor(tokens(strings(length))), 2 * max_length).double()
        data.append((x, torch.tensor(labels(strings(length)), dtype=torch.float64)))

    def loss(a, b):
        parts = []
        for x, y in data:
            shares = torch.softmax(torch.einsum("nld,de,ne->nl", x, a, x[:, -1]), dim=1)
            f = torch.einsum("nl,nld,d->n", shares, x, b)
            parts.append(torch.nn.functional.softplus(-y * f).mean())
        return sum(parts) / max_length

    return _torch_descent(torch, loss, W, u, steps)


def _torch_descent(torch, loss, W, u, steps):
    def run():
        a, b = (torch.tensor(start, requires_grad=True) for start in (W, u))
        for _ in range(steps):
            d_a, d_b = torch.autograd.grad(loss(a, b), (a, b))
            with torch.no_grad():
                a -= RATE * d_a
                b -= RATE * d_b
        return a.detach().numpy(), b.detach().numpy()

    return run


def jax_scan(max_length, W, u, steps):
    """JAX, tidy: padded strings, differentiated, a compiled scan over the steps."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    indices, last, y, weight = (jnp.asarray(array) for array in padded(max_length))
    real = indices < 2 * max_length
    at = jnp.where(real, indices, 0)

    def loss(parameters, at):
        a, b = parameters
        scores = jnp.where(real, a[at, last[:, None]], -jnp.inf)
        f = (jax.nn.softmax(scores, axis=1) * b[at]).sum(axis=1)
        return (weight * jax.nn.softplus(-y * f)).sum()

    @jax.jit
    def descent(start, at):
        def step(state, _):
            gradients = jax.grad(loss)(state, at)
            return tuple(p - RATE * g for p, g in zip(state, gradients, strict=True)), None

        return jax.lax.scan(step, start, None, length=steps)[0]

    start = jnp.asarray(W), jnp.asarray(u)
    return lambda: tuple(np.asarray(p) for p in descent(start, at))


PEERS = {
    "numpy": numpy_padded,
    "jax": jax_scan,
    "torch": torch_padded,
    "torch, first version": torch_by_length,
}


# ---- measuring -------------------------------------------------------------------------------------------------------


def kernel(data, W, u, steps):
    def run():
        path = descend(data, W, u, RATE, RATE, steps)
        return path.W[-1], path.u[-1]

    return run


def against_roof(max_length):
    """Time of one step, and its share of the roof."""
    (data, W, u), steps, arithmetic = make(max_length), steps_for(max_length), Arithmetic()
    seconds = shortest_times({"step": kernel(data, W, u, steps), "arithmetic": arithmetic}, rounds=5, repeats=5)
    step = seconds["step"] / (steps + 0.7)  # the last state's loss costs less than a step
    peak = arithmetic.per_second(seconds["arithmetic"])
    return {
        "max_length": max_length,
        "strings": data.n_strings,
        "microseconds": 1e6 * step,
        "arithmetic_share": data.n_strings / step / peak,
        "roof_strings_per_second": peak,
    }


def against_peers(max_length):
    """Time of one step of every peer, in turns with the kernel; all must arrive at the same parameters."""
    data, W, u = make(max_length)
    steps = 20 if max_length <= 12 else 2
    contestants, missing = {"attnlag": kernel(data, W, u, steps)}, []
    for name, peer in PEERS.items():
        try:
            contestants[name] = peer(max_length, W, u, steps)
        except ImportError:
            missing.append(name)
    wanted = contestants["attnlag"]()
    for name, run in contestants.items():
        difference = max(np.abs(got - want).max() for got, want in zip(run(), wanted, strict=True))
        if not difference <= AGREE:
            raise SystemExit(f"{name} arrives {difference:.1e} away from the kernel: nothing to compare")
    seconds = shortest_times(contestants, rounds=3)
    rows = [
        {"peer": name, "microseconds": 1e6 * taken / steps, "times_slower": taken / seconds["attnlag"]}
        for name, taken in seconds.items()
    ]
    rows += [{"peer": name, "microseconds": None, "times_slower": None} for name in missing]
    return {"max_length": max_length, "peers": rows}


def gaps():
    """Milliseconds of both gaps of one state of a joint run at L_max = 10, on average over the run."""
    data, W, u = make(10)
    states = descend(data, W, u, 5.0, 5.0, 600).W[::60]
    contestants = {
        "attention": lambda: attention_gap(data, states),
        "output": lambda: [hard_margin(data, state) for state in states],
    }
    seconds = shortest_times(contestants, rounds=3)
    return {name: 1e3 * taken / len(states) for name, taken in seconds.items()}


def over_threads():
    """Runs a second of one thread and of several, each from its own start."""
    runs = [kernel(*make(12, seed), steps=300) for seed in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        contestants = {
            "one": lambda: [run() for run in runs],
            "many": lambda: [future.result() for future in [pool.submit(run) for run in runs]],
        }
        seconds = shortest_times(contestants, clock=perf_counter)
    return {"threads": THREADS, "speedup": seconds["one"] / seconds["many"]}


def sweep():
    """Seconds for SEEDS joint runs of STEPS steps at L_max = 10 on THREADS threads."""

    def one(seed):
        return descend(*make(10, seed), RATE, RATE, STEPS).loss[-1]

    start = perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        losses = list(pool.map(one, range(SEEDS)))
    seconds = perf_counter() - start
    return {"seeds": SEEDS, "steps": STEPS, "threads": THREADS, "seconds": seconds, "mean_loss": float(np.mean(losses))}


def measure():
    """Everything, as one JSON-ready dictionary."""
    return {
        "model": "even_pairs",
        "machine": machine(["numpy", "numba", "jax", "torch"]),
        "scaling": [against_roof(max_length) for max_length in SCALING],
        "peers": [against_peers(max_length) for max_length in SETTINGS],
        "gaps": gaps(),
        "threads": over_threads(),
        "sweep": sweep(),
    }


def table(result):
    """The same for people."""
    host, run, gap = result["machine"], result["sweep"], result["gaps"]
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in host["versions"].items())
    parts = [f"even pairs on {host['cpu']}, {host['cores']} cores; {versions}"]
    rows = [
        (row["max_length"], row["strings"], f"{row['microseconds']:.1f}", f"{row['arithmetic_share']:.0%}",
         f"{row['roof_strings_per_second'] / 1e9:.2f}")
        for row in result["scaling"]
    ]  # fmt: skip
    parts.append(columns(("L_max", "strings", "us a step", "of the roof", "roof, G strings/s"), rows))
    for setting in result["peers"]:
        rows = [
            (row["peer"], "not installed", "")
            if row["microseconds"] is None
            else (row["peer"], f"{row['microseconds']:.1f}", f"{row['times_slower']:.1f}")
            for row in setting["peers"]
        ]
        parts.append(columns((f"L_max = {setting['max_length']}", "us a step", "times"), rows))
    threads = result["threads"]
    parts.append(
        f"{threads['threads']} threads, one run each: {threads['speedup']:.2f} times as fast\n"
        f"gaps of one state at L_max = 10: attention {gap['attention']:.3f} ms, output {gap['output']:.2f} ms\n"
        f"{run['seeds']} seeds x {run['steps']} steps at L_max = 10 on {run['threads']} threads: {run['seconds']:.2f} s"
    )
    return "\n\n".join(parts)
