"""What may happen to a sweep and its folder: kills, full and read-only disks, damaged and foreign files, links."""

import json
import os
import shutil
import subprocess
from contextlib import contextmanager

import numpy as np
import pytest

from analytic.errors import InputError
from sim import cli, load, store
from sim.status import status
from sim.sweep import run_sweep

from .kill_sweeps import kill_sweeps
from .sweeping import SMALL, attnlag, call, files, finished, leftovers, write_spec


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("complete"))


@pytest.fixture
def out(complete, tmp_path):
    """A copy of the complete sweep, to be damaged."""
    return shutil.copytree(complete, tmp_path / "out")


@contextmanager
def small_disk(folder, size):
    """A file system of its own on ``folder``; the test is skipped where none can be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# ---- kills -----------------------------------------------------------------------------------------------------------


def test_ten_kills_at_random_moments_lose_nothing_and_change_nothing(tmp_path):
    halfway, _ = kill_sweeps(10, tmp_path)
    assert halfway > 0


def test_what_a_killed_writer_left_is_removed_once_it_is_old(out, tmp_path):
    place = next(out.rglob("seed-*.npz")).parent
    old, new = place / ".writing-old", place / ".writing-new"
    for path in (old, new):
        path.write_bytes(b"half a run")
    hours_ago = new.stat().st_mtime - 2 * store.ABANDONED
    os.utime(old, (hours_ago, hours_ago))
    run_sweep(write_spec(tmp_path), out)
    assert leftovers(out) == [new]  # which another process may be writing


# ---- disks -----------------------------------------------------------------------------------------------------------


def test_a_full_disk_keeps_what_is_finished_and_the_same_command_goes_on(complete, tmp_path):
    spec, disk = write_spec(tmp_path), tmp_path / "disk"
    with small_disk(disk, "64k") as remount:
        done = attnlag("sweep", spec, "--out", disk / "out")
        assert (done.returncode, done.stdout) == (cli.USAGE, "")
        assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1
        kept = files(disk)
        assert kept and not leftovers(disk)
        assert {name.removeprefix("out/"): data for name, data in kept.items()}.items() < files(complete).items()
        remount("size=10m")
        done = attnlag("sweep", spec, "--out", disk / "out", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["found"] == len(kept)
        assert files(disk / "out") == files(complete)


def test_a_read_only_folder_can_be_read_and_is_not_swept(complete, tmp_path, capsys):
    spec, disk = write_spec(tmp_path), tmp_path / "disk"
    with small_disk(disk, "4m") as remount:
        shutil.copytree(complete, disk / "out")
        remount("ro")
        code, _, err = call(capsys, "sweep", spec, "--out", disk / "out")
        assert code == cli.USAGE and "Read-only file system" in err and err.count("\n") == 1
        assert call(capsys, "status", disk / "out")[0] == 0
        arguments = ["--rows", "d", "--cols", "init_scale", "--value", "lag"]
        assert call(capsys, "table", disk / "out", *arguments)[0] == 0
        code, _, err = call(capsys, "plot", disk / "out", "--x", "d", "--y", "lag", "--hue", "init_scale")
        assert code == cli.USAGE and "Read-only file system" in err and err.count("\n") == 1


def test_a_folder_that_is_a_file_is_refused_before_any_training(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sim.pool.train", None)
    (tmp_path / "file").write_text("mine")
    code, _, err = call(capsys, "sweep", write_spec(tmp_path), "--out", tmp_path / "file")
    assert code == cli.USAGE and "file" in err and err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


# ---- files -----------------------------------------------------------------------------------------------------------


def truncated(data):
    return data[: len(data) // 2]


def flipped(data):
    """One bit of the training losses changed."""
    at = data.index(b"train_loss.npy") + 300
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


@pytest.mark.parametrize("damage", [truncated, flipped, lambda data: b"", lambda data: b"PK\x03\x04 mine"],
                         ids=["truncated", "bit flipped", "empty", "foreign"])
def test_a_damaged_file_is_named_counted_and_trained_again(complete, out, tmp_path, capsys, damage):
    victim = sorted(out.rglob("seed-*.npz"))[4]
    victim.write_bytes(damage(victim.read_bytes()))
    code, text, _ = call(capsys, "status", out, "--json")
    found = json.loads(text)
    assert (code, found["done"], found["missing"]) == (cli.DIVERGED, 11, 0)
    assert [entry["file"] for entry in found["damaged"]] == [str(victim)]
    assert found["content"] != status(complete).content
    for command in (["table", out, "--rows", "d", "--value", "lag"], ["plot", out, "--x", "d", "--y", "lag"]):
        code, _, err = call(capsys, *command)
        assert code == cli.DIVERGED and str(victim) in err and err.count("\n") == 1
    code, text, err = call(capsys, "sweep", write_spec(tmp_path), "--out", out)
    assert code == 0 and "1 trained, 11 found" in text
    assert err.count("\n") == 1 and str(victim) in err and "trained again" in err
    assert files(out) == files(complete)


def test_a_file_of_a_later_version_is_never_overwritten(out, tmp_path, capsys, monkeypatch):
    victim = sorted(out.rglob("seed-*.npz"))[0]
    run = store.read(victim)
    monkeypatch.setattr(store, "FORMAT", store.FORMAT + 1)
    later = store.encode(run)
    monkeypatch.undo()
    victim.write_bytes(later)
    for command in (["sweep", write_spec(tmp_path), "--out", out], ["table", out, "--rows", "d", "--value", "lag"]):
        code, _, err = call(capsys, *command)
        assert code == cli.USAGE and "has format 2; this version" in err and err.count("\n") == 1
    code, text, _ = call(capsys, "status", out)
    assert code == cli.DIVERGED and "1 damaged" in text and "has format 2" in text
    assert victim.read_bytes() == later


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_is_no_file_is_refused_and_never_waited_for(out, tmp_path, kind):
    victim = sorted(out.rglob("seed-*.npz"))[0]
    victim.unlink()
    if kind == "fifo":
        os.mkfifo(victim)
    elif kind == "folder":
        victim.mkdir()
    else:
        victim.symlink_to("/dev/zero")
    for command in (["sweep", write_spec(tmp_path), "--out", out], ["table", out, "--rows", "d", "--value", "lag"]):
        done = attnlag(*command)
        assert done.returncode == cli.USAGE and f"{victim} is not a regular file" in done.stderr
        assert done.stderr.count("\n") == 1 and done.stdout == ""
    assert [entry["file"] for entry in status(out).damaged] == [str(victim)]


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_a_specification_or_a_plan_that_is_no_file_is_refused(out, tmp_path, capsys, kind):
    path = tmp_path / "other.toml"
    (out / "sweep.json").unlink()
    for victim in (path, out / "sweep.json"):
        os.mkfifo(victim) if kind == "fifo" else victim.mkdir()
    for command in (["sweep", path, "--out", tmp_path / "new"], ["sweep", write_spec(tmp_path), "--out", out],
                    ["status", out], ["table", out, "--rows", "d", "--value", "lag"]):
        code, _, err = call(capsys, *command)
        assert code == cli.USAGE and "is not a regular file" in err and err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}', '{"format": "x"}', "[" * 99999, '{"format": 2}',
                                  '{"format": 1, "axes": [], "runs": [{"config": {"task": 5}, "seeds": [0]}]}'])
def test_a_damaged_plan_is_one_clear_line(out, tmp_path, capsys, text):
    (out / "sweep.json").write_text(text)
    for command in (["sweep", write_spec(tmp_path), "--out", out], ["status", out]):
        code, _, err = call(capsys, *command)
        assert code == cli.USAGE and "sweep.json" in err and err.count("\n") == 1
    (out / "sweep.json").unlink()
    assert run_sweep(write_spec(tmp_path), out).found == 12


def test_runs_that_are_not_of_the_sweep_are_counted_apart(out, tmp_path, capsys):
    content = status(out).content
    call(capsys, "run", "or", "--d", "6", "--plan", "O(1x)", "--train-words", "9", "--test-words", "9", "--out", out)
    found = status(out)
    assert (found.done, found.other, found.content) == (12, 3, content)
    assert "3 runs of no sweep" in repr(found)


def test_a_run_in_the_place_of_another_is_damage(out):
    first, second = sorted(out.rglob("seed-*.npz"))[:2]
    second.write_bytes(first.read_bytes())
    assert [entry["reason"] for entry in status(out).damaged] == [f"{second}: holds another run"]


def test_a_folder_without_a_sweep_has_a_status_too(out):
    expected = status(out).content
    (out / "sweep.json").unlink()
    found = status(out)
    assert (found.planned, found.missing, found.done, found.content) == (None, None, 12, expected)


# ---- what a stranger might put there ---------------------------------------------------------------------------------


def test_a_link_out_of_the_folder_is_not_followed(tmp_path, capsys):
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    (out / "runs").mkdir(parents=True)
    (out / "runs" / "occurrence").symlink_to(elsewhere)
    code, _, err = call(capsys, "sweep", write_spec(tmp_path), "--out", out)
    assert code == cli.USAGE and "a link in it leads elsewhere" in err and err.count("\n") == 1
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("task", ["../../escape", "/etc/passwd", "..", "a/../../b"])
def test_names_do_not_lead_out_of_the_folder(tmp_path, task):
    with pytest.raises(InputError):
        run_sweep(write_spec(tmp_path, SMALL.format(seeds=1, d=[6]).replace("occurrence", task)), tmp_path / "out")
    path = store.run_path(tmp_path, _Named(task), 0)
    assert path.resolve().is_relative_to(tmp_path / "runs") and ".." not in path.parts


class _Named:
    """A configuration with a hostile task and plan."""

    def __init__(self, name):
        self.task = self.plan = name
        self.key = "0" * 16


@pytest.mark.parametrize(("group", "name", "value"), [
    ("config", "length", "table:/etc/passwd"), ("config", "length", ["fixed:3"]), ("config", "rate_o", {"a": 1}),
    ("config", "rate_a", [1.0, 2.0]), ("config", "plan", "O"), ("config", "plan", 5), ("config", "task", None),
    ("config", "init", "ones"), ("head", "seed", "../../0"), ("head", "seed", -1), ("head", "status", "fine"),
    ("head", "diverged", {"step": 1}), ("head", "status", "diverged"),
    ("head", "phase_ends", None), ("head", "phase_ends", [1, 60]),
    ("arrays", "train_loss", np.zeros((2, 3))), ("arrays", "record", np.zeros(1)), ("arrays", "gaps/lag", np.zeros(7)),
])
def test_matching_hashes_do_not_make_a_run(out, group, name, value):
    path = sorted(out.rglob("seed-*.npz"))[0]
    head, arrays = store.parse(path.read_bytes(), path)
    {"head": head, "config": head["config"], "arrays": arrays}[group][name] = value
    path.write_bytes(store.pack(head, arrays))
    for read in (store.read, store.read_head):
        with pytest.raises(store.DamagedFile, match="not a complete run file"):
            read(path)
    with pytest.raises(store.DamagedFile):
        load(out)


def test_a_divergence_that_says_nothing_does_not_make_a_run(out):
    path = sorted(out.rglob("seed-*.npz"))[0]
    head, arrays = store.parse(path.read_bytes(), path)
    path.write_bytes(store.pack(head | {"status": "diverged", "diverged": {"step": 1}}, arrays))
    assert [entry["file"] for entry in status(out).damaged] == [str(path)]


def test_packing_what_was_read_gives_the_same_file(out):
    path = sorted(out.rglob("seed-*.npz"))[0]
    assert store.pack(*store.parse(path.read_bytes(), path)) == path.read_bytes()
