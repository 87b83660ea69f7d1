"""What a script imports, read off its source and that of the modules beside it: nothing of it runs."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

_MOST_FILES = 500
# Names of `import msdump.NAME` that are frameworks, not calls of msdump.
_STAND_INS = ("mindspore", "torchair", "acl", "torch_npu")
_CALLS = ("dump", "watch", "recorder")


@dataclass
class Imports:
    """Of a script and its own modules.

    packages        top-level names, those of msdump's stand-ins by their own names
    uses_msdump     whether the script dumps by itself: it imports msdump for more than its stand-ins
    compiles        whether it names `torch.compile`
    """

    packages: set[str] = field(default_factory=set)
    uses_msdump: bool = False
    compiles: bool = False


def imports_of(target: Sequence[str], is_module: bool, launchers: Sequence[str] = ()) -> Imports:
    """What the program of a command line imports.

    target     script or module, and arguments
    launchers  scripts and modules that run the script which is the first argument of theirs that ends in .py
    Edges:     what cannot be read or parsed has no imports; running it says what is wrong with it. Imports inside of
               functions count, those by computed names do not.
    """
    found = Imports()
    start = _script_of(target, is_module, launchers)
    if start is None:
        return found
    folders = [start.parent] if not is_module else [start.parent, Path.cwd()]
    waiting, seen = [start], {start}
    while waiting and len(seen) <= _MOST_FILES:
        file = waiting.pop()
        for name in _read(file, found):
            for path in _own_files(name, file, folders):
                if path not in seen:
                    seen.add(path)
                    waiting.append(path)
    return found


def _script_of(target: Sequence[str], is_module: bool, launchers: Sequence[str]) -> Path | None:
    name = target[0]
    if os.path.basename(name) in launchers:
        scripts = [word for word in target[1:] if word.endswith(".py")]
        return Path(os.path.abspath(scripts[0])) if scripts else None
    if not is_module:
        return Path(os.path.abspath(name))
    # Where Python will look, found without an import: importing a package would run it before anything watches.
    places: Sequence[str] | None = [os.getcwd(), *sys.path[1:]]
    spec: ModuleSpec | None = None
    for count in range(1, name.count(".") + 2):
        full = ".".join(name.split(".")[:count])
        spec = None if places is None else PathFinder.find_spec(full, places)
        places = None if spec is None else spec.submodule_search_locations
    if places is not None:
        spec = PathFinder.find_spec(f"{name}.__main__", places)
    origin = None if spec is None else spec.origin
    return Path(origin) if origin is not None and origin.endswith(".py") else None


def _read(file: Path, found: Imports) -> Iterator[str]:
    """Note what a file imports and calls; gives names of modules, with leading dots where they are relative."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strings in the script: Python says them when it runs
            tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            names = [base, *(f"{base}{'' if base.endswith('.') else '.'}{alias.name}" for alias in node.names)]
        else:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                _note_attribute(node.value.id, node.attr, found)
            continue
        for name in names:
            _note_name(name, found)
            yield name


def _note_attribute(name: str, attribute: str, found: Imports) -> None:
    if (name, attribute) == ("torch", "compile"):  # a decorator without parentheses, too
        found.compiles = True
    elif name == "msdump" and attribute in _CALLS:
        found.uses_msdump = True


def _note_name(name: str, found: Imports) -> None:
    if name.startswith("."):
        return
    first, _, rest = name.partition(".")
    if first != "msdump":
        found.packages.add(first)
        return
    second = rest.partition(".")[0]
    if second in _STAND_INS:
        found.packages.add(second)
    elif second not in ("", "analysis", "compare", "errors", "find_nan", "open", "stat", "testing"):
        found.uses_msdump = True


def _own_files(name: str, importer: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Files of a module, and of the packages that it is in, where they lie beside the script."""
    level = len(name) - len(name.lstrip("."))
    if level:
        bases = [importer.parents[level - 1]] if level <= len(importer.parents) else []
    else:
        bases = list(folders)
    parts = [part for part in name.lstrip(".").split(".") if part]
    for base in bases:
        for count in range(1, len(parts) + 1):
            path = base.joinpath(*parts[:count])
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if file.is_file():
                    yield file
