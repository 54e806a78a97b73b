"""In-context bigrams: time of a full-batch step against the machine's roofs, and against other libraries.

A step (loss, both gradients, update) of N contexts with T pairs needs 3 T d multiply-adds and d exponentials a context:
the logits, the dots of the gradient by A, and the gradient by B. An exponential counts as 14 multiply-adds, those of
its shortest polynomial for full precision and of the reduction of its argument. The exponentials of A, one an entry and
not one a pair, are d^2/N a context and are not counted, nor is padding. A frozen layer saves T d of them.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from analytic.gradients.icl_bigram import descend, sample_contexts

from .timing import MultiplyAdds, Read, columns, machine, shortest_times

RATE = 5.0  # of both layers; the peers take the same steps and must arrive at the same place
AGREE = 1e-9
EXPONENTIAL = 14  # multiply-adds
SETTINGS = [(12_500, 50, 6), (12_500, 200, 20)]  # contexts, letters, pairs
SCALING = [
    *((n, 50, 6) for n in (128, 1_250, 12_500, 125_000)),
    *((12_500, d, 6) for d in (10, 20, 100, 200, 500)),
    *((12_500, 50, pairs) for pairs in (1, 3, 12, 24)),
    (12_500, 200, 20),
]
LAYERS = {"joint": (RATE, RATE), "output only": (0.0, RATE), "attention only": (RATE, 0.0)}
THREADS, SEEDS, STEPS = 2, 50, 400  # of the sweep


def make(n_contexts, d, pairs, seed=0):
    """Contexts and a small random start."""
    rng = np.random.default_rng(seed)
    return sample_contexts(rng, n_contexts, d, pairs), *rng.normal(0.0, 0.1, (2, d, d))


def steps_for(n_contexts, d, pairs, budget=1.5e9):
    """As many steps a call as keep it short, but long against the cost of a call."""
    return int(np.clip(budget / ((3 * pairs + EXPONENTIAL) * n_contexts * d * 25), 2, 200))


# ---- the peers: each takes contexts, a start and steps, and returns a call that gives the last A, B ------------------


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

    torch.set_num_threads(1)
    keys, values, query, target = (torch.tensor(part) for part in _places(contexts))
    places = query[:, None] * contexts.d + keys
    blank = torch.zeros((len(keys), contexts.d), dtype=torch.float64)

    def loss(a, b):
        shares = torch.softmax(a.reshape(-1)[places], dim=1)
        return torch.nn.functional.cross_entropy(blank.scatter(1, values, shares) @ b.T, target)

    return _torch_descent(torch, loss, attention, output, steps)


def torch_one_hot(contexts, attention, output, steps):
    """PyTorch as one writes it first: one-hot letters, attention as products of them, autograd."""
    import torch

    torch.set_num_threads(1)
    keys, values, query, target = (torch.tensor(part) for part in _places(contexts))
    hot = [torch.nn.functional.one_hot(part, contexts.d).double() for part in (keys, values, query)]

    def loss(a, b):
        shares = torch.softmax(torch.einsum("nd,de,nle->nl", hot[2], a, hot[0]), dim=1)
        mixed = torch.einsum("nl,nlv->nv", shares, hot[1])
        return torch.nn.functional.cross_entropy(mixed @ b.T, target)

    return _torch_descent(torch, loss, attention, output, steps)


def _torch_descent(torch, loss, attention, output, steps):
    def run():
        a, b = (torch.tensor(start, requires_grad=True) for start in (attention, output))
        for _ in range(steps):
            d_a, d_b = torch.autograd.grad(loss(a, b), (a, b))
            with torch.no_grad():
                a -= RATE * d_a
                b -= RATE * d_b
        return a.detach().numpy(), b.detach().numpy()

    return run


def jax_scan(contexts, attention, output, steps):
    """JAX, tidy: the same products, differentiated, a compiled scan over the steps."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    keys, values, query, target = (jnp.asarray(part) for part in _places(contexts))
    n = jnp.arange(len(keys))

    def loss(parameters, keys, values, query, target):
        a, b = parameters
        shares = jax.nn.softmax(a[query[:, None], keys], axis=1)
        z = jnp.zeros((len(n), contexts.d)).at[n[:, None], values].set(shares, unique_indices=True) @ b.T
        return jnp.mean(jax.nn.logsumexp(z, axis=1) - z[n, target])

    @jax.jit
    def descent(start, *data):
        def step(state, _):
            gradients = jax.grad(loss)(state, *data)
            return tuple(p - RATE * g for p, g in zip(state, gradients, strict=True)), None

        return jax.lax.scan(step, start, None, length=steps)[0]

    start = jnp.asarray(attention), jnp.asarray(output)
    return lambda: tuple(np.asarray(p) for p in descent(start, keys, values, query, target))


PEERS = {
    "numpy": numpy_products,
    "jax": jax_scan,
    "torch": torch_products,
    "torch, first version": torch_one_hot,
}


# ---- measuring -------------------------------------------------------------------------------------------------------


def kernel(contexts, attention, output, steps, rates=(RATE, RATE)):
    def run():
        path = descend(contexts, attention, output, *rates, steps)
        return path.attention[-1], path.output[-1]

    return run


def multiply_adds(n_contexts, d, pairs, layers="joint"):
    """Of one step."""
    return n_contexts * d * ((3 if layers == "joint" else 2) * pairs + EXPONENTIAL)


