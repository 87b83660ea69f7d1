"""Names outside of a program that it sets when it runs: a graph, which is traced once, would set them once."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from msdump.mindspore.sources import is_library, nested_codes

_SETTING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})


def written_names(function: Callable[..., Any], cell: Any = None) -> str:
    """`function: name` of the first global, or variable of a function around, that a program sets; "" for none.

    Looks at the function, the cell and those below it, and at functions and methods that these name.
    """
    cells = [each for _, each in cell.cells_and_names()] if cell is not None else []
    owner = getattr(function, "__self__", None)
    roots = [(function, owner), *((getattr(type(each), "construct", None), each) for each in cells)]
    seen: set[int] = set()
    for root, owner in roots:
        for code, name in _written(root, owner, seen):
            return f"{code.co_filename}:{code.co_firstlineno}: {code.co_name}: {name}"
    return ""


def _written(function: Any, owner: Any, seen: set[int]) -> Iterator[tuple[CodeType, str]]:
    function = getattr(function, "__wrapped__", function)
    if isinstance(function, MethodType):
        function, owner = function.__func__, function.__self__
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    code = function.__code__
    if is_library(code.co_filename):
        return
    codes = [code, *nested_codes(code)]
    for each in codes:
        for instruction in dis.get_instructions(each):
            sets_outer = instruction.opname == "STORE_DEREF" and instruction.argval in code.co_freevars
            if instruction.opname in _SETTING or sets_outer:
                yield each, str(instruction.argval)
    for name in {name for each in codes for name in each.co_names}:
        yield from _written(function.__globals__.get(name), None, seen)
        if owner is not None:
            yield from _written(getattr(type(owner), name, None), owner, seen)
