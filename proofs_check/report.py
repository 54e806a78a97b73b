"""Run claims and report what came out."""

import runpy
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module

from analytic.errors import InputError

from .claims import KINDS, REFUTED, registry

# in the order of the theorem
MODULES = (
    "gradients",
    "symmetries",
    "uniform_attention",
    "length_laws",
    "moments",
    "phase_one",
    "phase_two",
    "phase_three",
    "descent",
    "certificates",
    "failures",
    "and_letters",
    "random_init",
    "random_scores",
    "finite_sample",
    "sampled_steps",
    "limits",
    "theorem",
    "joint",
    "lag_limit",
    "even_pairs",
    "icl_bigram",
    "slr",
)


def load(file=None):
    """Register the claims, in the order of the theorem; with ``file`` those of a user's Python file, which is run.

    Returns {id: claim}. Raises `InputError` when the file fails or registers no claim.
    """
    for name in MODULES:
        import_module(f"{__package__}.{name}")
    if file is None:
        return dict(registry)
    known = set(registry)
    try:
        runpy.run_path(str(file))
        own = {id: claim for id, claim in registry.items() if id not in known}
    except OSError:
        raise
    except Exception as error:
        raise InputError(f"file {file}: {type(error).__name__}: {error}") from error
    finally:
        for id in set(registry) - known:  # the file can be run again
            del registry[id]
    if not own:
        raise InputError(f"file {file} registers no claim; see proofs_check.example_claims")
    return own


def select(pattern=None, file=None):
    """Claims whose id is ``pattern``, begins with ``pattern.``, or matches it as a shell pattern (all for None).

    Raises `InputError`, naming the nearest id, when there is none.
    """
    known = load(file)
    if pattern is None:
        return list(known.values())
    chosen = [c for id, c in known.items() if fnmatchcase(id, pattern) or id.startswith(f"{pattern}.")]
    if not chosen:
        near = get_close_matches(pattern, known, n=1, cutoff=0)[0]
        raise InputError(f"pattern {pattern!r} matches no claim; the nearest is {near!r}")
    return chosen


def get(id):
    """The claim with this id.

    >>> get("phase1.window").values(d=50, k=1, length="fixed:50", rate_o=20.0)["low"]
    12.5
    """
    known = load()
    if id not in known:
        raise InputError(f"no claim {id!r}; the nearest is {get_close_matches(id, known, n=1, cutoff=0)[0]!r}")
    return known[id]


@contextmanager
def precision_kept():
    """Put the global precision of mpmath (which sympy uses) and of flint back as it was."""
    from mpmath import mp

    flint = sys.modules.get("flint")
    before, bits = mp.prec, flint.ctx.prec if flint else None
    try:
        yield
    finally:
        mp.prec = before
        if flint:
            flint.ctx.prec = bits


def prove(pattern=None, deep=False, mutants=False, file=None, progress=False):
    """Decide claims.

    Parameters
    ----------
    pattern : an id, the beginning of ids (``"phase1"``), a shell pattern, or None for all claims
    deep : also run the slow evidence: more seeded instances
    mutants : also run false variants of each claim, which the evidence must refute
    file : a Python file with claims of your own (it is run), in place of those of the theory
    progress : count the claims on standard error

    Returns
    -------
    Report, with a readable repr, ``.claims`` and ``.to_json()``

    Raises
    ------
    InputError : no claim matches

    Examples
    --------
    >>> prove("phase1.update").claims[0].status
    'proved'
    """
    with precision_kept():
        chosen = select(pattern, file)
        if progress:
            from tqdm import tqdm

            chosen = tqdm(chosen, unit="claim", leave=False)
        return Report(tuple(c.run(deep, mutants) for c in chosen))


