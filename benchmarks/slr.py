"""Single-location regression: time of a full-batch step against the machine's roofs, and against other libraries.

A step (loss, both gradients, update) needs 4 N L d multiply-adds and has to fetch the N L d numbers of the tokens once:
more than a cache holds, so that one read of them is the roof that binds. It is measured on the same array, in turns
with the kernel. An output phase is linear least squares and is measured as a whole.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from analytic.gradients import slr
from analytic.gradients.slr import Tokens, descend, sample_tokens

from .timing import MultiplyAdds, Read, columns, machine, shortest_times

RATE = 0.01  # of both layers; the peers take the same steps and must arrive at the same place
AGREE = 1e-9
SETTINGS = [(12_500, 10, 50), (20_000, 20, 200)]  # contexts, tokens, d
SCALING = [
    *((n, 10, 50) for n in (100, 1_250, 12_500, 125_000)),
    *((12_500, 10, d) for d in (5, 20, 100)),
    *((12_500, tokens, 50) for tokens in (3, 20, 40)),
    (20_000, 20, 200),
]
THREADS, SEEDS, STEPS = 2, 50, 400  # of the sweep


def make(n, tokens, d, seed=0):
    """Contexts of the task, and a small random start."""
    rng = np.random.default_rng(seed)
    data = sample_tokens(rng, n, tokens, *np.eye(2, d), 0.1)
    return data, *rng.normal(0.0, 0.1 / np.sqrt(d), (2, d))


def steps_for(n, tokens, d, budget=6e7):
    """As many steps a call as keep it short, but long against the cost of a call."""
    return int(np.clip(budget / (n * tokens * d), 2, 200))


# ---- the peers: each takes tokens, targets, a start and steps, and returns a call that gives the last k, v ----------


def numpy_products(tokens, targets, k, v, steps):
    """NumPy by hand: one product with the tokens for scores and values, one with their transpose for the gradients."""
    n, length, d = tokens.shape
    flat = tokens.reshape(-1, d)

    def run():
        a, b = k.copy(), v.copy()
        for _ in range(steps):
            scores, values = (flat @ np.stack([a, b], axis=1)).reshape(n, length, 2).transpose(2, 0, 1)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            f = np.sum(shares * values, axis=1, keepdims=True)
            pull = (2.0 / n) * (f - targets[:, None]) * shares
            d_a, d_b = np.stack([pull * (values - f), pull]).reshape(2, -1) @ flat
            a, b = a - RATE * d_a, b - RATE * d_b
        return a, b

    return run


def torch_products(tokens, targets, k, v, steps):
    """PyTorch, tidy: autograd through one product with the tokens."""
    import torch

    torch.set_num_threads(1)
    x, y = torch.tensor(tokens), torch.tensor(targets)

    def forward(a, b):
        both = x @ torch.stack([a, b], dim=1)
        return (torch.softmax(both[..., 0], dim=1) * both[..., 1]).sum(dim=1)

    return _torch_descent(torch, forward, y, k, v, steps)


def torch_attention(tokens, targets, k, v, steps):
    """PyTorch as one writes it first: attention-weighted mean of the tokens, then the output layer."""
    import torch

    torch.set_num_threads(1)
    x, y = torch.tensor(tokens), torch.tensor(targets)

    def forward(a, b):
        return (torch.softmax(x @ a, dim=1).unsqueeze(-1) * x).sum(dim=1) @ b

    return _torch_descent(torch, forward, y, k, v, steps)


def _torch_descent(torch, forward, y, k, v, steps):
    def run():
        a, b = (torch.tensor(start, requires_grad=True) for start in (k, v))
        for _ in range(steps):
            loss = ((forward(a, b) - y) ** 2).mean()
            d_a, d_b = torch.autograd.grad(loss, (a, b))
            with torch.no_grad():
                a -= RATE * d_a
                b -= RATE * d_b
        return a.detach().numpy(), b.detach().numpy()

    return run


def jax_scan(tokens, targets, k, v, steps):
    """JAX, tidy: one product with the tokens, differentiated, a compiled scan over the steps."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    x, y = jnp.asarray(tokens), jnp.asarray(targets)

    def loss(parameters, x):
        both = x.reshape(-1, x.shape[2]) @ jnp.stack(parameters, axis=1)
        scores, values = both.reshape(*x.shape[:2], 2).transpose(2, 0, 1)
        return (((jax.nn.softmax(scores, axis=1) * values).sum(axis=1) - y) ** 2).mean()

    @jax.jit
    def descent(start, x):
        def step(state, _):
            gradients = jax.grad(loss)(state, x)
            return tuple(p - RATE * g for p, g in zip(state, gradients, strict=True)), None

        return jax.lax.scan(step, start, None, length=steps)[0]

    start = jnp.asarray(k), jnp.asarray(v)
    return lambda: tuple(np.asarray(p) for p in descent(start, x))


