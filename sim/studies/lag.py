"""How long attention lags behind the output layer, against the alphabet size.

Joint gradient descent from zero init, both rates 1: the first steps at which the attention gap and the output gap
exceed 0.1. On infinite data the first is s* d/eta_O + O(ln^2 d), with s* from the limit of gradient flow; the right
panel shows what is left, over ln^2 d (the crossing placed between two steps by interpolation).
"""

import numpy as np

from analytic.lag import lag_constant
from analytic.population import population_path

from ..config import resolve
from ..runs import train_all
from .drawing import BLACK, BLUE, VERMILION, figure_with_axes, house_style, legend_below, plain_ticks
from .figure_data import FigureData

SEEDS, QUICK_SEEDS = 5, 3
LEVEL = 0.1
SIZES = [10, 20, 50, 100, 200, 500, 1000, 2000]
GAPS = ("attention_gap", "output_gap")
LINES = {"attention_gap": (BLUE, "-", "o", "attention gap"), "output_gap": (VERMILION, "-.", "s", "output gap")}


def first_steps(d):
    """On infinite data: first steps at which attention and output gap exceed 0.1, and where between steps T - 1 and T
    the attention gap does.

    >>> first_steps(50)[:2]
    (29, 5)
    """
    path = population_path(d, 1, None, [("AO", _enough_steps(d), 1.0, 1.0)])
    attention, output = (path.first_above(gap, LEVEL) for gap in GAPS)
    before, after = path.attention_gap[attention - 1 : attention + 1]
    return attention, output, attention - (after - LEVEL) / (after - before)


def _enough_steps(d):
    return int(lag_constant() * d + np.log(d) ** 2) + 20


def compute(seeds, quick, **pool):
    """Rows: source (population, law, run), d, seed, attention_gap and output_gap (first steps above 0.1), left over."""
    s_star = lag_constant()
    d = np.unique(np.geomspace(10, 2000, 10 if quick else 40).round().astype(int))
    d = np.union1d(d, SIZES)
    attention, output, crossing = np.transpose([first_steps(size) for size in d.tolist()])
    parts = [
        dict(source="population", d=d, attention_gap=attention, output_gap=output,
             left_over=(crossing - s_star * d) / np.log(d) ** 2),
        dict(source="law", d=d, attention_gap=s_star * d),
    ]
    configs = [
        resolve("occurrence", f"joint({2 * _enough_steps(size)}x)", d=size, init="zero", rate_a=1.0, rate_o=1.0,
                record_every=10**6)
        for size in ((10, 20, 50, 100) if quick else (10, 20, 50, 100, 200))
    ]
    for runs in train_all(configs, seeds, **pool):
        steps = {gap: [run.first_step_above(LEVEL, gap) for run in runs.runs] for gap in GAPS}
        parts.append(dict(source="run", d=runs.task.d, seed=runs.seeds, **steps))
    return FigureData.stack(*parts)


def summary(data):
    """The law's constant, and the first steps at a few sizes."""
    population, law = data.where(source="population"), data.where(source="law")
    rows = [population.where(d=d) for d in SIZES]
    attention, output = ([row.number(gap) for row in rows] for gap in GAPS)
    return {
        "s_star": law["attention_gap"][0] / law["d"][0],
        "d": SIZES,
        "first_step_attention": attention,
        "first_step_output": output,
        "lag": [a - o for a, o in zip(attention, output, strict=True)],
    }


def plot_steps(data, ax):
    """First steps above 0.1 against d; lines: infinite data, markers: runs, dashes: the law s* d."""
    population, law, runs = (data.where(source=source) for source in ("population", "law", "run"))
    for gap, (colour, dash, marker, label) in LINES.items():
        ax.plot(population["d"], population[gap], dash, color=colour, label=f"{label}, infinite data")
        ax.plot(runs["d"], runs[gap], marker, color=colour, fillstyle="none", markersize=4,
                label=f"{label}, runs with $5d^2$ words")
    ax.plot(law["d"], law["attention_gap"], "--", color=BLACK, linewidth=0.9, label=r"$s^\ast d/\eta_O$")
    ax.set(xscale="log", yscale="log", xlabel="alphabet size $d$", ylabel=f"first step with a gap above {LEVEL}")
    plain_ticks(ax.xaxis, SIZES)
    return ax


def plot_left_over(data, ax):
    """(T - s* d)/ln^2 d against d: bounded, as the law says."""
    population = data.where(source="population")
    ax.plot(population["d"], population["left_over"], color=BLUE)
    ax.set(xscale="log", xlabel="alphabet size $d$", ylabel=r"$(T - s^\ast d)\,/\,\ln^2 d$")
    ax.set_ylim(bottom=0)
    plain_ticks(ax.xaxis, [10, 50, 200, 1000])
    return ax


@house_style
def draw(data):
    figure, (steps, left_over) = figure_with_axes(1, 2, 2.7, width_ratios=[2, 1])
    plot_steps(data, steps)
    plot_left_over(data, left_over)
    legend_below(figure, *steps.get_legend_handles_labels(), columns=3)
    return figure
