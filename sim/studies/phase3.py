"""The least loss of phase 3 against the logit gap that phase 2 left, with its bounds.

Lines: the minimum over the output weights on infinite data at a fixed logit gap g, and its upper bounds
4 q E[(1-A)^2 | +] and 24 (d/k)^2 e^-2g. Markers: train loss of O(1x)->A(1x)->O from zero init at several eta_A.
"""

import numpy as np

from analytic.one_step import logit_gap
from analytic.phase_three import output_phase

from ..config import resolve
from ..runs import train_all
from ..settings import D
from .drawing import BLACK, BLUE, PURPLE, VERMILION, figure_with_axes, house_style
from .figure_data import FigureData

SEEDS, QUICK_SEEDS = 5, 2
RATE_O, RATE_3 = 20.0, 1.8  # below 2/lambda_max = 2.005, and the fastest for the slow directions
LINES = (
    ("minimum", BLUE, "-", "least loss $L^\\ast(g)$"),
    ("bound", VERMILION, "--", r"bound $4q\,\mathrm{E}[(1-A)^2\,|\,y=+1]$"),
    ("universal_bound", PURPLE, ":", r"bound $24\,(d/k)^2 e^{-2g}$"),
)


def compute(seeds, quick, **pool):
    """Rows: source (population, run), logit_gap, minimum, bound, universal_bound; runs: rate_a, seed, train_loss."""
    rates_a = np.geomspace(20, 400, 4 if quick else 8).round(1)
    g = np.linspace(0, 1.1 * float(logit_gap(D, 1, None, RATE_O, rates_a[-1])), 80)
    phase = output_phase(D, 1, None, g)
    parts = [dict(source="population", logit_gap=g, **{name: getattr(phase, name) for name, *_ in LINES})]
    configs = [
        resolve("occurrence", "O(1x)->A(1x)->O", init="zero", rate_o=(RATE_O, RATE_3), rate_a=rate_a, steps=4000,
                record_every=10**6)
        for rate_a in rates_a.tolist()
    ]
    for runs in train_all(configs, seeds, **pool):
        ends = [(run.logit_gap[-1, 0], run.train_loss[-1]) for run in runs.runs]
        gap, loss = np.transpose(ends)
        parts.append(dict(source="run", rate_a=runs.config.rate_a[0], seed=runs.seeds, logit_gap=gap, train_loss=loss))
    return FigureData.stack(*parts)


def summary(data):
    """Where the runs lie between 0, the least loss on infinite data at their logit gaps, and its bound."""
    runs = data.where(source="run")
    phase = output_phase(D, 1, None, runs["logit_gap"])
    ratio = runs["train_loss"] / phase.minimum
    return {
        "runs": len(runs),
        "median_loss_over_least": np.median(ratio),
        "smallest_loss_over_least": ratio.min(),
        "largest_loss_over_least": ratio.max(),
        "largest_loss_over_bound": (runs["train_loss"] / phase.bound).max(),
    }


def plot_loss(data, ax):
    """Loss against g; lines: minimum and bounds on infinite data, markers: train loss of runs."""
    population, runs = data.where(source="population"), data.where(source="run")
    for name, colour, dash, label in LINES:
        ax.plot(population["logit_gap"], population[name], dash, color=colour, label=label)
    ax.plot(runs["logit_gap"], runs["train_loss"], "o", color=BLACK, fillstyle="none", markersize=4, label="runs")
    ax.set(yscale="log", xlabel="logit gap $g$ after phase 2", ylabel="loss after phase 3")
    return ax


@house_style
def draw(data):
    figure, ax = figure_with_axes(1, 1, 3.0)
    plot_loss(data, ax).legend(frameon=False)
    return figure
