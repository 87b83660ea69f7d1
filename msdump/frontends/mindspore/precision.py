"""Precision: the dtype in which the cells of the moment compute (`Cell.to_float`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_wanted: ContextVar[str | None] = ContextVar("msdump_mindspore_precision", default=None)


def compute_dtype() -> str | None:
    """Dtype to which float operands are cast, None to leave them."""
    return _wanted.get()


@contextmanager
def computing_in(dtype: str) -> Iterator[None]:
    """While this is open, operators of this thread compute in `dtype`."""
    token = _wanted.set(dtype)
    try:
        yield
    finally:
        _wanted.reset(token)
