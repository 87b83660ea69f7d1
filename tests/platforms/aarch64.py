"""Run msdump on an emulated aarch64 machine: Debian bookworm for arm64, Python 3.11, under qemu-user. Needs root.

python tests/platforms/aarch64.py FOLDER                   the demo, then chosen tests with pages of 4 KB and of 64 KB
python tests/platforms/aarch64.py FOLDER -- tests/cli -x   only pytest with these arguments, with both sizes of pages

The first run makes FOLDER/debian-arm64 with debootstrap and installs msdump's packages there; later ones use it again.
The mirror is that of apt on this machine, the package index that of pip. Exit status: that of the first step that
fails, 0 when all pass; 69 when this machine lacks something.
"""

from __future__ import annotations

import argparse
import configparser
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent.parent
RELEASE = "bookworm"
# Both crash in the emulator, not on real machines.
CRASHING = ("torch", "onnxruntime")
# Newest glibc first; the release has 2.36. Wheels for an older one run, too.
PLATFORMS = [*(f"manylinux_2_{minor}_aarch64" for minor in range(36, 16, -1)), "manylinux2014_aarch64"]
# Program -> Debian's package of it.
PROGRAMS = {
    "qemu-aarch64-static": "qemu-user-static",
    "debootstrap": "debootstrap",
    "apt-get": "apt",
    "git": "git",
    "unshare": "util-linux",
    "setpriv": "util-linux",
}
# What another processor could compute or store differently, and little of what starts many processes: each start takes
# seconds in the emulator.
TESTS = (
    "tests/test_tiny.py",
    "tests/statistics/test_stats.py",
    "tests/tensors/test_device_layouts.py",
    "tests/formats",
    "tests/mindspore/kernels",
    "tests/mindspore/program/test_executor.py",
    "tests/analysis/compare/test_dumps.py",
)
# What maps files, aligns memory or counts pages.
TESTS_OF_PAGES = (
    "tests/test_tiny.py",
    "tests/formats/test_atomic.py",
    "tests/formats/test_bin.py",
    "tests/formats/test_direct.py",
    "tests/formats/test_npy.py",
    "tests/mindspore/program/test_executor.py",
)
INDEX_FORMAT = "$(CODENAME) $(COMPONENT) $(REPO_URI)"

# How the kernel knows an aarch64 program: the head of its file and the bits of it that count. F opens the emulator at
# once, so that it need not exist below a changed root.
_HEAD = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_BITS = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"

# Runs in a mount and a process namespace of its own: its mounts and processes end with it, whatever ends it. From
# Linux 6.7 on the kernel forgets the emulator with the last mount of binfmt_misc, so each command registers it.
_EMULATE = r"""
set -e
name=$1 rule=$2; shift 2
mount -t proc proc /proc
test -d /proc/sys/fs/binfmt_misc || { echo "the kernel has no binfmt_misc (try: modprobe binfmt_misc)" >&2; exit 1; }
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
test -e "/proc/sys/fs/binfmt_misc/$name" || printf %s "$rule" > /proc/sys/fs/binfmt_misc/register
set +e
"$@"
exit $?
"""
_FORGET = r"""
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || exit 0
test ! -e "/proc/sys/fs/binfmt_misc/$1" || echo -1 > "/proc/sys/fs/binfmt_misc/$1"
"""
_CHANGE_ROOT = r"""
set -e
root=$1; shift
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
"""


class MissingError(Exception):
    """This machine lacks something; the text says what and how to get it."""


class StepError(Exception):
    """A step failed; its argument is the exit status."""


