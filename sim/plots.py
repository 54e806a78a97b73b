"""Plots of stored runs: what they ended with against a parameter, or a map over two parameters."""

import csv
import io
import math

import numpy as np

from analytic.errors import InputError, choice

from .figures import RC, save_figure
from .pivot import cells, label_text
from .population import population
from .runs import CROSSINGS
from .stored import ENDS
from .studies.drawing import plain_ticks

# Okabe-Ito colours, those that stay apart with any colour vision; markers tell the lines apart in grey print
COLOURS = ("#0072B2", "#D55E00", "#000000", "#009E73", "#CC79A7", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
NO_MEAN = "no mean: runs diverged or never got there"
SIZE = (4.6, 3.2)  # inches
WIDE = 20  # an axis whose values span this factor or more is logarithmic
FEW = 8  # labels that are all written at a logarithmic axis
NAMES = {
    "d": "alphabet size d", "rate_a": r"learning rate $\eta_A$", "rate_o": r"learning rate $\eta_O$",
    "init_scale": "init scale (standard deviation)", "train_words": "training words", "test_words": "test words",
    "lag": "lag of attention (gradient steps)", "steps": "step limit", "steps_made": "gradient steps",
    "train_loss": "train loss",
    "step_attention_01": "first step with attention gap > 0.1", "test_accuracy": "test accuracy",
    "step_attention_09": "first step with attention gap > 0.9", "certified_length": "certified length (letters)",
    "tokens": "tokens in a context", "noise": "noise (standard deviation)", "pairs": "pairs in a context",
    "max_length": "longest string (symbols)", "heads": "attention heads", "targets": "targets (letters)",
}


def plot(stored, x, y, hue=None, ax=None):
    """Plot what stored runs ended with.

    ``y`` a value: mean over seeds against the parameter ``x``, bars of one standard deviation, one colour for each
    label of ``hue``. Thin lines: the same plan on infinite data, where `sim.population` knows it and init is
    zero. Crosses below: some runs diverged, or never reached the value, so that there is no mean.
    ``y`` a parameter and ``hue`` a value: a map of the mean over both parameters, and circles for infinite data.

    Parameters
    ----------
    stored : what `sim.load` returns
    x, y, hue : names of parameters, and one value of `Stored.end`
    ax : matplotlib axes; a new figure if None

    Returns
    -------
    ax

    Raises
    ------
    InputError : there is no such parameter or value, or another parameter varies

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import sim
    >>> for d in (5, 10):
    ...     _ = sim.run_plan("occurrence", "joint(60x)", 2, d=d, init="zero", out="lag")
    >>> plot(sim.load("lag"), "d", "lag").get_ylabel()
    'lag of attention (gradient steps)'
    """
    return draw(rows(stored, x, y, hue), x, y, hue, ax)


def save(stored, x, y, hue=None, *, out, name=None):
    """Write the plot as NAME.csv, NAME.png and NAME.pdf; return their paths."""
    import matplotlib
    from matplotlib.figure import Figure

    if name is not None and (not name.strip() or "/" in name or "\\" in name or name.startswith(".")):
        raise InputError(f"name must be a file name, without a folder, not {name!r}")
    data = rows(stored, x, y, hue)
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=SIZE)
        draw(data, x, y, hue, figure.subplots())
        return save_figure(name or f"{y}-against-{x}", figure, _csv(data), out)


def rows(stored, x, y, hue):
    """The data of a plot: one dictionary a point."""
    is_map = y not in ENDS and hue in ENDS
    stored.check_parameter("x", x)
    if is_map:
        stored.check_parameter("y", y)
    else:
        choice("y", y, (*ENDS, *stored.parameters))
        if y not in ENDS:
            raise InputError(f"hue must be a value such as train_loss where y is a parameter, not {hue!r}")
        if hue is not None:
            stored.check_parameter("hue", hue)
    names, value = ((x, y), hue) if is_map else (tuple(dict.fromkeys([x, hue] if hue else [x])), y)
    configs = {}
    for runs in stored:
        configs[tuple(cell_labels(runs.config, names))] = runs.config
    return [cell.to_dict() | {"infinite_data": theory(configs[tuple(cell.labels.values())], value)}
            for cell in cells(stored, names, value)]


def cell_labels(config, names):
    from .stored import parameter

    return [parameter(config, name) for name in names]


def theory(config, value):
    """What the plan of a configuration ends with on infinite data from zero init, or None where that is not known.

    On infinite data training and test loss are the same.
    """
    if config.init != "zero":
        return None
    try:
        path, diverged = population(config)
    except InputError:
        return None
    first = path.first_above
    if diverged:
        return None
    if value in CROSSINGS:
        return first("attention_gap", CROSSINGS[value])
    if value == "lag":
        steps = first("attention_gap", 0.1), first("output_gap", 0.1)
        return None if None in steps else steps[0] - steps[1]
    names = {"train_loss": "loss", "test_loss": "loss", "test_accuracy": "accuracy"}
    series = getattr(path, names.get(value, value), None)
    return None if series is None or math.isnan(series[-1]) else float(series[-1])


# ---- drawing ---------------------------------------------------------------------------------------------------------


