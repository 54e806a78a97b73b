"""Statuses follow from evidence alone, claims hold, and every planted error is refuted."""

import json
import subprocess
import sys
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import pytest

import proofs_check
from analytic.errors import InputError
from proofs_check.claims import KINDS, Claim, Evidence, Finding, Step, registry, status_of
from proofs_check.domain import LETTERS, Domain, Real, Whole
from proofs_check.report import load

FIRST_CLAIMS = (
    "gradients.letter",
    "phase1.update",
    "phase1.output_gap",
    "phase1.window",
    "phase2.update",
    "phase2.attention_gap",
    "failure.attention_only_zero_init",
)


def finding(kind, held):
    return Finding(kind, held)


def piece(kind, *steps):
    return Evidence(kind, lambda formula: iter(steps), "a piece")


def temporary_claim(formula=lambda case: {}):
    return Claim("test.claim", "a statement", "", LETTERS, "here", formula)


# --- statuses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strongest", range(len(KINDS)))
def test_status_is_the_strongest_kind_that_held(strongest):
    assert status_of([finding(kind, True) for kind in reversed(KINDS[strongest:])]) == KINDS[strongest]


@pytest.mark.parametrize("failing", KINDS)
def test_one_failed_piece_refutes_whatever_else_held(failing):
    assert status_of([*(finding(kind, True) for kind in KINDS), finding(failing, False)]) == "refuted"


def test_undecided_evidence_counts_for_nothing():
    assert status_of([finding("proved", None), finding("simulated", True)]) == "simulated"


def test_nothing_that_ran_is_skipped():
    assert status_of([]) == status_of([finding("proved", None)]) == "skipped"


def test_a_piece_without_steps_holds_nothing():
    assert piece("proved").run(None).held is None


def test_a_weaker_step_cannot_pass_as_a_proof():
    with pytest.raises(TypeError, match="simulated step"):
        piece("proved", Step("close enough", "simulated", True)).run(None)


def test_a_missing_extra_is_named_and_skipped():
    evidence = Evidence("certified", None, "an enclosure", needs="no_such_package")
    found = evidence.run(None)
    assert found.held is None and "no_such_package" in found.reason


def test_a_failing_step_ends_the_piece_and_gives_its_counterexample():
    witness = {"d": "3"}
    found = piece(
        "enumerated", Step("one", "enumerated", True), Step("two", "enumerated", False, counterexample=witness),
        Step("three", "enumerated", True),
    ).run(None)
    assert found.held is False and found.counterexample == witness and "two" in found.reason
    assert len(found.steps) == 2


def test_a_false_claim_is_refuted_with_its_counterexample():
    claim = temporary_claim(lambda case: {"mean": case.E1 + 1})
    witness = {"d": "2"}
    claim.evidence = [piece("proved", Step("fails", "proved", False, counterexample=witness))]
    result = claim.run()
    assert result.status == "refuted" and result.counterexample == witness


def test_deep_evidence_runs_only_when_asked():
    claim = temporary_claim()
    claim.instance(lambda formula, case: iter([Step("counted", "enumerated", True)]))
    assert [len(claim.run(deep=deep).evidence) for deep in (False, True)] == [1, 2]


def test_a_claim_id_is_used_once():
    with pytest.raises(ValueError, match="twice"):
        proofs_check.get("phase1.update")
        proofs_check.claim("phase1.update", statement="", latex="", domain=LETTERS, source="")(lambda case: {})


# --- the claims -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report():
    return proofs_check.prove(mutants=True)


def test_every_claim_is_proved(report):
    assert {result.id: result.status for result in report.claims} == dict.fromkeys(registry, "proved")
    assert set(FIRST_CLAIMS) <= set(registry)


def test_every_claim_is_also_enumerated_and_simulated(report):
    for result in report.claims:
        kinds = {evidence.kind for evidence in result.evidence if evidence.held}
        assert {"proved", "enumerated", "simulated"} <= kinds, result.id


def test_certified_pieces_hold_where_flint_is_installed(report):
    pieces = [evidence for result in report.claims for evidence in result.evidence if evidence.kind == "certified"]
    assert len(pieces) >= 10
    for evidence in pieces:
        assert evidence.held is (None if find_spec("flint") is None else True), evidence.reason


@pytest.mark.parametrize("id", FIRST_CLAIMS)
def test_the_first_claims_show_their_deviation_from_the_simulator(report, id):
    (result,) = [result for result in report.claims if result.id == id]
    simulated = [evidence for evidence in result.evidence if evidence.kind == "simulated"]
    assert any(0 <= evidence.slack <= evidence.tolerance for evidence in simulated if evidence.slack is not None)


