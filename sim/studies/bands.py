"""Attention gap, output gap and accuracy on infinite data through the bands of sampled runs.

The plans of Figure 2 with the same settings. Lines: infinite data, zero init. Dark bands: runs from zero init, which
the lines describe. Light bands: runs from the random init of Figure 2. Bands are one standard deviation over the seeds.
"""

import numpy as np

from ..config import resolve
from ..figures import IDEAL, STYLE, curve
from ..population import population
from ..runs import train_all
from .drawing import axis_of_steps, figure_with_axes, house_style, legend_below, plan_name
from .figure_data import FigureData

SEEDS, QUICK_SEEDS = 50, 3
TASKS = {"occurrence": "occurrence", "or": "OR"}
PLANS = ("AO", "O(1x)->A(1x)->O", "A(1x)->O")
QUANTITIES = {name if name != "test_accuracy" else "accuracy": style for name, style in STYLE.items()}
INITS = ("zero", "random")


def compute(seeds, quick, **pool):
    """Rows: source (population, zero init, random init), task, plan, quantity, step, mean, std, n."""
    settings = dict(steps=400) if quick else {}
    configs = [resolve(task, plan, init=init, **settings) for task in TASKS for plan in PLANS for init in INITS]
    parts = []
    for runs in train_all(configs, seeds, **pool):
        path = population(runs.config)[0] if runs.config.init == "zero" else None
        for quantity, recorded in zip(QUANTITIES, STYLE, strict=True):
            about = dict(task=runs.config.task, plan=runs.config.plan, quantity=quantity)
            steps, mean, std, n = curve(runs, recorded)
            kept = _spread(steps)
            parts.append(dict(source=f"{runs.config.init} init", **about, step=steps[kept], mean=mean[kept],
                              std=std[kept], n=n[kept]))
            if path is not None:
                parts.append(dict(source="population", **about, step=steps[kept],
                                  mean=getattr(path, quantity)[steps[kept]]))
    return FigureData.stack(*parts)


def _spread(steps):
    """Indices of about 200 of the recorded steps, evenly spread on the logarithmic axis they are drawn on."""
    wanted = np.append(0, np.geomspace(1, max(steps[-1], 1), 250).round())
    return np.unique(np.searchsorted(steps, wanted))


def summary(data):
    """Largest distance of the mean of the runs from zero init from infinite data, by task, plan and quantity."""
    values = {}
    for task in TASKS:
        for plan in PLANS:
            for quantity in QUANTITIES:
                about = dict(task=task, plan=plan, quantity=quantity)
                line, runs = (data.where(source=source, **about)["mean"] for source in ("population", "zero init"))
                values[f"largest_distance {task} {plan} {quantity}"] = np.abs(runs - line).max()
    return values


def plot_bands(data, ax):
    """Lines and bands of one task and plan."""
    for quantity, (colour, dash, label) in QUANTITIES.items():
        line, zero, random = (data.where(source=source, quantity=quantity)
                              for source in ("population", "zero init", "random init"))
        for runs, alpha in ((random, 0.15), (zero, 0.45)):
            low, high = runs["mean"] - runs["std"], runs["mean"] + runs["std"]
            ax.fill_between(runs["step"], low, high, color=colour, alpha=alpha, linewidth=0)
        ax.plot(line["step"], line["mean"], dash, color=colour, linewidth=1, label=label)
    ax.axhline(1, **IDEAL)
    axis_of_steps(ax, data["step"].max())
    return ax


@house_style
def draw(data):
    from matplotlib.patches import Patch

    figure, grid = figure_with_axes(len(TASKS), len(PLANS), 3.9, sharex="col", sharey="col")
    for axes, (task, name) in zip(grid, TASKS.items(), strict=True):
        axes[0].set_ylabel(f"gap, accuracy on {name}")
        for ax, plan in zip(axes, PLANS, strict=True):
            plot_bands(data.where(task=task, plan=plan), ax).set_title(plan_name(plan) if task == "occurrence" else "")
            ax.set_xlabel("" if task == "occurrence" else "gradient steps")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    n = int(np.nanmax(data["n"]))
    handles += [Patch(color="0.5", alpha=0.7, linewidth=0), Patch(color="0.5", alpha=0.25, linewidth=0)]
    labels = [f"{label}, infinite data" for label in labels]
    labels += [f"{n} runs from zero init, ± 1 std", f"{n} runs from random init, ± 1 std"]
    legend_below(figure, handles, labels, columns=3)
    return figure
