"""What a letter run costs: its peak memory against the bytes of its data, and time linear in N d and in steps.

Peak memory is the largest resident size of a new process that runs a plan, beyond that of one that runs the same plan
on next to no data: that much are Python, the libraries and compiled kernels. Data are train and test words as they are
held; nothing may hold the counts as float64, eight bytes each. Time is fitted by a + b x, with relative errors; the
table says how far the times are from that line.
"""

import subprocess
import sys

import numpy as np

from analytic.gradients import letter as letter_kernel
from sim.tasks import make_task

from .letter import MODEL
from .report import Table
from .timing import progress, run_apart, shortest_times, threads

TITLE = "Memory, and cost as the problem grows"
LARGE = ((200_000, 200), (1_000_000, 50), (1_000_000, 200))  # training words, d
PER_BYTE, CONSTANT = 1.5, 100e6  # bytes of memory allowed for each of the data, and beside
CHILD = """
import resource, sys
import sim
d, words = int(sys.argv[1]), int(sys.argv[2])
sim.run_plan("occurrence", "joint(3x)", range(1), d=d, train_words=words, test_words=max(1, words // 10))
try:  # of this program alone: the other number starts from that of the process that started this one
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")), 1024)
except OSError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 1 if sys.platform == "darwin" else 1024)
"""
SIZES = ((12_500, 50), (25_000, 50), (50_000, 50), (12_500, 200), (100_000, 50))
COUNTS = (50, 100, 200, 400)  # steps


def peak(words, d):
    """Largest resident size, in bytes, of a process that runs a plan on so many words."""
    output = run_apart([sys.executable, "-c", CHILD, str(d), str(words)], stderr=subprocess.PIPE)
    size, unit = map(int, output.split())
    return size * unit


def memory(words, d):
    progress(f"memory of N = {words}, d = {d}")
    data = make_task("occurrence", d=d, train_words=words, test_words=words // 10).data(0)
    held = sum(part.nbytes for part in data)
    return {"words": words, "letters": d, "bytes": held, "peak": peak(words, d) - peak(1, d),
            "allowed": PER_BYTE * held + CONSTANT}  # fmt: skip


def line(xs, seconds):
    """The line a + b x with the smallest relative errors, and the largest of them."""
    design = np.stack([np.ones(len(xs)), xs], axis=1) / seconds[:, None]
    constant, slope = np.linalg.lstsq(design, np.ones(len(xs)), rcond=None)[0]
    return {
        "x": xs.tolist(), "seconds": seconds.tolist(), "constant_seconds": float(constant), "slope": float(slope),
        "largest_deviation": float(np.abs((constant + slope * xs) / seconds - 1).max()),
    }  # fmt: skip


def _timed(xs, runs):
    progress(f"time at {', '.join(map(str, xs))}")
    seconds = shortest_times(dict(enumerate(runs)), rounds=10, pause=False)
    return line(np.array(xs, dtype=float), np.array(list(seconds.values())))


def over_size(sizes):
    problems = [MODEL.problem(train_words=words, d=d) for words, d in sizes]
    return _timed([words * d for words, d in sizes], [MODEL.kernel(*problem, 100) for problem in problems])


def over_steps():
    problem = MODEL.problem(train_words=12_500, d=50)
    return _timed(COUNTS, [MODEL.kernel(*problem, steps) for steps in COUNTS])


def measure(quick=False):
    with threads([letter_kernel], 1):
        return {
            "memory": [memory(*size) for size in (LARGE[:1] if quick else LARGE)],
            "size": over_size(SIZES[:3] if quick else SIZES),
            "steps": over_steps(),
        }


def shown(result):
    rows = [
        (f"N = {row['words']}, d = {row['letters']}",
         *(f"{row[name] / 1e6:.0f}" for name in ("bytes", "peak", "allowed")))
        for row in result["memory"]
    ]  # fmt: skip
    parts = [Table("Memory of a run, MB.", ("run", "data", "peak beyond imports", "allowed"), rows)]
    for what, fit in (("N d", result["size"]), ("steps", result["steps"])):
        cells = [(f"{x:.0f}", f"{1e3 * seconds:.2f}") for x, seconds in zip(fit["x"], fit["seconds"], strict=True)]
        caption = f"Time as {what} grows; at most {fit['largest_deviation']:.1%} from a line."
        parts.append(Table(caption, (what, "ms"), cells))
    return parts
