"""versions, where our packages come from, the CPU, and the state of the kernels' cache

What to send along with a question, and the first thing to look at when something is slow or strange.
"""

from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("analytic", "sim", "proofs_check")
NEEDED = ("attnlag", "numpy", "scipy", "sympy", "numba", "llvmlite", "matplotlib", "tqdm")
OPTIONAL = ("python-flint", "dask", "distributed", "pandas", "xarray", "torch", "jax")
FEATURES = ("fma", "avx2", "avx512f", "avx512bw", "avx512vl", "neon", "sve")  # that decide how fast kernels are


def arguments(parser):
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args):
    from sim.cli import OK

    from . import flags

    found = about()
    if args.json:
        flags.print_json(found)
    else:
        print(text(found))
    return OK


def about():
    """What `attnlag info` says, as plain values."""
    cache = caches()
    return {"versions": versions(), "imports": imports(), "cpu": cpu(), "cache": cache,
            "warnings": [*shadows(), *_cache_warnings(cache)]}


def versions():
    """{name: version}, None for an optional package that is not installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in (*NEEDED, *OPTIONAL):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def imports():
    """{package: folder it is imported from}."""
    from importlib.util import find_spec

    return {name: str(Path(find_spec(name).origin).parent) for name in PACKAGES}


def shadows():
    """A line for each of our packages in whose place Python would import another one, started in this folder."""
    import os
    import sys

    found, ours = [], Path(__file__).resolve().parents[2]
    places = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    for name, folder in imports().items():
        if Path(folder).resolve().parent != ours:
            found.append(f"{name} is imported from {folder}, not from {ours}")
        spec = PathFinder.find_spec(name, [*places, *sys.path])
        if spec is not None and spec.origin and Path(spec.origin).resolve() != ours / name / "__init__.py":
            found.append(f"{spec.origin} comes before our {name} when Python is started here: rename it, or work "
                         "in another folder")
    return found


def cpu():
    """Kind of CPU, cores, and the features that kernels are compiled for."""
    import os
    import platform

    from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

    present = get_host_cpu_features()
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"machine": platform.machine(), "name": get_host_cpu_name(), "cores": os.cpu_count(),
            "cores_allowed": allowed, "features": {name: present[name] for name in FEATURES if name in present}}


def caches():
    """[{folder, writable, entries, bytes}]: where compiled kernels are kept, one entry a kernel and type."""
    import os

    found = []
    for folder in sorted({path for path in map(_cache_path, _kernels()) if path}):
        files = list(Path(folder).glob("*.nbc"))
        found.append({"folder": folder, "writable": os.access(folder if files else _existing(folder), os.W_OK),
                      "entries": len(files), "bytes": sum(file.stat().st_size for file in files)})
    return found


def _kernels():
    """All compiled functions of `analytic`."""
    import pkgutil
    from importlib import import_module

    import analytic

    modules = [import_module(found.name) for found in pkgutil.walk_packages(analytic.__path__, "analytic.")]
    return [value for module in modules for value in vars(module).values() if hasattr(value, "py_func")]


def _cache_path(kernel):
    return kernel.stats.cache_path


def _existing(folder):
    """The folder, or the nearest one above it that is there."""
    return next(path for path in (Path(folder), *Path(folder).parents) if path.exists())


def _cache_warnings(cache):
    if not cache:
        yield "no folder for compiled kernels can be written: every process compiles again (set NUMBA_CACHE_DIR)"
    for place in cache:
        if not place["writable"]:
            yield f"{place['folder']} cannot be written: new kernels are compiled by every process"


def text(found):
    """The same for people."""
    from sim.tables import text_table

    known, cpu = found["versions"], found["cpu"]
    optional = [f"{name} {known[name]}" for name in OPTIONAL if known[name]]
    features = [name for name, present in cpu["features"].items() if present]
    rows = [["python", known["python"]], *([name, known[name] or "not installed"] for name in NEEDED),
            ["optional", ", ".join(optional) or "none"],
            *([f"import {name}", folder] for name, folder in found["imports"].items()),
            ["cpu", f"{cpu['name']} ({cpu['machine']}): {', '.join(features) or 'no vector features known'}"],
            ["cores", f"{cpu['cores']}, {cpu['cores_allowed']} for this process"]]
    for place in found["cache"]:
        state = "" if place["writable"] else ", cannot be written"
        rows.append(["kernel cache", f"{place['folder']}: {place['entries']} compiled, "
                                     f"{place['bytes'] / 1e6:.1f} MB{state}"])
    return "\n".join([text_table(["what", "value"], rows), *(f"warning: {line}" for line in found["warnings"])])
