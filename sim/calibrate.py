"""How the stored settings were found: a grid search against the train-loss column of Table 1.

Every stage keeps what the earlier ones chose and trains on search seeds (1000 and up), never on reported ones.

All tasks but AND:

joint     both rates and the number of steps: the fewest steps that meet the bounds on mean and deviation where the
          paper prints bounds, else the nearest mean; the test metric must round to the printed one
converge  steps and eta_O of a single layer's phase to convergence, against the row O, then eta_A against the row A: the
          largest rates of those that round to the printed loss, or else match (score <= 1), or the best one.
          Letters: eta_O <= 1 is safe at any attention: the Hessian 2 E[a a^T] has no eigenvalue above 2.
          SLR: eta_O <= 0.03 is safe where attention has found the token: 2 E[o o^T] has one of d + 1 = 51
one_step  eta_O and eta_A of single steps, against the rows O(1x)->A(1x) and A(1x)->O; where the paper prints
          accuracy 1.00 after O(1x)->A(1x) a candidate must reach that too. Occurrence and OR: the three phases (both
          inits), which reach the ideal gaps in the paper's figures, must end at or below joint GD's train loss

AND, whose init and number of attention steps the paper does not tell us either:

init       standard deviations of alpha's and beta's entries, against the rows A (at the middle of the rates below)
           and O. eta_O of a phase to convergence is 1/H, safe at any attention of H heads: no eigenvalue exceeds 2 H
converge   eta_A of an attention phase, against the row A
one_step   steps of the attention phases of the other rows and eta_O of the single output step, against the rows
           A -> O and O(1x) -> A; no row has a single attention step, so its eta_A is the general one
joint      both rates and the number of steps, against mean and deviation; the test accuracy must reach the printed one

Score of a candidate = sum over its rows of ((our mean - paper) / 0.02)^2: 1 is a miss by the smallest tolerance.
"""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from analytic.errors import InputError

from . import paper, tables
from .config import resolve
from .runs import train_all
from .seeds import parse_seeds
from .settings import stored
from .tasks import make_task

ROUNDS_TO_ONE = 0.995  # printed as 1.00
ROUNDED = (paper.ROUNDING / paper.SMALLEST_TOLERANCE) ** 2  # score of a mean that is printed as the paper's


@dataclass(frozen=True)
class Grid:
    """Where the settings of a task are searched."""

    joint: tuple  # (eta_A, eta_O)
    joint_steps: tuple
    converge: dict  # layer: rates
    converge_steps: tuple  # () for as many as joint
    one_step: dict  # layer: rates
    three_phases: bool = False  # must three phases reach joint's loss?


_LETTERS = Grid(
    joint=((1.0, 1.0),), joint_steps=(500, 2000, 8000),
    converge={"A": (0.5, 1.0, 2.0, 5.0), "O": (0.25, 0.5, 1.0)}, converge_steps=(),
    one_step={"A": (25.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 400.0, 500.0, 600.0, 800.0),
              "O": tuple(np.arange(10, 23.5, 0.5).tolist())},
    three_phases=True,
)
GRIDS = {
    "occurrence": _LETTERS,
    "or": _LETTERS,
    "even_pairs": Grid(
        joint=((2.0, 2.0), (5.0, 5.0), (10.0, 10.0)), joint_steps=(100, 150, 200, 300, 350, 400, 500, 700, 1000),
        converge={"A": (0.3, 1.0, 3.0), "O": (1.0, 2.0, 3.0)}, converge_steps=(200, 300, 500, 1000),
        one_step={"A": (50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0, 500.0),
                  "O": (60.0, 70.0, 80.0, 85.0, 90.0, 95.0, 100.0, 105.0, 110.0, 120.0)},
    ),
    "icl_bigram": Grid(
        joint=((100.0, 100.0), (300.0, 300.0), (1000.0, 1000.0)), joint_steps=(500, 1000, 2000),
        converge={"A": (10.0, 30.0, 100.0), "O": (8.0, 9.0, 9.2, 9.5, 10.0, 12.0, 15.0, 20.0)},
        converge_steps=(100, 200, 300, 400, 500),
        one_step={"A": (1000.0, 2000.0, 4000.0, 5000.0, 6000.0, 7000.0, 8000.0, 9000.0, 10000.0),
                  "O": (200.0, 225.0, 240.0, 245.0, 250.0, 255.0, 275.0)},
    ),
    "slr": Grid(
        joint=((0.03, 0.03), (0.05, 0.03), (0.1, 0.03)), joint_steps=(200, 400, 700),
        converge={"A": (0.1, 0.3, 1.0, 3.0), "O": (0.01, 0.02, 0.03)}, converge_steps=(400,),
        one_step={"A": (3.0, 10.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 800.0),
                  "O": (2.0, 2.5, 2.75, 3.0, 3.5, 4.0, 5.0)},
    ),
}

