"""The figures of theory and runs together: their data are the theory's and the runs', and they can be read."""

import doctest
import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.bounds import error_probability
from analytic.gradients.letter_twin import loss_and_gradient
from analytic.hessian import curvature
from analytic.languages import any_of
from analytic.lengths import Fixed
from analytic.one_step import logit_gap, output_update
from analytic.phase_three import output_phase
from analytic.population import population_path
from sim import cli, studies
from sim.config import resolve
from sim.population import population
from sim.runs import train_all
from sim.studies import drawing, figure_data, hessian, lag, lag_map, steps, unbounded
from sim.studies.figure_data import FigureData

from .test_figures import EASILY_TOLD_APART, VISION, nearest, texts

SEEDS = [0, 1]
EVERY = pytest.mark.parametrize("name", studies.FIGURES)
SAMPLING = 0.05  # accuracies of 2 seeds on 5000 words near 1/2 deviate by 5 sqrt(0.25/10000) = 0.025 in 5 sigma; twice
SAME = 1e-12  # the same closed form for arrays and for single values


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def made(folder):
    """Every figure's quick version: name -> (what `make` returned, the data read back from its CSV file)."""
    done = {}
    for name in studies.FIGURES:
        result = studies.make(name, SEEDS, quick=True, jobs=2, out=folder)
        done[name] = result, FigureData.from_csv((folder / f"{name}.csv").read_text())
    return done


@pytest.fixture(scope="module")
def drawn(made):
    """Every figure, drawn from its CSV file alone, and its texts with their boxes."""
    figures = {name: studies.study(name).draw(data) for name, (_, data) in made.items()}
    return {name: (figure, texts(figure)) for name, figure in figures.items()}


def equal(a, b):
    return list(a.columns) == list(b.columns) and all(
        x.dtype.kind == y.dtype.kind and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        for x, y in zip(a.columns.values(), b.columns.values(), strict=True)
    )


# ---- data and files --------------------------------------------------------------------------------------------------

LABELS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1)


@given(st.lists(st.tuples(LABELS, st.floats(), st.floats()), min_size=1))
def test_figure_data_survive_their_csv_file(rows):
    text, x, y = zip(*rows, strict=True)
    data = FigureData.stack({"label": ["name", *text], "x": [0.5, *x]}, {"y": [0.0, *y]})
    assert equal(FigureData.from_csv(data.csv()), data)


def test_rows_are_found_by_what_they_are_about():
    data = FigureData.stack({"source": "run", "d": [10, 20, 20], "step": [3, 4, 5]}, {"source": "law", "d": 20})
    assert data.where(source="run", d=20)["step"].tolist() == [4, 5]
    assert np.isnan(data.where(source="law").number("step"))
    assert (len(data), data.values_of("source"), data.values_of("step")) == (4, ["run", "law"], [3, 4, 5])


@EVERY
def test_computing_again_from_stored_runs_gives_the_same_data(made, folder, monkeypatch, name):
    monkeypatch.setattr("sim.pool.train", None)  # training would fail
    again = studies.study(name).compute(SEEDS, True, jobs=1, out=folder)
    assert equal(again, made[name][1])


@EVERY
def test_files_are_complete_and_named(made, folder, name):
    result, data = made[name]
    assert result.files == [str(folder / f"{name}.{ending}") for ending in ("csv", "png", "pdf")]
    heads = [(folder / f"{name}.{ending}").read_bytes()[:4] for ending in ("png", "pdf")]
    assert heads == [b"\x89PNG", b"%PDF"]
    assert {"population", *({"run"} if name not in ("bands", "steps") else {"zero init", "random init"})} <= set(
        data.values_of("source"))
    assert str(result).count("wrote") == 3 and ": " in str(result) and result.diverged == 0


@pytest.mark.parametrize("module", [figure_data, lag, steps])
def test_documented_examples_are_true(module):
    failed, tried = doctest.testmod(module)
    assert tried and not failed


# ---- theory ----------------------------------------------------------------------------------------------------------


