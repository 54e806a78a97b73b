"""Figures: what is drawn is what was run, and it can be read at its printed size by any reader."""

import csv
import dataclasses
import io
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from sim import cli, figures, paper
from sim.config import resolve
from sim.descent import train
from sim.runs import Runs, run_plan

SMALL = dict(d=8, train_words=200, test_words=60)
MEAN = 1e-14  # two sums of a few numbers of size 1 in different order

# colours as seen without one kind of cone: matrices on linear RGB, Machado, Oliveira & Fernandes 2009, severity 1
VISION = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
EASILY_TOLD_APART = 20  # distance in CIELAB; 2.3 is just noticeable side by side


@pytest.fixture(scope="module")
def joint():
    return run_plan("occurrence", "joint", range(4), steps=60, **SMALL)


@pytest.fixture(scope="module")
def phases():
    return run_plan("occurrence", "O(2x)->A(3x)->O", range(3), steps=20, **SMALL)


@pytest.fixture(scope="module")
def heads():
    return run_plan("and", "joint(30x)", range(3), **SMALL)


@pytest.fixture(scope="module")
def partly_lost():
    """Three runs, the last of them diverged."""
    good = run_plan("occurrence", "O", range(2), steps=20, **SMALL)
    lost = train(resolve("occurrence", "O", rate_o=1e4, **SMALL), 2)
    assert lost.status == "diverged"
    return Runs(good.config, [*good.runs, lost])


# ---- the data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention_gap", "output_gap"])
def test_curves_are_mean_and_deviation_over_seeds(joint, name):
    steps, mean, std, n = figures.curve(joint, name)
    values = np.array([getattr(run, name)[:, 0] for run in joint.runs])
    assert (n == 4).all() and np.array_equal(steps, np.arange(values.shape[1]))
    np.testing.assert_allclose(mean, values.mean(axis=0), rtol=0, atol=MEAN)
    np.testing.assert_allclose(std, values.std(axis=0, ddof=1), rtol=0, atol=MEAN)


def test_test_accuracy_is_drawn_where_it_was_recorded(joint):
    steps, mean, _, _ = figures.curve(joint, "test_accuracy")
    assert steps.tolist() == joint.runs[0].record.tolist()
    np.testing.assert_allclose(mean, np.mean([run.test_metric for run in joint.runs], axis=0), rtol=0, atol=MEAN)


def cut(run, last):
    """The run as if its last phase had ended after ``last`` steps."""
    gaps = {name: values[: last + 1] for name, values in run.gaps.items()}
    kept = run.record <= last
    return dataclasses.replace(run, train_loss=run.train_loss[: last + 1], gaps=gaps, record=run.record[kept],
                               test_metric=run.test_metric[kept], phase_ends=[*run.phase_ends[:-1], last])


def test_a_run_that_ended_early_keeps_its_last_value(joint):
    first, second = joint.runs[:2]
    for name in figures.STYLE:
        steps, mean, _, n = figures.curve(Runs(joint.config, [first, cut(second, 30)]), name)
        whole = getattr(Runs(joint.config, [first, second]), name)
        late = steps >= 30
        expected = (whole.values[0] + whole.sel(step=30).values[1]) / 2
        assert (n == 2).all()
        np.testing.assert_allclose(mean[late], expected[late], rtol=0, atol=MEAN)
        np.testing.assert_allclose(mean[~late], whole.mean("seed").values[~late], rtol=0, atol=MEAN)


def test_diverged_runs_are_left_out(partly_lost):
    steps, mean, _, n = figures.curve(partly_lost, "output_gap")
    good = Runs(partly_lost.config, partly_lost.runs[:2])
    assert (n == 2).all() and np.array_equal(mean, figures.curve(good, "output_gap")[1][: len(steps)])


def test_one_run_has_no_band_and_none_has_no_curve(joint, partly_lost):
    _, mean, std, n = figures.curve(Runs(joint.config, joint.runs[:1]), "output_gap")
    assert (n == 1).all() and np.isfinite(mean).all() and np.isnan(std).all()
    _, mean, _, n = figures.curve(Runs(partly_lost.config, partly_lost.runs[2:]), "output_gap")
    assert (n == 0).all() and np.isnan(mean).all()


