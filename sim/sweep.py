"""Sweeps: the runs that a specification names, trained into a folder; what is there already is kept.

A folder holds ``sweep.json``, the resolved configurations and seeds of its sweep, and below ``runs`` one file a run.
Any number of processes may work on one folder, each on a shard of the runs or on all: every file is written whole
under a temporary name and then renamed, and the same run has the same bytes whoever made it.
"""

import fcntl
import json
import os
import time
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from analytic.errors import InputError, shown, whole

from . import store
from .config import RunConfig
from .descent import train
from .plans import parse_plan
from .pool import LostRun, Threads, train_each
from .runs import stored_run
from .spec import Spec, read_spec
from .tasks.user import is_file

PLAN = "sweep.json"
FORMAT = 1
SHOWN = 4  # differences between two specifications, and values of each, that an error names


@dataclass
class Swept:
    """What a sweep did; prints as a few lines."""

    out: str
    runs: int  # of this shard
    found: int = 0
    trained: int = 0
    diverged: int = 0
    failed: list = field(default_factory=list)  # [{"config", "seed", "reason"}]

    def to_dict(self):
        return asdict(self)

    def __repr__(self):
        lines = [f"{self.found + self.trained} of {self.runs} runs are in {self.out}: {self.trained} trained, "
                 f"{self.found} found there; {self.diverged} diverged"]
        lines += [f"failed: {run['task']}, plan {run['plan']}, seed {run['seed']}: {run['reason']}"
                  for run in self.failed]
        return "\n".join(lines)


def run_sweep(spec, out, *, jobs=None, shard=(1, 1), scheduler=None, progress=False):
    """Train the runs of a specification that a folder does not hold yet.

    Parameters
    ----------
    spec : path of a TOML file, see `sim.spec`, or a `Spec`
    out : folder; a sweep that is there already may be extended, not changed
    jobs : threads (default: all cores)
    shard : (i, n), the i-th of n parts of the runs, i = 1..n
    scheduler : address of a Dask scheduler, such as "tcp://host:8786"; runs are trained by its workers and stored here
    progress : show a progress bar on standard error

    Returns
    -------
    Swept : counts; a run that cannot be trained, or whose worker died again and again, is listed in ``failed``

    Raises
    ------
    InputError : the specification is wrong, or contradicts the sweep that ``out`` holds
    OSError : ``out`` cannot be written
    KeyboardInterrupt : after the chunks in progress; finished runs stay stored
    """
    spec = spec if isinstance(spec, Spec) else read_spec(spec)
    jobs = whole("jobs", (os.cpu_count() or 1) if jobs is None else jobs)
    if scheduler is not None:
        from .cluster import check_address

        check_address(scheduler)
        for config in spec.groups:
            if is_file(config.task):
                raise InputError(f"scheduler {scheduler}: its workers do not run {config.task}; train it in shards")
    store.remove_abandoned(out, store.check_writable(out))
    _enter(spec, out)
    pairs, todo = spec.pairs(shard), []
    swept = Swept(str(out), len(pairs))
    for pair in pairs:
        run = stored_run(out, *pair)
        if run is None:
            todo.append(pair)
        else:
            swept.found += 1
            swept.diverged += run.status == "diverged"
    if not todo:
        return swept
    with closing(train_each(todo, _workers(scheduler, jobs, out), progress)) as ended:
        for (config, seed), run in ended:
            if isinstance(run, (InputError, MemoryError, LostRun)):
                reason = str(run) or "out of memory"
                swept.failed.append({"task": config.task, "plan": config.plan, "seed": seed, "reason": reason})
            elif isinstance(run, BaseException):
                raise run
            else:
                swept.trained += 1
                swept.diverged += run.status == "diverged"
    return swept


def _workers(scheduler, jobs, out):
    if scheduler is None:
        return Threads(jobs, out)
    from .cluster import Cluster

    return Cluster(scheduler, out)


def parse_shard(text):
    """(i, n) from "i/n".

    Raises
    ------
    InputError : it is not of this form, or i is not in 1..n

    Examples
    --------
    >>> parse_shard("2/8")
    (2, 8)
    """
    try:
        number, count = map(int, text.split("/"))
    except ValueError:
        raise InputError(f"shard must be i/n such as 2/8, not {shown(text)}") from None
    count = whole("shard: number of shards", count)
    return whole("shard", number, 1, count), count


