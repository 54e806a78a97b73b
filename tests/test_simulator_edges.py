"""The simulator at its edges: gaps by plain loops, streams of a seed, when phases stop, blow up or are interrupted."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.gradients.letter import Path
from analytic.languages import parse_language
from analytic.lengths import Fixed, Geometric
from sim.config import RunConfig, resolve
from sim.descent import Interrupted, train
from sim.paper import Published, std_verdict, verdict
from sim.plans import parse_plan
from sim.tasks import make_task
from sim.tasks.letters import LetterTask
from sim.tasks.streams import INIT, stream

ROUNDING = 1e-12  # of gaps of size one to ten
SMALL = dict(d=6, train_words=40, test_words=30)

# ---- gaps ------------------------------------------------------------------------------------------------------------


def plain_gaps(language, alpha, beta):
    """Attention, output and logit gap of one head, in plain loops."""
    powers = [math.exp(a) for a in alpha]
    gamma = [power / sum(powers) for power in powers]
    letters, others = language.letters, [j for j in range(len(alpha)) if j not in language.letters]
    if all(language.truth[1:]) and not language.truth[0]:
        attention = sum(gamma[s] for s in letters) - max(gamma[j] for j in others)
        output = (min(beta[s] for s in letters) - max(beta[j] for j in others)) / 2
    else:
        attention = max(gamma[s] - max(g for j, g in enumerate(gamma) if j != s) for s in letters)
        output = (max(abs(beta[s]) for s in letters) - max((abs(beta[j]) for j in others), default=0.0)) / 2
    logit = min(alpha[s] for s in letters) - max((alpha[j] for j in others), default=-math.inf)
    return attention, output, logit


ANY_OF = ["1", "3", "1 | 2", "2 | 4", "1 | 2 | 3"]
TASKS = [*ANY_OF, "1 & 2", "2 & 4", "!1", "1 & (2 | !3)", "!1 | !2 | !3 | !4"]


@pytest.mark.parametrize("text", TASKS)
@given(data=st.data())
def test_gaps_are_what_plain_loops_say(text, data):
    language = make_task(text, d=9).language
    d = data.draw(st.integers(max(2, language.letters[-1] + 1 + (text in ANY_OF)), 9))
    entries = st.sampled_from([-30.0, -1.0, 0.0, 0.25, 1.0, 2.0, 30.0])  # ties, and one letter with all attention
    shape = (2, 3, d)  # times, heads, letters
    alpha, beta = (np.reshape(data.draw(st.lists(entries, min_size=6 * d, max_size=6 * d)), shape) for _ in "ab")
    gaps = make_task(text, d=d, heads=3).gaps(alpha, beta)
    for t, h in np.ndindex(2, 3):
        found = [gaps[name][t, h] for name in ("attention_gap", "output_gap", "logit_gap")]
        assert found == pytest.approx(plain_gaps(language, alpha[t, h], beta[t, h]), abs=ROUNDING)


def test_gaps_of_scores_beyond_the_range_of_the_exponential():
    gaps = make_task("or", d=4).gaps(np.array([[[1000.0, -1000.0, 0.0, -500.0]]]), np.zeros((1, 1, 4)))
    assert gaps["attention_gap"] == 1 and gaps["logit_gap"] == -1000


# ---- what a seed decides ---------------------------------------------------------------------------------------------


def test_training_and_test_words_have_their_own_numbers_lengths_and_draws():
    config = resolve("or", "O", d=6, train_words=40, test_words=30, length="fixed:3", test_length="uniform:5:7")
    words, test_words = config.make_task().data(0)
    assert (words.n_words, test_words.n_words) == (40, 30)
    assert set(words.counts().sum(axis=1)) == {3} and set(test_words.counts().sum(axis=1)) == {5, 6, 7}
    config = resolve("or", "O", d=6, train_words=40, test_words=40, length="fixed:9")
    words, test_words = config.make_task().data(0)
    assert set(test_words.counts().sum(axis=1)) == {9}
    assert not np.array_equal(words.counts(), test_words.counts())


def test_the_init_comes_from_the_seed_and_its_scales_alone():
    config = resolve("and", "joint", heads=3, init_scale=(0.0, 2.0), **SMALL)
    task = config.make_task()
    alpha, beta = task.initial(4, config.init, config.init_scale)
    assert alpha.shape == beta.shape == (3, 6) and not alpha.any() and beta.all()
    other = make_task("and", heads=3, d=6, train_words=7, test_words=7).initial(4, "random", (0.5, 1.0))
    assert np.array_equal(beta, 2 * other[1]) and np.all(np.abs(other[0]) > 0)
    assert not np.array_equal(2 * other[0], other[1])
    many = make_task("1", d=4000, train_words=1, test_words=1)
    for entries, scale in zip(many.initial(0, "random", (3.0, 0.5)), (3.0, 0.5), strict=True):
        assert abs(entries.std() / scale - 1) < 0.06 and abs(entries.mean()) < 0.08 * scale  # five standard errors
    assert not np.any(many.initial(0, "zero", (3.0, 0.5)))


def test_streams_of_a_seed_differ_by_use_and_by_seed():
    draws = [tuple(stream(seed, use).integers(0, 2**60, 2)) for seed in (0, 1) for use in range(3)]
    assert len(set(draws)) == 6
    assert tuple(stream(1, INIT).integers(0, 2**60, 2)) == draws[3 + INIT]


def test_a_length_law_is_given_as_text_or_as_a_law():
    task = make_task("or", d=8)
    assert task.length_law() == Geometric(1 / 3) == task.length_law("geometric:0.3333333333333333")
    assert task.length_law(Fixed(3)) == Fixed(3)
    assert task.positive_probability(task.length_law()) == pytest.approx(0.5)
    assert task.positive_probability(Fixed(2)) == pytest.approx(1 - (6 / 8) ** 2)
    for wrong in (3, 0.5, ["fixed:3"]):
        with pytest.raises(InputError, match=r"^test_length must be a law such as"):
            task.length_law(wrong, "test_length")
    with pytest.raises(InputError, match=r"^test_length must be written fixed:M"):
        task.length_law("fixed", "test_length")


def test_named_tasks_have_their_targets_and_heads():
    assert [make_task(name, d=9).heads for name in ("occurrence", "or", "and", "1 & 2")] == [1, 1, 4, 1]
    assert [make_task(name, d=9).language.k for name in ("occurrence", "or", "and")] == [1, 2, 2]
    assert make_task("and", d=9, targets=3, heads=2).language.text == "1 & 2 & 3"
    assert [make_task(text, d=9).is_any for text in TASKS] == [text in ANY_OF for text in TASKS]


def test_a_task_tells_the_law_and_the_labels_of_its_training_words():
    task = make_task("or", d=6, train_words=40, test_words=30, length="fixed:3", test_length="geometric:0.5")
    assert task.facts() == {"d": 6, "targets": 2, "positive_probability": pytest.approx(1 - (4 / 6) ** 3)}
    told = "d 6, targets 2, heads 1, 40 train and 30 test words, length fixed:3, P(y=+1) 0.703704"
    assert task.describe() == told
    assert "length geometric:0.333333, P" in make_task("or", d=8, test_length="fixed:3").describe()


def test_the_memory_that_the_words_need_is_foretold():
    task = make_task("or", d=50)
    assert sum(words.nbytes for words in task.data(0)) == pytest.approx(task.nbytes(), rel=0.05)


def test_a_letter_task_has_one_head_unless_told():
    assert LetterTask("1", parse_language("1"), 8).heads == 1


# ---- phases ----------------------------------------------------------------------------------------------------------


class Scripted:
    """A task whose loss after t updates is ``losses(t)``; alpha counts updates of A, beta those of O.

    Beyond ``largest`` updates of a layer its first parameter is infinite.
    """

    def __init__(self, losses, largest):
        self.losses, self.calls, self.largest = losses, [], largest

    layers = ("alpha", "beta")
    gap_offsets = None

    def nbytes(self):
        return math.inf  # never shared between runs

    def data(self, seed):
        return "train", "test"

    def initial(self, seed, init, scale):
        return np.zeros((1, 2)), np.zeros((1, 2))

    def descend(self, words, state, rate_a, rate_o, steps, limit):
        assert words == "train" and (steps or rate_a == rate_o == 0)
        self.calls.append((rate_a, rate_o, steps))
        alpha = state[0] + np.arange(steps + 1)[:, None, None] * (rate_a > 0)
        beta = state[1] + np.arange(steps + 1)[:, None, None] * (rate_o > 0)
        done = np.maximum(alpha, beta)[:, 0, 0] if rate_a and rate_o else (alpha + beta)[:, 0, 0]
        loss = np.array([self.losses(t) for t in done])
        bad = np.flatnonzero(~(loss <= limit))
        end = bad[0] + 1 if len(bad) else steps + 1
        first = np.array([True, False])
        alpha, beta = (np.where(first & (values > self.largest), math.inf, values) for values in (alpha, beta))
        return Path(loss[:end], alpha[:end], beta[:end])

    def gaps(self, alpha, beta):
        return {"attention_gap": alpha[:, :, 0], "output_gap": beta[:, :, 0], "logit_gap": alpha[:, :, 1]}

    def test(self, words, state):
        assert words == "test"
        return float(state[0][0, 0] + 1000 * state[1][0, 0])


def scripted(monkeypatch, losses, plan, largest=math.inf, **settings):
    task = Scripted(losses, largest)
    phases = parse_plan(plan)
    rates = dict(rate_o=[0.5] * len(phases.training("O")), rate_a=[0.25] * len(phases.training("A")))
    config = resolve("occurrence", plan, **{**SMALL, **rates, **settings})
    monkeypatch.setattr(RunConfig, "make_task", lambda config: task)
    return train(config, 0), task


def test_a_phase_stops_when_a_hundred_steps_change_the_loss_by_less_than_a_millionth(monkeypatch):
    for change, end in ((0.99e-6, 100), (1.01e-6, 700)):
        for sign in (-1, 1):
            run, _ = scripted(monkeypatch, lambda t, c=sign * change: 5.0 * (1 + c) ** (t / 100), "O", steps=700)
            assert run.phase_ends == [end] and run.at_limit == [end == 700]
    # a millionth exactly is enough to go on
    run, _ = scripted(monkeypatch, lambda t: 1e6 - t / 100, "O", steps=200)
    assert run.phase_ends == [200] and run.at_limit == [True]


def test_the_next_phase_starts_where_the_last_one_stopped(monkeypatch):
    plan = "O->A(30x)->O(1x)"
    run, task = scripted(monkeypatch, lambda t: 2.0, plan, steps=1000, rate_o=[0.5, 4.0])
    assert run.phase_ends == [100, 130, 131] and run.at_limit == [False, False, False]
    assert [(a, o) for a, o, steps in task.calls if steps] == [(0.0, 0.5), (0.25, 0.0), (0.0, 4.0)]
    assert run.alpha[:, 0, 0].tolist() == [0, 0, 30, 30] and run.beta[:, 0, 0].tolist() == [0, 100, 100, 101]
    run, _ = scripted(monkeypatch, lambda t: 1.0 + t, plan, steps=250)
    assert run.phase_ends == [250, 280, 281] and run.at_limit == [True, False, False]
    assert run.train_loss.tolist() == [1.0 + t for t in range(282)]


def test_a_last_piece_of_fewer_than_a_hundred_steps_never_counts_as_stalled(monkeypatch):
    run, task = scripted(monkeypatch, lambda t: 1.0 / (1 + t), "O->A(1x)", steps=250)
    assert [steps for *_, steps in task.calls] == [0, 100, 100, 50, 1]
    assert run.phase_ends == [250, 251] and run.at_limit == [True, False]


def test_the_limit_of_the_loss_is_a_million_times_the_first_loss_or_a_million(monkeypatch):
    for first in (0.5, 1.0, 30.0):
        limit = 1e6 * max(1.0, first)
        for loss, status in ((limit, "ok"), (np.nextafter(limit, np.inf), "diverged"), (np.nan, "diverged")):
            run, _ = scripted(monkeypatch, lambda t, first=first, loss=loss: loss if t >= 3 else first, "A(2x)->O(7x)")
            assert run.status == status
    assert run.diverged == {"step": 3, "phase": 2, "rate_a": 0.0, "rate_o": 0.5}
    assert run.phase_ends == [2] and len(run.alpha) == 2
    assert run.train_loss.tolist() == [30.0, 30.0, 30.0]  # steps 0, 1, 2: what blew up is not kept
    assert len(run.attention_gap) == 3 and run.record.tolist() == [0, 2]


def test_a_run_that_blows_up_late_keeps_all_before(monkeypatch):
    run, _ = scripted(monkeypatch, lambda t: 1.0 / (1 + t) if t < 237 else math.inf, "AO", steps=400, record_every=50)
    assert run.diverged == {"step": 237, "phase": 1, "rate_a": 0.25, "rate_o": 0.5}
    assert run.train_loss.tolist() == [1.0 / (1 + t) for t in range(237)]
    assert run.record.tolist() == [0, 50, 100, 150, 200]
    assert run.test_metric.tolist() == [1001.0 * t for t in run.record]


def test_costly_gaps_are_taken_at_some_steps_of_each_phase_until_a_run_blows_up(monkeypatch):
    monkeypatch.setattr(Scripted, "gap_offsets", (3, 103))
    run, _ = scripted(monkeypatch, lambda t: 1.0 / (1 + t) if t < 137 else math.inf, "O(20x)->A(200x)")
    taken = np.flatnonzero(np.isfinite(run.attention_gap[:, 0]))
    assert len(run.attention_gap) == 137 and taken.tolist() == [0, 3, 20, 20 + 3, 20 + 103]
    assert run.attention_gap[taken, 0].tolist() == [0, 0, 0, 3, 103]
    assert run.output_gap[taken, 0].tolist() == [0, 3, 20, 20, 20]


@pytest.mark.parametrize("layer", ("A", "O"))
def test_parameters_that_are_no_numbers_end_a_run_whatever_its_loss(monkeypatch, layer):
    run, _ = scripted(monkeypatch, lambda t: 1.0, f"{layer}(9x)", largest=4)
    assert run.status == "diverged" and run.diverged["step"] == 5 and len(run.train_loss) == 5
    assert np.isfinite(run.attention_gap).all() and np.isfinite(run.output_gap).all()


def test_metrics_are_recorded_every_so_often_and_at_the_ends_of_phases(monkeypatch):
    run, _ = scripted(monkeypatch, lambda t: 1.0 / (1 + t), "O(7x)->A(105x)->O(3x)", record_every=50)
    assert run.record.tolist() == [0, 7, 50, 100, 112, 115]
    assert run.test_metric.tolist() == [0, 7000, 7043, 7093, 7105, 10105]
    run, _ = scripted(monkeypatch, lambda t: 1.0 / (1 + t), "O(3x)", record_every=1)
    assert run.record.tolist() == [0, 1, 2, 3]


def test_a_loss_at_the_init_that_is_no_number_is_refused(monkeypatch):
    for loss in (math.inf, math.nan, 1e305):  # no room for a million times as much
        with pytest.raises(InputError, match=r"init_scale .* is too large: the loss at the init is"):
            scripted(monkeypatch, lambda t, loss=loss: loss, "O")


def test_a_run_can_be_stopped_between_pieces_and_tells_its_steps():
    config = resolve("occurrence", "O(1x)->A(150x)->O(30x)", **SMALL)
    told, stops = [], []
    train(config, 0, on_steps=told.append)
    assert told == [1, 100, 50, 30]

    def after_two():
        stops.append(None)
        return len(stops) > 2

    told.clear()
    with pytest.raises(Interrupted):
        train(config, 0, should_stop=after_two, on_steps=told.append)
    assert told == [1, 100] and len(stops) == 3


def test_first_steps_above_and_the_lag_between_them(monkeypatch):
    run, _ = scripted(monkeypatch, lambda t: 1.0, "O(2x)->A(3x)")
    assert run.attention_gap[:, 0].tolist() == [0, 0, 0, 1, 2, 3]
    assert run.output_gap[:, 0].tolist() == [0, 1, 2, 2, 2, 2]
    assert run.first_step_above(0.1) == 3 and run.first_step_above(1.0) == 4 and run.first_step_above(3.0) is None
    assert run.first_step_above(1.0, "output_gap") == 2
    assert run.lag == 2
    run.gaps = {
        "attention_gap": np.array([[0.0, 0.0], [0.0, 0.5], [0.5, 0.5]]),  # the largest head counts
        "output_gap": np.array([[0.0, 0.0], [0.0, 0.0], [0.2, 0.0]]),
    }
    assert run.first_step_above(0.1) == 1 and run.lag == -1
    attention, never = run.attention_gap, np.zeros((3, 2))
    for gaps in ((attention, never), (never, attention)):
        run.gaps = dict(zip(("attention_gap", "output_gap"), gaps, strict=True))
        assert run.lag is None


# ---- verdicts on boundaries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "word"), [(0.02, "match"), (-0.02, "match"), (0.04, "near"), (-0.04, "near"),
                                            (np.nextafter(0.02, 1), "near"), (np.nextafter(0.04, 1), "off")])
def test_tolerances_include_their_ends(mean, word):
    assert verdict(mean, 0.0, 50, 0, Published(0.0, False, 0.0)) == (mean, 0.02, word)


def test_a_deviation_below_its_bound_has_a_negative_difference():
    assert std_verdict(0.25, 50, 0, Published(0.5, False, 1.0, True)) == (-0.75, None, "match")
    assert std_verdict(1.5, 50, 0, Published(0.5, False, 1.0, True)) == (0.5, None, "off")
    assert std_verdict(1.25, 50, 0, Published(0.5, False, 1.0))[0] == 0.25
