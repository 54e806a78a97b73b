"""Theory against simulation: predicted, population and sampled values on one grid of d, k, laws, rates and seeds.

A claim takes its rows from here, so that all compare at the same places. The population's values come from sums over
all words (`analytic.population`), the samples from the simulator's words, 20 independent seeds a place. Each row of
the table is a step of evidence: `compared` for a value, `compared_frequency` for a share of words, `bounded` for a
bound.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from analytic import bounds
from analytic.gradients.letter import evaluate
from analytic.languages import any_of
from analytic.lengths import parse_law
from analytic.population import population_path
from sim.tasks.letters import LetterTask
from sim.tasks.streams import TRAIN, stream

from .claims import Step
from .decide import ROUNDING, proportion, student
from .simulator import by_class, kernel_step

PLACES = tuple((d, k, law) for d in (10, 50) for k in (1, 3) for law in ("geometric:0.1", "uniform:1:20", "poisson:8"))
RATES = (0.3, 0.4)  # rate_o / d
LOGIT_GAP = 3.0  # what rate_a is chosen for: attention is on its way
SEEDS, WORDS = range(20), 3000


@dataclass(frozen=True)
class Place:
    """One place of the grid."""

    d: int
    k: int
    length: str
    rate_o: float
    rate_a: float

    @property
    def law(self):
        return parse_law(self.length)

    @property
    def parameters(self):
        """d, k and the length law, for a domain's check."""
        return {"d": self.d, "k": self.k, "length": self.length}

    def path(self):
        """Infinite data: O(1x), then A(1x)."""
        phases = [("O", 1, self.rate_o, 0.0), ("A", 1, 0.0, self.rate_a)]
        return population_path(self.d, self.k, self.law, phases)

    def parameters_after(self, phases):
        """(alpha, beta) of the infinite-data path after 1 or 2 phases, letter by letter."""
        path, inside = self.path(), np.arange(self.d) < self.k
        alpha = np.where(inside, path.logit_gap[phases], 0.0)
        return alpha, np.where(inside, path.beta_target[phases], path.beta_other[phases])

    def words(self):
        """Independent training sets."""
        return _words(self.d, self.k, self.length)

    def steps(self):
        """Per seed: class means of beta after O(1x), and of alpha after A(1x) from the population's beta."""
        return _steps(self)

    def evaluations(self, alpha, beta):
        """Loss and accuracy of every seed's words at given parameters, as two arrays."""
        return np.transpose([evaluate(words, alpha, beta) for words in self.words()])


@cache
def _words(d, k, length):
    task = LetterTask("or", any_of(k), d)
    law = task.length_law(length)
    return [task.words(law, WORDS, stream(seed, TRAIN)) for seed in SEEDS]


@cache
def _steps(place):
    zero, (_, beta) = np.zeros(place.d), place.parameters_after(1)
    first = np.array([kernel_step(words, zero, zero, rate_o=place.rate_o)[1] for words in place.words()])
    second = np.array([kernel_step(words, zero, beta, rate_a=place.rate_a)[0] for words in place.words()])
    values = (*by_class(first, place.k), *by_class(second, place.k))
    return dict(zip(("beta_target", "beta_other", "alpha_target", "alpha_other"), values, strict=True))


def places():
    """The grid."""
    for d, k, length in PLACES:
        for rate in RATES:
            rate_a = bounds.rate_a_for_logit_gap(d, k, parse_law(length), rate * d, LOGIT_GAP)
            yield Place(d, k, length, rate * d, float(rate_a))


def _place_of(place):
    return {"d": place.d, "k": place.k, "length": place.length, "rate_o": place.rate_o, "rate_a": place.rate_a}


def compared(quantity, place, predicted, population, samples):
    """predicted = population to rounding, and = the mean of ``samples`` within Student's quantile."""
    statistic, limit = student(samples, float(predicted))
    error = np.std(samples, ddof=1) / np.sqrt(len(samples))
    return _compared(quantity, place, predicted, population, samples, error, statistic, limit, abs(statistic) <= limit)


def compared_frequency(quantity, place, predicted, population, frequencies, trials):
    """The same for frequencies of an event, rare perhaps, in ``trials`` trials each: binomial tails decide."""
    total, predicted = len(frequencies) * trials, float(predicted)
    step = proportion(quantity, round(sum(frequencies) * trials), total, predicted)
    error = np.sqrt(predicted * (1 - predicted) / total)
    statistic = (np.mean(frequencies) - predicted) / error if error else 0.0
    return _compared(quantity, place, predicted, population, frequencies, error, statistic, step.tolerance, step.held)


def _compared(quantity, place, predicted, population, samples, error, statistic, limit, agreed):
    predicted, population = float(predicted), float(population)
    off = abs(population - predicted) / max(1.0, abs(predicted))
    row = _place_of(place) | {
        "quantity": quantity,
        "seeds": len(samples),
        "predicted": predicted,
        "population": population,
        "population_deviation": off,
        "sampled": float(np.mean(samples)),
        "standard_error": float(error),
        "standard_errors_off": float(statistic) if np.isfinite(statistic) else None,
    }
    held = bool(off <= ROUNDING and agreed)
    witness = None if held else {name: str(value) for name, value in row.items()}
    slack = float(abs(statistic)) if np.isfinite(statistic) else None
    return Step(f"{quantity}: predicted, population, sampled", "simulated", held, slack, limit, witness, row)


def bounded(quantity, place, observed, bound, upper=True):
    """observed <= bound (>= for a lower bound) up to rounding; slack = room / |bound|."""
    observed, bound = float(observed), float(bound)
    room = (bound - observed) if upper else (observed - bound)
    slack = room / abs(bound) if bound else room
    row = _place_of(place) | {
        "quantity": quantity,
        "observed": observed,
        "bound": bound,
        "upper": upper,
        "slack": slack,
    }
    held = slack >= -ROUNDING
    witness = None if held else {name: str(value) for name, value in row.items()}
    return Step(f"{quantity} within its bound", "simulated", held, slack, None, witness, row)