def test_a_quantity_that_is_missing_in_most_runs_is_not_drawn_there():
    gaps = [[[np.nan], [0.25], [0.5], [np.nan]], [[np.nan], [0.75], [np.nan], [np.nan]], [[1.0], [np.nan]]]
    runs = Runs(SimpleNamespace(), [
        SimpleNamespace(seed=i, status="ok", gaps={"output_gap": np.array(gap)}, train_loss=gap)
        for i, gap in enumerate(gaps)
    ])
    steps, mean, std, n = figures.curve(runs, "output_gap")
    assert steps.tolist() == [1] and mean.tolist() == [0.5] and n.tolist() == [2]
    assert std.tolist() == [np.std([0.25, 0.75], ddof=1)]


def test_heads_are_ranked_in_each_run_by_their_last_gap():
    # two runs of two heads that change places: the first rank is the head that ends higher, all along the run
    gaps = [np.array([[0.0, 0.5], [1.0, 0.25]]), np.array([[0.125, 0.25], [0.5, 0.75]])]
    runs = Runs(SimpleNamespace(), [SimpleNamespace(seed=i, status="ok", gaps={"output_gap": gap}, train_loss=gap)
                                    for i, gap in enumerate(gaps)])
    _, mean, std, n = figures.head_curves(runs, "output_gap")
    assert (n == 2).all()
    np.testing.assert_array_equal(mean, [[(0 + 0.25) / 2, (0.5 + 0.125) / 2], [(1 + 0.75) / 2, (0.25 + 0.5) / 2]])
    np.testing.assert_allclose(std[1], np.array([0.25, 0.25]) / np.sqrt(2), rtol=MEAN)


def test_ranking_loses_no_head(heads):
    _, mean, _, _ = figures.head_curves(heads, "attention_gap")
    np.testing.assert_allclose(mean.sum(axis=1), heads.by_head("attention_gap").values.sum(axis=2).mean(axis=0),
                               rtol=0, atol=10 * MEAN)
    assert (np.diff(mean[-1]) <= 0).all()


def test_phases_end_where_the_runs_say(phases, joint):
    assert figures.phase_marks(phases) == [2, 5]
    assert figures.phase_marks(run_plan("occurrence", "O(4x)", [0], **SMALL)) == []
    passes = [[run.first_step_above(level) for level in (0.1, 0.9)] for run in joint.runs]
    assert None in itertools.chain(*passes) and figures.phase_marks(joint) == []
    longer = run_plan("occurrence", "joint(900x)", range(2), rate_a=2.0, rate_o=1.0, **SMALL)
    passes = [[run.first_step_above(level) for level in (0.1, 0.9)] for run in longer.runs]
    assert figures.phase_marks(longer) == np.mean(passes, axis=0).tolist()


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_figure_data_are_the_drawn_means(joint, phases):
    rows = [("gap", [("joint GD", joint), ("O(2x)->A(3x)->O", phases)])]
    lines = read(figures.gaps_csv(rows))
    drawn = figures.gaps_figure(rows).axes
    for ax, (title, runs) in zip(drawn, rows[0][1], strict=True):
        for line, (name, (_, _, label)) in zip(ax.get_lines(), figures.STYLE.items(), strict=False):
            data = [r for r in lines if (r["panel"], r["quantity"]) == (title, name)]
            assert line.get_label() == label
            assert [float(r["step"]) for r in data] == line.get_xdata().tolist()
            assert [float(r["mean"]) for r in data] == line.get_ydata().tolist()
            assert {(r["n"], r["task"]) for r in data} == {(str(len(runs)), "occurrence")}
    deviations = [float(r["std"]) for r in lines if (r["panel"], r["quantity"]) == ("joint GD", "attention_gap")]
    np.testing.assert_allclose(deviations, joint.attention_gap.std("seed").values, rtol=0, atol=MEAN)


def test_head_figure_data_are_the_drawn_means(heads):
    lines = read(figures.heads_csv([("joint GD", heads)]))
    for ax, name in zip(figures.heads_figure([("joint GD", heads)]).axes, figures.GAPS, strict=True):
        for rank, line in enumerate(ax.get_lines()[:4], 1):
            data = [float(r["mean"]) for r in lines if (r["quantity"], r["rank"]) == (name, str(rank))]
            assert data == line.get_ydata().tolist()


