"""Stored runs: exact, atomic, hashed; whatever is not a complete run is named and never used."""

import dataclasses
import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.errors import InputError
from sim import load, store
from sim.config import RunConfig, resolve
from sim.descent import train
from sim.runs import run_plan

SMALL = dict(d=6, train_words=40, test_words=20, steps=30)


@pytest.fixture(scope="module")
def run():
    return train(resolve("occurrence", "O(1x)->AO", **SMALL), seed=3)


def same(a, b):
    groups = [{name: getattr(r, name) for name in store.ARRAYS} | r.gaps | r.parameters for r in (a, b)]
    return a.config == b.config and a.phase_ends == b.phase_ends and groups[0].keys() == groups[1].keys() and all(
        np.array_equal(array, groups[1][name], equal_nan=True) for name, array in groups[0].items()
    )


def test_what_is_read_is_what_was_saved(run, tmp_path):
    assert same(store.read(store.save(tmp_path, run)), run)


def test_two_saves_are_the_same_bytes(run, tmp_path):
    first = store.save(tmp_path / "a", run).read_bytes()
    assert store.save(tmp_path / "b", run).read_bytes() == first


def test_config_survives_json(run):
    text = json.dumps(run.config.to_dict())
    assert RunConfig.from_dict(json.loads(text)) == run.config


def test_any_change_of_the_config_changes_its_key(run):
    keys = {run.config.key}
    settings = tuple((name, 7 if name == "d" else value) for name, value in run.config.settings)
    changes = dict(task="or", settings=settings, init="zero", rate_o=(1.0, 2.0), steps=(1, 31), record_every=9)
    for name, value in changes.items():
        keys.add(dataclasses.replace(run.config, **{name: value}).key)
    assert len(keys) == 1 + len(changes)


@given(data=st.data())
def test_a_flipped_bit_or_a_cut_is_noticed(run, tmp_path_factory, data):
    path = store.save(tmp_path_factory.mktemp("store"), run)
    good = path.read_bytes()
    if data.draw(st.booleans()):
        bad = good[: data.draw(st.integers(0, len(good) - 1))]
    else:
        at = data.draw(st.integers(0, len(good) - 1))
        bad = good[:at] + bytes([good[at] ^ 1 << data.draw(st.integers(0, 7))]) + good[at + 1 :]
    path.write_bytes(bad)
    try:
        read = store.read(path)
    except store.DamagedFile as error:
        assert str(path) in str(error) and "\n" not in str(error)
    except InputError as error:  # the flipped bit made it a file of a later format
        assert "format" in str(error)
    else:  # the bit was in a part of the zip container that means nothing
        assert same(read, run)


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", b"\x80\x04]\x94.", b"PK\x05\x06" + bytes(18)])
def test_foreign_files_are_not_runs(content, tmp_path):
    path = tmp_path / "seed-00000.npz"
    path.write_bytes(content)
    with pytest.raises(store.DamagedFile, match="not a complete run file"):
        store.read(path)


def test_a_pickle_inside_is_not_loaded(tmp_path, run):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trapped"),)

    path = tmp_path / "seed-00000.npz"
    np.savez(path, head=np.array([Trap()], dtype=object))
    with pytest.raises(store.DamagedFile):
        store.read(path)
    assert not (tmp_path / "trapped").exists()


def test_a_later_format_is_refused_by_name(run, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FORMAT", 2)
    path = store.save(tmp_path, run)
    monkeypatch.undo()
    with pytest.raises(InputError, match="has format 2"):
        store.read(path)


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="disk full"), store.atomic(tmp_path / "file") as file:
        file.write(b"half")
        raise OSError("disk full")
    assert list(tmp_path.iterdir()) == []


def test_finished_runs_are_read_not_trained_again(tmp_path, monkeypatch):
    first = run_plan("occurrence", "AO", [0, 1], out=tmp_path, **SMALL)
    monkeypatch.setattr("sim.pool.train", None)  # training would fail
    again = run_plan("occurrence", "AO", [0, 1], out=tmp_path, **SMALL)
    assert np.array_equal(first.train_loss, again.train_loss)


def test_a_damaged_run_is_named_and_trained_again(tmp_path, capsys):
    first = run_plan("occurrence", "AO", [0], out=tmp_path, **SMALL)
    path = store.run_path(tmp_path, first.config, 0)
    good = path.read_bytes()
    path.write_bytes(good[:100])
    run_plan("occurrence", "AO", [0], out=tmp_path, **SMALL)
    assert path.read_bytes() == good
    assert capsys.readouterr().err == f"attnlag: warning: {path}: not a complete run file; trained again\n"


def test_a_file_that_holds_another_run_is_not_taken_for_this_one(tmp_path, capsys):
    first = run_plan("occurrence", "AO", [0, 1], out=tmp_path, **SMALL)
    zero, one = (store.run_path(tmp_path, first.config, seed) for seed in (0, 1))
    one.write_bytes(zero.read_bytes())
    again = run_plan("occurrence", "AO", [0, 1], out=tmp_path, **SMALL)
    assert np.array_equal(again.train_loss, first.train_loss)
    assert "holds another run" in capsys.readouterr().err


def test_long_names_fit_the_file_system(tmp_path):
    plan, task = "->".join(["O(1x)"] * 80), " | ".join(["1 & 2"] * 100)
    runs = run_plan(task, plan, [0], rate_o=[0.1] * 80, d=6, train_words=20, test_words=5, out=tmp_path)
    assert store.run_path(tmp_path, runs.config, 0).exists()


def test_load_gives_every_run_back(tmp_path):
    runs = run_plan("occurrence", "AO", [0, 1], out=tmp_path, **SMALL)
    run_plan("or", "A->O", [5], out=tmp_path, **SMALL)
    loaded = {group.config.task: group for group in load(tmp_path)}
    assert loaded["or"].seeds == [5]
    assert np.array_equal(loaded["occurrence"].train_loss, runs.train_loss)
    assert [group.seeds for group in load(tmp_path / "runs" / "or")] == [[5]]
    assert repr(load(tmp_path)).count("\n") == 3
