"""The page of results: performance.json, which keeps them, and performance.md with its plots, made from it."""

import importlib
import json
from pathlib import Path

from . import plots, targets, timing
from .__main__ import NAMES
from .peers import AGREE
from .report import Table, machine_text, markdown, text

FILE, PAGE = "performance.json", "performance.md"
HEAD = ("machine", "quick", "date", "took")  # of all results
INTRODUCTION = """\
# Speed and memory

Full-batch gradient descent on these models is a few passes over small arrays, and most of a general library's time goes
into temporaries, conversions and calls. The kernels of `analytic.gradients` do a step in one pass. This page says how
long that takes, how far it is from what the machine allows, and what the same problem costs elsewhere. It is written by
one command, which took {minutes:.0f} minutes here and needs 12 GB of memory, most of it for the peers' sweeps:

```sh
pip install ".[bench]" && python -m benchmarks --docs docs
```

With the name of a part it measures only that one anew; with `--stored` it only draws the page from
[what is kept](performance.json).

Read ratios and shares of a roof, not times: those belong to this machine. Every ratio compares calls that took turns
in one process, from the same start to the same parameters, which is checked to {agree:.0e}. The **peers** are NumPy
with gradients by hand, JAX (a compiled scan), and PyTorch with autograd: tidy (`torch`), and as one writes it first.
All work in double precision; extras that are not installed are named. A **roof** is a bound that no kernel can pass:
this machine's rate of multiply-adds, or of reads of memory. A kernel near its roof cannot be made much faster; one
below loses the rest to operations that are not in the formulas, and for small data to what a step costs by itself.

"""
FIGURES = """\
![Time of a step against its multiply-adds, for all kernels, with the arithmetic roof](performance-time.png)

Time of one step on one thread against the multiply-adds it needs, for every size measured below. The dashed line is the
arithmetic roof; even pairs divide twice a string, which has a lower roof of its own.

![Share of the roof that binds, against the multiply-adds of a step](performance-share.png)

The same steps as a share of the roof that binds: that of arithmetic, or one read of the data where that takes longer.
"""
LIMITS = """
What keeps kernels below their roofs, as far as timing their parts by themselves tells:

- **Even pairs** pay a fixed price for every pair of a length and a last symbol, which shows up to about L_max = 16.
  Beyond, half of the time goes into the exponential, where additions and shifts compete with multiply-adds.
- **In-context bigrams** look up rows of B by letter: products with them need about as many loads and stores as
  multiply-adds, and rows are padded to whole vectors.
- **Single-location regression** computes about as long as it reads, and the two overlap only in part. Threads that
  train different seeds share one memory, so that a sweep gains less from the second one.
"""


# ---- what is kept ----------------------------------------------------------------------------------------------------


def kept(folder):
    """Results in a folder, ``{name: results}``; exit if they cannot be read, so that they are not lost."""
    path = Path(folder) / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not a JSON object")
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise SystemExit(f"error: {path} is damaged ({error}): restore it, or delete it to measure anew") from None
    return {name: found[name] for name in NAMES if name in found}


def keep(folder, results):
    """Write results in one piece, and return them."""
    data = json.dumps({name: results[name] for name in NAMES if name in results}, indent=1, allow_nan=False)
    _write(Path(folder) / FILE, (data + "\n").encode())
    return results


def _write(path, data):
    from sim.store import atomic

    with atomic(path) as file:
        file.write(data)


# ---- what is shown ---------------------------------------------------------------------------------------------------


def renew(folder):
    """Make the page and its plots from what is kept."""
    results, folder = kept(folder), Path(folder)
    page = markdown_page(results)
    for name, figure in plots.draw(results).items():
        _write(folder / f"performance-{name}.png", figure)
    _write(folder / PAGE, page.encode())


def markdown_page(results):
    """The page as text."""
    shown = {name: parts(name, result) for name, result in results.items()}
    machines = dict.fromkeys(machine_text(result["machine"]) for result in results.values())
    several, minutes = len(machines) > 1, sum(result["took"] for result in results.values()) / 60
    where = "Each part names its machine." if several else f"Measured on {next(iter(machines), 'no machine yet')}."
    page = [INTRODUCTION.format(agree=AGREE, minutes=minutes), where, "\n\n", _rest(timing.__doc__), "\n"]
    if any("scaling" in result for result in results.values()):
        page.append(FIGURES)
    page += ["\n## Targets\n\n", markdown(targets.table(results)), LIMITS]
    for name in NAMES:
        page += ["\n", section(name, results.get(name), shown.get(name), several)]
    return "".join(page)


def _rest(docstring):
    """A docstring without its first paragraph."""
    return docstring.partition("\n\n")[2]


def section(name, result, shown, with_machine):
    """A benchmark's part of the page."""
    module = importlib.import_module(f"benchmarks.{name}")
    lines = [f"## {module.TITLE}\n", module.__doc__]
    if result is None:
        return "\n".join([*lines, f"`python -m benchmarks {name}`: not measured yet.\n"])
    quick = "Sizes and repeats are those of `--quick`. " if result["quick"] else ""
    where = f", on {machine_text(result['machine'])}" if with_machine else ""
    lines.append(f"`python -m benchmarks {name}`, {result['date']}{where}: {result['took']:.0f} s, load "
                 f"{result['machine']['load']:.1f} at the start. {quick}\n".replace(" \n", "\n"))  # fmt: skip
    return "\n".join([*lines, *map(markdown, shown)])


def section_text(name, result):
    """The same for a terminal."""
    title = f"{importlib.import_module(f'benchmarks.{name}').TITLE}, on {machine_text(result['machine'])}"
    return "\n\n".join([title, *map(text, parts(name, result))])


def parts(name, result) -> list[Table | str]:
    """What a benchmark shows of its results; exit if they are of another version."""
    try:
        if not all(name in result for name in HEAD):
            raise KeyError
        return importlib.import_module(f"benchmarks.{name}").shown(result)
    except (LookupError, TypeError, ValueError):
        raise SystemExit(f"error: results of {name} are of another version: measure {name} again") from None
