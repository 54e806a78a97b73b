"""Why does joint GD pass an attention gap of 0.9 at step 145 here and at 127 in the paper's Figure 2?

Figure 2 puts the passes of 0.1 and 0.9 at steps 31 and 127; unit rates and the N(0, 0.1^2) init give 31 and 145.
Each hypothesis changes one thing the paper does not tell us and is run on search seeds.
"""

from . import tables
from .config import resolve
from .runs import train_all
from .seeds import parse_seeds

PUBLISHED = (31, 127)
ALTERNATING = 400

HYPOTHESES = (
    ("unit rates, init N(0, 0.1^2): the settings used", {}),
    ("zero init", dict(init="zero")),
    ("smaller init, N(0, 0.01^2)", dict(init_scale=0.01)),
    ("larger init, N(0, 0.2^2)", dict(init_scale=0.2)),
    ("larger init, N(0, 0.3^2)", dict(init_scale=0.3)),
    ("d^2 training words instead of 5 d^2", dict(train_words=2500)),
    ("20 d^2 training words", dict(train_words=50000)),
    ("mean length d instead of d - 1", dict(length="geometric:0.02")),
    ("mean length d/2", dict(length="geometric:0.04")),
    ("mean length 2 d", dict(length="geometric:0.01")),
    ("fixed length 34 (balanced)", dict(length="fixed:34")),
    ("uniform length 1..100", dict(length="uniform:1:100")),
    ("both rates 1.14", dict(rate_a=1.14, rate_o=1.14)),
    ("eta_A 1.2, eta_O 1", dict(rate_a=1.2, rate_o=1.0)),
    ("eta_A 1, eta_O 0.9", dict(rate_a=1.0, rate_o=0.9)),
    ("eta_A 1.15, eta_O 0.9", dict(rate_a=1.15, rate_o=0.9)),
    ("eta_A 1.2, eta_O 0.9", dict(rate_a=1.2, rate_o=0.9)),
    ("layers in turn, O first", dict(plan="O(1x)->A(1x)")),
    ("layers in turn, A first", dict(plan="A(1x)->O(1x)")),
)


def crossings(seeds=range(1000, 1020), *, jobs=None, progress=False):
    """First steps at which the attention gap of joint GD on occurrence (d = 50) exceeds 0.1 and 0.9.

    Returns
    -------
    list of dict : hypothesis, then mean and standard deviation of both steps over the seeds (None: not passed by
        every run within 800 steps)
    """
    seeds = parse_seeds(seeds)
    configs = [_config(dict(change)) for _, change in HYPOTHESES]
    done = train_all(configs, seeds, jobs=jobs, progress=progress)
    rows = []
    for (name, change), runs in zip(HYPOTHESES, done, strict=True):
        summary = runs.summary()
        row = {"hypothesis": name}
        for key in ("step_attention_01", "step_attention_09"):
            # a step of alternating updates is one of each layer
            per_step = 2 if "plan" in change else 1
            for name, value in ((key, summary["mean"][key]), (key + "_std", summary["std"][key])):
                row[name] = None if value is None else value / per_step
        rows.append(row)
    return rows


def _config(change):
    plan = change.pop("plan", None)
    if plan is None:
        return resolve("occurrence", "joint(800x)", **{"rate_a": 1.0, "rate_o": 1.0, **change})
    ones = [1.0] * ALTERNATING
    return resolve("occurrence", "->".join([plan] * ALTERNATING), rate_a=ones, rate_o=ones)


def crossings_table(rows):
    """Header and rows of strings, the published steps last."""
    header = ["hypothesis", "gap > 0.1 at step", "gap > 0.9 at step"]
    def cell(row, key):
        if row[key] is None:
            return "not by all"
        spread = row[key + "_std"]
        return f"{row[key]:.1f}" + ("" if spread is None else f" ± {spread:.1f}")

    lines = [[row["hypothesis"], cell(row, "step_attention_01"), cell(row, "step_attention_09")] for row in rows]
    return header, [*lines, ["paper (Figure 2)", *map(str, PUBLISHED)]]


def crossings_text(rows):
    """`crossings_table` for a terminal."""
    return tables.text_table(*crossings_table(rows))
