"""The ICL-bigram kernel against its numpy twin, complex steps, 50-digit arithmetic, and what must leave it unmoved."""

import doctest
import math
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.gradients import icl_bigram, icl_bigram_twin
from analytic.gradients.icl_bigram import NEAR, ROWS, Contexts, descend, evaluate, loss_and_gradient, sample_contexts

STEP = 1e-12  # a complex step is exact to rounding; sums of a few hundred terms of size one round to about 1e-14
ROUNDING = 1e-14  # of results of size one, a few dozen roundings
SIZES = {  # d, pairs, contexts: every compiled width of z, one and several groups of pairs, one and several blocks
    "small": (5, 3, 2 * ROWS + 10),
    "all letters but one": (9, 8, 40),
    "two groups": (20, 9, 30),
    "default": (50, 6, ROWS + 1),
    "wide": (70, 20, 12),
    "one context": (7, 2, 1),
    "one pair": (6, 1, 30),
    "two letters": (2, 1, 5),
}
SCALES = {"near": (1.0, 1.0), "far A": (1e4, 1.0), "far B": (1.0, 1e4), "far": (1e4, 1e4)}  # sizes of A and B
sizes = pytest.mark.parametrize("size", SIZES)
scales = pytest.mark.parametrize("scale", SCALES)


def case(size, scale="near", seed=0):
    """Contexts, A and B."""
    d, pairs, n = SIZES[size]
    rng = np.random.default_rng([seed, d, pairs])
    contexts = sample_contexts(rng, n, d, pairs)
    return contexts, *(size * rng.normal(size=(d, d)) for size in SCALES[scale])


def twin(contexts, attention, output):
    letters, queries = contexts.letters.astype(int), contexts.queries.astype(int)
    return icl_bigram_twin.loss_and_gradient(letters, queries, np.asarray(attention), np.asarray(output))


def tolerances(attention, output):
    """Of loss, d_attention, d_output: a logit of size s is off by a few s 2^-53, its exponential by as much."""
    spread, size = ROUNDING * (1.0 + np.abs(attention).max() + np.abs(output).max()), np.abs(output).max()
    return spread * (1.0 + size), spread * (1.0 + size), spread


def assert_close(results, wanted, allowed):
    for result, want, tolerance in zip(results, wanted, allowed, strict=True):
        assert np.max(np.abs(result - want)) <= tolerance


@sizes
@scales
def test_the_twin_says_the_same_as_the_kernel(size, scale):
    contexts, attention, output = case(size, scale)
    results = loss_and_gradient(contexts, attention, output)
    assert_close(results, twin(contexts, attention, output), tolerances(attention, output))
    loss, accuracy = evaluate(contexts, attention, output)
    letters, queries = contexts.letters.astype(int), contexts.queries.astype(int)
    assert loss == results[0]
    assert accuracy == icl_bigram_twin.accuracy(letters, queries, attention, output)


@pytest.mark.parametrize("size", ("small", "all letters but one", "one context", "one pair"))
def test_the_gradient_is_the_complex_step_derivative_of_the_loss(size):
    contexts, attention, output = case(size, seed=1)
    _, d_attention, d_output = loss_and_gradient(contexts, attention, output)
    for index in np.ndindex(*attention.shape):
        step = np.zeros(attention.shape, dtype=complex)
        step[index] = 1e-30j
        assert abs(twin(contexts, attention + step, output)[0].imag / 1e-30 - d_attention[index]) <= STEP
        assert abs(twin(contexts, attention, output + step)[0].imag / 1e-30 - d_output[index]) <= STEP


