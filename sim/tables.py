"""Tables from finished runs: text for terminals, Markdown, LaTeX and CSV."""

import csv
import io
import re

import numpy as np

from . import paper

TABLE1 = ("plan", "task", "metric", "mean", "std", "n", "diverged", "paper", "paper_std", "is_bound", "diff", "tol",
          "verdict")
TABLE2 = ("task", "init", "printed", "paper_std", "layers", "n", "std_attention", "std_output", "verdict")
TABLE5 = ("plan", "task", "metric", "std", "n", "diverged", "paper_std", "is_bound", "diff", "tol", "verdict")


def table1_cells(results):
    """One dictionary (keys `TABLE1`) for every number of Table 1.

    Parameters
    ----------
    results : list of (`paper.Row`, `Runs`); mean and std (ddof = 1) are over the runs that did not diverge
    """
    cells = []
    for cell, mean, std, number in _ends(results):
        diff, tol, verdict = paper.verdict(mean, std, cell["n"], cell["diverged"], number)
        cells.append({
            **cell, "mean": mean, "std": std, "paper": number and number.value, "paper_std": number and number.std,
            "is_bound": number and int(number.is_bound), "diff": diff, "tol": tol, "verdict": verdict,
        })
    return cells


def table5_cells(results):
    """One dictionary (keys `TABLE5`) for every standard deviation of Table 5; parameters as in `table1_cells`."""
    cells = []
    for cell, _, std, number in _ends(results):
        diff, tol, verdict = paper.std_verdict(std, cell["n"], cell["diverged"], number)
        printed = number and number.std
        cells.append({
            **cell, "std": std, "paper_std": printed, "is_bound": None if printed is None else int(number.std_is_bound),
            "diff": diff, "tol": tol, "verdict": verdict,
        })
    return cells


def _ends(results):
    """(what a cell is about, mean, std, `Published` or None) of the last records, row by row and metric by metric."""
    for row, runs in results:
        ended = [run for run in runs.runs if not run.diverged]
        for metric, name in (("train_loss", "train_loss"), ("test_metric", runs.task.test_metric)):
            values = np.array([getattr(run, metric)[-1] for run in ended])
            cell = {"plan": row.label, "task": runs.config.task, "metric": name, "n": len(values),
                    "diverged": runs.diverged}
            mean = float(values.mean()) if len(values) else None
            std = float(values.std(ddof=1)) if len(values) > 1 else None
            yield cell, mean, std, paper.published().get((row.published, runs.config.task, metric))