@dataclass(frozen=True)
class Report:
    """Results of a run, one per claim."""

    claims: tuple

    @property
    def refuted(self):
        """Ids of the claims that were refuted."""
        return [result.id for result in self.claims if result.status == REFUTED]

    @property
    def survivors(self):
        """(claim id, mutant) of the mutants that the evidence did not refute."""
        return [(result.id, name) for result in self.claims for name, killed in result.mutants if not killed]

    def to_json(self):
        """Plain data, no NaN: {claims: [{id, statement, status, evidence, counterexample, seconds}]}."""
        return {"claims": [_plain(result) for result in self.claims]}

    def __repr__(self):
        header, _, *rows = self._lines()
        return "\n".join([header, *rows, *self._remarks()])

    def _repr_html_(self):
        from sim.notebook import html

        return html("\n".join([*self._lines(), "", *self._remarks()]))

    def _lines(self):
        from sim.tables import text_table

        header, *rows = self._table()
        return text_table(header, rows).split("\n")

    def _table(self):
        """Header and rows of texts."""
        header = ("claim", "status", "evidence", "deviation (allowed), slack", "seconds")
        rows = [header, *map(_row, self.claims)]
        if any(result.mutants for result in self.claims):
            kills = (f"{sum(k for _, k in r.mutants)}/{len(r.mutants)}" for r in self.claims)
            rows = [(*row, cell) for row, cell in zip(rows, ("mutants killed", *kills), strict=True)]
        return rows

    def _remarks(self):
        """What did not hold, how many did, and the statement of a single claim."""
        said = [self.claims[0].claim.statement] if len(self.claims) == 1 else []
        return [*_complaints(self.claims), _tally(self.claims), *said]


def _row(result):
    held = [finding.kind for finding in result.evidence if finding.held]
    counts = [(kind, held.count(kind)) for kind in KINDS if kind in held]
    kinds = ", ".join(kind if count == 1 else f"{kind} {count}x" for kind, count in counts)
    measured = "; ".join(map(_measured, (f for f in result.evidence if f.slack is not None)))
    return result.id, result.status, kinds, measured, f"{result.seconds:.2f}"


def _measured(finding):
    if finding.tolerance is None:
        return f"slack {finding.slack:.2g}"
    return f"{finding.slack:.2g} ({finding.tolerance:.2g})"


def _complaints(results):
    """Lines for what did not hold: failed or undecided evidence, and mutants that survived."""
    for result in results:
        for finding in result.evidence:
            if not finding.held:
                yield f"  {result.id}: {finding.kind}: {finding.reason}"
                if finding.counterexample:
                    shown = ", ".join(f"{name} = {value}" for name, value in finding.counterexample.items())
                    yield f"    counterexample: {shown}"
        for name, killed in result.mutants:
            if not killed:
                yield f"  {result.id}: mutant survived: {name}"
        for text in result.redundant:
            yield f"  {result.id}: redundant hypothesis: {text}"
        if result.wider:
            yield f"  {result.id}: no counterexample outside {', '.join(result.wider)} either"


def _tally(results):
    statuses = [result.status for result in results]
    counts = ", ".join(f"{statuses.count(s)} {s}" for s in (*KINDS, REFUTED, "skipped") if s in statuses)
    killed = [k for result in results for _, k in result.mutants]
    return counts + (f"; mutants killed: {sum(killed)} of {len(killed)}" if killed else "")


def _plain(result):
    plain = {
        "id": result.id,
        "statement": result.claim.statement,
        "status": result.status,
        "evidence": [
            {"kind": f.kind, "held": f.held, "slack": f.slack, "tolerance": f.tolerance, "reason": f.reason}
            for f in result.evidence
        ],
        "counterexample": result.counterexample,
        "seconds": round(result.seconds, 3),
    }
    if result.comparison:
        plain["comparison"] = result.comparison
    if result.mutants:
        names = [name for name, killed in result.mutants if not killed]
        plain["mutants"] = {"total": len(result.mutants), "killed": len(result.mutants) - len(names), "survived": names}
        plain["redundant_hypotheses"] = list(result.redundant)
        plain["ranges_not_needed"] = list(result.wider)
    return plain
