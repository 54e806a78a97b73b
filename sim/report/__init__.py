"""One self-contained HTML page of a results folder: settings, tables, figures, claims, theory, how to repeat it.

Nothing is trained: what is missing is named with the command that makes it.
"""

from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from .. import store
from . import sections
from .markup import Markup, command, element, items, together
from .results import STATUSES, read_results

SECTIONS = {
    "settings": ("What was run", sections.settings),
    "tables": ("Tables of the paper", sections.paper_tables),
    "figures": ("Figures of the paper", sections.paper_figures),
    "other-figures": ("Other figures", sections.study_figures),
    "theory": ("Theory against simulation", sections.theory_and_runs),
    "claims": ("Claims", sections.claims),
    "repeat": ("Repeat it", sections.repeat),
}
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # the page asks for nothing, whatever is in it


@dataclass(frozen=True)
class Report:
    """A written report.

    Attributes
    ----------
    file : path of the page
    bytes : its size
    missing : [(what, command that makes it), ...]
    damaged : lines that name files of the folder that cannot be used
    verdicts : {table: Counter of verdicts}
    """

    file: str
    bytes: int
    missing: list
    damaged: list
    verdicts: dict

    def to_dict(self):
        missing = [{"what": what, "command": text} for what, text in self.missing]
        return {"file": self.file, "bytes": self.bytes, "missing": missing, "damaged": self.damaged,
                "verdicts": {name: dict(counts) for name, counts in self.verdicts.items()}}

    def __repr__(self):
        lines = [f"missing: {what}\n  {text}" for what, text in self.missing]
        lines += [f"damaged: {line}" for line in self.damaged]
        return "\n".join([*lines, f"wrote {self.file} ({self.bytes / 1e6:.1f} MB)"])


def report(folder, out=None, *, progress=False):
    """Write the report of a results folder as one HTML file that needs no network.

    Parameters
    ----------
    folder : what `attnlag reproduce`, `draw`, `run`, `prove` wrote with ``--out``
    out : the file (default: report.html in the folder)
    progress : show a progress bar on standard error

    Returns
    -------
    Report : prints what is missing, and the file

    Raises
    ------
    InputError : the folder does not exist or holds no results
    OSError : the file cannot be written

    Examples
    --------
    >>> report("no-such-folder")
    Traceback (most recent call last):
    ...
    analytic.errors.InputError: folder 'no-such-folder' does not exist; attnlag reproduce all --out DIR makes results
    """
    from tqdm import tqdm

    out = Path(folder) / "report.html" if out is None else Path(out)
    draft = sections.Draft(read_results(folder))
    parts = [(key, title, make(draft)) for key, (title, make) in
             tqdm(SECTIONS.items(), unit="section", disable=not progress, leave=False)]
    page = _page(draft, parts).encode()
    with store.atomic(out) as file:
        file.write(page)
    return Report(str(out), len(page), draft.missing, draft.results.damaged_shown, draft.verdicts)


def _page(draft, parts):
    title = f"attnlag report: {draft.results.folder.resolve().name}"
    style = files("sim.report").joinpath("page.css").read_text(encoding="utf-8")
    head = element(
        "head", element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("link", rel="icon", href="data:,"),
        element("title", title), element("style", Markup(style)))
    links = [element("a", name, href=f"#{key}") for key, name, _ in [("glance", "At a glance", None), *parts]]
    shown = [_section("glance", "At a glance", _glance(draft)), *(_section(*part) for part in parts)]
    body = element(
        "body", element("a", "Skip to the results", href="#results", class_="skip"),
        element("header", element("h1", title), element(
            "p", "Attention learning lags output learning: simulation, theory and published numbers side by side.")),
        element("nav", items(*links), aria_label="Sections"),
        element("main", *shown, id="results", tabindex="-1"),
        element("footer", element("p", f"Written by attnlag {version('attnlag')}.")))
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en")


def _section(key, title, content):
    return element("section", element("h2", title, id=f"{key}-heading"), content, id=key,
                   aria_labelledby=f"{key}-heading")


def _glance(draft):
    results = draft.results
    facts = [("Runs", f"{results.n_runs} ({results.n_diverged} diverged), of {len(results.heads)} configurations")]
    for name, counts in draft.verdicts.items():
        judged = sections.counted(counts, sections.JUDGED)
        lost = sum(count for word, count in counts.items() if "diverged" in word)
        facts.append((name, f"{judged}{f', {lost} with diverged runs' if lost else ''}; "
                            f"{counts['unpublished']} unpublished"))
    if results.claims is not None:
        facts.append(("Claims", sections.counted(Counter(claim["status"] for claim in results.claims), STATUSES)))
    entries = [element("div", element("dt", name), element("dd", text)) for name, text in facts]
    missing = [together(what, ": ", command(text)) for what, text in draft.missing]
    lost = results.damaged_shown
    return together(
        element("dl", *entries, class_="facts"),
        together(element("h3", "Missing, and what makes it"), items(*missing)) if missing else None,
        together(element("h3", "Files that cannot be used"), items(*lost)) if lost else None)
