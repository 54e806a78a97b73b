"""The command line's grammar: subcommands from entry points, flags, and errors in one line with a hint."""

import argparse
from importlib.metadata import entry_points, version

from .cli import USAGE, say


class _Parser(argparse.ArgumentParser):
    """Errors in one line, without the usage block, and a hint for a mistyped name."""

    def error(self, message):
        hint = ""
        if "invalid choice: '" in message:
            wrong = message.split("invalid choice: '")[1].split("'")[0]
            hint = _hint(wrong, [name for action in self._actions for name in (action.choices or ())])
        elif message.startswith("unrecognized arguments: -"):
            hint = _hint(message.split(": ")[1].split()[0].split("=")[0], self._option_string_actions)
        self.exit(say(f"error: {message}{hint} (see {self.prog} --help)", USAGE, self.prog))


def _hint(wrong, known):
    from analytic.errors import did_you_mean

    return did_you_mean(wrong, known)


class _Version(argparse.Action):
    """Print the installed version."""

    def __init__(self, option_strings, dest):
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser, *_):
        print(f"attnlag {version('attnlag')}")
        parser.exit()


def parse(argv):
    """The arguments of a subcommand; ``args.run(args)`` runs it. Exits where there is nothing to run."""
    modules = {entry.name: entry.load()
               for entry in sorted(entry_points(group="attnlag.commands"), key=lambda entry: entry.name)}
    texts = {name: module.__doc__ or name for name, module in modules.items()}  # python -OO has no docstrings
    listed = [f"  {name:12}{text.splitlines()[0]}" for name, text in texts.items()]
    parser = _Parser(prog="attnlag", description="Analytic simulator of how a shallow transformer learns.",
                     epilog="\n".join(["commands (attnlag COMMAND --help):", *listed]),
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser,
                                     help="one of those below")
    for name, module in modules.items():
        command = commands.add_parser(name, description=texts[name],
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
        module.arguments(command)
        command.set_defaults(run=module.run, parser=command)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args
