"""Installing over another installation: what starts afterwards is the new one, and what is removed leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import msdump

ROOT = Path(__file__).resolve().parent.parent
# Compiles a kernel, as a first run does.
USE = "import msdump.statistics.md5_lanes as lanes, msdump; lanes.lane_kernel(); print(msdump.__file__)"

pytestmark = pytest.mark.slow
pytest.importorskip("numba")
pytest.importorskip("setuptools")


class Environment:
    """A virtual environment that shares all packages of this one but msdump."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True, timeout=300)
        self.python = folder / "venv" / "bin" / "python"
        self.site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
        shared = folder / "shared"
        shared.mkdir()
        for path in sys.path:
            if Path(path).is_dir() and "site-packages" in path:
                for entry in os.scandir(path):
                    if not entry.name.startswith(("msdump", "__editable__")) and not (shared / entry.name).exists():
                        (shared / entry.name).symlink_to(entry.path)
        (self.site / "shared.pth").write_text(f"{shared}\n")
        self.before = set(self.site.iterdir())

    def run(self, *command: str | Path) -> str:
        environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        environment |= {"XDG_CACHE_HOME": str(self.folder / "cache"), "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pip(self, *arguments: str | Path) -> None:
        self.run(self.python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments)

    def install(self, *arguments: str | Path) -> None:
        self.pip("install", "--no-deps", "--no-build-isolation", "--no-index", *arguments)

    def used(self) -> Path:
        """The package that starts in a folder which is not the clone, by command and by import."""
        assert self.run(self.site.parents[2] / "bin" / "msdump", "--version").split()[-1] == msdump.__version__
        return Path(self.run(self.python, "-c", USE).strip()).parent


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The package and what builds it; building writes into the folder."""
    folder = tmp_path / "clone"
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if names.returncode:
        pytest.skip("no git repository")
    for name in names.stdout.splitlines():
        if (ROOT / name).is_file() and name.split("/")[0] not in ("docs", "tests", "benchmarks", "frontend"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def test_editable_over_wheel_over_editable(environment: Environment, clone: Path) -> None:
    """The order of README's two blocks, and back."""
    environment.install(clone)
    assert environment.used() == environment.site / "msdump"
    environment.install("-e", clone)
    assert environment.used() == clone / "msdump" and not (environment.site / "msdump").exists()
    environment.install(clone)
    assert environment.used() == environment.site / "msdump"


def test_files_that_an_earlier_version_left_do_not_hide_the_new_one(environment: Environment, clone: Path) -> None:
    environment.install(clone)
    left = environment.site / "msdump" / "__pycache__" / "md5_lanes._digest_all-70.py311.1.nbc"
    left.write_bytes(b"compiled by an earlier version")
    environment.install("-e", clone)
    assert left.exists()
    assert environment.used() == clone / "msdump"


def test_an_upgrade_removes_what_the_older_version_left(environment: Environment, clone: Path) -> None:
    environment.install(clone)
    left = environment.site / "msdump" / "__pycache__" / "md5_lanes._digest_all-70.py311.1.nbc"
    left.write_bytes(b"compiled by an earlier version")
    (environment.site / f"msdump-{msdump.__version__}.dist-info").rename(environment.site / "msdump-0.0.1.dist-info")
    metadata = environment.site / "msdump-0.0.1.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace(f"Version: {msdump.__version__}", "Version: 0.0.1"))
    record = metadata.with_name("RECORD")
    record.write_text(record.read_text().replace(f"msdump-{msdump.__version__}.dist-info", "msdump-0.0.1.dist-info"))
    environment.install("--upgrade", clone)
    assert environment.used() == environment.site / "msdump"
    environment.pip("uninstall", "-y", "msdump")
    assert set(environment.site.iterdir()) == environment.before


@pytest.mark.parametrize("options", [[], ["-e"]], ids=["wheel", "editable"])
def test_uninstalling_leaves_nothing(environment: Environment, clone: Path, options: list[str]) -> None:
    environment.install(*options, clone)
    environment.used()
    environment.pip("uninstall", "-y", "msdump")
    assert set(environment.site.iterdir()) == environment.before
