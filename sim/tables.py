"""Tables from finished runs: text for terminals, Markdown, LaTeX and CSV."""

import csv
import io

import numpy as np

from . import paper

COLUMNS = ("plan", "task", "metric", "mean", "std", "n", "diverged", "paper", "paper_std", "is_bound", "diff", "tol",
           "verdict")


def table1_cells(results):
    """One dictionary (keys `COLUMNS`) for every number of Table 1.

    Parameters
    ----------
    results : list of (`paper.Row`, `Runs`); mean and std (ddof = 1) are over the runs that did not diverge
    """
    cells = []
    for row, runs in results:
        ended = [run for run in runs.runs if not run.diverged]
        for metric, name in (("train_loss", "train_loss"), ("test_metric", runs.task.test_metric)):
            values = np.array([getattr(run, metric)[-1] for run in ended])
            mean = float(values.mean()) if len(values) else None
            std = float(values.std(ddof=1)) if len(values) > 1 else 0.0 if len(values) else None
            number = paper.published().get((row.published, runs.config.task, metric))
            diff, tol, verdict = paper.verdict(mean, std, len(values), runs.diverged, number)
            cells.append({
                "plan": row.label, "task": runs.config.task, "metric": name, "mean": mean, "std": std,
                "n": len(values), "diverged": runs.diverged,
                "paper": number and number.value, "paper_std": number and number.std,
                "is_bound": number and int(number.is_bound), "diff": diff, "tol": tol, "verdict": verdict,
            })
    return cells


def cells_csv(cells):
    """CSV text of `table1_cells`; full precision, empty where a value is undefined."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in cell.items()} for cell in cells)
    return text.getvalue()


def table1_rows(cells):
    """Header and rows of strings: a line for each plan and task, loss and test metric side by side."""
    header = ["task", "plan", "train loss", "paper", "diff", "verdict", "test accuracy", "paper", "diff", "verdict"]
    lines = {}
    for cell in cells:
        lines.setdefault((cell["task"], cell["plan"]), [cell["task"], cell["plan"]]).extend([
            _mean_std(cell), _paper(cell), _signed(cell["diff"]), cell["verdict"],
        ])
    return header, list(lines.values())


def text_table(header, rows):
    """Aligned columns for a terminal."""
    table = [header, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def markdown_table(header, rows):
    """A Markdown table."""
    escape = [[cell.replace("|", "\\|") for cell in row] for row in (header, ["---"] * len(header), *rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in escape) + "\n"


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
    q = runs.task.positive_probability(runs.task.length_law(config.length))
    lines = [
        f"{config.task}, plan {config.plan}: d {config.d}, targets {config.targets}, heads {config.heads}, "
        f"init {config.init}, eta_A {_list(config.rate_a)}, eta_O {_list(config.rate_o)}",
        f"{config.train_words} train and {config.test_words} test words, length {config.length}, P(y=+1) {q:.6g}",
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
            ",".join(map(str, run.phase_ends)) or "-",
            _step(row["step_attention_01"]), _step(row["step_attention_09"]),
        ])
    summary = runs.summary()
    for name in ("mean", "std"):
        values = summary[name]
        rows.append([name, "", *(_number(values[key]) for key in ("train_loss", metric, "attention_gap", "output_gap")),
                     "", _step(values["step_attention_01"]), _step(values["step_attention_09"])])
    lines.append(text_table(header, rows))
    lines += [diverged_text(run) for run in runs.runs if run.diverged]
    return "\n".join(lines)


def diverged_text(run):
    """One line that says when and under which rates a run diverged."""
    at = run.diverged
    return (f"seed {run.seed} diverged at step {at['step']} (phase {at['phase']}: "
            f"eta_A {at['rate_a']:g}, eta_O {at['rate_o']:g})")


def _mean_std(cell):
    if cell["mean"] is None:
        return "diverged"
    return f"{_number(cell['mean'])} ± {_number(cell['std'], 2)}"


def _paper(cell):
    if cell["paper"] is None:
        return "-"
    sign = "< " if cell["is_bound"] else ""
    spread = "" if cell["paper_std"] is None else f" ± {cell['paper_std']:g}"
    return f"{sign}{cell['paper']:g}{spread}"


def _signed(value):
    return "-" if value is None else f"{value:+.4f}"


def _number(value, digits=4):
    return "-" if value is None else f"{value:.{digits}g}"


def _step(value):
    return "-" if value is None else f"{value:.4g}"


def _list(values):
    return ", ".join(f"{value:g}" for value in values) or "-"


def _latex(text):
    return (text.replace("&", r"\&").replace("_", r"\_").replace("->", r"$\to$").replace("±", r"$\pm$")
            .replace("< ", "$<$ ").replace(" | ", " $|$ "))