def test_lag_has_its_known_values(made):
    known = {10: 7, 20: 13, 50: 29, 100: 56, 200: 106, 500: 254}
    assert {d: lag.first_steps(d)[0] for d in known} == known
    result, data = made["lag"]
    line = data.where(source="population")
    assert {d: line.where(d=d).number("attention_gap") for d in known} == known
    values = result.values["values"]
    assert round(values["s_star"], 6) == 0.480771
    assert dict(zip(values["d"], values["first_step_attention"], strict=True)).items() >= known.items()
    left_over = line["left_over"]
    assert 0.2 < left_over.min() and left_over.max() < 0.4  # T - s* d = O(ln^2 d)


def test_runs_lag_like_infinite_data(made):
    runs, line = (made["lag"][1].where(source=source) for source in ("run", "population"))
    assert sorted(set(runs["d"])) == [10, 20, 50, 100] and len(runs) == 4 * len(SEEDS)
    for d, attention in zip(runs["d"], runs["attention_gap"], strict=True):
        assert abs(attention - line.where(d=d).number("attention_gap")) <= 0.1 * attention + 1


def test_the_lag_map_is_the_lag_of_each_run(made, folder):
    data = made["lag-map"][1]
    config = resolve("occurrence", f"joint({lag_map.STEPS}x)", init_scale=(0.0, 0.1), rate_o=1.0, rate_a=10.0,
                     record_every=10**6, train_words=2500)
    (runs,) = train_all([config], SEEDS, out=folder)
    cell = data.where(source="run", rate_ratio=10.0, init_scale=0.1)
    assert cell.number("lag") == np.median([run.lag for run in runs.runs])
    line = data.where(source="population")
    path = population_path(50, 1, None, [("AO", lag_map.STEPS, 1.0, line["rate_ratio"][3])])
    assert line["lag"][3] == path.first_above("attention_gap", 0.1) - path.first_above("output_gap", 0.1)
    # small starts: attention lags at equal rates, and does not when its rate is a thousand times larger
    small = data.where(source="run", init_scale=0.0)
    assert small.where(rate_ratio=1.0).number("lag") > 10 and small.where(rate_ratio=1000.0).number("lag") <= 1


def accuracy_after_two_steps(rate_o, rate_a):
    g = logit_gap(50, 1, None, rate_o, rate_a)
    return float(1 - error_probability(50, 1, None, g, *output_update(50, 1, None, rate_o)))


def test_the_phase_diagram_has_window_thresholds_and_accuracies(made):
    data = made["phase-diagram"][1]
    low, high = data.where(source="window")["rate_o"]
    assert low == 12.5 and round(high, 2) == 25.52
    grid = data.where(source="population")
    inside = (grid["rate_o"] > low) & (grid["rate_o"] < high)
    assert (grid["certified_length"][inside] > 0).all() and (grid["certified_length"][~inside] == 0).all()
    for i in np.flatnonzero(inside)[::97]:
        exact = accuracy_after_two_steps(grid["rate_o"][i], grid["rate_a"][i])
        assert grid["accuracy"][i] == pytest.approx(exact, abs=SAME)
    line = data.where(source="attention threshold")
    reached = logit_gap(50, 1, None, line["rate_o"], np.minimum(line["rate_a"], 1e9))
    gaps = (np.exp(reached) - 1) / (np.exp(reached) + 49)
    assert gaps[np.isfinite(line["rate_a"])] == pytest.approx(0.99)
    runs = data.where(source="run")
    expected = [accuracy_after_two_steps(*rates) for rates in zip(runs["rate_o"], runs["rate_a"], strict=True)]
    assert len(runs) == 10 and runs["accuracy"] == pytest.approx(expected, abs=SAMPLING)


def test_certified_lengths_have_their_known_values(made):
    values = made["unbounded"][0].values["values"]
    assert values["certified_length O(1x)->A(1x)"] == 93590
    end = unbounded.end_of_plan("O(1x)->A(1x)->O", 2000)
    assert unbounded.certified_length(*end) == 33825
    assert values["certified_length O"] == values["certified_length A(1x)->O"]


