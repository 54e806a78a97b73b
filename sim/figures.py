"""Figures from finished runs. Every plot function takes ``ax`` (or makes one) and returns it."""

import csv
import io
from itertools import pairwise
from pathlib import Path

import numpy as np

from analytic.errors import choice

from . import store
from .plans import parse_plan

# Okabe-Ito colours, those that stay apart with any colour vision; the dash tells them apart in grey print
STYLE = {
    "attention_gap": ("#0072B2", "-", "attention gap"),
    "output_gap": ("#D55E00", "--", "output gap"),
    "test_accuracy": ("#000000", "-.", "test accuracy"),
}
RANK_STYLE = (("#0072B2", "-"), ("#D55E00", "--"), ("#000000", "-."), ("#56B4E9", ":"))
IDEAL = {"color": "0.4", "linewidth": 0.8, "linestyle": ":"}
PHASE_END = {"color": "0.6", "linewidth": 0.8}
GAPS = ("attention_gap", "output_gap")
WIDTH = 6.75  # inches: the text width of a two-column page
RC = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "lines.linewidth": 1.3, "axes.spines.top": False, "axes.spines.right": False,
    "savefig.dpi": 300, "pdf.fonttype": 42, "figure.constrained_layout.use": True,
}


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def curve(runs, name):
    """(steps, mean, std, n) of a recorded quantity over the seeds that did not diverge (std: NaN for one run).

    A run that ended before the others keeps its last value: it had converged. Where a quantity does not exist in some
    runs, or was not taken at that step, the others are counted (n); steps where fewer than half have it are left out.
    """
    array = getattr(runs, name)
    return _moments(np.asarray(array.coords["step"]), _held(runs, array))


def head_curves(runs, name):
    """(steps, mean, std, n) of a gap head by head, mean and std (steps, heads).

    Heads have no names of their own: in each run they are ranked by the gap they reach at the end, largest first.
    """
    array = runs.by_head(name)
    values = _held(runs, array)
    order = np.argsort(-values[:, -1:], axis=2, kind="stable")
    return _moments(np.asarray(array.coords["step"]), np.take_along_axis(values, order, axis=2))


def _held(runs, array):
    """Values (run, step, ...) of the runs that did not diverge; after its end a run keeps its last value."""
    steps = np.asarray(array.coords["step"])
    good = [i for i, status in enumerate(runs.status) if status == "ok"]
    values = array.values[good]
    for row, i in zip(values, good, strict=True):
        end = np.searchsorted(steps, len(runs.runs[i].train_loss) - 1)
        row[end + 1 :] = row[end]
    return values


def _moments(steps, values):
    n = (~np.isnan(values)).all(axis=tuple(range(2, values.ndim))).sum(axis=0)
    kept = 2 * n >= len(values)
    values, n = values[:, kept], n[kept]
    mean, std = np.full((2, *values.shape[1:]), np.nan)
    some, more = n > 0, n > 1
    mean[some] = np.nanmean(values[:, some], axis=0)
    std[more] = np.nanstd(values[:, more], axis=0, ddof=1)
    return steps[kept], mean, std, n


def phase_marks(runs):
    """Steps at which one phase gives way to the next, means over the seeds that did not diverge.

    Joint GD has no phases: its second one is drawn from the attention gap's pass of 0.1 to its pass of 0.9.
    """
    ended = [run for run in runs.runs if not run.diverged]
    if not ended:
        return []
    phases = parse_plan(runs.config.plan).phases
    if [phase.layers for phase in phases] != ["AO"]:
        return list(np.mean([run.phase_ends[:-1] for run in ended], axis=0))
    crossings = [[run.first_step_above(level) for level in (0.1, 0.9)] for run in ended]
    return [] if any(None in pair for pair in crossings) else list(np.mean(crossings, axis=0))


# ---- one panel -------------------------------------------------------------------------------------------------------


