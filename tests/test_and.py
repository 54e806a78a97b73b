"""AND: what one head cannot do, two heads can in the limit, and equal heads never leave each other."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.gradients import letter, letter_twin
from analytic.languages import all_of, parse_language
from analytic.lengths import balanced_geometric
from sim import paper
from sim.config import resolve
from sim.descent import train
from sim.runs import run_plan
from sim.settings import settings_for
from sim.tasks import make_task

from .brute_force import compositions

SMALL = dict(d=8, train_words=300, test_words=100)
AND = all_of(2)
ROUNDING = 1e-12


# ---- equal heads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", ["joint(150x)", "O(1x)->A(60x)->O(60x)", "A(40x)->O(40x)"])
@pytest.mark.parametrize("pairs", [1, 2])
def test_equal_heads_stay_equal_bit_for_bit(plan, pairs):
    """Heads that start equal have equal gradients; each pair below starts at values of its own."""
    words, _ = make_task("and", heads=2 * pairs, **SMALL).data(3)
    alpha, beta = (np.repeat(half, 2, axis=0) for half in np.random.default_rng(0).normal(size=(2, pairs, 8)))
    path = letter.descend(words, alpha, beta, 5.0, 0.1, 150)
    assert np.array_equal(path.alpha[:, 0::2], path.alpha[:, 1::2])
    assert np.array_equal(path.beta[:, 0::2], path.beta[:, 1::2])
    assert not np.array_equal(path.beta[-1], path.beta[0])
    run = train(resolve("and", plan, heads=2 * pairs, init="zero", **SMALL), 3)
    for values in (run.alpha, run.beta):
        assert (values == values[:, :1]).all()
    assert run.beta[-1].any()


@given(seed=st.integers(0, 2**32 - 1), heads=st.integers(1, 4))
def test_equal_heads_are_one_head_with_their_weights_added(seed, heads):
    rng = np.random.default_rng(seed)
    counts, alpha, beta = rng.integers(0, 4, (20, 5)), rng.normal(size=5), rng.normal(size=5)
    counts[:, 0] += counts.sum(axis=1) == 0
    words = letter.Words.from_counts(counts, np.ones(20, dtype=np.int8))
    many = letter.scores(words, np.tile(alpha, (heads, 1)), np.tile(beta, (heads, 1)))
    np.testing.assert_allclose(many, letter.scores(words, alpha, heads * beta), rtol=ROUNDING, atol=ROUNDING)


# ---- one head --------------------------------------------------------------------------------------------------------


def scores_of(words, alpha, beta):
    return letter_twin.scores(np.array(words), np.atleast_2d(alpha), np.atleast_2d(beta))


reals = st.floats(-30, 30, allow_subnormal=False)


@given(alpha=st.lists(reals, min_size=3, max_size=3), beta=st.lists(reals, min_size=3, max_size=3))
def test_one_head_is_wrong_on_s1_or_s2_or_both_together(alpha, beta):
    """f Z = sum_j n_j e^{alpha_j} (beta_j - 1) adds up over letters: two negatives cannot make the positive s1 s2."""
    f = scores_of([[1, 0, 0], [0, 1, 0], [1, 1, 0]], alpha, beta)
    assert not (f[0] < 0 and f[1] < 0 and f[2] > ROUNDING)


@given(seed=st.integers(0, 2**32 - 1))
def test_with_one_head_two_words_of_one_sign_have_a_union_of_that_sign(seed):
    rng = np.random.default_rng(seed)
    alpha, beta = 3 * rng.normal(size=6), 3 * rng.normal(size=6)
    first, second = rng.integers(0, 5, (2, 40, 6))
    first[:, 0] += 1
    second[:, 1] += 1
    a, b, both = (scores_of(words, alpha, beta) for words in (first, second, first + second))
    for sign in (1, -1):
        same = (sign * a > ROUNDING) & (sign * b > ROUNDING)
        assert (sign * both[same] > 0).all()


def test_two_heads_can_be_right_on_the_three_words():
    """The counterexample above is about one head: the same three words, decided by two."""
    f = scores_of([[1, 0, 0], [0, 1, 0], [1, 1, 0]], *two_heads(20.0, 3))
    assert f[0] < 0 and f[1] < 0 and f[2] > 0


# ---- two heads in the limit ------------------------------------------------------------------------------------------


def two_heads(gap, d):
    """What descent finds: head 1 ranks s1 first, with weight 2; head 2 ranks s2 over s1 over the rest, with -2 on s1.

    s1 and s2: 2 + 0; s1 alone: 2 - 2; neither, or s2 alone: 0 + 0. Scores ``gap`` apart.
    """
    alpha, beta = np.zeros((2, 2, d))
    alpha[0, 0], beta[0, 0] = gap, 2
    alpha[1, :2], beta[1, 0] = (gap, 2 * gap), -2
    return alpha, beta


def mirrored_heads(gap, d):
    """The symmetric way: head 1 ranks s1 over s2 over the rest with weights 1 and -1, head 2 the reverse."""
    alpha, beta = np.zeros((2, 2, d))
    alpha[0, :2], beta[0, :2] = (2 * gap, gap), (1, -1)
    alpha[1, :2], beta[1, :2] = (gap, 2 * gap), (-1, 1)
    return alpha, beta


LIMITS = pytest.mark.parametrize("construct", [two_heads, mirrored_heads])


def short_words(d, longest):
    """Counts of all words of at most so many letters (words with equal counts have equal scores)."""
    return np.array([counts for m in range(1, longest + 1) for counts in compositions(m, d)])


@LIMITS
def test_two_heads_reach_the_labels_on_every_word(construct):
    """Every share of attention is within m e^-gap of its limit, so |f - y| <= 4 m e^-gap."""
    words = short_words(4, 6)
    labels = AND.labels(words[:, :2] > 0)
    for gap in (2.0, 5.0, 10.0, 20.0):
        f = letter_twin.scores(words, *construct(gap, 4))
        assert (np.abs(f - labels) <= 4 * words.sum(axis=1) * np.exp(-gap) + ROUNDING).all()
        np.testing.assert_allclose(letter.scores(letter.Words.from_counts(words, labels), *construct(gap, 4)), f,
                                   rtol=0, atol=ROUNDING)
    assert np.array_equal(np.sign(f), labels)


@LIMITS
def test_two_heads_reach_zero_loss_on_samples(construct):
    d = 20
    law = balanced_geometric(AND, d)
    rng = np.random.default_rng(1)
    words = letter.sample_words(rng, law.sample(rng, 5000), d, AND)
    assert 0.45 < np.mean(words.labels > 0) < 0.55
    longest = words.counts().sum(axis=1).max()
    losses, accuracies = zip(*(letter.evaluate(words, *construct(gap, d)) for gap in range(2, 40, 2)), strict=True)
    assert all(later < earlier for earlier, later in itertools.pairwise(losses[:8]))
    assert losses[-1] < (4 * longest * np.exp(-38)) ** 2 + ROUNDING and accuracies[-1] == 1


def test_the_limit_needs_both_heads():
    """Either head alone, or both with the second's ranking reversed, leaves words wrong at any gap."""
    d, gap = 4, 30.0
    words = short_words(d, 4)
    labels = AND.labels(words[:, :2] > 0)
    alpha, beta = two_heads(gap, d)
    reversed_ranks = alpha.copy()
    reversed_ranks[1, :2] = alpha[1, 1::-1]
    for a, b in ((alpha[:1], beta[:1]), (alpha[1:], beta[1:]), (reversed_ranks, beta)):
        assert (labels * letter_twin.scores(words, a, b) <= 0).any()


