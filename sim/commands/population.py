"""gradient descent of a plan on infinite data, from zero init

TASK is occurrence, or, even_pairs, icl_bigram or slr. By symmetry the state is a few numbers (occurrence: two output
weights and the logit gap), so that the expectation over all data is a sum or an integral. A phase without (Nx) runs to
--steps. With --json: the whole trajectory.
"""

from . import flags


def arguments(parser):
    parser.add_argument("task", nargs="?", default="occurrence", metavar="TASK", help="what to learn (occurrence)")
    parser.add_argument("--plan", default="joint", metavar="PLAN", help="training plan (joint)")
    flags.some_settings(parser, *flags.INFINITE, "--rate-o", "--rate-a", "--steps")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    import numpy as np

    from sim.cli import DIVERGED, OK
    from sim.population import population
    from sim.tables import text_table

    config = flags.infinite_config(args.task, args.plan, **flags.collect(args))
    path, diverged = population(config)
    head = {"task": config.task, "plan": config.plan, **flags.infinite_head(config)}
    crossed = {f"step_attention_0{level}": path.first_above("attention_gap", level / 10) for level in (1, 9)}
    if args.json:
        flags.print_json({
            **head, "rate_o": config.rate_o, "rate_a": config.rate_a,
            "status": "diverged" if diverged else "ok", "phase_ends": path.phase_ends, **crossed,
            "left_out": path.left_out, **path.series,
        })
        return DIVERGED if diverged else OK
    print(", ".join(f"{name} {value}" for name, value in head.items())
          + f", eta_A {flags.listed(config.rate_a)}, eta_O {flags.listed(config.rate_o)}")
    names = [name for name, values in path.series.items() if not np.isnan(values).all()]
    rows = [[where, str(step), *(flags.number(path.series[name][step]) for name in names)]
            for where, step in [("init", 0), *((f"phase {i}", end) for i, end in enumerate(path.phase_ends, 1))]]
    print(text_table(["after", "step", *(name.replace("_", " ") for name in names)], rows))
    for level in (1, 9):
        step = crossed[f"step_attention_0{level}"]
        print(f"attention gap passes 0.{level} at step {'-' if step is None else step}")
    if diverged:
        print(f"diverged at step {path.phase_ends[-1]}")
    return DIVERGED if diverged else OK