# ---- the plan in the folder ------------------------------------------------------------------------------------------


def _enter(spec, out):
    """Record the sweep in its folder, or extend the one that is there; refuse one that does not hold all of it."""
    root = Path(out).resolve()
    for config in spec.groups:
        place = store.config_folder(out, config).resolve()
        if not place.is_relative_to(root):
            raise InputError(f"out {out}: a link in it leads elsewhere, to {place}")
    with _locked(out):
        there = read_plan(out)
        if there is not None and (differences := _lost(there, spec)):
            raise InputError(f"out {out} holds another sweep; here {'; '.join(differences)} "
                             "(a sweep may grow, not change: use another folder)")
        if there != spec:
            with store.atomic(Path(out) / PLAN) as file:
                file.write(_plan_bytes(spec))


@contextmanager
def _locked(folder):
    """One process at a time; where the file system knows no locks, the last one to write wins."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


def _plan_bytes(spec):
    runs = [{"config": config.to_dict(), "seeds": seeds} for config, seeds in spec.groups.items()]
    return json.dumps({"format": FORMAT, "axes": list(spec.axes), "runs": runs}, sort_keys=True).encode()


def read_plan(folder):
    """The `Spec` of the sweep in a folder, or None.

    Raises
    ------
    InputError : its file is damaged, or of a later format

    Examples
    --------
    >>> read_plan("no-such-folder")
    """
    path = Path(folder) / PLAN
    try:
        data = store.read_bytes(path)
    except FileNotFoundError:
        return None
    try:
        plan = json.loads(data)
        if plan["format"] <= FORMAT:
            groups = {RunConfig.from_dict(run["config"]): [whole("seed", seed, 0) for seed in run["seeds"]]
                      for run in plan["runs"]}
            for config in groups:
                config.key, config.task.strip(), config.plan.strip()
            return Spec(groups, tuple(map(str, plan["axes"])))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise InputError(f"{path} is not the plan of a sweep; remove it, and the sweep is planned again") from None
    raise InputError(f"{path} has format {plan['format']}; this version of attnlag reads up to {FORMAT}")


def _lost(there, spec):
    """What of a sweep another one lacks, as texts; empty if it has all of it."""
    lost = [config for config, seeds in there.groups.items() if not set(seeds) <= set(spec.groups.get(config, ()))]
    if not lost:
        return []
    from .stored import PARAMETERS, parameter

    texts = []
    configs = (*there.groups, *spec.groups)
    names = dict.fromkeys([*PARAMETERS, *(name for config in configs for name in config.to_dict())])
    for name in sorted(names, key=lambda name: name not in there.axes):  # axes first: others may follow from them
        before, now = (list(dict.fromkeys(parameter(config, name) for config in plan.groups)) for plan in (there, spec))
        if not set(before) <= set(now):
            texts.append(f"{name} is {_some(now)}, there {_some(before)}")
    if not texts:
        config = lost[0]
        gone = sorted(set(there.groups[config]) - set(spec.groups.get(config, ())))
        labels = ", ".join(f"{name} {parameter(config, name)}" for name in there.axes) or f"plan {config.plan}"
        texts = [f"{labels} lacks seeds {_some(gone)}, which are there"]
    more = len(texts) - SHOWN
    return texts[:SHOWN] + ([f"and {more} more differences"] if more > 0 else [])


def _some(values):
    return ", ".join(map(str, values[:SHOWN])) + (f", ... ({len(values)} values)" if len(values) > SHOWN else "")


# ---- what it will take -----------------------------------------------------------------------------------------------

SAMPLES = 9  # runs that are timed
SHORT, LONG = 4, 24  # steps of each phase of a timed run
DATA_STEPS = 30  # about as many steps cost as much as making the data
FIXED_BYTES = 1e7  # about as many bytes of data once through cost as much as the rest of a run

@dataclass(frozen=True)
class Estimate:
    """What the runs that a folder lacks will take; prints as a few lines."""

    runs: int  # of this shard
    found: int  # of them in the folder
    configurations: int
    seconds: float  # of one thread, for those that are missing
    jobs: int
    bytes: float
    at_most: bool  # phases without a count may end sooner

    def to_dict(self):
        return asdict(self)

    def __repr__(self):
        most = "at most " if self.at_most else ""
        return "\n".join([
            f"{self.runs} runs of {self.configurations} configurations, {self.found} of them found",
            f"time: {most}about {_duration(self.seconds / self.jobs)} on {self.jobs} threads "
            "(from a few short runs, timed just now)",
            f"disk: {most}about {self.bytes / 2**20:.3g} MiB",
        ])


def estimate(spec, out, *, jobs=None, shard=(1, 1)):
    """Time and disk that `run_sweep` needs for the runs that a folder lacks; nothing is written.

    The runs are sorted by what they cost, about data x steps, and cut into ``SAMPLES`` parts of equal cost. The middle
    one of each part is timed on one thread for two numbers of steps, which gives its time before the first step and
    that of a step; the others of the part take their time in proportion to their cost.
    """
    jobs = whole("jobs", (os.cpu_count() or 1) if jobs is None else jobs)
    pairs = spec.pairs(shard)
    todo = [pair for pair in pairs if not store.run_path(out, *pair).exists()]
    costs = {config: _cost(config) for config, _ in todo}
    todo.sort(key=lambda pair: costs[pair[0]])
    seconds = around = 0.0
    for part in _equal_parts([costs[config] for config, _ in todo], SAMPLES):
        config, seed = todo[part[len(part) // 2]]
        one, around = _measure(config, seed)
        seconds += one * sum(costs[todo[index][0]] for index in part) / costs[config]
    size = sum(_array_bytes(config) + around for config, _ in todo)
    at_most = any(phase.steps is None for config, _ in todo for phase in parse_plan(config.plan).phases)
    configurations = len({config for config, _ in pairs})
    return Estimate(len(pairs), len(pairs) - len(todo), configurations, seconds, jobs, size, at_most)


def _cost(config):
    return FIXED_BYTES + config.make_task().nbytes() * (DATA_STEPS + sum(config.steps))


def _equal_parts(costs, count):
    """Cut indices of costs in order into at most ``count`` parts of about equal sums.

    >>> _equal_parts([1, 1, 1, 1, 4, 8], 3)
    [[0, 1, 2, 3], [4], [5]]
    """
    parts, total, sum_before = {}, sum(costs), 0
    for index, cost in enumerate(costs):
        parts.setdefault(int(count * (sum_before + cost / 2) / total), []).append(index)
        sum_before += cost
    return list(parts.values())


def _measure(config, seed):
    """(seconds, bytes of its file besides the arrays) of a run, from two short ones."""
    train(_cut(config, 1), seed)  # compiles what is not compiled yet
    (few, first, around), (more, second, _) = (_short_run(_cut(config, limit), seed) for limit in (SHORT, LONG))
    a_step = max(second - first, 0.0) / (more - few) if more > few else 0.0
    return first + (sum(config.steps) - few) * a_step, around


def _cut(config, limit):
    return replace(config, steps=tuple(min(limit, steps) for steps in config.steps))


def _short_run(config, seed):
    """(steps, seconds, bytes of its file besides the arrays)."""
    start = time.perf_counter()
    run = train(config, seed)
    data = store.encode(run)
    return len(run.train_loss) - 1, time.perf_counter() - start, len(data) - _array_bytes(config)


def _array_bytes(config):
    """Bytes of a run's arrays, all steps made."""
    task = config.make_task()
    parameters = task.initial(0, "zero", (0.0, 0.0))
    gaps = task.gaps(*(array[None] for array in parameters))
    steps, phases = sum(config.steps), len(config.steps)
    records = steps // config.record_every + 1
    records += len([end for end in accumulate(config.steps) if end % config.record_every])
    a_step = 1 + sum(gap.shape[1] for gap in gaps.values())
    return 8 * (a_step * (steps + 1) + 2 * records) + (phases + 1) * sum(array.nbytes for array in parameters)


def _duration(seconds):
    """ "40 s", "3 min", "2.5 h".

    >>> _duration(0.2), _duration(200), _duration(9000)
    ('1 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.3g} h"
