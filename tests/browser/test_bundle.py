"""The bundle that is installed is the one that the sources make, and the sources pass their own tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.conftest import IS_REQUIRED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The front end with its packages, away from the checkout."""
    if shutil.which("npm") is None:
        assert not IS_REQUIRED, "these tests are required and need npm"
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("bundle") / "frontend"
    shutil.copytree(ROOT / "frontend", folder, ignore=shutil.ignore_patterns("node_modules"))
    _run(folder, "npm", "ci", "--no-audit", "--no-fund")
    return folder


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_bundle_is_that_of_the_sources(sources: Path) -> None:
    (sources / "made").mkdir()
    _run(sources, "node", "build.js", "made")
    for file in (ROOT / "msdump" / "viewing" / "assets").iterdir():
        assert (sources / "made" / file.name).read_bytes() == file.read_bytes(), f"{file.name}: run npm run build"


def test_the_sources_pass_their_tests(sources: Path) -> None:
    _run(sources, "node", "--test", "tests/")
