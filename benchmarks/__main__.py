"""``python -m benchmarks [NAME] [--quick] [--json] [--docs DIR] [--stored]``: measure, and print tables or JSON.

NAME is one of the benchmarks, or all of them, each in a process of its own. With --docs the results are kept in
DIR/performance.json, each as soon as it is there, and DIR/performance.md and its plots are made again from all that is
kept; --stored measures nothing and only makes them again. Exit codes: 0; 1 a benchmark failed; 2 usage; 130 Ctrl-C.
"""

import argparse
import importlib
import json
import os
import signal
import sys
import time

NAMES = ("roofs", "letter", "even_pairs", "icl_bigram", "slr", "two_threads", "sweeps", "table1", "start_up",
         "population", "cost", "store")  # fmt: skip
TWO_THREADS = ("two_threads",)  # benchmarks that let a library use two
OLD_KERNELS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # a BLAS held to an older CPU would lose for that reason alone


def arguments(given=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="?", default="all", metavar="NAME", help=", ".join((*NAMES, "all (default)")))
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repeats")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--docs", metavar="DIR", help="keep the results in DIR, and make its page and plots again")
    parser.add_argument("--stored", action="store_true", help="measure nothing: take what --docs DIR holds")
    parser.error = _one_line
    chosen = parser.parse_args(given)
    if chosen.name not in (*NAMES, "all"):
        from analytic.errors import did_you_mean

        near = did_you_mean(chosen.name, (*NAMES, "all"))
        parser.error(f"NAME must be one of {', '.join((*NAMES, 'all'))}, not {chosen.name!r}{near}")
    if chosen.stored and not chosen.docs:
        parser.error("--stored goes with --docs DIR")
    if chosen.docs and not os.path.isdir(chosen.docs):
        parser.error(f"--docs must be a folder that exists, not {chosen.docs!r}")
    return chosen


def _one_line(message):
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(2)


def set_environment(threads):
    """The threads of every library, which they read when they are imported: a pool would slow its neighbours."""
    count = str(threads)
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), count))
    eigen = "true" if threads > 1 else "false"
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={eigen} intra_op_parallelism_threads={count}"
    for variable in OLD_KERNELS:
        os.environ.pop(variable, None)


def measure(name, quick):
    """A benchmark in this process: its results, on what they were measured, and how long that took."""
    from . import timing

    machine, start = timing.machine(), time.time()
    found = importlib.import_module(f"benchmarks.{name}").measure(quick)
    return {"machine": machine, "quick": quick, "date": time.strftime("%Y-%m-%d", time.gmtime(start)),
            "took": round(time.time() - start, 1), **found}  # fmt: skip


def measure_apart(name, quick):
    """A benchmark in a process of its own, where no other library's threads still spin and its memory is free again."""
    from . import timing

    print(f"measuring {name}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks", name, "--json", *["--quick"] * quick]
    found = json.loads(timing.run_apart(command))
    print(f"{name} took {found['took']:.0f} s", file=sys.stderr, flush=True)
    return found


def results(chosen):
    """{name: results} of what was asked for; what is measured is kept at once."""
    from . import page

    kept = page.kept(chosen.docs) if chosen.docs else {}
    names = NAMES if chosen.name == "all" else (chosen.name,)
    if chosen.stored:
        if missing := [name for name in names if chosen.name != "all" and name not in kept]:
            raise SystemExit(f"error: {chosen.docs} holds no results of {missing[0]}")
        return {name: kept[name] for name in names if name in kept}
    found = {}
    for name in names:
        found[name] = (measure_apart if chosen.name == "all" else measure)(name, chosen.quick)
        if chosen.docs:
            kept = page.keep(chosen.docs, {**kept, name: found[name]})
    return found


def run(chosen):
    from . import page

    found = results(chosen)
    if chosen.docs:
        page.renew(chosen.docs)
    if chosen.json:
        print(json.dumps(found if chosen.name == "all" else found[chosen.name], indent=1, allow_nan=False))
    else:
        print("\n\n\n".join(page.section_text(name, result) for name, result in found.items()))


def _chain(error):
    """An exception, and those it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _interrupted(chosen):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # we are stopping already
    if chosen and chosen.docs:
        print("interrupted; benchmarks that came to an end are kept", file=sys.stderr)
    raise SystemExit(128 + signal.SIGINT) from None


def main(given=None):
    chosen = None
    try:
        chosen = arguments(given)
        set_environment(2 if chosen.name in TWO_THREADS else 1)  # numpy comes in after this, and reads it
        run(chosen)
    except KeyboardInterrupt:
        _interrupted(chosen)
    except OSError as error:
        raise SystemExit(f"error: cannot use {error.filename or 'a file'}: {error.strerror or error}") from None
    except Exception as error:
        if os.environ.get("ATTNLAG_TRACEBACK"):
            raise
        if any(isinstance(one, KeyboardInterrupt) for one in _chain(error)):  # an interrupted kernel says SystemError
            _interrupted(chosen)
        line = " ".join(f"{type(error).__name__}: {error}".split())
        raise SystemExit(f"error: {line} (ATTNLAG_TRACEBACK=1 shows where)") from None


if __name__ == "__main__":
    main()
