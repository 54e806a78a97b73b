"""The state of a folder of runs: what is done, missing, damaged, diverged."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

from analytic.errors import InputError

from . import store
from .sweep import read_plan

SHOWN = 20  # damaged files and diverged runs that are printed


@dataclass(frozen=True)
class Status:
    """State of a folder; prints as a few lines."""

    folder: str
    planned: int | None  # runs of the sweep; None where there is no sweep
    done: int  # complete and whole, diverged ones included
    missing: int | None
    damaged: list  # [{"file", "reason"}]: named like a run, but none
    diverged: list  # [{"file", "step", "phase"}]
    other: int  # runs that are none of the sweep's
    content: str  # SHA-256 of the done runs' contents

    def to_dict(self):
        return asdict(self)

    def __repr__(self):
        of = "" if self.planned is None else f" of {self.planned} runs"
        lines = [f"{self.folder}: {self.done}{of} done, "
                 + ("" if self.missing is None else f"{self.missing} missing, ")
                 + f"{len(self.damaged)} damaged, {len(self.diverged)} diverged"
                 + (f"; {self.other} runs of no sweep" if self.other else "")]
        lines += [f"damaged: {entry['reason']}" for entry in self.damaged[:SHOWN]]
        lines += [f"diverged at step {entry['step']} (phase {entry['phase']}): {entry['file']}"
                  for entry in self.diverged[:SHOWN]]
        more = sum(max(0, len(entries) - SHOWN) for entries in (self.damaged, self.diverged))
        lines += [f"and {more} more (--json names them all)"] if more else []
        return "\n".join([*lines, f"content {self.content}"])


def status(folder):
    """The state of the runs in a folder and below it.

    A run of the sweep is done if its file is whole and holds this run; where the folder has no sweep every whole
    file counts. ``content`` hashes configuration, seed, status and arrays of the done runs, in no order.

    Raises
    ------
    InputError : the folder does not exist, or its plan is damaged

    Examples
    --------
    >>> status("no-such-folder")
    Traceback (most recent call last):
    ...
    analytic.errors.InputError: folder 'no-such-folder' does not exist
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"folder {str(folder)!r} does not exist")
    plan = read_plan(folder)
    planned = {} if plan is None else {
        store.run_path(folder, config, seed): (config.to_dict(), seed) for config, seed in plan.pairs()
    }
    contents, damaged, diverged, other, missing = [], [], [], 0, set(planned)
    for path in store.run_files(folder):
        missing.discard(path)
        try:
            head = store.read_head(path)
            if path in planned and (head["config"], head["seed"]) != planned[path]:
                raise store.DamagedFile(f"{path}: holds another run")
        except (store.DamagedFile, InputError, OSError) as error:
            damaged.append({"file": str(path), "reason": str(error)})
            continue
        if plan is not None and path not in planned:
            other += 1
            continue
        contents.append(head["content"])
        if head["diverged"]:
            at = head["diverged"]
            diverged.append({"file": str(path), "step": at["step"], "phase": at["phase"]})
    digest = hashlib.sha256("".join(sorted(contents)).encode()).hexdigest()
    return Status(str(folder), None if plan is None else len(planned), len(contents),
                  None if plan is None else len(missing), damaged, diverged, other, digest)