def against_roofs(n_contexts, d, pairs, layers="joint"):
    """Time of one step, and its share of each roof."""
    data = make(n_contexts, d, pairs)
    steps = steps_for(n_contexts, d, pairs)
    arithmetic, memory = MultiplyAdds(), Read(data[0].nbytes)
    contestants = {"step": kernel(*data, steps, LAYERS[layers]), "arithmetic": arithmetic, "memory": memory}
    seconds = shortest_times(contestants, rounds=5, repeats=5)
    whole = multiply_adds(n_contexts, d, pairs, layers)
    last = n_contexts * d * (pairs + EXPONENTIAL) / whole  # what the last state's loss costs, in steps
    step = seconds["step"] / (steps + last)
    peak, read = arithmetic.per_second(seconds["arithmetic"]), memory.per_second(seconds["memory"])
    return {
        "contexts": n_contexts, "letters": d, "pairs": pairs, "layers": layers, "bytes": data[0].nbytes,
        "microseconds": 1e6 * step,
        "arithmetic_share": whole / step / peak,
        "memory_share": data[0].nbytes / step / read,
        "multiply_adds_per_second": peak,
        "read_bytes_per_second": read,
    }  # fmt: skip


def against_peers(n_contexts, d, pairs):
    """Time of one step of every peer, in turns with the kernel; all must arrive at the same parameters."""
    data = make(n_contexts, d, pairs)
    steps = 10 if n_contexts * d < 1e6 else 2
    contestants, missing = {"attnlag": kernel(*data, steps)}, []
    for name, peer in PEERS.items():
        try:
            contestants[name] = peer(*data, steps)
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
    return {"contexts": n_contexts, "letters": d, "pairs": pairs, "peers": rows}


def over_threads():
    """Runs a second of one thread and of several, each with its own contexts."""
    runs = [kernel(*make(12_500, 50, 6, seed), steps=20) for seed in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        contestants = {
            "one": lambda: [run() for run in runs],
            "many": lambda: [future.result() for future in [pool.submit(run) for run in runs]],
        }
        seconds = shortest_times(contestants, clock=perf_counter)
    return {"threads": THREADS, "speedup": seconds["one"] / seconds["many"]}


def sampling():
    """Milliseconds to make one set of contexts, and as a share of a run of STEPS steps on it."""
    contestants = {
        "sample": lambda: sample_contexts(np.random.default_rng(0), 12_500, 50, 6),
        "run": kernel(*make(12_500, 50, 6), STEPS),
    }
    seconds = shortest_times(contestants)
    return {"milliseconds": 1e3 * seconds["sample"], "share_of_run": seconds["sample"] / seconds["run"]}


def sweep():
    """Seconds for SEEDS runs of STEPS steps on THREADS threads, making the contexts included."""

    def one(seed):
        return descend(*make(12_500, 50, 6, seed), RATE, RATE, STEPS).loss[-1]

    start = perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        losses = list(pool.map(one, range(SEEDS)))
    seconds = perf_counter() - start
    return {"seeds": SEEDS, "steps": STEPS, "threads": THREADS, "seconds": seconds, "mean_loss": float(np.mean(losses))}


def measure():
    """Everything, as one JSON-ready dictionary."""
    return {
        "model": "icl_bigram",
        "machine": machine(["numpy", "numba", "jax", "torch"]),
        "layers": [against_roofs(*SETTINGS[0], layers) for layers in LAYERS],
        "scaling": [against_roofs(*case) for case in SCALING],
        "peers": [against_peers(*setting) for setting in SETTINGS],
        "threads": over_threads(),
        "sampling": sampling(),
        "sweep": sweep(),
    }


def table(result):
    """The same for people."""
    host, sweep, sampling = result["machine"], result["sweep"], result["sampling"]
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in host["versions"].items())
    parts = [f"in-context bigrams on {host['cpu']}, {host['cores']} cores; {versions}"]
    rows = [
        (row["contexts"], row["letters"], row["pairs"], row["layers"], f"{row['microseconds']:.1f}",
         f"{row['arithmetic_share']:.0%}", f"{row['memory_share']:.0%}",
         f"{row['multiply_adds_per_second'] / 1e9:.1f}", f"{row['read_bytes_per_second'] / 1e9:.1f}")
        for row in [*result["layers"], *result["scaling"]]
    ]  # fmt: skip
    header = ("contexts", "d", "T", "trained", "us a step", "of FMA roof", "of read roof", "G FMA/s", "GB/s")
    parts.append(columns(header, rows))
    for setting in result["peers"]:
        title = f"{setting['contexts']} contexts, d = {setting['letters']}, T = {setting['pairs']}"
        rows = [
            (row["peer"], "not installed", "")
            if row["microseconds"] is None
            else (row["peer"], f"{row['microseconds']:.1f}", f"{row['times_slower']:.1f}")
            for row in setting["peers"]
        ]
        parts.append(columns((title, "us a step", "times"), rows))
    threads = result["threads"]
    parts.append(
        f"{threads['threads']} threads, one run each: {threads['speedup']:.2f} times as fast\n"
        f"making 12500 contexts: {sampling['milliseconds']:.2f} ms, {sampling['share_of_run']:.1%} of {STEPS} steps\n"
        f"{sweep['seeds']} seeds x {sweep['steps']} steps on {sweep['threads']} threads, making the contexts included: "
        f"{sweep['seconds']:.2f} s"
    )
    return "\n\n".join(parts)
