"""The release program refuses what is not ready, and makes files that can be checked; a tag only when asked."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import msdump
from tests import release

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n\nWhat is new.\n\n## [1.2.2] - 2026-01-01\n\nOld.\n"
)


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "A commit")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A commit that can be released."""
    folder = tmp_path / "clone"
    (folder / "msdump").mkdir(parents=True)
    (folder / "msdump/_version.py").write_text('__version__ = "1.2.3"\n')
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    (folder / "README.md").write_text("Type `pip install '.[view]'`.\n")
    commit(folder)
    return folder


def test_a_commit_that_is_ready(clone: Path) -> None:
    assert release.check(clone) == "1.2.3"
    assert release.notes(clone, "1.2.3") == "What is new."
    git(clone, "tag", "v1.2.3")
    assert release.check(clone) == "1.2.3"  # a second time, on the same commit


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "CHANGELOG.md",
            "[Unreleased]\n",
            "[Unreleased]\n\n- More.\n",
            "expected nothing under .Unreleased., got notes",
        ),
        ("CHANGELOG.md", "[1.2.3] - 2026-01-02", "[1.2.3]", r"a date and notes first, got 1\.2\.3\."),
        ("CHANGELOG.md", "What is new.", "", r"a date and notes first, got 1\.2\.3 - 2026-01-02\."),
        ("msdump/_version.py", "1.2.3", "1.2.4", r"expected a section \[1\.2\.4\].* got 1\.2\.3 - 2026-01-02"),
        ("README.md", "'.[view]'", "'msdump[view]'", "README.md:1: Type"),
    ],
)
def test_a_commit_that_is_not_ready(name: str, old: str, new: str, message: str, clone: Path) -> None:
    text = (clone / name).read_text()
    assert old in text
    (clone / name).write_text(text.replace(old, new))
    with pytest.raises(release.ReleaseError, match=f"(?s)expected no changes since the last commit.*{name}"):
        release.check(clone)
    commit(clone)
    with pytest.raises(release.ReleaseError, match=f"(?s){message}"):
        release.check(clone)


def test_a_version_that_is_taken(clone: Path) -> None:
    git(clone, "tag", "v1.2.3")
    (clone / "more").write_text("more")
    commit(clone)
    with pytest.raises(release.ReleaseError, match=r"v1\.2\.3: expected no such tag"):
        release.check(clone)


def test_the_bill_of_materials_is_of_the_wheel(tmp_path: Path) -> None:
    """Its subject is msdump, and its parts are what came with it; no path of this machine is in it."""
    pytest.importorskip("cyclonedx_py")
    built = tmp_path / "msdump-1.2.3-py3-none-any.whl"
    files = {
        "msdump/__init__.py": "",
        "msdump-1.2.3.dist-info/METADATA": "Metadata-Version: 2.1\nName: msdump\nVersion: 1.2.3\n",
        "msdump-1.2.3.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files["msdump-1.2.3.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    with zipfile.ZipFile(built, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    release.write_sbom(built, tmp_path / "sbom.json")
    text = (tmp_path / "sbom.json").read_text()
    validation = pytest.importorskip("cyclonedx.validation.json")
    schema = pytest.importorskip("cyclonedx.schema").SchemaVersion
    assert validation.JsonStrictValidator(schema.V1_6).validate_str(text) is None
    found = json.loads(text)
    assert found["bomFormat"] == "CycloneDX" and found["components"] == []
    subject = found["metadata"]["component"]
    assert (subject["name"], subject["version"], subject["type"]) == ("msdump", "1.2.3", "application")
    assert str(tmp_path) not in text and [part["ref"] for part in found["dependencies"]] == [subject["bom-ref"]]


@pytest.mark.slow
def test_a_release_of_this_tree(tmp_path: Path) -> None:
    pytest.importorskip("build")
    pytest.importorskip("cyclonedx_py")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git repository")
    clone = tmp_path / "clone"
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith("docs/gallery/"):
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    (clone / "CHANGELOG.md").write_text(CHANGELOG.replace("1.2.3", msdump.__version__))
    commit(clone)
    variables = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.release", str(tmp_path / "out"), "--tag"],
        cwd=clone, env={**os.environ, **variables, "PYTHONPATH": str(clone)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    base = f"msdump-{msdump.__version__}"
    names = {f"{base}.tar.gz", f"{base}-py3-none-any.whl", f"{base}.cdx.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names | {"SHA256SUMS"}
    sums = dict(line.split("  ")[::-1] for line in (tmp_path / "out/SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() for name in names}
    with tarfile.open(tmp_path / "out" / f"{base}.tar.gz") as archive:
        assert f"{base}/tests/test_release.py" in archive.getnames()
    found = json.loads((tmp_path / "out" / f"{base}.cdx.json").read_text())
    parts = {part["name"].lower().replace("_", "-") for part in found["components"]}
    assert {"numpy", "pydantic", "protobuf", "ml-dtypes", "numba", "rich", "xxhash"} <= parts and "pytest" not in parts
    assert git(clone, "tag", "--list") == f"v{msdump.__version__}"
    assert "What is new." in git(clone, "tag", "--list", "-n9")
    assert f"tag v{msdump.__version__}: made" in done.stdout
