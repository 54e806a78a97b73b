"""Tables and figures of the paper, from stored runs: what is missing is trained first, the rest is read."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from analytic.errors import InputError, choice

from . import figures, overview, paper, store, tables
from .plans import parse_plan
from .runs import train_all
from .seeds import parse_seeds

THREE_PHASES = "O(1x)->A(1x)->O, random init"
FIGURE2 = (("joint GD", "Joint GD"), ("three phases: {plan}", THREE_PHASES), ("attention first: {plan}", "A(1x)->O"))
FIVE_PLANS = (("joint GD", "Joint GD"), ("{layers}", THREE_PHASES), ("A only", "A"), ("O only", "O"),
              ("{layers}", "A(1x)->O"))
FIGURE3 = (("AND", "and"), ("even pairs", "even_pairs"), ("ICL-bigram", "icl_bigram"), ("SLR", "slr"))
FIGURE5 = (("occurrence", "occurrence"), ("OR", "or"))


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

    def _repr_html_(self):
        from .notebook import html

        return html(repr(self), [name for name in self.files if name.endswith(".png")])


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
    results = table_runs(tasks, _trained(seeds, jobs=jobs, progress=progress, out=out))
    cells = tables.table1_cells(results)
    title = f"Table 1, mean ± standard deviation over {len(seeds)} seeds (paper: {paper.SEEDS} seeds)"
    return _table("table1", title, results, cells, tables.TABLE1, tables.table1_rows(cells), out)


def table2(tasks=paper.TASKS, seeds=range(paper.SEEDS), *, out="results", **_):
    """Table 2: the initializations as printed beside the spread of the entries that our seeds start from.

    Writes table2.csv, table2.md and table2.tex to ``out``; trains nothing.
    """
    cells = tables.table2_cells(tasks, parse_seeds(seeds))
    title = f"Table 2, standard deviation of the initial entries over {cells[0]['n']} seeds"
    text, written = _write_table("table2", title, cells, tables.TABLE2, tables.table2_rows(cells), [], out)
    return Made(text, written, {"cells": cells}, 0)


def table5(tasks=paper.TASKS, seeds=range(paper.SEEDS), *, jobs=None, progress=False, out="results"):
    """Table 5: the standard deviations over seeds of the same runs beside the published ones.

    Writes table5.csv, table5.md and table5.tex to ``out``; otherwise as `table1`.
    """
    seeds = parse_seeds(seeds)
    results = table_runs(tasks, _trained(seeds, jobs=jobs, progress=progress, out=out))
    cells = tables.table5_cells(results)
    title = f"Table 5, standard deviation over {len(seeds)} seeds (paper: {paper.SEEDS} seeds)"
    return _table("table5", title, results, cells, tables.TABLE5, tables.table5_rows(cells), out)


def table_runs(tasks, find):
    """(`paper.Row`, `Runs`) of every row for every task; ``find(configs)`` gives the `Runs` of each, in order."""
    rows = [row for task in tasks for row in paper.configurations(task)]
    runs = find([config for _, config in rows])
    return [(row, group) for (row, _), group in zip(rows, runs, strict=True)]


def _trained(seeds, **options):
    """A source of runs for `table_runs` and `drawing`: stored ones, the missing ones trained."""
    return lambda configs: train_all(configs, seeds, **options)


def _table(name, title, results, cells, columns, rows, out):
    plans = {task: {} for task in dict.fromkeys(runs.config.task for _, runs in results)}
    for row, runs in results:
        plans[runs.config.task][row.label] = runs.config.plan
    notes = [f"{task}: A(1x) stands for A({n}x): many steps, as in the paper, which does not say how many"
             for task in plans if (n := paper.attention_steps(task)) > 1]
    if (fewest := min(len(runs.seeds) for _, runs in results)) < paper.SEEDS:
        notes.append(f"verdicts are meant for {paper.SEEDS} seeds, not for {fewest}")
    lost = [tables.diverged_text(run) for _, group in results for run in group.runs if run.diverged]
    text, written = _write_table(name, title, cells, columns, rows, notes, out)
    return Made("\n".join([text, *lost]), written, {"cells": cells, "plans": plans},
                sum(group.diverged for _, group in results))


def _write_table(name, title, cells, columns, rows, notes, out):
    """Write a table as CSV, Markdown and LaTeX; return its text and the paths."""
    written = _write(out, {
        f"{name}.csv": tables.cells_csv(cells, columns),
        f"{name}.md": "\n\n".join([title, tables.markdown_table(*rows), *notes]).rstrip() + "\n",
        f"{name}.tex": tables.latex_table(*rows, ". ".join([title, *notes])),
    })
    return "\n".join([title, "", tables.text_table(*rows), *notes]), written


def fig1(seeds=range(paper.SEEDS), **options):
    """Figure 1: the automaton of the occurrence language, the lag of joint GD, the plans, and what they reach.

    Writes fig1.png, fig1.pdf and fig1.csv to ``out``; seeds are shared with `table1`.
    """
    return _figure("fig1", seeds, **options)


def fig2(seeds=range(paper.SEEDS), **options):
    """Figure 2: gaps and test accuracy on occurrence along joint GD, three phases, and attention first.

    Writes fig2.png, fig2.pdf and fig2.csv to ``out``; seeds are shared with `table1`.
    """
    return _figure("fig2", seeds, **options)


def fig3(seeds=range(paper.SEEDS), **options):
    """Figure 3: attention and output gap on AND, even pairs, ICL-bigram and SLR along five plans.

    Writes fig3.png, fig3.pdf and fig3.csv to ``out``; seeds are shared with `table1`.
    """
    return _figure("fig3", seeds, **options)


def fig4(seeds=range(paper.SEEDS), **options):
    """Figure 4: the gaps of AND head by head, ranked in each run by the gap they reach at the end.

    Writes fig4.png, fig4.pdf and fig4.csv to ``out``; seeds are shared with `table1`.
    """
    return _figure("fig4", seeds, **options)


def fig5(seeds=range(paper.SEEDS), **options):
    """Figure 5: attention and output gap on occurrence and OR along five plans.

    Writes fig5.png, fig5.pdf and fig5.csv to ``out``; seeds are shared with `table1`.
    """
    return _figure("fig5", seeds, **options)


@dataclass(frozen=True)
class Drawing:
    """A figure, its data as CSV, the (title, `Runs`) of its panels, and a text of its main numbers."""

    figure: object
    data: str
    panels: list
    text: str = ""


def drawing(name, find):
    """The `Drawing` of one of ``FIGURES``; ``find(configs)`` gives the `Runs` of each configuration, in order."""
    return FIGURES[name](find)


def _draw1(find):
    wanted = [("joint GD", "Joint GD"), *(("{plan}", row) for row in (THREE_PHASES, "A(1x)->O", "A", "O"))]
    panels = _panels("occurrence", wanted, find)
    (_, joint), *others = panels
    figure = overview.overview_figure(joint, {runs.config.plan: runs for _, runs in others})
    return Drawing(figure, figures.gaps_csv([("gap", panels)], figures.GAPS), panels)


def _draw2(find):
    panels = _panels("occurrence", FIGURE2, find)
    rows = [("gap, accuracy", panels)]
    text = _crossings_text(panels[0][1].summary(), len(panels[0][1]))
    return Drawing(figures.gaps_figure(rows), figures.gaps_csv(rows), panels, text)


def _draw4(find):
    panels = _panels("and", FIVE_PLANS, find)
    return Drawing(figures.heads_figure(panels), figures.heads_csv(panels), panels)


def _draw_tasks(tasks, find):
    """A row of five plans for each (label, task)."""
    rows = [(f"gap on {label}", _panels(task, FIVE_PLANS, find)) for label, task in tasks]
    panels = [panel for _, row in rows for panel in row]
    return Drawing(figures.gaps_figure(rows, figures.GAPS), figures.gaps_csv(rows, figures.GAPS), panels)


FIGURES = {"fig1": _draw1, "fig2": _draw2, "fig3": partial(_draw_tasks, FIGURE3), "fig4": _draw4,
           "fig5": partial(_draw_tasks, FIGURE5)}
MAKERS = {"table1": table1, "table2": table2, "table5": table5, "fig1": fig1, "fig2": fig2, "fig3": fig3,
          "fig4": fig4, "fig5": fig5}


def _panels(task, wanted, find):
    """(title, `Runs`) of the wanted (title, row of Table 1), {plan} and {layers} of the plan trained filled in."""
    by_label = {row.label: config for row, config in paper.configurations(task)}
    configs = [by_label[label] for _, label in wanted]
    runs = find(configs)
    return [(title.format(plan=group.config.plan, layers=_layers(group.config.plan)), group)
            for (title, _), group in zip(wanted, runs, strict=True)]


def _layers(plan):
    """The plan without its numbers of steps."""
    return "->".join(phase.layers for phase in parse_plan(plan).phases)


def _figure(name, seeds, *, jobs=None, progress=False, out="results"):
    """Write a figure and its data; say what the runs of each panel ended with."""
    drawn = drawing(name, _trained(parse_seeds(seeds), jobs=jobs, progress=progress, out=out))
    written = figures.save_figure(name, drawn.figure, drawn.data, out)
    ends = tables.text_table(*tables.ends_rows(drawn.panels))
    lost = [tables.diverged_text(run) for _, group in drawn.panels for run in group.runs if run.diverged]
    values = {"panels": [{"task": group.config.task, "panel": title, "plan": group.config.plan, **group.summary()}
                         for title, group in drawn.panels]}
    return Made("\n\n".join(filter(None, [drawn.text, ends, "\n".join(lost)])), written, values,
                sum(group.diverged for _, group in drawn.panels))


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
