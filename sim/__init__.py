"""Run gradient descent on the models, store the runs, and draw the paper's tables and figures from them.

Start with `run_plan`; everything it returns is a labelled array or a table::

    import sim
    runs = sim.run_plan("occurrence", "O(1x)->A(1x)->O", seeds=range(3))
    runs                      # a table: one row a seed
    runs.attention_gap        # labelled array (seed, step)
"""

import importlib

_HOME = {
    "run_plan": "sim.runs",
    "Runs": "sim.runs",
    "load": "sim.stored",
    "run_sweep": "sim.sweep",
    "LabelledArray": "sim.labelled",
    "RunConfig": "sim.config",
    "parse_plan": "sim.plans",
    "make_task": "sim.tasks",
    "Task": "sim.tasks.user",
    "load_task": "sim.tasks.user",
}
__all__ = list(_HOME)


def __getattr__(name):  # lazy: `attnlag --help` must not import numba or scipy
    if name not in _HOME:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__():
    return sorted(__all__)
