"""Sets of words of one label that are given by letters that occur and letters that do not."""


def label_cubes(language, y):
    """Sets of words that together are the words of label ``y``: pairs (letters that occur, letters that do not).

    An irredundant cover of the truth table (Minato and Morreale): for OR the positive words are k such sets, the
    negative words one.

    >>> from analytic.languages import any_of
    >>> sorted(label_cubes(any_of(2), 1)), label_cubes(any_of(2), -1)
    ([((0,), ()), ((1,), ())], [((), (0, 1))])
    """
    wanted = sum(1 << pattern for pattern, positive in enumerate(language.truth) if positive == (y > 0))
    cubes, _ = _cover(wanted, wanted, language.k)
    return [
        (tuple(language.letters[i] for i, bit in cube if bit), tuple(language.letters[i] for i, bit in cube if not bit))
        for cube in cubes
    ]


def _cover(lower, upper, variables):
    """Cubes, as tuples of (variable, bit), whose union lies between two truth tables (bit masks over the patterns)."""
    if not lower:
        return [], 0
    size = 1 << variables
    if upper == (1 << size) - 1:
        return [()], upper
    last, half = variables - 1, size // 2
    mask = (1 << half) - 1
    (low0, low1), (up0, up1) = ((table & mask, table >> half) for table in (lower, upper))
    cubes0, covered0 = _cover(low0 & ~up1, up0, last)
    cubes1, covered1 = _cover(low1 & ~up0, up1, last)
    both, covered = _cover((low0 & ~covered0) | (low1 & ~covered1), up0 & up1, last)
    cubes = [(*cube, (last, 0)) for cube in cubes0] + [(*cube, (last, 1)) for cube in cubes1] + both
    return cubes, (covered0 | covered) | (covered1 | covered) << half
