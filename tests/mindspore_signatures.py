"""tests/golden/mindspore_signatures.txt: parameters that functions, classes and methods have in MindSpore 2.0 and 2.7.

The table is made from both versions, each in a Python of its own that has that MindSpore:

    python tests/mindspore_signatures.py /tmp/2.0.json
    python tests/mindspore_signatures.py /tmp/2.7.json
    python -m tests.mindspore_signatures /tmp/2.0.json /tmp/2.7.json

A line is a list of parameters, a colon, and the names that have it, by module. `a` must be given, `a=1` may be left out
and is 1 in both versions, `a=?` may be left out and has no default that both share. `x/input` is `x` in 2.0 and `input`
in 2.7 at the same place. Behind `*` come parameters that both have at different places, or that only a keyword reaches.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "golden" / "mindspore_signatures.txt"
_NAMES = PACKAGE / "mindspore" / "mindspore_names.txt"
_CLASSES = ("Tensor", "Cell", "Parameter")
# Stands for a default that the versions do not share, or that has no text of its own.
ANY = "?"
_ADDRESS = re.compile(r"<(?:class '|function |built-in function )?(?:[\w.]+\.)?(\w+)\b.*>")
_MODULES = re.compile(r"\b(?:mindspore|msdump)(?:\.\w+)*\.(?=\w)")
_DTYPES = {"Float32": "float32", "Float64": "float64", "Float16": "float16", "Int32": "int32", "Int64": "int64"}


class Shown(NamedTuple):
    """A parameter.

    kind     of `inspect.Parameter`, as a number
    default  its text; None: it must be given
    """

    name: str
    kind: int
    default: str | None


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


# -- reading a MindSpore, the real one or msdump's ---------------------------------------------------------------------


def names() -> Iterator[tuple[str, str]]:
    """Module or class, and name, for the names that both versions have."""
    here = ""
    for line in _NAMES.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            here = line.strip("[]")
        elif not line.startswith("#"):
            yield from ((here, name) for name in line.split() if "-2." not in name)


def namespace_of(root: str, path: str) -> Any:
    """A module of MindSpore, or one of its classes."""
    if path in _CLASSES:
        return getattr(importlib.import_module(f"{root}.nn" if path == "Cell" else root), path)
    return importlib.import_module(root + path[len("mindspore") :])


def read(root: str) -> dict[str, list[Shown]]:
    """`module:name` -> its parameters, where Python can see them and they are not only `*args` and `**kwargs`."""
    shown = {}
    for path, name in names():
        try:
            parameters = parameters_of(getattr(namespace_of(root, path), name), path in _CLASSES)
        except (AttributeError, ImportError):
            continue
        if parameters is not None:
            shown[f"{path}:{name}"] = parameters
    return shown


def parameters_of(value: Any, is_method: bool) -> list[Shown] | None:
    """Parameters of a function, of the constructor of a class, or of a method without its object; None: unseen."""
    is_class = isinstance(value, type)
    signature = _signature(value.__init__ if is_class else value)
    if is_class and (signature is None or _is_open(signature)):
        signature = _signature(value)
        is_class = False
    if signature is None or (_is_open(signature) and len(signature.parameters) > is_class):
        return None
    listed = list(signature.parameters.values())
    if is_class or (is_method and inspect.isfunction(value)):
        listed = listed[1:]
    return [Shown(each.name, int(each.kind), _text(each.default)) for each in listed]


def _signature(function: Any, depth: int = 5) -> inspect.Signature | None:
    """Of the function below decorators, where those take anything."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    if not _is_open(signature) or not depth:
        return signature
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_filled(cell)]
    for inner in (getattr(function, "decorated_func", None), *cells):
        below = _signature(inner, depth - 1) if inspect.isfunction(inner) else None
        if below is not None and not _is_open(below):
            return below
    return signature


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_open(signature: inspect.Signature) -> bool:
    rest = [each for each in signature.parameters.values() if each.name != "self"]
    return bool(rest) and all(each.kind in _REST for each in rest)


def _text(default: Any) -> str | None:
    if default is inspect.Parameter.empty:
        return None
    if inspect.isfunction(default):
        return ANY
    text = _MODULES.sub("", repr(default))
    text = _ADDRESS.sub(lambda match: match[1], text)
    if isinstance(default, float) and default.is_integer():
        text = repr(int(default))
    return _DTYPES.get(text, text).replace(" ", "")


