"""Errors of the system: the reason in its own words, and what to do about it."""

from __future__ import annotations

import errno
import os

import pytest

from msdump.errors import WriteError
from msdump.formats.system_errors import _FIXES, close_written, write_error


@pytest.mark.parametrize("number", sorted(_FIXES), ids=errno.errorcode.__getitem__)
def test_an_error_has_a_reason_and_a_fix(number: int) -> None:
    error = write_error("x", "room", OSError(number, os.strerror(number)))
    assert str(error) == f"x: expected room, got {os.strerror(number)}. {_FIXES[number]}"


def test_an_error_without_a_number_or_a_known_fix_is_told_as_it_is() -> None:
    assert str(write_error("x", "room", OSError("odd"))) == "x: expected room, got odd."
    assert str(write_error("x", "room", OSError(errno.ENOTTY, "no terminal"))) == "x: expected room, got no terminal."


def test_what_cannot_be_closed_is_not_written() -> None:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    close_written(descriptor, "x")
    with pytest.raises(WriteError, match="x: expected to close it after writing, got Bad file descriptor"):
        close_written(descriptor, "x")
