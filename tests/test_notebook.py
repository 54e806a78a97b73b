"""Results show themselves as HTML tables in notebooks, with the numbers of their text."""

import doctest
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import proofs_check
import sim
from sim import notebook, reproduce
from sim.labelled import LabelledArray


class Cells(HTMLParser):
    """Texts of the cells of a table's rows; raises unless tags close in order."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.pictures = [], [], 0
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.pictures += 1
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def runs():
    return sim.run_plan("occurrence", "O(1x)->A(1x)", seeds=2, d=5, rate_o=2, rate_a=20)


def test_runs_are_a_table_with_a_row_for_each_seed(runs):
    rows = Cells(runs._repr_html_()).rows
    assert rows[0][:3] == ["seed", "status", "train loss"]
    assert [row[0] for row in rows[1:]] == ["0", "1", "mean", "std"] and len({len(row) for row in rows}) == 1
    assert float(rows[1][2]) == pytest.approx(runs.train_loss[0, -1], rel=1e-3)
    assert "plan O(1x)-&gt;A(1x)" in runs._repr_html_()


def test_arrays_show_their_dimensions_and_escape_their_name(runs):
    assert Cells(runs.beta._repr_html_()).rows[1:] == [
        ["seed", "2", "0", "1"], ["phase_end", "3", "0", "2"], ["head", "1", "0", "0"], ["letter", "5", "1", "5"]]
    shown = LabelledArray("<b>", np.zeros((2, 0)), ("x", "y"))._repr_html_()
    assert "&lt;b&gt;" in shown and Cells(shown).rows[2] == ["y", "0", "-", "-"]
    assert "0.5" in LabelledArray("scalar", np.array(0.5), ())._repr_html_()


def test_tables_and_figures_of_the_paper_show_cells_and_pictures(tmp_path):
    made = reproduce.Made("t\n\na  b\n-  -\n1     x\nnote", [], {}, 0)
    assert Cells(made._repr_html_()).rows == [["a", "b"]] and "note" in made._repr_html_()
    (tmp_path / "f.png").write_bytes(b"\x89PNG")
    figure = reproduce.Made("a  b\n-  -\n1  x", [str(tmp_path / "f.png"), "f.csv"], {}, 0)
    cells = Cells(figure._repr_html_())
    assert cells.rows == [["a", "b"], ["1", "x"]] and cells.pictures == 1 and "wrote f.csv" in figure._repr_html_()


def test_examples_in_docstrings_hold():
    assert doctest.testmod(notebook).attempted == 2 and doctest.testmod(notebook).failed == 0


def test_claims_are_a_table_with_what_failed_below():
    report = proofs_check.prove("moments.balance")
    rows = Cells(report._repr_html_()).rows
    assert rows[1][:2] == ["moments.balance", "proved"] and len(rows) == 2
    assert "1 proved" in report._repr_html_() and re.search(r"moments\.balance +proved", repr(report))
