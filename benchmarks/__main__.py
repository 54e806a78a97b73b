"""``python -m benchmarks MODEL [--json]``: measure one model's kernels and print a table, or JSON."""

import argparse
import importlib
import json
import os
import pkgutil

import benchmarks

HELPERS = {"__main__", "timing"}
ENVIRONMENT = {  # one thread a contestant: a pool that spins between two calls would slow its neighbour
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
OLD_KERNELS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # a BLAS held to an older CPU would lose for that reason alone


def main():
    models = sorted({module.name for module in pkgutil.iter_modules(benchmarks.__path__)} - HELPERS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("model", choices=models)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    for variable in OLD_KERNELS:
        os.environ.pop(variable, None)
    model = importlib.import_module(f"benchmarks.{arguments.model}")  # numpy comes in here, and reads the environment
    result = model.measure()
    print(json.dumps(result, indent=1) if arguments.json else model.table(result))


main()
