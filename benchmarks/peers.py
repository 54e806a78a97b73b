"""Other libraries at the same problem: descent by autograd, and a contest in which all must arrive at one place.

A problem is (data, first, second): data as our kernels take them, and the parameters to start from, attention first.
A peer takes a problem and steps, and returns a call that gives the last parameters; it need not be installed.
"""

import os
import time
import warnings

import numpy as np

from .report import Table, number
from .timing import shortest_times

AGREE = 1e-9
OURS = "attnlag"


def problem(task, seed=0, **settings):
    """Training data and start of a task, as the simulator makes them."""
    from sim.tasks import make_task

    if "train_words" in settings:
        settings["test_words"] = 1  # nobody looks at them here
    made = make_task(task, **settings)
    return made.data(seed)[0], *made.initial(seed, "random", (0.1, 0.1))


def torch_descent(loss, start, rate, steps):
    """PyTorch: autograd and an update in place, step after step."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))

    def run():
        first, second = (torch.tensor(array, requires_grad=True) for array in start)
        for _ in range(steps):
            gradients = torch.autograd.grad(loss(first, second), (first, second))
            with torch.no_grad():
                first -= rate * gradients[0]
                second -= rate * gradients[1]
        return first.detach().numpy(), second.detach().numpy()

    return run


def torch_array(array):
    """A large array without a copy; nobody writes to it."""
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


def jax_descent(loss, rate, steps):
    """JAX: (start, data) -> last parameters, by a scan over steps of ``loss(parameters, *data)``, to be compiled."""
    import jax

    def descent(start, data):
        def step(state, _):
            gradients = jax.grad(loss)(state, *data)
            return tuple(p - rate * g for p, g in zip(state, gradients, strict=True)), None

        return jax.lax.scan(step, start, None, length=steps)[0]

    return descent


def jax_arrays(arrays):
    """Double precision, which is not JAX's default."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return tuple(jax.numpy.asarray(array) for array in arrays)


def jax_scan(problem_loss, rate):
    """A peer that compiles the descent of ``problem_loss(data) -> loss, arrays``."""

    def peer(data, first, second, steps):
        import jax

        loss, arrays = problem_loss(data)
        descent = jax.jit(jax_descent(loss, rate, steps))
        start, arrays = jax_arrays((first, second)), jax_arrays(arrays)
        return lambda: tuple(np.asarray(array) for array in descent(start, arrays))

    return peer


def installed(makers):
    """What each of ``{name: maker}`` makes, and the names of those whose library is not installed."""
    made, missing = {}, []
    for name, make in makers.items():
        try:
            made[name] = make()
        except ModuleNotFoundError:
            missing.append(name)
    return made, missing


def check(ends):
    """Exit if one of ``{name: last parameters}`` is elsewhere than the first: then there is nothing to compare."""
    (_, wanted), *others = ends.items()
    for name, end in others:
        difference = max(np.abs(got - want).max() for got, want in zip(end, wanted, strict=True))
        if not difference <= AGREE:
            raise SystemExit(f"error: {name} arrives {difference:.1e} away from the kernel: nothing to compare")


def contest(kernel, peers, problem, steps, last=0.0, clock=time.process_time, rounds=4):
    """Time of one step of every peer, in turns with the kernel; ``None`` for what is not installed.

    The kernel gives the loss of every state, the last one too, which costs it ``last`` steps more.
    """
    makers = {name: lambda peer=peer: peer(*problem, steps) for name, peer in {OURS: kernel, **peers}.items()}
    made, missing = installed(makers)
    seconds = shortest_times(made, rounds, clock=clock, check=check)
    step = {name: taken / (steps + last * (name == OURS)) for name, taken in seconds.items()}
    rows = [
        {"peer": name, "microseconds": 1e6 * taken, "times_slower": taken / step[OURS]} for name, taken in step.items()
    ]
    return rows + [{"peer": name, "microseconds": None, "times_slower": None} for name in missing]


def peer_table(caption, contests):
    """Contests, ``{what: rows}``, side by side: microseconds a step, and how many times ours that is."""
    names = [row["peer"] for row in next(iter(contests.values()))]
    found = {what: {row["peer"]: row for row in rows} for what, rows in contests.items()}
    rows = [(name, *(_cell(contest[name]) for contest in found.values())) for name in names]
    return Table(caption, ("µs a step (times ours)", *found), rows)


def _cell(row):
    if row["microseconds"] is None:
        return "not installed"
    return f"{number(row['microseconds'], 4)} ({number(row['times_slower'])})"
