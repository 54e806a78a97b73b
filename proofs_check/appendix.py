"""An appendix of statements and the key lines of their proofs, numbered and cross-referenced, in Markdown and LaTeX."""

import re

_ID = re.compile(r"\b[a-z_0-9]+\.[a-z_0-9]+\b")
_SPECIAL = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\(<\)",
    ">": r"\(>\)",
    "<=": r"\(\le\)",
    ">=": r"\(\ge\)",
    "->": r"\(\to\)",
}
_GREEK = {name: f"\\{name}" for name in "alpha beta gamma delta Delta eta kappa lambda mu nu rho sigma tau xi".split()}
_GREEK |= {"eps": r"\varepsilon"} | {f"d{name}": f"d{letter}" for name, letter in _GREEK.items()}
_SYMBOL = _GREEK | {"sum": r"\sum", "min": r"\min", "max": r"\max", "ln": r"\ln"}
_SCRIPT = re.compile(r"([_^])(?:\{((?:[^{}]|\{[^{}]*\})*)\}|\(((?:[^()]|\([^()]*\))*)\)|(-?[A-Za-z0-9]+|[+-]))")
_TERM = rf"(?:\b[A-Za-z]+|\b\d+|(?<=[])}}|'*]))(?:{_SCRIPT.pattern})+|\b(?:{'|'.join(_GREEK)})\b"  # a^h_j, )^2, alpha
_PIECE = re.compile(f"{_ID.pattern}|(?P<term>{_TERM})|<=|>=|->|.", re.DOTALL)
_HEAD = r"""% A document around it needs: \usepackage[T1]{fontenc} \usepackage{amsmath,amssymb,amsthm,longtable}
% \usepackage{hyperref}
% \newtheorem{claim}{Claim}
"""
_COLUMNS = ("claim", "d", "k", "length", "rate_o", "rate_a")
_VALUES = ("predicted", "population", "deviation", "sampled", "standard error", "off by")
_BOUNDS = ("observed", "bound", "slack")


def markdown(report):
    """The appendix as Markdown; claims of the same report that a source names become links."""
    numbers = _numbers(report)
    parts = ["# Claims\n"]
    for result in report.claims:
        claim = result.claim
        source = _ID.sub(lambda m: _link(m.group(), numbers), claim.source)
        parts.append(
            f'<a id="{claim.id}"></a>\n## Claim {numbers[claim.id]}: `{claim.id}` ({result.status})\n\n'
            f"{_starred(claim.statement)}\n\n$${claim.latex}$$\n\n*From:* {source}\n"
        )
        for finding in result.evidence:
            parts.append(f"**{finding.kind.capitalize()}** ({_verdict(finding)}): {_starred(finding.reason)}\n")
            if finding.kind == "proved":
                parts.append("".join(f"- {_starred(line)}\n" for line in _lines(finding)))
    for title, header, rows in _tables(report):
        parts.append(f"## {title}\n")
        lines = [header, ["---"] * len(header), *rows]
        parts.append("".join(f"| {' | '.join(line)} |\n" for line in lines))
    return "\n".join(parts)


def _tables(report):
    """(title, header, rows of text) of theory against simulation: values by quantity, and bounds with their slack."""
    rows = [
        (numbered, row)
        for result, numbered in zip(report.claims, _numbers(report).values(), strict=True)
        for row in result.comparison
    ]
    quantities = dict.fromkeys(row["quantity"] for _, row in rows)
    for quantity in quantities:
        chosen = [(n, row) for n, row in rows if row["quantity"] == quantity]
        names = _BOUNDS if "bound" in chosen[0][1] else _VALUES
        texts = [[str(n), *_place(row), *(_bound(row) if names is _BOUNDS else _value(row))] for n, row in chosen]
        yield f"Theory against simulation: {quantity}", [*_COLUMNS, *names], texts


def _place(row):
    return str(row["d"]), str(row["k"]), row["length"], f"{row['rate_o']:.4g}", f"{row['rate_a']:.4g}"


def _value(row):
    off = row["standard_errors_off"]
    return (
        f"{row['predicted']:.6g}",
        f"{row['population']:.6g}",
        f"{row['population_deviation']:.0e}",
        f"{row['sampled']:.6g}",
        f"{row['standard_error']:.1e}",
        "-" if off is None else f"{off:+.2f}",
    )


