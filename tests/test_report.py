"""The HTML report: what it says is what is stored, and a browser shows it without complaint to any reader."""

import base64
import csv
import doctest
import importlib
import io
import itertools
import json
import os
import re
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import proofs_check
from sim import cli, paper, report, reproduce, runs, store, studies, tables
from sim.report import SECTIONS, inline_svg, sections
from sim.studies.figure_data import FigureData

from . import browser

LETTERS = dict(d=8, train_words=80, test_words=40, steps=30)
SMALL = {"occurrence": LETTERS, "or": LETTERS, "and": LETTERS, "even_pairs": dict(max_length=4, steps=30),
         "icl_bigram": dict(d=8, pairs=3, train_words=60, test_words=40, steps=30),
         "slr": dict(d=5, tokens=4, train_words=60, test_words=40, steps=30)}
EVIL = '<script>document.title = "evil"</script> & <img src="http://example.org/x.png">'
LEGIBLE = 4.5  # WCAG 2 AA: contrast of text
LARGEST = 8e6  # bytes of the report of the whole paper
ROUNDED = 0.51e-2  # points: path data have two decimals


@pytest.fixture(scope="module", autouse=True)
def small_paper():
    """The paper's plans on small instances of its tasks."""
    with pytest.MonkeyPatch.context() as patch:
        full = paper.configurations
        patch.setattr(paper, "configurations", lambda task: full(task, **SMALL[task]))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of all tasks, one that diverged, two studies, claims with one that is refuted."""
    folder = tmp_path_factory.mktemp("results")
    reproduce.table1(seeds=range(2), out=folder)
    runs.run_plan("occurrence", "O(1x)->A", range(2), d=6, steps=20, rate_o=[600.0], rate_a=[1e6], out=folder)
    runs.run_plan("or", "O", [3], d=6, steps=20, rate_o=500.0, out=folder)
    for name in ("phase-diagram", "phase3"):
        studies.make(name, [0], quick=True, out=folder)
    claims = proofs_check.prove("phase1.update").to_json()
    claims["claims"].append({
        "id": "own.evil", "statement": EVIL, "status": "refuted", "counterexample": {"d": 3}, "seconds": 0.1,
        "evidence": [{"kind": "enumerated", "held": False, "slack": None, "tolerance": None, "reason": "fails: 1"}]})
    (folder / "claims.json").write_text(json.dumps(claims))
    return folder


@pytest.fixture(scope="module")
def page(folder):
    written = report.report(folder)
    assert written.file == str(folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tree(page):
    return parse(page)


def parse(page):
    doctype, _, rest = page.partition("\n")
    assert doctype == "<!DOCTYPE html>"
    return ElementTree.fromstring(rest)  # every element is closed, every special character escaped


def text(node):
    return " ".join("".join(node.itertext()).split())


def table(tree, caption):
    """Rows of cells of the table whose caption begins so."""
    (found,) = (t for t in tree.iter("table") if text(t.find("caption")).startswith(caption))
    return [[text(cell) for cell in row] for row in found.iter("tr")]


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_every_section_is_there_with_headings_in_order(tree):
    titles = ["At a glance", *(title for title, _ in SECTIONS.values())]
    assert [text(heading) for heading in tree.iter("h2")] == titles
    levels = [int(node.tag[1]) for node in tree.iter() if re.fullmatch("h[1-6]", node.tag)]
    assert levels[0] == 1 and levels.count(1) == 1 and all(b - a <= 1 for a, b in itertools.pairwise(levels))
    targets = [link.get("href") for link in tree.find("body/nav").iter("a")]
    assert targets == ["#glance", *(f"#{key}" for key in SECTIONS)]


def test_tables_are_those_of_the_stored_runs(tree, folder):
    results = reproduce.table_runs(paper.TASKS, lambda configs: runs.train_all(configs, range(2), out=folder))
    for name, cells, rows in (("Table 1", tables.table1_cells, tables.table1_rows),
                              ("Table 5", tables.table5_cells, tables.table5_rows)):
        expected = [[cell.replace("->", "→") for cell in row[1:]] for row in rows(cells(results))[1]]
        shown = [row for row in table(tree, name) if len(row) == 10]
        assert [row[:1] + row[2:] for row in shown] == expected and {row[1] for row in shown} == {"0–1"}
    groups = [row[0] for row in table(tree, "Table 1") if len(row) == 1]
    assert groups == list(paper.TASKS) == [row[0] for row in table(tree, "Table 2") if len(row) == 1]
    assert len(table(tree, "Table 2")) == 1 + 3 * len(paper.TASKS)


def test_settings_of_every_run_are_told(tree, folder):
    for task in paper.TASKS:
        rows = table(tree, f"{task}: plans and rates")[1:]
        assert len(rows) == len(paper.ROWS)
        for row, (label, config) in zip(rows, paper.configurations(task), strict=True):
            assert row[0] == label.label.replace("->", "→") and row[1] == config.plan.replace("->", "→")
            assert row[3:5] == [", ".join(f"{x:g}" for x in rates) or "-" for rates in (config.rate_a, config.rate_o)]
    others = table(tree, "Other runs")[1:]
    own = [row for row in others if row[0] == "or" and row[1] == "O"]
    assert [row[2:4] for row in own] == [["3", "1"]]


def test_the_command_of_a_run_finds_that_run(tree, folder, capsys):
    import shlex

    before = set(folder.rglob("*.npz"))
    commands = [row[4] for row in table(tree, "Other runs")[1:]]
    assert len(commands) > 2
    for command in commands:
        words = shlex.split(command)
        cli.main([*words[1:], "--out", str(folder)])
    capsys.readouterr()
    assert set(folder.rglob("*.npz")) == before  # all were there: the same configuration, the same seeds


def test_everything_shown_comes_with_the_command_that_makes_it(tree, folder):
    (section,) = (node for node in tree.iter("section") if node.get("id") == "repeat")
    lines = "".join(section.find(".//pre").itertext()).splitlines()
    made = [f"reproduce {name} --seeds 0:2" for name in ("table1", "table2", "table5", *reproduce.FIGURES)]
    made += ["draw phase-diagram", "draw phase3", "prove"]
    assert lines == [*(f"attnlag {words} --out {folder}" for words in made), f"attnlag report {folder}"]
    versions = dict(zip(*table(tree, "Versions"), strict=True))
    assert versions == {**store.versions(), "runs": str(len(list(folder.rglob("*.npz"))))}


def test_claims_are_told_with_status_and_slack(tree):
    proved, refuted = (row for row in table(tree, "Claims")[1:] if len(row) == 4)
    stored = proofs_check.prove("phase1.update").claims[0]
    assert proved[0].startswith("phase1.update") and refuted[0].startswith("own.evil")
    assert proved[1] == "proved" and stored.claim.statement.split()[0] in proved[0]
    assert proved[2].count("(") == sum(finding.slack is not None for finding in stored.evidence)
    assert refuted[1] == "refuted" and "Counterexample: d = 3" in refuted[0] and "enumerated fails" in refuted[3]
    assert text(tree).count("1 refuted") == 2  # at a glance, and above the claims


def test_theory_stands_beside_the_runs(tree, folder):
    import analytic

    config = dict((row.label, config) for row, config in paper.configurations("or"))["O(1x)->A(1x)->O, zero init"]
    found = analytic.theory(config.make_task().d, 2, config.make_task().length, config.rate_o[0], config.rate_a[0])
    shown = {row[0]: row[1:] for row in table(tree, "or: closed forms")[1:]}
    assert {name: float(row[0]) for name, row in shown.items() if name in ("K", "output_gap", "logit_gap")} == \
        {name: pytest.approx(float(found[name]), rel=1e-8) for name in ("K", "output_gap", "logit_gap")}
    (group,) = runs.train_all([config], range(2), out=folder)
    mean = np.mean(group.output_gap.values[:, 1])
    assert float(shown["output_gap"][1].split(" ± ")[0]) == pytest.approx(mean, rel=1e-3)


def test_figures_bring_their_data(tree, folder):
    for number in range(1, 6):
        (figure,) = (node for node in tree.iter("figure") if node.get("id") == f"fig{number}")
        link = next(figure.iter("a"))
        data = csv.DictReader(io.StringIO(base64.b64decode(link.get("href").split(",")[1]).decode()))
        rows = list(data)
        assert link.get("download") == f"fig{number}.csv" and len(rows) > 50
        assert {"panel", "quantity", "step", "mean"} <= set(rows[0])
    drawn = reproduce.drawing("fig2", lambda configs: runs.train_all(configs, range(2), out=folder))
    full = FigureData.from_csv(drawn.data)
    kept = sections.thinned(full)
    assert kept["step"].max() == full["step"].max() and set(kept["panel"]) == set(full["panel"])


def test_a_figure_of_many_steps_keeps_what_is_seen():
    steps = np.arange(100_000)
    data = FigureData.stack(*({"panel": name, "step": steps, "mean": steps / 7} for name in "ab"))
    kept = sections.thinned(data)
    assert len(kept) < 800 and {0, 1, 2, 3, 99_999} <= set(kept["step"])
    ratio = kept.where(panel="a")["step"][20:]
    assert (ratio[1:] / ratio[:-1]).max() < 1.1


@given(arrays(float, st.tuples(st.integers(2, 60), st.just(2)), elements=st.floats(-500, 500, width=32)))
def test_thinned_curves_pass_every_point(points):
    kept = inline_svg.thinned(points)
    assert (kept[0] == points[0]).all() and (kept[-1] == points[-1]).all()
    starts, ends = kept[:-1], kept[1:]
    along = ends - starts
    square = np.maximum((along**2).sum(axis=1), 1e-300)
    for point in points:
        share = np.clip(((point - starts) * along).sum(axis=1) / square, 0, 1)
        nearest = np.hypot(*(point - starts - share[:, None] * along).T).min()
        assert nearest <= inline_svg.TOLERANCE * (1 + 1e-9)


def test_curved_paths_are_rounded_and_closed_ones_stay_closed():
    assert inline_svg.thinned_path("M 0.12345 0 \nC 1 2.3456 3 4 5 6.0 \nz \n") == "M0.12 0C1 2.35 3 4 5 6z"
    assert inline_svg.thinned_path("M 0 0 L 1 1 L 1 0 z M 5 5 L 6 6") == "M0 0L1 1L1 0zM5 5L6 6"


def test_the_same_folder_gives_the_same_bytes(folder, page, tmp_path):
    report.report(folder, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


# ---- what is missing or damaged --------------------------------------------------------------------------------------


def test_nothing_is_trained_and_what_is_missing_is_named_with_its_command(tmp_path, capsys, monkeypatch):
    part = tmp_path / "part of it"
    reproduce.table1(("occurrence",), seeds=range(2), out=part)
    monkeypatch.setattr("sim.descent.train", None)
    files = set(part.rglob("*"))
    code = cli.main(["report", str(part), "--json"])
    value = json.loads(capsys.readouterr().out)
    assert code == cli.OK and set(part.rglob("*")) - files == {part / "report.html"}
    commands = {missing["what"].split(":")[0]: missing["command"] for missing in value["missing"]}
    assert {"Tables 1, 2 and 5", "Figure 3", "Figure 4", "Figure 5", "Claims", "Other figures"} == set(commands)
    assert commands["Figure 4"] == f"attnlag reproduce fig4 --out '{part}'"
    assert "--tasks or,and,even_pairs,icl_bigram,slr" in commands["Tables 1, 2 and 5"]
    tree = parse((part / "report.html").read_text(encoding="utf-8"))
    assert all(command in text(tree) for command in commands.values())
    assert cli.main(["report", str(part)]) == cli.OK
    assert "missing: Claims\n  attnlag prove --out" in capsys.readouterr().out


def test_damaged_files_are_named_and_the_rest_is_shown(folder, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("and", "even_pairs", "icl_bigram", "slr"))
    hurt = sorted(copy.rglob("seed-*.npz"))[0]
    hurt.write_bytes(hurt.read_bytes()[:-100])
    (copy / "claims.json").write_text('{"claims": [{"id": 1}]}')
    (copy / "phase3.csv").write_text("a,b\n1,2\n")
    assert cli.main(["report", str(copy)]) == cli.DIVERGED
    assert capsys.readouterr().out.count("damaged: ") == 3
    tree = parse((copy / "report.html").read_text(encoding="utf-8"))
    glance = text(next(node for node in tree.iter("section") if node.get("id") == "glance"))
    for path in (hurt, copy / "claims.json", copy / "phase3.csv"):
        assert str(path) in glance
    assert len([row for row in table(tree, "Table 1") if len(row) == 10]) > 1


def test_a_folder_of_claims_alone_has_a_report(folder, tmp_path):
    shutil.copy(folder / "claims.json", tmp_path)
    report.report(tmp_path)
    tree = parse((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert len(table(tree, "Claims")) == 5 and not list(tree.iter("figure"))


@pytest.mark.parametrize("name", ["no-such-folder", "."])
def test_nothing_to_report_is_one_clear_line(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", name]) == cli.USAGE
    err = capsys.readouterr().err
    assert "attnlag reproduce all" in err and err.count("\n") == 1 and not list(tmp_path.iterdir())


# ---- the page --------------------------------------------------------------------------------------------------------


def test_the_page_refers_to_nothing_outside_itself(page, tree):
    ids = [node.get("id") for node in tree.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    for node in tree.iter():
        assert node.tag not in ("script", "iframe", "img", "object", "embed")
        for name, value in node.attrib.items():
            if name in ("href", "src"):
                assert value.startswith("data:") or value[1:] in ids, value[:80]
            assert not name.startswith("on") and not name.startswith("xmlns")
            for target in re.findall(r"url\((.*?)\)", value):
                assert target[1:] in ids
            for label in value.split() if name == "aria-labelledby" else ():
                assert label in ids
    assert "url(" not in text(tree.find("head/style")) and "@import" not in text(tree.find("head/style"))
    assert EVIL in text(tree) and EVIL not in page


def test_tables_and_drawings_tell_screen_readers_what_they_are(tree):
    for node in tree.iter("table"):
        assert text(node.find("caption"))
        assert all(cell.get("scope") in ("col", "colgroup", "row", "rowgroup") for cell in node.iter("th"))
    drawings = list(tree.iter("svg"))
    assert len(drawings) == 5 + 2 + 1  # the paper's, two studies, theory
    for node in drawings:
        assert node.get("role") == "img" and text(node.find("title")) and len(text(node.find("desc"))) > 50
    assert sum(len(list(node.iter("text"))) for node in drawings) > 200  # text stays text
    lands = [node.tag for node in tree.find("body")]
    assert lands == ["a", "header", "nav", "main", "footer"] and tree.get("lang") == "en"


@pytest.fixture(scope="module")
def window(page, folder):
    if browser.find() is None:
        if os.environ.get("CI"):
            pytest.fail("no browser: this test must run in CI")
        pytest.skip("needs chromium")
    with browser.Browser() as window:
        window.open(folder / "report.html")
        yield window
        window.media()


def test_a_browser_has_nothing_to_complain_about(window, folder):
    told = {event["method"] for event in window.events}
    assert not told & {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed"}
    asked = [event["params"]["request"]["url"] for event in window.events
             if event["method"] == "Network.requestWillBeSent"]
    assert (folder / "report.html").as_uri() in asked
    assert all(url.startswith("data:") or url == (folder / "report.html").as_uri() for url in asked)
    assert window.evaluate("document.title") == f"attnlag report: {folder.name}"
    pictures = window.evaluate("""Promise.all([...document.querySelectorAll("svg image")].map(async node => {
        const image = new Image(); image.src = node.getAttribute("href"); await image.decode();
        return image.naturalWidth > 0 && node.getBBox().width > 0; }))""")
    assert len(pictures) >= 2 and all(pictures)


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
@pytest.mark.parametrize("opened", ["false", "true"])
def test_the_page_never_scrolls_sideways(window, width, opened):
    window.resize(width)
    window.evaluate(f"document.querySelectorAll('details').forEach(node => node.open = {opened})")
    assert window.evaluate("document.documentElement.scrollWidth") <= width
    window.evaluate("document.querySelectorAll('details').forEach(node => node.open = false)")


CONTRASTS = """(() => {
    const parsed = text => {
        const c = text.match(/[-\\d.]+/g).map(Number), unit = text.startsWith("color(") ? 1 : 255;
        return {rgb: c.slice(0, 3).map(x => x / unit), alpha: c.length > 3 ? c[3] : 1}; };
    const light = ({rgb}) => rgb.map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
        .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = node => { for (; node; node = node.parentElement) {
        const found = parsed(getComputedStyle(node).backgroundColor); if (found.alpha > 0) return found; } };
    return [...document.querySelectorAll("body *")].filter(node => node.getClientRects().length &&
        [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())).map(node => {
            const style = getComputedStyle(node);
            const pair = [parsed(node.closest("svg") ? style.fill : style.color), ground(node)].map(light);
            return [(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), node.textContent.slice(0, 40)]; }); })()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_in_both_colour_schemes(window, scheme):
    window.resize(1280)
    window.media(scheme)
    found = window.evaluate(CONTRASTS)
    assert len(found) > 500
    assert min(found)[0] >= LEGIBLE, min(found)
    dark = window.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


