"""The sections of the report: each a function of the results that gives markup, and notes what is missing."""

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from .. import paper, reproduce, tables
from ..studies import FIGURES, study
from ..studies.figure_data import FigureData
from . import theory
from .inline_svg import inline_svg
from .markup import command, disclosure, download, element, items, scrolling, table, together
from .results import STATUSES, Missing, Results

MOST_OTHERS = 200  # configurations besides the paper's that are listed
MOST_ROWS = 300  # of a figure's data that are shown as a table
STEPS = {0, *(digit * 10**power for power in range(8) for digit in (1, 2, 5))}  # whose values are shown
BINS = 60  # steps of a factor of ten that are kept for download
JUDGED = ("match", "near", "off")


@dataclass
class Draft:
    """The report in the making.

    Attributes
    ----------
    results : `Results`
    missing : [(what, command that makes it), ...]
    verdicts : {table: Counter of verdicts}
    drawn : {figure of the paper: seeds of its runs}
    """

    results: Results
    missing: list = field(default_factory=list)
    verdicts: dict = field(default_factory=dict)
    drawn: dict = field(default_factory=dict)

    def make(self, what, text):
        """Note that something is missing, and the command that makes it."""
        self.missing.append((what, f"attnlag {text} --out {self.folder}"))

    @property
    def folder(self):
        return shlex.quote(str(self.results.folder))


# ---- what was run ----------------------------------------------------------------------------------------------------


def settings(draft):
    """Data, plans, rates and seeds of all runs."""
    results, parts = draft.results, []
    rates = [together("η", element("sub", layer)) for layer in "AO"]
    header = ["row of Table 1", "plan", "init, scale", *rates, "steps at most", "seeds", "diverged"]
    for task, rows in results.rows.items():
        lines = [[arrows(row.label), arrows(runs.config.plan), _init(runs.config), _list(runs.config.rate_a),
                  _list(runs.config.rate_o), ", ".join(map(str, runs.config.steps)), spans(runs.seeds), runs.diverged]
                 for row, runs in rows]
        parts += [element("h3", task), element("p", rows[0][1].task.describe()),
                  table(f"{task}: plans and rates", header, lines)]
    if results.others:
        listed = results.others[:MOST_OTHERS]
        lines = [[config.task, arrows(config.plan), spans(results.heads[config]),
                  sum(head["status"] == "diverged" for head in results.heads[config].values()),
                  command(run_command(config, results.heads[config]))] for config in listed]
        text = f"{len(results.others)} other configurations: of figures, sweeps and runs of one's own"
        more = len(results.others) - len(listed)
        parts += [element("h3", "Other runs"), disclosure(
            text, table("Other runs, with the command that repeats them",
                        ["task", "plan", "seeds", "diverged", "command"], lines),
            element("p", f"{more} more are not listed.") if more else None)]
    return together(*parts or [element("p", "The folder holds no runs.")])


def run_command(config, seeds):
    """The `attnlag run` that repeats a configuration."""
    from ..commands.flags import RUN_FLAGS, keyword

    given = config.to_dict()
    open_ended = {steps for phase, steps in zip(config.plan.split("->"), config.steps, strict=True) if "(" not in phase}
    given["steps"] = open_ended.pop() if len(open_ended) == 1 else None
    words = ["attnlag", "run", config.task, "--plan", config.plan, "--seeds", spans(seeds, dash=None)]
    for flag in RUN_FLAGS:
        value = given.get(keyword(flag))
        if value not in (None, [], ()):
            words += [flag, ",".join(map(repr, value)) if isinstance(value, list) else str(value)]
    return shlex.join(words)


# ---- the paper's tables ----------------------------------------------------------------------------------------------