def in_fifty_digits(contexts, attention, output):
    """Loss and gradients straight from the definition, letter by letter, at 50 digits."""
    d, n, pairs = contexts.d, contexts.n_contexts, range(contexts.pairs)
    a, b = mpmath.matrix(attention.tolist()), mpmath.matrix(output.tolist())
    loss, d_attention, d_output = mpmath.mpf(0), mpmath.zeros(d), mpmath.zeros(d)
    for x, place in zip(contexts.letters.tolist(), contexts.queries.tolist(), strict=True):
        query, target = x[place], x[place + 1]
        weights = [mpmath.exp(a[query, x[l]]) for l in pairs]
        shares = [w / mpmath.fsum(weights) for w in weights]
        z = [mpmath.fsum(shares[l] * b[j, x[l + 1]] for l in pairs) for j in range(d)]
        powers = [mpmath.exp(v) for v in z]
        loss += (mpmath.log(mpmath.fsum(powers)) - z[target]) / n
        g = [(powers[j] / mpmath.fsum(powers) - (j == target)) / n for j in range(d)]
        dots = [mpmath.fsum(g[j] * b[j, x[l + 1]] for j in range(d)) for l in pairs]
        mean = mpmath.fsum(p * dot for p, dot in zip(shares, dots, strict=True))
        for l in pairs:
            d_attention[query, x[l]] += shares[l] * (dots[l] - mean)
            for j in range(d):
                d_output[j, x[l + 1]] += shares[l] * g[j]
    return loss, d_attention, d_output


def exact(contexts, attention, output, digits=50):
    with mpmath.workdps(digits):
        loss, *gradients = in_fifty_digits(contexts, attention, output)
    return float(loss), *(np.array(g.tolist(), dtype=float) for g in gradients)


@scales
@pytest.mark.parametrize("size", ("small", "all letters but one", "one pair"))
def test_results_are_exact_to_rounding(size, scale):
    contexts, attention, output = case(size, scale, seed=2)
    contexts = Contexts.from_arrays(contexts.letters[:10], contexts.queries[:10], contexts.d)
    wanted = exact(contexts, attention, output)
    assert_close(loss_and_gradient(contexts, attention, output), wanted, tolerances(attention, output))


def diagonal(d, a, b):
    return a * np.eye(d), b * np.eye(d)


@pytest.mark.parametrize("a", (0.5 * NEAR, 3 * NEAR))
@pytest.mark.parametrize("b", (20.0, 200.0, 299.0, 301.0, 690.0))
def test_tiny_losses_and_gradients_keep_their_digits(a, b):
    """With all attention on the query's pair, loss = log(1 + (d - 1) e^-b): 1e-300 at b = 690."""
    contexts, _, _ = case("all letters but one")
    d = contexts.d
    loss, _, d_output = loss_and_gradient(contexts, *diagonal(d, a, b))
    small = math.exp(-b)
    assert loss == pytest.approx(math.log1p((d - 1) * small), rel=STEP, abs=0)
    assert np.abs(d_output).max() == pytest.approx(
        np.abs(exact(contexts, *diagonal(d, a, b), digits=700)[2]).max(), rel=1e-11, abs=0
    )


@pytest.mark.parametrize("b", (-200.0, -1e4, -1e8))
def test_huge_losses_are_right(b):
    contexts, _, _ = case("small")
    loss, d_attention, d_output = loss_and_gradient(contexts, *diagonal(contexts.d, 1e3, b))
    assert loss == pytest.approx(-b + math.log(contexts.d - 1), rel=ROUNDING)
    assert np.isfinite(d_attention).all() and np.isfinite(d_output).all()


@pytest.mark.parametrize("value", (1e4, -1e4, 1e15, 1e100, -1e100))
@pytest.mark.parametrize("both", (True, False))
def test_entries_that_are_all_huge_and_equal_say_nothing(value, both):
    contexts, attention, _ = case("small")
    loss, d_attention, d_output = loss_and_gradient(
        contexts, np.full((5, 5), value) if both else attention, np.full((5, 5), value)
    )
    assert loss == pytest.approx(math.log(5), rel=ROUNDING)
    assert np.isfinite(d_attention).all() and np.isfinite(d_output).all()


