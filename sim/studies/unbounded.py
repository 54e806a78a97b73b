"""Accuracy against the length of the word, plan by plan, with the certified lengths.

Left: random words of each length. Right: random words with exactly one target letter, the hardest to accept. Every
word up to the certified length is decided correctly, and some word longer by one letter is not. All from zero init,
where A(1x)->O is the same as O. Lines: infinite data. Markers: mean over runs, on sampled words.
"""

import numpy as np

from analytic.bounds import certified_length, error_probability
from analytic.certificate import certify
from analytic.gradients.letter_twin import scores
from analytic.lengths import Fixed

from ..config import resolve
from ..population import population
from ..runs import train_all
from ..settings import D
from ..tasks.streams import BY_LENGTH, stream
from .drawing import BLACK, BLUE, PURPLE, SKY, VERMILION, figure_with_axes, house_style, legend_below, plan_name
from .figure_data import FigureData

SEEDS, QUICK_SEEDS = 5, 2
LONGEST = 10**6
WORDS = 500  # of each kind and length, to test a run on
RATE_O, RATE_A = 20.0, 300.0
PLANS = {  # rates of O and A; colour, dash, marker and its size
    "O": (1.0, (), VERMILION, "-", "v", 4),
    "A(1x)->O": (1.0, RATE_A, PURPLE, ":", "^", 4),
    "AO": (1.0, 1.0, BLUE, "-", "o", 7),
    "O(1x)->A(1x)": (RATE_O, RATE_A, SKY, "--", "s", 5),
    "O(1x)->A(1x)->O": ((RATE_O, 1.0), RATE_A, BLACK, "-.", "D", 2.5),
}
PANELS = {"random": "random words", "one target": "random words with one target letter"}


def compute(seeds, quick, **pool):
    """Rows: source (population, run), plan, seed, words (random, one target), length, accuracy; certified_length."""
    lengths = np.unique(np.geomspace(1, LONGEST, 100 if quick else 400).round().astype(int))
    tested = np.unique(np.geomspace(1, LONGEST, 13 if quick else 25).round().astype(int))
    limit = 500 if quick else 2000
    configs = [configuration(plan, limit) for plan in PLANS]
    parts = []
    ends = np.transpose([end_of_plan(plan, limit) for plan in PLANS])
    certified = certified_length(*ends)
    around = np.concatenate([certified, certified + 1])  # so that each line falls where it does
    lengths = np.union1d(lengths, around[(around >= 1) & (around <= LONGEST)]).astype(int)
    wrong = np.array([error_probability(D, 1, Fixed(length), *ends) for length in lengths.tolist()])
    for config, error, length in zip(configs, wrong.T, certified, strict=True):
        about = dict(source="population", plan=config.plan)
        parts += [
            dict(**about, certified_length=length),
            dict(**about, words="random", length=lengths, accuracy=1 - error),
            dict(**about, words="one target", length=lengths, accuracy=(lengths <= length) * 1.0),
        ]
    hardest = {(seed, length): _with_one_target(length, seed) for seed in seeds for length in tested.tolist()}
    for runs in train_all(configs, seeds, **pool):
        random = runs.accuracy_by_length(tested, WORDS)
        for run, accuracy in zip(runs.runs, random.values, strict=True):
            alpha, beta = run.alpha[-1], run.beta[-1]
            about = dict(source="run", plan=runs.config.plan, seed=run.seed)
            accepted = [np.mean(scores(hardest[run.seed, length], alpha, beta) > 0) for length in tested.tolist()]
            parts += [
                dict(**about, certified_length=float(certify(runs.task.language, alpha, beta).length)),
                dict(**about, words="random", length=tested, accuracy=accuracy),
                dict(**about, words="one target", length=tested, accuracy=accepted),
            ]
    return FigureData.stack(*parts)


def configuration(plan, limit):
    """The plan with its rates, from zero init; phases without a count end after ``limit`` steps."""
    rate_o, rate_a, *_ = PLANS[plan]
    return resolve("occurrence", plan, init="zero", rate_o=rate_o, rate_a=rate_a, steps=limit, record_every=10**6)


def end_of_plan(plan, limit):
    """(g, beta_S, beta_o) at the end of a plan on infinite data."""
    path, _ = population(configuration(plan, limit))
    return path.logit_gap[-1], path.beta_target[-1], path.beta_other[-1]


def _with_one_target(length, seed):
    """Counts of random words of one length in which the target letter, the first one, occurs once."""
    rng = stream(seed, BY_LENGTH, length, 1)
    return np.insert(rng.multinomial(length - 1, np.full(D - 1, 1 / (D - 1)), WORDS), 0, 1, axis=1)


def summary(data):
    """Certified lengths on infinite data and of the runs (median)."""
    certified = {}
    for plan in PLANS:
        certified[f"certified_length {plan}"] = _certified(data, plan, "population")
        certified[f"certified_length {plan}, runs"] = _certified(data, plan, "run")
    return certified


def _certified(data, plan, source):
    """The certified length, of runs their median."""
    return float(np.nanmedian(data.where(plan=plan, source=source)["certified_length"]))


def plot_accuracy(data, words, ax):
    """Accuracy against length on one kind of words; vertical lines: certified lengths on infinite data."""
    for plan, (_, _, colour, dash, marker, size) in PLANS.items():
        population, runs = (data.where(plan=plan, source=source, words=words) for source in ("population", "run"))
        ax.plot(population["length"], population["accuracy"], dash, color=colour, linewidth=1, drawstyle="steps-post")
        ax.axvline(_certified(data, plan, "population"), color=colour, linewidth=0.5, alpha=0.5)
        length = runs.values_of("length")
        mean = [runs.where(length=m)["accuracy"].mean() for m in length]
        ax.plot(length, mean, marker, color=colour, fillstyle="none", markersize=size)
    ax.set(xscale="log", xlim=(0.8, 1.25 * LONGEST), ylim=(-0.03, 1.03), xlabel="length of the word in letters",
           title=PANELS[words])
    return ax


@house_style
def draw(data):
    from matplotlib.lines import Line2D

    figure, axes = figure_with_axes(1, 2, 3.2, sharey=True)
    for words, ax in zip(PANELS, axes, strict=True):
        plot_accuracy(data, words, ax)
    axes[0].set_ylabel("accuracy")
    handles, labels = [], []
    for plan, (_, _, colour, dash, marker, size) in PLANS.items():
        handles.append(Line2D([], [], color=colour, linestyle=dash, marker=marker, fillstyle="none", markersize=size))
        population, runs = (_certified(data, plan, source) for source in ("population", "run"))
        labels.append(f"{plan_name(plan)}: {population:.0f} (runs: {runs:.0f})")
    legend_below(figure, handles, labels, columns=3, title="certified length on infinite data (runs: median)")
    return figure
