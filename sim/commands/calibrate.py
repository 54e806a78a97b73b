"""find the stored settings of a task again

Searches rates and steps on seeds of its own (1000 and up) against the train-loss column of the paper's Table 1,
prints every candidate with its losses and score, and the chosen settings as TOML. With --crossings (occurrence):
what would move the steps at which joint GD's attention gap passes 0.1 and 0.9 (31 and 127 in Figure 2).
"""

from . import flags


def arguments(parser):
    parser.add_argument("task", metavar="TASK", help="a task of Table 1")
    flags.seeds_flag(parser, "1000:1020")
    parser.add_argument("--crossings", action="store_true", help="hypotheses on Figure 2's steps instead of settings")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.workers(parser)


def run(args):
    from analytic.errors import choice
    from sim import crossings, paper
    from sim.calibrate import calibrate
    from sim.cli import OK

    choice("task", args.task, paper.TASKS)
    seeds = flags.parse_seeds(args.seeds)
    options = dict(jobs=args.jobs, progress=flags.show_progress(args))
    if args.crossings:
        choice("task with --crossings", args.task, ("occurrence",))
        rows = crossings.crossings(seeds, **options)
        value, text = {"crossings": rows}, crossings.crossings_text(rows)
    else:
        text = calibrate(args.task, seeds, **options)
        value = text.to_dict()
    if args.json:
        flags.print_json(value)
    else:
        print(text)
    return OK
