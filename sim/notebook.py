"""What results look like in a notebook: the same as in a terminal, with tables as HTML tables."""

import base64
import re
from html import escape
from pathlib import Path


def html(text, pictures=()):
    """HTML of a text: tables, whose header is underlined by dashes, become tables, and PNG files are put below.

    Examples
    --------
    >>> html("two runs")
    '<pre>two runs</pre>'
    >>> html("a  b\\n-  -\\n1  x")
    '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>x</td></tr></tbody></table>'
    """
    lines, parts, plain = text.split("\n"), [], []

    def put_plain():
        if any(plain):
            parts.append("<pre>" + escape("\n".join(plain).strip("\n")) + "</pre>")
        plain.clear()

    while lines:
        if len(lines) > 1 and re.fullmatch(r"-+(  -+)*", lines[1]):
            put_plain()
            spans = [match.span() for match in re.finditer("-+", lines[1])]
            header, _, *rest = lines
            rows = rest[: next((i for i, line in enumerate(rest) if not _in_columns(line, spans)), len(rest))]
            lines = rest[len(rows) :]
            body = "".join(_row(line, spans, "td") for line in rows)
            parts.append(f"<table><thead>{_row(header, spans, 'th')}</thead><tbody>{body}</tbody></table>")
        else:
            plain.append(lines.pop(0))
    put_plain()
    for path in pictures:
        data = base64.b64encode(Path(path).read_bytes()).decode()
        parts.append(f'<img alt="{escape(Path(path).stem)}" src="data:image/png;base64,{data}">')
    return "".join(parts)


def _in_columns(line, spans):
    """Is a line one of the table's: not empty, and nothing between the columns?"""
    gaps = zip([end for _, end in spans], [start for start, _ in spans[1:]], strict=False)
    return bool(line.strip()) and len(line) <= spans[-1][1] and all(not line[a:b].strip() for a, b in gaps)


def _row(line, spans, cell):
    return "<tr>" + "".join(f"<{cell}>{escape(line[a:b].strip())}</{cell}>" for a, b in spans) + "</tr>"
