"""Sweeps on a Dask cluster: a real scheduler, two worker processes, one of them killed in the middle."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from sim import cli
from sim.sweep import run_sweep

from .sweeping import SMALL, call, command, files, leftovers, write_spec

LONGER = SMALL.replace("joint(60x)", "joint(4000x)").replace("words = 60", "words = 3000").format(seeds=6, d=[20])


def start(*arguments):
    """A process of Dask; its words go to a pipe."""
    dask = [sys.executable, "-c", "from dask.__main__ import main; main()", *arguments]
    return subprocess.Popen(dask, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@contextmanager
def cluster(workers):
    """(address, scheduler, workers): processes on this machine, which end with the test."""
    processes = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")]
    try:
        address = next(found.group() for line in processes[0].stderr if (found := re.search(r"tcp://\S+:\d+", line)))
        one = ("--nthreads", "1", "--no-dashboard", "--no-nanny")
        processes += [start("worker", address, *one) for _ in range(workers)]
        yield address, processes[0], processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def wait_for(condition, seconds=60):
    for _ in range(int(20 * seconds)):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("nothing happened")


def sweep_on(address, spec, out):
    """A process that sweeps on a cluster."""
    return subprocess.Popen(command("sweep", spec, "--out", out, "--scheduler", address), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_cluster_gives_the_same_files_though_a_worker_is_killed_and_goes_on_after_ctrl_c(tmp_path):
    spec, out, local = write_spec(tmp_path, LONGER), tmp_path / "out", tmp_path / "local"
    with cluster(workers=2) as (address, scheduler, workers):
        run_sweep(spec, local)  # while the workers start
        sweep = sweep_on(address, spec, out)
        wait_for(lambda: files(out) or sweep.poll() is not None)
        workers[0].kill()
        wait_for(lambda: len(files(out)) > 3 or sweep.poll() is not None)
        sweep.send_signal(signal.SIGINT)
        _, err = sweep.communicate(timeout=60)
        assert sweep.returncode == cli.INTERRUPTED and err.count("\n") == 1, err
        kept = files(out)
        assert 3 < len(kept) < 12 and kept.items() <= files(local).items() and not leftovers(out)

        sweep = sweep_on(address, spec, out)
        text, err = sweep.communicate(timeout=120)
        assert (sweep.returncode, err) == (0, "") and f"{len(kept)} found there" in text
        assert files(out) == files(local)

        more = sweep_on(address, write_spec(tmp_path, LONGER.replace("seeds = 6", "seeds = 12")), out)
        wait_for(lambda: len(files(out)) > 12 or more.poll() is not None)
        scheduler.kill()
        _, err = more.communicate(timeout=60)
        assert more.returncode == cli.USAGE and "the scheduler is gone; finished runs are stored" in err
        assert err.count("\n") == 1
        assert not leftovers(out) and files(local).items() <= files(out).items()


def test_a_run_that_kills_every_worker_is_given_up_and_costs_nothing_else(tmp_path, capsys, monkeypatch):
    from concurrent.futures import Future

    from distributed import KilledWorker

    from sim import cluster as module
    from sim.pool import Threads

    class Deadly(Threads):
        """Threads on which seed 1 dies as on a cluster."""

        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.remote = set()

        def submit(self, config, seed, on_steps):
            if seed != 1:
                return super().submit(config, seed, on_steps)
            remote = Future()
            remote.set_exception(KilledWorker("task", None, 3))
            receive = module.Cluster._receive
            return self.pool.submit(receive, self, remote, config, seed, on_steps)

    monkeypatch.setattr("sim.sweep._workers", lambda scheduler, jobs, out: Deadly(2, out))
    code, out, _ = call(capsys, "sweep", write_spec(tmp_path), "--out", tmp_path / "out")
    assert code == cli.DIVERGED and out.count("its worker died, 4 times") == 4 and "8 of 12 runs" in out


def test_a_worker_of_other_versions_is_named_once(tmp_path, capsys, monkeypatch):
    from sim import cluster as module
    from sim import store

    one = module.Cluster.__new__(module.Cluster)
    one.told = set()
    for _ in range(2):
        one._compare(store.versions() | {"numpy": "1.0"})
    one._compare(store.versions())
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "a worker has numpy 1.0 (here" in err


@pytest.mark.parametrize("address", ["", "here", "tcp://here", "http://here:1", "tcp://here:1/path", "tcp:// :1"])
def test_what_is_no_address_is_refused_before_anything_is_asked(tmp_path, capsys, address):
    code, _, err = call(capsys, "sweep", write_spec(tmp_path), "--out", tmp_path / "out", "--scheduler", address)
    assert code == cli.USAGE and "scheduler must be an address" in err and err.count("\n") == 1


def test_no_scheduler_and_no_workers_are_one_line_each(tmp_path, capsys):
    waiting = "import sim.cluster; sim.cluster.CONNECT = 1; import sys; from sim.cli import main; sys.exit(main())"
    spec = write_spec(tmp_path)

    def sweep(address):
        arguments = ["sweep", str(spec), "--out", str(tmp_path / "out"), "--scheduler", address]
        return subprocess.run([sys.executable, "-c", waiting, *arguments], capture_output=True, text=True, timeout=60)

    with cluster(workers=0) as (address, _, _):
        done = sweep(address)
        assert done.returncode == cli.USAGE and "has no workers" in done.stderr and done.stderr.count("\n") == 1
    done = sweep(address)
    assert done.returncode == cli.USAGE and "does not answer" in done.stderr and done.stderr.count("\n") == 1


def test_nothing_of_dask_is_needed_without_a_scheduler(tmp_path):
    (tmp_path / "distributed.py").write_text("raise ImportError('not here')")
    spec, out = write_spec(tmp_path), tmp_path / "out"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = [subprocess.run(command("sweep", spec, "--out", out, *more), capture_output=True, text=True, timeout=60,
                           env=environment) for more in ([], ["--set", "seeds=4", "--scheduler", "tcp://localhost:1"])]
    assert (done[0].returncode, done[0].stderr) == (0, "")
    assert done[1].returncode == cli.USAGE and "pip install 'attnlag[cluster]'" in done[1].stderr
    assert done[1].stderr.count("\n") == 1
