"""Results as text for a terminal and as Markdown for a page."""

from dataclasses import dataclass

import numpy as np

SYMBOLS = {"train_words": "N", "heads": "H", "pairs": "T", "tokens": "L", "max_length": "L_max"}


@dataclass(frozen=True)
class Table:
    """What a table says, and its cells."""

    caption: str
    header: tuple
    rows: list

    def cells(self):
        return [[str(cell) for cell in row] for row in (self.header, *self.rows)]


def number(value, digits=3):
    """So many digits, and no exponent.

    >>> number(12345.6), number(0.012345), number(2)
    ('12300', '0.0123', '2')
    """
    return np.format_float_positional(value, precision=digits, fractional=False, trim="-")


def symbol(name):
    """What a setting is called in formulas."""
    return SYMBOLS.get(name, name)


def size_text(size):
    """``{"train_words": 100, "d": 50}`` as N = 100, d = 50."""
    return ", ".join(value if name == "task" else f"{symbol(name)} = {value}" for name, value in size.items())


def text(part):
    """A part for a terminal: numbers to the right, the first column to the left."""
    if isinstance(part, str):
        return part
    table = part.cells()
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [part.caption]
    for first, *rest in table:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def markdown(part):
    """The same for a page."""
    from sim.tables import markdown_table

    if isinstance(part, str):
        return part + "\n"
    header, *rows = part.cells()
    table = markdown_table(header, rows).split("\n")
    table[1] = "| --- |" + " ---: |" * (len(header) - 1)
    return "\n".join([part.caption, "", *table])


def machine_text(machine):
    """On what something was measured, in one line."""
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in machine["versions"].items())
    return f"{machine['cpu']} ({', '.join(machine['features'])}), {machine['cores']} cores; {versions}"
