"""Enclosures are rigorous, missing extras are named, ranges and comparisons are reported, precision is left alone."""

import json
import random
import sys
from fractions import Fraction

import pytest

import proofs_check
from proofs_check import claims
from proofs_check.appendix import latex, markdown
from proofs_check.claims import Claim
from proofs_check.decide import exact, holds
from proofs_check.domain import Case, Domain, Real, Whole
from proofs_check.enclosures import BITS, BallGeometric, BallLaw, Slope, ball, contained, enclosed, precision
from proofs_check.report import load

CERTIFIED = sorted(id for id, claim in load().items() if any(e.kind == "certified" for e in claim.evidence))
DIGITS = 1e-15  # floats of values known to 38 digits


@pytest.fixture
def flint():
    """python-flint, which the extra rigor brings."""
    return pytest.importorskip("flint")


# --- enclosures -------------------------------------------------------------------------------------------------------


def test_a_margin_that_is_positive_on_the_whole_box_is_certified_with_its_least_value(flint):
    step = enclosed("x^2 + y > 1", lambda c: c.x**2 + c.y - 1, {"x": (1, 3), "y": (Fraction(1, 10), 2)})
    assert step.held is True and step.kind == "certified"
    assert 0 < step.slack <= 0.1


def test_a_margin_that_is_negative_somewhere_is_refuted_there(flint):
    step = enclosed("x (3 - x) > 0", lambda c: c.x * (3 - c.x), {"x": (1, 4)})
    assert step.held is False
    assert 3 <= float(step.counterexample["x"]) <= 4


def test_a_margin_that_touches_zero_stays_undecided(flint):
    touching = enclosed("(x - 1/3)^2 > 0", lambda c: (c.x - ball(Fraction(1, 3))) ** 2, {"x": (0, 1)}, pieces=200)
    assert touching.held is None


def test_a_wrong_value_is_refuted_and_a_right_one_certified(flint):
    with precision():
        third = ball(Fraction(1, 3))
    assert contained("1/3", third, Fraction(33, 100), Fraction(34, 100)).held is True
    assert contained("1/3", third, Fraction(34, 100), Fraction(35, 100)).held is False


def test_slopes_are_the_derivatives(flint):
    x = Fraction(3, 10)
    for function, derivative in (
        (lambda v: v**3 / (1 + v) - 2 / v, lambda v: (3 * v**2 * (1 + v) - v**3) / (1 + v) ** 2 + 2 / v**2),
        (lambda v: v.exp() * v.log(), lambda v: v.exp() * (v.log() + 1 / v)),
        (lambda v: (1 - v).sqrt(), lambda v: -1 / (2 * (1 - v).sqrt())),
        (lambda v: v.tanh(), lambda v: 1 - v.tanh() ** 2),
        (lambda v: v.erfc(), lambda v: -2 * (-(v**2)).exp() / v.pi().sqrt()),
        (lambda v: v.polylog(2), lambda v: -(1 - v).log() / v),
        (lambda v: 2 - 3 * v, lambda v: ball(-3)),
    ):
        with precision():
            found = function(Slope(ball(x), (ball(1),)))
            assert found.value.overlaps(function(ball(x))) and found.slopes[0].overlaps(derivative(ball(x)))


def test_balls_of_laws_hold_the_values_of_the_product(flint):
    from analytic.lengths import Geometric, Uniform

    with precision():
        for exact_law, law in (
            (BallGeometric(ball(0.2)), Geometric(0.2)),
            (BallLaw({m: Fraction(1, 4) for m in range(1, 5)}), Uniform(1, 4)),
        ):
            for name in ("mean_inverse", "mean_inverse_square"):
                assert float(getattr(exact_law, name)) == pytest.approx(getattr(law, name), rel=DIGITS * 10)
            for z in (0.25, 0.875):
                assert float(exact_law.pgf(ball(z))) == pytest.approx(float(law.pgf(z)), rel=DIGITS * 10)
                assert float(exact_law.pgf_over_m(ball(z))) == pytest.approx(float(law.pgf_over_m(z)), rel=DIGITS * 10)


def test_precision_of_flint_and_mpmath_is_put_back(flint):
    import mpmath

    before = flint.ctx.prec
    try:
        flint.ctx.prec = 77
        with mpmath.workprec(91):
            proofs_check.prove("lengths.poisson")
            assert flint.ctx.prec == 77 and mpmath.mp.prec == 91
        with pytest.raises(ZeroDivisionError), precision():
            assert flint.ctx.prec == BITS
            raise ZeroDivisionError
        assert flint.ctx.prec == 77
    finally:
        flint.ctx.prec = before


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("phase2.sign_condition", "factor 2"),
        ("phase3.bounds", "upper bound halved"),
        ("phase3.hessian", "all eigenvalues below 1/2"),
        ("failure.attention_first", "rho for rho'"),
        ("lengths.geometric", "Li2(p)"),
        ("and.pattern_threshold", "sign of the largest"),
    ],
)
def test_enclosures_alone_refute_false_variants(flint, id, name):
    claim = proofs_check.get(id)
    pieces = [evidence for evidence in claim.evidence if evidence.kind == "certified"]
    found = [evidence.run(claim.mutants[name]) for evidence in pieces]
    assert any(f.held is False and f.counterexample for f in found)


def test_certified_evidence_covers_at_least_ten_claims():
    assert len(CERTIFIED) >= 10


