"""One run, one file: written under a temporary name, hashed, then renamed; read without pickle.

A file is a ``.npz`` with the run's arrays and a JSON head: format, configuration, seed, status, versions,
and the SHA-256 of everything in it. "Done" means that the file parses and its hash matches.
"""

import hashlib
import json
import os
import platform
import uuid
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from analytic.errors import InputError

from .config import RunConfig
from .descent import Run

FORMAT = 1
ARRAYS = ("train_loss", "record", "test_metric")
GROUPS = ("gaps", "parameters")  # dictionaries of arrays
LIBRARIES = ("attnlag", "numpy", "numba", "scipy")


class DamagedFile(Exception):
    """The file is not a complete run: truncated, changed, or something else altogether."""


def run_path(folder, config, seed):
    """Where the run of a configuration and seed is stored: FOLDER/runs/TASK/PLAN-KEY/seed-00007.npz."""
    task, plan = ("".join(c if c.isalnum() else "_" for c in text)[:60] for text in (config.task, config.plan))
    return Path(folder) / "runs" / task / f"{plan}-{config.key}" / f"seed-{seed:05d}.npz"


def save(folder, run):
    """Store a run atomically and return its path; nothing is left behind when the disk is full or read-only."""
    path = run_path(folder, run.config, run.seed)
    arrays = {name: getattr(run, name) for name in ARRAYS}
    for group in GROUPS:
        arrays |= {f"{group}/{name}": array for name, array in getattr(run, group).items()}
    head = {
        "format": FORMAT,
        "config": run.config.to_dict(),
        "seed": run.seed,
        "status": run.status,
        "diverged": run.diverged,
        "phase_ends": run.phase_ends,
        "versions": versions(),
    }
    head["sha256"] = _digest(head, arrays)
    text = np.frombuffer(json.dumps(head, sort_keys=True).encode(), dtype=np.uint8)
    with atomic(path) as file:
        np.savez(file, head=text, **arrays)
    return path


@contextmanager
def atomic(path):
    """A binary file that takes its name only when it is complete; nothing is left behind when writing fails."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".writing-{uuid.uuid4().hex}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = str(path)  # "No space left on device" does not say where
        raise


def check_writable(folder):
    """Raise `OSError` now, rather than after the work, if nothing can be written to ``folder``; it is made."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    probe = path / f".writing-{uuid.uuid4().hex}"
    probe.touch()
    probe.unlink()


def read(path):
    """The `Run` in a file. Raises `DamagedFile` (one line) unless it parses and its hash matches."""
    with open(path, "rb") as raw:
        try:
            return _parse(path, raw)
        except (InputError, DamagedFile):
            raise
        except Exception:  # foreign bytes make zip, npy and JSON readers raise nearly anything
            raise DamagedFile(f"{path}: not a complete run file") from None


def _parse(path, raw):
    with np.load(raw, allow_pickle=False) as file:
        head = json.loads(bytes(file["head"]).decode())
        if head["format"] > FORMAT:
            raise InputError(f"{path} has format {head['format']}; this version of attnlag reads up to {FORMAT}")
        arrays = {name: file[name] for name in file.files if name != "head"}
    if head.pop("sha256") != _digest(head, arrays):
        raise DamagedFile(f"{path}: content does not match its hash")
    status = {name: head[name] for name in ("seed", "status", "diverged", "phase_ends")}
    values = {name: arrays[name] for name in ARRAYS}
    for group in GROUPS:
        values[group] = {name.split("/")[1]: array for name, array in arrays.items() if name.startswith(group + "/")}
    return Run(config=RunConfig.from_dict(head["config"]), **status, **values)


def load(folder):
    """All runs stored in a folder and below it, one `Runs` a configuration.

    Returns
    -------
    Stored : a list of `Runs` that prints one line for each

    Raises
    ------
    InputError : the folder does not exist or holds no runs
    DamagedFile : a file is not a complete run

    Examples
    --------
    >>> load("no-such-folder")
    Traceback (most recent call last):
    ...
    analytic.errors.InputError: folder 'no-such-folder' holds no stored runs
    """
    from .runs import Runs

    groups = {}
    for path in sorted(Path(folder).rglob("seed-*.npz")):
        run = read(path)
        groups.setdefault((path.parent, run.config), []).append(run)
    if not groups:
        raise InputError(f"folder {str(folder)!r} holds no stored runs")
    return Stored(Runs(config, runs) for (_, config), runs in groups.items())


class Stored(list):
    """A list of `Runs` that prints one line for each."""

    def __repr__(self):
        from .tables import stored_text

        return stored_text(self)


def versions():
    """Versions and CPU that the bits of a result depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source folder
            found[name] = "not installed"
    return found


def _digest(head, arrays):
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
