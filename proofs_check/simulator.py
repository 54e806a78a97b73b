"""Where claims meet the simulator: whole populations, which agree to rounding, and samples, to sampling error."""

import numpy as np

from analytic.gradients.letter import Words, descend
from analytic.languages import any_of
from sim.runs import run_plan
from sim.tasks.letters import LetterTask
from sim.tasks.streams import TRAIN, stream

from .letters import whole_population

POPULATIONS = ((3, 1, 6), (4, 2, 5), (6, 1, 4), (5, 3, 4))  # d, k, longest word
SAMPLES = ((10, 1, "geometric:0.125"), (12, 3, "poisson:5"), (20, 2, "uniform:1:9"), (15, 1, "fixed:6"))
GRID = tuple(
    {"d": d, "k": k, "length": length}
    for d, k in ((2, 1), (5, 3), (50, 1), (50, 2), (1000, 4))
    for length in ("geometric:0.05", "fixed:7", "uniform:2:30", "poisson:20.5")
)  # where the closed forms that the product reports are compared with the claims
SEEDS, WORDS = range(40), 4000


def populations():
    """(d, k, length law, words) where the words are all words, so that the population is exact."""
    for d, k, longest in POPULATIONS:
        yield d, k, f"uniform:1:{longest}", Words.from_counts(*whole_population(d, k, longest))


def kernel_step(words, alpha, beta, rate_a=0.0, rate_o=0.0):
    """alpha and beta after one step of the simulator's kernel."""
    path = descend(words, np.asarray(alpha, float), np.asarray(beta, float), rate_a, rate_o, 1)
    return path.alpha[-1], path.beta[-1]


def runs(plan, d, k, length, seeds=SEEDS, **settings):
    """Independent sampled runs of a plan on OR of k letters, from zero init unless said otherwise."""
    settings = {"init": "zero", "train_words": WORDS, "test_words": WORDS, **settings}
    return run_plan("or", plan, seeds, d=d, targets=k, length=length, **settings)


def fresh_words(d, k, length):
    """Independent training sets of the simulator, one for each of `SEEDS`."""
    task = LetterTask("or", any_of(k), d)
    law = task.length_law(length)
    return (task.words(law, WORDS, stream(seed, TRAIN)) for seed in SEEDS)


def by_class(values, k):
    """The mean over S and the mean over the other letters, of the last axis."""
    return values[..., :k].mean(axis=-1), values[..., k:].mean(axis=-1)
