"""reproduce a table or figure of the paper

table1: train loss and test accuracy of seven plans, mean and deviation over seeds, beside the published numbers.
table5: the standard deviations of the same runs beside the published ones.
fig2:   attention gap, output gap and test accuracy along joint GD, O(1x)->A(1x)->O and A(1x)->O.
fig4:   and: attention and output gap of each head along five plans.
fig5:   occurrence and or: attention and output gap along five plans.
Runs that DIR holds already are read, not trained again.
"""

from . import flags

TABLES = ("table1", "table5")
TARGETS = (*TABLES, "fig2", "fig4", "fig5")


def arguments(parser):
    parser.add_argument("what", choices=TARGETS, metavar="WHAT", help=", ".join(TARGETS))
    parser.add_argument("--tasks", metavar="T,T", help="columns of a table (all that can be reproduced)")
    flags.seeds_flag(parser, None, "0:50")
    parser.add_argument("--quick", action="store_true", help="3 seeds instead of 50")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.running(parser, "results")


def run(args):
    from analytic.errors import InputError
    from sim import reproduce
    from sim.cli import DIVERGED, OK

    if args.quick and args.seeds is not None:
        raise InputError("quick means 3 seeds: give --quick or --seeds, not both")
    seeds = args.seeds if args.seeds is not None else "0:3" if args.quick else "0:50"
    settings = dict(seeds=flags.parse_seeds(seeds), jobs=args.jobs,
                    progress=flags.show_progress(args), out=args.out)
    if args.what in TABLES:
        settings["tasks"] = reproduce.check_tasks(args.tasks)
    elif args.tasks is not None:
        raise InputError(f"tasks goes with {' and '.join(TABLES)}; {args.what} has tasks of its own")
    made = getattr(reproduce, args.what)(**settings)
    if args.json:
        flags.print_json(made.to_dict())
    else:
        print(made)
    return DIVERGED if made.diverged else OK