def draw(data, x, y, hue, ax=None):
    """Draw what `rows` gives."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    if y in ENDS:
        _lines(data, x, y, hue, ax)
    else:
        _map(data, x, y, hue, ax)
    ax.set_xlabel(_name(x))
    ax.set_ylabel(_name(y))
    return ax


def _lines(data, x, y, hue, ax):
    place = _axis(ax, "x", [row[x] for row in data])
    labels = list(dict.fromkeys(row[hue] for row in data)) if hue else [None]
    for index, label in enumerate(labels):
        colour, marker = _style(index, len(labels))
        line = [row for row in data if hue is None or row[hue] == label]
        good = [row for row in line if row["mean"] is not None]
        known = [row for row in line if row["infinite_data"] is not None]
        ax.errorbar([place(row[x]) for row in good], [row["mean"] for row in good],
                    [row["std"] or 0.0 for row in good], fmt=marker, color=colour, markersize=4, elinewidth=1,
                    linestyle="none" if known else ":", label=label_text(label) if hue else "runs")
        ax.plot([place(row[x]) for row in known], [row["infinite_data"] for row in known], color=colour, linewidth=0.9)
        ax.plot([place(row[x]) for row in line if row["mean"] is None], [0.02] * (len(line) - len(good)), "x",
                color=colour, transform=ax.get_xaxis_transform(), clip_on=False)
    values = [row[key] for row in data for key in ("mean", "infinite_data") if row[key] is not None]
    if values and min(values) > 0 and max(values) >= WIDE * min(values):
        ax.set_yscale("log")
    if any(row["infinite_data"] is not None for row in data):
        ax.plot([], [], color="0.4", linewidth=0.9, label="infinite data")
    if any(row["mean"] is None for row in data):
        ax.plot([], [], "x", color="0.4", label=NO_MEAN)
    outside = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if len(labels) > len(COLOURS) else {}
    handles, texts = ax.get_legend_handles_labels()
    last = ("infinite data", NO_MEAN)  # after the labels of the hue
    order = sorted(range(len(texts)), key=lambda index: texts[index] in last)
    ax.legend([handles[index] for index in order], [texts[index] for index in order], frameon=False,
              title=_name(hue) if hue else None, title_fontsize=RC["legend.fontsize"], **outside)


def _map(data, x, y, hue, ax):
    across, up = (sorted({row[name] for row in data}) for name in (x, y))
    means, infinite = np.full((2, len(up), len(across)), np.nan)
    for row in data:
        at = up.index(row[y]), across.index(row[x])
        means[at], infinite[at] = (math.nan if row[key] is None else row[key] for key in ("mean", "infinite_data"))
    places = [[_axis(ax, axis, labels)(label) for label in labels] for axis, labels in (("x", across), ("y", up))]
    edges = [_edges(place, getattr(ax, f"get_{axis}scale")() == "log")
             for axis, place in zip("xy", places, strict=True)]
    shown = means[np.isfinite(means)]
    norm, empty = "linear", "no mean"
    if shown.size and shown.min() >= 0 and shown.max() > WIDE * shown[shown > 0].min(initial=shown.max()):
        norm, empty = "log", "0, or no mean"
        means[means == 0] = infinite[infinite == 0] = np.nan
    ax.set_facecolor("0.85")
    image = ax.pcolormesh(*edges, means, cmap="cividis", norm=norm)
    grey = f" (grey: {empty})" if np.isnan(means).any() else ""
    ax.figure.colorbar(image, ax=ax, label=_name(hue) + grey)
    if np.isfinite(infinite).any():
        across, up = np.meshgrid(*places)
        ax.scatter(across, up, c=infinite, s=16, cmap=image.cmap, norm=image.norm, edgecolors="white", linewidths=0.5)
        ax.set_title("squares: means of the runs; circles: infinite data")


def _axis(ax, axis, labels):
    """Set up an axis of labels; returns the function that places a label on it."""
    known = list(dict.fromkeys(labels))
    if all(isinstance(label, (int, float)) for label in known):
        if min(known) > 0 and max(known) >= WIDE * min(known):
            getattr(ax, f"set_{axis}scale")("log")
            if len(known) <= FEW:
                plain_ticks(getattr(ax, f"{axis}axis"), sorted(known))
        return float
    getattr(ax, f"set_{axis}ticks")(range(len(known)), [label_text(label) for label in known])
    return known.index


def _edges(places, log):
    """Edges of the cells around some places."""
    places = np.log(places) if log else np.asarray(places, dtype=float)
    middle = (places[1:] + places[:-1]) / 2
    half = (places[1] - places[0], places[-1] - places[-2]) if len(places) > 1 else (1.0, 1.0)
    edges = np.concatenate([[places[0] - half[0] / 2], middle, [places[-1] + half[1] / 2]])
    return np.exp(edges) if log else edges


def _style(index, count):
    if count <= len(COLOURS):
        return COLOURS[index], MARKERS[index]
    from matplotlib import colormaps

    return colormaps["viridis"](0.9 * index / (count - 1)), MARKERS[index % len(MARKERS)]


def _name(name):
    return NAMES.get(name, str(name).replace("_", " "))


def _csv(data):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(data[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in row.items()} for row in data)
    return text.getvalue()
