"""An appendix of statements and the key lines of their proofs, numbered and cross-referenced, in Markdown and LaTeX."""

import re

_ID = re.compile(r"\b[a-z_0-9]+\.[a-z_0-9]+\b")
_SPECIAL = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\(<\)",
    ">": r"\(>\)",
}
_HEAD = r"""% A document around it needs: \usepackage{amsmath,amssymb,amsthm,hyperref} \newtheorem{claim}{Claim}
"""


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
    return "\n".join(parts)


def latex(report):
    """The appendix as a LaTeX fragment: one ``claim`` environment each, references by ``\\ref``."""
    numbers = _numbers(report)
    parts = [_HEAD]
    for result in report.claims:
        claim = result.claim
        source = "".join(
            rf"Claim~\ref{{{piece}}}" if piece in numbers else _escaped(piece)
            for piece in re.split(f"({_ID.pattern})", claim.source)
        )
        parts.append(
            f"\\begin{{claim}}[{_escaped(claim.id)}, {result.status}]\\label{{{claim.id}}}\n"
            f"{_escaped(claim.statement)}\n\\[{claim.latex}\\]\n\\end{{claim}}\n\\noindent From: {source}.\n"
        )
        for finding in result.evidence:
            verdict = f"{finding.kind.capitalize()} ({_verdict(finding)})"
            parts.append(f"\n\\noindent {verdict}: {_escaped(finding.reason)}.\n")
            if finding.kind == "proved" and finding.steps:
                lines = "".join(f"  \\item {_escaped(line)}\n" for line in _lines(finding))
                parts.append(f"\\begin{{enumerate}}\n{lines}\\end{{enumerate}}\n")
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


def _escaped(text):
    return "".join(_SPECIAL.get(character, character) for character in text)
