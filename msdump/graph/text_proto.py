"""Text form of protobuf messages, written line by line: fields are `name: value` or `name { ... }`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Lines = Iterator[str]
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord('"'), ord("\\")}


def quoted(text: str | bytes) -> str:
    """A string or bytes literal; what is no plain ASCII character becomes octal escapes.

    Edges: lone surrogates, which no text file can hold, are spelled out as `\\udcff`.
    """
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    return '"' + "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data) + '"'


def scalar(name: str, value: bool | int | float | str) -> str:
    """One field whose value is written as it is: a number, a truth value, or a name of an enum."""
    return f"{name}: {str(value).lower() if isinstance(value, bool) else value}"


def string(name: str, value: str | bytes) -> str:
    return f"{name}: {quoted(value)}"


def message(name: str, lines: Iterable[str]) -> Lines:
    yield f"{name} {{"
    for line in lines:
        yield f"  {line}"
    yield "}"


def strings(name: str, values: Iterable[str]) -> Lines:
    for value in values:
        yield string(name, value)


def scalars(name: str, values: Iterable[bool | int | float]) -> Lines:
    for value in values:
        yield scalar(name, value)