# -- what two versions share -------------------------------------------------------------------------------------------


def shared(old: Sequence[Shown], new: Sequence[Shown]) -> str:
    """The line of a callable with the parameters `old` in 2.0 and `new` in 2.7."""
    texts, behind = [], []
    by_name = {each.name: each for each in new}
    own = {each.name for each in old}
    for place, each in enumerate(old):
        other = new[place] if place < len(new) else None
        if each.kind in _REST:
            continue
        if each.name not in by_name:
            if other and _is_positional(each, other) and other.name not in own:
                texts.append(_entry(f"{each.name}/{other.name}", each, other))
        elif other and _is_positional(each, other) and other.name == each.name and len(texts) == place:
            texts.append(_entry(each.name, each, other))
        elif by_name[each.name].kind not in _REST:
            behind.append(_entry(each.name, each, by_name[each.name]))
    return " ".join([*texts, *(["*", *behind] if behind else [])])


def _is_positional(one: Shown, other: Shown) -> bool:
    return one.kind in _POSITIONAL and other.kind in _POSITIONAL


def _entry(name: str, one: Shown, other: Shown) -> str:
    if one.default is None or other.default is None:
        return name
    return f"{name}={one.default if one.default == other.default else ANY}"


def table(old: dict[str, list[Shown]], new: dict[str, list[Shown]]) -> str:
    """The file's text. What one version hides is as the other shows it."""
    users: dict[str, dict[str, list[str]]] = {}
    for key in {**old, **new}:
        line = shared(old.get(key, new.get(key, [])), new.get(key, old.get(key, [])))
        path, name = key.split(":")
        users.setdefault(line, {}).setdefault(path, []).append(name)
    head = "# Parameters that MindSpore 2.0.0 and 2.7.0 share; tests/mindspore_signatures.py reads and writes them.\n"
    rows = []
    for line, paths in users.items():
        places = [f"{path}({','.join(sorted(own))})" for path, own in sorted(paths.items())]
        rows.append(f"{line} : {' '.join(places)}\n".lstrip())
    return head + "".join(sorted(rows))


# -- what msdump's own lack --------------------------------------------------------------------------------------------


def lines(text: str) -> Iterator[tuple[str, str]]:
    """`module:name` and its line, for each name of the table."""
    for row in text.splitlines():
        if not row.startswith("#"):
            line, _, places = row.rpartition(": ")
            for path, own in re.findall(r"([\w.]+)\(([^)]*)\)", places):
                yield from ((f"{path}:{name}", line.strip()) for name in own.split(","))


def lacking(line: str, own: Sequence[Shown], aliases: Mapping[str, str]) -> Iterator[str]:
    """What a call that both versions allow meets here, in words.

    own      parameters of msdump's function, class or method
    aliases  more names that keywords may have -> the parameter
    """
    by_name = {each.name: each for each in own if each.kind not in _REST}
    positional = [each.name for each in own if each.kind in _POSITIONAL]
    takes_more = any(each.kind == inspect.Parameter.VAR_POSITIONAL for each in own)
    given: set[str] = set()
    is_behind = False
    for place, entry in enumerate(line.split()):
        if entry == "*":
            is_behind = True
            continue
        title, has_default, default = entry.partition("=")
        targets = {aliases.get(name, name) for name in title.split("/")}
        for name in sorted(targets - set(by_name)):
            yield f"takes no {name}"
        known = targets & set(by_name)
        if not is_behind and not takes_more and known and known.isdisjoint(positional[place : place + 1]):
            yield f"{title} is not at place {place}"
        for mine in sorted(known):
            if has_default and by_name[mine].default is None:
                yield f"{title} has no default"
            elif has_default and default != ANY and by_name[mine].default != default:
                yield f"{title} is {by_name[mine].default}, not {default}"
            given.add(mine)
    for each in by_name.values():
        if each.default is None and each.name not in given:
            yield f"{each.name} must be given"


def main(arguments: Sequence[str]) -> int:
    """One file: write the parameters of the MindSpore of this Python. Two: write the table."""
    if len(arguments) == 1:
        Path(arguments[0]).write_text(json.dumps(read("mindspore")), encoding="utf-8")
        return 0
    old, new = (json.loads(Path(each).read_text(encoding="utf-8")) for each in arguments)
    versions = [{key: [Shown(*each) for each in listed] for key, listed in one.items()} for one in (old, new)]
    TABLE.write_text(table(*versions), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
