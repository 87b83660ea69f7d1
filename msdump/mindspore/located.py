"""What goes wrong inside of the shim is told with the line of the script that led there, in one place for all of it:
functions of `ops`, methods of Tensor, operator objects, cells, gradients and `jit` are guarded by `located`."""

from __future__ import annotations

import functools
import inspect
import opcode
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, TracebackType
from typing import Any, TypeVar

from msdump.errors import DumpError
from msdump.mindspore.sources import is_library, user_line

_Function = TypeVar("_Function", bound=Callable[..., Any])

_RAISE = opcode.opmap["RAISE_VARARGS"]
# Libraries that the shim calls; their frames are not the script's.
_COMPUTING = {"numpy", "torch", "PIL", "scipy"} | sys.stdlib_module_names
# Name of the function that stands around a guarded one.
GUARD = "guarded"
_TOLD = "_msdump_is_told"
_KINDS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError)
# What Python says of arguments that nothing checked -> what it means.
_MEANING: dict[type[Exception], type[Exception]] = {
    AttributeError: TypeError,
    KeyError: ValueError,
    IndexError: ValueError,
    ZeroDivisionError: ValueError,
    OverflowError: ValueError,
}
# Beginnings of messages of Python where text stands for a number.
_TEXTS = ("invalid literal for int()", "could not convert string to")


def located(name: str = "", keeps: tuple[type[Exception], ...] = ()) -> Callable[[_Function], _Function]:
    """Decorator: errors of the shim's own code that pass get the line of the script.

    name   of what the script called; "": the name of the function
    keeps  errors of Python that are the right ones here, such as IndexError of an index
    Edges: an error that the script, or a function of it, raised stays as it is, and so does one that was told already.
    """

    def guard(function: _Function) -> _Function:
        shown = name or getattr(function, "__name__", "")

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                tell(error, shown, args, kwargs, keeps)
                raise

        return guarded  # type: ignore[return-value]

    return guard


def located_class(cls: type[Any]) -> type[Any]:
    """Decorator: the constructor and the public methods of the class are guarded, under the name of the class."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
            shown = cls.__name__ if name == "__init__" else f"{cls.__name__}.{name}"
            if not inspect.isgeneratorfunction(method):
                setattr(cls, name, located(shown)(method))
    return cls


def tell(
    error: Exception, name: str, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None,
    keeps: tuple[type[Exception], ...] = (),
) -> None:  # fmt: skip
    """Give an error that is being handled the line of the script.

    Raises: TypeError or ValueError with all of it in place of an error that Python, numpy or PyTorch raised about
            arguments that nothing had checked.
    """
    if not isinstance(error, _KINDS) or isinstance(error, DumpError) or not _is_plain(error):
        return
    if getattr(error, _TOLD, False):
        return
    owner = _raised_by(error.__traceback__)
    line = user_line()
    if owner == "script" or not line:
        return
    text = str(error.args[0])
    if owner == "shim":
        place = line.partition(": ")[0]
        if place not in text:
            error.args = (f"{text}\nAt {line}",)
        _mark(error)
        return
    kind = type(error) if isinstance(error, keeps) else _MEANING.get(type(error), type(error))
    if text.startswith(_TEXTS):
        kind = TypeError
    if kind not in (TypeError, ValueError, *keeps):
        return
    got = ", ".join([*map(_shown, args), *(f"{key}={_shown(value)}" for key, value in (kwargs or {}).items())])
    instead = kind(f"{name} at {line}: expected arguments that it takes, got ({got}). {text}")
    _mark(instead)
    raise instead from error


def _mark(error: Exception) -> None:
    setattr(error, _TOLD, True)


def _is_plain(error: Exception) -> bool:
    """Is its message all that it holds?"""
    return len(error.args) == 1 and isinstance(error.args[0], str | int)


def _raised_by(trace: TracebackType | None) -> str:
    """Who raised an error: "script"; "shim", in its own words; "python", or a library, about arguments of the shim."""
    owner = "python"
    while trace is not None:
        frame = trace.tb_frame
        path = frame.f_code.co_filename
        if is_library(path):
            raises = trace.tb_next is None and frame.f_code.co_code[trace.tb_lasti] == _RAISE
            owner = "shim" if raises else "python"
        elif str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _COMPUTING:
            owner = "script"
        trace = trace.tb_next
    return owner


def _shown(value: Any) -> str:
    """An argument in short: the type of a tensor, a number or a text itself, of others the kind."""
    type_ = getattr(value, "type_", None)
    if type_ is not None:
        return f"Tensor {type_}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)[:40]
    if isinstance(value, tuple | list) and len(value) <= 4:
        inside = ", ".join(map(_shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    return type(value).__name__