def paper_tables(draft):
    """Tables 1, 2 and 5 beside the published numbers."""
    rows = draft.results.rows
    absent = [task for task in paper.TASKS if len(rows.get(task, ())) < len(paper.ROWS)]
    if absent:
        which = "" if len(absent) == len(paper.TASKS) else f" --tasks {','.join(absent)}"
        gaps = ", ".join(f"{task} ({len(rows.get(task, ()))} of {len(paper.ROWS)} plans there)" for task in absent)
        draft.make(f"Tables 1, 2 and 5: {gaps}", f"reproduce table1{which}")
    results = [pair for pairs in rows.values() for pair in pairs]
    if not results:
        return element("p", "No runs of the paper's tables are stored.")
    one, five = tables.table1_cells(results), tables.table5_cells(results)
    two = [cell for task, pairs in rows.items()
           for cell in tables.table2_cells([task], sorted({seed for _, runs in pairs for seed in runs.seeds}))]
    draft.verdicts |= {name: Counter(cell["verdict"] for cell in cells)
                       for name, cells in (("Table 1", one), ("Table 2", two), ("Table 5", five))}
    seeds = {(runs.config.task, row.label): spans(runs.seeds) for row, runs in results}
    lost = [tables.diverged_text(run) for _, runs in results for run in runs.runs if run.diverged]
    return together(
        element("p", "Verdicts: ", verdict("match"), " within max(0.02, 0.005 + two standard errors of both means), ",
                verdict("near"), " within twice that, else ", verdict("off"),
                ". A bound matches when our mean is below it. They are meant for ", paper.SEEDS, " seeds."),
        element("h3", "Table 1"),
        _paired("Table 1: mean ± standard deviation over seeds", seeds, tables.table1_rows(one)),
        items(*lost) if lost else None,
        element("h3", "Table 2"),
        _by_task("Table 2: the initializations as printed, and the spread of the entries that our runs start from",
                 *tables.table2_rows(two)),
        element("h3", "Table 5"),
        _paired("Table 5: standard deviation over seeds", seeds, tables.table5_rows(five)),
    )


def _paired(caption, seeds, rows):
    """A table of two numbers (ours, paper, diff, verdict each) for each task and plan."""
    (_, plan, *names), lines = rows
    header = [plan, "seeds", *((names[i], ["ours", *names[i + 1 : i + 4]]) for i in range(0, len(names), 4))]
    verdicts = {i for i, name in enumerate(names, 2) if name == "verdict"}
    shown = [[task, arrows(plan), seeds[task, plan],
              *(verdict(cell) if i in verdicts else cell for i, cell in enumerate(cells, 2))]
             for task, plan, *cells in lines]
    return table(caption, header, None, _grouped(shown))


def _by_task(caption, header, rows):
    return table(caption, header[1:], None, _grouped([[*row[:-1], verdict(row[-1])] for row in rows]))


def _grouped(rows):
    """Rows by their first cell."""
    return [(heading, [row[1:] for row in part]) for heading, part in groupby(rows, lambda row: row[0])]


def verdict(word):
    """A verdict, told by its word and by its colour."""
    kind = word if word in (*JUDGED, *STATUSES) else "lost" if "diverged" in word else "none"
    return element("span", word, class_=f"verdict {kind}")


# ---- figures ---------------------------------------------------------------------------------------------------------


def paper_figures(draft):
    """Figures 1 to 5, drawn from the stored runs."""
    parts = []
    for name in reproduce.FIGURES:
        title = f"Figure {name.removeprefix('fig')}"
        try:
            drawn = reproduce.drawing(name, draft.results.find)
        except Missing as missing:
            draft.make(f"{title}: {missing}", f"reproduce {name}")
            continue
        caption = (reproduce.MAKERS[name].__doc__ or title).splitlines()[0]  # python -OO has no docstrings
        header, ends = tables.ends_rows(drawn.panels)
        told = "; ".join(", ".join(f"{key} {cell}" for key, cell in zip(header, row, strict=True)) for row in ends)
        shown = table(f"{title}: where the runs end", header, [[arrows(cell) for cell in row] for row in ends])
        seeds = " and ".join(dict.fromkeys(spans(runs.seeds, "–\u2060") for _, runs in drawn.panels))
        draft.drawn[name] = {seed for _, runs in drawn.panels for seed in runs.seeds}
        numbers = together(element("pre", drawn.text) if drawn.text else None, shown)
        parts.append(figure(name, title, drawn.figure, f"{caption} Seeds {seeds}.",
                            f"{drawn.text} At the end: {told}.", drawn.data, numbers))
    return together(*parts or [element("p", "No runs of the paper's figures are stored.")])


def study_figures(draft):
    """The figures of `attnlag draw` whose data are there."""
    results, parts = draft.results, []
    for name, data in results.studies.items():
        def add(name=name, data=data):
            chosen, caption = study(name), FIGURES[name][0].upper() + FIGURES[name][1:] + "."
            told = [f"{key}: {_values(value)}" for key, value in chosen.summary(data).items()]
            title = name.replace("-", " ").capitalize()
            parts.append(figure(name, title, chosen.draw(data), caption, "; ".join(told), data.csv(), items(*told)))

        results.careful(f"{name}.csv", add)
    absent = [name for name in FIGURES if name not in results.studies]
    if absent:
        draft.make(f"Other figures: {', '.join(absent)}", "draw NAME")
    return together(*parts or [element("p", "None is there.")])