# ---- training --------------------------------------------------------------------------------------------------------


def test_joint_descent_learns_and_with_the_stored_settings():
    runs = run_plan("and", "joint", [1000, 1001])
    assert settings_for(make_task("and")).init_scale == runs.config.init_scale
    assert runs.test_accuracy.values[:, -1].mean() >= 0.99
    assert runs.attention_gap.values[:, -1].min() > 0.9


def test_attention_phases_of_and_have_many_steps():
    steps = paper.attention_steps("and")
    assert steps > 1
    for row, config in paper.configurations("and"):
        assert "A(1x)" not in config.plan
        assert (f"A({steps}x)" in config.plan) == ("A(1x)" in row.label)
        task = config.make_task()
        assert task.heads == 4 and task.targets == 2


EXPRESSIONS = ("1", "!1", "1 & 2", "1 | 2", "1 & !2", "!1 & !2", "(1 | 2) & (3 | !4)", "1 & 2 | !1 & !2",
               "!(1 & 2 & 3)", "1 & (2 | !3)", "5 & 6 & 7 | 8", "(1|2)&(3|4)&(5|6)")


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("heads", [1, 3])
def test_every_boolean_expression_runs(text, heads):
    runs = run_plan(text, "O(1x)->A(1x)->joint", [0, 1], heads=heads, rate_o=[1.0, 0.2], rate_a=[1.0, 0.2], steps=15,
                    **SMALL)
    language = parse_language(text)
    assert runs.task.language == language and runs.status == ["ok", "ok"]
    words, _ = runs.task.data(0)
    assert np.array_equal(words.labels, language.labels(words.counts()[:, language.letters] > 0))
    assert set(words.labels.tolist()) == {-1, 1}
    assert runs.train_loss.values[0, 0] == letter.evaluate(words, *(p[0, 0] for p in (runs.alpha, runs.beta)))[0]
    for gaps in (runs.attention_gap, runs.output_gap, runs.logit_gap):
        assert np.isfinite(gaps.values).all()
    for row in runs.runs:
        assert row.train_loss[-1] < row.train_loss[0]


