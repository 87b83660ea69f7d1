"""Where machine code is kept: in the user's cache, one folder for each version, never beside the source."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import msdump
from msdump.tensors import compiling

PACKAGE = Path(msdump.__file__).parent
# Uses a compiler's version only.
NO_SOURCES = {"cli/doctor.py", "statistics/stats.py", "tensors/c_order.py", "statistics/md5.py"}

numba = pytest.importorskip("numba")


def run_in(cache: Path, code: str, **more: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment |= {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(PACKAGE.parent), **more}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported_by(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_the_folder_depends_on_every_module_that_machine_code_is_made_from() -> None:
    makers = {
        "numba",
        "numba.core",
        "numba.extending",
        "llvmlite",
        "msdump.tensors.compiling",
        "msdump.tensors.vector_code",
    }
    compiled = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if imported_by(file) & makers and str(file.relative_to(PACKAGE)) not in NO_SOURCES
    }
    assert compiled - set(compiling.SOURCES) == set()
    assert all((PACKAGE / name).is_file() for name in compiling.SOURCES)


CODE_FOLDER = "from msdump.tensors.compiling import code_folder; print(code_folder())"
LANES = "from msdump.statistics.md5_lanes import lane_kernel; lane_kernel()"


def test_nothing_is_written_beside_the_source(tmp_path: Path) -> None:
    before = sorted(PACKAGE.rglob("*.nb?"))
    run_in(tmp_path, LANES)
    assert sorted(PACKAGE.rglob("*.nb?")) == before
    folder = Path(run_in(tmp_path, CODE_FOLDER).strip())
    assert folder.parent == tmp_path / "msdump" / "code" and list(folder.glob("md5_lanes._digest_all-*.nbc"))


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_the_next_process_compiles_nothing(tmp_path: Path, variable: str) -> None:
    code = (
        "import numba\n"
        "from msdump.statistics.md5_lanes import lane_kernel\n"
        "saved = []\n"
        "save = numba.core.caching.Cache.save_overload\n"
        "numba.core.caching.Cache.save_overload = lambda self, *more: (saved.append(1), save(self, *more))\n"
        "lane_kernel()\n"
        "print(len(saved))\n"
    )
    chosen = tmp_path / "chosen"
    assert [run_in(tmp_path, code, **{variable: str(chosen)}) for _ in range(2)] == ["1\n", "0\n"]
    assert list(chosen.rglob("md5_lanes._digest_all-*.nbi"))


def test_damaged_files_in_the_cache_are_compiled_anew(tmp_path: Path) -> None:
    run_in(tmp_path, LANES)
    folder = Path(run_in(tmp_path, CODE_FOLDER).strip())
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:40])
    code = (
        "import hashlib, numpy as np\n"
        "from msdump.statistics.md5 import md5_many\n"
        "from msdump.statistics.md5_lanes import lane_kernel\n"
        "lane_kernel()\n"
        "arrays = [np.arange(9000, dtype=np.float32) + number for number in range(16)]\n"
        "print(list(md5_many(arrays)) == [hashlib.md5(array).hexdigest() for array in arrays])\n"
    )
    assert run_in(tmp_path, code) == "True\n"
    assert run_in(tmp_path, code) == "True\n"
    assert all(file.stat().st_size > 40 for file in folder.glob("md5_lanes._digest_all-*"))


def test_without_a_folder_it_compiles_for_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = str(tmp_path / "file")
    code = "import tempfile; tempfile.tempdir = '/proc/self'\n" + LANES
    run_in(tmp_path / "file", code, HOME=nowhere)
    assert (tmp_path / "file").read_text() == ""


def test_the_number_of_versions_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version used longest ago goes, that of this process stays."""
    root = tmp_path / "msdump" / "code"
    for number in range(compiling.MOST_VERSIONS + 3):
        (root / f"old{number}").mkdir(parents=True)
        os.utime(root / f"old{number}", (number, number))
    folder = Path(run_in(tmp_path, CODE_FOLDER).strip())
    kept = {entry.name for entry in root.iterdir()}
    assert len(kept) == compiling.MOST_VERSIONS and folder.name in kept and "old0" not in kept


def test_what_earlier_versions_left_beside_the_source_goes(tmp_path: Path) -> None:
    left = PACKAGE / "__pycache__" / "md5_lanes._digest_all-70.py300.nbi"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"")
    try:
        run_in(tmp_path, CODE_FOLDER)
        assert not left.exists()
    finally:
        left.unlink(missing_ok=True)
