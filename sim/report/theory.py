"""The theory of infinite data beside the runs of the paper's plans."""

import numpy as np

from analytic.errors import InputError

from .. import figures
from ..population import population
from ..studies.figure_data import FigureData

HEADER = ["after", *((name, ["infinite data", "runs"]) for name in
                     ("train loss", "test metric", "attention gap", "output gap"))]
MEASURED = {  # closed form: what the runs from zero init recorded, after which phase
    "loss_after_output": ("train_loss", 1), "output_gap": ("output_gap", 1), "logit_gap": ("logit_gap", 2),
    "attention_gap": ("attention_gap", 2), "loss_after_attention": ("train_loss", 2),
    "accuracy_after_attention": ("test_metric", 2), "phase3_loss": ("train_loss", 3),
}
TWO_STEPS, ZERO_INIT = "O(1x)->A(1x)", "O(1x)->A(1x)->O, zero init"  # rows of Table 1
DRAWN = ("Joint GD", ZERO_INIT, "A(1x)->O")


def known(rows):
    """{task: [(`paper.Row`, `Runs`, `Trajectory`), ...]} of the tasks whose dynamics on infinite data are known."""
    found = {}
    for task, pairs in rows.items():
        try:
            found[task] = [(row, runs, population(runs.config)[0]) for row, runs in pairs]
        except InputError:  # no infinite data of this task
            continue
    return found


def end_rows(found):
    """Rows of texts: plan, phase, and each quantity of ``HEADER`` on infinite data and in the runs, mean ± std."""
    rows = []
    for row, runs, path in found:
        metric = "accuracy" if runs.task.test_metric == "test_accuracy" else "loss"
        pairs = {"train_loss": "loss", "test_metric": metric, **{gap: gap for gap in figures.GAPS}}
        for phase, at in enumerate(path.phase_ends, 1):
            cells = [cell for ours, theirs in pairs.items()
                     for cell in (shown([getattr(path, theirs)[at]]), shown(at_end(runs, ours, phase)))]
            rows.append([row.label, f"phase {phase}", *cells])
    return rows


def at_end(runs, name, phase):
    """A recorded quantity at the end of a phase, of every run that got there."""
    ended = [(run, run.phase_ends[phase - 1]) for run in runs.runs if len(run.phase_ends) >= phase]
    if name == "train_loss":
        return [run.train_loss[at] for run, at in ended]
    if name == "test_metric":
        return [run.test_metric[np.searchsorted(run.record, at)] for run, at in ended]
    return [run.gaps[name][at].max() for run, at in ended]


def shown(values):
    """Mean ± standard deviation of the values that exist."""
    values = [value for value in values if np.isfinite(value)]
    if not values:
        return "-"
    return f"{np.mean(values):.4g}" + (f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else "")


def closed_forms(rows):
    """Header and rows of texts: every closed form, and what the runs of the three phases from zero init recorded."""
    from ..commands.flags import number
    from ..theory import MEANING, theory

    header = ["quantity", "closed form", "runs from zero init", "meaning"]
    by_label = {row.label: runs for row, runs in rows}
    runs, config = by_label.get(ZERO_INIT), by_label[TWO_STEPS].config if TWO_STEPS in by_label else None
    if config is None or config.task not in MEANING:
        return header, []
    found, lines = theory(config), []
    for name, meaning in MEANING[config.task].items():
        recorded = shown(at_end(runs, *MEASURED[name])) if runs is not None and name in MEASURED else "-"
        lines.append([name, number(found[name]), recorded, meaning])
    return header, lines


def trajectories(found):
    """(figure, CSV, texts of the largest distances) of the gaps along a few plans, or None without runs of them."""
    rows, paths = [], []
    for task, triples in found.items():
        chosen = [triple for label in DRAWN for triple in triples if triple[0].label == label]
        if len(chosen) == len(DRAWN):
            rows.append((f"gap on {task}", [(row.label, runs) for row, runs, _ in chosen]))
            paths += chosen
    if not rows:
        return None
    drawing = figures.gaps_figure(rows, figures.GAPS)
    parts, told = [], []
    for ax, (row, runs, path) in zip(drawing.axes, paths, strict=True):
        for gap in figures.GAPS:
            steps, mean, std, n = figures.curve(runs, gap)
            line = getattr(path, gap)
            ax.plot(line, color="black", linewidth=0.7)
            about = dict(task=runs.config.task, plan=row.label, quantity=gap)
            parts += [dict(source="infinite data", **about, step=np.arange(len(line)), mean=line),
                      dict(source="runs", **about, step=steps, mean=mean, std=std, n=n)]
            distance = np.abs(mean - line[np.minimum(steps, len(line) - 1)])
            if np.isfinite(distance).any():
                told.append(f"{runs.config.task}, {row.label}, {gap.replace('_', ' ')}: the mean of {len(runs)} runs "
                            f"is at most {np.nanmax(distance):.3g} from infinite data")
    return drawing, FigureData.stack(*parts).csv(), told
