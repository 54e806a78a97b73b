"""What a results folder holds: runs, claims, the data of figures. Only read, nothing is trained."""

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from analytic.errors import InputError

from .. import paper, store
from ..config import RunConfig
from ..runs import Runs
from ..studies import FIGURES
from ..studies.figure_data import FigureData

CLAIMS = "claims.json"  # written by `attnlag prove --out DIR`
MOST_DAMAGED = 20  # files that are listed
STATUSES = ("proved", "certified", "enumerated", "simulated", "skipped", "refuted")


class Missing(Exception):
    """Runs that are needed are not in the folder; the message says of what."""


@dataclass
class Results:
    """The content of a folder; `read_results` makes it.

    Attributes
    ----------
    heads : {`RunConfig`: {seed: head of its file}} of all runs
    runs : {`RunConfig`: `Runs`} of the paper's configurations
    claims : list of dictionaries, or None
    studies : {name: `FigureData`} of the figures of `attnlag draw`
    damaged : a line for each file that cannot be used
    """

    folder: Path
    heads: dict = field(default_factory=dict)
    runs: dict = field(default_factory=dict)
    claims: list | None = None
    studies: dict = field(default_factory=dict)
    damaged: list = field(default_factory=list)

    @cached_property
    def rows(self):
        """{task: [(`paper.Row`, `Runs`), ...]}: the rows of Table 1 that are there."""
        found = {task: [(row, self.runs[config]) for row, config in paper.configurations(task) if config in self.runs]
                 for task in paper.TASKS}
        return {task: rows for task, rows in found.items() if rows}

    @property
    def others(self):
        """Configurations of runs that are not the paper's, in order."""
        return [config for config in self.heads if config not in self.runs]

    @property
    def n_runs(self):
        return sum(map(len, self.heads.values()))

    @property
    def n_diverged(self):
        return sum(head["status"] == "diverged" for heads in self.heads.values() for head in heads.values())

    @property
    def versions(self):
        """[(versions and CPU, number of runs made with them), ...], the most frequent first."""
        counted = Counter(tuple(head["versions"].items()) for heads in self.heads.values() for head in heads.values())
        return [(dict(versions), count) for versions, count in counted.most_common()]

    @property
    def damaged_shown(self):
        """The first of the damaged files, and how many more there are."""
        more = len(self.damaged) - MOST_DAMAGED
        return [*self.damaged[:MOST_DAMAGED], *([f"and {more} more"] if more > 0 else [])]

    def careful(self, name, action):
        """Do something with a file that others may have written; what goes wrong is noted."""
        try:
            action()
        except Exception as error:  # foreign content makes readers and figures raise nearly anything
            line = " ".join(str(error).split())
            self.damaged.append(f"{self.folder / name}: not as attnlag writes it ({type(error).__name__}: {line})")

    def find(self, configs):
        """The `Runs` of each configuration, of the seeds that all of them have; raises `Missing`."""
        absent = [f"{config.task} {config.plan}" for config in configs if config not in self.runs]
        if absent:
            raise Missing(f"no runs of {', '.join(dict.fromkeys(absent))}")
        common = set.intersection(*(set(self.runs[config].seeds) for config in configs))
        if not common:
            raise Missing(f"no seed in common under all plans of {configs[0].task}")
        return [Runs(config, [run for run in self.runs[config].runs if run.seed in common]) for config in configs]


def read_results(folder):
    """Read a folder into `Results`.

    Raises
    ------
    InputError : there is no such folder, or nothing in it to report
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"folder {str(folder)!r} does not exist; attnlag reproduce all --out DIR makes results")
    results = Results(folder)
    _read_runs(results)
    if (folder / CLAIMS).exists():
        results.careful(CLAIMS, lambda: setattr(results, "claims", _read_claims(folder / CLAIMS)))
    for name in FIGURES:
        if (folder / f"{name}.csv").exists():
            results.careful(f"{name}.csv", lambda name=name: results.studies.update({
                name: FigureData.from_csv((folder / f"{name}.csv").read_text(encoding="utf-8"))}))
    if not (results.heads or results.claims or results.studies or results.damaged):
        raise InputError(f"folder {str(folder)!r} holds no results; attnlag reproduce all --out DIR makes some")
    return results


def _read_runs(results):
    wanted = {config for task in paper.TASKS for _, config in paper.configurations(task)}
    found = {}
    for path in store.run_files(results.folder):
        try:
            head = store.read_head(path)
            config = RunConfig.from_dict(head["config"])
            results.heads.setdefault(config, {})[head["seed"]] = head
            if config in wanted:
                found.setdefault(config, {})[head["seed"]] = store.read(path)
        except (store.DamagedFile, InputError) as error:
            results.damaged.append(str(error))
    results.runs = {config: Runs(config, [run for _, run in sorted(runs.items())]) for config, runs in found.items()}


def _read_claims(path):
    claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    for claim in claims:
        if claim["status"] not in STATUSES or not all({"kind", "held", "slack", "tolerance", "reason"} <= set(piece)
                                                      for piece in claim["evidence"]):
            raise ValueError(claim["status"])
        str(claim["id"]), str(claim["statement"])
    return claims