def figure(key, title, drawn, caption, description, data, numbers):
    """A heading, the drawing, its caption, and its data on demand."""
    drawing = scrolling(inline_svg(drawn, key, caption, description), f"{title}, drawing")
    return together(
        element("h3", title),
        element("figure", drawing, element("figcaption", caption),
                disclosure(f"Numbers and data of {title}", numbers, data_table(key, title, data)), id=key))


def data_table(key, title, text):
    """Rows of a figure's data as a table, and all that the drawing shows for download."""
    data = FigureData.from_csv(text)
    kept = thinned(data)
    few = _rows(data, np.isin(data["step"], list(STEPS)) | _last(data)) if "step" in data.columns else kept
    if len(few) > MOST_ROWS:
        few = _rows(few, np.linspace(0, len(few) - 1, MOST_ROWS).round().astype(int))
    lines = [[_cell(value) for value in row] for row in zip(*few.columns.values(), strict=True)]
    shown = table(f"{title}: data, {len(few)} of {len(data)} rows", list(few.columns), lines)
    size = "all rows" if len(kept) == len(data) else f"{len(kept)} of {len(data)} rows, evenly over the drawing"
    return together(element("p", download(kept.csv(), f"{key}.csv", f"{key}.csv"), f" ({size})"), shown)


def thinned(data):
    """The rows of a figure over steps that the eye can tell apart on its logarithmic axis; six digits."""
    if "step" in data.columns:
        data = _rows(data, np.isin(data["step"], _spread(data["step"])) | _last(data))
    return FigureData({name: column if column.dtype.kind == "U" else np.array([float(f"{x:.6g}") for x in column])
                       for name, column in data.columns.items()})


def _spread(steps):
    """Steps out of those given, at most ``BINS`` in a factor of ten."""
    different = np.unique(steps[np.isfinite(steps)])
    bins = np.round(BINS * np.log10(np.maximum(different, 0.5)))
    return different[np.unique(bins, return_index=True)[1]]


def _last(data):
    """Rows with the largest step of their panel."""
    labels = [column for name, column in data.columns.items() if name != "step" and column.dtype.kind == "U"]
    keys = list(zip(*labels, strict=True)) if labels else [()] * len(data)
    largest = {}
    for key, step in zip(keys, data["step"], strict=True):
        largest[key] = max(step, largest.get(key, step))
    return np.array([step == largest[key] for key, step in zip(keys, data["step"], strict=True)], dtype=bool)


def _rows(data, chosen):
    return FigureData({name: column[chosen] for name, column in data.columns.items()})


# ---- theory and claims -----------------------------------------------------------------------------------------------


def theory_and_runs(draft):
    """Closed forms and trajectories on infinite data beside the runs."""
    known = theory.known(draft.results.rows)
    if not known:
        draft.make("Theory against simulation: no runs of a task whose dynamics on infinite data are known",
                   "reproduce table1")
        return element("p", "No runs are stored of a task whose dynamics on infinite data are known.")
    parts = [element("p", "Infinite data, from zero init, beside the runs on samples. From zero init the runs differ "
                          "from it by sampling; from random init also by their start.")]
    for task, pairs in known.items():
        parts += [element("h3", task), _closed_forms(task, draft.results.rows[task]),
                  table(f"{task}: infinite data and runs at the ends of phases", theory.HEADER, None,
                        _grouped([[arrows(cell) for cell in row] for row in theory.end_rows(pairs)]))]
    drawn = theory.trajectories(known)
    if drawn is not None:
        drawing, data, told = drawn
        caption = "Gaps of the runs (mean and standard deviation over seeds) and, as thin lines, on infinite data."
        parts.append(figure("trajectories", "Trajectories", drawing, caption, "; ".join(told), data, items(*told)))
    return together(*parts)


def _closed_forms(task, rows):
    header, lines = theory.closed_forms(rows)
    return table(f"{task}: closed forms of the three-phase plan", header, lines) if lines else None


def claims(draft):
    """Claims with status, evidence and slack, as `attnlag prove` stored them."""
    found = draft.results.claims
    if found is None:
        draft.make("Claims", "prove")
        return element("p", "No claims are stored.")
    groups = [(name, [_claim(claim) for claim in part])
              for name, part in groupby(found, lambda claim: claim["id"].split(".")[0])]
    return together(
        element("p", f"{len(found)} claims: {counted(Counter(claim['status'] for claim in found), STATUSES)}. "
                     "A status is the strongest evidence that held: proved (for all parameters, by computer algebra), "
                     "certified (rigorous enclosures), enumerated (exact, small instances), simulated (compared with "
                     "runs); refuted as soon as one piece fails. Deviations are shown with what is allowed."),
        table("Claims of the theory", ["claim", "status", "deviation (allowed), slack", "evidence"], None, groups))


