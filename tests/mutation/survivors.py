"""Mutants that no test can kill, each with the reason: what they change is nothing that anybody sees."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """Mutants of any module: patterns for the whole changed lines."""

    before: str
    after: str
    reason: str


@dataclass(frozen=True)
class Survivor:
    """One mutant: the stripped lines before and after the change, as `python -m tests.mutation` prints them."""

    module: str
    before: str
    after: str
    reason: str


KINDS = (
    Kind(r"@final", "", "mypy alone reads it"),
    Kind(
        r"@dataclass\(.*frozen=True.*\)", r"@dataclass\(.*frozen=False.*\)", "mypy refuses code that would set a field"
    ),
)

SURVIVORS: tuple[Survivor, ...] = ()


def reason_for(module: str, before: str, after: str) -> str | None:
    """Why this mutant may survive; None when nothing explains it."""
    for kind in KINDS:
        if re.fullmatch(kind.before, before) and re.fullmatch(kind.after, after):
            return kind.reason
    for survivor in SURVIVORS:
        if (survivor.module, survivor.before, survivor.after) == (module, before, after):
            return survivor.reason
    return None
