"""close_all: the end of several dumps, of which some may fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msdump.errors import DumpError


class Closable(Protocol):
    """Something with an end."""

    def close(self) -> None: ...


def close_all(dumps: Iterable[Closable]) -> None:
    """Close every one, also after one that fails.   Raises: DumpError of the first that is not complete."""
    errors = []
    for dump in dumps:
        try:
            dump.close()
        except DumpError as error:
            errors.append(error)
    if errors:
        raise errors[0]