def test_print_is_dark_on_light_without_navigation(window):
    window.media("dark", "print")
    window.resize(720)
    assert window.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert window.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert window.evaluate("document.querySelector('#tables table').getClientRects().length") == 1
    assert min(window.evaluate(CONTRASTS))[0] >= LEGIBLE
    printed = base64.b64decode(window.call("Page.printToPDF")["data"])
    assert printed.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", printed)) > 5


def test_the_keyboard_reaches_everything(window, folder):
    window.media()
    window.open(folder / "report.html", 375)
    window.press("Tab")
    assert window.evaluate("document.activeElement.className") == "skip"
    assert window.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    assert window.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    window.press("Enter")
    assert window.evaluate("document.activeElement.id") == "results"
    for _ in range(100):  # to the first table that scrolls, then to the first disclosure
        window.press("Tab")
        if window.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    window.press("Enter")
    assert window.evaluate("document.activeElement.parentElement.open")
    wide = window.evaluate("""[...document.querySelectorAll(".wide")].filter(node => node.getClientRects().length &&
        node.scrollWidth > node.clientWidth).every(node => node.tabIndex === 0 && node.ariaLabel)""")
    assert wide


@pytest.mark.parametrize("name", ["markup", "inline_svg", "sections", "theory", "results"])
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(f"sim.report.{name}")).failed == 0
