"""Train many runs at once, on the threads of this process or on a cluster, and hand over each as soon as it ends.

Threads serve one machine: the kernels hold no lock of Python's while they run. A source of workers has ``width`` (how
many runs it works on at once), ``submit(config, seed)`` (a `concurrent.futures` future of the `Run`, by then stored)
and ``close()`` (stop what is running, at the next chunk of steps, and wait for that).
"""

import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from itertools import islice

from . import store
from .descent import train


class LostRun(Exception):
    """A run that no worker could finish."""


def train_each(todo, workers, progress=False):
    """Train (configuration, seed) pairs; yield (pair, `Run`, or the exception that ended it) in the order they end.

    Only a few more than ``workers.width`` are under way at any time. Leaving the loop early stops them.
    """
    from tqdm import tqdm

    tqdm.set_lock(threading.RLock())  # its own choice is a semaphore of the system, which outlives a killed process
    todo = list(todo)
    total = sum(sum(config.steps) for config, _ in todo)
    with tqdm(total=total, unit="step", unit_scale=True, disable=not progress, leave=False) as bar, closing(workers):
        waiting, running, ended = iter(todo), {}, 0
        while True:
            for pair in islice(waiting, max(0, 2 * workers.width - len(running))):
                running[workers.submit(*pair, bar.update)] = pair
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                pair, ended = running.pop(future), ended + 1
                bar.set_postfix_str(f"{ended}/{len(todo)} runs")
                yield pair, future.exception() or future.result()


class Threads:
    """The threads of this process; finished runs are stored in ``out`` unless that is None."""

    def __init__(self, jobs, out=None):
        self.width, self.out = jobs, out
        self.stop, self.pool = threading.Event(), ThreadPoolExecutor(jobs)

    def submit(self, config, seed, on_steps):
        return self.pool.submit(self._work, config, seed, on_steps)

    def _work(self, config, seed, on_steps):
        run = train(config, seed, self.stop.is_set, on_steps)
        if self.out is not None:
            store.save(self.out, run)
        # a run may end before its limit: count the rest of its budget as done
        on_steps(sum(config.steps) - (len(run.train_loss) - 1) - (run.diverged is not None))
        return run

    def close(self):
        self.stop.set()
        self.pool.shutdown(cancel_futures=True)
