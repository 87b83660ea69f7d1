"""Builds msdump-native into the user's cache, for `msdump native`: whole and checked, or not at all.

All work is done in a folder under a name that nothing is loaded from, which is renamed at the end. One process builds
at a time; another one waits, and takes what the first has built.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from msdump.errors import ConfigError, WriteError
from msdump.formats.folders import try_lock
from msdump.frontends.torch.eager import native_builds
from msdump.frontends.torch.eager.listening import tells_of_compiling
from msdump.process.user_cache import cache_folder, existing_cache_folder, why_not_private

MOST_BUILDS = 4  # of 1 MB; the one used longest ago goes first
LOG = "failed.log"
_PART = ".building-"
_NAME = re.compile(r"[0-9a-f]{16}")
_IS_FULL = ("No space left on device", "Disk quota exceeded")
_CHECK_SECONDS = 300
_CHECK = (
    "import importlib, sys; sys.path[0] = sys.argv[1]; sys.exit(importlib.import_module(sys.argv[2]).main(sys.argv[3]))"
)


def build(on_begin: Callable[[], None], on_wait: Callable[[], None]) -> tuple[Path, bool]:
    """The folder of the build for this PyTorch, which works, and whether it was made now.

    on_begin  called before anything is compiled; `on_wait` where another process builds
    Raises: ConfigError where something that it needs is missing, or does not compile; WriteError.
    """
    if not tells_of_compiling():
        raise ConfigError(f"PyTorch {torch.__version__} does not tell when it compiles. Install a newer one.")
    if not native_builds.sources():
        raise ConfigError("expected the sources of msdump-native in this installation, got none. Install msdump again.")
    root = _own_root()
    try:
        with _lock(root, on_wait) as is_alone:
            folder = native_builds.existing_build()
            if folder is not None and not check(folder):
                return folder, False
            on_begin()
            if is_alone:
                for left in root.glob(f"{_PART}*"):
                    shutil.rmtree(left, ignore_errors=True)
            folder = _build_anew(root)
            _remove_old(root)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full_disk(root) from error
        raise WriteError(f"{root}: expected a folder to build in, got: {error}.") from error
    return folder, True


def check(folder: Path) -> str:
    """Why a build does not work; "" where it does. A process of its own loads it, which may die of it."""
    damage = native_builds.why_damaged(folder)
    if damage:
        return damage
    names = ("MSDUMP_", "MINDSPORE_", "MS_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    words = [os.fspath(Path(__file__).resolve().parents[4]), f"{__package__}.native_check", os.fspath(folder)]
    command = [sys.executable, "-c", _CHECK, *words]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_CHECK_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{folder}: expected a check that ends, got none within {_CHECK_SECONDS} s."
    if done.returncode == 0:
        return ""
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return said[-1] if said else f"{folder}: expected a check that passes, got status {done.returncode}."


def remove_all() -> int:
    """Remove all builds of this user; how many there were.   Raises: WriteError."""
    root = existing_cache_folder(native_builds.CACHE)
    if root is None:
        return 0
    with _lock(root, lambda: None):
        count = len(_builds(root))
        try:
            for entry in root.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
            root.rmdir()
        except OSError as error:
            raise WriteError(f"{root}: expected a folder that can be removed, got: {error}.") from error
    return count


def _own_root() -> Path:
    root = cache_folder(native_builds.CACHE)
    why = why_not_private(root)
    if why:
        raise WriteError(why)
    return root


@contextlib.contextmanager
def _lock(root: Path, on_wait: Callable[[], None]) -> Iterator[bool]:
    """Whether no other process builds there until the end of the block: False on a file system without locks."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not try_lock(descriptor):
            on_wait()
        is_alone = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            is_alone = False
        yield is_alone
    finally:
        os.close(descriptor)


def _build_anew(root: Path) -> Path:
    place = Path(tempfile.mkdtemp(prefix=_PART, dir=root))
    try:
        for name, content in native_builds.sources().items():
            file = place / "source" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        ready = place / "ready"
        ready.mkdir(mode=0o700)
        _compile(place, ready, root)
        native_builds.describe(ready)
        why = check(ready)
        if why:
            raise ConfigError(f"msdump-native was compiled and does not work: {why}")
        return _published(ready, root / native_builds.build_name())
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _compile(place: Path, ready: Path, root: Path) -> None:
    compiling = recipe(place / "source" / "compiling.py")
    why = compiling.missing()
    if why:
        raise ConfigError(why)
    for name in compiling.MODULES:
        shutil.copyfile(place / "source" / name, ready / name)
    (ready / compiling.BUILT).write_text(compiling.built_text(), encoding="utf-8")
    try:
        compiling.compile_into(place / "source" / "src", ready / compiling.library(), place / "scratch")
    except compiling.CompileError as error:
        if any(text in error.log for text in _IS_FULL):
            raise _full_disk(root) from None
        log = root / LOG
        log.write_text(error.log, encoding="utf-8")
        advice = " MAX_JOBS=1 takes less memory." if "Killed" in error.first else ""
        raise ConfigError(f"the compiler: {error.first}.{advice} All that it said: {log}") from None


def recipe(file: Path) -> Any:
    """The module that compiles, of the sources: `native/compiling.py`."""
    spec = importlib.util.spec_from_file_location("msdump_native_compiling", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _published(ready: Path, target: Path) -> Path:
    """Give a build its name, once it is on the disk: after a power failure too it is whole or absent."""
    for path in ready.rglob("__pycache__"):
        shutil.rmtree(path)
    for path in (*ready.iterdir(), ready):
        path.chmod(0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    if os.path.lexists(target):
        # One that does not work. A process that has loaded it keeps it.
        target.rename(ready.parent / "before")
    ready.rename(target)
    return target


def _builds(root: Path) -> list[Path]:
    """Used longest ago first."""
    entries = [entry for entry in os.scandir(root) if _NAME.fullmatch(entry.name)]
    return [Path(entry.path) for entry in sorted(entries, key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)]


def _remove_old(root: Path) -> None:
    for folder in _builds(root)[:-MOST_BUILDS]:
        shutil.rmtree(folder, ignore_errors=True)


def _full_disk(root: Path) -> WriteError:
    return WriteError(
        f"{root}: expected room for a build, some 10 MB, got: no space left on device. Free some, or set "
        "XDG_CACHE_HOME to a folder on another disk."
    )
