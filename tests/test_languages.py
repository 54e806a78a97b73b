"""Boolean languages of letters: parsing, labels, and the Möbius coefficients behind every closed form."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.languages import Language, all_of, any_of, parse_language

ROUNDING = 1e-13  # sums of at most 2^4 terms of size 1


@st.composite
def languages(draw, max_letters=4):
    letters = draw(st.lists(st.integers(0, 5), min_size=1, max_size=max_letters, unique=True).map(sorted))
    truth = draw(st.lists(st.booleans(), min_size=1 << len(letters), max_size=1 << len(letters))
                 .filter(lambda t: len(set(t)) > 1))
    return Language("?", tuple(letters), tuple(truth))


@given(languages())
def test_moebius_coefficients_give_the_label_back(language):
    for pattern in range(1 << language.k):
        value = sum(sign for absent, sign in language.signs.items() if not absent & pattern)
        assert value == language.truth[pattern]


@given(languages(max_letters=3), st.integers(1, 3))
def test_positive_probability_against_all_words(language, length):
    d = 6
    words = np.array(list(product(range(d), repeat=length)))
    present = (words[:, :, None] == np.array(language.letters)).any(axis=1)
    exact = np.mean(language.labels(present) == 1)
    assert abs(language.positive_probability(d, lambda z: z**length) - exact) < ROUNDING


@pytest.mark.parametrize(
    ("text", "python"),
    [("1 & (2 | !3)", "a and (b or not c)"), ("1|2&3", "a or (b and c)"), ("!1&2", "(not a) and b"),
     ("!(1|2)|3", "(not (a or b)) or c"), ("!!1 & 2 & !3", "a and b and not c")],
)
def test_expressions_mean_what_they_say(text, python):
    language = parse_language(text)
    for a, b, c in product([False, True], repeat=3):
        present = [(a, b, c)[letter] for letter in language.letters]
        assert (language.labels(np.array(present)) == 1) == eval(python, {}, {"a": a, "b": b, "c": c})


def test_named_languages():
    assert any_of(2).truth == parse_language("1 | 2").truth
    assert all_of(3).truth == parse_language("1 & 2 & 3").truth


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 &", "the end at character 4"), ("1 2", "'2' at character 3"), ("(1", "the end at character 3"),
     ("0", "'0' at character 1"), ("1 + 2", "'[+]' at character 3"), ("1 | !1", "every word the same label"),
     ("()", "'[)]' at character 2")],
)
def test_faults_are_pointed_at(text, message):
    with pytest.raises(InputError, match=message):
        parse_language(text)


@pytest.mark.parametrize(("language", "d", "message"), [(parse_language("7"), 5, "letter 7"), (any_of(3), 3, "fewer"),
                                                        (any_of(1), 1, "d must be")])
def test_languages_that_do_not_fit_the_alphabet(language, d, message):
    with pytest.raises(InputError, match=message):
        language.check_alphabet(d)
