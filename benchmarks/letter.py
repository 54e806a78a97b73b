"""The letter model: time of a full-batch step against the machine's roofs, and against other libraries.

A step (loss, both gradients, update) needs 4 N d multiply-adds a head. Its arithmetic roof is the rate of independent
vector multiply-adds, its memory roof one read of the packed counts; both are measured in turns with the kernel.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from analytic.gradients import letter
from analytic.gradients.letter import Words, descend, sample_words
from analytic.languages import any_of

from .timing import MultiplyAdds, Read, columns, machine, shortest_times

RATE = 1.0  # of both layers; the peers take the same steps and must arrive at the same place
AGREE = 1e-9
SETTINGS = [(12_500, 50, 1), (12_500, 50, 4), (200_000, 200, 1)]  # words, letters, heads
SCALING = [
    *((n, 50, 1) for n in (100, 1_250, 12_500, 125_000)),
    *((12_500, d, 1) for d in (5, 20, 200, 1_000)),
    *((12_500, 50, h) for h in (2, 4, 8)),
    (200_000, 200, 1),
]
THREADS, SEEDS, STEPS = 2, 50, 400  # of the sweep


def make(n_words, d, heads, seed=0):
    """Words with geometric lengths of mean d - 1, and a small random start."""
    rng = np.random.default_rng(seed)
    words = sample_words(rng, rng.geometric(1.0 / (d - 1), n_words), d, any_of(1))
    return words, *rng.normal(0.0, 0.1, (2, heads, d))


def steps_for(n_words, d, heads, budget=2e9):
    """As many steps a call as keep it short, but long against the cost of a call."""
    return int(np.clip(budget / (4 * n_words * d * heads * 50), 2, 200))


# ---- the peers: each takes counts, labels, a start and steps, and returns a call that gives the last alpha, beta -----


def numpy_products(counts, labels, alpha, beta, steps):
    """NumPy by hand: two products with the counts, two with their transpose, all heads at once."""
    counts = counts.astype(float)
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


def torch_products(counts, labels, alpha, beta, steps):
    """PyTorch, tidy: autograd through two products with the counts."""
    import torch

    torch.set_num_threads(1)
    x, y = torch.tensor(counts, dtype=torch.float64), torch.tensor(labels, dtype=torch.float64)

    def forward(a, b):
        e = torch.exp(a - a.max(dim=1, keepdim=True).values)
        return ((x @ (e * b).T) / (x @ e.T)).sum(dim=1) - 1.0

    return _torch_descent(torch, forward, y, alpha, beta, steps)


def torch_softmax(counts, labels, alpha, beta, steps):
    """PyTorch as one writes it first: autograd through softmax(log n + alpha)."""
    import torch

    torch.set_num_threads(1)
    log_n, y = torch.tensor(counts, dtype=torch.float64).log(), torch.tensor(labels, dtype=torch.float64)

    def forward(a, b):
        return sum((torch.softmax(log_n + a[h], dim=1) * b[h]).sum(dim=1) for h in range(len(a))) - 1.0

    return _torch_descent(torch, forward, y, alpha, beta, steps)


def _torch_descent(torch, forward, y, alpha, beta, steps):
    def run():
        a, b = (torch.tensor(start, requires_grad=True) for start in (alpha, beta))
        for _ in range(steps):
            loss = ((forward(a, b) - y) ** 2).mean()
            d_a, d_b = torch.autograd.grad(loss, (a, b))
            with torch.no_grad():
                a -= RATE * d_a
                b -= RATE * d_b
        return a.detach().numpy(), b.detach().numpy()

    return run


def jax_scan(counts, labels, alpha, beta, steps):
    """JAX, tidy: two products with the counts, differentiated, a compiled scan over the steps."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    x, y = jnp.asarray(counts, dtype=jnp.float64), jnp.asarray(labels, dtype=jnp.float64)

    def loss(parameters, x):
        a, b = parameters
        e = jnp.exp(a - a.max(axis=1, keepdims=True))
        if len(a) == 1:
            f = (x @ (e[0] * b[0])) / (x @ e[0]) - 1.0
        else:
            f = ((x @ (e * b).T) / (x @ e.T)).sum(axis=1) - 1.0
        return ((f - y) ** 2).mean()

    @jax.jit
    def descent(start, x):
        def step(state, _):
            gradients = jax.grad(loss)(state, x)
            return tuple(p - RATE * g for p, g in zip(state, gradients, strict=True)), None

        return jax.lax.scan(step, start, None, length=steps)[0]

    start = jnp.asarray(alpha), jnp.asarray(beta)
    return lambda: tuple(np.asarray(p) for p in descent(start, x))


PEERS = {
    "numpy": numpy_products,
    "jax": jax_scan,
    "torch": torch_products,
    "torch, first version": torch_softmax,
}


# ---- measuring -------------------------------------------------------------------------------------------------------