def test_undefined_values_are_empty_in_the_data(partly_lost):
    lost = Runs(partly_lost.config, partly_lost.runs[2:])
    lines = read(figures.gaps_csv([("", [("O", lost)])]))
    assert {(r["mean"], r["std"], r["n"]) for r in lines} == {("", "", "0")}


# ---- the page --------------------------------------------------------------------------------------------------------

PANELS = (("joint GD", "AO"), ("O(1x)->A(1x)->O", "O(1x)->A(1x)->O"), ("A only", "A"), ("O only", "O"),
          ("A(1x)->O", "A(1x)->O"))


@pytest.fixture(scope="module")
def every_figure():
    """Figures of the shapes of 2, 4 and 5."""
    def panels(task, which):
        return [(title, run_plan(task, plan, range(2), steps=400, **SMALL)) for title, plan in which]

    occurrence, either = panels("occurrence", PANELS), panels("or", PANELS)
    long = [(f"three phases: {title}" if i else title, runs) for i, (title, runs) in enumerate(occurrence[:3])]
    return {
        "fig2": figures.gaps_figure([("gap, accuracy", long)]),
        "fig4": figures.heads_figure(panels("and", PANELS)),
        "fig5": figures.gaps_figure([("gap on occurrence", occurrence), ("gap on OR", either)], figures.GAPS),
    }


FIGURES = pytest.mark.parametrize("name", ["fig2", "fig4", "fig5"])


def texts(figure):
    """Every text that is drawn, with its box in inches."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    found = [entry for legend in figure.legends for entry in (*legend.get_texts(), legend.get_title())]
    for ax in figure.axes:
        found += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = axis.get_view_interval()
            found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    found = [text for text in found if text.get_visible() and text.get_text().strip()]
    assert all(isinstance(text, Text) for text in found)
    inches = figure.dpi_scale_trans.inverted()
    return [(text, text.get_window_extent(canvas.get_renderer()).transformed(inches)) for text in found]


@FIGURES
def test_it_fits_the_page_and_its_letters_can_be_read(every_figure, name):
    figure = every_figure[name]
    width, height = figure.get_size_inches()
    assert width <= 6.75 and height <= 9
    for text, box in texts(figure):
        assert text.get_fontsize() >= 7, text
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text


@FIGURES
def test_no_text_runs_into_another(every_figure, name):
    boxes = texts(every_figure[name])
    # the numbers of two short phases may touch: their boxes have room around the digits
    boxes = [(text, box) for text, box in boxes if not text.get_text().isdigit() or text.get_fontsize() > 7]
    for (a, left), (b, right) in itertools.combinations(boxes, 2):
        assert not left.overlaps(right), (a, b)


@FIGURES
def test_every_axis_is_named(every_figure, name):
    figure = every_figure[name]
    grid = figure.axes[0].get_gridspec()
    for ax in figure.axes:
        place = ax.get_subplotspec()
        if place.is_last_row():
            assert ax.get_xlabel() == "gradient steps"
        if place.is_first_row():
            assert ax.get_title()
        assert bool(ax.get_ylabel()) == place.is_first_col()
    assert len(figure.axes) == grid.nrows * grid.ncols


@FIGURES
def test_the_legend_names_every_curve_band_and_mark(every_figure, name):
    figure = every_figure[name]
    legend = figure.legends[0]
    named = [text.get_text() for text in legend.get_texts()]
    curves = figure.axes[0].get_legend_handles_labels()[1]
    assert all(any(entry.startswith(label) for entry in named) for label in curves)
    assert {"± 1 std over 2 seeds", "ideal"} <= set(named) and any("phase" in entry for entry in named)


def lab(colour, vision):
    """CIELAB coordinates (D65) of an sRGB colour as seen by an eye."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(VISION[vision] @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    ratio = xyz / [0.9505, 1, 1.089]
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours, vision):
    return min(np.linalg.norm(lab(a, vision) - lab(b, vision)) for a, b in itertools.combinations(colours, 2))


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("styles", [figures.STYLE.values(), figures.RANK_STYLE], ids=["quantities", "ranks"])
def test_colours_differ_for_every_eye_and_dashes_in_grey(styles, vision):
    colours, dashes = [style[0] for style in styles], [style[1] for style in styles]
    assert nearest(colours, vision) > EASILY_TOLD_APART
    assert len(set(dashes)) == len(dashes)


