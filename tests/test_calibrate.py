"""The search for the stored settings: it chooses the best of what it prints, and what is stored is on its grid."""

import dataclasses
import tomllib
from collections import Counter

import numpy as np
import pytest

from analytic.errors import InputError
from sim import calibrate, config, paper, settings
from sim.paper import Published

SMALL = dict(d=6, train_words=150, test_words=50)


@pytest.fixture
def small(monkeypatch):
    """The same search on small data with short grids, against bounds that can be met there."""
    def resolve(task, plan, **given):
        return config.resolve(task, plan, **SMALL, **given)

    loose = {key: Published(0.5, True, 0.5, True) if key[0] == "Joint GD" and number.is_bound else number
             for key, number in paper.published().items()}
    loose["Joint GD", "and", "test_metric"] = Published(0.1, False, None)
    letters = calibrate.Grid(
        joint=((1.0, 1.0),), joint_steps=(2, 100, 400), converge={"A": (0.5, 1.0), "O": (0.5, 1.0)}, converge_steps=(),
        one_step={"A": (1.0, 50.0, 200.0), "O": (1.0, 2.0)}, three_phases=True,
    )
    grids = dict(GRIDS={**calibrate.GRIDS, "occurrence": letters, "or": letters},
                 AND_SCALES=(0.5, 1.0), AND_RATES_A=(1.0, 3.0), AND_STEPS=100,
                 AND_ATTENTION_STEPS=(5, 20), AND_ONE_STEP_O=(0.5, 2.0), AND_JOINT_O=(0.2, 0.5),
                 AND_JOINT_STEPS=(50, 100))
    monkeypatch.setattr(calibrate, "resolve", resolve)
    monkeypatch.setattr(paper, "published", lambda: loose)
    for name, grid in grids.items():
        monkeypatch.setattr(calibrate, name, grid)


def best(found, stage):
    return min((c for c in found.candidates if c.stage == stage and c.score is not None), key=lambda c: c.score)


def test_and_chooses_the_best_candidate_of_every_stage(small):
    found = calibrate.calibrate("and", range(1000, 1003), jobs=1)
    assert Counter(c.stage for c in found.candidates) == {"init": 4, "converge": 2, "one_step": 4, "joint": 8}
    chosen = found.chosen
    assert chosen["init_scale"] == tuple(best(found, "init").settings.values())
    assert chosen["rates"]["converge"] == {"A": best(found, "converge").settings["A"], "O": 0.25}
    one_step = best(found, "one_step").settings
    assert (chosen["attention_steps"], chosen["rates"]["one_step"]["O"]) == (one_step["attention steps"], one_step["O"])
    joint = best(found, "joint").settings
    assert (chosen["rates"]["joint"], chosen["limits"]["joint"]) == ({"A": joint["A"], "O": joint["O"]}, joint["steps"])
    assert tomllib.loads(found.toml())["and"]["attention_steps"] == one_step["attention steps"]


def test_and_reads_shorter_phases_off_a_longer_run(small):
    """The losses of one_step and joint candidates are those of runs with exactly their plan."""
    found = calibrate.calibrate("and", [1000, 1001], jobs=1)
    rates, scales = found.chosen["rates"], found.chosen["init_scale"]
    for candidate in found.candidates:
        s = candidate.settings
        if candidate.stage == "one_step":
            plans = {"A(1x)->O": (f"A({s['attention steps']}x)->O", dict(rate_o=0.25, steps=100)),
                     "O(1x)->A(1x)": (f"O(1x)->A({s['attention steps']}x)", dict(rate_o=s["O"]))}
            more = dict(rate_a=rates["converge"]["A"])
        elif candidate.stage == "joint":
            plans, more = {"joint": (f"joint({s['steps']}x)", dict(rate_a=s["A"], rate_o=s["O"]))}, {}
        else:
            continue
        for row, (plan, given) in plans.items():
            runs = calibrate.train_all([calibrate.resolve("and", plan, init_scale=scales, **given, **more)],
                                           [1000, 1001])[0]
            assert candidate.losses[row] == np.mean([run.train_loss[-1] for run in runs.runs])


