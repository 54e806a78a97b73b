"""train every run that a specification names: parallel, resumable, on many machines

SPEC is a TOML file with the names of `attnlag run` (rate_o = 18): parameters of every run at the top, axes under
[grid] (every combination), [zip] (first with first, second with second) and [[list]] (one table after the other, each
with parameters and axes of its own). Runs that DIR holds already are kept, so the same command resumes, and more seeds
or values extend a sweep.
"""

from . import flags


def arguments(parser):
    parser.add_argument("spec", metavar="SPEC", help="TOML file: which runs")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="change the specification: NAME=VALUE for every run, or grid.NAME=[..]; may be repeated")
    parser.add_argument("--task-file", action="append", default=[], metavar="FILE",
                        help="Python file with a task of your own that SPEC names; it is run; may be repeated")
    parser.add_argument("--dry-run", action="store_true", help="check all; print runs, time and disk")
    parser.add_argument("--shard", metavar="I/N", help="only the I-th of N parts, I = 1..N, as of an array job")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="train on the Dask cluster at tcp://HOST:PORT")
    parser.add_argument("--json", action="store_true", help="print JSON")
    flags.running(parser, "results")


def run(args):
    from analytic.errors import InputError
    from sim.cli import DIVERGED, OK
    from sim.spec import read_spec
    from sim.sweep import estimate, parse_shard, run_sweep
    from sim.tasks.user import load_task

    shard = (1, 1) if args.shard is None else parse_shard(args.shard)
    if args.scheduler is not None and args.jobs is not None:
        raise InputError("jobs is for the threads of this machine; with a scheduler its workers have their own")
    for file in args.task_file:
        load_task(file)
    spec = read_spec(args.spec, args.set)
    if args.dry_run:
        done = estimate(spec, args.out, jobs=args.jobs, shard=shard)
    else:
        done = run_sweep(spec, args.out, jobs=args.jobs, shard=shard, scheduler=args.scheduler,
                         progress=flags.show_progress(args))
    if args.json:
        flags.print_json(done.to_dict())
    else:
        print(done)
    return OK if args.dry_run or not (done.diverged or done.failed) else DIVERGED
