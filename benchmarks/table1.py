"""All of Table 1, end to end: every plan of all six tasks, 50 seeds each, on two threads, in a new process.

The quick version runs 1 and 3 seeds: their difference says what a seed costs, and the rest is there once.
"""

import json

from .start_up import attnlag
from .timing import progress

TITLE = "Table 1"
SEEDS, QUICK, THREADS = 50, (1, 3), 2
VERDICTS = (0, 1, 3)  # exit codes of `reproduce` that came to an end: numbers may be off or runs diverged


def seconds(seeds):
    """Of one process that trains every cell into a new folder."""
    progress(f"Table 1, seeds: {seeds}")
    command = ["reproduce", "table1", "--seeds", f"0:{seeds}", "--jobs", str(THREADS), "--quiet", "--json"]
    taken, output = attnlag(command, fine=VERDICTS)
    json.loads(output)  # there is a result, whatever its verdicts
    return taken


def measure(quick=False):
    few = seconds(QUICK[0])  # compiles what is not on disk yet
    if not quick:
        return {"seeds": SEEDS, "threads": THREADS, "seconds": seconds(SEEDS), "measured_seeds": [SEEDS]}
    few, more = min(few, seconds(QUICK[0])), seconds(QUICK[1])
    taken = few + (more - few) / (QUICK[1] - QUICK[0]) * (SEEDS - QUICK[0])
    return {"seeds": SEEDS, "threads": THREADS, "seconds": taken, "measured_seeds": list(QUICK)}


def shown(result):
    measured = result["measured_seeds"]
    how = "measured" if measured == [result["seeds"]] else f"extended from {' and '.join(map(str, measured))} seeds"
    return [f"Table 1 with {result['seeds']} seeds on {result['threads']} threads: {result['seconds']:.0f} s, {how}."]