AND_SCALES = (0.1, 0.5, 1.0, 2.0)
AND_RATES_A = (3.0, 10.0, 30.0)
AND_STEPS = 2000
AND_ATTENTION_STEPS = (25, 50, 75, 100, 150, 200, 300, 500)
AND_ONE_STEP_O = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.5, 17.5)
AND_JOINT_O = (0.1, 0.25, 0.5)
AND_JOINT_STEPS = (500, 700, 1000, 1400, 2000)


@dataclass(frozen=True)
class Candidate:
    """One point of the search: its settings, the train losses it gave, its score (None: ruled out) and why."""

    stage: str
    settings: dict
    losses: dict
    score: float | None
    note: str = ""


@dataclass(frozen=True)
class Calibration:
    """The candidates of every stage and the chosen settings; prints as tables and TOML."""

    task: str
    seeds: list
    candidates: list
    chosen: dict

    def to_dict(self):
        return {"task": self.task, "seeds": list(self.seeds), "candidates": [vars(c) for c in self.candidates],
                "chosen": self.chosen}

    def toml(self):
        """The chosen settings in the form of ``sim/settings.toml``."""
        rates, limits = self.chosen["rates"], self.chosen["limits"]
        at = ", ".join(f"{name} = {value}" for name, value in stored()[self.task]["at"].items())
        lines = [f"[{self.task}]", f"at = {{{at}}}"]
        lines += [f"rates.{kind} = {{A = {rate['A']}, O = {rate['O']}}}" for kind, rate in rates.items()]
        if "attention_steps" in self.chosen:
            lines.append(f"attention_steps = {self.chosen['attention_steps']}")
        lines.append(f"limits = {{converge = {limits['converge']}, joint = {limits['joint']}}}")
        lines.append(f"init_scale = {list(self.chosen['init_scale'])}")
        lines += ["init_over_sqrt_d = true"] * stored()[self.task].get("init_over_sqrt_d", False)
        return "\n".join(lines)

    def __repr__(self):
        parts = [f"settings of {self.task}, search seeds {self.seeds[0]} .. {self.seeds[-1]}"]
        for stage in dict.fromkeys(candidate.stage for candidate in self.candidates):
            found = [candidate for candidate in self.candidates if candidate.stage == stage]
            found.sort(key=lambda c: (c.score is None, c.score))
            header = [stage, *found[0].losses, "score", "note"]
            rows = [[", ".join(f"{k} {v:g}" for k, v in c.settings.items()), *(f"{v:.4g}" for v in c.losses.values()),
                     "-" if c.score is None else f"{c.score:.3g}", c.note] for c in found]
            parts.append(tables.text_table(header, rows))
        return "\n\n".join([*parts, self.toml()])


def calibrate(task, seeds=range(1000, 1020), *, jobs=None, progress=False):
    """Search the settings of a task of Table 1.

    Parameters
    ----------
    task : a task of Table 1
    seeds : search seeds; the stored settings use 1000..1019
    jobs, progress : as in `sim.run_plan`

    Raises
    ------
    InputError : fewer than two seeds, or no candidate of a stage meets its conditions

    Returns
    -------
    Calibration : prints every candidate with its losses and score, and the chosen settings as TOML
    """
    seeds = parse_seeds(seeds)
    if len(seeds) < 2:
        raise InputError(f"seeds must be at least two, as deviations over them are compared, not {len(seeds)}")
    search = _AndSearch if task == "and" else _GridSearch
    return search(task, seeds, jobs, progress).run()


class _Search:
    def __init__(self, task, seeds, jobs, progress):
        self.task, self.seeds = task, seeds
        self.options = {"jobs": jobs, "progress": progress}
        self.candidates = []

    def train(self, plans):
        """`Runs` of each (plan, settings)."""
        configs = [resolve(self.task, plan, **settings) for plan, settings in plans]
        return train_all(configs, self.seeds, **self.options)

    def published(self, row, metric="train_loss"):
        return paper.published()[row, self.task, metric]

    def score(self, row, losses):
        return float(((losses.mean() - self.published(row).value) / paper.SMALLEST_TOLERANCE) ** 2)

    def add(self, stage, settings, losses, score, note=""):
        losses = {name: float(value) for name, value in losses.items()}
        self.candidates.append(Candidate(stage, settings, losses, score, note))

    def best(self, stage):
        found = [c for c in self.candidates if c.stage == stage and c.score is not None]
        if not found:
            raise InputError(f"no candidate of stage {stage} meets its conditions on seeds {self.seeds}")
        return min(found, key=lambda c: c.score)