def test_the_colour_test_can_fail():
    assert nearest(["#d62728", "#2ca02c", "#1f77b4"], "deuteranopia") < EASILY_TOLD_APART  # red and green


@pytest.mark.parametrize("plot", [figures.plot_gaps, figures.plot_heads])
def test_plot_functions_draw_on_the_given_axes_and_return_them(plot, joint):
    import matplotlib.pyplot as plt

    ax = Figure().subplots()
    assert plot(joint, ax) is ax and ax.get_lines()
    before = plt.get_fignums()
    own = plot(joint)
    assert own.figure.number not in before
    plt.close(own.figure)


def test_diverged_runs_are_named_in_the_panels_title(partly_lost, joint):
    figure = figures.gaps_figure([("gap", [("O only", partly_lost), ("joint", joint)]),
                                  ("gap", [("O only", partly_lost), ("joint", joint)])])
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == ["O only\n1 of 3 diverged", "joint", "1 of 3 diverged", ""]


def test_a_panel_of_diverged_runs_only_is_drawn_empty(partly_lost):
    lost = Runs(partly_lost.config, partly_lost.runs[2:])
    figures.gaps_figure([("gap", [("O only", lost)])]).canvas.draw()


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_rows(monkeypatch):
    def configurations(task):
        small = {"max_length": 3} if task == "even_pairs" else SMALL
        return [(row, resolve(task, paper.plan_of(row, task), init=row.init, steps=5, **small)) for row in paper.ROWS]

    monkeypatch.setattr(paper, "configurations", configurations)


@pytest.mark.parametrize(("name", "panels", "curves"), [("fig1", 5, 2), ("fig2", 3, 3), ("fig4", 5, 2 * 4),
                                                        ("fig5", 10, 2)])
def test_figures_read_the_runs_of_table1(small_rows, tmp_path, monkeypatch, capsys, name, panels, curves):
    done = (cli.OK, cli.DIVERGED)
    assert cli.main(["reproduce", "table1", "--seeds", "2", "--out", str(tmp_path)]) in done
    monkeypatch.setattr("sim.pool.train", None)  # training would fail
    assert cli.main(["reproduce", name, "--seeds", "2", "--out", str(tmp_path)]) in done
    out = capsys.readouterr().out
    assert all(f"wrote {tmp_path / name}.{ending}" in out for ending in ("csv", "png", "pdf"))
    first = (tmp_path / f"{name}.pdf").read_bytes()
    assert first.startswith(b"%PDF") and (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    lines = read((tmp_path / f"{name}.csv").read_text())
    assert len({(r["task"], r["panel"]) for r in lines}) == panels
    assert len({(r["task"], r["panel"], r["quantity"], r.get("rank")) for r in lines}) == panels * curves
    assert cli.main(["reproduce", name, "--seeds", "2", "--out", str(tmp_path)]) in done
    assert (tmp_path / f"{name}.pdf").read_bytes() == first


def test_figure_3_has_five_plans_of_four_tasks(small_rows, tmp_path, capsys):
    assert cli.main(["reproduce", "fig3", "--seeds", "2", "--out", str(tmp_path)]) in (cli.OK, cli.DIVERGED)
    panels = {(r["task"], r["panel"]) for r in read((tmp_path / "fig3.csv").read_text())}
    assert {task for task, _ in panels} == {"and", "even_pairs", "icl_bigram", "slr"} and len(panels) == 20


def test_tasks_of_a_figure_are_refused_not_ignored(tmp_path, capsys):
    assert cli.main(["reproduce", "fig5", "--tasks", "or", "--out", str(tmp_path)]) == cli.USAGE
    assert "fig5 has tasks of its own" in capsys.readouterr().err and not list(tmp_path.iterdir())
