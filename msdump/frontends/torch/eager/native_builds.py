"""Builds of msdump-native in the user's cache, which `msdump native` makes: where one lies, and how it is loaded.

    ~/.cache/msdump/native/3f2a.../     the modules, the compiled code, and build.json, which says what it is for

The name of a folder is a digest of all that a build depends on: the sources, the release of msdump, PyTorch, Python.
A folder under such a name is whole: it is renamed when it has been checked.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import torch

from msdump._version import __version__
from msdump.errors import WriteError
from msdump.process.user_cache import existing_cache_folder, why_not_private

CACHE = "native"
DESCRIPTION = "build.json"
_PACKAGE = Path(__file__).resolve().parents[3]
# In an installed package, which holds no Python files but its own; and in a clone.
_ARCHIVE, _CLONE = _PACKAGE / "native.zip", _PACKAGE.parent / "native"
_MODULES = ("msdump_native", "_msdump_native", "_msdump_native_built", "_msdump_native_cuda")


@functools.cache
def sources() -> dict[str, bytes]:
    """What is compiled, and what is copied: path -> content, in the order of paths.

    Edges: {} where neither an installed package nor a clone has it.
    """
    if _ARCHIVE.is_file():
        with zipfile.ZipFile(_ARCHIVE) as archive:
            return {name: archive.read(name) for name in sorted(archive.namelist())}
    files = [*_CLONE.glob("*.py"), *_CLONE.glob("src/*")]
    found = {file.relative_to(_CLONE).as_posix(): file.read_bytes() for file in files if file.name != "setup.py"}
    return dict(sorted(found.items()))


def purpose() -> dict[str, str]:
    """What a build is for: it serves no other."""
    return {
        "msdump": __version__,
        "PyTorch": str(torch.__version__),
        "commit of PyTorch": str(torch.version.git_version),
        "CUDA": str(torch.version.cuda or torch.version.hip or "none"),
        "C++ ABI": str(int(torch.compiled_with_cxx11_abi())),
        "Python": str(sysconfig.get_config_var("EXT_SUFFIX")),
    }


@functools.cache
def build_name() -> str:
    """The name of the folder of the build that this process can use."""
    digest = hashlib.sha256(json.dumps(purpose()).encode())
    for name, content in sources().items():
        digest.update(f"\n{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def existing_build() -> Path | None:
    """The folder of the build that this process can use; None where there is none.

    Where nothing was ever built, that is known after a look for one folder.

    Raises: WriteError where another user could have changed what is in it.
    """
    cache = existing_cache_folder(CACHE)
    if cache is None or not os.path.lexists(cache / build_name()):
        return None
    folder = cache / build_name()
    for path in (folder, *folder.glob("*msdump_native*")):
        why = why_not_private(path)
        if why:
            raise WriteError(why)
    return folder


def describe(folder: Path) -> None:
    """Write the file that says what the build in a folder is for, and how large its files are."""
    files = (file for file in sorted(folder.iterdir()) if file.is_file() and file.name != DESCRIPTION)
    sizes = {file.name: file.stat().st_size for file in files}
    text = json.dumps({"for": purpose(), "bytes": sizes}, indent=1)
    (folder / DESCRIPTION).write_text(text, encoding="utf-8")


def why_damaged(folder: Path) -> str:
    """Which file of a build is not as it was written; "" where all are. To load half a library ends the process."""
    try:
        sizes = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))["bytes"]
        for name, size in sizes.items():
            found = (folder / name).stat().st_size
            if found != size:
                return f"{folder / name}: expected {size} bytes, got {found}."
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{folder}: expected a build with all its files, got: {error}."
    return ""


class _BuildFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of msdump-native, and no others, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _MODULES:
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, [os.fspath(self.folder)])


def offer(folder: Path, is_first: bool = False) -> None:
    """Let `import msdump_native` find a build, and keep that from being removed as old.

    is_first  whether it comes before an installed package; after it otherwise
    """
    with contextlib.suppress(OSError):
        os.utime(folder)
    sys.meta_path.insert(0 if is_first else len(sys.meta_path), _BuildFinder(folder))