@pytest.mark.parametrize("plan", unbounded.PLANS)
def test_no_tested_word_up_to_the_certified_length_is_wrong(made, plan):
    data = made["unbounded"][1].where(plan=plan)
    for seed in SEEDS:
        run = data.where(source="run", seed=seed)
        certified = np.nanmax(run["certified_length"])
        tested = run["length"] <= certified
        assert (run["accuracy"][tested] == 1).all() and (tested.any() or certified == 0)
    line = data.where(source="population", words="one target")
    certified = np.nanmax(data.where(source="population")["certified_length"])
    assert line["length"][line["accuracy"] == 1].max() == certified


def test_accuracy_on_random_words_is_exact(made):
    line = made["unbounded"][1].where(source="population", words="random", plan="O")
    end = unbounded.end_of_plan("O", 500)
    for i in range(0, len(line), 17):
        wrong = error_probability(50, 1, Fixed(int(line["length"][i])), *end)
        assert line["accuracy"][i] == pytest.approx(1 - wrong, abs=SAME)


def test_runs_end_phase_3_between_zero_and_the_bound(made):
    data = made["phase3"][1]
    line, runs = data.where(source="population"), data.where(source="run")
    phase = output_phase(50, 1, None, line["logit_gap"])
    for name in ("minimum", "bound", "universal_bound"):
        assert line[name] == pytest.approx(getattr(phase, name), rel=SAME)
    assert (line["minimum"] <= line["bound"]).all() and (line["bound"] <= line["universal_bound"]).all()
    phase = output_phase(50, 1, None, runs["logit_gap"])
    assert (runs["train_loss"] < phase.bound).all()
    assert (runs["train_loss"] > 0.7 * phase.minimum).all()  # below 1: the gap of a run is to its largest other score


def test_the_largest_eigenvalue_of_a_sample_is_that_of_its_whole_hessian():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 4, (40, 5)) + np.eye(5, dtype=int)[rng.integers(0, 5, 40)]
    labels = any_of(1).labels(counts[:, :1] > 0)
    alpha, beta = rng.standard_normal((2, 5))
    columns = []
    for unit in np.eye(10):
        z = np.concatenate([alpha, beta]) + 1e-30j * unit
        _, d_alpha, d_beta = loss_and_gradient(counts, labels, z[:5], z[5:])
        columns.append(np.concatenate([d_alpha, d_beta]).imag / 1e-30)
    largest = np.linalg.eigvalsh((np.array(columns) + np.transpose(columns)) / 2)[-1]
    assert hessian.largest_eigenvalue(counts, labels, alpha, beta) == pytest.approx(largest, rel=hessian.TOLERANCE)


def test_eigenvalues_of_runs_are_those_of_infinite_data(made):
    data = made["hessian"][1]
    for rate in hessian.RATES:
        path = population_path(50, 1, None, [("AO", hessian.STEPS, rate, rate)])
        line, runs = (data.where(source=source, rate=rate) for source in ("population", "run"))
        exact = curvature(50, 1, None, path.beta_target, path.beta_other, path.logit_gap).largest
        assert line["largest"] == pytest.approx(exact, rel=SAME)
        at_start, at_end = (runs.where(step=step)["largest"] for step in (0, hessian.STEPS))
        assert at_start == pytest.approx(exact[0], rel=0.1)
        if exact.max() < 2 / rate:  # stable: the sample's path stays near
            assert at_end == pytest.approx(exact[-1], rel=0.05)
    assert np.max(data.where(source="population", rate=3.0)["largest"]) > 2 / 3


@given(st.lists(st.floats(0, 4), min_size=1), st.lists(st.floats(0, 4), min_size=1))
def test_steps_to_a_loss_are_the_first_with_it(losses, levels):
    for level, found in zip(levels, steps.steps_to(losses, levels), strict=True):
        assert found == next((t for t, loss in enumerate(losses) if loss <= level), np.inf)


def test_three_phases_need_fewer_steps_than_joint(made):
    data = made["steps"][1]
    for task, source in itertools.product(steps.TASKS, ("population", "zero init")):
        joint, phases = (data.where(source=source, task=task, plan=plan)["steps"] for plan in steps.PLANS)
        reached = np.isfinite(joint)
        assert (phases[reached] <= joint[reached]).all() and reached.sum() >= 5
    line = data.where(source="population", task="occurrence", plan="AO")
    path = population_path(50, 1, None, [("AO", 2000, 1.0, 1.0)])
    assert line["steps"][50] == np.flatnonzero(path.loss <= line["loss"][50])[0]


