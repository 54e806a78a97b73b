"""One run of each task when every library may use two threads inside a step: wall time.

Our kernels cut only larger data than these into parts for several threads, and leave the second core to another seed;
NumPy, JAX and PyTorch have their pools of two. A pause before every turn lets the pools go to sleep. Sizes are the
first of each task above.
"""

from time import perf_counter

from . import even_pairs, icl_bigram, letter, slr
from .kernels import THREADS
from .peers import peer_table

TITLE = "One run on two threads"
SETTINGS = [*((letter.MODEL, size) for size in letter.SETTINGS[:3]),
            *((model.MODEL, model.SETTINGS[0]) for model in (even_pairs, icl_bigram, slr))]  # fmt: skip


def measure(quick=False):
    settings = SETTINGS[:1] if quick else SETTINGS
    return {"peers": [
        {"task": size.get("task", model.task), **model.against_peers(clock=perf_counter, **size)}
        for model, size in settings
    ]}  # fmt: skip


def shown(result):
    contests = {row["task"]: row["peers"] for row in result["peers"]}
    return [peer_table(f"One run, {THREADS} threads a library, in turns.", contests)]
