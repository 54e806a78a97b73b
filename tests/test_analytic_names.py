"""The public names of `analytic`: they load lazily, are documented, and their examples are true."""

import doctest
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import analytic
import proofs_check
import sim

MODULES = sorted(path.stem for path in Path(analytic.__file__).parent.glob("[a-z]*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_every_example_in_the_documentation_is_true(module):
    failed, _ = doctest.testmod(importlib.import_module(f"analytic.{module}"), raise_on_error=False)
    assert failed == 0


@pytest.mark.parametrize("name", analytic.__all__)
def test_every_public_name_is_documented_and_is_not_a_module(name):
    value = getattr(analytic, name)
    assert inspect.getdoc(value)
    assert name not in MODULES


def test_every_other_model_is_reached_from_the_package():
    code = "import analytic; print(analytic.slr.oracle_risk(0.1), analytic.icl_bigram.gap(5, 0.0))"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(analytic.__file__).parent.parent, capture_output=True)
    assert done.returncode == 0 and done.stdout.split()[1] == b"0.0"
    assert set(analytic._MODULES) <= set(dir(analytic))


@pytest.mark.parametrize("package", [analytic, proofs_check, sim])
def test_a_notebook_completes_all_public_names(package):
    assert set(package.__all__) <= set(dir(package))


def test_importing_analytic_loads_neither_numpy_nor_numba():
    code = "import sys, analytic; dir(analytic); sys.exit(any(m in sys.modules for m in ('numpy', 'scipy', 'numba')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(analytic.__file__).parent.parent).returncode == 0


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'theorem'"):
        _ = analytic.theorem
