"""Flags that several subcommands share, and configuration files."""

import json
import math
import sys

from analytic.errors import InputError, choice
from sim.seeds import parse_seeds

# flag -> keyword of sim.config.resolve; TOML files use the keywords
RUN_FLAGS = {
    "--d": dict(type=int, help="alphabet size; slr: dimension (50)"),
    "--targets": dict(type=int, metavar="K", help="size of the target set {1..K} (occurrence 1, or and and 2)"),
    "--heads": dict(type=int, metavar="H", help="attention heads (1; and: 4)"),
    "--length": dict(metavar="LAW", help="word length: geometric:P, fixed:M, uniform:A:B, poisson:RATE, table:FILE "
                                         "(default: the geometric law that balances the classes)"),
    "--test-length": dict(metavar="LAW", help="length law of the test words (the same as --length)"),
    "--train-words": dict(type=int, metavar="N", help="training words, or contexts (5 d^2)"),
    "--test-words": dict(type=int, metavar="N", help="test words, or contexts (d^2)"),
    "--max-length": dict(type=int, metavar="L", help="even_pairs: all strings of up to L symbols (10)"),
    "--pairs": dict(type=int, metavar="T", help="icl_bigram: pairs in a context (6)"),
    "--tokens": dict(type=int, metavar="L", help="slr: tokens in a context (10)"),
    "--noise": dict(type=float, metavar="EPS", help="slr: standard deviation of the noise in y (0.1)"),
    "--init": dict(help="random or zero (random)"),
    "--init-scale": dict(metavar="S", help="standard deviation of the random init, or two: attention,output"),
    "--rate-a": dict(metavar="ETA[,ETA]", help="eta_A, one for each phase that trains attention"),
    "--rate-o": dict(metavar="ETA[,ETA]", help="eta_O, one for each phase that trains the output layer"),
    "--steps": dict(type=int, metavar="T", help="limit of each phase without a count (the task's setting)"),
    "--record-every": dict(type=int, metavar="N", help="steps between test metrics (10)"),
}
_NUMBERS = ("rate_a", "rate_o", "init_scale")  # one number or comma-separated ones


def run_settings(parser):
    """Declare the flags of a single configuration."""
    for flag, options in RUN_FLAGS.items():
        parser.add_argument(flag, **options)


def some_settings(parser, *names):
    """Declare a few of the flags of a configuration."""
    for flag in names:
        parser.add_argument(flag, **RUN_FLAGS[flag])


def running(parser, out):
    """Declare the flags of anything that trains and stores."""
    parser.add_argument("--out", default=out, metavar="DIR", help=f"folder for runs and results ({out})")
    workers(parser)


def workers(parser):
    """Declare the flags of anything that computes for long."""
    parser.add_argument("--jobs", type=int, metavar="N", help="threads (all cores)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def show_progress(args):
    """Progress goes to a terminal only, so that logs stay clean."""
    return not args.quiet and sys.stderr is not None and sys.stderr.isatty()


def keyword(flag):
    return flag.lstrip("-").replace("-", "_")


def collect(args, extra=()):
    """Keywords given by flags and, below them, by the file of ``--config``; values still as given."""
    names = [keyword(flag) for flag in RUN_FLAGS] + list(extra)
    given = {}
    if getattr(args, "config", None) is not None:
        for key, value in read_toml(args.config).items():
            choice(f"{args.config}: key", key, names)
            given[key] = value
    given |= {name: getattr(args, name) for name in names if getattr(args, name, None) is not None}
    for name in _NUMBERS:
        if isinstance(given.get(name), str):
            given[name] = numbers(name, given[name])
    return given


def read_toml(path):
    """A TOML file as a dictionary; a fault in it is an `InputError` with its line."""
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (ValueError, RecursionError) as error:  # faults of TOML, text encoding, endless digits, endless nesting
        raise InputError(f"config {path}: {error}") from None


def numbers(name, text):
    """ "18,0.5" to (18.0, 0.5)."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{name} must be a number, or numbers separated by commas, not {text!r}") from None


def own_settings(parser):
    """Declare --set, for settings of a user's own task."""
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="a setting of a task of your own; may be repeated")


def parse_own(args):
    """{name: value} of what --set was given; values as TOML writes them, else text."""
    from sim.spec import toml_value

    found = {}
    for text in args.set:
        name, equals, value = text.partition("=")
        if not (equals and name.strip().isidentifier()) or name.strip() in ("jobs", "progress", "out"):
            raise InputError(f"set must be NAME=VALUE, a setting of the task such as d=8, not {text!r}")
        found[name.strip()] = toml_value(value.strip())
    return found


INFINITE = ("--d", "--targets", "--length", "--max-length", "--pairs", "--tokens", "--noise")


def infinite_config(task, plan, **given):
    """A configuration from zero init whose sample sizes do not matter."""
    from sim.config import resolve

    choice("task", task, ("occurrence", "or", "even_pairs", "icl_bigram", "slr"))
    few = {} if task == "even_pairs" else {"train_words": 1, "test_words": 1}
    return resolve(task, plan, init="zero", **few, **given)


def infinite_head(config):
    """The settings of the task that matter on infinite data."""
    settings = config.make_task().settings()
    return {name: settings[name] for name in map(keyword, INFINITE) if name in settings}


def print_json(value):
    """Strict JSON: null for an undefined number, "inf" for an unbounded one."""
    print(json.dumps(_plain(value), indent=1, allow_nan=False))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def number(value):
    """A number, or a pair of them, for a table."""
    value = _plain(value)
    if isinstance(value, list):
        return ", ".join(map(number, value))
    return "-" if value is None else value if isinstance(value, str) else f"{value:.9g}"


def listed(values):
    """Rates for a line of text."""
    return ", ".join(f"{value:g}" for value in values) or "-"


def seeds_flag(parser, default, shown=None):
    """Declare --seeds; ``shown`` is what the help says of the default."""
    parser.add_argument("--seeds", metavar="A:B", default=default,
                        help=f"A, .., B-1; a number N for 0:N; or a list such as 4,7 ({shown or default})")


def where(parser):
    """Declare --where."""
    parser.add_argument("--where", action="append", default=[], metavar="NAME=LABEL",
                        help="only runs whose parameter has this value; may be repeated")


def labels(texts):
    """{name: label} of what --where was given."""
    found = {}
    for text in texts:
        name, equals, label = text.partition("=")
        if not (equals and name.strip() and label.strip()):
            raise InputError(f"where must be NAME=LABEL such as plan=joint, not {text!r}")
        found[name.strip()] = label.strip()
    return found


__all__ = [
    "collect",
    "infinite_config",
    "infinite_head",
    "labels",
    "listed",
    "number",
    "own_settings",
    "parse_own",
    "parse_seeds",
    "print_json",
    "run_settings",
    "running",
    "seeds_flag",
    "show_progress",
    "some_settings",
    "where",
    "workers",
]
