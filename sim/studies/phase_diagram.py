"""Where O(1x)->A(1x) from zero init recognises the language, over both rates.

Accuracy and certified length after the two steps, on infinite data. Vertical lines: the window of eta_O for which
beta_S > 1 > beta_o after the first step, and eta_K, beyond which the second step moves attention away from the target.
Curves: the thresholds on eta_A for an attention gap of 0.99 and for a test error of at most 0.001. Markers: runs.
"""

import numpy as np

from analytic.bounds import (
    certified_length,
    error_probability,
    logit_gap_for_attention,
    logit_gap_for_length,
    rate_a_for_logit_gap,
    rate_o_turning_point,
    rate_o_window,
)
from analytic.certificate import certify
from analytic.languages import any_of
from analytic.lengths import balanced_geometric
from analytic.one_step import logit_gap, output_update

from ..config import resolve
from ..runs import train_all
from ..settings import D
from .drawing import BLACK, VERMILION, figure_with_axes, house_style, legend_below
from .figure_data import FigureData

SEEDS, QUICK_SEEDS = 5, 2
EPS, DELTA = 0.01, 1e-3  # attention gap 1 - EPS; test error DELTA
RATES_O, RATES_A = (2.0, 60.0), (1.0, 1e4)
LONGEST = 1e8  # end of the colour scale


def compute(seeds, quick, **pool):
    """Rows: source (population, window, turning point, attention threshold, error threshold, run), rate_o, rate_a,
    accuracy, certified_length; runs: means of the accuracy and medians of the certified length over the seeds."""
    law = balanced_geometric(any_of(1), D)
    points = 61 if quick else 121
    rate_o, rate_a = np.linspace(*RATES_O, points), np.geomspace(*RATES_A, points)
    grid_o, grid_a = map(np.ravel, np.meshgrid(rate_o, rate_a))
    beta = output_update(D, 1, law, grid_o)
    g = logit_gap(D, 1, law, grid_o, grid_a)
    target, other = output_update(D, 1, law, rate_o)
    thresholds = {
        "attention threshold": logit_gap_for_attention(D, 1, EPS),
        "error threshold": logit_gap_for_length(law.quantile_length(DELTA), target, other),
    }
    parts = [
        dict(source="population", rate_o=grid_o, rate_a=grid_a, accuracy=1 - error_probability(D, 1, law, g, *beta),
             certified_length=certified_length(g, *beta)),
        dict(source="window", rate_o=[float(end) for end in rate_o_window(D, 1, law)]),
        dict(source="turning point", rate_o=float(rate_o_turning_point(D, 1, law))),
        *(dict(source=name, rate_o=rate_o, rate_a=rate_a_for_logit_gap(D, 1, law, rate_o, gap))
          for name, gap in thresholds.items()),
    ]
    configs = [
        resolve("occurrence", "O(1x)->A(1x)", init="zero", rate_o=eta_o, rate_a=eta_a, test_words=5000)
        for eta_o in (8.0, 15.0, 20.0, 30.0, 52.0)
        for eta_a in ((20.0, 1000.0) if quick else (3.0, 50.0, 200.0, 2000.0))
    ]
    for runs in train_all(configs, seeds, **pool):
        certificates = [certify(runs.task.language, run.alpha[-1], run.beta[-1]) for run in runs.runs]
        parts.append(dict(
            source="run", rate_o=runs.config.rate_o, rate_a=runs.config.rate_a, n=len(runs),
            accuracy=np.mean([run.test_metric[-1] for run in runs.runs]),
            certified_length=float(np.median([certificate.length for certificate in certificates])),
        ))
    return FigureData.stack(*parts)


def summary(data):
    """The window, eta_K, and what is reached inside."""
    population = data.where(source="population")
    return {
        "rate_o_window": data.where(source="window")["rate_o"].tolist(),
        "rate_o_turning_point": data.where(source="turning point").number("rate_o"),
        "largest_accuracy": population["accuracy"].max(),
        "largest_deviation_of_a_run": _deviation(data),
    }


def _deviation(data):
    """Largest difference in accuracy between runs and infinite data at the nearest point of the grid."""
    population, runs = data.where(source="population"), data.where(source="run")
    worst = 0.0
    for rate_o, rate_a, accuracy in zip(runs["rate_o"], runs["rate_a"], runs["accuracy"], strict=True):
        nearest = np.hypot(population["rate_o"] / rate_o - 1, np.log(population["rate_a"] / rate_a)).argmin()
        worst = max(worst, abs(population["accuracy"][nearest] - accuracy))
    return worst


def plot_map(data, column, ax):
    """A map of "accuracy" or "certified_length" over (eta_O, eta_A), with window and thresholds; returns the image."""
    population, runs = data.where(source="population"), data.where(source="run")
    rate_o, rate_a = population.values_of("rate_o"), population.values_of("rate_a")
    scale = _scale(column)
    values = population[column].reshape(len(rate_a), len(rate_o))
    image = ax.pcolormesh(rate_o, rate_a, values, rasterized=True, **scale)
    low, high = data.where(source="window")["rate_o"]
    turning = data.where(source="turning point").number("rate_o")
    for rate, dash, label in ((low, "-", r"window of $\eta_O$"), (high, "-", None), (turning, ":", r"$\eta_K$")):
        ax.axvline(rate, color="white", linewidth=2.5)
        ax.axvline(rate, color=BLACK, linewidth=1, linestyle=dash, label=label)
    thresholds = (("attention threshold", "-", f"attention gap {1 - EPS:g}"),
                  ("error threshold", "--", f"test error {DELTA:g}"))
    for source, dash, label in thresholds:
        line = data.where(source=source)
        ax.plot(line["rate_o"], line["rate_a"], dash, color=VERMILION, label=label)
    ax.scatter(runs["rate_o"], runs["rate_a"], c=runs[column], s=36, edgecolors="white", linewidths=1.2, zorder=3,
               label="circles: runs", **scale)
    ax.set(yscale="log", xlabel=r"$\eta_O$ of O(1x)", xlim=RATES_O, ylim=RATES_A)
    return image


def _scale(column):
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, Normalize

    if column == "accuracy":
        return {"cmap": "cividis", "norm": Normalize(0.5, 1)}
    return {"cmap": colormaps["viridis"].with_extremes(bad="0.8"), "norm": LogNorm(1, LONGEST)}  # bad: 0


@house_style
def draw(data):
    figure, axes = figure_with_axes(1, 2, 3.2, sharey=True)
    for column, ax in zip(("accuracy", "certified_length"), axes, strict=True):
        image = plot_map(data, column, ax)
        extend = {"accuracy": "neither", "certified_length": "max"}[column]
        figure.colorbar(image, ax=ax, label={"accuracy": "accuracy after O(1x)→A(1x)",
                                             "certified_length": "certified length (grey: 0)"}[column], extend=extend)
    axes[0].set_ylabel(r"$\eta_A$ of A(1x)")
    legend_below(figure, *axes[0].get_legend_handles_labels(), columns=5)
    return figure
