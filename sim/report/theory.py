"""The theory of infinite data beside the runs of the paper's plans."""

import numpy as np

from analytic.errors import InputError

from .. import figures
from ..population import population
from ..studies.figure_data import FigureData

# recorded by the runs: on infinite data
QUANTITIES = {"train_loss": "loss", "test_accuracy": "accuracy", "attention_gap": "attention_gap",
              "output_gap": "output_gap"}
HEADER = ["after", *((name.replace("_", " "), ["infinite data", "runs"]) for name in QUANTITIES)]
MEASURED = {"output_gap": ("output_gap", 1), "logit_gap": ("logit_gap", 2), "attention_gap": ("attention_gap", 2),
            "phase3_loss": ("train_loss", 3)}  # closed form: what the runs from zero init recorded after which phase
DRAWN = ("Joint GD", "O(1x)->A(1x)->O, zero init", "A(1x)->O")


def known(rows):
    """{task: [(`paper.Row`, `Runs`, path on infinite data), ...]} of the tasks for which there are such paths."""
    found = {}
    for task, pairs in rows.items():
        try:
            found[task] = [(row, runs, population(runs.config)[0]) for row, runs in pairs]
        except InputError:  # no infinite data of this task
            continue
    return found


def end_rows(found):
    """Rows of texts: plan, phase, and each of the ``QUANTITIES`` on infinite data and in the runs, mean ± std."""
    rows = []
    for row, runs, path in found:
        ended = [run for run in runs.runs if not run.diverged]
        for phase, at in enumerate(path.phase_ends, 1):
            cells = []
            for ours, theirs in QUANTITIES.items():
                values = [_at_end(runs, run, ours, phase) for run in ended if len(run.phase_ends) >= phase]
                cells += [f"{getattr(path, theirs)[at]:.4g}", mean_std(values)]
            rows.append([row.label, f"phase {phase}", *cells])
    return rows


def _at_end(runs, run, name, phase):
    at = run.phase_ends[phase - 1]
    if name == "train_loss":
        return run.train_loss[at]
    if name == runs.task.test_metric:
        return run.test_metric[np.searchsorted(run.record, at)]
    return run.gaps[name][at].max()


def mean_std(values):
    if not len(values):
        return "-"
    return f"{np.mean(values):.4g}" + (f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else "")


def closed_forms(rows):
    """Header and rows of texts: every closed form, and what the runs of the three phases from zero init recorded."""
    import analytic

    from ..commands.flags import number
    from ..commands.theory import MEANING

    header = ["quantity", "closed form", "runs from zero init", "meaning"]
    runs = next((runs for row, runs in rows if row.plan == "O(1x)->A(1x)->O" and row.init == "zero"), None)
    if runs is None:
        return header, []
    task, config = runs.task, runs.config
    found = analytic.theory(task.d, task.targets, task.length, config.rate_o[0], config.rate_a[0])
    ended = [run for run in runs.runs if not run.diverged]
    lines = []
    for name, meaning in MEANING.items():
        measured = "-"
        if name in MEASURED:
            recorded, phase = MEASURED[name]
            measured = mean_std([_at_end(runs, run, recorded, phase) for run in ended])
        lines.append([name, number(found[name]), measured, meaning])
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
            distance = np.abs(mean - line[np.minimum(steps, len(line) - 1)]).max()
            told.append(f"{runs.config.task}, {row.label}, {gap.replace('_', ' ')}: "
                        f"the mean of {len(runs)} runs is at most {distance:.3g} from infinite data")
    return drawing, FigureData.stack(*parts).csv(), told