@pytest.mark.parametrize("edge", (NEAR, -NEAR))
@pytest.mark.parametrize("which", (0, 1))
def test_results_are_continuous_where_the_formula_changes(which, edge):
    contexts, *parameters = case("small", seed=3)
    parameters[which][1, 2] = edge
    inside = loss_and_gradient(contexts, *parameters)
    parameters[which][1, 2] = np.nextafter(edge, 2 * edge)
    assert_close(loss_and_gradient(contexts, *parameters), inside, 10 * np.array(tolerances(*parameters)))


# ---- what must leave it unmoved --------------------------------------------------------------------------------------


def models(entries):
    """Small sets of contexts with matrices of such entries."""

    @st.composite
    def draw_model(draw):
        d = draw(st.integers(2, 9))
        pairs, n = draw(st.integers(1, d - 1)), draw(st.integers(1, 6))
        letters = [draw(st.permutations(range(d)))[: pairs + 1] for _ in range(n)]
        queries = [draw(st.integers(0, pairs - 1)) for _ in range(n)]
        matrix = st.lists(entries, min_size=d * d, max_size=d * d).map(lambda v: np.reshape(v, (d, d)))
        return Contexts.from_arrays(letters, queries, d), draw(matrix), draw(matrix)

    return draw_model()


@given(models(st.floats(-500, 500)))
def test_any_model_agrees_with_the_twin(model):
    assert_close(loss_and_gradient(*model), twin(*model), tolerances(*model[1:]))


@given(models(st.floats(-3, 3)), st.randoms())
def test_letters_may_be_renamed(model, random):
    contexts, attention, output = model
    names = np.array(random.sample(range(contexts.d), contexts.d))
    renamed = Contexts.from_arrays(names[contexts.letters], contexts.queries, contexts.d)
    back = np.ix_(np.argsort(names), np.argsort(names))
    loss, d_attention, d_output = loss_and_gradient(renamed, attention[back], output[back])
    there = np.ix_(names, names)
    wanted = loss_and_gradient(contexts, attention, output)
    assert_close((loss, d_attention[there], d_output[there]), wanted, tolerances(attention, output))


@given(models(st.floats(-3, 3)), st.lists(st.floats(-50, 50), min_size=18, max_size=18))
def test_a_shift_of_a_querys_scores_or_of_a_values_column_changes_nothing(model, shifts):
    contexts, attention, output = model
    d = contexts.d
    shifted = contexts, attention + np.array(shifts[:d])[:, None], output + np.array(shifts[9 : 9 + d])[None, :]
    wanted = loss_and_gradient(*model)
    assert_close(loss_and_gradient(*shifted), wanted, tolerances(*shifted[1:]))
    assert np.abs(wanted[1].sum(axis=1)).max() <= ROUNDING * 4
    assert np.abs(wanted[2].sum(axis=0)).max() <= ROUNDING


@given(models(st.floats(-3, 3)), st.randoms())
def test_the_order_and_the_number_of_copies_of_contexts_does_not_matter(model, random):
    contexts, attention, output = model
    order = random.sample([*range(contexts.n_contexts)] * 3, 3 * contexts.n_contexts)
    again = Contexts.from_arrays(contexts.letters[order], contexts.queries[order], contexts.d)
    wanted = loss_and_gradient(contexts, attention, output)
    assert_close(loss_and_gradient(again, attention, output), wanted, tolerances(attention, output))


def test_pairs_without_attention_are_as_if_absent_wherever_they_stand():
    attention, output = case("small")[1:]
    attention[0, 1:] = -1e4  # the query 0 looks at its own pair (0, 1) only
    alone = evaluate(Contexts.from_arrays([[0, 1]], [0], 5), attention, output)[0]
    for letters, place in (([0, 1, 2], 0), ([3, 4, 2, 0, 1], 3), ([2, 0, 1, 3, 4], 1)):
        assert evaluate(Contexts.from_arrays([letters], [place], 5), attention, output)[0] == alone