def test_no_hypothesis_is_redundant(report):
    assert all(result.redundant == () for result in report.claims)


def test_every_mutant_is_refuted(report):
    assert report.survivors == []
    assert all(len(result.mutants) >= 4 for result in report.claims)


@pytest.mark.parametrize("kind", ["proved", "enumerated"])
@pytest.mark.parametrize("id", FIRST_CLAIMS)
def test_a_planted_sign_error_is_refuted_by_proof_and_by_enumeration_alone(id, kind):
    claim = proofs_check.get(id)
    (name,) = [name for name in claim.mutants if name.startswith(("sign", "ends swapped"))][:1]
    pieces = [evidence for evidence in claim.evidence if evidence.kind == kind and not evidence.deep]
    found = [evidence.run(claim.mutants[name]) for evidence in pieces]
    assert any(f.held is False and f.counterexample for f in found)
    assert status_of(found) == "refuted"


@pytest.mark.parametrize("id", FIRST_CLAIMS)
def test_the_simulator_alone_refutes_planted_sign_errors(id):
    claim = proofs_check.get(id)
    (name,) = [name for name in claim.mutants if name.startswith(("sign", "ends swapped"))][:1]
    pieces = [evidence for evidence in claim.evidence if evidence.kind == "simulated"]
    assert any(evidence.run(claim.mutants[name]).held is False for evidence in pieces)


# --- values and domains -----------------------------------------------------------------------------------------------


def test_claimed_values_at_the_papers_setting():
    window = proofs_check.get("phase1.window").values(d=50, k=1, length=f"geometric:{1 / 49!r}", rate_o=20.0)
    assert window["low"] == 12.5
    assert window["high"] == pytest.approx(49 / (4 * (0.5 - 1 / 50)))


@pytest.mark.parametrize(
    ("id", "values", "named"),
    [
        ("phase1.update", {"d": 5, "k": 5, "length": "fixed:3", "rate_o": 1.0}, "k must"),
        ("phase1.update", {"d": 1, "k": 1, "length": "fixed:3", "rate_o": 1.0}, "d must"),
        ("phase1.update", {"d": 5, "k": 1, "length": "fixed:0", "rate_o": 1.0}, "length"),
        ("phase1.update", {"d": 5, "k": 1, "length": 3, "rate_o": 1.0}, "length must"),
        ("phase1.window", {"d": 5, "k": 1, "length": "fixed:3", "rate_o": 0.0}, "rate_o must"),
        ("phase1.window", {"d": 5, "k": 1, "length": "fixed:3"}, "parameters must"),
        ("phase2.attention_gap", {"d": 5, "k": 1, "ratio": 2.0, "eps": 1.5}, "eps must"),
        ("phase2.attention_gap", {"d": 5, "k": 1, "ratio": float("nan"), "eps": 0.5}, "ratio must"),
    ],
)
def test_values_outside_the_domain_name_the_argument(id, values, named):
    with pytest.raises(InputError, match=named):
        proofs_check.get(id).values(**values)


def test_a_formula_about_single_words_says_that_it_has_no_values():
    with pytest.raises(InputError, match=r"gradients\.letter .*residual"):
        proofs_check.get("gradients.letter").values(d=5, k=1, length="fixed:3", heads=1)


def test_samples_of_a_domain_lie_in_it():
    import random

    domain = Domain(d=Whole(2), k=Whole(1, below="d"), rate=Real(0), eps=Real(0, 1))
    rng = random.Random(0)
    for _ in range(200):
        case = domain.sample(rng)
        assert all(isinstance(value, Fraction) for value in vars(case).values())
        domain.check(d=int(case.d), k=int(case.k), rate=float(case.rate), eps=float(case.eps))


# --- selection and reports --------------------------------------------------------------------------------------------


def test_patterns_select_by_id_prefix_and_shell_pattern():
    from proofs_check.report import select

    assert [claim.id for claim in select("phase1.window")] == ["phase1.window"]
    assert {claim.id for claim in select("phase1")} == {id for id in registry if id.startswith("phase1.")}
    assert {claim.id for claim in select("*.update")} == {id for id in registry if id.endswith(".update")}


