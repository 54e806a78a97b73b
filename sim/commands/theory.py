"""closed forms of the three-phase plan O(1x)->A(1x)->O from zero init, on infinite data

TASK is occurrence, or, even_pairs, icl_bigram or slr. Step sizes are those of the two single steps; phase 3 runs to its
minimum. What every number of the letter tasks means: python -c "import analytic; help(analytic.theory)".
"""

from . import flags


def arguments(parser):
    parser.add_argument("task", nargs="?", default="occurrence", metavar="TASK", help="what to learn (occurrence)")
    flags.some_settings(parser, *flags.INFINITE, "--rate-o", "--rate-a")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from sim.cli import OK
    from sim.tables import text_table
    from sim.theory import MEANING, theory

    config = flags.infinite_config(args.task, "O(1x)->A(1x)", **flags.collect(args))
    head = {"task": config.task, **flags.infinite_head(config), "rate_o": config.rate_o[0], "rate_a": config.rate_a[0]}
    found = theory(config)
    if args.json:
        flags.print_json(head | found)
        return OK
    print(", ".join(f"{name} {value}" for name, value in head.items()))
    print(text_table(["quantity", "value", "meaning"],
                     [[name, flags.number(found[name]), text] for name, text in MEANING[config.task].items()]))
    return OK