PEERS = {
    "numpy": numpy_products,
    "jax": jax_scan,
    "torch": torch_products,
    "torch, first version": torch_attention,
}


# ---- measuring -------------------------------------------------------------------------------------------------------


def kernel(data, k, v, steps):
    def run():
        path = descend(data, k, v, RATE, RATE, steps)
        return path.k[-1], path.v[-1]

    return run


class ReadTokens(Read):
    """One read of the very tokens."""

    def __init__(self, data):
        self.numbers = data.tokens.reshape(-1).view(np.int64)


def against_roofs(n, tokens, d):
    """Time of one step, and its share of each roof."""
    data, k, v = make(n, tokens, d)
    steps = steps_for(n, tokens, d)
    arithmetic, memory = MultiplyAdds(), ReadTokens(data)
    contestants = {"step": kernel(data, k, v, steps), "arithmetic": arithmetic, "memory": memory}
    seconds = shortest_times(contestants, rounds=5, repeats=5)
    step = seconds["step"] / (steps + 0.5)  # the last state's loss costs half a step
    peak, read = arithmetic.per_second(seconds["arithmetic"]), memory.per_second(seconds["memory"])
    return {
        "contexts": n, "tokens": tokens, "d": d, "bytes": data.tokens.nbytes,
        "microseconds": 1e6 * step,
        "arithmetic_share": 4 * n * tokens * d / step / peak,
        "memory_share": data.tokens.nbytes / step / read,
        "multiply_adds_per_second": peak,
        "read_bytes_per_second": read,
    }  # fmt: skip


def against_peers(n, tokens, d):
    """Time of one step of every peer, in turns with the kernel; all must arrive at the same parameters."""
    data, k, v = make(n, tokens, d)
    steps = 20 if n * tokens * d < 2e7 else 2
    contestants, missing = {"attnlag": kernel(data, k, v, steps)}, []
    for name, peer in PEERS.items():
        try:
            contestants[name] = peer(data.tokens, data.targets, k, v, steps)
        except ImportError:
            missing.append(name)
    wanted = contestants["attnlag"]()
    for name, run in contestants.items():
        difference = max(np.abs(got - want).max() for got, want in zip(run(), wanted, strict=True))
        if not difference <= AGREE:
            raise SystemExit(f"{name} arrives {difference:.1e} away from the kernel: nothing to compare")
    seconds = shortest_times(contestants, rounds=4)
    rows = [
        {"peer": name, "microseconds": 1e6 * taken / steps, "times_slower": taken / seconds["attnlag"]}
        for name, taken in seconds.items()
    ]
    rows += [{"peer": name, "microseconds": None, "times_slower": None} for name in missing]
    return {"contexts": n, "tokens": tokens, "d": d, "peers": rows}


def output_phase():
    """Milliseconds of STEPS steps of the output layer alone, and of its reduction to least squares."""
    data, k, v = make(*SETTINGS[0])
    contestants = {
        "reduction": lambda: descend(data, k, v, 0.0, RATE, 0),
        "phase": lambda: descend(data, k, v, 0.0, RATE, STEPS),
        "joint": kernel(data, k, v, 10),
    }
    seconds = shortest_times(contestants)
    return {
        "reduction_milliseconds": 1e3 * seconds["reduction"],
        "microseconds_a_step": 1e6 * (seconds["phase"] - seconds["reduction"]) / STEPS,
        "times_faster_than_joint": seconds["joint"] / 10 * STEPS / seconds["phase"],
    }