def test_gradients_are_zero_where_no_context_has_the_query_with_the_key_or_the_value():
    contexts, attention, output = case("one context")
    _, d_attention, d_output = loss_and_gradient(contexts, attention, output)
    x, place = contexts.letters[0].tolist(), int(contexts.queries[0])
    touched = np.zeros((7, 7), dtype=bool)
    touched[x[place], x[:-1]] = True
    assert np.array_equal(d_attention != 0, touched)
    assert np.array_equal((d_output != 0).all(axis=0), np.isin(np.arange(7), x[1:]))
    assert np.array_equal((d_output != 0).any(axis=0), np.isin(np.arange(7), x[1:]))


def test_the_rare_letters_of_a_large_alphabet_get_their_gradient():
    rng = np.random.default_rng(4)
    contexts = sample_contexts(rng, 150, 300, 3)
    attention, output = rng.normal(size=(2, 300, 300))
    results = loss_and_gradient(contexts, attention, output)
    assert_close(results, twin(contexts, attention, output), tolerances(attention, output))


# ---- descent ---------------------------------------------------------------------------------------------------------


def bits(path):
    return [part.tobytes() for part in path]


@scales
@pytest.mark.parametrize("rate_a, rate_o", ((0.7, 0.0), (0.0, 0.7), (0.7, 0.3)))
def test_descent_follows_the_gradient_and_leaves_a_frozen_layer_alone(rate_a, rate_o, scale):
    contexts, attention, output = case("default", scale, seed=5)
    path = descend(contexts, attention, output, rate_a, rate_o, 3)
    for t in range(4):
        loss, d_attention, d_output = loss_and_gradient(contexts, path.attention[t], path.output[t])
        assert path.loss[t] == loss
        if t < 3:
            step = path.attention[t] - path.attention[t + 1], path.output[t] - path.output[t + 1]
            allowed = tolerances(path.attention[t], path.output[t])[1:]
            assert_close(step, (rate_a * d_attention, rate_o * d_output), allowed)
    if not rate_a:
        assert (path.attention == attention).all()
    if not rate_o:
        assert (path.output == output).all()


@pytest.mark.parametrize("size", ("small", "default", "wide"))
@pytest.mark.parametrize("rates", ((2.0, 3.0), (0.0, 3.0), (2.0, 0.0), (0.0, 0.0)))
def test_a_run_cut_into_calls_has_the_same_bits(size, rates):
    contexts, attention, output = case(size, seed=6)
    whole = descend(contexts, attention, output, *rates, 7)
    first = descend(contexts, attention, output, *rates, 3)
    rest = descend(contexts, first.attention[-1], first.output[-1], *rates, 4)
    assert [part[:4].tobytes() for part in whole] == bits(first)
    assert [part[3:].tobytes() for part in whole] == bits(rest)


def test_threads_do_not_change_bits():
    contexts, attention, output = case("default", seed=7)
    alone = bits(descend(contexts, attention, output, 5.0, 5.0, 10))
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(descend, contexts, attention, output, 5.0, 5.0, 10) for _ in range(8)]
        assert all(bits(run.result()) == alone for run in runs)


def test_descent_stops_at_the_first_loss_beyond_the_limit():
    contexts, attention, output = case("small", seed=8)
    free = descend(contexts, attention, output, 0.0, 1e3, 20)
    limit = np.sort(free.loss)[-3]
    stopped = descend(contexts, attention, output, 0.0, 1e3, 20, loss_limit=limit)
    n = int(np.argmax(free.loss > limit)) + 1
    assert n < 21 and [part.tobytes() for part in stopped] == [part[:n].tobytes() for part in free]
    assert len(descend(contexts, attention, output, 1.0, 1.0, 20, loss_limit=0.0).loss) == 1


