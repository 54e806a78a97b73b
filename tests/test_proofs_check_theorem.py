"""The function that turns accuracies into rates, and the run that confirms them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.errors import InputError
from proofs_check import three_phase_plan
from sim.runs import run_plan


@given(
    d=st.integers(3, 60),
    targets=st.integers(1, 3),
    length=st.sampled_from(["geometric:0.2", "geometric:0.02", "fixed:4", "uniform:1:9", "poisson:6.5"]),
    eps=st.floats(0.01, 0.5),
    delta=st.floats(1e-6, 0.2),
)
def test_the_plan_reaches_what_it_promises(d, targets, length, eps, delta):
    plan = three_phase_plan(d, min(targets, d - 1), length, eps, delta, tau=1e-3)
    seen = plan.confirm()
    _, (target, other) = seen["window"]
    assert target > 1 > other
    for name in ("attention_gap", "certified_length"):
        promised, observed = seen[name]
        assert observed >= promised
    for name in ("test_error", "loss"):
        promised, observed = seen[name]
        assert observed <= promised


def test_sampled_runs_of_the_plan_reach_it_too():
    plan = three_phase_plan(10, 1, "geometric:0.125", eps=0.05, delta=1e-2, tau=1e-2)
    runs = run_plan(
        "occurrence", plan.plan, range(3), d=10, init="zero", length="geometric:0.125", train_words=40_000,
        rate_o=(plan.rate_o, plan.rate_phase3), rate_a=plan.rate_a,
    )
    # sampling moves the gap and the loss by a few percent at 40000 words
    assert runs.attention_gap.values[:, 2].min() > 1 - 2 * plan.eps
    assert runs.train_loss.values[:, -1].max() < 1.5 * plan.loss


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"d": 5, "k": 5}, "k must"),
        ({"d": 5, "eps": 1.0}, "eps must"),
        ({"d": 5, "delta": 0.0}, "delta must"),
        ({"d": 5, "tau": -1.0}, "tau must"),
        ({"d": 5, "length": "fixed:1"}, "some words have two letters or more"),
    ],
)
def test_arguments_outside_the_theorem_are_named(arguments, named):
    with pytest.raises(InputError, match=named):
        three_phase_plan(**arguments)
