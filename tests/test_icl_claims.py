"""The claims about in-context bigrams hold, each by proof, enumeration and simulation, and all planted errors fall."""

import numpy as np
import pytest

import proofs_check
from analytic.errors import InputError
from proofs_check.claims import status_of

CLAIMS = ("gradient", "shift_invariance", "closed_span", "dynamics", "output_step", "attention_step", "output_only")


@pytest.fixture(scope="module")
def report():
    return proofs_check.prove("icl", mutants=True)


def test_every_claim_is_proved_enumerated_and_simulated(report):
    assert [result.id for result in report.claims] == [f"icl.{name}" for name in CLAIMS]
    for result in report.claims:
        assert result.status == "proved", result.counterexample
        assert {evidence.kind for evidence in result.evidence if evidence.held} == {"proved", "enumerated", "simulated"}


def test_every_planted_error_is_refuted(report):
    assert report.survivors == [] and all(len(result.mutants) >= 4 for result in report.claims)


@pytest.mark.parametrize("kind", ("proved", "enumerated", "simulated"))
@pytest.mark.parametrize("name", CLAIMS)
def test_a_planted_sign_error_is_refuted_by_each_kind_alone(name, kind):
    claim = proofs_check.get(f"icl.{name}")
    sign = next(mutant for mutant in claim.mutants if mutant.startswith("sign"))
    pieces = [piece for piece in claim.evidence if piece.kind == kind and not piece.deep]
    assert status_of([piece.run(claim.mutants[sign]) for piece in pieces]) == "refuted"
    assert status_of([piece.run(claim.formula) for piece in pieces]) == kind


def test_values_of_a_claim_and_its_domain():
    step = proofs_check.get("icl.output_step").values(d=50, pairs=6, own=1, other=1, unit=1.0, rate_o=200.0)
    assert step["b"] == pytest.approx(step["b_zero_init"]) == pytest.approx(200 * 44 / (6 * 50 * 49))
    assert proofs_check.get("icl.output_only").values(d=50, pairs=6, unit=1.0)["excess"] == pytest.approx(44 / 6)
    with pytest.raises(InputError, match="pairs must be a whole number from 1 to 5, not 6"):
        proofs_check.get("icl.output_only").values(d=6, pairs=6, unit=1.0)
    values = proofs_check.get("icl.dynamics").values(d=9, pairs=4, own=7, other=2, unit=1.1)
    assert np.isfinite(list(values.values())).all()