class _GridSearch(_Search):
    """All tasks but AND."""

    def run(self):
        self.grid = GRIDS[self.task]
        joint = self.joint()
        steps = joint.settings["steps"]
        converge, converge_steps = self.converge(self.grid.converge_steps or (steps,))
        chosen = {
            "rates": {"one_step": self.one_step(converge, converge_steps, joint.losses["joint"]), "converge": converge,
                      "joint": {layer: joint.settings[layer] for layer in "AO"}},
            "limits": {"converge": converge_steps, "joint": steps},
            "init_scale": stored()[self.task]["init_scale"],
        }
        return Calibration(self.task, self.seeds, self.candidates, chosen)

    def joint(self):
        loss, printed = self.published("Joint GD"), self.published("Joint GD", "test_metric").value
        longest, every = self.grid.joint_steps[-1], math.gcd(*self.grid.joint_steps)
        for a, o in self.grid.joint:
            runs = self.train([(f"joint({longest}x)", dict(rate_a=a, rate_o=o, record_every=every))])[0]
            for steps in self.grid.joint_steps:
                losses = _losses(runs, steps)
                mean, deviation = _mean_std(losses)
                metric = np.nan if runs.diverged else float(runs.test_metric.sel(step=steps).values.mean())
                met = deviation <= loss.std and abs(metric - printed) <= paper.ROUNDING
                met &= mean < loss.value if loss.is_bound else np.isfinite(mean)
                score = steps if loss.is_bound else self.score("Joint GD", losses)
                note = (f"bounds {'met' if met else 'not met'}: mean < {loss.value:g}, deviation <= {loss.std:g}, "
                        if loss.is_bound else f"deviation <= {loss.std:g}: {bool(deviation <= loss.std)}, ")
                self.add("joint", {"A": a, "O": o, "steps": steps}, {"joint": mean, "deviation": deviation},
                         score if met else None, f"{note}{make_task(self.task).test_metric} {metric:.4f}")
        return self.best("joint")

    def converge(self, steps):
        best = {}
        for layer, name in (("O", "rate_o"), ("A", "rate_a")):
            rates, stage = self.grid.converge[layer], f"converge {layer}"
            results = self.train([(layer, {name: rate, "steps": steps[-1]}) for rate in rates])
            for (rate, runs), count in product(zip(rates, results, strict=True), steps):
                losses = _losses(runs, count)
                self.add(stage, {layer: rate, "steps": count}, {layer: losses.mean()}, self.score(layer, losses))
            # those that round to the printed number are equally good, then those that match
            ranks = [[c for c in self.candidates if c.stage == stage and c.score <= worst] for worst in (ROUNDED, 1)]
            matching = next(filter(None, ranks), [self.best(stage)])
            # the largest of them gets nearest to convergence within the steps
            found = max(matching, key=lambda c: (c.settings["steps"], c.settings[layer]))
            best[layer], steps = found.settings[layer], (found.settings["steps"],)
        return {layer: best[layer] for layer in "AO"}, steps[0]

    def one_step(self, converge, steps, joint_loss):
        end, (rates_a, rates_o) = {"rate_o": converge["O"], "steps": steps}, map(self.grid.one_step.get, "AO")
        first = self.train([("A(1x)->O", dict(rate_a=a, **end)) for a in rates_a])
        attention_first = dict(zip(rates_a, first, strict=True))
        grid = list(product(rates_o, rates_a))
        must_be_right = (make_task(self.task).test_metric == "test_accuracy"
                         and self.published("O(1x)->A(1x)", "test_metric").value >= ROUNDS_TO_ONE)
        for (o, a), runs in zip(grid, self.train([("O(1x)->A(1x)", dict(rate_o=o, rate_a=a)) for o, a in grid]),
                                strict=True):
            losses = {"O(1x)->A(1x)": _losses(runs).mean(), "A(1x)->O": _losses(attention_first[a]).mean()}
            score = self.score("O(1x)->A(1x)", _losses(runs)) + self.score("A(1x)->O", _losses(attention_first[a]))
            accuracy = np.mean([run.test_metric[-1] for run in runs.runs])
            wrong = (must_be_right and accuracy < ROUNDS_TO_ONE) or not np.isfinite(score)
            self.add("one_step", {"A": a, "O": o}, losses, None if wrong else score,
                     f"{accuracy:.3f} right after O(1x)->A(1x)" if wrong else "")
        best = self.best("one_step")
        while self.grid.three_phases and (fault := self.three_phase_fault(best.settings, end, joint_loss)):
            self.candidates[self.candidates.index(best)] = replace(best, score=None, note=fault)
            best = self.best("one_step")
        return best.settings

    def three_phase_fault(self, one_step, end, joint_loss):
        """Why the three phases with these single steps rule them out, or an empty string."""
        settings = dict(rate_a=one_step["A"], rate_o=[one_step["O"], end["rate_o"]], steps=end["steps"])
        for init in ("random", "zero"):
            loss = _losses(self.train([("O(1x)->A(1x)->O", dict(init=init, **settings))])[0]).mean()
            if not loss <= joint_loss:
                return f"three phases ({init} init) end at {loss:.1e}, joint at {joint_loss:.1e}"
        return ""