def over_threads():
    """Speed of two runs on several threads against one after the other, and of one large run cut into parts."""
    runs = [kernel(*make(*SETTINGS[0], seed), steps=40) for seed in range(THREADS)]
    large, threads = kernel(*make(60_000, 10, 50), steps=4), slr.THREADS

    def with_threads(count):
        slr.THREADS = count
        large()

    with ThreadPoolExecutor(THREADS) as pool:
        contestants = {
            "one": lambda: [run() for run in runs],
            "many": lambda: [future.result() for future in [pool.submit(run) for run in runs]],
            "large, one": lambda: with_threads(1),
            "large, many": lambda: with_threads(THREADS),
        }
        seconds = shortest_times(contestants, clock=perf_counter)
    slr.THREADS = threads
    return {
        "threads": THREADS,
        "speedup": seconds["one"] / seconds["many"],
        "speedup_of_a_large_run": seconds["large, one"] / seconds["large, many"],
    }


def sampling():
    """Milliseconds to make one set of contexts, and as a share of a run of STEPS steps on it."""
    data, k, v = make(*SETTINGS[0])
    contestants = {"sample": lambda: make(*SETTINGS[0]), "run": kernel(data, k, v, STEPS // 10)}
    seconds = shortest_times(contestants)
    return {"milliseconds": 1e3 * seconds["sample"], "share_of_run": seconds["sample"] / (10 * seconds["run"])}


def sweep():
    """Seconds for SEEDS runs of STEPS joint steps on THREADS threads, making the contexts included."""

    def one(seed):
        data, k, v = make(*SETTINGS[0], seed)
        return descend(data, k, v, RATE, RATE, STEPS).loss[-1]

    start = perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        losses = list(pool.map(one, range(SEEDS)))
    seconds = perf_counter() - start
    return {"seeds": SEEDS, "steps": STEPS, "threads": THREADS, "seconds": seconds, "mean_loss": float(np.mean(losses))}


def measure():
    """Everything, as one JSON-ready dictionary."""
    Tokens.from_arrays(np.ones((1, 1, 1)), np.ones(1))  # compiled before any clock starts
    threads, slr.THREADS = slr.THREADS, 1  # as every peer; otherwise large data would be evaluated on all cores
    try:
        return {
            "model": "slr",
            "machine": machine(["numpy", "numba", "jax", "torch"]),
            "scaling": [against_roofs(*case) for case in SCALING],
            "peers": [against_peers(*setting) for setting in SETTINGS],
            "output_phase": output_phase(),
            "threads": over_threads(),
            "sampling": sampling(),
            "sweep": sweep(),
        }
    finally:
        slr.THREADS = threads


def table(result):
    """The same for people."""
    host, phase, threads, sampling, sweep = (
        result[name] for name in ("machine", "output_phase", "threads", "sampling", "sweep")
    )
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in host["versions"].items())
    parts = [f"single-location regression on {host['cpu']}, {host['cores']} cores; {versions}"]
    rows = [
        (row["contexts"], row["tokens"], row["d"], f"{row['microseconds']:.1f}", f"{row['arithmetic_share']:.0%}",
         f"{row['memory_share']:.0%}", f"{row['multiply_adds_per_second'] / 1e9:.1f}",
         f"{row['read_bytes_per_second'] / 1e9:.1f}")
        for row in result["scaling"]
    ]  # fmt: skip
    parts.append(columns(("contexts", "L", "d", "us a step", "of FMA roof", "of read roof", "G FMA/s", "GB/s"), rows))
    for setting in result["peers"]:
        title = f"{setting['contexts']} contexts, L = {setting['tokens']}, d = {setting['d']}"
        rows = [
            (row["peer"], "not installed", "")
            if row["microseconds"] is None
            else (row["peer"], f"{row['microseconds']:.1f}", f"{row['times_slower']:.1f}")
            for row in setting["peers"]
        ]
        parts.append(columns((title, "us a step", "times"), rows))
    parts.append(
        f"output phase: {phase['reduction_milliseconds']:.1f} ms for the reduction to least squares, then "
        f"{phase['microseconds_a_step']:.2f} us a step; {STEPS} steps {phase['times_faster_than_joint']:.0f} times as "
        f"fast as joint ones\n"
        f"{threads['threads']} threads: one run each {threads['speedup']:.2f} times as fast, one large run in parts "
        f"{threads['speedup_of_a_large_run']:.2f} times\n"
        f"making 12500 contexts: {sampling['milliseconds']:.0f} ms, {sampling['share_of_run']:.1%} of {STEPS} steps\n"
        f"{sweep['seeds']} seeds x {sweep['steps']} steps on {sweep['threads']} threads, making the contexts included: "
        f"{sweep['seconds']:.2f} s"
    )
    return "\n\n".join(parts)
