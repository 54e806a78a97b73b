"""One run, one file: written under a temporary name, hashed, then renamed; read without pickle.

A file is an ``.npz`` with the run's arrays and a JSON head: format, configuration, seed, status, versions, and two
SHA-256 sums. ``content`` is that of what was computed (configuration, seed, status, arrays), whoever computed it;
``sha256`` that of the head, ``content`` included. "Done" means that the file parses and both sums match.
"""

import hashlib
import io
import json
import os
import platform
import re
import stat
import struct
import uuid
import zipfile
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import NoneType

import numpy as np

from analytic.errors import InputError

from .config import INITS, RunConfig
from .descent import Run
from .plans import parse_plan

FORMAT = 1
ARRAYS = ("train_loss", "record", "test_metric")
GROUPS = ("gaps", "parameters")  # dictionaries of arrays
RESULT = ("config", "seed", "status", "diverged", "phase_ends")  # what the head says of the result itself
LIBRARIES = ("attnlag", "numpy", "numba", "scipy")
WRITTEN_OUT = r"table:\d+=[^=]+(,\d+=[^=]+)*"  # the text of a length law that came from a table
TEMPORARY = ".writing-"
ABANDONED = 3600  # seconds after which a temporary file has no writer any more: a write takes far less than one


class DamagedFile(Exception):
    """The file is not a complete run: truncated, changed, or something else altogether."""


# ---- writing ---------------------------------------------------------------------------------------------------------


def run_path(folder, config, seed):
    """Where the run of a configuration and seed is stored: FOLDER/runs/TASK/PLAN-KEY/seed-00007.npz."""
    return config_folder(folder, config) / file_name(seed)


def config_folder(folder, config):
    """Where the runs of a configuration are stored; only letters, digits and _ of its names get into the path."""
    task, plan = ("".join(c if c.isalnum() else "_" for c in text)[:60] for text in (config.task, config.plan))
    return Path(folder) / "runs" / task / f"{plan}-{config.key}"


def file_name(seed):
    return f"seed-{seed:05d}.npz"


def save(folder, run):
    """Store a run atomically and return its path; nothing is left behind when the disk is full or read-only."""
    return write(folder, run.config, run.seed, encode(run))


def write(folder, config, seed, data):
    """Store the bytes that `encode` made of a run."""
    path = run_path(folder, config, seed)
    with atomic(path) as file:
        file.write(data)
    return path


def encode(run):
    """The bytes of a run's file; the same run has the same bytes."""
    arrays = {name: getattr(run, name) for name in ARRAYS}
    for group in GROUPS:
        arrays |= {f"{group}/{name}": array for name, array in getattr(run, group).items()}
    head = {name: getattr(run, name) for name in RESULT}
    return pack(head | {"config": run.config.to_dict(), "format": FORMAT, "versions": versions()}, arrays)


def pack(head, arrays):
    """The bytes of a file with this head, hashes added, and these arrays."""
    head = head | {"content": _content(head, arrays)}
    head["sha256"] = _sha256(head)
    file = io.BytesIO()
    np.savez(file, head=np.frombuffer(json.dumps(head, sort_keys=True).encode(), dtype=np.uint8), **arrays)
    return file.getvalue()


@contextmanager
def atomic(path):
    """A binary file that takes its name only when it is complete; nothing is left behind when writing fails."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename = str(path)  # "No space left on device" does not say where
            error.filename2 = None
        raise


def check_writable(folder):
    """Raise `OSError` now, rather than after the work, if nothing can be written to ``folder``; it is made.

    Returns the time by the clock of the folder's file system.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    probe = path / f"{TEMPORARY}{uuid.uuid4().hex}"
    try:
        probe.touch()
        return probe.stat().st_mtime
    finally:
        probe.unlink(missing_ok=True)


def versions():
    """Versions and CPU that the bits of a result depend on."""
    return dict(_versions())


