"""write what a results folder holds as one HTML page

DIR is what reproduce, draw, run and prove wrote with --out. The page has settings, the paper's tables and figures,
other figures, theory beside the runs, claims, and the commands that repeat it. Nothing is trained: what is missing is
named with the command that makes it. The page needs no network, prints, and can be read on a phone.
"""

from . import flags


def arguments(parser):
    parser.add_argument("folder", metavar="DIR", help="results folder")
    parser.add_argument("--out", metavar="FILE", help="the page (DIR/report.html)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args):
    from sim.cli import DIVERGED, OK
    from sim.report import report

    written = report(args.folder, args.out, progress=flags.show_progress(args))
    if args.json:
        flags.print_json(written.to_dict())
    else:
        print(written)
    return DIVERGED if written.damaged else OK