class _AndSearch(_Search):
    """AND with 4 heads, whose attention phases all have many steps."""

    def run(self):
        model = make_task(self.task)
        self.safe_o = 1 / model.heads
        self.scales = self.init()
        self.rate_a = self.converge()
        attention_steps, one_step_o = self.one_step()
        joint = self.joint()
        chosen = {
            "rates": {"one_step": {"A": stored()["general"]["one_step_over_d"]["A"] * model.d, "O": one_step_o},
                      "converge": {"A": self.rate_a, "O": self.safe_o},
                      "joint": {"A": joint["A"], "O": joint["O"]}},
            "limits": {"converge": AND_STEPS, "joint": joint["steps"]},
            "attention_steps": attention_steps,
            "init_scale": self.scales,
        }
        return Calibration(self.task, self.seeds, self.candidates, chosen)

    def init(self):
        middle = AND_RATES_A[len(AND_RATES_A) // 2]
        grid = list(product(AND_SCALES, AND_SCALES))
        rows = [("A", dict(rate_a=middle)), ("O", dict(rate_o=self.safe_o))]
        done = iter(self.train([(plan, dict(init_scale=scales, steps=AND_STEPS, **rate))
                                for scales in grid for plan, rate in rows]))
        for alpha, beta in grid:
            self.compare("init", {"alpha": alpha, "beta": beta}, {plan: _losses(next(done)) for plan, _ in rows})
        return tuple(self.best("init").settings.values())

    def converge(self):
        results = self.train([("A", self.start(rate_a=rate, steps=AND_STEPS)) for rate in AND_RATES_A])
        for rate, runs in zip(AND_RATES_A, results, strict=True):
            self.compare("converge", {"A": rate}, {"A": _losses(runs)})
        return self.best("converge").settings["A"]

    def one_step(self):
        attention_first = self.train([
            (f"A({n}x)->O", self.start(rate_a=self.rate_a, rate_o=self.safe_o, steps=AND_STEPS))
            for n in AND_ATTENTION_STEPS
        ])
        # after 1 + n steps of the longest run: what O(1x)->A(nx) ends with
        output_first = self.train([
            (f"O(1x)->A({AND_ATTENTION_STEPS[-1]}x)", self.start(rate_a=self.rate_a, rate_o=rate))
            for rate in AND_ONE_STEP_O
        ])
        for (n, first), (rate, second) in product(zip(AND_ATTENTION_STEPS, attention_first, strict=True),
                                                  zip(AND_ONE_STEP_O, output_first, strict=True)):
            self.compare("one_step", {"attention steps": n, "O": rate},
                         {"A(1x)->O": _losses(first), "O(1x)->A(1x)": _losses(second, 1 + n)})
        return self.best("one_step").settings.values()

    def joint(self):
        loss, accuracy = self.published("Joint GD"), self.published("Joint GD", "test_metric").value
        grid = list(product(AND_RATES_A, AND_JOINT_O))
        plan = f"joint({AND_JOINT_STEPS[-1]}x)"
        results = self.train([(plan, self.start(rate_a=a, rate_o=o)) for a, o in grid])
        for (a, o), runs in zip(grid, results, strict=True):
            for steps in AND_JOINT_STEPS:
                losses = _losses(runs, steps)
                mean, deviation = _mean_std(losses)
                reached = float(runs.test_accuracy.sel(step=steps).values.mean())
                score = self.score("Joint GD", losses) + ((deviation - loss.std) / paper.SMALLEST_TOLERANCE) ** 2
                self.add("joint", {"A": a, "O": o, "steps": steps}, {"joint": mean, "deviation": deviation},
                         float(score) if reached >= accuracy else None,
                         f"{runs.diverged} diverged" if runs.diverged else f"accuracy {reached:.4f}")
        return self.best("joint").settings

    def start(self, **settings):
        return dict(init_scale=self.scales, **settings)

    def compare(self, stage, settings, losses):
        """Add a candidate with the rows' final losses and the sum of their scores."""
        score = sum(self.score(row, values) for row, values in losses.items())
        self.add(stage, settings, {row: values.mean() for row, values in losses.items()}, score)


def _losses(runs, step=-1):
    """Train losses at a step, or at the last one; a diverged run counts as infinite: its candidate cannot win."""
    return np.array([np.inf if run.diverged else run.train_loss[min(step, len(run.train_loss) - 1)]
                     for run in runs.runs])


def _mean_std(losses):
    return (losses.mean(), losses.std(ddof=1)) if np.isfinite(losses).all() else (np.inf, np.inf)
