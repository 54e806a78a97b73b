"""Workers of a Dask cluster (extra ``cluster``), as `sim.pool` uses them.

Workers train and send back the bytes of the run's file; they read and write no files. This process checks the bytes
and stores them. Whoever can reach the scheduler can run any code on the workers and in this process: that is how Dask
works, so only trusted networks will do.
"""

import errno
import logging
import re
import sys
from concurrent.futures import CancelledError, ThreadPoolExecutor

from analytic.errors import InputError, shown

from . import store
from .config import RunConfig
from .descent import train
from .pool import LostRun

CONNECT = 30  # seconds to wait for the scheduler, and for its first worker
RETRIES = 3  # of a run whose worker died
ADDRESS = r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d+"


def check_address(address):
    """Raise `InputError` if this is no address of a scheduler, or Dask is not installed."""
    if not re.fullmatch(ADDRESS, address):
        raise InputError(f"scheduler must be an address such as tcp://HOST:8786, not {shown(address)}")
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError("scheduler needs Dask: pip install 'attnlag[cluster]'") from None


class Cluster:
    """The workers of the scheduler at an address; finished runs are stored in ``out``, by this process."""

    def __init__(self, address, out):
        from distributed import Client

        for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is raised, and said in one line
        self.address, self.out, self.told = address, out, set()
        try:
            self.client = Client(address, timeout=CONNECT, set_as_default=False)
        except OSError:
            raise InputError(f"scheduler {address} does not answer") from None
        try:
            self.client.wait_for_workers(1, timeout=CONNECT)
        except TimeoutError:
            self.client.close()
            raise InputError(f"scheduler {address} has no workers") from None
        self.pool, self.remote = ThreadPoolExecutor(10_000), set()  # its threads do nothing but wait

    @property
    def width(self):
        """Threads of all workers; they may come and go."""
        return max(1, sum(self.client.nthreads().values()))

    def submit(self, config, seed, on_steps):
        future = self.client.submit(train_remotely, config.to_dict(), seed, pure=False, retries=RETRIES)
        self.remote.add(future)
        return self.pool.submit(self._receive, future, config, seed, on_steps)

    def _receive(self, future, config, seed, on_steps):
        from distributed import KilledWorker

        try:
            data = future.result()
        except KilledWorker:
            raise LostRun(f"its worker died, {RETRIES + 1} times") from None
        except CancelledError:
            raise ConnectionError(errno.ECONNRESET, "the scheduler is gone; finished runs are stored, the same command "
                                  "goes on", self.address) from None
        finally:
            self.remote.discard(future)
        head, arrays = store.parse(data, f"what a worker of {self.address} sent")
        run = store.to_run(head, arrays)
        if (run.config, run.seed) != (config, seed):
            raise LostRun("its worker sent another run")
        self._compare(head["versions"])
        store.write(self.out, config, seed, data)
        on_steps(sum(config.steps))
        return run

    def _compare(self, theirs):
        """Say once if a worker's versions are not ours: its runs are right within rounding, but not bit for bit."""
        other = tuple(f"{name} {theirs.get(name)} (here {ours})" for name, ours in store.versions().items()
                      if theirs.get(name) != ours)
        if other and other not in self.told:
            self.told.add(other)
            print(f"attnlag: warning: a worker has {', '.join(other)}", file=sys.stderr)

    def close(self):
        self.client.cancel(list(self.remote))
        self.pool.shutdown(cancel_futures=True)
        self.client.close()


def train_remotely(config, seed):
    """What a worker does: the bytes of the file of a run."""
    return store.encode(train(RunConfig.from_dict(config), seed))
