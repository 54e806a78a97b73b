"""Many seeds of one plan on one task: trained in a thread pool, stored, returned as labelled arrays and tables."""

import os
import sys
from contextlib import closing
from functools import cached_property

import numpy as np

from analytic.errors import whole

from . import store
from .config import resolve
from .labelled import LabelledArray
from .pool import Threads, train_each
from .seeds import parse_seeds
from .tasks.user import is_file, load_task

CROSSINGS = {"step_attention_01": 0.1, "step_attention_09": 0.9}  # fractions of the ideal gap 1


def run_plan(task, plan, seeds=range(3), *, jobs=None, progress=False, out=None, **settings):
    """Train seeds of a task under a plan by full-batch gradient descent.

    One update of a phase is  a <- a - eta_A dL/da,  b <- b - eta_O dL/db  for the layers the phase trains, where
    a and b are the parameters of the attention and of the output layer and L is the mean train loss:

    - letters: alpha and beta, squared error (f - y)^2 without a factor 1/2
    - even_pairs: W and u, logistic loss; each length 1..max_length weighs the same
    - icl_bigram: A and B, cross-entropy
    - slr: k and v, squared error without a factor 1/2

    Parameters
    ----------
    task : "occurrence", "or", "and", "even_pairs", "icl_bigram", "slr", a Boolean expression of letters such as
        "1 & (2 | !3)", or the path of a Python file with a task of your own, which is run: see `sim.Task`
    plan : such as "O(1x)->A(1x)->O" or "joint"; see `sim.plans`
    seeds : whole numbers, or "A:B", or a number N for 0, .., N-1; a seed has the same data and init under every plan
    jobs : threads (default: all cores)
    progress : show a progress bar on standard error
    out : folder to store the runs in; what it already holds is read instead of trained again
    **settings : those of the task, see `sim.tasks.make_task`, such as d=50, heads, length; and init="random" or
        "zero", init_scale (one standard deviation, or two), rate_a, rate_o (one for each phase that trains the
        layer; a number where that is one phase), steps (limit of phases without a count), record_every=10

    Returns
    -------
    Runs : diverged seeds included, marked as such

    Raises
    ------
    InputError : an argument is wrong; the message names it
    KeyboardInterrupt : after the chunks in progress; finished seeds stay stored

    Examples
    --------
    >>> runs = run_plan("occurrence", "O(1x)->A(1x)", seeds=[0], d=10, init="zero", rate_o=4, rate_a=50)
    >>> runs.attention_gap.dims
    ('seed', 'step')
    """
    if is_file(task):
        task = load_task(task)
    config = resolve(task, plan, **settings)
    return train_all([config], seeds, jobs=jobs, progress=progress, out=out)[0]


def train_all(configs, seeds, *, jobs=None, progress=False, out=None):
    """Train every seed of every configuration in one thread pool; return one `Runs` a configuration, in order.

    Runs that ``out`` already holds are read; a damaged file is named, trained again and replaced.
    """
    seeds, jobs = parse_seeds(seeds), whole("jobs", (os.cpu_count() or 1) if jobs is None else jobs)
    if out is not None:
        store.check_writable(out)
    configs = list(configs)
    wanted = [(config, seed) for seed in seeds for config in dict.fromkeys(configs)]  # plans share a seed's data
    done = {pair: run for pair in wanted if (run := stored_run(out, *pair)) is not None}
    with closing(train_each([pair for pair in wanted if pair not in done], Threads(jobs, out), progress)) as ended:
        for pair, run in ended:
            if isinstance(run, BaseException):
                raise run
            done[pair] = run
    return [Runs(config, [done[config, seed] for seed in seeds], out) for config in configs]


def stored_run(out, config, seed):
    """The `Run` that ``out`` holds, or None; a damaged file is named and counts as none."""
    if out is None:
        return None
    path = store.run_path(out, config, seed)
    try:
        run = store.read(path)
        if run.config != config or run.seed != seed:
            raise store.DamagedFile(f"{path}: holds another run")
        return run
    except FileNotFoundError:
        return None
    except store.DamagedFile as error:
        print(f"attnlag: warning: {error}; trained again", file=sys.stderr)
        return None


