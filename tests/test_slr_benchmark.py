"""The benchmark of single-location regression compares like with like, and its results can be stored and read."""

import json

import numpy as np
import pytest

from benchmarks import slr, timing


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE", 0.0)


def test_every_installed_peer_arrives_where_the_kernel_does():
    result = slr.against_peers(300, 4, 7)
    assert {row["peer"] for row in result["peers"]} == {"attnlag", *slr.PEERS}
    assert all(row["microseconds"] is None or row["microseconds"] > 0 for row in result["peers"])
    assert result["peers"][1]["peer"] == "numpy" and result["peers"][1]["times_slower"] > 0


def test_a_peer_that_arrives_elsewhere_is_not_timed(monkeypatch):
    def wrong(tokens, targets, k, v, steps):
        return slr.numpy_products(tokens, targets, k, v, steps + 1)

    monkeypatch.setitem(slr.PEERS, "wrong", wrong)
    with pytest.raises(SystemExit, match="wrong arrives"):
        slr.against_peers(300, 4, 7)


def test_everything_measured_is_finite_json_and_the_table_shows_it(monkeypatch):
    threads = slr.slr.THREADS
    monkeypatch.setattr(slr, "SCALING", [(400, 10, 20)])
    monkeypatch.setattr(slr, "SETTINGS", [(300, 4, 7)])
    monkeypatch.setattr(slr, "SEEDS", 2)
    monkeypatch.setattr(slr, "STEPS", 10)
    monkeypatch.setattr(slr, "over_threads", lambda: {"threads": 2, "speedup": 1.5, "speedup_of_a_large_run": 1.25})
    result = json.loads(json.dumps(slr.measure(), allow_nan=False))
    share = result["scaling"][0]["memory_share"]
    assert share > 0 and np.isfinite(result["sweep"]["mean_loss"]) and slr.slr.THREADS == threads
    text = slr.table(result)
    assert f"{share:.0%}" in text and "numpy" in text and "1.25 times" in text