def test_lines_run_through_the_bands_of_runs_from_zero_init(made):
    data = made["bands"][1]
    line = data.where(source="population", task="occurrence", plan="AO", quantity="attention_gap")
    path, _ = population(resolve("occurrence", "joint", init="zero", steps=400))
    assert (path.first_above("attention_gap", 0.1), path.first_above("attention_gap", 0.9)) == (29, 142)
    assert line["mean"].tolist() == path.attention_gap[line["step"].astype(int)].tolist()
    for task, plan, gap in itertools.product(("occurrence", "or"), ("AO", "O(1x)->A(1x)->O"), ("attention_gap",)):
        about = dict(task=task, plan=plan, quantity=gap)
        line, zero = (data.where(source=source, **about)["mean"] for source in ("population", "zero init"))
        assert np.abs(line - zero).max() < SAMPLING


# ---- the page --------------------------------------------------------------------------------------------------------


@EVERY
def test_it_fits_the_page_and_its_letters_can_be_read(drawn, name):
    figure, placed = drawn[name]
    width, height = figure.get_size_inches()
    assert width <= 6.75 and height <= 9
    for text, box in placed:
        assert text.get_fontsize() >= 7, text
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text


@EVERY
def test_no_text_runs_into_another(drawn, name):
    for (a, left), (b, right) in itertools.combinations(drawn[name][1], 2):
        assert not left.overlaps(right), (a, b)


@EVERY
def test_every_axis_and_curve_is_named(drawn, name):
    figure, _ = drawn[name]
    for ax in figure.axes:
        place = ax.get_subplotspec()
        if place is None or not ax.get_lines():  # a colour bar
            assert ax.get_ylabel() or ax.get_xlabel()
        else:
            assert ax.get_xlabel() or not place.is_last_row()
            assert ax.get_ylabel() or not place.is_first_col()
    legends = figure.legends + [ax.get_legend() for ax in figure.axes if ax.get_legend()]
    named = [text.get_text() for legend in legends for text in legend.get_texts()]
    curves = itertools.chain(*(ax.get_legend_handles_labels()[1] for ax in figure.axes))
    assert named and all(any(label in entry for entry in named) for label in curves)


@pytest.mark.parametrize("vision", VISION)
def test_colours_differ_for_every_eye(vision):
    colours = [drawing.BLUE, drawing.VERMILION, drawing.BLACK, drawing.SKY, drawing.PURPLE]
    assert nearest(colours, vision) > EASILY_TOLD_APART


# ---- the command -----------------------------------------------------------------------------------------------------


def call(capsys, *arguments):
    try:
        code = cli.main(["draw", *map(str, arguments)])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_draws_and_prints_json(made, folder, capsys):
    code, out, _ = call(capsys, "lag", "--quick", "--seeds", "0:2", "--json", "--out", folder)
    value = json.loads(out, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert code == cli.OK and value["files"] == made["lag"][0].files and value["figure"] == "lag"
    assert value["values"]["first_step_attention"] == made["lag"][0].values["values"]["first_step_attention"]


@pytest.mark.parametrize(("arguments", "said"), [
    (["lagmap"], "did you mean 'lag-map'?"),
    ([], "NAME"),
    (["lag", "--seeds", "3:1"], "seeds '3:1'"),
    (["lag", "--seeds", "x"], "not 'x'"),
    (["lag", "--quick", "--jobs", "0"], "jobs"),
    (["lag", "--quick", "--slow"], "--slow"),
])
def test_errors_are_one_line(capsys, tmp_path, arguments, said):
    code, out, err = call(capsys, *arguments, "--out", tmp_path)
    assert (code, out, err.count("\n")) == (cli.USAGE, "", 1) and said in err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_one_line(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = call(capsys, "phase3", "--quick", "--seeds", "1", "--out", tmp_path / "file" / "under")
    assert code == cli.USAGE and err.count("\n") == 1 and "file" in err
