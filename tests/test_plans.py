"""The plan grammar: everything it accepts, and errors that point at the offending character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.errors import InputError
from sim.plans import Phase, Plan, parse_plan

phases = st.builds(Phase, st.sampled_from(["A", "O", "AO"]), st.none() | st.integers(1, 10**6))


@given(st.lists(phases, min_size=1, max_size=6), st.sampled_from(["->", "→", " -> ", " → "]))
def test_text_and_phases_are_inverse(parts, arrow):
    plan = Plan(tuple(parts))
    assert parse_plan(str(plan)) == plan
    assert parse_plan(arrow.join(map(str, parts))) == plan


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("joint", "AO"), ("O ( 1 x ) → A(1x)->O", "O(1x)->A(1x)->O"), ("AO(007x)", "AO(7x)"), ("joint(3x)", "AO(3x)"),
     ("A->O->A->O", "A->O->A->O")],
)
def test_canonical_text(text, canonical):
    assert str(parse_plan(text)) == canonical


@pytest.mark.parametrize(
    ("text", "found", "character"),
    [
        ("", "the end", 1),
        ("   ", "the end", 4),
        ("O(1x)>A", "'>'", 6),
        ("O(0x)", "'0'", 3),
        ("O(x)", "'x'", 3),
        ("O(-1x)", "'-'", 3),
        ("O(1)", "')'", 4),
        ("O(1x", "the end", 5),
        ("O->", "the end", 4),
        ("->O", "'->'", 1),
        ("O->B", "'B'", 4),
        ("OA", "'A'", 2),
        ("o", "'o'", 1),
        ("O(1.5x)", "'.'", 4),
        ("A O", "'O'", 3),
    ],
)
def test_error_points_at_the_offending_character(text, found, character):
    with pytest.raises(InputError, match=f"unexpected {found.replace(')', '[)]').replace('.', '[.]')} "
                                         f"at character {character},") as error:
        parse_plan(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("text", "hint"), [("jiont", "; did you mean 'joint'?"), ("O->o", "; did you mean 'O'?"),
                                            ("A O", ""), ("O(A)", ""), ("->joint", "")])
def test_a_misspelt_word_is_corrected_and_one_in_the_wrong_place_is_not(text, hint):
    with pytest.raises(InputError) as error:
        parse_plan(text)
    assert str(error.value).endswith(hint) and ("did you mean" in str(error.value)) == bool(hint)


@pytest.mark.parametrize("wrong", [None, 3, ["O"]])
def test_a_plan_is_text(wrong):
    with pytest.raises(InputError, match="plan must be text"):
        parse_plan(wrong)


def test_kinds_of_phase():
    kinds = [phase.kind for phase in parse_plan("O(1x)->A(1x)->O->A->A(5x)->AO(1x)->joint").phases]
    assert kinds == ["one_step", "one_step", "converge", "converge", "converge", "joint", "joint"]