def _claim(claim):
    pieces = claim["evidence"]
    measured = [_measured(piece) for piece in pieces if piece["slack"] is not None]
    held = Counter(piece["kind"] for piece in pieces if piece["held"])
    kinds = [f"{kind} {n}×" if n > 1 else kind for kind, n in held.items()]
    kinds += [f"{piece['kind']} fails" for piece in pieces if piece["held"] is False]
    told = items(*(f"{piece['kind']}: {piece['reason']}" for piece in pieces))
    against = claim.get("counterexample")
    return [
        together(element("code", claim["id"]), element("p", claim["statement"]),
                 element("p", f"Counterexample: {', '.join(f'{k} = {v}' for k, v in against.items())}")
                 if against else None),
        verdict(claim["status"]), "; ".join(measured) or "-",
        disclosure(", ".join(kinds) or "nothing was run", told),
    ]


def _measured(piece):
    slack, tolerance = piece["slack"], piece["tolerance"]
    return f"slack {slack:.2g}" if tolerance is None else f"{slack:.2g} ({tolerance:.2g})"


# ---- how to repeat it ------------------------------------------------------------------------------------------------


def repeat(draft):
    """Versions, seeds and commands."""
    results, lines = draft.results, []
    for seeds, tasks in _by_seeds(results.rows).items():
        chosen = "" if len(tasks) == len(paper.TASKS) else f" --tasks {','.join(tasks)}"
        for name in ("table1", "table2", "table5"):
            lines.append(f"attnlag reproduce {name}{chosen} --seeds {seeds} --out {draft.folder}")
    lines += [f"attnlag reproduce {name} --seeds {spans(seeds, dash=None)} --out {draft.folder}"
              for name, seeds in draft.drawn.items()]
    lines += [f"attnlag draw {name} --out {draft.folder}" for name in results.studies]
    lines += [f"attnlag prove --out {draft.folder}"] if results.claims is not None else []
    lines.append(f"attnlag report {draft.folder}")
    versions = results.versions
    names = list(dict.fromkeys(name for found, _ in versions for name in found))
    return together(
        element("p", "The same versions on the same kind of CPU give the same bits; data and init depend on the seed "
                     "alone. What is there is not trained again."),
        scrolling(element("pre", "\n".join(lines)), "Commands"),
        table("Versions that made the runs", [*names, "runs"],
              [[*(found.get(name, "-") for name in names), count] for found, count in versions]) if versions else None)


def _by_seeds(rows):
    """{seeds: tasks whose runs have these}."""
    found = {}
    for task, pairs in rows.items():
        seeds = spans({seed for _, runs in pairs for seed in runs.seeds}, dash=None)
        found.setdefault(seeds, []).append(task)
    return found


# ---- texts -----------------------------------------------------------------------------------------------------------


def spans(seeds, dash="–"):
    """Seeds as a reader writes them, "0–4, 7"; with ``dash=None`` as --seeds takes them, "0:5" or "0,1,7".

    >>> spans([0, 1, 2, 7]), spans([0, 1, 2], None), spans([0, 2], None), spans([3], None)
    ('0–2, 7', '0:3', '0,2', '3:4')
    """
    seeds = sorted(seeds)
    parts = [[seed for _, seed in part] for _, part in groupby(enumerate(seeds), lambda pair: pair[1] - pair[0])]
    if dash is None:
        return f"{seeds[0]}:{seeds[-1] + 1}" if len(parts) == 1 else ",".join(map(str, seeds))
    return ", ".join(f"{part[0]}{dash}{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def counted(counts, order):
    """ "3 match, 1 off" """
    return ", ".join(f"{counts[name]} {name}" for name in order if counts.get(name)) or "none"


def arrows(text):
    return text.replace("->", "→") if isinstance(text, str) else text


def _init(config):
    return config.init if config.init == "zero" else f"{config.init}, {_list(dict.fromkeys(config.init_scale))}"


def _list(values):
    return ", ".join(f"{value:g}" for value in values) or "-"


def _values(value):
    if isinstance(value, list):
        return ", ".join(map(_values, value))
    return "-" if value is None else f"{value:.4g}"


def _cell(value):
    return re.sub("^nan$", "", f"{value:.6g}") if not isinstance(value, str) else arrows(value)
