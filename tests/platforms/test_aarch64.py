"""The trial on an emulated machine: what it needs, what it reads from this one, and that it leaves nothing behind."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platforms import aarch64
from tests.platforms.aarch64 import Emulator, MissingError

INDEX = """bookworm-updates main http://mirror.example/debian/
bookworm contrib http://mirror.example/contrib/
trixie main http://mirror.example/newer/
bookworm main http://mirror.example/debian of ours/
"""
SETUP = """
[options]
install_requires =
    numpy>=1.26
[options.extras_require]
sample =
    scikit-learn>=1.3
test =
    onnxruntime>=1.20
    onnx>=1.16
    scikit-learn>=1.3
    torch==2.13.0; python_version == "3.11"
dev =
    mkdocs>=1.6,<2
"""


def start(folder: Path, *options: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({} if path is None else {"PATH": str(path)})}
    command = [sys.executable, aarch64.__file__, str(folder), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_all_missing_programs_are_named_at_once(tmp_path: Path) -> None:
    done = start(tmp_path / "new", path=tmp_path)
    assert done.returncode == os.EX_UNAVAILABLE
    assert "got no qemu-aarch64-static, no debootstrap," in done.stderr
    assert done.stderr.endswith("Install them: apt-get install apt debootstrap git qemu-user-static util-linux\n")
    assert list(tmp_path.iterdir()) == []


def test_a_single_missing_program_is_named_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program == "debootstrap" else program)
    with pytest.raises(MissingError, match=r"got no debootstrap\. Install them: apt-get install debootstrap$"):
        aarch64.check_machine(has_mirror=False)


def test_a_mirror_spares_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program in ("apt-get", "git") else program)
    with pytest.raises(MissingError, match=r"got no git\. Install them: apt-get install git$"):
        aarch64.check_machine(has_mirror=True)


def test_a_folder_in_the_clone_is_refused() -> None:
    folder = aarch64.ROOT / "arm64"
    done = start(folder)
    assert done.returncode == os.EX_UNAVAILABLE
    assert f"{folder}: expected a folder outside of the clone" in done.stderr
    assert not folder.exists()


def test_the_mirror_is_the_one_with_the_main_part_of_the_release() -> None:
    assert aarch64.mirror(INDEX) == "http://mirror.example/debian of ours/"


@pytest.mark.parametrize("index", ["", *INDEX.splitlines()[:3]])
def test_no_mirror_is_an_error(index: str) -> None:
    with pytest.raises(MissingError, match="expected a source with bookworm main"):
        aarch64.mirror(index)


def test_requirements_are_those_of_setup_cfg_without_what_crashes() -> None:
    assert aarch64.requirements(SETUP) == ["mkdocs>=1.6,<2", "numpy>=1.26", "onnx>=1.16", "scikit-learn>=1.3"]
    real = aarch64.requirements((aarch64.ROOT / "setup.cfg").read_text(encoding="utf-8"))
    assert not [line for line in real if line.startswith(("torch", "onnxruntime"))]
    assert {"numba", "pytest"} <= {line.split(">")[0] for line in real}


@pytest.mark.usefixtures("needs_mindspore")
def test_the_chosen_tests_are_there() -> None:
    for name in (*aarch64.TESTS, *aarch64.TESTS_OF_PAGES):
        assert (aarch64.ROOT / name).exists()


def test_the_copy_of_the_clone_has_what_git_has(tmp_path: Path) -> None:
    if subprocess.run(["git", "-C", str(aarch64.ROOT), "rev-parse"], capture_output=True).returncode:
        pytest.skip("not a clone")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "old").touch()
    aarch64.copy_clone(tmp_path / "copy")
    copied = {path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*")}
    assert {"setup.cfg", "msdump/__init__.py", "tests/platforms/aarch64.py"} <= copied
    assert not {"old", ".git"} & copied
    assert not [name for name in copied if name.endswith(".pyc")]


def test_an_aarch64_machine_needs_no_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: program)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(MissingError, match="got aarch64"):
        aarch64.check_machine(has_mirror=False)


def test_an_emulator_that_cannot_be_registered_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("setpriv", "unshare"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'Operation not permitted' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with (
        pytest.raises(MissingError, match=r"^binfmt_misc: .* got: Operation not permitted\. Run as root"),
        Emulator("/q"),
    ):
        pass


TRIAL = r"""
import signal, subprocess, sys
from tests.platforms import aarch64

interpreter, folder = sys.argv[1:]
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, aarch64.end)
aarch64._HEAD = aarch64._HEAD.replace(r"\xb7\x00", r"\xee\xee")
assert r"\xee" in aarch64._HEAD
wait = 'mount -t tmpfs tmpfs "$1" && echo mounted >&2 && cat'
with aarch64.Emulator(interpreter) as emulator:
    subprocess.run(emulator.command(["sh", "-c", wait, "sh", folder]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_mount_and_no_process_outlives_the_trial(number: int, tmp_path: Path) -> None:
    """A program stands in for the emulator, and a step that mounts and waits for one that takes long.

    The rule is for a processor that does not exist: those for real programs count on the whole machine.
    """
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("needs util-linux")
    folder = tmp_path / f"mounted-{number}-{os.getpid()}"
    folder.mkdir()
    reader, writer = os.pipe()
    command = [sys.executable, "-c", TRIAL, shutil.which("true") or "", str(folder)]
    process = subprocess.Popen(command, cwd=aarch64.ROOT, stdin=reader, stderr=subprocess.PIPE, text=True)
    os.close(reader)
    assert process.stderr is not None
    with process.stderr:
        first = process.stderr.readline()
        if "mounted" not in first:
            os.close(writer)
            if "binfmt_misc: expected" in process.stderr.read():
                process.wait()
                pytest.skip("this user may not mount")
        process.send_signal(number)
        # Ends when the last process that could write to it has ended.
        process.stderr.read()
    os.close(writer)
    assert first == "mounted\n"
    assert process.wait() != 0
    assert folder.name not in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
