"""Planted errors: does the test suite notice when the sources are wrong?

    python -m tests.mutants [--jobs N] [--per-line N] [--sample N] [--list] [PATTERN ...]

Changes the sources one place at a time, in a copy: signs and factors, indices and ranges, comparisons, constants,
names that are easily confused, statements left out. For each change the tests of that file run until the first one
fails, which must pass without the change. A change that no test notices survives: it is printed, and the exit code
is 1. The list is the same on every run; PATTERNs are regular expressions that select lines of it.
"""

import argparse
import ast
import builtins
import copy
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter, defaultdict, namedtuple
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("analytic", "sim", "proofs_check", "tests", "setup.cfg", "pyproject.toml")
TESTS = {  # of each file, those that fail soonest first
    "analytic/gradients/letter.py": ("letter_gradients", "letter_words", "letter_large", "letter_catalogue"),
    "analytic/gradients/letter_twin.py": ("letter_gradients", "letter_catalogue"),
    "analytic/errors.py": ("closed_form_edges", "closed_form_arguments", "lengths", "languages"),
    "analytic/languages.py": ("languages", "closed_form_arguments", "lengths", "analytic_names"),
    "analytic/lengths.py": ("lengths", "closed_form_arguments", "closed_form_edges", "analytic_names"),
    "analytic/polynomials.py": ("lengths", "analytic_names"),
    "analytic/moments.py": ("moments", "one_step", "closed_form_arguments", "closed_form_edges", "analytic_names"),
    "analytic/shares.py": ("moments", "bounds", "population", "closed_form_edges", "analytic_names"),
    "analytic/one_step.py": ("one_step", "bounds", "closed_form_arguments", "closed_form_edges", "analytic_names"),
    "analytic/bounds.py": ("bounds", "closed_form_arguments", "closed_form_edges", "analytic_names"),
    "analytic/population.py": ("population", "closed_form_edges", "bounds", "analytic_names"),
    "analytic/phase_three.py": ("bounds", "closed_form_edges", "hessian_and_lag", "analytic_names"),
    "analytic/three_phases.py": ("bounds", "closed_form_edges", "analytic_names"),
    "analytic/failures.py": ("bounds", "closed_form_edges", "analytic_names"),
    "analytic/random_init.py": ("random_init", "closed_form_edges", "analytic_names"),
    "sim/plans.py": ("plans", "runs", "letter_catalogue"),
    "sim/descent.py": ("simulator_edges", "runs"),
    "sim/tasks/letters.py": ("simulator_edges", "runs"),
    "sim/paper.py": ("tables", "simulator_edges"),
}
# Compiling takes seconds. Where a test of these says, uncompiled, that a number is wrong, or never ends, compiled code
# is wrong, too.
INTERPRETED = {
    "analytic/gradients/letter.py": "complex_step or twin_says or two_words_by_hand",
    "analytic/shares.py": "thirty_digit or compressed_law or match_all_words",
}
CPU_SECONDS, INTERPRETED_SECONDS = 60, 20  # a change can make a loop endless
MEMORY = 8 << 30
FILLER = 400  # characters at the end of a file, more than any change adds
FORK = multiprocessing.get_context("fork")  # the imports are done once


# ---- changes ---------------------------------------------------------------------------------------------------------

OPERATORS = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Div: [ast.Mult], ast.FloorDiv: [ast.Mult], ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult], ast.LShift: [ast.RShift], ast.RShift: [ast.LShift], ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd], ast.BitXor: [ast.BitOr], ast.And: [ast.Or], ast.Or: [ast.And],
    ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.GtE], ast.Gt: [ast.GtE, ast.Lt], ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.In: [ast.NotIn], ast.NotIn: [ast.In], ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
}  # fmt: skip
CONFUSED = (
    "alpha beta", "d_alpha d_beta", "alphas betas", "rate_a rate_o", "rates_a rates_o", "target other",
    "beta_target beta_other", "first last", "low high", "lo hi", "e s", "g k", "c o", "n0 n1", "k d", "G G1", "E1 E2",
    "M1 M2", "X1 X2", "X2 X3", "q G", "letters times", "letter word", "block word", "row block", "min max", "any all",
    "lengths probabilities", "alpha_target alpha_other", "mean_inverse mean_inverse_square", "pgf pgf_over_m", "a b",
    "pmf tail", "argmin argmax", "log1p log", "expm1 exp", "train_words test_words", "train_loss test_metric",
    "length test_length", "TRAIN TEST", "std paper_std", "s1 s2", "inside outside", "first second",
    "numerator denominator",
    "residual losses", "sums totals", "output attention", "mean mean_total", "digits d", "steps step", "total beta",
    "both either", "term factor",
)  # fmt: skip
TWINS = defaultdict(list)
for pair in CONFUSED:
    for one, other in (pair.split(), pair.split()[::-1]):
        TWINS[one].append(other)