class Emulator:
    """Runs commands with aarch64 programs allowed; leaves no mount, no process and no rule for programs behind."""

    def __init__(self, interpreter: str) -> None:
        self._name = f"msdump-aarch64-{os.getpid()}"
        self._rule = f":{self._name}:M::{_HEAD}:{_BITS}:{interpreter}:F"

    def __enter__(self) -> Emulator:
        done = subprocess.run(self.command(["true"]), capture_output=True, text=True)
        if done.returncode:
            raise MissingError(
                f"binfmt_misc: expected to register an emulator for aarch64 programs, got: {done.stderr.strip()}. "
                "Run as root on a kernel with binfmt_misc, and outside of a container that may not mount."
            )
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["unshare", "--mount", "sh", "-c", _FORGET, "sh", self._name], stderr=subprocess.DEVNULL)

    def command(self, command: Sequence[str]) -> list[str]:
        """A command line that runs one on this machine's files, where it may start aarch64 programs."""
        prefix = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c"]
        return [*prefix, _EMULATE, "sh", self._name, self._rule, *command]

    def command_below(self, root: Path, command: Sequence[str], page_bytes: int = 4096) -> list[str]:
        """A command line that runs an aarch64 one with `root` as its root folder; `page_bytes` of memory pages."""
        variables = {"PATH": "/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
        if page_bytes != 4096:
            variables["QEMU_PAGESIZE"] = str(page_bytes)
        words = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command]
        return self.command(["sh", "-c", _CHANGE_ROOT, "sh", str(root), *words])


def check_machine(has_mirror: bool) -> None:
    """With a mirror apt is not needed.   Raises: MissingError, with all programs that are missing in one message."""
    needs = {name: package for name, package in PROGRAMS.items() if not (has_mirror and package == "apt")}
    lacks = {name: package for name, package in needs.items() if shutil.which(name) is None}
    if lacks:
        raise MissingError(
            f"PATH: expected {', '.join(needs)}, got no {', no '.join(lacks)}. "
            f"Install them: apt-get install {' '.join(sorted(set(lacks.values())))}"
        )
    if platform.machine() == "aarch64":
        raise MissingError(
            "machine: expected another processor to emulate aarch64 on, got aarch64. Run pytest as it is."
        )
    if os.geteuid() != 0:
        raise MissingError("user: expected root, got another. debootstrap and mounts need root: use sudo.")
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        raise MissingError(f"{sys.executable}: expected Python with pip, got none. Run: {sys.executable} -m ensurepip")


def mirror(targets: str) -> str:
    """Address of the mirror that carries the release's main part.

    `targets` is what `apt-get indextargets` prints with `INDEX_FORMAT`.   Raises: MissingError when none does.
    """
    for line in targets.splitlines():
        codename, component, address = line.split(" ", 2)
        if (codename, component) == (RELEASE, "main"):
            return address
    raise MissingError(
        f"apt: expected a source with {RELEASE} main, got none. Add one to apt's sources and run apt-get update, "
        "or give its address with --mirror."
    )


