"""The joint Hessian against differentiated gradients over all words, and the lag on large alphabets against descent."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.gradients.letter_twin import loss_and_gradient
from analytic.hessian import curvature
from analytic.lag import lag_constant
from analytic.languages import any_of
from analytic.lengths import Fixed, Geometric, Uniform
from analytic.phase_three import output_phase
from analytic.population import population_path


def hessian_over_all_words(d, k, length, alpha, beta):
    """The full 2d x 2d Hessian: complex steps through the gradient of the readable twin, on every word."""
    counts = np.array([[word.count(j) for j in range(d)] for word in itertools.product(range(d), repeat=length)])
    labels = any_of(k).labels(counts[:, :k] > 0)

    def gradient(parameters):
        _, d_alpha, d_beta = loss_and_gradient(counts, labels, parameters[None, :d], parameters[None, d:])
        return np.concatenate([np.ravel(d_alpha), np.ravel(d_beta)])

    at, step = np.concatenate([alpha, beta]).astype(complex), 1e-30
    return np.array([gradient(at + 1j * step * unit).imag / step for unit in np.eye(2 * d)])


@given(
    st.sampled_from([(3, 1), (4, 2), (4, 1), (3, 2)]),
    st.integers(1, 4),
    st.floats(-3, 3),
    st.floats(-1, 2),
    st.floats(-2, 3),
)
@settings(max_examples=25)
def test_all_eigenvalues_of_the_joint_hessian_are_found(alphabet, length, target, other, g):
    d, k = alphabet
    inside = np.arange(d) < k
    full = hessian_over_all_words(d, k, length, np.where(inside, g, 0.0), np.where(inside, target, other))
    value = curvature(d, k, Fixed(length), target, other, g)
    stated = [0.0, *value.symmetric, *np.repeat(value.targets, k - 1), *np.repeat(value.others, d - k - 1)]
    assert np.sort(stated) == pytest.approx(np.linalg.eigvalsh((full + full.T) / 2), abs=1e-11)
    assert value.largest == pytest.approx(max(np.linalg.eigvalsh((full + full.T) / 2)), abs=1e-11)


def test_with_the_scores_frozen_at_a_minimum_it_is_the_hessian_of_phase_three():
    phase = output_phase(30, 2, Uniform(2, 20), 3.0)
    value = curvature(30, 2, Uniform(2, 20), phase.beta_target, phase.beta_other, 3.0)
    # eigenvalues of a principal block interlace
    assert (
        value.symmetric[0] <= phase.eigenvalues[0] <= value.symmetric[1] <= phase.eigenvalues[1] <= value.symmetric[2]
    )
    assert value.targets[0] <= phase.target_eigenvalue <= value.targets[1]
    assert value.others[0] <= phase.other_eigenvalue <= value.others[1]


def test_joint_descent_stays_below_the_stability_limit_where_it_is_stable():
    path = population_path(50, 1, None, [("AO", 400, 1.0, 1.0)])
    values = curvature(50, 1, None, path.beta_target, path.beta_other, path.logit_gap)
    assert values.largest.shape == (401,) and values.symmetric.shape == (401, 3)
    assert values.largest.max() < 2 and np.all(np.diff(path.loss) < 0)


@pytest.mark.parametrize(
    ("q", "ratio", "constant"),
    [
        (0.5, 1, 0.480771),
        (0.1, 1, 0.3340),
        (0.25, 1, 0.3732),
        (0.75, 1, 0.7702),
        (0.9, 1, 1.7896),
        (0.5, 0.1, 1.827),
        (0.5, 10, 0.1373),
        (0.5, 100, 0.0419),
    ],
)
def test_values_of_the_lag_constant(q, ratio, constant):
    assert lag_constant(q, ratio) == pytest.approx(constant, abs=5e-4 if ratio < 1 else 5e-5)  # as many digits as given


def test_the_lag_of_descent_is_linear_in_the_alphabet_with_that_constant():
    """T(0.1) = s* d + O(ln^2 d), whatever the law: the excess over ln^2 d is nearly the same at 1000 and 8000."""
    excess = []
    for d in (1000, 8000):
        path = population_path(d, 1, Geometric(1 / (d - 1)), [("AO", d, 1.0, 1.0)])
        step = path.first_above("attention_gap", 0.1)
        excess.append((step - lag_constant() * d) / np.log(d) ** 2)
        assert step / d == pytest.approx(lag_constant(), rel=0.05)
    assert excess[0] == pytest.approx(excess[1], abs=0.02)
    fixed = population_path(5000, 1, Fixed(round(5000 * np.log(2))), [("AO", 5000, 1.0, 1.0)])
    assert fixed.first_above("attention_gap", 0.1) / 5000 == pytest.approx(0.4832, abs=5e-4)


def test_impossible_arguments_are_refused():
    for bad in (0.0, 1.0):
        with pytest.raises(InputError, match="q must be"):
            lag_constant(bad)
    with pytest.raises(InputError, match="rate_ratio"):
        lag_constant(0.5, 0.0)
    with pytest.raises(InputError, match="targets"):
        curvature(5, 5, None, 0.0, 0.0, 0.0)
