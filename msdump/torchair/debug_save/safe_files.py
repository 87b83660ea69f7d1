"""Files and folders that never go through a symbolic link, with the modes that TorchAir gives them."""

from __future__ import annotations

import os
from pathlib import Path

from msdump.errors import WriteError
from msdump.formats.atomic import make_dirs, write_file

FILE_MODE, DIR_MODE = 0o640, 0o750


def make_safe_dirs(path: Path) -> None:
    """Make a folder and its missing parents.

    Raises: WriteError for a symbolic link in the folder's place, and when the system refuses.
    """
    if path.is_symlink():
        raise WriteError(
            f"Failed to make directory: {path}\n{path}: expected a folder, got a symbolic link to "
            f"{os.readlink(path)!r}. Remove it: what is written could land anywhere."
        )
    make_dirs(path, DIR_MODE)


def write_safe_text(path: Path, text: str, mode: int = FILE_MODE) -> None:
    """Publish a text file in a folder that is there; a file of that name is replaced.

    Raises: WriteError for a symbolic link in the file's place, and when the system refuses.
    """
    refuse_link(path)
    write_file(path, [text.encode(errors="backslashreplace")], mode, replace=True)


def refuse_link(path: Path) -> None:
    """Raises: WriteError when a symbolic link has the name that a file is to get."""
    if path.is_symlink():
        raise WriteError(
            f"Failed to create file: {path}\n{path}: expected a file or nothing, got a symbolic link to "
            f"{os.readlink(path)!r}. Remove it: what is written could land anywhere."
        )