def apt_mirror() -> str:
    command = ["apt-get", "indextargets", "--format", INDEX_FORMAT, "Created-By: Packages"]
    return mirror(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def apt_proxies() -> dict[str, str]:
    """Variables for a program that downloads from the mirror; those of the environment come first."""
    if shutil.which("apt-config") is None:
        return {}
    command = ["apt-config", "shell", "http_proxy", "Acquire::http::Proxy", "https_proxy", "Acquire::https::Proxy"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    proxies = dict(word.split("=", 1) for word in shlex.split(printed))
    return {name: value for name, value in proxies.items() if value not in ("", "DIRECT") and name not in os.environ}


def requirements(setup: str) -> list[str]:
    """What msdump and its tests need, from the text of setup.cfg; without what crashes in the emulator."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(setup)
    options, extras = parser["options"], parser["options.extras_require"]
    lines = "\n".join([options["install_requires"], *(extras[name] for name in ("sample", "test", "dev"))]).splitlines()
    names = {line: re.split(r"[^\w.-]", line.strip(), maxsplit=1)[0] for line in lines if line.strip()}
    return sorted({line.strip() for line, name in names.items() if name.lower() not in CRASHING})


def step(name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
    """Run a command and print its time.   Raises: StepError when it fails."""
    print(f"== {name}", flush=True)
    started = time.monotonic()
    status = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode
    result = f"exit status {status}" if status else "ok"
    print(f"== {name}: {result}, {time.monotonic() - started:.0f} s", flush=True)
    if status:
        raise StepError(status if status > 0 else 128 - status)


def make_root(emulator: Emulator, folder: Path, address: str) -> Path:
    """The root folder of the emulated machine; one that an interrupted run left is made anew."""
    root, unfinished = folder / "debian-arm64", folder / "debian-arm64.unfinished"
    if root.is_dir():
        return root
    if unfinished.is_dir():
        shutil.rmtree(unfinished)
    words = ["--arch=arm64", "--variant=minbase", "--include=python3,python3-venv", "--force-check-gpg", RELEASE]
    environment = {**os.environ, **apt_proxies()}
    step("debootstrap", emulator.command(["debootstrap", *words, str(unfinished), address]), environment)
    unfinished.rename(root)
    return root


def install(emulator: Emulator, root: Path) -> None:
    """Put the clone, its packages and msdump below the root folder; pip of this machine downloads the wheels."""
    copy_clone(root / "msdump")
    wheels = root / "wheels"
    wheels.mkdir(exist_ok=True)
    names = requirements((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    (wheels / "requirements.txt").write_text("\n".join([*names, "setuptools>=68", ""]), encoding="utf-8")
    words = ["--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp"]
    words += [word for platform in PLATFORMS for word in ("--platform", platform)]
    words += ["--dest", str(wheels), "-r", str(wheels / "requirements.txt")]
    step("download packages", [sys.executable, "-m", "pip", "download", "--quiet", *words])
    if not (root / "venv/bin/pip").exists():
        step("make environment", emulator.command_below(root, ["python3", "-m", "venv", "/venv"]))
    words = ["--quiet", "--no-compile", "--no-index", "--find-links", "/wheels"]
    words += ["-r", "/wheels/requirements.txt", "-e", "/msdump"]
    step("install", emulator.command_below(root, ["/venv/bin/python", "-m", "pip", "install", *words]))


def copy_clone(target: Path) -> None:
    """Copy the files of this clone that git does not ignore, changed and new ones included."""
    if target.is_dir():
        shutil.rmtree(target)
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout
    for name in os.fsdecode(listed).split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def try_msdump(emulator: Emulator, root: Path, arguments: Sequence[str]) -> None:
    """The demo and the tests, or pytest with these arguments; all run.   Raises: StepError of the first that failed."""
    pytest = ["python", "-m", "pytest", "-q", "--rootdir=/msdump", "-n", "2", "--dist", "loadfile"]
    in_clone = ["sh", "-c", 'cd /msdump && exec "$@"', "sh"]
    commands = [
        (f"tests with pages of {page_bytes} bytes", page_bytes, [*in_clone, *pytest, *(arguments or chosen)])
        for page_bytes, chosen in ((4096, TESTS), (65536, TESTS_OF_PAGES))
    ]
    if not arguments:
        shutil.rmtree(root / "demo", ignore_errors=True)
        # The dump is of the first step; each picture of it takes most of a minute here.
        demo = ["msdump", "demo", "--full", "--steps", "1", "--batch-size", "1", "--out", "/demo"]
        commands.insert(0, ("msdump demo", 4096, demo))
    failures = []
    for name, page_bytes, command in commands:
        try:
            step(name, emulator.command_below(root, command, page_bytes))
        except StepError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def parse_arguments() -> argparse.Namespace:
    head, *usage = (__doc__ or "").split("\n\n", 1)
    parser = argparse.ArgumentParser(
        description=head, epilog="\n".join(usage), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="outside of the clone; takes 3 GB")
    parser.add_argument("--mirror", metavar="ADDRESS", help="mirror of Debian packages (default: that of apt)")
    parser.add_argument("tests", nargs="*", metavar="-- ARGUMENT", help="of pytest, in place of the chosen tests")
    return parser.parse_args()


def end(number: int, _: FrameType | None) -> NoReturn:
    """End as after Ctrl-C, so that nothing stays behind."""
    raise SystemExit(128 + number)


def main() -> int:
    """Check, make the root folder, install, try; the result is the exit status."""
    args = parse_arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    folder = args.folder.resolve()
    try:
        if folder.is_relative_to(ROOT):
            raise MissingError(f"{folder}: expected a folder outside of the clone, got one in {ROOT}. Choose another.")
        check_machine(args.mirror is not None)
        address = args.mirror or apt_mirror()
        with Emulator(shutil.which("qemu-aarch64-static") or "") as emulator:
            folder.mkdir(parents=True, exist_ok=True)
            root = make_root(emulator, folder, address)
            install(emulator, root)
            try_msdump(emulator, root, args.tests)
    except MissingError as error:
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        return os.EX_UNAVAILABLE
    except StepError as error:
        return int(error.args[0])
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
