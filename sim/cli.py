"""The ``attnlag`` command: finds its subcommands, and turns every error into one line and an exit code.

A subcommand is a module named under the entry-point group ``attnlag.commands``: its docstring's first line is
the help text, ``arguments(parser)`` declares flags, ``run(args)`` does the work and returns the exit code.
Exit codes: 0; 1 a refuted claim or failed check; 2 usage; 3 some runs diverged or files are damaged; 130 Ctrl-C.
"""

import os
import signal
import sys

OK, FAILED, USAGE, DIVERGED, INTERRUPTED = 0, 1, 2, 3, 130
LONGEST_LINE = 1000


def main(argv=None):
    """Run the command line; returns the exit code."""
    try:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # ± becomes ? where the terminal has no such letter
        from .parser import parse  # here, so that Ctrl-C is met from the first moments on
        from .terminal import colours

        with colours():
            args = parse(sys.argv[1:] if argv is None else argv)
            code = args.run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # we are stopping already
        return say("interrupted; finished runs that were to be stored are, the same command goes on", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, as in `attnlag run ... | head`
        _drop_output()
        return OK
    except Exception as error:
        if os.environ.get("ATTNLAG_TRACEBACK"):
            raise
        if isinstance(error, OSError):
            _drop_output()  # a full disk may be where our output goes
        return say(*_explain(error))


def _drop_output():
    """Send what is still to be printed nowhere, so that nothing fails once more when Python closes it."""
    if sys.stdout is not None and sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error):
    """(line, exit code) for an exception."""
    from analytic.errors import InputError

    from .store import DamagedFile

    if isinstance(error, InputError):
        return f"error: {error}", USAGE
    if isinstance(error, DamagedFile):
        return f"error: {error}", DIVERGED
    if isinstance(error, (MemoryError, OverflowError, RecursionError)):
        return f"error: too large: {error or 'out of memory'}", USAGE
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        return f"error: cannot use{where}: {error.strerror or error}", USAGE
    if folder := _damaged_cache(error):
        return f"error: compiled functions in {folder} are damaged: delete that folder, it will be made anew", DIVERGED
    line = " ".join(str(error).split())
    return f"internal error: {type(error).__name__}: {line} (ATTNLAG_TRACEBACK=1 shows where)", FAILED


def _damaged_cache(error):
    """The folder of numba's compiled functions if reading one of them is what failed, or None."""
    import traceback

    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == "numba.core.caching":
            return getattr(frame.f_locals.get("self"), "_cache_path", None)


def say(message, code, prog="attnlag"):
    """Print one line, of readable length, to standard error if there is one."""
    line = " ".join(f"{prog}: {message}".split())
    if sys.stderr is not None:
        print(line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " ...", file=sys.stderr)
    return code
