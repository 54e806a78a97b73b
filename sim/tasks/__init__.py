"""Tasks by name: occurrence, or, and, or a Boolean expression of letters such as "1 & (2 | !3)"."""

from analytic.errors import InputError, choice, whole

NAMED = ("occurrence", "or", "and")


def make_task(name, *, d=50, targets=None, heads=None):
    """The task called ``name``, checked.

    Parameters
    ----------
    name : "occurrence", "or", "and", or a Boolean expression of letters 1..d
    d : alphabet size, at least 2
    targets : size of the target set {1..k} of a named task (default: occurrence 1, or 2, and 2)
    heads : attention heads (default: and 4, else 1)

    Raises
    ------
    InputError : an argument is out of range, or the expression has a fault (the message points at it)

    Examples
    --------
    >>> make_task("or", d=10).language.text
    '1 | 2'
    """
    from analytic.languages import all_of, any_of, parse_language

    from .letters import LetterTask

    d = whole("d", d, low=2)

    if not isinstance(name, str) or not name.strip():
        raise InputError(f"task must be one of {', '.join(NAMED)} or a Boolean expression of letters, not {name!r}")
    if name[0].isalpha():
        choice('task (or a Boolean expression of letters such as "1 & !2")', name, NAMED)
        if name == "occurrence" and targets not in (None, 1):
            raise InputError(f"targets of occurrence is 1, not {targets}; use task or for more letters")
        k = (1 if name == "occurrence" else 2) if targets is None else targets
        language = all_of(k) if name == "and" else any_of(k)
    elif targets is not None:
        raise InputError(f"targets goes with the tasks {', '.join(NAMED)}; {name!r} names its letters itself")
    else:
        language = parse_language(name)
        name = language.text
    default_heads = 4 if name == "and" else 1
    return LetterTask(name, language, d, default_heads if heads is None else whole("heads", heads))
