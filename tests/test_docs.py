"""The documentation: commands print what is shown, code runs, links and anchors exist, every claim has one anchor."""

import doctest
import importlib.util
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from proofs_check.report import load

from .test_readme import assert_same_text, blocks, environment, python_blocks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ("tutorial", "own-language", "plans", "own-task", "own-claim", "numbers")
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.md"))
LINKING = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def module(name):
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found  # its dataclasses look it up
    spec.loader.exec_module(found)
    return found


cells, theory_claims = module("cells"), module("theory_claims")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder for each page, with the example files."""
    made = {}

    def folder(page):
        if page not in made:
            made[page] = tmp_path_factory.mktemp(page)
            for file in (*(DOCS / "examples").glob("*.py"), ROOT / "proofs_check/example_claims.py"):
                shutil.copy(file, made[page])
        return made[page]

    return folder


COMMANDS = [(page, *block) for page in PAGES for block in blocks(DOCS / f"{page}.md")]


@pytest.mark.parametrize(("page", "command", "shown", "vary"), COMMANDS, ids=lambda value: str(value)[:40])
def test_console_block_prints_what_is_shown(page, command, shown, vary, folders):
    done = subprocess.run(command, shell=True, cwd=folders(page), env=environment(), capture_output=True, text=True,
                          timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert_same_text(done.stdout.rstrip(), shown, vary)


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page, folders, monkeypatch):
    monkeypatch.chdir(folders(page))
    names = {}
    for code in python_blocks(DOCS / f"{page}.md"):
        exec(code, names)
    if page == "tutorial":
        assert Path("lag.png").stat().st_size > 10_000


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom_and_shows_tables_and_figures(notebook, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    shown = [cells.run_cell(code, names) for code in cells.cells(notebook.read_text(encoding="utf-8"))]
    assert len(shown) >= 4 and any(cell.figures for cell in shown)
    assert all(cell.text or cell.html or cell.figures or cell.value is not None for cell in shown)
    if notebook.stem == "lag":
        ratios = np.array([names["output"], names["attention"]]) / names["sizes"]
        assert np.all(ratios.max(axis=1) < 2 * ratios.min(axis=1))  # "in proportion to d"
        assert names["attention"][-1] == pytest.approx(1000 * names["analytic"].lag_constant(), abs=np.log(1000) ** 2)
        assert shown[0].html.startswith("<pre>") and "<table>" in shown[-1].html
    if notebook.stem == "length":
        plans = names["certificates"]
        assert max(found.length for found in plans["O only"]) < min(found.length for found in plans["three phases"])


def test_a_cell_shows_what_it_prints_and_the_value_of_its_last_line():
    names = {}
    shown = cells.run_cell("x = 2\nprint(x)\nx + 1", names)
    assert (shown.text, shown.value, shown.figures) == ("2\n", 3, ()) and names["x"] == 2
    assert cells.cells("```{code-cell}\na = 1\n```\ntext\n```{code-cell} python\nb\n```\n```python\nc\n```") == [
        "a = 1\n", "b\n"]


# ---- links -----------------------------------------------------------------------------------------------------------


def anchors(path):
    """What a page's links may point at: explicit targets, headings, and the claims it lists."""
    text = path.read_text(encoding="utf-8")
    found = set(re.findall(r"^\(([\w.-]+)\)=$", text, re.M))
    for heading in re.findall(r"^#+ +(.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found | (set(load()) if "{claims}" in text else set())


@pytest.mark.parametrize("page", LINKING, ids=lambda path: path.name)
def test_every_link_leads_to_a_file_and_every_anchor_exists(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            found = (page.parent / file).resolve() if file else page
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), target


def test_the_index_names_every_page():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    lists = "".join(re.findall(r"```\{toctree\}(.*?)```", index, re.S))
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")} - {"index"}
    assert set(re.findall(r"^[a-z][a-z/-]*$", lists, re.M)) == pages


# ---- claims ----------------------------------------------------------------------------------------------------------


def test_every_claim_is_listed_in_exactly_one_section():
    page = (DOCS / "theory.md").read_text(encoding="utf-8")
    listed = theory_claims.assignment(page, load())
    ids = [id for section in listed.values() for id in section]
    assert sorted(ids) == sorted(load())
    assert len(theory_claims.BLOCK.findall(page)) == len(listed), "two sections have the same names"
    assert [names for names, section in listed.items() if not section and names != "others"] == []


def test_examples_in_docstrings_hold():
    assert doctest.testmod(theory_claims).attempted == 1 and doctest.testmod(theory_claims).failed == 0


def test_a_claim_goes_to_the_section_with_the_longest_name_that_fits():
    page = "```{claims} a\n```\n```{claims} a.b c\n```\n```{claims} others\n```\n"
    assert theory_claims.assignment(page, ["a.b", "a.bc", "c.d", "ab.x"]) == {
        "a": ["a.bc"], "a.b c": ["a.b", "c.d"], "others": ["ab.x"]}


# ---- the built pages -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not all(map(find_spec, ("sphinx", "myst_parser", "furo"))), reason="needs the extra docs")
def test_sphinx_builds_the_pages_without_a_warning_and_each_claim_has_one_anchor(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path / "trees")]
    done = subprocess.run([*command, str(DOCS), str(tmp_path / "html")], env=environment(), capture_output=True,
                          text=True)
    assert (done.returncode, done.stderr) == (0, "")
    theory = (tmp_path / "html/theory.html").read_text(encoding="utf-8")
    for id in load():
        assert theory.count(f'id="{id}"') == 1, id
    assert theory.count('class="math notranslate nohighlight"') >= len(load())
    assert "$" not in re.sub(r"<(script|code|pre).*?</\1>", "", theory, flags=re.S), "a formula is not rendered"
    notebook = (tmp_path / "html/notebooks/lag.html").read_text(encoding="utf-8")
    assert notebook.count("data:image/png") == 2 and "<th>train loss</th>" in notebook
    reference = (tmp_path / "html/reference.html").read_text(encoding="utf-8")
    for name in ("sim.run_plan", "analytic.certify", "proofs_check.prove", "sim.Task", "sim.check_task.check_task"):
        assert name.rpartition(".")[2] in reference, name


def test_the_citation_and_the_package_have_the_same_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    version = re.search(r"^version = (.+)$", setup, re.M)[1]
    assert f"version: {version}\n" in citation and version in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
