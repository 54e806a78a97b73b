"""The benchmark of in-context bigrams compares like with like, and its results can be stored and read."""

import json

import numpy as np
import pytest

from benchmarks import icl_bigram, timing


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE", 0.0)


@pytest.mark.parametrize("size", ((300, 7, 3), (40, 20, 9)))
def test_every_installed_peer_arrives_where_the_kernel_does(size):
    result = icl_bigram.against_peers(*size)
    assert {row["peer"] for row in result["peers"]} == {"attnlag", *icl_bigram.PEERS}
    assert result["peers"][1]["peer"] == "numpy" and result["peers"][1]["times_slower"] > 0


def test_a_peer_that_arrives_elsewhere_is_not_timed(monkeypatch):
    def wrong(contexts, attention, output, steps):
        return icl_bigram.numpy_products(contexts, attention, output, steps + 1)

    monkeypatch.setitem(icl_bigram.PEERS, "wrong", wrong)
    with pytest.raises(SystemExit, match="wrong arrives"):
        icl_bigram.against_peers(300, 7, 3)


def test_work_is_counted_as_said():
    """By hand: 3 products of T d multiply-adds a context and d exponentials of 14."""
    assert icl_bigram.multiply_adds(10, 50, 6) == 10 * (3 * 6 * 50 + 14 * 50)
    assert icl_bigram.multiply_adds(10, 50, 6, "output only") == 10 * (2 * 6 * 50 + 14 * 50)


def test_everything_measured_is_finite_json_and_the_table_shows_it(monkeypatch):
    monkeypatch.setattr(icl_bigram, "SCALING", [(300, 50, 6)])
    monkeypatch.setattr(icl_bigram, "SETTINGS", [(300, 7, 3)])
    monkeypatch.setattr(icl_bigram, "SEEDS", 2)
    monkeypatch.setattr(icl_bigram, "STEPS", 3)
    result = json.loads(json.dumps(icl_bigram.measure(), allow_nan=False))
    assert [row["layers"] for row in result["layers"]] == list(icl_bigram.LAYERS)
    assert np.isfinite(result["sweep"]["mean_loss"])
    text, share = icl_bigram.table(result), result["scaling"][0]["arithmetic_share"]
    assert share > 0 and f"{share:.0%}" in text and "numpy" in text
