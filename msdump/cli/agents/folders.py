"""The folders that an agent may ask about: paths that lead elsewhere are refused."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msdump.errors import ConfigError


class Folders:
    """Folders, links resolved.   roots: their real paths, without those that lie in another one."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Raises: ConfigError for a path that is no folder."""
        for path in paths:
            if not os.path.isdir(path):
                raise ConfigError(f"FOLDER: expected a folder, got {path!r}.")
        real = list(dict.fromkeys(os.path.realpath(path) for path in paths))
        self.roots = tuple(path for path in real if not any(other != path and _is_below(path, other) for other in real))

    def path(self, text: str) -> str:
        """The real path of what an agent named: absolute, or below one of the folders.

        Edges:  steps up (`..`) and links are followed first, so one that leads out is seen.
        Raises: ConfigError for what lies elsewhere, and for what is not there.
        """
        if "\0" in text or not text.strip():
            raise ConfigError(f"path: expected a path of a dump, got {text!r}.")
        # os.path.join leaves an absolute path as it is.
        candidates = dict.fromkeys(os.path.realpath(os.path.join(root, text)) for root in self.roots)
        inside = [path for path in candidates if any(_is_below(path, root) for root in self.roots)]
        folders = ", ".join(self.roots)
        if not inside:
            raise ConfigError(
                f"path: expected one inside of {folders}, got {text!r}, which lies elsewhere. The server was started "
                "for these folders alone; whoever started it can name more."
            )
        # A path may go on inside of a pack, which is a file.
        there = [path for path in inside if os.path.lexists(path) or _is_in_file(path, self.roots)]
        if len(there) > 1:
            raise ConfigError(
                f"path: expected one dump, got {text!r}, which is {' and '.join(there)}. Take one of them."
            )
        if not there:
            raise ConfigError(f"path: expected a dump below {folders}, got {text!r}, where nothing is. Try list_dumps.")
        return there[0]


def _is_below(path: str, root: str) -> bool:
    """Whether a real path is that of a folder, or of something in it."""
    return os.path.commonpath((path, root)) == root


def _is_in_file(path: str, roots: Sequence[str]) -> bool:
    """Whether a path leads into a file, up to a root."""
    while path not in roots and path != os.path.dirname(path):
        path = os.path.dirname(path)
        if os.path.isfile(path):
            return True
    return False
