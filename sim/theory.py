"""The closed forms of the three-phase plan O(1x)->A(1x)->O from zero init, on infinite data, for every task."""

import numpy as np

from analytic.errors import InputError

from .population import population

MEANING = {
    "occurrence": {
        "q": "P(y = +1)",
        "E1": "E[1/m], m the word length",
        "E2": "E[1/m^2]",
        "beta_target": "output weight of a target after phase 1",
        "beta_other": "output weight of any other letter",
        "output_gap": "after phase 1",
        "rate_o_window": "eta_O for which beta_target > 1 > beta_other",
        "K": "drive of phase 2: attention moves to the targets iff K > 0",
        "logit_gap": "after phase 2",
        "attention_gap": "after phase 2",
        "certified_length": "after phase 2 every word up to this length is right, no longer length is safe",
        "log10_test_error_bound": "log10 P(length > certified length)",
        "phase3_loss": "least loss at that attention",
        "phase3_loss_bound": "its bound 4 q E[(1-A)^2 | +]",
        "phase3_certified_length": "after phase 3",
        "output_only_loss": "O only and A(1x)->O stay above it",
        "attention_first_probability": "that A(1x) from a small random init ranks the target first (k = 1)",
    },
    "even_pairs": {
        "u_first": "output weight of both tokens at position 1 after phase 1, all others being 0",
        "loss_after_output": "after phase 1",
        "loss_after_attention": "after phase 2",
        "accuracy_after_attention": "after phase 2",
        "attention_gap": "after phase 2: mean over strings of two or more of y (2 P_1 - 1)",
        "output_only_loss": "(1 - 1/L_max) ln 2: O only and A(1x)->O from zero init stay above it",
    },
    "icl_bigram": {
        "initial_loss": "ln d",
        "b": "B = b (I - J/d) after phase 1",
        "output_gap": "after phase 1",
        "loss_after_output": "after phase 1",
        "a": "A = a (I - J/d) after phase 2",
        "attention_gap": "after phase 2",
        "loss_after_attention": "after phase 2",
        "accuracy_after_attention": "after phase 2",
        "phase3_limit": "what phase 3 tends to",
        "output_only_limit": "ln T: what O only and A(1x)->O from zero init tend to",
    },
    "slr": {
        "initial_loss": "1/2 + eps^2",
        "c": "v = c v* after phase 1",
        "loss_after_output": "after phase 1",
        "a": "k = a k* after phase 2",
        "share": "mean attention on the informative token after phase 2",
        "loss_after_attention": "after phase 2",
        "phase3_loss": "least loss at that attention",
        "output_only_loss": "best linear predictor: O only and A(1x)->O from zero init stay above it",
        "oracle_risk": "eps^2: of who knows the token and v*",
    },
}
MEANING["or"] = MEANING["occurrence"]


def theory(config):
    """What ``MEANING`` names, for a configuration of the plan O(1x)->A(1x).

    Examples
    --------
    >>> from sim.config import resolve
    >>> found = theory(resolve("slr", "O(1x)->A(1x)", rate_o=5, rate_a=3))
    >>> round(found["loss_after_attention"], 6), round(found["oracle_risk"], 6)
    (0.212393, 0.01)
    """
    task = config.make_task()
    if task.name not in _FORMS:
        from analytic import parse_law
        from analytic import theory as letters

        return letters(task.d, task.targets, parse_law(task.length), config.rate_o[0], config.rate_a[0])
    path, _ = population(config)
    (rate_o, *_), (rate_a, *_) = config.rate_o, config.rate_a
    for phase, rates in enumerate((f"rate_o {rate_o:g}", f"rate_a {rate_a:g} with rate_o {rate_o:g}"), start=1):
        if not np.isfinite(path.loss[phase : phase + 1]).any():
            raise InputError(f"{rates} is too large: the loss diverges in phase {phase}")
    found = _FORMS[task.name](task, path, rate_o)
    return {name: float(value) for name, value in found.items()}


def _even_pairs(task, path, rate_o):
    from analytic.even_pairs import output_only_loss, output_update

    return {"u_first": output_update(task.max_length, rate_o), **_after(path),
            "output_only_loss": output_only_loss(task.max_length)}


def _icl_bigram(task, path, _):
    from analytic.icl_bigram import output_limit

    return {"initial_loss": path.loss[0], "b": path.b[1], "a": path.a[2], **_after(path),
            "output_gap": path.output_gap[1], "phase3_limit": output_limit(task.d, task.pairs, path.a[2]),
            "output_only_limit": output_limit(task.d, task.pairs)}


def _slr(task, path, _):
    from analytic.slr import best_output, oracle_risk, output_only_minimum

    return {"initial_loss": path.loss[0], "c": path.c[1], "a": path.a[2], "share": path.share[2], **_after(path),
            "phase3_loss": best_output(task.d, task.tokens, task.noise, path.a[2])[0],
            "output_only_loss": output_only_minimum(task.tokens, task.noise)[0], "oracle_risk": oracle_risk(task.noise)}


def _after(path):
    return {"loss_after_output": path.loss[1], "loss_after_attention": path.loss[2],
            "attention_gap": path.attention_gap[2], "accuracy_after_attention": path.accuracy[2]}


_FORMS = {"even_pairs": _even_pairs, "icl_bigram": _icl_bigram, "slr": _slr}