letters = st.integers(1, 6).map(str)
expressions = st.recursive(letters, lambda inner: st.one_of(
    inner.map("!({})".format), st.tuples(inner, st.sampled_from("&|"), inner).map(lambda t: f"({' '.join(t)})"),
), max_leaves=6)


@given(text=expressions)
def test_any_boolean_expression_is_run_or_refused(text):
    from analytic.errors import InputError

    options = dict(d=7, train_words=40, test_words=20, heads=2, rate_o=0.1, rate_a=0.1)
    try:
        language = parse_language(text)
    except InputError as error:
        assert "same label" in str(error)
        return
    runs = run_plan(text, "joint(2x)", [0], **options)
    assert runs.task.targets == language.k and np.isfinite(runs.train_loss.values).all()


# ---- gaps head by head -----------------------------------------------------------------------------------------------


def test_gaps_of_the_limit_are_ideal_for_both_heads():
    alpha, beta = two_heads(40.0, 10)
    gaps = make_task("and", d=10, heads=2).gaps(alpha[None], beta[None])
    np.testing.assert_allclose(gaps["attention_gap"], [[1, 1]], rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(gaps["output_gap"], [[1, 1]], rtol=0, atol=ROUNDING)


def test_each_head_has_gaps_of_its_own():
    runs = run_plan("and", "joint(5x)", [0], **SMALL)
    run = runs.runs[0]
    for name, by_head in (("attention_gap", runs.by_head("attention_gap")), ("output_gap", runs.by_head("output_gap"))):
        assert by_head.dims == ("seed", "step", "head") and by_head.shape == (1, 6, 4)
        assert np.array_equal(by_head.values[0], getattr(run, name))
        assert np.array_equal(by_head.values.max(axis=2), getattr(runs, name).values)
    for head in range(4):
        gamma = np.exp(run.alpha[-1][head])
        gamma /= gamma.sum()
        best = max(gamma[s] - max(np.delete(gamma, s)) for s in (0, 1))
        assert run.attention_gap[-1, head] == pytest.approx(best, abs=ROUNDING)
        size = np.abs(run.beta[-1][head])
        assert run.output_gap[-1, head] == pytest.approx((size[:2].max() - size[2:].max()) / 2, abs=ROUNDING)
