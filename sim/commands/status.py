"""what a folder of runs holds: done, missing, damaged, diverged, and a hash of all results

The hash is that of the results alone, whatever their order and whoever computed them. Exit code 3 if a file is damaged
or a run diverged.
"""

from . import flags


def arguments(parser):
    parser.add_argument("folder", metavar="DIR", help="folder of a sweep, or of other runs")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from sim.cli import DIVERGED, OK
    from sim.status import status

    found = status(args.folder)
    if args.json:
        flags.print_json(found.to_dict())
    else:
        print(found)
    return DIVERGED if found.damaged or found.diverged else OK
