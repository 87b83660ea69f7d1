"""Names of MindSpore itself: where it has what a script looks for, and msdump has not."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

from msdump.errors import did_you_mean

_NAMES = Path(__file__).with_name("mindspore_names.txt")
# A name, and the version of MindSpore that alone has it.
_MARK = re.compile(r"(\w+)(?:-(2\.[07]))?")
_PAGE = "docs/api-coverage.md lists every name of MindSpore and whether it works here."


def names_by_module(text: str | None = None) -> dict[str, dict[str, str]]:
    """Module or class of MindSpore -> name -> the version that alone has it, "" for a name of 2.0 and 2.7."""
    lists: dict[str, dict[str, str]] = {}
    for line in (_NAMES.read_text(encoding="utf-8") if text is None else text).splitlines():
        if line.startswith("["):
            here = lists[line.strip("[]")] = {}
        elif not line.startswith("#"):
            here.update((name, version) for name, version in _MARK.findall(line))
    return lists


@functools.cache
def _modules_by_name() -> dict[str, tuple[str, ...]]:
    modules: dict[str, list[str]] = {}
    for module, names in names_by_module().items():
        for name in names:
            modules.setdefault(name, []).append(module)
    return {name: tuple(places) for name, places in modules.items()}


def advice(place: str, name: str, offered: Iterable[str], hint: str = "") -> str:
    """Sentences on a name that is not there: the nearest one, where MindSpore has it, and the page that tells the rest.

    place    module or class, as MindSpore calls it
    offered  what there is
    hint     what is known to help, in place of the nearest name
    """
    modules = _modules_by_name().get(name, ())
    if place in modules:
        where = f"MindSpore has it; msdump does not have {place}.{name}{'' if hint else ' yet'}."
    elif modules:
        where = f"MindSpore has it as {' and '.join(f'{module}.{name}' for module in modules[:3])}."
    else:
        where = ""
    return " ".join(part for part in (hint or did_you_mean(name, offered), where, _PAGE) if part)