@cache
def _versions():
    from llvmlite.binding import get_host_cpu_name  # the kind of CPU that the kernels are compiled for

    found = {"python": platform.python_version(), "machine": platform.machine(), "cpu": get_host_cpu_name()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source folder
            found[name] = "not installed"
    return found


# ---- reading ---------------------------------------------------------------------------------------------------------


def read(path):
    """The `Run` in a file. Raises `DamagedFile` (one line) unless it parses and its hashes match."""
    return to_run(*parse(read_bytes(path), path))


def read_head(path):
    """The head of a run's file, after the same checks as `read`: a dictionary."""
    return parse(read_bytes(path), path)[0]


def read_bytes(path):
    """The bytes of a regular file; a FIFO, folder or device of that name is refused without waiting for it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"{path} is not a regular file, and no run; move it away")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def to_run(head, arrays):
    """The `Run` that `encode` stored."""
    values = {name: arrays[name] for name in ARRAYS}
    for group in GROUPS:
        values[group] = {name.split("/", 1)[1]: array for name, array in arrays.items() if name.startswith(group + "/")}
    result = {name: head[name] for name in RESULT} | {"config": _config(json.dumps(head["config"]))}
    return Run(**result, **values)


def parse(data, path):
    """(head, arrays) of the bytes of a run's file, which is named in errors; `DamagedFile` if they are not a run."""
    try:
        arrays = _members(data)
        head = json.loads(arrays.pop("head").tobytes())
        later = head["format"] > FORMAT
        if not later:
            if head.pop("sha256") != _sha256(head) or head["content"] != _content(head, arrays):
                raise DamagedFile(f"{path}: content does not match its hash")
            _check(head, arrays)
    except DamagedFile:
        raise
    except Exception:  # foreign bytes make zip, npy and JSON readers raise nearly anything
        raise DamagedFile(f"{path}: not a complete run file") from None
    if later:
        raise InputError(f"{path} has format {head['format']}; this version of attnlag reads up to {FORMAT}")
    return head, arrays


def _members(data):
    """{name: array} of an uncompressed ``.npz`` in memory, several times as fast as numpy's reader.

    The container's own checksums are not looked at: the hash in the head covers all that is used.
    """
    view, arrays = memoryview(data), {}
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        for member in container.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError("compressed")
            start = member.header_offset + 30 + sum(struct.unpack_from("<HH", data, member.header_offset + 26))
            arrays[member.filename.removesuffix(".npy")] = _array(view[start : start + member.file_size])
    return arrays


def _array(npy):
    """The array in the bytes of a ``.npy`` file; never an array of Python objects."""
    if npy[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("not a .npy file of version 1")
    start = 10 + struct.unpack_from("<H", npy, 8)[0]
    shape, dtype = _npy_header(bytes(npy[8:start]))
    array = np.frombuffer(npy, dtype, offset=start).reshape(shape)
    return array.copy()  # writable, and aligned


@lru_cache(maxsize=1000)
def _npy_header(header):
    """(shape, dtype); the files of a sweep share a few headers."""
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(io.BytesIO(header))
    if fortran or dtype.hasobject:
        raise ValueError("not as `encode` writes it")
    return shape, dtype


@lru_cache(maxsize=1000)
def _config(text):
    """The configuration with this JSON text; raises unless it is one."""
    config = RunConfig.from_dict(json.loads(text))
    _must(isinstance(config.task, str) and config.init in INITS)
    plan = parse_plan(config.plan)
    lengths = {"init_scale": 2, "steps": len(plan.phases), "rate_a": len(plan.training("A")),
               "rate_o": len(plan.training("O"))}
    for name, length in lengths.items():
        numbers = getattr(config, name)
        _must(isinstance(numbers, tuple) and len(numbers) == length)
        _must(all(isinstance(number, (int, float)) for number in numbers))
    for _, value in config.settings:  # a stored law is written out: it names no other file
        _must(isinstance(value, (int, float, str, NoneType)))
        _must(not str(value).startswith("table:") or re.fullmatch(WRITTEN_OUT, value))
    return config


def _check(head, arrays):
    """Raise unless head and arrays are those of a run: matching hashes do not say that we computed them."""
    _config(json.dumps(head["config"]))
    _must(isinstance(head["seed"], int) and head["seed"] >= 0 and isinstance(head["phase_ends"], list))
    _must(head["status"] == ("diverged" if head["diverged"] else "ok"))
    _must(head["diverged"] is None or {"step", "phase", "rate_a", "rate_o"} == set(head["diverged"]))
    loss, record, metric = (arrays[name] for name in ARRAYS)
    _must(loss.ndim == record.ndim == 1 and len(loss) and record.shape == metric.shape)
    for name, array in arrays.items():
        if name.startswith("gaps/"):
            _must(array.ndim == 2 and len(array) == len(loss))
        elif name.startswith("parameters/"):
            _must(len(array) == 1 + len(head["phase_ends"]))


def _must(condition):
    if not condition:
        raise ValueError("not a run")


def _content(head, arrays):
    digest = hashlib.sha256(json.dumps({name: head[name] for name in RESULT}, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


def _sha256(head):
    return hashlib.sha256(json.dumps(head, sort_keys=True).encode()).hexdigest()


# ---- folders ---------------------------------------------------------------------------------------------------------


def run_files(folder):
    """Paths of all that is named like a run, in a folder and below it, in order; links to folders are not followed.

    Raises
    ------
    OSError : the folder cannot be read

    Examples
    --------
    >>> list(run_files("."))
    []
    """
    with os.scandir(folder) as entries:
        entries = sorted(entries, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.startswith("seed-") and entry.name.endswith(".npz"):
            yield Path(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            yield from run_files(entry.path)


def remove_abandoned(folder, now):
    """Remove the temporary files that writers who were killed left in a folder and below it, an hour ago or earlier."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            if name.startswith(TEMPORARY) and now - path.lstat().st_mtime > ABANDONED:
                path.unlink(missing_ok=True)
