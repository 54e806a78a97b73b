"""The mathematics of the models: closed forms, bounds, infinite data, gradients. Arrays in, arrays out.

The names of the letter model are here; the other models have a module each, with the same names where they mean the
same: ``analytic.slr.output_step``, ``analytic.icl_bigram.population_path``. All are loaded on first use, so that
``import analytic`` costs nothing; `__all__` lists the names of letters.
"""

_NAMES = {
    "errors": "InputError",
    "languages": "Language any_of all_of parse_language",
    "lengths": "LengthLaw Geometric Fixed Uniform ShiftedPoisson Table Custom parse_law balanced_geometric",
    "moments": "ShareMoments share_moments letter_moment",
    "shares": "ShareLaw attention_moments",
    "one_step": "output_update output_gap attention_drive attention_update logit_gap gradient_at_zero_scores "
    "linear_attention_gradient",
    "bounds": "rate_o_window rate_o_turning_point balanced_rate_o attention_gap smallest_weight_gap "
    "logit_gap_for_attention logit_gap_for_length rate_a_for_logit_gap certified_length error_probability "
    "log_error_bound",
    "phase_three": "OutputPhase output_phase",
    "failures": "attention_only_bound output_only_loss output_only_weights frozen_attention_minimum "
    "attention_first_ratio attention_first_probability attention_first_asymptote",
    "three_phases": "theory",
    "population": "PopulationPath population_path population_gradient population_flow flow_taylor",
    "hessian": "Curvature curvature",
    "lag": "lag_constant",
    "finite_sample": "output_deviations window_failure words_for_window sampled_steps words_for_ordering",
    "random_init": "output_step_covariance random_scores_variance window_failure_bound window_probability best_rate_o",
    "certificate": "Certificate certify",
    "exact_signs": "score_sign",
}
_MODULES = ("even_pairs", "icl_bigram", "slr", "margin")
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOME)


def __getattr__(name):
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"analytic.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'analytic' has no attribute {name!r}")
    value = getattr(import_module(f"analytic.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__, *_MODULES})
