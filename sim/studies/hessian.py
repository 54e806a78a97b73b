"""The largest eigenvalue of the Hessian along joint gradient descent against 2/eta.

One rate eta for both layers, zero init. Gradient descent is locally unstable where the largest eigenvalue of the
Hessian, in all scores and output weights, exceeds 2/eta. Lines: infinite data. Markers: the train loss of a run, its
eigenvalue by the Lanczos method on Hessian-vector products, each a complex step through the gradient.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from analytic.gradients.letter_twin import loss_and_gradient
from analytic.hessian import curvature
from analytic.population import population_path

from ..config import resolve
from ..runs import train_all
from ..settings import D
from .drawing import BLACK, BLUE, VERMILION, axis_of_steps, figure_with_axes, house_style, legend_below
from .figure_data import FigureData

SEEDS, QUICK_SEEDS = 3, 1
RATES = (1.0, 2.0, 3.0)
STEPS = 400
TOLERANCE = 1e-4


def largest_eigenvalue(counts, labels, alpha, beta):
    """Largest eigenvalue of the Hessian of the loss in (alpha, beta), to a relative 1e-4.

    H v = Im(gradient at (alpha, beta) + i h v)/h is exact to rounding for tiny h.

    Parameters
    ----------
    counts, labels : (N, d) and (N,), the words
    alpha, beta : (d,), one head
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    d, h = len(alpha), 1e-30

    def product(v):
        v = v.ravel()
        _, d_alpha, d_beta = loss_and_gradient(counts, labels, alpha + 1j * h * v[:d], beta + 1j * h * v[d:])
        return np.concatenate([d_alpha, d_beta]).imag / h

    start = np.random.default_rng(0).standard_normal(2 * d)
    operator = LinearOperator((2 * d, 2 * d), product, dtype=np.float64)
    return eigsh(operator, 1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False)[0]


def compute(seeds, quick, **pool):
    """Rows: source (population, run), rate, step, largest (eigenvalue), loss, seed."""
    parts = []
    for rate in RATES:
        path = population_path(D, 1, None, [("AO", STEPS, rate, rate)])
        largest = curvature(D, 1, None, path.beta_target, path.beta_other, path.logit_gap).largest
        parts.append(dict(source="population", rate=rate, step=path.time, largest=largest, loss=path.loss))
    stops = [0, 30, 400] if quick else [0, 3, 10, 15, 20, 30, 40, 50, 70, 100, 140, 200, 280, 400]
    plan = "->".join(f"AO({steps}x)" for steps in np.diff(stops))  # a run keeps its parameters at the ends of phases
    configs = [
        resolve("occurrence", plan, init="zero", rate_a=[rate] * len(stops[1:]), rate_o=[rate] * len(stops[1:]),
                train_words=2500 if quick else None, record_every=10**6)
        for rate in RATES
    ]
    runs = [run for group in train_all(configs, seeds, **pool)
            for run in group.runs]
    with ThreadPoolExecutor(pool.get("jobs")) as threads:
        for run, largest in zip(runs, threads.map(_largest_along, runs), strict=True):
            parts.append(dict(source="run", rate=run.config.rate_a[0], seed=run.seed, step=stops[: len(largest)],
                              largest=largest, loss=run.train_loss[stops[: len(largest)]]))
    return FigureData.stack(*parts)


def _largest_along(run):
    """Largest eigenvalue of the train loss at the init and at the end of every phase."""
    words, _ = run.config.make_task().data(run.seed)
    counts = words.counts()
    return [largest_eigenvalue(counts, words.labels, alpha, beta)
            for alpha, beta in zip(run.alpha[:, 0], run.beta[:, 0], strict=True)]


def summary(data):
    """Largest eigenvalue on the way and at the end beside 2/eta, and the loss at the end, by rate."""
    paths = [data.where(source="population", rate=rate) for rate in RATES]
    return {
        "rate": list(RATES),
        "2/rate": [2 / rate for rate in RATES],
        "largest_eigenvalue_on_the_way": [path["largest"].max() for path in paths],
        "largest_eigenvalue_at_the_end": [path["largest"][-1] for path in paths],
        "loss_at_the_end": [path["loss"][-1] for path in paths],
    }


def plot_eigenvalue(data, ax):
    """Largest eigenvalue against the step, and 2/eta, of one rate."""
    path, runs = (data.where(source=source) for source in ("population", "run"))
    _line(ax, path, "largest", "-", BLUE, "largest eigenvalue, infinite data")
    ax.plot(runs["step"], runs["largest"], "o", color=BLUE, fillstyle="none", markersize=4, label="runs")
    ax.axhline(2 / path["rate"][0], color=BLACK, linestyle="--", linewidth=0.9, label=r"$2/\eta$")
    axis_of_steps(ax, STEPS)
    return ax


def plot_loss(data, ax):
    """Loss against the step, of one rate."""
    path, runs = (data.where(source=source) for source in ("population", "run"))
    _line(ax, path, "loss", "-.", VERMILION, "loss, infinite data")
    ax.plot(runs["step"], runs["loss"], "s", color=VERMILION, fillstyle="none", markersize=4, label="runs")
    ax.set(yscale="log", xlabel="gradient steps")
    axis_of_steps(ax, STEPS)
    return ax


def _line(ax, path, name, dash, colour, label):
    """Even and odd steps as lines of their own: beyond 2/eta descent ends in a cycle of two steps."""
    for first in (1, 0):
        ax.plot(path["step"][first::2], path[name][first::2], dash, color=colour, label=None if first else label)


@house_style
def draw(data):
    figure, (top, bottom) = figure_with_axes(2, len(RATES), 3.9, sharex="col", sharey="row")
    for upper, lower, rate in zip(top, bottom, RATES, strict=True):
        one = data.where(rate=rate)
        plot_eigenvalue(one, upper).set_title(rf"$\eta_O = \eta_A = {rate:g}$")
        plot_loss(one, lower)
    top[0].set_ylabel("largest Hessian eigenvalue")
    top[0].set_ylim(bottom=0)
    bottom[0].set_ylabel("loss")
    handles, labels = (a + b for a, b in zip(top[0].get_legend_handles_labels(), bottom[0].get_legend_handles_labels(),
                                             strict=True))
    legend_below(figure, handles, labels, columns=5)
    return figure
