"""Figures from finished runs. Every plot function takes ``ax`` (or makes one) and returns it."""

import csv
import io
from itertools import pairwise

import numpy as np

# Okabe-Ito colours, distinguishable with any colour vision; the dash tells them apart in grey print
STYLE = {
    "attention_gap": ("#0072B2", "-", "attention gap"),
    "output_gap": ("#D55E00", "--", "output gap"),
    "test_accuracy": ("#009E73", "-.", "test accuracy"),
}
WIDTH = 6.75  # inches: the text width of a two-column page
RC = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "lines.linewidth": 1.3, "axes.spines.top": False, "axes.spines.right": False,
    "savefig.dpi": 300, "pdf.fonttype": 42, "figure.constrained_layout.use": True,
}


def curve(runs, name):
    """(steps, mean, std, n) of a recorded quantity over the seeds that did not diverge.

    A run that ended before the others keeps its last value: it had converged.
    """
    array = getattr(runs, name)
    good = np.array([status == "ok" for status in runs.status])
    values = array.values[good]
    steps = np.asarray(array.coords["step"])
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(steps))), axis=1)
    values = np.take_along_axis(values, last, axis=1)
    n = len(values)
    if not n:
        return steps, np.full(len(steps), np.nan), np.full(len(steps), np.nan), 0
    return steps, values.mean(axis=0), values.std(axis=0, ddof=1) if n > 1 else np.zeros(len(steps)), n


def plot_gaps(runs, ax=None, quantities=tuple(STYLE)):
    """Gaps and test accuracy against the step: mean over seeds, band of one standard deviation.

    Dotted horizontal line: the ideal, 1. Thin vertical lines: ends of phases; for a plan without phases (joint)
    the mean steps at which the attention gap passes 0.1 and 0.9.

    Parameters
    ----------
    runs : `Runs`
    ax : matplotlib axes; a new figure if None
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
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    for name in quantities:
        colour, dash, label = STYLE[name]
        steps, mean, std, _ = curve(runs, name)
        ax.fill_between(steps, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
        ax.plot(steps, mean, dash, color=colour, label=label)
    ax.axhline(1, color="0.4", linewidth=0.8, linestyle=":")
    _phase_marks(ax, phase_marks(runs))
    last = max(len(run.train_loss) for run in runs.runs) - 1
    ax.set_xscale("symlog", linthresh=2, linscale=0.6)  # steps 0, 1, 2 evenly, then logarithmic
    ticks = [0, 1, 2] + [10**e for e in range(1, 8) if 10**e <= last]
    ax.set_xticks(ticks, [f"{t:d}" if t < 1000 else f"$10^{{{len(str(t)) - 1}}}$" for t in ticks])
    ax.minorticks_off()
    ax.set_xlim(0, max(last, 2))
    ax.set_xlabel("gradient steps")
    return ax


def phase_marks(runs):
    """Steps at which one phase gives way to the next (means over the seeds that did not diverge)."""
    ended = [run for run in runs.runs if not run.diverged]
    if not ended:
        return []
    if len(ended[0].phase_ends) > 1:
        return list(np.mean([run.phase_ends[:-1] for run in ended], axis=0))
    crossings = [[run.first_step_above(level) for level in (0.1, 0.9)] for run in ended]
    if ended[0].config.plan != "AO" or any(None in pair for pair in crossings):
        return []
    return list(np.mean(crossings, axis=0))


def _phase_marks(ax, marks):
    for mark in marks:
        ax.axvline(mark, color="0.6", linewidth=0.8)
    if marks:
        for number, (left, right) in enumerate(pairwise([0, *marks, None]), 1):
            where = left if right is None else right
            ax.annotate(str(number), (where, 1), xycoords=("data", "axes fraction"),
                        xytext=(3 if right is None else -3, -1), textcoords="offset points",
                        ha="left" if right is None else "right", va="top", fontsize=7, color="0.35")


def gaps_figure(panels):
    """Figure 2: one panel for each (title, `Runs`), on a common vertical axis."""
    import matplotlib

    with matplotlib.rc_context(RC):
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        figure = Figure(figsize=(WIDTH, 2.3))
        axes = figure.subplots(1, len(panels), sharey=True)
        for ax, (title, runs) in zip(axes, panels, strict=True):
            plot_gaps(runs, ax)
            lost = f" ({runs.diverged} of {len(runs)} diverged)" if runs.diverged else ""
            ax.set_title(title + lost)
        axes[0].set_ylabel("gap, accuracy (ideal: 1)")
        handles, labels = axes[0].get_legend_handles_labels()
        seeds = max(len(runs) for _, runs in panels)
        handles += [Patch(color="0.5", alpha=0.3, linewidth=0), Line2D([], [], color="0.6", linewidth=0.8)]
        labels += [f"± 1 std over {seeds} seeds", "end of phase 1, 2"]
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        return figure


def gaps_csv(panels):
    """The data behind `gaps_figure`: panel, quantity, step, mean, std, n."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["panel", "quantity", "step", "mean", "std", "n"])
    for title, runs in panels:
        for name in STYLE:
            steps, means, stds, n = curve(runs, name)
            for step, mean, std in zip(steps.tolist(), means.tolist(), stds.tolist(), strict=True):
                writer.writerow([title, name, step, *(("", "") if np.isnan(mean) else (mean, std)), n])
    return text.getvalue()
