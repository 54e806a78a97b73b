"""Tasks by name: what is learned, from which data, by which model.

A task is a frozen object made by `make_task`. It has

    name, settings()             make_task(task.name, **task.settings()) == task
    layers, axes                 names of the attention and the output parameter, and of their axes
    data(seed)                   training and test data
    initial(seed, init, scale)   the two parameters before training
    descend(train, parameters, rate_a, rate_o, steps, loss_limit)   full-batch steps: (loss, attention, output) of each
    test(test, parameters)       the value of ``test_metric``
    gaps(attention, output)      {name: (states, heads)} of a stack of states
    gap_offsets                  steps from the start of a phase at which the gaps are taken (None: every step)
    describe(), facts()          a line of text, and JSON values, for the head of results
"""

from analytic.errors import InputError, choice

LETTERS = {"occurrence": 1, "or": 2, "and": 2}  # targets by default
MODELS = {
    "even_pairs": ("sim.tasks.even_pairs", "EvenPairs"),
    "icl_bigram": ("sim.tasks.icl_bigram", "IclBigram"),
    "slr": ("sim.tasks.slr", "SingleLocation"),
}
NAMED = (*LETTERS, *MODELS)


def make_task(name, **settings):
    """The task called ``name`` with its settings checked and its defaults filled in.

    Parameters
    ----------
    name : "occurrence", "or", "and", "even_pairs", "icl_bigram", "slr", a Boolean expression of letters 1..d, or the
        name of a Python file that `sim.load_task` has loaded (this function runs none)
    **settings : letters: d, targets (size of the target set {1..k} of a named task), heads, train_words, test_words,
        length, test_length; even_pairs: max_length; icl_bigram: d, pairs, train_words, test_words;
        slr: d, tokens, noise, train_words, test_words

    Raises
    ------
    InputError : a setting is not one of this task or out of range, or the expression has a fault (the message points
        at it)

    Examples
    --------
    >>> make_task("or", d=10).language.text
    '1 | 2'
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"task must be one of {', '.join(NAMED)} or a Boolean expression of letters, not {name!r}")
    settings = {key: value for key, value in settings.items() if value is not None}
    if name.endswith(".py"):
        from .user import make_own

        return make_own(name, **settings)
    if name[0].isalpha():
        choice('task (or a Boolean expression of letters such as "1 & !2")', name, NAMED)
    make, known = _maker(name)
    for key in settings:
        if key not in known:
            raise InputError(f"{key} is not a setting of task {name}, whose settings are {', '.join(known)}")
    return make(**settings)


def setting_names(name):
    """Names of the settings of a task of ours."""
    return list(_maker(name)[1])


def _maker(name):
    """What makes the task from its settings, and their names."""
    from dataclasses import fields
    from functools import partial
    from importlib import import_module

    if name in MODELS:
        module, cls = MODELS[name]
        cls = getattr(import_module(module), cls)
        return cls, [field.name for field in fields(cls)]
    from .letters import SETTINGS, letter_task

    return partial(letter_task, name), SETTINGS
