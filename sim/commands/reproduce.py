"""reproduce a table or figure of the paper, or all of them

table1: train loss and test metric of seven plans, mean and deviation over seeds, beside the published numbers.
table2: the initializations as printed beside those of the runs.
table5: the standard deviations of the runs of table1 beside the published ones.
fig1:   the language, the lag of joint GD, the plans, and the gaps they reach.
fig2:   attention gap, output gap and test accuracy along joint GD, O(1x)->A(1x)->O and A(1x)->O.
fig3:   and, even pairs, ICL-bigram, SLR: attention and output gap along five plans.
fig4:   and: attention and output gap of each head along five plans.
fig5:   occurrence and or: attention and output gap along five plans.
all:    all of them.
Runs that DIR holds already are read, not trained again.
"""

from . import flags

TABLES = ("table1", "table2", "table5")
TARGETS = (*TABLES, "fig1", "fig2", "fig3", "fig4", "fig5", "all")


def arguments(parser):
    parser.add_argument("what", choices=TARGETS, metavar="WHAT", help=", ".join(TARGETS))
    parser.add_argument("--tasks", metavar="T,T", help="columns of a table (all that can be reproduced)")
    flags.seeds_flag(parser, None, "0:50")
    parser.add_argument("--quick", action="store_true", help="3 seeds instead of 50")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.running(parser, "results")


def run(args):
    from analytic.errors import InputError, whole
    from sim import reproduce
    from sim.cli import DIVERGED, OK

    if args.quick and args.seeds is not None:
        raise InputError("quick means 3 seeds: give --quick or --seeds, not both")
    seeds = args.seeds if args.seeds is not None else "0:3" if args.quick else "0:50"
    settings = dict(seeds=flags.parse_seeds(seeds), jobs=None if args.jobs is None else whole("jobs", args.jobs),
                    progress=flags.show_progress(args), out=args.out)
    if args.what in TABLES:
        settings["tasks"] = reproduce.check_tasks(args.tasks)
    elif args.tasks is not None:
        raise InputError(f"tasks goes with {' and '.join(TABLES)}; {args.what} has tasks of its own")
    makers = reproduce.MAKERS if args.what == "all" else {args.what: reproduce.MAKERS[args.what]}
    diverged, values = 0, {}
    for name, make in makers.items():
        made = make(**settings)
        diverged += made.diverged
        values[name] = made.to_dict()
        if not args.json:
            print(made, end="\n\n" if len(makers) > 1 else "\n")
    if args.json:
        flags.print_json(values if args.what == "all" else values[args.what])
    return DIVERGED if diverged else OK
