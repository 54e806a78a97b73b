"""Tables and figures of the paper, from stored runs: what is missing is trained first, the rest is read."""

from dataclasses import dataclass
from pathlib import Path

from analytic.errors import InputError, choice

from . import figures, paper, store, tables
from .runs import train_all
from .seeds import parse_seeds

THREE_PHASES = "O(1x)->A(1x)->O, random init"
FIGURE2 = (("joint GD", "Joint GD"), ("three phases: {plan}", THREE_PHASES), ("attention first: {plan}", "A(1x)->O"))
FIGURES45 = (("joint GD", "Joint GD"), ("{plan}", THREE_PHASES), ("A only", "A"), ("O only", "O"),
             ("{plan}", "A(1x)->O"))


@dataclass(frozen=True)
class Made:
    """A finished reproduction: its text, the files it wrote, its values, and how many runs diverged."""

    text: str
    files: list
    values: dict
    diverged: int

    def to_dict(self):
        return {**self.values, "files": self.files, "diverged": self.diverged}

    def __repr__(self):
        return "\n".join([self.text, "", *(f"wrote {name}" for name in self.files)])


def check_tasks(text):
    """Task names from "occurrence,or" (None: all that can be reproduced)."""
    if text is None:
        return paper.TASKS
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"tasks is empty: name some of {', '.join(paper.TASKS)}")
    return tuple(dict.fromkeys(choice("tasks", name, paper.TASKS) for name in names))


def table1(tasks=paper.TASKS, seeds=range(paper.SEEDS), *, jobs=None, progress=False, out="results"):
    """Table 1 with the stored settings: mean ± std over seeds beside the published numbers.

    Writes table1.csv, table1.md and table1.tex to ``out``, the runs to ``out``/runs.

    Returns
    -------
    Made : prints as the table; ``values["cells"]`` has every number with difference, tolerance and verdict,
        ``values["plans"]`` the plan trained for each row
    """
    seeds = parse_seeds(seeds)
    results = _table_runs(tasks, seeds, jobs=jobs, progress=progress, out=out)
    cells = tables.table1_cells(results)
    title = f"Table 1, mean ± standard deviation over {len(seeds)} seeds (paper: {paper.SEEDS} seeds)"
    return _table("table1", title, results, cells, tables.TABLE1, tables.table1_rows(cells), out)


def table5(tasks=paper.TASKS, seeds=range(paper.SEEDS), *, jobs=None, progress=False, out="results"):
    """Table 5: the standard deviations over seeds of the same runs beside the published ones.

    Writes table5.csv, table5.md and table5.tex to ``out``; otherwise as `table1`.
    """
    seeds = parse_seeds(seeds)
    results = _table_runs(tasks, seeds, jobs=jobs, progress=progress, out=out)
    cells = tables.table5_cells(results)
    title = f"Table 5, standard deviation over {len(seeds)} seeds (paper: {paper.SEEDS} seeds)"
    return _table("table5", title, results, cells, tables.TABLE5, tables.table5_rows(cells), out)


def _table_runs(tasks, seeds, **options):
    """(`paper.Row`, `Runs`) of every row for every task."""
    rows = [row for task in tasks for row in paper.configurations(task)]
    runs = train_all([config for _, config in rows], seeds, **options)
    return [(row, group) for (row, _), group in zip(rows, runs, strict=True)]


def _table(name, title, results, cells, columns, rows, out):
    plans = {task: {} for task in dict.fromkeys(runs.config.task for _, runs in results)}
    for row, runs in results:
        plans[runs.config.task][row.label] = runs.config.plan
    notes = [f"{task}: A(1x) stands for A({n}x): many steps, as in the paper, which does not say how many"
             for task in plans if (n := paper.attention_steps(task)) > 1]
    lost = [tables.diverged_text(run) for _, group in results for run in group.runs if run.diverged]
    written = _write(out, {
        f"{name}.csv": tables.cells_csv(cells, columns),
        f"{name}.md": "\n\n".join([title, tables.markdown_table(*rows), *notes]).rstrip() + "\n",
        f"{name}.tex": tables.latex_table(*rows, ". ".join([title, *notes])),
    })
    text = "\n".join([title, "", tables.text_table(*rows), *notes, *lost])
    return Made(text, written, {"cells": cells, "plans": plans}, sum(group.diverged for _, group in results))