def test_an_unknown_pattern_names_the_nearest_id():
    with pytest.raises(InputError, match=r"phase1\.window"):
        proofs_check.prove("phase1.windw")
    with pytest.raises(InputError, match=r"phase2\.update"):
        proofs_check.get("phase2.updat")


def test_json_has_the_documented_shape_without_nan(report):
    plain = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert list(plain) == ["claims"]
    for entry in plain["claims"]:
        assert {"id", "status", "evidence", "counterexample", "seconds"} <= set(entry)
        assert entry["counterexample"] is None
        for evidence in entry["evidence"]:
            assert set(evidence) == {"kind", "held", "slack", "tolerance", "reason"}
            assert evidence["kind"] in KINDS
            assert evidence["held"] is True or (evidence["kind"], evidence["held"]) == ("certified", None)


def test_readable_report_has_a_row_for_each_claim_and_the_tally(report):
    lines = repr(report).splitlines()
    assert [line.split()[0] for line in lines[1:-1] if not line.startswith(" ")] == list(registry)
    assert lines[-1].startswith(f"{len(registry)} proved; mutants killed: ")


def test_precision_of_mpmath_is_put_back():
    import mpmath

    with mpmath.workprec(80):
        proofs_check.prove("phase1.update")
        assert mpmath.mp.prec == 80


def test_importing_the_package_stays_light():
    heavy = "('sympy', 'numba', 'scipy', 'matplotlib')"
    code = f"import proofs_check, proofs_check.command, sys; print([m for m in {heavy} if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


# --- claims of a user's own -------------------------------------------------------------------------------------------


TWICE = """
from proofs_check import claim
claim("phase1.update", statement="", latex="", domain=None, source="")(abs)
"""
EXAMPLES = Path(proofs_check.__file__).with_name("example_claims.py")


def test_the_worked_examples_are_a_proved_lemma_and_a_refuted_one(report):
    own = proofs_check.prove(file=EXAMPLES, mutants=True)
    assert [result.status for result in own.claims] == ["proved", "refuted"]
    assert own.claims[1].counterexample and own.survivors == []
    assert proofs_check.prove("*.mean_share", file=EXAMPLES).refuted == []


def test_claims_of_a_file_do_not_stay_among_those_of_the_theory():
    before = list(load())
    proofs_check.prove("example.mean_share", file=EXAMPLES)
    assert list(load()) == before


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1", "registers no claim"),
        ("x = 1 / 0", "ZeroDivisionError"),
        ("x = (", "SyntaxError"),
        (TWICE, "twice"),
    ],
)
def test_what_is_wrong_with_a_file_of_claims_is_said_in_one_line(tmp_path, code, message):
    path = tmp_path / "mine.py"
    path.write_text(code)
    with pytest.raises(InputError, match=message) as raised:
        proofs_check.prove(file=path)
    assert str(path) in str(raised.value)


# --- command ----------------------------------------------------------------------------------------------------------


def prove_command(*flags):
    import argparse

    from proofs_check import command

    parser = argparse.ArgumentParser()
    command.arguments(parser)
    return command.run(parser.parse_args(flags))


def test_command_prints_json_and_stores_it(tmp_path, capsys):
    assert prove_command("phase1.output_gap", "--json", "--out", str(tmp_path)) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "claims.json").read_text()) == printed
    assert printed["claims"][0]["id"] == "phase1.output_gap"


def test_command_reports_killed_mutants(capsys):
    assert prove_command("phase1.output_gap", "--mutants") == 0
    assert "5/5" in capsys.readouterr().out


def test_command_exits_with_1_when_a_claim_is_refuted(monkeypatch, capsys):
    claim = proofs_check.get("phase1.output_gap")
    monkeypatch.setattr(claim, "formula", claim.mutants["sign"])
    assert prove_command("phase1.output_gap") == 1
    printed = capsys.readouterr().out
    assert "refuted" in printed and "counterexample: " in printed


def test_command_exits_with_1_when_a_mutant_survives(monkeypatch, capsys):
    claim = proofs_check.get("phase1.output_gap")
    monkeypatch.setitem(claim.mutants, "no change", claim.formula)
    assert prove_command("phase1.output_gap", "--mutants") == 1
    assert "mutant survived: no change" in capsys.readouterr().out


def test_progress_counts_the_claims_on_standard_error(capsys):
    report = proofs_check.prove("phase1.window", progress=True)
    out, err = capsys.readouterr()
    assert "1/1" in err and not out
    assert report.claims[0].status == proofs_check.prove("phase1.window").claims[0].status
    assert not capsys.readouterr().err
