"""tabulate what stored runs ended with, over any two parameters

Mean ± standard deviation over seeds. NAME is a parameter (d, plan, rate_o, ..., or several: plan,d), VALUE one of
train_loss, test_accuracy, test_loss, attention_gap, output_gap, logit_gap, lag (steps from the output gap's pass of 0.1
to the attention gap's), step_attention_01, step_attention_09, steps_made, certified_length.
"""

from . import flags


def arguments(parser):
    parser.add_argument("folder", metavar="DIR", help="folder of a sweep, or of other runs")
    parser.add_argument("--rows", required=True, metavar="NAME", help="parameter, or parameters, of the rows")
    parser.add_argument("--cols", metavar="NAME", help="parameter, or parameters, of the columns (one column)")
    parser.add_argument("--value", required=True, metavar="VALUE", help="what to show")
    flags.where(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from sim.cli import DIVERGED, OK
    from sim.stored import load

    stored = load(args.folder).where(**flags.labels(args.where))
    made = stored.table(args.rows, args.cols, args.value)
    if args.json:
        flags.print_json(made.to_dict())
    else:
        print(made)
    return DIVERGED if made.diverged else OK
