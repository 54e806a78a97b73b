"""Independent random streams of one seed."""

import numpy as np

TRAIN, TEST, INIT, BY_LENGTH = range(4)  # what a stream is used for


def stream(seed, *use):
    """The random generator of one seed for one use: made from the seed alone, on any machine."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=use))
