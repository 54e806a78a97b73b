"""Directives of these pages: ``{claims}`` lists claims of the registry, ``{code-cell}`` shows code and its output."""

import re
from html import escape

from cells import run_cell
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from theory_claims import assignment

ID = re.compile(r"\b[a-z_0-9]+\.[a-z_0-9]+\b")


class Claims(SphinxDirective):
    """The statements of some claims, numbered through the page, each under its id as anchor."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        from proofs_check.report import load

        known = load()
        page = self.env.doc2path(self.env.docname)
        with open(page, encoding="utf-8") as file:
            listed = assignment(file.read(), known)
        numbers = {id: number for number, id in enumerate((id for ids in listed.values() for id in ids), 1)}
        return [self.entry(known[id], numbers) for id in listed[self.arguments[0]]]

    def entry(self, claim, numbers):
        box = nodes.container(ids=[claim.id], names=[claim.id], classes=["claim"])
        self.state.document.note_explicit_target(box)
        box += nodes.paragraph("", "", nodes.strong(text=f"Claim {numbers[claim.id]}. "), nodes.literal(text=claim.id))
        box += nodes.paragraph(text=claim.statement)
        box += nodes.math_block(claim.latex, claim.latex, nowrap=False, number=None, label=None)
        source = nodes.paragraph("", "", nodes.emphasis(text="From: "))
        source += _linked(claim.source, numbers)
        box += source
        if claim.domain.hypotheses:
            box += nodes.paragraph("", "", nodes.emphasis(text="If: "), nodes.Text("; ".join(claim.domain.hypotheses)))
        pieces = {}
        for piece in claim.evidence:
            if not piece.deep:
                pieces.setdefault(piece.kind, []).append(piece.title)
        rows = nodes.bullet_list()
        for kind, titles in pieces.items():
            rows += nodes.list_item("", nodes.paragraph("", "", nodes.emphasis(text=f"{kind.capitalize()}: "),
                                                        nodes.Text("; ".join(titles))))
        box += rows
        return box


def _linked(text, numbers):
    """Text in which the ids of claims are links."""
    position = 0
    for match in ID.finditer(text):
        if match.group() in numbers:
            yield nodes.Text(text[position : match.start()])
            yield nodes.reference("", "", nodes.literal(text=match.group()), refid=match.group(), internal=True)
            position = match.end()
    yield nodes.Text(text[position:])


class CodeCell(SphinxDirective):
    """Python code, run with the cells before it on the page, and what it shows."""

    has_content = True
    optional_arguments = 1

    def run(self):
        code = "\n".join(self.content)
        shown = run_cell(code, self.env.temp_data.setdefault("cells", {"__name__": "__main__"}))
        block = nodes.literal_block(code, code, language="python")
        found = [block]
        if shown.text:
            found.append(nodes.literal_block(shown.text, shown.text, language="text", classes=["output"]))
        if shown.html is not None:
            found.append(nodes.raw("", f'<div class="output">{shown.html}</div>', format="html"))
        elif shown.value is not None and not shown.figures:
            found.append(nodes.literal_block(repr(shown.value), repr(shown.value), language="text", classes=["output"]))
        for data in shown.figures:
            alt = escape(f"Figure drawn by: {code.strip().splitlines()[-1]}")
            found.append(nodes.raw("", f'<img alt="{alt}" src="data:image/png;base64,{data}">', format="html"))
        return found


def plain_docstrings(app, what, name, obj, options, lines):
    """Docstrings are written to be read as they are, formulas and tables included: the first line, then the rest."""
    while lines and not lines[-1].strip():
        lines.pop()
    if lines:
        first, rest = lines[0], lines[1:]
        lines[:] = [re.sub(r"([\\*`_|<>])", r"\\\1", first), ""]
        if any(line.strip() for line in rest):
            lines += [".. code-block:: text", "", *("   " + line for line in rest), ""]


def setup(app):
    """Called by Sphinx."""
    app.add_directive("claims", Claims)
    app.add_directive("code-cell", CodeCell)
    app.connect("autodoc-process-docstring", plain_docstrings)
    return {"parallel_read_safe": False}