def test_descent_ends_with_a_loss_that_is_not_a_number():
    contexts, attention, output = case("small", seed=9)
    path = descend(contexts, attention, output, 1e308, 1e308, 50)
    assert len(path.loss) < 51 and not math.isfinite(path.loss[-1]) and np.isfinite(path.loss[:-1]).all()


def test_no_step_is_a_state():
    contexts, attention, output = case("small")
    path = descend(contexts, attention, output, 1.0, 1.0, 0)
    assert path.loss.tolist() == [evaluate(contexts, attention, output)[0]]
    assert path.attention.shape == path.output.shape == (1, 5, 5)


# ---- accuracy --------------------------------------------------------------------------------------------------------


def test_an_equal_largest_logit_counts_as_wrong():
    contexts, _, _ = case("small")
    zero, eye = np.zeros((5, 5)), np.eye(5)
    assert evaluate(contexts, zero, zero)[1] == 0.0
    assert evaluate(contexts, 1e3 * eye, eye)[1] == 1.0
    assert evaluate(contexts, 1e3 * eye, -eye)[1] == 0.0
    two = Contexts.from_arrays([[0, 1, 2]], [0], 3)
    assert evaluate(two, zero[:3, :3], eye[:3, :3])[1] == 0.0  # both values have share 1/2
    assert evaluate(two, 1e-9 * eye[:3, :3], eye[:3, :3])[1] == 1.0


@pytest.mark.parametrize("size", (1e-18, 1.0, 1e3, 1e12))
def test_accuracy_compares_logits_not_their_exponentials(size):
    contexts = Contexts.from_arrays([[0, 1]], [0], 2)
    output = size * np.array([[0.0, 1.0], [0.0, np.nextafter(1.0, 2.0)]])
    assert evaluate(contexts, np.zeros((2, 2)), output)[1] == 1.0
    assert evaluate(contexts, np.zeros((2, 2)), output[::-1])[1] == 0.0


@pytest.mark.parametrize("unit", (2.0**-52, 2.0**-50, 1.0))
def test_ties_and_close_calls_are_judged_by_the_logits(unit):
    """Shares of 1/2 of entries a few units apart: every logit is exact or rounded once, and many are equal."""
    rng = np.random.default_rng(13)
    contexts = sample_contexts(rng, 400, 6, 2)
    attention, output = np.zeros((6, 6)), 1.0 + unit * rng.integers(0, 4, (6, 6))
    letters, queries = contexts.letters.astype(int), contexts.queries.astype(int)
    accuracy = evaluate(contexts, attention, output)[1]
    assert accuracy == icl_bigram_twin.accuracy(letters, queries, attention, output)
    assert 0.05 < accuracy < 0.5


# ---- inputs ----------------------------------------------------------------------------------------------------------


def test_parameters_may_have_any_type_and_place_in_memory():
    contexts, attention, output = case("small", seed=10)
    attention, output = np.round(8 * attention), np.round(4 * output)
    wanted = bits(loss_and_gradient(contexts, attention, output)[1:])
    spread = np.zeros((10, 15))
    spread[::2, ::3] = attention
    frozen = attention.copy()
    frozen.flags.writeable = False
    kinds = (spread[::2, ::3], np.asfortranarray(attention), frozen, attention.astype(np.float32),
             attention.astype(np.int8), attention.tolist(), attention[::-1].copy()[::-1], attention.astype(">f8"))
    for same in kinds:
        assert bits(loss_and_gradient(contexts, same, output)[1:]) == wanted
        descend(contexts, same, same, 1.0, 1.0, 2)
        assert np.array_equal(np.asarray(same), attention)


def test_contexts_may_have_any_type_and_place_in_memory():
    contexts, attention, output = case("all letters but one", seed=11)
    wanted = bits(loss_and_gradient(contexts, attention, output)[1:])
    letters, queries = contexts.letters, contexts.queries
    for kind in (np.int8, np.uint64, np.int32):
        wide = np.zeros((len(letters), 18), dtype=kind)
        wide[:, ::2] = letters
        for same in (wide[:, ::2], letters.astype(kind), letters.tolist()):
            again = Contexts.from_arrays(same, queries.astype(kind)[::-1][::-1], 9)
            assert bits(loss_and_gradient(again, attention, output)[1:]) == wanted


