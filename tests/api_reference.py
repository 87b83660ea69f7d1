"""docs/api.md: every public name of the Python API, from signatures and docstrings.

python -m tests.api_reference   writes the page anew
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.test_public_api import PUBLIC

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"

_HEAD = """\
# Python API

`python -m tests.api_reference` writes this page from signatures and docstrings. What is named here stays as it is
within a major version; other names of the package may change. [Reading and converting dumps](reading-dumps.md),
[How do I …?](how-to.md) and [Property tests through a dump](testing.md) show these functions at work.
`msdump.acl` and `msdump.torchair` are [ACL](acl.md) and [TorchAir](torchair-functions.md).

An array is a numpy array, a rank, graph or iteration is a zero-based number, and `None` means the default: all of them
where something is selected.

"""
_TITLES = {
    "msdump": "What most programs need. Importing it loads neither numpy nor a framework.",
    "msdump.analysis": "Questions about dumps, and the values that answer them.",
    "msdump.testing": "Strategies of hypothesis, and dumps as values. Needs `hypothesis`, an extra: `[test]`.",
}
_HEADINGS = "Shapes|Dtypes|Units|Values|Edges|Edges and Raises|Raises|Source|Returns"
_LABEL = re.compile(rf"(?:^|(?<=\S) {{3}})({_HEADINGS}):\s+", re.MULTILINE)
_ENTRY = re.compile(r"((?:\w+(?:\(\))?|\"\w+\")(?:, \w+)*) {2,}(\S.*)")
# Members that only other modules of msdump call.
_PRIVATE = ("_", "msprobe_", "may_run_again", "executed")
_WIDTH = 80


def page() -> str:
    """The text of the page."""
    parts, owners = [_HEAD], {}
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        parts.append(f"## {module_name}\n\n{_TITLES[module_name]}\n\n")
        for name in module.__all__:
            member, path = getattr(module, name), f"{module_name}.{name}"
            parts.append(f"### `{path}`\n\n")
            # A number or a text may be equal to another one by chance.
            key = id(member) if callable(member) else path
            if key in owners:
                owner = owners[key]
                parts.append(f"The same as [`{owner}`](#{owner.replace('.', '').lower()}).\n\n")
                continue
            owners[key] = path
            parts += _entry(member, name)
    return "".join(parts).rstrip("\n") + "\n"


def _entry(member: Any, name: str) -> Iterator[str]:
    if isinstance(member, ModuleType):
        # The tree of exceptions, as it is drawn.
        first, _, tree = inspect.getdoc(member).partition("\n\n")  # type: ignore[union-attr]
        yield f"{first}\n\n```text\n{tree}\n```\n\n"
    elif not callable(member):
        yield f"A {type(member).__name__}: {_value(member)}.\n\n"
    else:
        yield f"```python\n{signature(name, member)}\n```\n\n{described(member)}\n\n"
        if inspect.isclass(member) and (rows := [row for one in vars(member).items() if (row := _member(*one))]):
            yield f"Members:\n\n{''.join(rows)}\n"


def _value(member: Any) -> str:
    # A version is another one with each release.
    return "the version of the package" if isinstance(member, str) else ", ".join(f"`{one}`" for one in member)


def signature(name: str, function: Any) -> str:
    """A signature as it is written in a program, without what a strategy of hypothesis returns: versions spell that
    differently.
    """
    found = inspect.signature(function)
    returned = found.return_annotation
    parameters, is_keyword_only = [], False
    for one in found.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            parameters.append("*")
        is_keyword_only |= one.kind is one.VAR_POSITIONAL
        parameters.append(_unquoted(str(one)))
    end = f" -> {returned}" if isinstance(returned, str) and not inspect.isclass(function) else ""
    line = f"{name}({', '.join(parameters)}){end}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {one}," for one in parameters), f"){end}"])


def _unquoted(parameter: str) -> str:
    """`mine: 'str' = 'npy'` -> `mine: str = 'npy'`: annotations are texts, values may be."""
    return re.sub(r"^(\**\w+: )'(.*?)'(?=$| = )", r"\1\2", parameter)


def described(member: Any) -> str:
    """The docstring as Markdown: columns of names become lists, labels become italic."""
    text = _LABEL.sub(r"\n\n\1: ", inspect.getdoc(member) or "")
    return "\n\n".join(block for one in text.split("\n\n") for block in _blocks(one))


def _blocks(text: str) -> list[str]:
    """A paragraph of a docstring as one or more. A line `name  meaning` begins an entry, deeper lines go on with it."""
    blocks: list[list[str]] = []
    for line in text.strip("\n").splitlines():
        entry = _ENTRY.match(line)
        if entry:
            line = f"- `{entry[1].replace(', ', '`, `')}`: {entry[2]}"
        elif line.startswith(" ") and blocks:
            blocks[-1][-1] += f" {line.strip()}"
            continue
        if not blocks or bool(entry) != blocks[-1][0].startswith("- "):
            blocks.append([])
        blocks[-1].append(line if entry else re.sub(rf"^({_HEADINGS}):", r"*\1:*", line))
    return ["\n".join(block) for block in blocks]


def _member(name: str, value: Any) -> str:
    """A method or property of a class as an entry of a list; empty for what is not public."""
    is_property = isinstance(value, property | functools.cached_property)
    function = value.fget if isinstance(value, property) else getattr(value, "func", getattr(value, "__func__", value))
    if name.startswith(_PRIVATE) or not inspect.isfunction(function):
        return ""
    text = " ".join(_in_a_line(block) for block in described(function).split("\n\n"))
    if is_property and not text:
        text = f"`{function.__annotations__['return']}`"
    return f"- `{name if is_property else _call(name, function)}`{': ' if text else ''}{text}\n"


def _in_a_line(block: str) -> str:
    if not block.startswith("- "):
        return block.replace("\n", " ")
    return "; ".join(line.removeprefix("- ").removesuffix(".") for line in block.splitlines()) + "."


def _call(name: str, function: Any) -> str:
    names = [one.name if one.default is one.empty else f"{one.name}={one.default!r}"
             for one in inspect.signature(function).parameters.values() if one.name not in ("self", "cls")]  # fmt: skip
    return f"{name}({', '.join(names)})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
