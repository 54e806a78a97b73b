"""train seeds of a task under a plan

TASK is occurrence, or, and, even_pairs, icl_bigram, slr, a Boolean expression of letters such as "1 & (2 | !3)", or a
Python file with a task of your own, which is run (see `attnlag check-task`).
PLAN = phase { "->" phase }, phase = A | O | AO | joint, then (Nx) for N steps; without it a phase runs until the
train loss falls by less than a relative 1e-6 over 100 steps. A trains attention, O the output layer, AO both.
"""

from . import flags

DEFAULT_PLAN = "O(1x)->A(1x)->O"


def arguments(parser):
    parser.add_argument("task", nargs="?", metavar="TASK", help="what to learn")
    parser.add_argument("--plan", metavar="PLAN", help=f"training plan ({DEFAULT_PLAN})")
    flags.seeds_flag(parser, None, "0:3")
    flags.run_settings(parser)
    flags.own_settings(parser)
    parser.add_argument("--config", metavar="FILE", help="TOML file with the same names (rate_o = [18, 1]); flags win")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.running(parser, "results")


def run(args):
    from analytic.errors import InputError
    from sim.cli import DIVERGED, OK
    from sim.runs import run_plan
    from sim.tasks import NAMED

    given = flags.collect(args, extra=("task", "plan", "seeds"))
    if "task" not in given:
        raise InputError(f"task is missing: name {', '.join(NAMED)}, a Boolean expression of letters, or a Python file")
    given |= flags.parse_own(args)
    seeds = flags.parse_seeds(given.pop("seeds", "0:3"))
    runs = run_plan(given.pop("task"), given.pop("plan", DEFAULT_PLAN), seeds, jobs=args.jobs,
                    progress=flags.show_progress(args), out=args.out, **given)
    if args.json:
        flags.print_json(runs.to_dict())
    else:
        print(runs)
    return DIVERGED if runs.diverged else OK
