"""`attnlag info`: what is installed and imported is what it says, and what is wrong is named."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim import cli
from sim.commands import info

HERE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def about():
    return info.about()


def test_versions_are_those_imported(about):
    import matplotlib
    import numba
    import numpy
    import scipy

    for module in (matplotlib, numba, numpy, scipy):
        assert about["versions"][module.__name__] == module.__version__


def test_paths_are_those_imported(about):
    import analytic
    import proofs_check
    import sim

    for module in (analytic, proofs_check, sim):
        assert about["imports"][module.__name__] == str(Path(module.__file__).parent)


def test_cores_and_features_are_those_the_kernels_get(about):
    import llvmlite.binding

    assert about["cpu"]["cores"] == os.cpu_count() >= about["cpu"]["cores_allowed"] > 0
    known = llvmlite.binding.get_host_cpu_features()
    assert about["cpu"]["features"] == {name: on for name, on in known.items() if name in info.FEATURES}


def test_a_kernel_that_compiles_appears_in_the_cache(tmp_path):
    code = ("import json; from analytic.icl_bigram import symmetric_gradient; from sim.commands.info import caches; "
            "before = caches(); symmetric_gradient(5, 2, 0.5, 0.5); print(json.dumps([before, caches()]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, cwd=HERE,
                          env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert sum(place["entries"] for place in before) == 0 < sum(place["entries"] for place in after)
    assert all(place["folder"].startswith(str(tmp_path)) and place["writable"] for place in after)


def test_a_folder_of_our_name_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    (tmp_path / "sim").mkdir()
    assert info.shadows() == []  # without __init__.py it hides nothing that is installed
    (tmp_path / "sim" / "__init__.py").touch()
    (tmp_path / "analytic.py").touch()
    analytic, sim = info.shadows()
    assert str(tmp_path / "analytic.py") in analytic and str(tmp_path / "sim" / "__init__.py") in sim
    monkeypatch.chdir(HERE)
    assert info.shadows() == []
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir("/")
    assert len(info.shadows()) == 2


def test_a_cache_that_cannot_be_written_is_warned_of():
    assert any("NUMBA_CACHE_DIR" in line for line in info._cache_warnings([]))
    place = {"folder": "/somewhere", "writable": False, "entries": 0, "bytes": 0}
    assert ["/somewhere" in line for line in info._cache_warnings([place])] == [True]


def test_text_and_json_say_the_same(capsys, about):
    assert cli.main(["info", "--json"]) == cli.OK
    found = json.loads(capsys.readouterr().out)
    assert found["versions"] == about["versions"] and found["imports"] == about["imports"]
    text = info.text(found)
    for value in (*found["imports"].values(), found["versions"]["numpy"], found["cpu"]["name"]):
        assert value in text