def plot_gaps(runs, ax=None, quantities=tuple(STYLE)):
    """Gaps and test accuracy against the step: mean over seeds, band of one standard deviation.

    Dotted horizontal line: the ideal, 1. Thin vertical lines: ends of phases; for a plan without phases (joint)
    the mean steps at which the attention gap passes 0.1 and 0.9.

    Parameters
    ----------
    runs : `Runs`
    ax : matplotlib axes; None makes a figure with title and legend
    quantities : names out of attention_gap, output_gap, test_accuracy

    Returns
    -------
    ax

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import sim
    >>> plot_gaps(sim.run_plan("occurrence", "joint", seeds=[0], d=10, steps=20)).get_xlabel()
    'gradient steps'
    """
    for name in quantities:
        choice("quantities", name, tuple(STYLE))
    alone, ax = ax is None, _axes(ax)
    for name in quantities:
        colour, dash, label = STYLE[name]
        steps, mean, std, _ = curve(runs, name)
        band(ax, steps, mean, std, colour, dash, label)
    if alone:
        ax.set_title(f"{runs.config.task}: {runs.config.plan}")
        ax.set_ylabel("gap, accuracy")
        ax.legend(frameon=False)
    return against_steps(ax, runs)


def plot_heads(runs, ax=None, gap="attention_gap"):
    """A gap of every head against the step: mean over seeds, band of one standard deviation.

    In each run the heads are ranked by the gap they reach at the end; otherwise as `plot_gaps`.

    Parameters
    ----------
    runs : `Runs`
    ax : matplotlib axes; a new figure if None
    gap : "attention_gap" or "output_gap"

    Returns
    -------
    ax

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import sim
    >>> len(plot_heads(sim.run_plan("and", "joint", seeds=[0], d=10, steps=20)).get_legend_handles_labels()[1])
    4
    """
    ax = _axes(ax)
    steps, mean, std, _ = head_curves(runs, gap)
    for rank in range(mean.shape[1]):
        colour, dash = RANK_STYLE[rank % len(RANK_STYLE)]
        band(ax, steps, mean[:, rank], std[:, rank], colour, dash, f"head {rank + 1}")
    return against_steps(ax, runs)


def plot_accuracy_by_length(accuracy, ax=None):
    """Accuracy against the length of the word: mean over seeds, band of one standard deviation.

    Parameters
    ----------
    accuracy : what `Runs.accuracy_by_length` returns
    ax : matplotlib axes; a new figure if None

    Returns
    -------
    ax

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import sim
    >>> runs = sim.run_plan("occurrence", "joint", seeds=range(2), d=10, steps=20)
    >>> plot_accuracy_by_length(runs.accuracy_by_length([1, 10, 100])).get_xlabel()
    'letters in the word'
    """
    ax = _axes(ax)
    colour, dash, _ = STYLE["test_accuracy"]
    mean, std = accuracy.mean("seed").values, accuracy.std("seed").values
    band(ax, accuracy.coords["length"], mean, std, colour, dash, "accuracy")
    ax.axhline(1, **IDEAL)
    ax.set_xscale("log")
    ax.set_xlabel("letters in the word")
    ax.set_ylabel("accuracy")
    return ax


def _axes(ax):
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def band(ax, x, mean, std, colour, dash, label):
    """A curve and its band of one standard deviation."""
    ax.fill_between(x, mean - std, mean + std, color=colour, alpha=0.17, linewidth=0)
    ax.plot(x, mean, dash, color=colour, label=label)


def against_steps(ax, runs, marks=None):
    """The axis of steps, the ideal, and the phases (``marks``): thin lines between them, their numbers above."""
    last = max(len(run.train_loss) for run in runs.runs) - 1
    ax.set_xscale("symlog", linthresh=2, linscale=0.6)  # steps 0, 1, 2 evenly, then logarithmic
    ticks = [0, 1, *(10**e for e in range(1, 8) if 10**e <= last)]
    ax.set_xticks(ticks, [f"{t:d}" if t <= 10 else f"$10^{{{len(str(t)) - 1}}}$" for t in ticks])
    ax.minorticks_off()
    ax.set_xlim(0, max(last, 2))
    ax.set_xlabel("gradient steps")
    ax.axhline(1, **IDEAL)
    marks = phase_marks(runs) if marks is None else marks
    for mark in marks:
        ax.axvline(mark, **PHASE_END)
    along = (ax.transData - ax.transAxes).transform([(mark, 0) for mark in [0, *marks, ax.get_xlim()[1]]])[:, 0]
    for number, (left, right) in enumerate(pairwise(along), 1):
        if marks:
            ax.annotate(str(number), ((left + right) / 2, 1), xycoords="axes fraction", xytext=(0, 1),
                        textcoords="offset points", ha="center", va="bottom", fontsize=7, color="0.35")
    return ax