def test_without_flint_the_piece_is_skipped_with_the_extra_named(monkeypatch):
    monkeypatch.setattr(claims, "find_spec", lambda name: None)
    report = proofs_check.prove("phase3.hessian")
    (skipped,) = [e for e in report.claims[0].evidence if e.kind == "certified"]
    assert skipped.held is None and "flint" in skipped.reason and "extra rigor" in skipped.reason
    assert report.claims[0].status == "proved"
    assert skipped.reason in repr(report)
    assert json.loads(json.dumps(report.to_json()))["claims"][0]["status"] == "proved"


def test_without_flint_claims_load_and_prove_without_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)  # an import would fail
    monkeypatch.setattr(claims, "find_spec", lambda name: None)
    assert proofs_check.prove("lengths.geometric").claims[0].status == "proved"


# --- ranges and the search for counterexamples ------------------------------------------------------------------------


def cubed(formula=lambda case: {"cube": case.x**3}):
    claim = Claim("test.cube", "x^3 >= x for x > 1", "", Domain(x=Real(1), n=Whole(1)), "here", formula)

    @claim.instance
    def _(formula, case):
        """exact"""
        yield holds("x^3 >= x", formula(case)["cube"] >= case.x, case)

    return claim


def test_ranges_that_matter_and_ranges_that_do_not_are_told_apart():
    assert cubed().wider() == ("n >= 1",)  # below x = 1 the claim fails
    assert "ranges_not_needed" not in proofs_check.prove("phase1.output_gap").to_json()["claims"][0]
    plain = proofs_check.prove("phase1.update", mutants=True).to_json()["claims"][0]
    assert "rate_o > 0" in plain["ranges_not_needed"]
    needed = proofs_check.prove("phase1.output_gap", mutants=True).to_json()["claims"][0]
    assert "rate_o > 0" not in needed["ranges_not_needed"]


def test_draws_beyond_a_limit_lie_outside_it():
    domain, rng = Domain(d=Whole(2), k=Whole(1, below="d"), eps=Real(0, 1)), random.Random(3)
    outside = dict(domain.beyond())
    assert set(outside) == {"d >= 2", "k >= 1", "k < d", "eps > 0", "eps < 1"}
    for _ in range(50):
        assert outside["k >= 1"].sample(rng).k == 0
        case = outside["k < d"].sample(rng)
        assert case.k >= case.d
        assert outside["eps > 0"].sample(rng).eps <= 0
        assert outside["eps < 1"].sample(rng).eps >= 1


def test_the_search_for_counterexamples_is_seeded():
    claim = cubed(lambda case: {"cube": case.x + Fraction(1, 2) - case.x / 8})  # false for large x
    first, again = (claim.run().counterexample for _ in range(2))
    assert first == again and Fraction(first["x"]) > 4


def test_a_case_without_all_of_d_k_and_length_says_what_is_missing():
    with pytest.raises(AttributeError, match="no E1"):
        _ = Case(d=3, length=None).E1


def test_a_row_that_misses_its_prediction_fails():
    from proofs_check.comparison import Place, bounded, compared, compared_frequency

    place = Place(10, 1, "fixed:4", 3.0, 1.0)
    samples = [1.0, 1.1, 0.9, 1.05, 0.95]
    assert compared("mean", place, 1.0, 1.0, samples).held
    assert not compared("mean", place, 1.0, 1.0 + 1e-9, samples).held
    assert not compared("mean", place, 4.0, 4.0, samples).held
    never = [0.0] * 20  # a rare event may not happen: one in 13000, in 20 times 3000 trials
    assert compared_frequency("error", place, 7.7e-5, 7.7e-5, never, 3000).held
    assert not compared("error", place, 7.7e-5, 7.7e-5, never).held
    assert not compared_frequency("error", place, 1e-3, 1e-3, never, 3000).held
    assert not compared_frequency("error", place, 1e-3, 1.1e-3, [1e-3] * 20, 3000).held
    assert compared_frequency("error", place, 0.0, 0.0, never, 3000).held
    assert bounded("bound", place, 1.0, 2.0).row["slack"] == 0.5
    assert not bounded("bound", place, 2.0, 1.0).held
    assert not bounded("bound", place, 1.0, 2.0, upper=False).held


# --- theory against simulation ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared_claims():
    return proofs_check.prove("phase[12].[uo]*")


def test_rows_of_the_comparison_are_in_the_json(compared_claims):
    rows = [row for entry in compared_claims.to_json()["claims"] for row in entry.get("comparison", ())]
    quantities = {row["quantity"] for row in rows}
    assert {"beta_target after O(1x)", "output gap after O(1x)", "logit gap after A(1x)"} <= quantities
    places = {(row["d"], row["k"], row["length"], row["rate_o"]) for row in rows if "predicted" in row}
    assert len(places) >= 20
    for row in rows:
        if "predicted" in row:
            assert row["population_deviation"] <= 1e-12 and abs(row["standard_errors_off"]) < 8
            assert row["standard_error"] > 0 and row["seeds"] >= 20
        else:
            assert row["slack"] >= -1e-12
    json.dumps(rows, allow_nan=False)


def test_the_appendix_has_the_comparison_as_tables(compared_claims):
    text, tex = markdown(compared_claims), latex(compared_claims)
    assert "## Theory against simulation: logit gap after A(1x)" in text
    assert tex.count(r"\begin{longtable}") == tex.count(r"\end{longtable}") >= 6
    rows = [line for line in tex.splitlines() if line.endswith(r"\\") and "geometric" in line]
    assert len(rows) >= 40 and len({line.count("&") for line in rows}) == 1


def test_exactness_is_not_rounded():
    assert exact("third", Fraction(1, 3), Fraction(10**20 // 3, 10**20), Case()).held is False
