"""plot what stored runs ended with against a parameter

With a VALUE as --y: mean over seeds, bars of one standard deviation, a line for each --hue; thin lines: infinite data,
where the plan from zero init has closed dynamics. With a parameter as --y and a VALUE as --hue: a map. Values and
parameters are those of `attnlag table`. Writes NAME.csv, NAME.png and NAME.pdf.
"""

from . import flags


def arguments(parser):
    parser.add_argument("folder", metavar="DIR", help="folder of a sweep, or of other runs")
    parser.add_argument("--x", required=True, metavar="NAME", help="parameter along the horizontal axis")
    parser.add_argument("--y", required=True, metavar="VALUE", help="what is plotted against it; a parameter for a map")
    parser.add_argument("--hue", metavar="NAME", help="parameter that tells the lines apart; the value of a map")
    flags.where(parser)
    parser.add_argument("--out", metavar="DIR", help="folder of the figure (DIR)")
    parser.add_argument("--name", metavar="NAME", help="name of its files (Y-against-X)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from sim import plots
    from sim.cli import OK
    from sim.stored import load

    stored = load(args.folder).where(**flags.labels(args.where))
    written = plots.save(stored, args.x, args.y, args.hue, out=args.out or args.folder, name=args.name)
    if args.json:
        flags.print_json({"files": written})
    else:
        print("\n".join(f"wrote {path}" for path in written))
    return OK
