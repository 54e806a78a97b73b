"""check a task of your own: gradients, invariances, determinism, gaps

FILE is a Python file with a class derived from sim.Task; it is run. Gradients are compared with derivatives of the
task's own loss, at ordinary and at extreme points; the exit code is 1 when a check fails.
"""

from . import flags


def arguments(parser):
    parser.add_argument("file", metavar="FILE", help="Python file with the task, which is run")
    flags.own_settings(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from sim.check_task import check_task
    from sim.cli import FAILED, OK

    report = check_task(args.file, **flags.parse_own(args))
    if args.json:
        flags.print_json(report.to_dict())
    else:
        print(report)
    return FAILED if report.failed else OK