def _bound(row):
    return f"{row['observed']:.6g}", f"{row['bound']:.6g}", f"{row['slack']:.3g}"


def latex(report):
    """The appendix as a LaTeX fragment: one ``claim`` environment each, references by ``\\ref``."""
    numbers = _numbers(report)
    parts = [_HEAD, "\\begingroup\\sloppy\n"]
    for result in report.claims:
        claim = result.claim
        source = "".join(
            rf"Claim~\ref{{{piece}}}" if piece in numbers else _escaped(piece)
            for piece in re.split(f"({_ID.pattern})", claim.source)
        )
        parts.append(
            f"\\begin{{claim}}[{_escaped(claim.id)}, {result.status}]\\label{{{claim.id}}}\n"
            f"{_escaped(claim.statement)}\n{_display(claim.latex)}\n\\end{{claim}}\n\\noindent From: {source}.\n"
        )
        for finding in result.evidence:
            verdict = f"{finding.kind.capitalize()} ({_verdict(finding)})"
            parts.append(f"\n\\noindent {verdict}: {_escaped(finding.reason)}.\n")
            if finding.kind == "proved" and finding.steps:
                lines = "".join(f"  \\item {_escaped(line)}\n" for line in _lines(finding))
                parts.append(f"\\begin{{enumerate}}\n{lines}\\end{{enumerate}}\n")
    for title, header, rows in _tables(report):
        lines = "".join(" & ".join(map(_escaped, line)) + " \\\\\n" for line in rows)
        columns = "rrrl" + "r" * (len(header) - 4)
        head = " & ".join(map(_escaped, header))
        parts.append(
            f"\n\n\\paragraph{{{_escaped(title)}}}\n"
            "{\\scriptsize\\tabcolsep2pt\\LTleft0pt plus 1fill minus 1fill\\LTright\\LTleft\n"  # wide ones centred
            f"\\begin{{longtable}}{{{columns}}}\n"
            f"{head} \\\\\n\\hline\n\\endhead\n{lines}\\end{{longtable}}}}\n"
        )
    parts.append("\\par\\endgroup\n")
    return "".join(parts)


def _numbers(report):
    return {result.id: number for number, result in enumerate(report.claims, 1)}


def _link(id, numbers):
    return f"[Claim {numbers[id]}](#{id})" if id in numbers else id


def _verdict(finding):
    return {True: "holds", False: "fails", None: "undecided"}[finding.held]


def _lines(finding):
    """Texts of a finding's steps, each once."""
    return dict.fromkeys(step.text for step in finding.steps)


def _starred(text):
    """Text whose asterisks are no emphasis in Markdown."""
    return text.replace("*", r"\*")


def _display(formulas):
    """Centred lines of inline mathematics, which unlike a display breaks where a page is too narrow."""
    parts = " \\quad\n".join(rf"\(\displaystyle {part.strip()}\)" for part in re.split(r"\\q?quad", formulas))
    return f"\\begin{{center}}\\lineskip1ex\\lineskiplimit1ex\n{parts}\n\\end{{center}}"


def _escaped(text):
    """Text for LaTeX; Greek letters and what has indices or powers in math mode."""
    return _PIECE.sub(_typeset, text)


def _typeset(piece):
    term = piece["term"]
    marks = [script[1] for script in _SCRIPT.finditer(term or "")]
    if term and len(set(marks)) == len(marks):
        return rf"\({_mathematics(term)}\)"
    return "".join(_SPECIAL.get(part, part) for part in ([piece[0]] if piece[0] in _SPECIAL else piece[0]))


def _mathematics(term):
    """A name, number or nothing with its indices and powers, such as e^(-2g) and beta^h_j."""
    return re.sub("[A-Za-z]+", lambda name: _SYMBOL.get(name[0]) or _letters(name[0]), _braced(term))


def _braced(term):
    return _SCRIPT.sub(lambda script: f"{script[1]}{{{_braced(script[2] or script[3] or script[4])}}}", term)


def _letters(name):
    return name if len(name) == 1 else rf"\mathit{{{name}}}"
