"""The lag over eta_A/eta_O and the init scale of the output weights. Where does attention not lag?

Lag = first step at which the attention gap exceeds 0.1 minus first step at which the output gap does, of joint gradient
descent with eta_O = 1 from alpha = 0 and beta ~ N(0, sigma^2). Map: median over runs. Right: both steps at sigma = 0,
on infinite data as lines, of runs as markers (medians), and the law s*(eta_A/eta_O) d of large alphabets.
"""

import numpy as np

from analytic.lag import lag_constant
from analytic.population import population_path

from ..config import resolve
from ..runs import train_all
from ..settings import D
from .drawing import BLACK, figure_with_axes, house_style, legend_below
from .figure_data import FigureData
from .lag import GAPS, LEVEL, LINES

SEEDS, QUICK_SEEDS = 5, 2
STEPS = 400


def compute(seeds, quick, **pool):
    """Rows: source (population, law, run), rate_ratio, init_scale, attention_gap and output_gap (first steps above
    0.1, inf if not within 400 steps; medians over the seeds), lag (median of the difference), n, diverged."""
    ratios = 10 ** (np.linspace(-1, 3, 5) if quick else np.linspace(-1, 3, 13))
    scales = [0.0, *(10 ** (np.linspace(-2, 0, 3) if quick else np.linspace(-2, 0.5, 11)))]
    lines = np.geomspace(ratios[0], ratios[-1], 30 if quick else 120)
    attention, output = np.transpose([_population(ratio) for ratio in lines.tolist()])
    parts = [dict(source="population", rate_ratio=lines, attention_gap=attention, output_gap=output,
                  lag=attention - output),
             dict(source="law", rate_ratio=lines, attention_gap=[lag_constant(0.5, ratio) * D for ratio in lines])]
    configs = [
        resolve("occurrence", f"joint({STEPS}x)", init_scale=(0.0, scale), rate_o=1.0, rate_a=ratio, record_every=10**6,
                train_words=2500 if quick else None)
        for scale in scales for ratio in ratios.tolist()
    ]
    for runs in train_all(configs, seeds, **pool):
        attention, output = (np.array([_first(run, gap) for run in runs.runs]) for gap in GAPS)
        with np.errstate(invalid="ignore"):
            lag = np.median(attention - output)  # inf: attention never, -inf: output never, nan: neither
        parts.append(dict(
            source="run", rate_ratio=runs.config.rate_a, init_scale=runs.config.init_scale[1],
            attention_gap=np.median(attention), output_gap=np.median(output), lag=lag, n=len(runs),
            diverged=runs.diverged,
        ))
    return FigureData.stack(*parts)


def _population(ratio):
    path = population_path(D, 1, None, [("AO", STEPS, 1.0, ratio)])
    return [np.inf if (step := path.first_above(gap, LEVEL)) is None else step for gap in GAPS]


def _first(run, gap):
    step = run.first_step_above(LEVEL, gap)
    return np.inf if step is None else step


def summary(data):
    """The smallest eta_A/eta_O from which on attention does not lag by more than one step, by init scale."""
    runs = data.where(source="run")
    return {
        "init_scale": (scales := runs.values_of("init_scale")),
        "lag_at_equal_rates": [runs.where(init_scale=scale, rate_ratio=1.0).number("lag") for scale in scales],
        "smallest_ratio_with_lag_up_to_1": [_smallest_ratio(runs.where(init_scale=scale)) for scale in scales],
        "diverged": int(runs["diverged"].sum()),
    }


def _smallest_ratio(row):
    small = row["rate_ratio"][row["lag"] <= 1]
    return small.min() if len(small) else None


def plot_map(data, ax):
    """Median lag over (eta_A/eta_O, init scale): red where attention lags, blue where it is first, grey: neither."""
    from matplotlib import colormaps
    from matplotlib.colors import SymLogNorm
    from matplotlib.patches import Patch

    runs = data.where(source="run")
    ratios, scales = runs.values_of("rate_ratio"), runs.values_of("init_scale")
    lag = np.ma.masked_invalid(np.clip(runs["lag"].reshape(len(scales), len(ratios)), -1e9, 1e9))
    colours = colormaps["RdBu_r"].with_extremes(bad="0.8")
    image = ax.pcolormesh(lag, cmap=colours, norm=SymLogNorm(1, 1, -200, 200), rasterized=True)
    ax.axhline(1, color="white", linewidth=2)  # between sigma = 0 and the logarithmic scale
    ax.legend(handles=[Patch(color=colours(0.0), label=f"only attention passes {LEVEL}"),
                       Patch(color="0.8", label=f"neither in {STEPS} steps")],
              loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    for axis, values in ((ax.xaxis, ratios), (ax.yaxis, scales)):
        shown = [i for i, value in enumerate(values) if value == 0 or abs(np.log10(value) % 1) < 1e-9]
        axis.set_ticks([i + 0.5 for i in shown], [f"{values[i]:g}" for i in shown])
    ax.set(xlabel=r"$\eta_A/\eta_O$", ylabel=r"init scale $\sigma$ of $\beta$")
    return image


def plot_steps(data, ax):
    """First steps above 0.1 at sigma = 0 against eta_A/eta_O."""
    population, law, runs = (data.where(source=source) for source in ("population", "law", "run"))
    runs = runs.where(init_scale=0.0)
    for gap, (colour, dash, marker, label) in LINES.items():
        ax.plot(population["rate_ratio"], population[gap], dash, color=colour, label=f"{label}, infinite data")
        ax.plot(runs["rate_ratio"], runs[gap], marker, color=colour, fillstyle="none", markersize=4,
                label=f"{label}, runs")
    ax.plot(law["rate_ratio"], law["attention_gap"], "--", color=BLACK, linewidth=0.9,
            label=r"$s^\ast(\eta_A/\eta_O)\, d/\eta_O$")
    ax.set(xscale="log", yscale="log", ylim=(0.8, None), xlabel=r"$\eta_A/\eta_O$",
           ylabel=f"first step with a gap above {LEVEL}")
    return ax


@house_style
def draw(data):
    figure, (area, steps) = figure_with_axes(1, 2, 3.2, width_ratios=[1.3, 1])
    image = plot_map(data, area)
    bar = figure.colorbar(image, ax=area, extend="both", label="lag of attention in steps")
    bar.set_ticks([-100, -10, -1, 0, 1, 10, 100], labels=["-100", "-10", "-1", "0", "1", "10", "100"])
    bar.minorticks_off()
    plot_steps(data, steps).set_title(r"$\sigma = 0$")
    legend_below(figure, *steps.get_legend_handles_labels(), columns=3)
    return figure
