"""up to which length a trained letter model decides every word correctly

RUN_FILE is a stored run (its parameters at the end of --phase, by default of the last one); or give --alpha and
--beta, .npy files of shape (d,) or (heads, d), with --task. One head: sharp, exact at the boundary. Several heads: a
certified length and a wrong word above it, sharp when they meet.
"""

from . import flags


def arguments(parser):
    parser.add_argument("run_file", nargs="?", metavar="RUN_FILE", help="a stored run (.npz)")
    parser.add_argument("--phase", type=int, metavar="I", help="after phase I; 0 is the init (the last)")
    parser.add_argument("--alpha", metavar="FILE", help="scores (.npy)")
    parser.add_argument("--beta", metavar="FILE", help="output weights (.npy)")
    parser.add_argument("--task", metavar="TASK", help="what --alpha and --beta should decide (occurrence)")
    parser.add_argument("--targets", type=int, metavar="K", help="size of the target set of --task")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from analytic.certificate import certify
    from analytic.errors import InputError
    from sim.cli import OK

    if (args.run_file is None) == (args.alpha is None and args.beta is None):
        raise InputError("run_file or alpha and beta: give either a stored run, or --alpha FILE --beta FILE")
    task, alpha, beta = _stored(args) if args.run_file else _given(args)
    found = certify(task.language, alpha, beta)
    if args.json:
        witness = {str(letter + 1): int(count) for letter, count in enumerate(found.witness) if count}
        flags.print_json({"task": task.name, "d": task.d, "certified_length": found.length, "sharp": found.sharp,
                          "witness": witness, "witness_length": sum(witness.values())})
    else:
        print(f"{task.name}, d {task.d}: every word of up to {found.length} letters is decided correctly")
        above = "no longer length is safe" if found.sharp else "lengths between are not decided"
        print(f"wrong word of {sum(found.witness)} letters: {found.witness_text} ({above})")
    return OK


def _stored(args):
    from analytic.errors import InputError, whole
    from sim.store import read

    for name in ("task", "targets"):
        if getattr(args, name) is not None:
            raise InputError(f"{name} goes with alpha and beta; a stored run has its own")
    stored = read(args.run_file)
    last = len(stored.phase_ends)
    phase = last if args.phase is None else whole("phase", args.phase, 0, last)
    task = stored.config.make_task()
    if not hasattr(task, "language"):
        raise InputError(f"run_file must be a run of a letter task, not of {stored.config.task}")
    return task, stored.alpha[phase], stored.beta[phase]


def _given(args):
    from analytic.errors import InputError
    from sim.tasks import make_task

    if args.alpha is None or args.beta is None:
        raise InputError("alpha and beta: give both files")
    if args.phase is not None:
        raise InputError("phase goes with a stored run")
    alpha, beta = (_array(name, getattr(args, name)) for name in ("alpha", "beta"))
    heads = 1 if alpha.ndim == 1 else len(alpha)
    return make_task(args.task or "occurrence", d=alpha.shape[-1], targets=args.targets, heads=heads), alpha, beta


def _array(name, path):
    import numpy as np

    from analytic.errors import InputError

    try:
        array = np.load(path, allow_pickle=False)
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
            raise ValueError
    except OSError:
        raise
    except Exception:  # foreign bytes make the reader raise nearly anything
        raise InputError(f"{name} {path} is not a .npy file of real numbers, (d,) or (heads, d)") from None
    return array.astype(float)