def cells_csv(cells, columns):
    """CSV text of `table1_cells` or `table5_cells`; full precision, empty where a value is undefined."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in cell.items()} for cell in cells)
    return text.getvalue()


def table1_rows(cells):
    """Header and rows of strings: a line for each plan and task, loss and test metric side by side."""
    return _side_by_side(cells, ("train loss", "test metric"), _mean_std, _paper)


def table5_rows(cells):
    """The same for the standard deviations of Table 5."""
    def ours(cell):
        return _number(cell["std"], 2)

    def printed(cell):
        return "-" if cell["paper_std"] is None else ("≤ " if cell["is_bound"] else "") + _printed(cell["paper_std"])

    return _side_by_side(cells, ("std of train loss", "std of test metric"), ours, printed)


def _side_by_side(cells, names, ours, printed):
    header = ["task", "plan", *(column for name in names for column in (name, "paper", "diff", "verdict"))]
    lines = {}
    for cell in cells:
        lines.setdefault((cell["task"], cell["plan"]), [cell["task"], cell["plan"]]).extend([
            ours(cell), printed(cell), _signed(cell["diff"]), cell["verdict"],
        ])
    return header, list(lines.values())


def ends_rows(panels):
    """Header and rows of strings: what the runs of each (title, `Runs`) end with, mean ± standard deviation."""
    rows = []
    for title, runs in panels:
        names = ("train_loss", runs.task.test_metric, "attention_gap", "output_gap")
        summary = runs.summary()
        ends = ({"mean": summary["mean"][name], "std": summary["std"][name]} for name in names)
        lost = "diverged" if runs.diverged else "-"  # or it does not exist in every run
        rows.append([runs.config.task, title, *(_mean_std(end, lost) for end in ends)])
    return ["task", "panel", "train loss", "test metric", "attention gap", "output gap"], rows


def table2_cells(tasks, seeds):
    """One dictionary (keys `TABLE2`) for each task and init: what is printed, and the entries our runs start from."""
    cells = []
    for task in tasks:
        for row, config in paper.configurations(task)[-2:]:  # the same plan from both inits
            model, printed = config.make_task(), paper.initializations()[task, row.init]
            states = [model.initial(seed, config.init, config.init_scale) for seed in seeds]
            layers = [np.concatenate([state[i].ravel() for state in states]) for i in range(2)]
            std = printed.scale and printed.std(model)
            verdicts = {paper.init_verdict(entries, std) for entries in layers}
            cells.append({
                "task": task, "init": row.init, "printed": printed.printed or None, "paper_std": std,
                "layers": ", ".join(model.layers), "n": len(seeds),
                "std_attention": float(layers[0].std()), "std_output": float(layers[1].std()),
                "verdict": verdicts.pop() if len(verdicts) == 1 else "off",
            })
    return cells


def table2_rows(cells):
    """Header and rows of strings."""
    header = ["task", "init", "paper", "parameters", "std of attention", "std of output", "verdict"]
    return header, [[cell["task"], cell["init"], cell["printed"] or "-", cell["layers"],
                     _number(cell["std_attention"]), _number(cell["std_output"]), cell["verdict"]] for cell in cells]


def text_table(header, rows):
    """Aligned columns for a terminal."""
    table = [header, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def markdown_table(header, rows):
    """A Markdown table."""
    escape = [[re.sub(r"([\\|*_<])", r"\\\1", cell) for cell in row] for row in (header, *rows)]
    lines = [escape[0], ["---"] * len(header), *escape[1:]]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n"


def latex_table(header, rows, caption):
    """A LaTeX table (packages: booktabs)."""
    def line(row):
        return " & ".join(_latex(cell) for cell in row) + r" \\"

    body = "\n".join(line(row) for row in rows)
    return (
        "\\begin{table}\n\\centering\n\\caption{" + _latex(caption) + "}\n\\begin{tabular}{" + "l" * len(header)
        + "}\n\\toprule\n" + line(header) + "\n\\midrule\n" + body + "\n\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def runs_text(runs):
    """What a set of runs ended with: one line a seed, then mean and standard deviation."""
    config, metric = runs.config, runs.task.test_metric
    lines = [
        f"{config.task}, plan {config.plan}: "
        f"init {config.init}, eta_A {_list(config.rate_a)}, eta_O {_list(config.rate_o)}",
        runs.task.describe(),
        "",
    ]
    header = ["seed", "status", "train loss", metric.replace("_", " "), "attention gap", "output gap", "phase ends",
              "gap > 0.1", "gap > 0.9"]
    rows = []
    for run in runs.runs:
        row = runs.row(run)
        rows.append([
            str(run.seed), run.status, *(_number(row[name]) for name in
                                         ("train_loss", metric, "attention_gap", "output_gap")),
            ",".join(f"{end}{'+' * limit}" for end, limit in zip(run.phase_ends, run.at_limit, strict=True)) or "-",
            _step(row["step_attention_01"]), _step(row["step_attention_09"]),
        ])
    summary = runs.summary()
    for name in ("mean", "std"):
        values = summary[name]
        rows.append([name, "", *(_number(values[key]) for key in ("train_loss", metric, "attention_gap", "output_gap")),
                     "", _step(values["step_attention_01"]), _step(values["step_attention_09"])])
    lines.append(text_table(header, rows))
    if any(any(run.at_limit) for run in runs.runs):
        lines.append("+ the phase ran to its step limit, its loss still changing (--steps)")
    lines += [diverged_text(run) for run in runs.runs if run.diverged]
    return "\n".join(lines)


def stored_text(groups):
    """One line for each `Runs` of a list; ``groups[i]`` prints the runs of line i."""
    rows = []
    for index, runs in enumerate(groups):
        config, mean = runs.config, runs.summary()["mean"]
        rows.append([str(index), config.task, config.plan, config.init, str(len(runs)),
                     str(runs.diverged), _number(mean["train_loss"]), _number(mean[runs.task.test_metric])])
    header = ["", "task", "plan", "init", "seeds", "diverged", "train loss", "test"]
    return text_table(header, rows)


def diverged_text(run):
    """One line that says when and under which rates a run diverged."""
    at = run.diverged
    return (f"seed {run.seed} diverged at step {at['step']} (phase {at['phase']}: "
            f"eta_A {at['rate_a']:g}, eta_O {at['rate_o']:g})")


def _mean_std(cell, missing="diverged"):
    if cell["mean"] is None:
        return missing
    return _number(cell["mean"]) + ("" if cell["std"] is None else f" ± {_number(cell['std'], 2)}")


def _paper(cell):
    if cell["paper"] is None:
        return "-"
    spread = "" if cell["paper_std"] is None else f" ± {_printed(cell['paper_std'])}"
    return ("< " if cell["is_bound"] else "") + _printed(cell["paper"]) + spread


def _printed(value):
    """A number as the paper prints it: two decimals, small bounds as they are."""
    return f"{value:g}" if 0 < value < 0.01 else f"{value:.2f}"


def _signed(value):
    if value is None:
        return "-"
    return f"{value:+.4f}" if abs(value) >= 5e-5 or not value else f"{value:+.0e}"


def _number(value, digits=4):
    return "-" if value is None else f"{value:.{digits}g}"


def _step(value):
    return "-" if value is None else f"{value:.4g}"


def _list(values):
    return ", ".join(f"{value:g}" for value in values) or "-"


_LATEX = str.maketrans({
    **{mark: f"\\{mark}" for mark in "&%$#_{}"}, "\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "→": r"$\to$", "±": r"$\pm$", "≤": r"$\leq$", "<": "$<$", ">": "$>$", "|": "$|$",
})


def _latex(text):
    """Text for LaTeX: special characters escaped, arrows, signs and powers of ten as mathematics."""
    text = text.replace("->", "→").translate(_LATEX)
    text = re.sub(r"(?<=\d)e([+-]?)0*(\d+)", lambda m: rf"$\cdot 10^{{{m[1].strip('+')}{m[2]}}}$", text)
    return re.sub(r"^-(?=\d)", "$-$", text)