def kernel(words, alpha, beta, steps):
    def run():
        path = descend(words, alpha, beta, RATE, RATE, steps)
        return path.alpha[-1], path.beta[-1]

    return run


def against_roofs(n_words, d, heads):
    """Time of one step, and its share of each roof."""
    words, alpha, beta = make(n_words, d, heads)
    steps = steps_for(n_words, d, heads)
    arithmetic, memory = MultiplyAdds(), Read(words.nbytes)
    contestants = {"step": kernel(words, alpha, beta, steps), "arithmetic": arithmetic, "memory": memory}
    seconds = shortest_times(contestants, rounds=5, repeats=5)
    step = seconds["step"] / (steps + 0.5)  # the last state's loss costs half a step
    peak, read = arithmetic.per_second(seconds["arithmetic"]), memory.per_second(seconds["memory"])
    return {
        "words": n_words, "letters": d, "heads": heads, "path": words.path, "bytes": words.nbytes,
        "microseconds": 1e6 * step,
        "arithmetic_share": 4 * n_words * d * heads / step / peak,
        "memory_share": words.nbytes / step / read,
        "multiply_adds_per_second": peak,
        "read_bytes_per_second": read,
    }  # fmt: skip


def against_peers(n_words, d, heads):
    """Time of one step of every peer, in turns with the kernel; all must arrive at the same parameters."""
    words, alpha, beta = make(n_words, d, heads)
    counts, labels = words.counts(), words.labels.astype(float)
    steps = 20 if n_words * d < 1e7 else 2
    contestants, missing = {"attnlag": kernel(words, alpha, beta, steps)}, []
    for name, peer in PEERS.items():
        try:
            contestants[name] = peer(counts, labels, alpha, beta, steps)
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
    return {"words": n_words, "letters": d, "heads": heads, "peers": rows}


def over_threads():
    """Runs a second of one thread and of several, each with its own words."""
    runs = [kernel(*make(12_500, 50, 1, seed), steps=200) for seed in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        contestants = {
            "one": lambda: [run() for run in runs],
            "many": lambda: [future.result() for future in [pool.submit(run) for run in runs]],
        }
        seconds = shortest_times(contestants, clock=perf_counter)
    return {"threads": THREADS, "speedup": seconds["one"] / seconds["many"]}


def sampling():
    """Milliseconds to make one set of words, and as a share of a run of STEPS steps on it."""
    words, alpha, beta = make(12_500, 50, 1)
    lengths = words.counts().sum(axis=1)
    contestants = {
        "sample": lambda: sample_words(np.random.default_rng(0), lengths, 50, any_of(1)),
        "run": kernel(words, alpha, beta, STEPS),
    }
    seconds = shortest_times(contestants)
    return {"milliseconds": 1e3 * seconds["sample"], "share_of_run": seconds["sample"] / seconds["run"]}


def sweep():
    """Seconds for SEEDS runs of STEPS steps on THREADS threads, making the words included."""

    def one(seed):
        words, alpha, beta = make(12_500, 50, 1, seed)
        return descend(words, alpha, beta, RATE, RATE, STEPS).loss[-1]

    start = perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        losses = list(pool.map(one, range(SEEDS)))
    seconds = perf_counter() - start
    return {"seeds": SEEDS, "steps": STEPS, "threads": THREADS, "seconds": seconds, "mean_loss": float(np.mean(losses))}


def measure():
    """Everything, as one JSON-ready dictionary."""
    Words.from_counts([[1, 1]], [1])  # compiled before any clock starts
    letter.THREADS = 1  # as every peer; otherwise large data would be evaluated on all cores
    return {
        "model": "letter",
        "machine": machine(["numpy", "numba", "jax", "torch"]),
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
    parts = [f"letter model on {host['cpu']}, {host['cores']} cores; {versions}"]
    rows = [
        (row["words"], row["letters"], row["heads"], f"{row['microseconds']:.1f}", f"{row['arithmetic_share']:.0%}",
         f"{row['memory_share']:.0%}", f"{row['multiply_adds_per_second'] / 1e9:.1f}",
         f"{row['read_bytes_per_second'] / 1e9:.1f}")
        for row in result["scaling"]
    ]  # fmt: skip
    parts.append(columns(("words", "d", "H", "us a step", "of FMA roof", "of read roof", "G FMA/s", "GB/s"), rows))
    for setting in result["peers"]:
        title = f"{setting['words']} words, d = {setting['letters']}, H = {setting['heads']}"
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
        f"making 12500 words: {sampling['milliseconds']:.2f} ms, {sampling['share_of_run']:.1%} of {STEPS} steps\n"
        f"{sweep['seeds']} seeds x {sweep['steps']} steps on {sweep['threads']} threads, making the words included: "
        f"{sweep['seconds']:.2f} s"
    )
    return "\n\n".join(parts)
