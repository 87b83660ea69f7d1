"""Which functions of a script are rewritten: those that ask a traced tensor for its truth, while a graph is traced.

A rewritten function gets other code for as long as the trace lasts; the function itself stays the same object, so that
all who hold it run the new code.
"""

from __future__ import annotations
import __future__

import ast
import functools
import gc
import inspect
import linecache
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType, TracebackType
from typing import NamedTuple

from msdump.errors import GraphError, TracedValueError
from msdump.mindspore.control.syntax import is_generator, new_function, rewrite
from msdump.mindspore.located import GUARD
from msdump.mindspore.sources import CodeTable, is_generated, is_library, is_root, mark_generated, nested_codes

_FUTURE_FLAGS = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
)


class _Rewritten(NamedTuple):
    """Code that asked a tensor for its truth once."""

    new: CodeType  # what runs in its place while a graph is traced
    functions: weakref.WeakSet[FunctionType]  # those that have the code, as far as they were seen


_rewritten: CodeTable[_Rewritten] = CodeTable()


def rewrite_asker(error: TracedValueError, joined: list[CodeType]) -> None:
    """Rewrite the function that asked, for traces from now on.

    A new function with code that is rewritten already joins those that have it. Once in a compilation, which `joined`
    is for: a function that is made by the program itself is another one in each trace, and would join for ever.

    Raises: the error itself where no function of the script asked; GraphError where that is rewritten already, or
            cannot be.
    """
    code = _asker(error.__traceback__)
    if code is None:
        raise error
    # All objects of the process are searched: milliseconds, so not in each trace.
    functions = _functions_of(code)
    row = _rewritten.get(code)
    if is_generated(code):
        raise GraphError(f"{error} {_PLACES}") from error
    if row is not None:
        # The functions that are known run the new code: another one asked, which may be gone.
        if row.functions.issuperset(functions) or any(each is code for each in joined):
            raise GraphError(f"{error} ({code.co_name} of {code.co_filename} {_BORN}.)") from error
        joined.append(code)
        row.functions.update(functions)
        return
    try:
        _rewritten[code] = _Rewritten(new_code(code, functions), weakref.WeakSet(functions))
    except _CannotRewriteError as reason:
        raise GraphError(f"{error} ({code.co_name} of {code.co_filename} {reason}.)") from error


@contextmanager
def rewriting() -> Iterator[None]:
    """While this is open, functions that are rewritten run their new code."""
    swapped: list[tuple[FunctionType, CodeType]] = []
    try:
        for code in _rewritten.codes():
            for function in [each for each in _rewritten[code].functions if each.__code__ is code]:
                swapped.append((function, code))
                function.__code__ = _rewritten[code].new
        yield
    finally:
        for function, code in swapped:
            function.__code__ = code


_PLACES = (
    "(A tensor can be the condition of if, while, and, or, not and `a if c else b`, and the end of range in a for; not "
    "in a comprehension, an assert, max, min or sorted, and not where return, break or continue leave a with or a try.)"
)
_BORN = "is made by the program while it is compiled. Make it before, or as a method of the cell"


class _CannotRewriteError(Exception):
    """Says why and what to do, to follow the name of a function."""


def _functions_of(code: CodeType) -> list[FunctionType]:
    """All functions of this process that run the code."""
    return [each for each in gc.get_referrers(code) if isinstance(each, FunctionType) and each.__code__ is code]


def _asker(traceback: TracebackType | None) -> CodeType | None:
    """The code whose function is to be rewritten: the outermost one around that of the script which asked."""
    codes: list[CodeType] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_root(code):
            codes.clear()
        else:
            codes.append(code)
        traceback = traceback.tb_next
    while codes and is_library(codes[-1].co_filename) and codes[-1].co_name in _ASKING:
        codes.pop()
    if not codes or is_library(codes[-1].co_filename):
        return None
    asker = codes[-1]
    if is_generated(asker):
        return asker
    return next((code for code in codes if asker is code or asker in nested_codes(code)), asker)


# Methods of Tensor through which Python asks, and the guard around them.
_ASKING = frozenset({"__bool__", "__index__", "__iter__", "__len__", "_concrete", GUARD})


def new_code(code: CodeType, functions: Sequence[FunctionType]) -> CodeType:
    """Code of the same function in which conditions on tensors are control flow.   Raises: _CannotRewriteError."""
    if code.co_name == "<lambda>":
        raise _CannotRewriteError("is a lambda. Write it as a function with def")
    if not functions:
        if code.co_flags & inspect.CO_OPTIMIZED:  # it is gone: Python 3.10 keeps no function of a frame
            raise _CannotRewriteError(_BORN)
        raise _CannotRewriteError("is no function. Move the condition into a function or a construct")
    lines = linecache.getlines(code.co_filename, functions[0].__globals__)
    if not lines:
        raise _CannotRewriteError(
            "has no source that can be read. Write it to a file, or use ops.select or set_context(mode=PYNATIVE_MODE)"
        )
    node = _definition("".join(lines), code)
    if is_generator(node):
        raise _CannotRewriteError("is a generator. Return a list in place of it")
    rewrite(node)
    new = _compiled(node, code, functions[0])
    if new.co_freevars != code.co_freevars:
        raise _CannotRewriteError("reads other variables than its source says. Import it anew")
    for each in (new, *nested_codes(new)):
        mark_generated(each)
    return new


def _definition(source: str, code: CodeType) -> ast.FunctionDef:
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise _CannotRewriteError("has another source than when it was imported. Start the script anew") from error
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if code.co_firstlineno in (first, node.lineno):
                return node
    raise _CannotRewriteError("has another source than when it was imported. Start the script anew")


def _compiled(node: ast.FunctionDef, code: CodeType, function: FunctionType) -> CodeType:
    """The code of a definition, compiled where the names around it mean what they meant."""
    statement: ast.stmt = node
    owner = function.__qualname__.split(".")[-2:-1]
    if owner and owner[0] != "<locals>":
        statement = ast.parse(f"class {owner[0]}: pass").body[0]
        vars(statement)["body"] = [node]
    free = [name for name in code.co_freevars if name != "__class__"]
    bound = [ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)) for name in free]
    around = new_function("around", [*bound, statement])
    ast.copy_location(statement, node)
    ast.copy_location(around, node)
    module = ast.fix_missing_locations(ast.Module([around], []))
    flags = code.co_flags & _FUTURE_FLAGS
    compiled = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    return next(
        each for each in nested_codes(compiled) if each.co_name == node.name and each.co_firstlineno == node.lineno
    )
