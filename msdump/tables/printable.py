"""Escape untrusted text for display: control characters become visible, and credentials of addresses are removed."""

from __future__ import annotations

import re
import unicodedata

from msdump.errors import without_secrets

LINE_ENDS = "\n\t"
# Source: GitHub, workflow commands (`::name::value` at the start of a line, blanks before it left out, and `##[name]`
# anywhere in it); Azure Pipelines, logging commands (`##vso[name]`); TeamCity, service messages (`##teamcity[name]`).
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)|#(?=#(?:vso|teamcity)?\[)")


def printable(text: str, keeps: str = "", has_secrets: bool = False) -> str:
    """The text with every character written out that a terminal may act on, or cannot show, and without the secrets of
    addresses.

    keeps        characters that stay all the same, such as `LINE_ENDS` in a message of several lines
    has_secrets  for the one who must read them: the address of the viewer, with its token
    Example: "\\x1b" and "\\u202e" as six and eight letters; a byte that is not UTF-8 as "\\xff".
    """
    text = text if has_secrets else without_secrets(text)
    if is_printable(text, keeps):
        return text
    return "".join(letter if letter.isprintable() or letter in keeps else _written_out(letter) for letter in text)


def without_commands(text: str) -> str:
    """The text with what a CI service that reads the lines of a job would take for a command to itself written out."""
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda match: "\\x23" if match[1] is None else f"{match[1]}\\x3a", text)


def is_printable(text: str, keeps: str = "") -> bool:
    """Whether every character is one that a terminal shows, or one of `keeps`."""
    for letter in keeps:
        text = text.replace(letter, "")
    return text.isprintable()


def _written_out(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":  # how Python has the byte of a file name that is not UTF-8
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter if unicodedata.category(letter) == "Zs" else ascii(letter)[1:-1]
