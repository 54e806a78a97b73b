"""The benchmarks compare like with like, and their results can be stored and read."""

import json

import numpy as np
import pytest

from benchmarks import letter, timing


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE", 0.0)


@pytest.mark.parametrize("heads", (1, 2))
def test_every_installed_peer_arrives_where_the_kernel_does(heads):
    result = letter.against_peers(300, 7, heads)
    assert {row["peer"] for row in result["peers"]} == {"attnlag", *letter.PEERS}
    assert all(row["microseconds"] is None or row["microseconds"] > 0 for row in result["peers"])
    assert result["peers"][1]["peer"] == "numpy" and result["peers"][1]["times_slower"] > 0


def test_a_peer_that_arrives_elsewhere_is_not_timed(monkeypatch):
    def wrong(counts, labels, alpha, beta, steps):
        return letter.numpy_products(counts, labels, alpha, beta, steps + 1)

    monkeypatch.setitem(letter.PEERS, "wrong", wrong)
    with pytest.raises(SystemExit, match="wrong arrives"):
        letter.against_peers(300, 7, 1)


def test_everything_measured_is_finite_json_and_the_table_shows_it(monkeypatch):
    monkeypatch.setattr(letter, "SCALING", [(2_000, 50, 1)])
    monkeypatch.setattr(letter, "SETTINGS", [(300, 7, 1)])
    monkeypatch.setattr(letter, "SEEDS", 2)
    monkeypatch.setattr(letter, "STEPS", 3)
    result = json.loads(json.dumps(letter.measure(), allow_nan=False))
    share = result["scaling"][0]["arithmetic_share"]
    assert share > 0
    assert np.isfinite(result["sweep"]["mean_loss"])
    text = letter.table(result)
    assert f"{share:.0%}" in text and "numpy" in text
