r"""The plan O(1x) -> A(1x) -> O from zero init, on infinite data, in numbers: what `attnlag theory` prints."""

import numpy as np

from . import bounds, failures, one_step
from .errors import broadcasting
from .moments import share_moments
from .phase_three import output_phase


@broadcasting
@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # huge rates: inf; a bounded law's tail: log 0 = -inf
def theory(d=50, k=1, law=None, rate_o=20.0, rate_a=300.0):
    """Every closed form of the three-phase plan for OR over k of d letters (k = 1: occurrence).

    Parameters
    ----------
    d, k : alphabet size and number of targets, 1 <= k < d
    law : `LengthLaw` or its text ("fixed:5"), an array of them, or None for the balanced geometric law
    rate_o, rate_a : step sizes of O(1x) and A(1x), >= 0 (they multiply the gradient of E[(f - y)^2], no 1/2)

    All arguments broadcast: a grid of rates or of d in one call.

    Returns
    -------
    dict of arrays (scalars for scalar arguments):

    ``q``, ``E1``, ``E2`` : P(y = +1), E[1/m], E[1/m^2]
    ``beta_target``, ``beta_other``, ``output_gap`` : after phase 1
    ``rate_o_window`` : (lo, hi) for beta_target > 1 > beta_other
    ``K``, ``logit_gap``, ``attention_gap`` : after phase 2 (K > 0 iff it moves towards the targets)
    ``certified_length`` : after phase 2 every word up to it is decided correctly, and no longer length is safe
    ``log10_test_error_bound`` : log10 P(m > certified_length), which bounds `bounds.error_probability`
    ``phase3_loss``, ``phase3_loss_bound`` : least loss at that logit gap, and its bound 4 q E[(1-A)^2 | +]
    ``phase3_certified_length`` : the certified length at the end of phase 3 (phase 3 changes it)
    ``output_only_loss`` : the loss that O only and A(1x) -> O stay above
    ``attention_first_probability`` : that A(1x) from a small random init ranks the target first (nan for k > 1)

    Examples
    --------
    >>> result = theory()
    >>> round(float(result["logit_gap"]), 7), float(result["certified_length"])
    (10.4265363, 93590.0)
    """
    m = share_moments(d, k, law)
    rate_o, rate_a = one_step.check_rates("rate_o", rate_o), one_step.check_rates("rate_a", rate_a)
    beta_target, beta_other = one_step.output_update(d, k, law, rate_o)
    g = one_step.logit_gap(d, k, law, rate_o, rate_a)
    length = bounds.certified_length(g, beta_target, beta_other)
    phase3 = output_phase(d, k, law, g)
    log_tail = np.frompyfunc(bounds.log_error_bound, 2, 1)
    first = np.where(m.k == 1, failures.attention_first_probability(m.d, law), np.nan)
    return {
        "q": m.q,
        "E1": m.E1,
        "E2": m.E2,
        "beta_target": beta_target,
        "beta_other": beta_other,
        "output_gap": one_step.output_gap(d, k, law, rate_o),
        "rate_o_window": bounds.rate_o_window(d, k, law),
        "K": one_step.attention_drive(d, k, law, rate_o),
        "logit_gap": g,
        "attention_gap": bounds.attention_gap(d, k, g),
        "certified_length": length,
        "log10_test_error_bound": np.asarray(log_tail(m.law, length), dtype=np.float64) / np.log(10),
        "phase3_loss": phase3.minimum,
        "phase3_loss_bound": phase3.bound,
        "phase3_certified_length": bounds.certified_length(g, phase3.beta_target, phase3.beta_other),
        "output_only_loss": failures.output_only_loss(d, k, law),
        "attention_first_probability": first,
    }