# ---- whole figures ---------------------------------------------------------------------------------------------------


def gaps_figure(rows, quantities=tuple(STYLE)):
    """Figures 2, 3 and 5: a row of panels for each (label of the vertical axis, [(title, `Runs`), ...])."""
    return _figure([(label, panels, lambda runs, ax: plot_gaps(runs, ax, quantities)) for label, panels in rows])


def heads_figure(panels):
    """Figure 4: a panel for each (title, `Runs`), attention gaps above, output gaps below."""
    def drawing(gap):
        return lambda runs, ax: plot_heads(runs, ax, gap)

    return _figure([(STYLE[gap][2], panels, drawing(gap)) for gap in GAPS],
                   "heads are ranked in each run by the gap they reach at the end")


def _figure(rows, note=None):
    """Rows of (label of the vertical axis, [(title, `Runs`), ...], function drawing runs on ax), note in the legend."""
    import matplotlib

    with matplotlib.rc_context(RC):
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        figure = Figure(figsize=(WIDTH, 0.9 + 1.5 * len(rows)))
        same_steps = len({row[1][0][1].config.steps for row in rows}) == 1
        grid = figure.subplots(len(rows), len(rows[0][1]), sharex="col" if same_steps else False, squeeze=False)
        for i, (label, panels, draw) in enumerate(rows):
            grid[i, 0].set_ylabel(label)
            for ax, (title, runs) in zip(grid[i], panels, strict=True):
                draw(runs, ax)
                lines = [title.replace("->", "→")] if i == 0 else []
                lines += [f"{runs.diverged} of {len(runs)} diverged"] if runs.diverged else []
                ax.set_title("\n".join(lines), pad=10)  # room for the numbers of the phases
                ax.set_xlabel("gradient steps" if i == len(rows) - 1 else "")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        seeds = max(len(runs) for _, panels, _ in rows for _, runs in panels)
        ideal, end = (Line2D([], [], **line) for line in (IDEAL, PHASE_END))
        handles += [Patch(color="0.5", alpha=0.3, linewidth=0), ideal, end]
        labels += [f"± 1 std over {seeds} seeds", "ideal", "end of phase (joint GD: attention gap 0.1, 0.9)"]
        figure.legend(handles, labels, loc="outside lower center", ncols=-(-len(labels) // 2), frameon=False,
                      title=note, title_fontsize=RC["legend.fontsize"])
        return figure


def gaps_csv(rows, quantities=tuple(STYLE)):
    """The data behind `gaps_figure`: task, panel, quantity, step, mean, std, n."""
    return _csv(("quantity",), [
        ((runs.config.task, title, name), *curve(runs, name))
        for _, panels in rows for title, runs in panels for name in quantities
    ])


def heads_csv(panels):
    """The data behind `heads_figure`: task, panel, quantity, rank, step, mean, std, n."""
    lines = []
    for title, runs in panels:
        for gap in GAPS:
            steps, mean, std, n = head_curves(runs, gap)
            lines += [((runs.config.task, title, gap, rank + 1), steps, mean[:, rank], std[:, rank], n)
                      for rank in range(mean.shape[1])]
    return _csv(("quantity", "rank"), lines)


def _csv(names, curves):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["task", "panel", *names, "step", "mean", "std", "n"])
    for about, steps, means, stds, n in curves:
        for step, *values, count in zip(steps.tolist(), means.tolist(), stds.tolist(), n.tolist(), strict=True):
            writer.writerow([*about, step, *("" if np.isnan(value) else value for value in values), count])
    return text.getvalue()


def save_figure(name, figure, data, out):
    """Write NAME.csv (text ``data``), NAME.png and NAME.pdf, each complete or not at all; return their paths."""
    import matplotlib

    paths = [Path(out) / f"{name}.{ending}" for ending in ("csv", "png", "pdf")]
    with matplotlib.rc_context(RC):  # resolution and embedded fonts are chosen when a figure is saved
        for path in paths:
            with store.atomic(path) as file:
                if path.suffix == ".csv":
                    file.write(data.encode())
                else:
                    stamp = {"CreationDate": None} if path.suffix == ".pdf" else None  # same runs, same bytes
                    figure.savefig(file, format=path.suffix[1:], metadata=stamp)
    return [str(path) for path in paths]
