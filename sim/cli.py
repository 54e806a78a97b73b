"""The ``attnlag`` command: finds its subcommands, and turns every error into one line and an exit code.

A subcommand is a module named under the entry-point group ``attnlag.commands``: its docstring's first line is
the help text, ``arguments(parser)`` declares flags, ``run(args)`` does the work and returns the exit code.
Exit codes: 0; 1 a refuted claim or failed check; 2 usage; 3 some runs diverged or files are damaged; 130 Ctrl-C.
"""

import argparse
import os
import signal
import sys
import traceback
from difflib import get_close_matches
from importlib.metadata import entry_points, version

OK, FAILED, USAGE, DIVERGED, INTERRUPTED = 0, 1, 2, 3, 130
LONGEST_LINE = 1000


class _Parser(argparse.ArgumentParser):
    """Errors in one line, without the usage block, and a hint for a mistyped name."""

    def error(self, message):
        hint = ""
        if "invalid choice: '" in message:
            wrong = message.split("invalid choice: '")[1].split("'")[0]
            known = [name for action in self._actions for name in (action.choices or ())]
            near = get_close_matches(wrong, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
        elif message.startswith("unrecognized arguments: -"):
            wrong = message.split(": ")[1].split()[0].split("=")[0]
            near = get_close_matches(wrong, self._option_string_actions, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
        self.exit(_say(f"error: {message}{hint} (see {self.prog} --help)", USAGE, self.prog))


class _Version(argparse.Action):
    """Print the installed version."""

    def __init__(self, option_strings, dest):
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser, *_):
        print(f"attnlag {version('attnlag')}")
        parser.exit()


def main(argv=None):
    """Run the command line; returns the exit code."""
    try:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # ± becomes ? where the terminal has no such letter
        code = _main(sys.argv[1:] if argv is None else argv)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # we are stopping already
        return _say("interrupted; finished runs that were to be stored are, the same command goes on", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, as in `attnlag run ... | head`
        _drop_output()
        return OK
    except Exception as error:
        if os.environ.get("ATTNLAG_TRACEBACK"):
            raise
        if isinstance(error, OSError):
            _drop_output()  # a full disk may be where our output goes
        return _say(*_explain(error))


def _drop_output():
    """Send what is still to be printed nowhere, so that nothing fails once more when Python closes it."""
    if sys.stdout is not None and sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _main(argv):
    parser = _Parser(prog="attnlag", description="Analytic simulator of how a shallow transformer learns.")
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for entry in sorted(entry_points(group="attnlag.commands"), key=lambda entry: entry.name):
        module = entry.load()
        text = module.__doc__ or entry.name  # python -OO has no docstrings
        command = commands.add_parser(
            entry.name, help=text.splitlines()[0], description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.arguments(command)
        command.set_defaults(run=module.run, parser=command)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args.run(args)


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
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == "numba.core.caching":
            return getattr(frame.f_locals.get("self"), "_cache_path", None)


def _say(message, code, prog="attnlag"):
    """Print one line, of readable length, to standard error if there is one."""
    line = " ".join(f"{prog}: {message}".split())
    if sys.stderr is not None:
        print(line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " ...", file=sys.stderr)
    return code
