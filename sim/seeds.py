"""Seeds as users write them."""

from numbers import Integral

from analytic.errors import InputError, whole

MOST = 1_000_000


def parse_seeds(given):
    """A list of distinct seeds: a number N is 0, .., N-1; "A:B" is A, .., B-1; "4,7" or any iterable is those.

    Raises
    ------
    InputError : no seed, one twice, a negative one, more than a million, or none of these forms

    Examples
    --------
    >>> parse_seeds("5:8"), parse_seeds(2), parse_seeds("4,7"), parse_seeds(range(3))
    ([5, 6, 7], [0, 1], [4, 7], [0, 1, 2])
    """
    seeds = _text(given) if isinstance(given, str) else given
    if isinstance(seeds, Integral) and not isinstance(seeds, bool):
        seeds = range(int(seeds))
    try:
        count = len(seeds)
    except OverflowError:
        raise InputError(f"seeds must be at most {MOST}, not {given!r}") from None
    except TypeError:
        raise InputError(f"seeds must be N, A:B or a list such as 4,7, not {given!r}") from None
    if not count:
        raise InputError(f"seeds {given!r} names no seed; use N >= 1, A:B with A < B, or a list such as 4,7")
    if count > MOST:
        raise InputError(f"seeds must be at most {MOST}, not {count}")
    seeds = [whole("seeds", seed, low=0, high=2**63 - 1) for seed in seeds]
    if len(set(seeds)) < count:
        raise InputError("seeds has the same seed twice")
    return seeds


def _text(text):
    try:
        if ":" in text:
            low, high = text.split(":")
            return range(int(low), int(high))
        return [int(part) for part in text.split(",")] if "," in text else int(text)
    except ValueError:
        raise InputError(f"seeds must be N, A:B or a list such as 4,7, not {text!r}") from None