class Runs:
    """Finished runs of one configuration, one a seed.

    Attributes
    ----------
    config : the resolved `RunConfig`
    task : the task it was resolved for
    seeds : list of seeds
    status : "ok" or "diverged", one a seed
    train_loss : labelled array (seed, step), step 0..T; NaN after a run's end
    attention_gap, output_gap, and logit_gap of letters : the same. With several heads the gap is the largest over the
        heads; ``by_head(name)`` has all of them. NaN where a gap was not taken or does not exist
    test_accuracy (slr: test_loss) : labelled array (seed, step) at the recorded steps
    alpha, beta (even_pairs: W, u; icl_bigram: A, B; slr: k, v) : labelled arrays (seed, phase_end, *axes), with the
        axes (head, letter) of letters; phase_end 0 is the init
    """

    def __init__(self, config, runs, out=None):
        self.config = config
        self.runs = list(runs)
        self.out = out

    def __getattr__(self, name):
        if name.startswith("_") or name in ("runs", "task"):  # what the rest needs
            raise AttributeError(name)
        if name in self.runs[0].gaps:
            return self._steps(name, [_largest(run.gaps[name]) for run in self.runs])
        if name == self.task.test_metric:
            return self.test_metric
        if name in self.task.layers:
            return self._parameters(name)
        raise AttributeError(f"runs of {self.config.task} have no {name!r}")

    def __dir__(self):
        return [*super().__dir__(), self.task.test_metric, *self.runs[0].gaps, *self.task.layers]

    @property
    def seeds(self):
        return [run.seed for run in self.runs]

    @property
    def status(self):
        return [run.status for run in self.runs]

    @property
    def diverged(self):
        """Number of diverged runs."""
        return self.status.count("diverged")

    @cached_property
    def task(self):
        return self.config.make_task()

    @cached_property
    def train_loss(self):
        return self._steps("train_loss", [run.train_loss for run in self.runs])

    def by_head(self, name):
        """A gap with all heads: labelled array (seed, step, head), heads as they are."""
        heads = np.arange(self.runs[0].gaps[name].shape[1])
        pieces = [self._steps(name, [run.gaps[name][:, head] for run in self.runs]) for head in heads]
        first = pieces[0]
        values = np.stack([piece.values for piece in pieces], axis=-1)
        return LabelledArray(name, values, ("seed", "step", "head"), {**first.coords, "head": heads})

    @cached_property
    def test_metric(self):
        """The test metric at the recorded steps, also under its own name."""
        steps = np.unique(np.concatenate([run.record for run in self.runs]))
        values = np.full((len(self.runs), len(steps)), np.nan)
        for row, run in zip(values, self.runs, strict=True):
            row[np.searchsorted(steps, run.record)] = run.test_metric
        return LabelledArray(self.task.test_metric, values, ("seed", "step"),
                             {"seed": np.array(self.seeds), "step": steps})

    def accuracy_by_length(self, lengths, words=1000, phase_end=-1):
        """Labelled array (seed, length): see `sim.by_length.accuracy_by_length`."""
        from .by_length import accuracy_by_length

        return accuracy_by_length(self, lengths, words, phase_end)

    def row(self, run):
        """What one run ended with, as plain values (design of ``attnlag run --json``)."""
        end = {} if run.diverged else {
            "train_loss": float(run.train_loss[-1]),
            self.task.test_metric: float(run.test_metric[-1]),
            **{name: _number(_largest(run.gaps[name])[-1]) for name in ("attention_gap", "output_gap")},
        }
        names = ("train_loss", self.task.test_metric, "attention_gap", "output_gap")
        path = None if self.out is None else str(store.run_path(self.out, self.config, run.seed))
        return {
            "seed": run.seed,
            "status": run.status,
            **{name: end.get(name) for name in names},
            "phase_ends": run.phase_ends,
            "at_limit": run.at_limit,
            **{name: run.first_step_above(level) for name, level in CROSSINGS.items()},
            "diverged": run.diverged,
            "file": path,
        }

    def summary(self):
        """{"mean": {...}, "std": {...}} over the runs that did not diverge (std: ddof = 1; None for one run)."""
        rows = [self.row(run) for run in self.runs if not run.diverged]
        names = ("train_loss", self.task.test_metric, "attention_gap", "output_gap", *CROSSINGS)
        mean, std = {}, {}
        for name in names:
            values = [row[name] for row in rows if row[name] is not None]
            # a mean over only those runs that ever cross would look earlier than it is
            complete = len(values) == len(rows) and rows
            with np.errstate(over="ignore"):  # the spread of huge losses may be infinite, and is shown as that
                mean[name] = float(np.mean(values)) if complete else None
                std[name] = float(np.std(values, ddof=1)) if complete and len(values) > 1 else None
        return {"mean": mean, "std": std}

    def to_dict(self):
        """The JSON value of ``attnlag run --json``."""
        config = self.config
        return {
            "task": config.task,
            "plan": config.plan,
            **self.task.facts(),
            "config": config.to_dict(),
            "runs": [self.row(run) for run in self.runs],
            **self.summary(),
        }

    def __len__(self):
        return len(self.runs)

    def __repr__(self):
        from .tables import runs_text

        return runs_text(self)

    def _repr_html_(self):
        from .notebook import html

        return html(repr(self))

    def _steps(self, name, rows):
        length = max(len(row) for row in rows)
        values = np.full((len(rows), length), np.nan)
        for target, row in zip(values, rows, strict=True):
            target[: len(row)] = row
        return LabelledArray(
            name, values, ("seed", "step"), {"seed": np.array(self.seeds), "step": np.arange(length)}
        )

    def _parameters(self, name):
        arrays = [run.parameters[name] for run in self.runs]
        shape = (max(len(array) for array in arrays), *arrays[0].shape[1:])
        values = np.full((len(arrays), *shape), np.nan)
        for target, array in zip(values, arrays, strict=True):
            target[: len(array)] = array
        dims = ("seed", "phase_end", *self.task.axes[self.task.layers.index(name)])
        coords = {dim: np.arange(size) for dim, size in zip(dims[1:], shape, strict=True)}
        if "letter" in coords:
            coords["letter"] += 1
        return LabelledArray(name, values, dims, {"seed": np.array(self.seeds)} | coords)


def _largest(gap):
    """Over heads."""
    return gap.max(axis=1)


def _number(value):
    """None for a gap that does not exist."""
    return None if np.isnan(value) else float(value)
