"""The file of a compiled function: JSON text that says which graph the function became."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from msdump.errors import ConfigError, FormatError
from msdump.formats.atomic import write_file
from msdump.storage.plain import read_plain
from msdump.torchair.debug_save.safe_files import make_safe_dirs, refuse_link

FILE = "compiled_module"
VERSION = "msdump 1"
_MODE = 0o600
_MAX_BYTES = 64 << 20
_LISTS = ("inputs", "options")


@dataclass(frozen=True)
class CompiledModule:
    """A compiled function.

    name     the function and its parameters
    date     when it was compiled first, in UTC
    version  of this file's form;   torch   version of PyTorch
    inputs   of the graph, as `name: dtype[sizes]`, sizes that are open by their symbol
    options  of the configuration that differ from the defaults
    code     the graph that Dynamo made, as Python
    """

    name: str
    date: str
    version: str
    torch: str
    inputs: tuple[str, ...]
    options: tuple[str, ...]
    code: str

    def difference(self, other: CompiledModule) -> str:
        """Name of the first field in which they differ, the date aside; "" when they are equal."""
        names = [field.name for field in fields(self) if field.name != "date"]
        return next((name for name in names if getattr(self, name) != getattr(other, name)), "")

    def __str__(self) -> str:
        return f"ModelCacheMeta(name={self.name!r}, date={self.date!r}, version={self.version!r}, fx=None)"


def save(path: Path, module: CompiledModule) -> None:
    """Publish the file, which only its owner may read.   Raises: WriteError."""
    make_safe_dirs(path.parent)
    refuse_link(path)
    write_file(path, [json.dumps(asdict(module), indent=1, ensure_ascii=False).encode()], _MODE, replace=True)


def load(path: Path) -> CompiledModule:
    """Raises: FormatError for anything but the file of a compiled function; OSError."""
    try:
        content = json.loads(read_plain(path, _MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected the JSON of a compiled function, got {error}. Remove the file.") from error
    names = {field.name for field in fields(CompiledModule)}
    if not isinstance(content, dict) or set(content) != names or not all(map(_is_text, content, content.values())):
        raise FormatError(f"{path}: expected text for each of {sorted(names)}, got something else. Remove the file.")
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    return CompiledModule(**values)


def readable(cache_bin: str, print_output: bool, file: str | None) -> str:
    """See `readable_cache`."""
    path = Path(cache_bin)
    if path.is_symlink() or not path.exists():
        kind = "a symbolic link" if path.is_symlink() else "nothing"
        raise ConfigError(f"{cache_bin}: expected a file of cache_compile, got {kind}.")
    module = load(path)
    lines = ["=" * 100, str(module), _title("inputs"), *module.inputs, _title("compile options"), *module.options]
    text = "\n".join(lines)
    if print_output:
        print("\n".join([text, _title("graph module"), module.code]))
    if file is not None:
        out = Path(file)
        out.parent.mkdir(parents=True, exist_ok=True)
        refuse_link(out)
        commented = "".join(f"# {line}\n" for line in text.splitlines())
        write_file(os.fspath(out), [f"{commented}{module.code}\n".encode()], _MODE, replace=True)
    return "\n".join([text, _title("graph module"), module.code])


def _title(title: str) -> str:
    return title.center(100, "-")


def _is_text(name: str, value: object) -> bool:
    """A string, or a list of them, as the field is declared; without surrogates, which no file can hold."""
    items = value if name in _LISTS and isinstance(value, list) else [value] if name not in _LISTS else [None]
    return all(isinstance(item, str) and _is_encodable(item) for item in items)


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
