"""What is built from the repository: a source distribution that can test itself, and metadata that say who it is."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import msdump

ROOT = Path(__file__).resolve().parent.parent


def tracked_files() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no git repository")
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def test_the_source_distribution_holds_every_file(tmp_path: Path) -> None:
    """Its tests and its documentation are those of the repository."""
    pytest.importorskip("setuptools")
    names = tracked_files()
    for name in names:
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes((ROOT / name).read_bytes())
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "tree", capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    base = f"msdump-{msdump.__version__}"
    with tarfile.open(tmp_path / f"{base}.tar.gz") as archive:
        packed = {member.name.removeprefix(f"{base}/") for member in archive if member.isfile()}
        metadata = archive.extractfile(f"{base}/PKG-INFO")
        assert metadata is not None
        fields = email.message_from_bytes(metadata.read())
    assert set(names) - packed == set()
    assert fields["License-Expression"] == "Apache-2.0" and fields["License-File"] == "LICENSE"
    assert not [text for text in fields.get_all("Classifier", []) if text.startswith("License ::")]
    assert fields["Requires-Python"] == ">=3.10"


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_the_pages_that_it_searches(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    names = [name for name in tracked_files() if not name.startswith(("tests/", "frontend/", "docs/gallery/"))]
    for name in names:
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes((ROOT / name).read_bytes())
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "tree", capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        archive.extractall(tmp_path / "site")
    pages = {f"msdump/pages/{name[5:]}" for name in names if re.match(r"docs/(?!zh/).*\.md$", name)}
    assert packed == pages | {name for name in names if re.match(r"msdump/", name)} | {"msdump/native.zip"}
    with zipfile.ZipFile(tmp_path / "site" / "msdump" / "native.zip") as archive:
        # What `msdump native` compiles: no more, no less than in a clone.
        compiled = {name: archive.read(name) for name in archive.namelist()}
    assert "src/module.cpp" in compiled and "compiling.py" in compiled and "setup.py" not in compiled
    assert compiled == {name: (ROOT / "native" / name).read_bytes() for name in compiled}
    sources = [name.removeprefix("native/") for name in names if re.fullmatch(r"native/(src/\w+\.\w+|\w+\.py)", name)]
    assert set(sources) - {"setup.py"} == set(compiled)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    answer = subprocess.run(
        [sys.executable, "-m", "msdump", "docs", "loss", "is", "NaN"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert answer.stdout.startswith("questions/my-loss-is-nan.md"), answer.stderr


def test_the_changelog_has_this_version() -> None:
    titles = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[0] == ("Unreleased", "")
    assert msdump.__version__ in dict(titles[1:])
    assert all(date for _, date in titles[1:])
