"""The even-pairs benchmark compares like with like, and its results can be stored and read."""

import json

import numpy as np
import pytest

from benchmarks import even_pairs, timing


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE", 0.0)


def test_every_installed_peer_arrives_where_the_kernel_does():
    result = even_pairs.against_peers(5)
    assert {row["peer"] for row in result["peers"]} == {"attnlag", *even_pairs.PEERS}
    assert result["peers"][1]["peer"] == "numpy" and result["peers"][1]["times_slower"] > 0


def test_a_peer_that_arrives_elsewhere_is_not_timed(monkeypatch):
    monkeypatch.setitem(even_pairs.PEERS, "wrong", lambda *a: even_pairs.numpy_padded(*a[:-1], a[-1] + 1))
    with pytest.raises(SystemExit, match="wrong arrives"):
        even_pairs.against_peers(4)


def test_everything_measured_is_finite_json_and_the_table_shows_it(monkeypatch):
    monkeypatch.setattr(even_pairs, "SCALING", (6,))
    monkeypatch.setattr(even_pairs, "SETTINGS", (4,))
    monkeypatch.setattr(even_pairs, "SEEDS", 2)
    monkeypatch.setattr(even_pairs, "STEPS", 3)
    result = json.loads(json.dumps(even_pairs.measure(), allow_nan=False))
    share = result["scaling"][0]["arithmetic_share"]
    assert share > 0 and np.isfinite(result["sweep"]["mean_loss"])
    text = even_pairs.table(result)
    assert f"{share:.0%}" in text and "numpy" in text
