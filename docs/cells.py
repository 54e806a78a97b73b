"""Code cells of MyST pages: found, run in order in one namespace, and what they show."""

import ast
import base64
import io
import re
from contextlib import redirect_stdout
from dataclasses import dataclass

CELL = re.compile(r"```\{code-cell\}[^\n]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """What one cell shows: printed text, the value of its last line as text and as HTML, figures as PNG in base64."""

    text: str
    value: object
    html: str | None
    figures: tuple


def cells(page):
    """The code of each cell of a page's text."""
    return CELL.findall(page)


def run_cell(code, names):
    """Run a cell's code in the namespace ``names``."""
    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(last, "<cell>", "eval"), names)
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    return Shown(out.getvalue(), value, html, tuple(_figures()))


def _figures():
    """The open figures, closed afterwards."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="png", dpi=110, bbox_inches="tight")
        pyplot.close(number)
        yield base64.b64encode(file.getvalue()).decode()
