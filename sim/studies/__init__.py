"""Figures that put the theory and the runs side by side; one file a figure.

A study has ``compute(seeds, quick, **pool)``, which gives the `FigureData` (theory from `analytic`, runs trained with
the options ``pool`` of `sim.runs.train_all`), ``draw(data)``, which makes the figure from these data alone, and
``summary(data)``, its main numbers. ``SEEDS`` and ``QUICK_SEEDS`` say how many runs there are of each kind.
"""

from importlib import import_module

FIGURES = {
    "bands": "gaps and accuracy on infinite data through the bands of 50 runs, three plans, occurrence and OR",
    "unbounded": "accuracy against the length of the word, with the certified length of every plan",
    "phase-diagram": "accuracy and certified length after O(1x)->A(1x) over both rates, with window and thresholds",
    "lag": "how long attention lags behind the output layer, against the alphabet size",
    "lag-map": "the lag over eta_A/eta_O and the init scale of the output weights: where does attention not lag?",
    "phase3": "the least loss of phase 3 against the logit gap, with its bounds",
    "hessian": "the largest eigenvalue of the Hessian along joint gradient descent against 2/eta",
    "steps": "steps to a given train loss, joint against three phases",
}


def study(name):
    """The module of a study."""
    from analytic.errors import choice

    return import_module(f"sim.studies.{choice('name', name, FIGURES).replace('-', '_')}")


def make(name, seeds=None, *, quick=False, jobs=None, progress=False, out="results"):
    """Compute and draw a study; write NAME.csv, NAME.png and NAME.pdf to ``out``, and the runs to ``out``/runs.

    Parameters
    ----------
    name : one of ``FIGURES``
    seeds : whole numbers, the sampled runs of each kind (default: the study's own)
    quick : fewer runs on a coarser grid, a few seconds
    jobs : threads (default: all cores)
    progress : show a progress bar on standard error
    out : folder; runs that it holds already are read, not trained again

    Returns
    -------
    `sim.reproduce.Made` : prints as the study's main numbers

    Raises
    ------
    InputError : there is no such study, or the seeds are wrong
    """
    from sim.reproduce import Made
    from sim.seeds import parse_seeds

    from .drawing import write

    chosen = study(name)
    seeds = parse_seeds(range(chosen.QUICK_SEEDS if quick else chosen.SEEDS) if seeds is None else seeds)
    data = chosen.compute(seeds, quick, jobs=jobs, progress=progress, out=out)
    values = chosen.summary(data)
    text = "\n".join(f"{quantity}: {_text(value)}" for quantity, value in values.items())
    files = write(name, data, chosen.draw, out)
    return Made(text, files, {"figure": name, "values": values}, values.get("diverged", 0))


def _text(value):
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return "-" if value is None else f"{value:.6g}"
