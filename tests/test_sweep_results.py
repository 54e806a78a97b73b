"""Results of sweeps: labelled arrays over the parameters that differ, tables, plots, pandas and xarray."""

import csv
import json

import numpy as np
import pytest

from analytic.errors import InputError
from sim import load, plots
from sim.population import population
from sim.runs import run_plan
from sim.sweep import run_sweep

from .sweeping import call, write_spec

SPEC = """
train_words = 400
test_words = 50
seeds = 3
record_every = 50
init = "zero"
[[list]]
task = "occurrence"
plan = "joint(120x)"
[list.grid]
d = [5, 10, 20]
[list.zip]
rate_a = [1.0, 2.0]
rate_o = [0.5, 1.0]
[[list]]
task = "or"
plan = "O(1x)->A(1x)"
d = 12
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("results")
    run_sweep(write_spec(place, SPEC), place / "out")
    return place / "out"


@pytest.fixture(scope="module")
def joint(folder):
    return load(folder).where(task="occurrence")


# ---- arrays ----------------------------------------------------------------------------------------------------------


def test_axes_are_the_parameters_that_tell_the_runs_apart(folder, joint):
    assert load(folder).axes == {"task": ["occurrence", "or"], "d": [5, 10, 12, 20], "rate_a": [1.0, 2.0, 96.0]}
    assert joint.axes == {"d": [5, 10, 20], "rate_a": [1.0, 2.0]}  # rate_o and the length law follow from them


def test_arrays_over_the_axes_hold_the_runs(joint):
    loss = joint.train_loss
    assert loss.dims == ("d", "rate_a", "seed", "step") and loss.shape == (3, 2, 3, 121)
    alone = run_plan("occurrence", "joint(120x)", [1], d=10, rate_a=2.0, rate_o=1.0, train_words=400, test_words=50,
                     record_every=50, init="zero")
    assert np.array_equal(loss.sel(d=10, rate_a=2.0, seed=1), alone.train_loss.values[0])
    assert np.array_equal(joint.test_accuracy.sel(d=10, rate_a=2.0, seed=1), alone.test_accuracy.values[0])
    assert joint.test_accuracy.coords["step"].tolist() == [0, 50, 100, 120]
    lag = joint.end("lag")
    assert lag.dims == ("d", "rate_a", "seed") and float(lag.sel(d=10, rate_a=2.0, seed=1)) == alone.runs[0].lag


def test_runs_that_do_not_exist_are_nan(folder):
    loss = load(folder).end("train_loss")
    assert np.isnan(loss.sel(task="or", d=5).values).all() and np.isnan(loss.sel(task="occurrence", d=12).values).all()
    assert np.isfinite(loss.values).sum() == 21


def test_parameters_of_different_sizes_share_an_array(joint):
    beta = joint.where(rate_a=1).beta
    assert beta.dims == ("d", "seed", "phase_end", "head", "letter")
    assert np.isnan(beta.sel(d=5).values[..., 5:]).all() and np.isfinite(beta.sel(d=5).values[..., :5]).all()


def test_where_takes_labels_as_one_writes_them(folder):
    stored = load(folder)
    assert len(stored.where(plan="joint(120x)")) == len(stored.where(plan="AO(120x)")) == 6
    assert len(stored.where(d="10")) == len(stored.where(d=10)) == 2
    assert [runs.config.task for runs in stored.where(rate_o="4.2")] == ["or"]
    with pytest.raises(InputError, match="no run has d 7; there are 10, 12, 20, 5"):
        stored.where(d=7)
    with pytest.raises(InputError, match="did you mean 'rate_a'"):
        stored.where(rate_aa=7)


def test_what_different_tasks_do_not_share_is_refused_or_missing(tmp_path):
    for task, more in (("or", {}), ("slr", dict(tokens=4))):
        run_plan(task, "O(2x)", 1, d=6, train_words=20, test_words=5, out=tmp_path, **more)
    stored = load(tmp_path)
    assert np.isnan(stored.end("test_loss").sel(task="or").values).all()
    assert np.isfinite(stored.end("test_accuracy").sel(task="or").values).all()
    with pytest.raises(AttributeError, match="runs of slr have no 'alpha'"):
        print(stored.alpha)


def test_a_sparse_array_that_would_fill_the_memory_is_refused(joint, monkeypatch):
    monkeypatch.setattr("sim.stored.LARGEST", 100)
    with pytest.raises(InputError, match=r"train_loss over d, rate_a has 3 x 2 x 3 x 121 entries"):
        print(joint.train_loss)


def test_unknown_values_get_the_nearest_name(joint):
    with pytest.raises(InputError, match="did you mean 'train_loss'"):
        joint.end("trainloss")
    with pytest.raises(AttributeError):
        print(joint.trainloss)


def test_pandas_has_a_row_for_every_run(folder, joint):
    frame = load(folder).to_pandas()
    assert len(frame) == 21 and {"task", "plan", "d", "rate_a", "rate_o", "seed", "status", "lag"} <= set(frame)
    of_one = frame[(frame.task == "occurrence") & (frame.d == 20) & (frame.rate_o == 1.0)]
    assert of_one.lag.tolist() == joint.end("lag").sel(d=20, rate_a=2.0).values.tolist()


def test_xarray_has_the_same_axes(joint):
    data = joint.to_xarray()
    assert dict(data.sizes) == {"d": 3, "rate_a": 2, "seed": 3} and "test_loss" not in data
    assert data.lag.sel(d=20, rate_a=2.0).values.tolist() == joint.end("lag").sel(d=20, rate_a=2.0).values.tolist()


# ---- tables ----------------------------------------------------------------------------------------------------------


def test_a_table_has_mean_and_deviation_of_every_cell(joint, folder, capsys):
    loss = joint.end("train_loss").sel(d=10, rate_a=2.0).values
    mean, std = loss.mean(), loss.std(ddof=1)
    code, out, _ = call(capsys, "table", folder, "--rows", "d", "--cols", "rate_a", "--value", "train_loss",
                        "--where", "task=occurrence", "--json")
    cells = json.loads(out)["cells"]
    cell = next(cell for cell in cells if (cell["d"], cell["rate_a"]) == (10, 2.0))
    assert (code, len(cells)) == (0, 6)
    assert cell == {"d": 10, "rate_a": 2.0, "mean": pytest.approx(mean), "std": pytest.approx(std), "n": 3,
                    "diverged": 0, "undefined": 0}
    text = repr(joint.table("d", "rate_a", "train_loss")).splitlines()
    assert text[0] == "train_loss, mean ± standard deviation over 3 runs"
    assert text[2].split() == ["d", "rate_a", "1", "rate_a", "2"]
    assert text[5].startswith("10") and f"{mean:.4g} ± {std:.2g}" in text[5]


def test_a_parameter_that_follows_from_the_axes_may_name_the_columns(joint):
    by_a, by_o = (joint.table("d", name, "lag") for name in ("rate_a", "rate_o"))
    assert [cell.values for cell in by_a.cells] == [cell.values for cell in by_o.cells]


def test_several_parameters_make_the_rows_of_a_table(joint):
    text = repr(joint.table("d, rate_a", None, "steps_made"))
    assert text.splitlines()[2].split() == ["d", "rate_a", "steps_made"] and text.count("120 ± 0") == 6


def test_a_mean_over_different_things_is_refused(folder, joint, capsys):
    with pytest.raises(InputError, match="d leave rate_a open"):
        joint.table("d", None, "lag")
    code, _, err = call(capsys, "plot", folder, "--x", "d", "--y", "lag")
    assert code == 2 and "open" in err and err.count("\n") == 1


def test_a_mean_over_those_that_ever_cross_is_not_shown(folder):
    cell = load(folder).where(task="occurrence", d=20, rate_a=1).table("d", None, "step_attention_09").cells[0]
    assert (cell.mean, cell.std, cell.values, str(cell)) == (None, None, [119, 109], "2/3 have it")


def test_a_value_that_no_run_has_is_refused(joint):
    with pytest.raises(InputError, match="no run has a test_loss"):
        joint.table("d", "rate_a", "test_loss")


# ---- plots -----------------------------------------------------------------------------------------------------------


def test_a_plot_shows_means_deviations_and_infinite_data(joint):
    ax = joint.plot("d", "lag", hue="rate_a")
    bars = ax.containers
    assert [bar.get_label() for bar in bars] == ["1", "2"]
    assert ax.get_legend().get_title().get_text() == r"learning rate $\eta_A$"
    lag = joint.end("lag").sel(rate_a=2.0).values
    x, y = bars[1].lines[0].get_data()
    assert x.tolist() == [5, 10, 20] and y.tolist() == lag.mean(axis=1).tolist()
    path, _ = population(joint.where(d=20, rate_a=2)[0].config)
    expected = path.first_above("attention_gap", 0.1) - path.first_above("output_gap", 0.1)
    lines = [line for line in ax.lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 3]
    assert [line.get_ydata()[2] for line in lines][1] == expected
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alphabet size d", "lag of attention (gradient steps)")
    assert "infinite data" in ax.get_legend_handles_labels()[1]


def test_a_plot_on_given_axes_draws_there(joint):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert joint.where(rate_a=1).plot("d", "train_loss", ax=ax) is ax and ax.containers


def test_a_parameter_up_and_a_value_as_colour_make_a_map(joint):
    ax = joint.plot("d", "rate_a", hue="train_loss")
    (mesh,) = [part for part in ax.collections if part.__class__.__name__ == "QuadMesh"]
    means = joint.end("train_loss").values.mean(axis=2).T
    assert np.allclose(np.asarray(mesh.get_array()).reshape(means.shape), means, rtol=1e-15)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alphabet size d", r"learning rate $\eta_A$")


def test_words_on_an_axis_are_written_out(folder):
    ax = load(folder).where(rate_o=4.2).plot("task", "test_accuracy")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["or"]


def test_runs_without_a_mean_are_marked(joint):
    ax = joint.plot("d", "step_attention_09", hue="rate_a")
    assert any("no mean" in label for label in ax.get_legend_handles_labels()[1])


def test_the_files_of_a_plot_hold_its_data(folder, tmp_path, capsys):
    arguments = ["plot", folder, "--x", "d", "--y", "lag", "--hue", "rate_o", "--where", "plan=joint(120x)"]
    code, out, _ = call(capsys, *arguments, "--out", tmp_path, "--name", "law", "--json")
    assert code == 0
    assert json.loads(out)["files"] == [str(tmp_path / f"law.{ending}") for ending in ("csv", "png", "pdf")]
    header, *rows = csv.reader((tmp_path / "law.csv").read_text().splitlines())
    assert len(rows) == 6 and header == ["d", "rate_o", "mean", "std", "n", "diverged", "undefined", "infinite_data"]
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    call(capsys, *arguments, "--out", tmp_path, "--name", "law")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def test_text_of_a_plot_is_legible(joint, tmp_path):
    import matplotlib
    from matplotlib.figure import Figure

    from sim.figures import RC

    with matplotlib.rc_context(RC):
        figure = Figure(figsize=plots.SIZE)
        ax = joint.plot("d", "lag", hue="rate_a", ax=figure.subplots())
        figure.canvas.draw()
        texts = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label, *ax.get_legend().texts]
    assert min(text.get_fontsize() for text in texts if text.get_text()) >= 7


@pytest.mark.parametrize("name", ["../escape", "a/b", "", ".hidden", "..", "a\\b"])
def test_a_figure_does_not_leave_its_folder(folder, tmp_path, capsys, name):
    code, _, err = call(capsys, "plot", folder, "--x", "d", "--y", "lag", "--hue", "rate_a", "--where",
                        "task=occurrence", "--out", tmp_path / "figures", "--name", name)
    assert code == 2 and "name must be" in err and list(tmp_path.iterdir()) == []
