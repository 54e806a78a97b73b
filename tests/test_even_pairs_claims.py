"""The claims about even pairs hold, each by proof, enumeration and simulation, and all planted errors fall."""

import math

import pytest

import proofs_check
from analytic.errors import InputError
from proofs_check.claims import status_of

CLAIMS = (
    "gradient",
    "shift_invariance",
    "attention_first",
    "output_update",
    "attention_gradient",
    "attention_opens",
    "first_accuracy",
    "positions_only",
    "symmetric_states",
)


@pytest.fixture(scope="module")
def report():
    return proofs_check.prove("even_pairs", mutants=True)


def test_every_claim_is_proved_enumerated_and_simulated(report):
    assert [result.id for result in report.claims] == [f"even_pairs.{name}" for name in CLAIMS]
    for result in report.claims:
        assert result.status == "proved", result.counterexample
        assert {evidence.kind for evidence in result.evidence if evidence.held} == {"proved", "enumerated", "simulated"}


def test_every_planted_error_is_refuted(report):
    assert report.survivors == [] and all(len(result.mutants) >= 4 for result in report.claims)


@pytest.mark.parametrize("kind", ("proved", "enumerated", "simulated"))
@pytest.mark.parametrize("name", CLAIMS)
def test_a_planted_sign_error_is_refuted_by_each_kind_alone(name, kind):
    claim = proofs_check.get(f"even_pairs.{name}")
    sign = next(mutant for mutant in claim.mutants if mutant.startswith("sign"))
    pieces = [piece for piece in claim.evidence if piece.kind == kind and not piece.deep]
    assert status_of([piece.run(claim.mutants[sign]) for piece in pieces]) == "refuted"
    assert status_of([piece.run(claim.formula) for piece in pieces]) == kind


def test_values_of_a_claim_and_its_domain():
    assert proofs_check.get("even_pairs.output_update").values(max_length=10, rate_o=95.0)["first"] == 2.375
    opens = proofs_check.get("even_pairs.attention_opens")
    values = opens.values(n=5, longer=5, rate_o=95.0, rate_a=300.0, miss=1 / (1 + math.exp(2.375 / 5)))
    assert values["difference"] == pytest.approx(300 * 95 * 4 / (16 * 25 * 100))
    assert values["agree"] - values["disagree"] == pytest.approx(values["difference"])
    assert proofs_check.get("even_pairs.first_accuracy").values(max_length=10) == {"right": 1024, "wrong": 1022}
    with pytest.raises(InputError, match="n must be a whole number at least 2, not 1"):
        opens.values(n=1, longer=0, rate_o=1.0, rate_a=1.0, miss=0.5)