def fig2(seeds=range(paper.SEEDS), *, jobs=None, progress=False, out="results"):
    """Figure 2: gaps and test accuracy on occurrence along joint GD, three phases, and attention first.

    Writes fig2.png, fig2.pdf and fig2.csv to ``out``; seeds are shared with `table1`.
    """
    panels = _panels("occurrence", FIGURE2, seeds, jobs=jobs, progress=progress, out=out)
    rows = [("gap, accuracy", panels)]
    joint = panels[0][1].summary()
    return _figure("fig2", figures.gaps_figure(rows), figures.gaps_csv(rows), panels, out,
                   _crossings_text(joint, len(panels[0][1])))


def fig4(seeds=range(paper.SEEDS), *, jobs=None, progress=False, out="results"):
    """Figure 4: the gaps of AND head by head, ranked in each run by the gap they reach at the end.

    Writes fig4.png, fig4.pdf and fig4.csv to ``out``; seeds are shared with `table1`.
    """
    panels = _panels("and", FIGURES45, seeds, jobs=jobs, progress=progress, out=out)
    return _figure("fig4", figures.heads_figure(panels), figures.heads_csv(panels), panels, out)


def fig5(seeds=range(paper.SEEDS), *, jobs=None, progress=False, out="results"):
    """Figure 5: attention and output gap on occurrence and OR along five plans.

    Writes fig5.png, fig5.pdf and fig5.csv to ``out``; seeds are shared with `table1`.
    """
    rows = [(f"gap on {name}", _panels(task, FIGURES45, seeds, jobs=jobs, progress=progress, out=out))
            for name, task in (("occurrence", "occurrence"), ("OR", "or"))]
    panels = [panel for _, row in rows for panel in row]
    return _figure("fig5", figures.gaps_figure(rows, figures.GAPS), figures.gaps_csv(rows, figures.GAPS), panels, out)


def _panels(task, wanted, seeds, **options):
    """(title, `Runs`) of the wanted (title, row of Table 1); the plan trained is filled in."""
    seeds = parse_seeds(seeds)
    by_label = {row.label: config for row, config in paper.configurations(task)}
    configs = [by_label[label] for _, label in wanted]
    runs = train_all(configs, seeds, **options)
    return [(title.format(plan=group.config.plan), group) for (title, _), group in zip(wanted, runs, strict=True)]


def _figure(name, figure, data, panels, out, text=""):
    """Write a figure and its data; say what the runs of each panel ended with."""
    written = figures.save_figure(name, figure, data, out)
    ends = tables.text_table(*tables.ends_rows(panels))
    lost = [tables.diverged_text(run) for _, group in panels for run in group.runs if run.diverged]
    values = {"panels": [{"task": group.config.task, "panel": title, "plan": group.config.plan, **group.summary()}
                         for title, group in panels]}
    return Made("\n\n".join(filter(None, [text, ends, "\n".join(lost)])), written, values,
                sum(group.diverged for _, group in panels))


def _crossings_text(summary, seeds):
    lines = [f"joint GD, mean ± standard deviation over {seeds} seeds:"]
    for name, level, published in (("step_attention_01", 0.1, 31), ("step_attention_09", 0.9, 127)):
        mean, std = summary["mean"][name], summary["std"][name]
        ours = "not passed by every run" if mean is None else f"{mean:.1f}" + ("" if std is None else f" ± {std:.1f}")
        lines.append(f"  attention gap passes {level} at step {ours} (paper: {published})")
    return "\n".join(lines)


def _write(out, contents):
    """Write text files atomically; return their paths."""
    for name, text in contents.items():
        with store.atomic(Path(out) / name) as file:
            file.write(text.encode())
    return [str(Path(out) / name) for name in contents]
