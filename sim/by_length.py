"""Accuracy of trained models against the length of the word."""

import numpy as np

from analytic.errors import InputError, whole
from analytic.gradients import letter
from analytic.lengths import Fixed

from .labelled import LabelledArray
from .tasks.streams import BY_LENGTH, stream

LONGEST = 1_000_000  # letters


def accuracy_by_length(runs, lengths, words=1000, phase_end=-1):
    """Accuracy on words of exactly the given lengths, with iid uniform letters, for each run.

    A seed has the same words of a length in every plan, independent of its training and test words and of the other
    lengths asked for. Long random words contain every letter: only `analytic.certificate.certify` tells whether *all*
    words of a length are decided correctly.

    Parameters
    ----------
    runs : `Runs`
    lengths : whole numbers from 1 to 1 000 000
    words : number of words of each length
    phase_end : which parameters: 0 the init, i those after phase i, -1 the last

    Returns
    -------
    LabelledArray (seed, length); NaN where a run diverged before that end of a phase

    Raises
    ------
    InputError : a length, ``words`` or ``phase_end`` is out of range

    Examples
    --------
    >>> import sim
    >>> runs = sim.run_plan("occurrence", "O(1x)->A(1x)->O", seeds=range(2), d=10)
    >>> accuracy_by_length(runs, [1, 10, 1_000_000]).shape
    (2, 3)
    """
    lengths = [whole("lengths", m, high=LONGEST) for m in np.atleast_1d(lengths).tolist()]
    words = whole("words", words)
    ends = len(runs.config.steps) + 1
    end = whole("phase_end", phase_end, low=-ends, high=ends - 1) % ends
    if not hasattr(runs.task, "language"):
        raise InputError(f"accuracy by length is about words: runs must be of a letter task, not {runs.config.task}")
    values = np.full((len(runs), len(lengths)), np.nan)
    for row, run in zip(values, runs.runs, strict=True):
        if end < len(run.alpha):
            row[:] = [letter.evaluate(words_of_length(runs.task, m, words, run.seed), run.alpha[end], run.beta[end])[1]
                      for m in lengths]
    return LabelledArray("accuracy", values, ("seed", "length"),
                         {"seed": np.array(runs.seeds), "length": np.array(lengths)})


def words_of_length(task, length, words, seed):
    """The words of one length that `accuracy_by_length` tests a seed on."""
    return task.words(Fixed(length), words, stream(seed, BY_LENGTH, length))
