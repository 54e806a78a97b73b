"""Two claims of a user's own, to copy from: a true lemma, and a plausible false one that gets refuted.

    attnlag prove --file example_claims.py

A claim is a function of a case that returns the claimed values, with a domain. Evidence is added by decorators, as
generators of steps; each takes the formula as an argument, so that mutants run through the same code:

``@c.proof``       (formula): symbolic, with ``identity`` and ``positive``; for all parameters at once
``@c.instance``    (formula, case): exact fractions, with ``exact`` and ``holds``; run on seeded small cases
``@c.simulation``  (formula): the simulator, with ``close`` (rounding), ``below`` (bounds), ``sampled`` (t-test)
"""

import numpy as np

from proofs_check import LETTERS, claim, close, exact, identity, population, share_moment, whole_population


@claim(
    "example.mean_share",
    statement="A letter's mean share of a word is 1/d, for every length law.",
    latex=r"\mathbb E[p_j]=\frac1d",
    domain=LETTERS,
    source="symmetry",
)
def mean_share(c):
    return {"mean": 1 / c.d}


@mean_share.proof
def _(formula):
    """moments of the letter counts, for all d and length laws"""
    c = LETTERS.symbols()
    mean = share_moment(c, {"j": 1, "rest": c.d - 1}, {"j": 1})
    yield identity("E[p_j] = 1/d", mean, formula(c)["mean"], LETTERS)


@mean_share.instance
def _(formula, case):
    """exact mean over all words"""
    mean = sum(probability * counts[0] / sum(counts) for probability, counts, _ in population(case))
    yield exact("E[p_1]", mean, formula(case)["mean"], case)


@mean_share.simulation
def _(formula):
    """a data set that holds all words of 1 to 4 letters"""
    counts, _ = whole_population(5, 1, 4)
    case = LETTERS.check(d=5, k=1, length="uniform:1:4")
    shares = counts / counts.sum(axis=1, keepdims=True)
    yield close("mean shares", np.mean(shares, axis=0), formula(case)["mean"], 1e-12, case)


mean_share.mutant("1/(d - 1)", mean=lambda c, v: 1 / (c.d - 1))


@claim(
    "example.independent_shares",
    statement="The shares of two letters are uncorrelated, E[p_i p_j] = 1/d^2. (Plausible, as the letters of a word "
    "are independent; but the shares sum to 1.)",
    latex=r"\mathbb E[p_ip_j]=\frac1{d^2}",
    domain=LETTERS,
    source="a mistake worth making once",
)
def independent_shares(c):
    return {"product": 1 / c.d**2}


@independent_shares.proof
def _(formula):
    """moments of the letter counts"""
    c = LETTERS.symbols()
    product = share_moment(c, {"i": 1, "j": 1, "rest": c.d - 2}, {"i": 1, "j": 1})
    yield identity("E[p_i p_j] = 1/d^2", product, formula(c)["product"], LETTERS)