def test_contexts_are_kept_as_they_were():
    letters, queries = np.array([[0, 2, 1], [3, 0, 2]]), np.array([0, 1])
    contexts = Contexts.from_arrays(letters, queries, 4)
    before = evaluate(contexts, np.eye(4), np.eye(4))
    letters[:], queries[:] = 1, 0
    assert contexts.letters.tolist() == [[0, 2, 1], [3, 0, 2]] and contexts.queries.tolist() == [0, 1]
    assert evaluate(contexts, np.eye(4), np.eye(4)) == before
    with pytest.raises(ValueError, match="read-only"):
        contexts.letters[0, 0] = 1
    assert (contexts.n_contexts, contexts.d, contexts.pairs) == (2, 4, 2) and contexts.nbytes > 0


BAD_CONTEXTS = (
    (dict(letters=[[0, 1, 1]]), "letters must be distinct within a context, but context 0 has one twice"),
    (dict(letters=[[0, 1, 4]]), "letters must be from 0 to 3, not from 0 to 4"),
    (dict(letters=[[0, -1, 2]]), "letters must be from 0 to 3, not from -1 to 2"),
    (dict(letters=[[0.0, 1.0, 2.0]]), "letters must be whole numbers"),
    (dict(letters=[0, 1, 2]), "letters must be whole numbers"),
    (dict(letters=[[0]]), "letters must be whole numbers"),
    (dict(letters=np.zeros((0, 3), int)), "letters must be whole numbers"),
    (dict(letters=[[True, False]]), "letters must be whole numbers"),
    (dict(queries=[2]), "queries must be from 0 to 1"),
    (dict(queries=[-1]), "queries must be from 0 to 1"),
    (dict(queries=[0, 1]), "queries must be 1 whole numbers"),
    (dict(queries=[0.0]), "queries must be 1 whole numbers"),
    (dict(d=1), "d must be a whole number from 2"),
    (dict(d=40_000), "d must be a whole number from 2"),
    (dict(d=4.0), "d must be a whole number from 2"),
)


@pytest.mark.parametrize("wrong, message", BAD_CONTEXTS, ids=[str(i) for i in range(len(BAD_CONTEXTS))])
def test_wrong_contexts_are_refused_by_name(wrong, message):
    with pytest.raises(InputError, match=message):
        Contexts.from_arrays(**dict(letters=[[0, 1, 2]], queries=[1], d=4) | wrong)


BAD_STATES = (
    (dict(attention=np.zeros((4, 5))), r"attention must hold real numbers in the shape \(5, 5\)"),
    (dict(output=np.zeros(25)), r"output must hold real numbers in the shape \(5, 5\)"),
    (dict(output=np.zeros((5, 5), dtype=complex)), "output must hold real numbers"),
    (dict(attention=np.full((5, 5), np.nan)), r"attention must be finite, but \[0, 0\] is not"),
    (dict(output=np.diag([0, np.inf, 0, 0, 0])), r"output must be finite, but \[1, 1\] is not"),
    (dict(attention=[["a"] * 5] * 5), "attention must hold real numbers"),
    (dict(contexts=[[0, 1, 2]]), "contexts must be made by Contexts.from_arrays or sample_contexts, not list"),
)


@pytest.mark.parametrize("wrong, message", BAD_STATES, ids=[str(i) for i in range(len(BAD_STATES))])
def test_wrong_parameters_are_refused_by_name(wrong, message):
    contexts, attention, output = case("small")
    given_ = dict(contexts=contexts, attention=attention, output=output) | wrong
    for call in (evaluate, loss_and_gradient):
        with pytest.raises(InputError, match=message):
            call(**given_)
    with pytest.raises(InputError, match=message):
        descend(**given_, rate_a=1.0, rate_o=1.0, steps=1)


