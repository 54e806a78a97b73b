"""decide the claims of the theory: symbolic proof, exact enumeration, comparison with the simulator

PATTERN is a claim's id, the beginning of ids (phase1) or a shell pattern ("*.update"); without it all claims run.
The status of a claim is the strongest evidence that held: proved (for every d, k and length law), certified,
enumerated (exact, over all words of small instances), simulated; refuted as soon as one step fails. Every claim is
searched for counterexamples in exact arithmetic at seeded random points of its domain (8; 200 with --deep), and the
first one found is printed. Certified evidence needs the extra rigor. --json and --out hold theory against simulation.
"""


def arguments(parser):
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="which claims (all)")
    parser.add_argument("--file", metavar="FILE", help="claims of your own: a Python file, which is run")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--out", metavar="DIR", help="folder for claims.json, claims.md and claims.tex")
    parser.add_argument("--mutants", action="store_true", help="also plant false variants, which must be refuted")
    parser.add_argument("--deep", action="store_true", help="also run the slow evidence")


def run(args):
    import json
    import sys
    from pathlib import Path

    from sim.cli import FAILED, OK
    from sim.store import atomic, check_writable

    from .appendix import latex, markdown
    from .report import prove

    if args.out:
        check_writable(args.out)  # before the work
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    report = prove(args.pattern, deep=args.deep, mutants=args.mutants, file=args.file, progress=on_terminal)
    text = json.dumps(report.to_json(), indent=2, allow_nan=False)
    if args.out:
        for suffix, content in (("json", text + "\n"), ("md", markdown(report)), ("tex", latex(report))):
            with atomic(Path(args.out) / f"claims.{suffix}") as file:
                file.write(content.encode())
    print(text if args.json else report)
    return FAILED if report.refuted or report.survivors else OK
