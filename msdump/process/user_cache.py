"""The user's folder for what can be made again: compiled code, measured values.

    cache_folder("index")           # ~/.cache/msdump/index

Files there may be removed at any time, by the user or by a later version.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msdump.errors import WriteError


def cache_folder(name: str) -> Path:
    """A folder that this user alone can write, made where it is missing.

    The first of these that can be written: below `XDG_CACHE_HOME` (an absolute path) or `~/.cache`, then below the
    folder for temporary files. What is read from it may be executed (compiled code), so a folder that belongs to
    another user, or that others may write, is passed over.

    Raises: WriteError where none of them serves.
    Source: XDG base directory specification.
    """
    for base, is_shared in _bases():
        try:
            folder = _private(base, is_shared) / name
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise WriteError(f"{name}: expected a folder for caches in XDG_CACHE_HOME, ~/.cache or TMPDIR, got none to write.")


def existing_cache_folder(name: str) -> Path | None:
    """The folder that `cache_folder` has made before; None where it has made none. Nothing is made or changed.

    Raises: WriteError where another user could change what is in it.
    """
    for base, is_shared in _bases():
        folder = base / name
        if not os.path.lexists(folder):
            continue
        # A link of another user may lead elsewhere later.
        for each in (base, folder):
            why = why_not_private(each, follows_links=each == base and not is_shared)
            if why:
                raise WriteError(why)
        return folder
    return None


def why_not_private(path: Path, follows_links: bool = False) -> str:
    """Why what lies there is not taken for this user's own; "" where this user alone can have written it."""
    try:
        status = os.stat(path, follow_symlinks=follows_links)
    except OSError as error:
        return f"{path}: expected a file or folder of this user, got: {error.strerror}."
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        return f"{path}: expected a file or folder, got a link or something else. Remove it."
    if status.st_uid != os.geteuid():
        return f"{path}: expected what belongs to user {os.geteuid()}, got that of user {status.st_uid}. Remove it."
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path}: expected what this user alone can write, got what others can write too. Remove it."
    return ""


def _bases() -> Iterator[tuple[Path, bool]]:
    """Folders in the order in which they are tried, and whether other users may make files beside them."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path(root if os.path.isabs(root) else Path.home() / ".cache", "msdump"), False
    import tempfile  # only where nothing else serves

    yield Path(tempfile.gettempdir(), f"msdump-cache-{os.geteuid()}"), True


def _private(base: Path, is_shared: bool) -> Path:
    """That folder, made where it is missing. Raises OSError where another user could change what is in it."""
    base.parent.mkdir(parents=True, exist_ok=True)
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat() if is_shared else base.stat()  # a link of another user may lead elsewhere later
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(f"{base}: expected a folder of this user, got one of user {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        base.chmod(0o700)
    return base
