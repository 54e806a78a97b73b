"""closed forms of the three-phase plan O(1x)->A(1x)->O from zero init, on infinite data

TASK is occurrence or or. Step sizes are those of the two single steps; phase 3 runs to its minimum. What every
number means: python -c "import analytic; help(analytic.theory)".
"""

from . import flags

MEANING = {
    "q": "P(y = +1)",
    "E1": "E[1/m], m the word length",
    "E2": "E[1/m^2]",
    "beta_target": "output weight of a target after phase 1",
    "beta_other": "output weight of any other letter",
    "output_gap": "after phase 1",
    "rate_o_window": "eta_O for which beta_target > 1 > beta_other",
    "K": "drive of phase 2: attention moves to the targets iff K > 0",
    "logit_gap": "after phase 2",
    "attention_gap": "after phase 2",
    "certified_length": "after phase 2 every word up to this length is right, no longer length is safe",
    "log10_test_error_bound": "log10 P(length > certified length)",
    "phase3_loss": "least loss at that attention",
    "phase3_loss_bound": "its bound 4 q E[(1-A)^2 | +]",
    "phase3_certified_length": "after phase 3",
    "output_only_loss": "O only and A(1x)->O stay above it",
    "attention_first_probability": "that A(1x) from a small random init ranks the target first (k = 1)",
}


def arguments(parser):
    parser.add_argument("task", nargs="?", default="occurrence", metavar="TASK", help="occurrence or or (occurrence)")
    flags.some_settings(parser, "--d", "--targets", "--length", "--rate-o", "--rate-a")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    import analytic
    from analytic.lengths import parse_law
    from sim.cli import OK
    from sim.tables import text_table

    given = flags.collect(args)
    config = flags.or_config(args.task, "O(1x)->A(1x)", **given)
    task = config.make_task()
    law = parse_law(task.length)
    found = analytic.theory(task.d, task.targets, law, config.rate_o[0], config.rate_a[0])
    head = {"task": config.task, "d": task.d, "targets": task.targets, "length": task.length,
            "rate_o": config.rate_o[0], "rate_a": config.rate_a[0]}
    if args.json:
        flags.print_json(head | found)
        return OK
    print(", ".join(f"{name} {value}" for name, value in head.items()))
    print(text_table(["quantity", "value", "meaning"],
                     [[name, flags.number(found[name]), text] for name, text in MEANING.items()]))
    return OK
