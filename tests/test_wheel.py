"""What `python -m tests.wheel` promises; .ci/run and .ci/wheel run it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests import wheel

ROOT = Path(__file__).resolve().parent.parent


def test_the_pythons_are_those_that_may_install_it() -> None:
    names = wheel.supported_pythons()
    assert names[0] == "python3.10" and "python_requires = >=3.10\n" in (ROOT / "setup.cfg").read_text()
    assert f"| {names[0].removeprefix('python')}" in (ROOT / "docs/platforms.md").read_text()


def test_an_interpreter_is_one_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyenv's program for a Python that is not chosen fails; of its own releases the newest is taken."""
    for folder, status in (("bin", 1), ("pyenv/versions/3.12.9/bin", 1), ("pyenv/versions/3.12.10/bin", 0)):
        (tmp_path / folder).mkdir(parents=True)
        program = tmp_path / folder / ("python3.12" if folder == "bin" else "python")
        program.write_text(f"#!/bin/sh\nexit {status}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert wheel.interpreter("python3.12") == str(tmp_path / "pyenv/versions/3.12.10/bin/python")
    assert wheel.interpreter("python3.13") is None
    (tmp_path / "pyenv/versions/3.13.0rc1").mkdir()
    assert wheel.interpreter("python3.13") is None
    assert wheel.interpreter(sys.executable) == sys.executable


def test_no_python_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheel, "build", lambda _: (tmp_path / "x.tar.gz", tmp_path / "x.whl"))
    assert wheel.main(["no-such-python"]) == 1
    assert "== no-such-python: not run: it is not installed" in capsys.readouterr().out


def test_the_tests_run_beside_no_package(tmp_path: Path) -> None:
    """The tree has none, and what is imported instead must be the environment's own."""
    (tmp_path / "made/msdump-1.0.0/msdump").mkdir(parents=True)
    (tmp_path / "made/msdump-1.0.0/README.md").write_text("read me")
    with tarfile.open(tmp_path / "msdump-1.0.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "made/msdump-1.0.0", "msdump-1.0.0")
    tree = wheel.tree_without_package(tmp_path / "msdump-1.0.0.tar.gz", tmp_path / "out")
    assert [path.name for path in tree.iterdir()] == ["README.md"]
    (tree / "msdump").mkdir()
    (tree / "msdump/__init__.py").write_text("")
    with pytest.raises(wheel.WheelError, match="ended with 1"):
        wheel.run_tests(Path(sys.executable), tree, ["--version"])


def test_the_small_selection_is_there() -> None:
    assert all((ROOT / file).is_file() for file in wheel.SMALL)
    assert subprocess.run(["bash", "-n", ROOT / ".ci/run"]).returncode == 0
    assert "python -m tests.wheel --small" in (ROOT / ".ci/run").read_text()
