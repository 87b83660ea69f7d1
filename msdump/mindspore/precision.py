"""Precision: in which float dtype operators compute, as `Cell.to_float` and mixed precision (`amp`) decide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import final

FULL = "float32"


@final
@dataclass(frozen=True)
class Precision:
    """What happens to float operands of the operators of a cell and of the cells that it calls.

    dtype      table name of the dtype that lowered operators compute in
    only       op types that are lowered; None for all of them
    raised     op types whose operands are cast to float32
    promoted   op types whose operands are cast to the widest dtype among them
    restores   results of lowered operators are cast back to float32
    """

    dtype: str
    only: frozenset[str] | None = None
    raised: frozenset[str] = frozenset()
    promoted: frozenset[str] = frozenset()
    restores: bool = False

    @property
    def is_plain(self) -> bool:
        """Is it that of `Cell.to_float`: one dtype for a whole cell, which casts of the script may leave?"""
        return self.only is None and not self.restores

    def lowers(self, op_type: str) -> bool:
        """Does the operator compute in `dtype`?"""
        return self.only is None or op_type in self.only

    def operand_dtype(self, op_type: str) -> str | None:
        """Dtype to which float operands are cast, None to leave them."""
        if self.lowers(op_type):
            return self.dtype
        return FULL if op_type in self.raised else None


_current: ContextVar[Precision | None] = ContextVar("msdump_mindspore_precision", default=None)


def current_precision() -> Precision | None:
    """The precision of this thread, None when operators take operands as they are."""
    return _current.get()


@contextmanager
def computing_in(precision: Precision) -> Iterator[None]:
    """While this is open, operators of this thread compute as `precision` says."""
    token = _current.set(precision)
    try:
        yield
    finally:
        _current.reset(token)
