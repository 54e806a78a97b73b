"""Gradient steps to a given train loss, joint against three phases.

Steps of all phases count; each task has its stored rates. Lines: infinite data, zero init. Markers: medians over runs,
with the fastest and the slowest (at most the limit of 4000 steps); filled from zero init, open from random init. None
where the median run does not reach the loss.
"""

import numpy as np

from ..config import resolve
from ..population import population
from ..runs import train_all
from .drawing import BLUE, VERMILION, figure_with_axes, house_style, legend_below, plan_name
from .figure_data import FigureData

SEEDS, QUICK_SEEDS = 10, 2
TASKS = {"occurrence": "occurrence", "or": "OR"}
PLANS = {"AO": (BLUE, "-", "o"), "O(1x)->A(1x)->O": (VERMILION, "--", "s")}
INITS = {"zero": "full", "random": "none"}
LOWEST = 1e-5  # train loss
LIMIT, POPULATION_LIMIT = 4000, 100_000  # steps of the runs and on infinite data


def compute(seeds, quick, **pool):
    """Rows: source (population, zero init, random init), task, plan, loss, steps (inf: not reached), fastest, slowest,
    n."""
    finest = np.geomspace(1, LOWEST, 101)
    parts = []
    for task in TASKS:
        for plan in PLANS:
            path, _ = population(resolve(task, plan, init="zero", steps=10_000 if quick else POPULATION_LIMIT))
            parts.append(dict(source="population", task=task, plan=plan, loss=finest,
                              steps=steps_to(path.loss, finest)))
    levels = finest[::10]
    configs = [resolve(task, plan, init=init, steps=1000 if quick else LIMIT, record_every=10**6)
               for task in TASKS for plan in PLANS for init in INITS]
    for runs in train_all(configs, seeds, **pool):
        steps = np.array([steps_to(run.train_loss, levels) for run in runs.runs])
        parts.append(dict(source=f"{runs.config.init} init", task=runs.config.task, plan=runs.config.plan, loss=levels,
                          steps=np.median(steps, axis=0), fastest=steps.min(axis=0), slowest=steps.max(axis=0),
                          n=len(runs)))
    return FigureData.stack(*parts)


def steps_to(losses, levels):
    """First step at which the loss is at most each level; inf where it never is.

    >>> steps_to([2.0, 0.5, 0.7, 0.1], [1.0, 0.6, 0.1, 0.01]).tolist()
    [1.0, 1.0, 3.0, inf]
    """
    lowest = np.minimum.accumulate(losses)
    steps = np.searchsorted(-lowest, -np.asarray(levels)).astype(float)
    return np.where(steps < len(losses), steps, np.inf)


def summary(data):
    """Steps to a few losses on infinite data, by task and plan."""
    values = {"loss": [10.0**-e for e in range(1, 6)]}
    for task in TASKS:
        for plan in PLANS:
            line = data.where(source="population", task=task, plan=plan)
            values[f"steps {task} {plan}"] = line["steps"][20::20].tolist()
    return values


def plot_steps(data, ax):
    """Steps against the loss to be reached, of one task."""
    for plan, (colour, dash, marker) in PLANS.items():
        line = data.where(source="population", plan=plan)
        ax.plot(line["loss"], line["steps"], dash, color=colour, label=f"{plan_name(plan)}, infinite data")
        for init, fill in INITS.items():
            runs = data.where(source=f"{init} init", plan=plan)
            reached = np.isfinite(runs["steps"])
            loss, steps, fastest, slowest = (runs[name][reached] for name in ("loss", "steps", "fastest", "slowest"))
            ax.errorbar(loss, steps, [steps - fastest, np.minimum(slowest, LIMIT) - steps], fmt=marker, color=colour,
                        fillstyle=fill, markersize=4, linewidth=0.9, label=f"runs from {init} init: median and range")
    ax.set(xscale="log", yscale="log", xlim=(2, LOWEST / 2), xlabel="train loss to be reached")
    return ax


@house_style
def draw(data):
    figure, axes = figure_with_axes(1, len(TASKS), 3.0, sharey=True)
    for ax, (task, name) in zip(axes, TASKS.items(), strict=True):
        plot_steps(data.where(task=task), ax).set_title(name)
    axes[0].set_ylabel("gradient steps")
    handles, labels = axes[0].get_legend_handles_labels()
    order = [0, 2, 3, 1, 4, 5]  # a column for each plan: its line, then its runs
    legend_below(figure, [handles[i] for i in order], [labels[i] for i in order], columns=2)
    return figure