def test_one_head_tasks_choose_the_best_candidate_that_meets_the_conditions(small):
    found = calibrate.calibrate("or", range(1000, 1003), jobs=1)
    joint = [c for c in found.candidates if c.stage == "joint"]
    assert found.chosen["limits"]["joint"] == min(c.settings["steps"] for c in joint if "not met" not in c.note)
    assert joint[0].score is None  # two steps are too few
    assert found.chosen["rates"]["one_step"] == best(found, "one_step").settings
    assert tomllib.loads(found.toml())["or"]["rates"]["one_step"] == found.chosen["rates"]["one_step"]
    text = repr(found)
    assert all(f"{c.score:.3g}" in text for c in found.candidates if c.score is not None)


def test_single_layers_are_judged_at_the_steps_named(small, monkeypatch):
    """The losses of converge candidates are those of runs that are that long."""
    def resolve(task, plan, **given):
        return config.resolve(task, plan, max_length=4, **given)

    monkeypatch.setattr(calibrate, "resolve", resolve)
    grid = dataclasses.replace(calibrate.GRIDS["even_pairs"], joint=((5.0, 5.0),), joint_steps=(50, 150),
                               converge={"A": (1.0,), "O": (1.0, 3.0)}, converge_steps=(20, 60),
                               one_step={"A": (100.0, 200.0), "O": (40.0,)})
    monkeypatch.setitem(calibrate.GRIDS, "even_pairs", grid)
    found = calibrate.calibrate("even_pairs", [1000, 1001], jobs=1)
    stages = Counter(c.stage for c in found.candidates)
    assert stages == {"joint": 2, "converge O": 4, "converge A": 1, "one_step": 2}
    for candidate in found.candidates:
        if candidate.stage.startswith("converge"):
            layer, steps = candidate.stage[-1], candidate.settings["steps"]
            rate = {"A": "rate_a", "O": "rate_o"}[layer]
            exactly = resolve("even_pairs", f"{layer}({steps}x)", **{rate: candidate.settings[layer]})
            runs = calibrate.train_all([exactly], [1000, 1001])[0]
            assert candidate.losses[layer] == np.mean([run.train_loss[-1] for run in runs.runs])


def test_a_search_without_a_good_candidate_says_so(small, monkeypatch):
    none = dataclasses.replace(calibrate.GRIDS["or"], joint_steps=(1,))
    monkeypatch.setitem(calibrate.GRIDS, "occurrence", none)
    with pytest.raises(InputError, match="no candidate of stage joint"):
        calibrate.calibrate("occurrence", [1000, 1001], jobs=1)


def test_one_seed_is_too_few():
    with pytest.raises(InputError, match="seeds must be at least two"):
        calibrate.calibrate("and", [1000])


@pytest.mark.parametrize("task", paper.TASKS)
def test_stored_settings_are_points_of_the_search(task):
    stored = settings.stored()[task]
    rates, limits = stored["rates"], stored["limits"]
    if task == "and":
        assert set(stored["init_scale"]) <= set(calibrate.AND_SCALES)
        assert rates["converge"]["A"] in calibrate.AND_RATES_A and rates["converge"]["O"] == 1 / stored["at"]["heads"]
        assert stored["attention_steps"] in calibrate.AND_ATTENTION_STEPS
        assert rates["one_step"]["O"] in calibrate.AND_ONE_STEP_O
        assert rates["joint"]["A"] in calibrate.AND_RATES_A and rates["joint"]["O"] in calibrate.AND_JOINT_O
        assert limits["joint"] in calibrate.AND_JOINT_STEPS
    else:
        grid = calibrate.GRIDS[task]
        for layer in "AO":
            assert rates["converge"][layer] in grid.converge[layer]
            assert rates["one_step"][layer] in grid.one_step[layer]
        assert limits["joint"] in grid.joint_steps and (rates["joint"]["A"], rates["joint"]["O"]) in grid.joint
        assert limits["converge"] in (grid.converge_steps or (limits["joint"],))