TEXTS = {"right": "left", "left": "right", "A": "O", "O": "A", "->": "→", "converge": "one_step", "zero": "random"}
UNWRAPPED = {"abs", "sqrt", "exp", "ceil", "float"}  # f(x) becomes x


def number(value):
    return ast.Constant(value)


def shifted(node, by=1, operator=ast.Add):
    return ast.BinOp(node, operator(), number(by) if isinstance(by, int) else by)


def changed(node, **fields):
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def replaced(items, i, *new):
    return [*items[:i], *new, *items[i + 1 :]]


def changes(node, names, attributes):
    """Nodes to put in the place of ``node``; ``names`` are those the function knows, ``attributes`` those in use."""
    if isinstance(node, ast.BinOp):
        for operator in OPERATORS.get(type(node.op), ()):
            yield changed(node, op=operator())
        if isinstance(node.op, ast.Mult):  # a factor dropped
            yield node.left
            yield node.right
    elif isinstance(node, ast.AugAssign):
        yield ast.Pass()
        for operator in OPERATORS.get(type(node.op), (ast.Div,)):
            yield changed(node, op=operator())
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        for operator in OPERATORS[type(node.op)]:
            yield changed(node, op=operator())
        for i in range(len(node.values)):  # one condition forgotten
            yield changed(node, values=replaced(node.values, i))
    elif isinstance(node, ast.Compare):
        for i, old in enumerate(node.ops):
            for operator in OPERATORS[type(old)]:
                yield changed(node, ops=replaced(node.ops, i, operator()))
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield number(not node.value)
        elif isinstance(node.value, int):
            yield number(node.value + 1)
        elif isinstance(node.value, float):
            yield number(2 * node.value or 1.0)
        elif node.value in TEXTS:
            yield number(TEXTS[node.value])
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from (ast.Name(twin) for twin in TWINS[node.id] if twin in names)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from (changed(node, attr=twin) for twin in TWINS[node.attr] if twin in attributes)
    elif isinstance(node, ast.Subscript):
        yield from (changed(node, slice=index) for index in index_changes(node.slice))
    elif isinstance(node, ast.Call):
        yield from call_changes(node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
        yield ast.Pass()
    elif isinstance(node, (ast.Break, ast.Continue)):
        yield ast.Pass()


def index_changes(index):
    """One before, and slices that lack their first or last entry."""
    if isinstance(index, ast.Name):
        yield shifted(index, operator=ast.Sub)
    elif isinstance(index, ast.Slice):
        if index.lower is not None and not isinstance(index.lower, ast.Constant):
            yield changed(index, lower=shifted(index.lower))
        if index.upper is not None and not isinstance(index.upper, ast.Constant):
            yield changed(index, upper=shifted(index.upper, operator=ast.Sub))
    elif isinstance(index, ast.Tuple):
        for i, part in enumerate(index.elts):
            for new in index_changes(part):
                yield changed(index, elts=replaced(index.elts, i, new))


def call_changes(call):
    name = getattr(call.func, "id", getattr(call.func, "attr", None))
    if name in UNWRAPPED and len(call.args) == 1:
        yield call.args[0]
    elif name == "range":  # without the first round, without the last
        start, stop, step = [*([number(0)] if len(call.args) == 1 else []), *call.args, number(1)][:3]
        yield changed(call, args=[shifted(start, step), stop, step])
        yield changed(call, args=[start, shifted(stop, step, ast.Sub), step])
    elif name == "where" and len(call.args) == 3:
        yield changed(call, args=[call.args[0], call.args[2], call.args[1]])


@dataclass(frozen=True)
class Mutant:
    """One change: bytes ``start`` to ``end`` of ``file`` become ``new``."""

    file: str
    line: int
    where: str  # the function
    before: str
    after: str
    start: int
    end: int
    new: bytes
    compiled: bool  # whether it changes compiled code

    def __str__(self):
        return f"{self.file}:{self.line} {self.where}: {self.before}  =>  {self.after}"

    @property
    def reason(self):
        """Why the change makes no difference, or None."""
        return next((why for pattern, why in EQUIVALENT if re.search(pattern, str(self))), None)


class Planter(ast.NodeVisitor):
    """Collects the changes of one file."""

    def __init__(self, file, text):
        self.file, self.source, self.mutants, self.scopes, self.compiled = file, text.encode(), {}, [], "jit" in text
        self.starts = [0]
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        tree = ast.parse(text)
        self.names = set(dir(builtins))
        self.attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        self.visit(tree)

    def visit(self, node):
        if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            return
        for new in changes(node, self.names, self.attributes):
            self.plant(node, new)
        test = getattr(node, "test", None)
        for condition in [test] if test else getattr(node, "ifs", []):
            if not isinstance(condition, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
                self.plant(condition, ast.UnaryOp(ast.Not(), condition))
        super().visit(node)

    def visit_FunctionDef(self, node):
        outside = self.names, self.compiled
        decorators = {ast.unparse(d).partition("(")[0] for d in node.decorator_list}
        self.compiled &= not decorators.isdisjoint({"jit", "inner"})
        self.names = self.names | {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        self.names |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        self.scopes.append(node.name)
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()
        self.names, self.compiled = outside

    def visit_ClassDef(self, node):
        outside, self.compiled = self.compiled, False
        self.scopes.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()
        self.compiled = outside

    def visit_keyword(self, node):
        if node.arg != "strict":  # of zip: guards against errors elsewhere
            self.visit(node.value)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def plant(self, node, new):
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        lines = node.end_lineno - node.lineno
        text = ast.unparse(new)
        if isinstance(new, ast.expr):  # no line moves: compiled functions are known by their first line
            text = f"({text}{chr(10) * lines})"
        else:
            text += "\n" * lines
        begin, stop = self.starts[node.lineno - 1], self.starts[node.end_lineno]
        versions = self.source[begin:stop], self.source[begin:start] + text.encode() + self.source[end:stop]
        before, after = (" ".join(code.decode().partition("  # ")[0].split()) for code in versions)
        key = start, end, text
        self.mutants.setdefault(key, Mutant(self.file, node.lineno, ".".join(self.scopes) or "module", before, after,
                                            start, end, text.encode(), self.compiled))


def every_mutant(per_line):
    """Up to ``per_line`` changes of every line, in order; which ones of many, a hash of the changed line decides."""
    mutants = []
    for file in TESTS:
        by_line = defaultdict(list)
        for mutant in Planter(file, (ROOT / file).read_text()).mutants.values():
            by_line[mutant.line].append(mutant)
        for line in sorted(by_line):
            mutants += sorted(by_line[line], key=lambda m: crc32(m.after.encode()))[:per_line]
    return mutants


# ---- runs ------------------------------------------------------------------------------------------------------------

Outcome = namedtuple("Outcome", "how test wrong_number", defaults=("", False))


class Copy:
    """A copy of the sources, in which one file at a time is changed."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(dir=HOME))
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(ROOT / name, self.folder / name)
        self.sources = {file: (self.folder / file).read_bytes() for file in TESTS}
        for file, source in self.sources.items():
            self.write(file, source)

    def write(self, file, source):
        """All versions of a file have one size and time: compiled functions that did not change stay in the cache."""
        size = len(self.sources[file]) + FILLER
        (self.folder / file).write_bytes(source + b"#" * (size - len(source)))
        os.utime(self.folder / file, (0, 0))

    def run(self, tests, interpreted="", mutant=None, first=()):
        """The outcome of the tests, files or names, on ``mutant`` or on unchanged sources.

        ``interpreted``: which of them run, uncompiled; if empty, all do, compiled. ``first``: names to begin with.
        """
        if mutant:
            source = self.sources[mutant.file]
            self.write(mutant.file, source[: mutant.start] + mutant.new + source[mutant.end :])
        receiver, sender = FORK.Pipe(duplex=False)
        cold = mutant is not None and mutant.compiled
        process = FORK.Process(target=run_tests, args=(self.folder, tests, interpreted, cold, first, sender))
        process.start()
        sender.close()
        process.join()
        if mutant:
            self.write(mutant.file, source)
        try:
            return Outcome(*receiver.recv())
        except EOFError:
            return Outcome("ran on" if process.exitcode == -signal.SIGXCPU else "crashed")

    @cache  # noqa: B019
    def check(self, tests, interpreted):
        """Do the tests pass as long as nothing is changed?"""
        outcome = self.run(tests, interpreted)
        if outcome.how != "survived":
            raise RuntimeError(f"{outcome.how} on unchanged sources: {(self.folder / 'log').read_text()[-3000:]}")


class Watcher:
    """A pytest plugin that runs some tests first, and remembers how the first failure came about."""

    outcome = Outcome("survived")

    def __init__(self, first):
        self.first = first

    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: item.nodeid not in self.first)

    def pytest_exception_interact(self, node, call, report):
        import pytest

        how = "failed" if report.when in ("setup", "call", "teardown") else "import failed"
        wrong = call.excinfo.errisinstance((AssertionError, pytest.fail.Exception)) and how == "failed"
        self.outcome = Outcome(how, node.nodeid, wrong)


def run_tests(folder, tests, interpreted, cold, first, sender):
    """In a process of its own: pytest in ``folder`` up to the first failure; sends an `Outcome`."""
    import numba
    import pytest

    seconds = INTERPRETED_SECONDS if interpreted else CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(folder)
    with open("log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.path[:] = [str(folder), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if name.partition(".")[0] in COPIED]:
        del sys.modules[name]
    numba.config.DISABLE_JIT = bool(interpreted)
    if cold:
        numba.config.CACHE_DIR = tempfile.mkdtemp(dir=folder)
    options = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--hypothesis-profile=mutants"]
    if interpreted:
        options += ["-k", interpreted]
    watcher = Watcher(first)
    code = pytest.main([*options, *tests], plugins=[watcher])
    assert Path(sys.modules["analytic"].__file__).is_relative_to(folder)
    if (code == 0) != (watcher.outcome.how == "survived"):
        watcher.outcome = Outcome(f"pytest ended with {code}")
    sender.send(tuple(watcher.outcome))


def start_worker():
    global COPY, CATCHING
    COPY, CATCHING = Copy(), defaultdict(set)


def judge(mutant):
    """The outcome of a mutant; a compiled one is tried uncompiled first. Tests that caught its neighbours go first."""
    files = tuple(f"tests/test_{name}.py" for name in TESTS[mutant.file])
    first = CATCHING[mutant.file, mutant.where]
    for interpreted in ([INTERPRETED[mutant.file]] if mutant.compiled and mutant.file in INTERPRETED else []) + [""]:
        outcome = COPY.run(files, interpreted, mutant, first)
        if outcome.wrong_number or outcome.how == "ran on" or not interpreted:
            if outcome.how != "survived":
                COPY.check((outcome.test.partition("[")[0],) if outcome.test else files, interpreted)
                first.add(outcome.test)
            return outcome


def main(argv=None):
    global HOME
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="changes whose line matches; default: all")
    parser.add_argument("--jobs", type=int, default=1, help="changes tried at a time")
    parser.add_argument("--per-line", type=int, default=1, metavar="N", help="changes of a line, at most (1)")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them, always the same")
    parser.add_argument("--list", action="store_true", help="print the changes and stop")
    arguments = parser.parse_args(argv)

    mutants = every_mutant(arguments.per_line)
    if arguments.patterns:
        mutants = [m for m in mutants if any(re.search(pattern, str(m)) for pattern in arguments.patterns)]
    if arguments.sample is not None and arguments.sample < len(mutants):
        chosen = random.Random(0).sample(range(len(mutants)), arguments.sample)
        mutants = [mutants[i] for i in sorted(chosen)]
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant}   ({mutant.reason})" if mutant.reason else mutant)
        return 0

    os.environ.update(OPENBLAS_NUM_THREADS="1", MPLBACKEND="agg", CI="true", PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True  # bytecode goes by size and time, too
    import_for_all()
    equivalent = [m for m in mutants if m.reason]
    mutants = [m for m in mutants if not m.reason]
    survivors, killed, total = [], Counter(), Counter(m.file for m in mutants)
    kinds = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as HOME:
        with ProcessPoolExecutor(arguments.jobs, FORK, initializer=start_worker) as pool:
            for mutant, outcome in zip(mutants, pool.map(judge, mutants), strict=True):
                print(f"{outcome.how:13} {mutant}   [{outcome.test.rpartition('/')[2]}]", flush=True)
                kinds[outcome.how] += 1
                if outcome.how == "survived":
                    survivors.append(mutant)
                else:
                    killed[mutant.file] += 1
    print()
    for file in total:
        print(f"{killed[file]:5}/{total[file]:<5} caught in {file}")
    ways = ", ".join(f"{count} {how}" for how, count in kinds.most_common())
    print(f"{sum(killed.values()):5}/{len(mutants):<5} caught ({ways}); {len(equivalent)} known to change nothing")
    for mutant in survivors:
        print("survived", mutant)
    return 1 if survivors else 0


def import_for_all():
    """What tests import, except the sources."""
    import hypothesis
    import matplotlib.pyplot  # noqa: F401
    import mpmath  # noqa: F401
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401

    few = hypothesis.Phase.explicit, hypothesis.Phase.generate  # no shrinking
    everything = list(hypothesis.HealthCheck)
    hypothesis.settings.register_profile("mutants", deadline=None, derandomize=True, database=None, phases=few,
                                         suppress_health_check=everything)


EQUIVALENT = (  # changes that make no difference: a regular expression for their lines, and the reason
    # ---- speed and memory only
    (r"module: SPARSE_DENSITY = ", "both ways of keeping words give the same results"),
    (r"letter\.py:\d+ (module: (LARGE|PARTS|PART_BLOCKS|THREADS)|_run_parts: threads) = ", "who computes which part"),
    (r"letter\.py.*(module: (CACHE|LINE)|_backward: ask_ahead|ahead is|, LINE|beyond_cache)", "what is prefetched"),
    (r"letter\.py:\d+ (scores|evaluate): .*\(True\)", "computes gradients that are not returned"),
    (r"_pass: (far (=|[+-]=) |if .*(1 / FAR_WEIGHTS < size|1 \* FAR_WEIGHTS))", "each way of treating scores is right"),
    (r"make_room: if needed > digits:  =>  if \(needed >= digits\)", "copies the codes to an array of the same size"),
    (r"_checked_counts: .*copy=\(True\)", "copies what need not be"),
    (r"module: inner = partial", "numba compiles entry points that nobody calls"),
    (r"_(aligned|floats): buffer = .*\((65|8)\)", "a longer buffer than is used"),
    (r"_(aligned|floats): start = .*(% \(65\)|// \(9\))", "another start of an array inside its buffer"),
    (r"_some_parts: work = .*\(_part\(layout, 0, \(1\)\)", "more scratch than is used"),
    (r"_work: _floats\((1, .*=>  _floats\(\(2\)|.*\(3\) \* ROWS)", "more scratch than is used"),
    (r"quantile_length: low = high // .*\(3\)", "starts the bisection lower"),
    (r"Custom\.__post_init__: lengths = .*cut \+ \(2\)", "one length more than need be"),
    (r"Custom\.mean: cut = .*-\(2\)", "bounds what lies beyond one length less"),
    (r"shares\.py.*(module: BLOCK_|_block: (while|if) )", "how much is done at a time"),
    (r"shares\.py.*_compress: (atom|cells) = .*\((3|9)\)", "room that is not used"),
    (r"(letters\.py:\d+ module: _balanced = .*\(1001\)|_Data: (KEPT|LARGE) = )", "what is kept for later runs"),
    (r"_Data\.of: .*=> .*nbytes\(\) (>=|<) ", "whether data are kept for later runs"),
    # ---- nothing depends on it
    (r"_bisect\.value: total = .*- c\)", "minus the polynomial has the same roots"),
    (r"_bisect: return low .*<= abs", "either of two that are equally near"),
    (r"_range: low = high = .*values\[\(1\)\]", "any value will do to start from: all are looked at"),
    (r"_Recorder\.keep: numbers = .*len\(path\[\(1\)\]\)", "as many parameters as losses"),
    (r"_row_ranges: if .*\(lengths\)\[i\] \* mass", "keeps more cells than count"),
    (r"ShareLaw\.__init__: low, high, lowest_mass = .*LEFT_OUT / \(\(len", "leaves out less than rounding"),
    (r"_attention_moments: out\[0, i\] = q  =>  \(out\[0, i - 1\]\)", "all have the same q"),
    (r"shares\.py.*module: POINTS = ", "both are exact to rounding"),
    (r"shares\.py.*len\(\((probabilities|high)\)\)", "as many as there are rows"),
    (r"_row_ranges: (mode = |.*=>  while \(n (<|>)=)", "another start, or a round more that ends at once with mass 0"),
    (r"_columns: last = np\.full", "every column with a row is overwritten, and one without stays empty"),
    (r"_compress: if i < stop and .*i <= stop", "adds the empty cell after the last"),
    (r"_compress: while i < stop .*<= limit", "an edge belongs to both octaves"),
    (r"module: HALF = 2\.0\*\*511  =>  HALF = 2\.0\*\*\(512\)", "another power of two cancels as well, and has room"),
    (r"module: FAR_WEIGHTS = ", "the guard is far from where it is needed"),
    (r"_Builder\.add: tally\[-1, 0, .*=>  tally\[-1, \(1\)", "any letter will do for rows that are no words"),
    (r"letter\.py:\d+ _brief: ", "how a message shows a value"),
    (r"(_by_block: heads, columns|_gather: width) = work\.e\.shape.*\(work\.s\)", "s has the shape of e"),
    (r"letter\.py:\d+ _state: .*_descend\(.*\(1\.0\)", "no step is made"),
    (r"(_run: work|_run_parts: losses, gradients|descend: shape) = .*\(beta\)", "beta has the shape of alpha"),
    (r"loss_and_gradient: return loss, .*np\.shape\(\((alpha|beta)\)\)", "beta has the shape of alpha"),
    (r"_label_sums\(language, d, law, beta\)  =>  output, _ = .*\(total\)", "the first sums are without weights"),
    (r"(Fixed|_Summed)\.support: def support", "a parameter that is not used"),
    (r"ShiftedPoisson\._log_pmf: .*(\(17\)|n > 16)", "both formulas are exact around there"),
    (r"ShiftedPoisson\.log_tail: .*rate \+ \([23]\)", "both formulas are exact around there"),
    (r"_Summed\.pmf: .*len\(\(self\.probabilities\)\)", "as many as there are lengths"),
    (r"Table\.__post_init__: if abs\(total - 1\) > 1e-15", "a quotient by 1 up to rounding"),
    (r"Custom: left_out: .*compare=\(True\)", "it follows from the functions compared"),
    (r"_decomposition: order = .*first < second", "equal eigenvalues in either order"),
    (r"exact_steps_to: low, high = .*-\(2\)", "starts the bisection lower"),
    (r"population\.py:\d+ _descend: losses\[t\] = .*loss <= np\.inf", "infinity if it is infinite"),
    (r"=>  states = np\.empty\(\(\(2\) \+ sum", "more rows than are filled"),
    (r"population_gradient: .*states\[\(1\)\]", "all states have one shape"),
    (r"population_flow: .*[ar]tol=\(2e-1[24]\)", "the integration is finer than what is asserted of it"),
    (r"flow_taylor: mass\[n\] = .*range\(0, n - 1, 1\)", "g begins with t^2"),
    (r"flow_taylor: push = .*range\(n \+ \(2\)\)", "one coefficient more than is used"),
    (r"attention_first_probability: .*=>  (nodes|edges).*\((33|74|10)\)", "another rule that is exact to rounding"),
    (r"attention_first_probability: t = .*1 - nodes", "nodes and weights are symmetric"),
    (r"random_init\.py:\d+ .*(\(121\)|\(10\)|\(2e-(12|06)\))", "another rule that is exact to rounding, or tolerance"),
    (r"_positively_correlated: .*other_margin >= 0", "no weight is 1 without spread"),
    (r"did_you_mean: near = .*n=\(2\)", "the nearest is named, and no other"),
    (r"either: parts\.append\(both\(\)\)  =>  parts\.append\(\(either\)\(\)\)", "1 | (2 | 3) is 1 | 2 | 3"),
    (r"_moment_without: coefficient = \[0\.0\] \* .*\(2\)", "a coefficient of zero is skipped"),
    (r"_STIRLING_SECOND = \(\(1,\), .*=>.* = (\(\(\(2\),|.*\(\(1\), 1)", "partitions into no blocks are not looked up"),
)


if __name__ == "__main__":
    sys.exit(main())
