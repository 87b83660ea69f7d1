"""The bundle that is installed is the one that the sources make, and the sources pass their own tests."""

from __future__ import annotations

from pathlib import Path

from tests.browser.conftest import run_npm
from tests.package import PACKAGE


def test_the_bundle_is_that_of_the_sources(sources: Path) -> None:
    (sources / "made").mkdir()
    run_npm(sources, "node", "build.js", "made")
    for file in (PACKAGE / "viewing" / "assets").iterdir():
        assert (sources / "made" / file.name).read_bytes() == file.read_bytes(), f"{file.name}: run npm run build"


def test_the_sources_pass_their_tests(sources: Path) -> None:
    run_npm(sources, "node", "--test", "tests/")
