"""The border between Python and aclError: inside, calls raise; outside, they return a number and log why."""

from __future__ import annotations

import functools
import logging
import operator
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from msdump.config.acl_file import AclConfigError
from msdump.errors import DumpError, MsdumpError, did_you_mean
from msdump.frontends.acl import codes

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("msdump")
_MOST_MESSAGES = 32


class CallError(Exception):
    """A call that cannot be honoured. Never leaves this package."""

    def __init__(self, code: int, message: str, ep_code: str = "") -> None:
        super().__init__(f"{ep_code}: {message}" if ep_code else message)
        self.code = code


def bad_argument(message: str) -> CallError:
    """Error 100000 for an argument that is no such thing."""
    return CallError(codes.INVALID_PARAM, message, codes.BAD_ARGUMENT)


class _Messages(threading.local):
    """Errors of this thread's calls since the last query."""

    def __init__(self) -> None:
        self.texts: deque[str] = deque(maxlen=_MOST_MESSAGES)


_messages = _Messages()


def returns_code(name: str) -> Callable[[Callable[P, None]], Callable[P, int]]:
    """For a call whose only result is its aclError.   `name`: that of the C function."""

    def wrap(function: Callable[P, None]) -> Callable[P, int]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> int:
            try:
                function(*args, **kwargs)
            except (CallError, MsdumpError, MemoryError) as error:
                return report(name, error)
            return codes.SUCCESS

        return call

    return wrap


def returns_nothing(name: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """For a call that pyACL gives no result; only the log says that it failed."""
    return returns_plain(name, None)


def returns_value(name: str, on_failure: T) -> Callable[[Callable[P, T]], Callable[P, tuple[T, int]]]:
    """For a call that gives a value and its aclError."""

    def wrap(function: Callable[P, T]) -> Callable[P, tuple[T, int]]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> tuple[T, int]:
            try:
                return function(*args, **kwargs), codes.SUCCESS
            except (CallError, MsdumpError, MemoryError) as error:
                return on_failure, report(name, error)

        return call

    return wrap


def returns_plain(name: str, on_failure: T) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """For a call that gives a value alone; a null value says that it failed."""

    def wrap(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except (CallError, MsdumpError, MemoryError) as error:
                report(name, error)
                return on_failure

        return call

    return wrap


def report(name: str, error: BaseException) -> int:
    """The aclError of what was raised; the log and `get_recent_err_msg` get the reason."""
    code = _code_of(error)
    text = f"{str(error) or type(error).__name__}\n{name} returns {code} {codes.NAMES.get(code, '')}".rstrip()
    _messages.texts.append(text)
    log.error("%s", text)
    return code


def take_messages() -> str:
    """Errors of this thread's calls, oldest first; the next query starts anew."""
    text = "\n".join(_messages.texts)
    _messages.texts.clear()
    return text


def as_int(value: Any, name: str) -> int:
    """A number or handle.   Raises: TypeError, as pyACL does for arguments of another type."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an int, got {type(value).__name__}.") from None


def as_text(value: object, name: str) -> str:
    """A path or name.   Raises: TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a str, got {type(value).__name__}.")
    return value


def unknown_name(path: str, name: str, namespace: Mapping[str, object]) -> AttributeError:
    """For the `__getattr__` of a module: what to raise for a name that it lacks, with the nearest ones."""
    # The import system and inspect look names like these up; no script wrote them.
    if name.startswith("__"):
        return AttributeError(name)
    calls = [key for key, value in namespace.items() if callable(value) and not key.startswith("_")]
    return AttributeError(
        f"{path}.{name}: expected a name of pyACL that works here, got another. {did_you_mean(name, calls)} "
        "docs/acl-coverage.md lists all of them."
    )


def _code_of(error: BaseException) -> int:
    if isinstance(error, CallError):
        return error.code
    if isinstance(error, AclConfigError):
        return error.acl_error
    if isinstance(error, MemoryError):
        return codes.BAD_ALLOC
    return codes.INTERNAL_ERROR if isinstance(error, DumpError) else codes.FAILURE
