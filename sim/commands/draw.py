"""draw theory and runs together, with the data of every figure as CSV

Theory as lines, runs as markers or bands. Writes NAME.csv, NAME.png and NAME.pdf to DIR. Runs that DIR holds already
are read, not trained again.
"""

from . import flags


def arguments(parser):
    from sim.studies import FIGURES

    parser.add_argument("name", choices=FIGURES, metavar="NAME", help="one of the figures below")
    parser.epilog = "\n".join(["figures:", *(f"  {name:15}{text}" for name, text in FIGURES.items())])
    flags.seeds_flag(parser, None, "as many as the figure needs")
    parser.add_argument("--quick", action="store_true", help="fewer runs on a coarser grid")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.running(parser, "results")


def run(args):
    from sim import studies
    from sim.cli import DIVERGED, OK

    seeds = None if args.seeds is None else flags.parse_seeds(args.seeds)
    made = studies.make(args.name, seeds, quick=args.quick, jobs=args.jobs, progress=flags.show_progress(args),
                        out=args.out)
    if args.json:
        flags.print_json(made.to_dict())
    else:
        print(made)
    return DIVERGED if made.diverged else OK