@pytest.mark.parametrize("wrong, message", (
    (dict(rate_a=-1.0), "rate_a must be"), (dict(rate_o=math.nan), "rate_o must be"), (dict(steps=-1), "steps must be"),
    (dict(steps=1.5), "steps must be"), (dict(loss_limit=math.nan), "loss_limit must be"),
))
def test_wrong_rates_and_steps_are_refused_by_name(wrong, message):
    contexts, attention, output = case("small")
    with pytest.raises(InputError, match=message):
        descend(contexts, attention, output, **dict(rate_a=1.0, rate_o=1.0, steps=1) | wrong)


def test_results_share_no_memory_with_inputs_or_other_results():
    contexts, attention, output = case("small")
    one, two = (loss_and_gradient(contexts, attention, output) for _ in range(2))
    path = descend(contexts, attention, output, 1.0, 1.0, 2)
    arrays = [attention, output, contexts.letters, *one[1:], *two[1:], path.attention, path.output, path.loss]
    for i, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[:i])


# ---- sampled contexts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d, pairs", ((2, 1), (5, 4), (50, 6), (300, 20)))
def test_sampled_letters_are_distinct_and_of_the_alphabet(d, pairs):
    contexts = sample_contexts(np.random.default_rng(0), 500, d, pairs)
    ordered = np.sort(contexts.letters.astype(int), axis=1)
    assert contexts.letters.shape == (500, pairs + 1) and ordered.min() >= 0 and ordered.max() < d
    assert (np.diff(ordered, axis=1) > 0).all()
    assert contexts.queries.max() < pairs


def test_every_ordered_choice_and_every_query_is_equally_likely():
    """Pearson's statistic of the 24 x 2 outcomes at d = 4, T = 2; passes by chance with probability 1 - 1e-6."""
    from scipy.stats import chi2

    contexts = sample_contexts(np.random.default_rng(1), 48_000, 4, 2)
    code = contexts.letters.astype(int) @ [32, 8, 2] + contexts.queries
    counts = np.unique(code, return_counts=True)[1]
    assert len(counts) == 48
    assert np.sum((counts - 1000.0) ** 2) / 1000.0 <= chi2.ppf(1 - 1e-6, 47)


def dealt_one_by_one(rng, n_contexts, d, pairs):
    for _ in range(n_contexts):
        left, letters = list(range(d)), []
        for i in range(pairs + 1):
            drawn = i + int(rng.integers(0, d - i))
            left[i], left[drawn] = left[drawn], left[i]
            letters.append(left[i])
        yield letters, int(rng.integers(0, pairs))


@pytest.mark.parametrize("chunk", (7, 1 << 14))
def test_a_seed_keeps_its_contexts(monkeypatch, chunk):
    monkeypatch.setattr(icl_bigram, "CHUNK", chunk)
    contexts = sample_contexts(np.random.default_rng(2), 200, 50, 6)
    letters, queries = zip(*dealt_one_by_one(np.random.default_rng(2), 200, 50, 6), strict=True)
    assert contexts.letters.tolist() == list(letters) and contexts.queries.tolist() == list(queries)
    assert contexts.letters[0].tolist() == [41, 13, 7, 17, 23, 0, 25]


@pytest.mark.parametrize("wrong", (dict(pairs=4), dict(pairs=0), dict(d=1), dict(n_contexts=0), dict(pairs=1.0)))
def test_wrong_sizes_are_refused_by_name(wrong):
    with pytest.raises(InputError, match=f"^{next(iter(wrong))} must be"):
        sample_contexts(np.random.default_rng(0), **dict(n_contexts=3, d=4, pairs=2) | wrong)


def test_examples_in_the_documentation_are_true():
    assert doctest.testmod(icl_bigram).failed == 0
