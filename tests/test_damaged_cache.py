"""A damaged file of compiled functions: one line that says what to delete, and deleting it helps."""

import os
import shutil
import subprocess
import sys

import pytest


def attnlag(cache):
    code = "import sys; from sim.cli import main; sys.exit(main(['population', 'occurrence', '--plan', 'joint(3x)']))"
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
                          capture_output=True, text=True)  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    cache = tmp_path_factory.mktemp("numba")
    done = attnlag(cache)
    assert done.returncode == 0, done.stderr
    return cache, done.stdout


@pytest.mark.parametrize("kind", ("nbi", "nbc"))
@pytest.mark.parametrize("damage", (b"", b"foreign bytes"))
def test_one_line_names_the_folder_to_delete_and_deleting_it_helps(filled, tmp_path, kind, damage):
    shutil.copytree(filled[0], tmp_path / "cache")
    [folder] = (tmp_path / "cache").glob("analytic_*")
    for file in folder.glob(f"population.*.{kind}"):
        file.write_bytes(damage)
    done = attnlag(tmp_path / "cache")
    assert done.returncode == 3 and not done.stdout
    assert done.stderr == (
        f"attnlag: error: compiled functions in {folder} are damaged: delete that folder, it will be made anew\n"
    )
    if not damage:
        shutil.rmtree(folder)
        assert attnlag(tmp_path / "cache").stdout == filled[1]
