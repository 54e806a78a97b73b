"""HTML that is also well-formed XML: elements, tables, disclosures, downloads."""

import base64
from html import escape

VOID = {"meta", "link", "br", "col"}


class Markup(str):
    """Text that is HTML already; any other text is escaped where it is put in."""


def element(name, /, *content, **attributes):
    """An element; ``class_`` is class, ``aria_label`` aria-label; attributes that are None are left out.

    >>> element("a", "x < y", href="#top", class_=None)
    '<a href="#top">x &lt; y</a>'
    """
    names = {key: key.rstrip("_").replace("_", "-") for key in attributes}
    start = "".join(f' {names[key]}="{escape(str(value))}"' for key, value in attributes.items() if value is not None)
    if name in VOID:
        return Markup(f"<{name}{start}/>")
    return Markup(f"<{name}{start}>{together(*content)}</{name}>")


def together(*content):
    """Pieces one after the other; None is nothing."""
    return Markup("".join(piece if isinstance(piece, Markup) else escape(str(piece))
                          for piece in content if piece is not None))


def scrolling(content, label):
    """A part that is scrolled sideways by itself where it is wider than the page, by keyboard too."""
    return element("div", content, class_="wide", role="region", aria_label=label, tabindex="0")


def table(caption, header, rows, groups=None):
    """A data table with caption and scopes.

    Parameters
    ----------
    caption : text
    header : names of columns, or (name, names of its columns) for columns with a heading in common
    rows : lists of texts or markup; the first cell heads its row
    groups : [(heading, rows), ...] in place of ``rows``, each with a heading of its own
    """
    parted = any(isinstance(column, tuple) for column in header)
    first, second = [], []
    for column in header:
        name, below = column if isinstance(column, tuple) else (column, ())
        across = len(below) if below else None
        first.append(element("th", name, scope="colgroup" if below else "col", colspan=across,
                             rowspan="2" if parted and not below else None))
        second += [element("th", each, scope="col") for each in below]
    head = element("thead", element("tr", *first), element("tr", *second) if parted else None)
    width = sum(len(column[1]) if isinstance(column, tuple) else 1 for column in header)
    bodies = []
    for heading, part in groups if groups is not None else [(None, rows)]:
        lines = [element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:]))
                 for row in part]
        if heading is not None:
            lines.insert(0, element("tr", element("th", heading, scope="rowgroup", colspan=width), class_="group"))
        bodies.append(element("tbody", *lines))
    return scrolling(element("table", element("caption", element("span", caption)), head, *bodies), caption)


def disclosure(summary, *content):
    """Content that is shown on demand."""
    return element("details", element("summary", summary), *content)


def download(text, name, label):
    """A link that saves a text as a file, without network."""
    data = base64.b64encode(text.encode()).decode()
    return element("a", label, href=f"data:text/csv;base64,{data}", download=name)


def command(text):
    """A command to type."""
    return element("code", text, class_="command")


def items(*entries):
    """A list."""
    return element("ul", *(element("li", entry) for entry in entries))
