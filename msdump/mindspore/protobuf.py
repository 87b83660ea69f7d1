"""Files that are one protobuf message: parsed as a whole, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msdump.errors import FormatError

if TYPE_CHECKING:
    from google.protobuf.message import Message

    M = TypeVar("M", bound=Message)


def parsed(message_type: type[M], content: bytes, path: str, expected: str) -> M:
    """The message of a file.   Raises: FormatError for bytes that are none, or that hold a text which is not UTF-8."""
    from google.protobuf.message import DecodeError

    try:
        message = message_type.FromString(content)
    except DecodeError as error:
        raise FormatError(f"{path}: expected {expected}, got something else. Is the file whole?") from error
    _check_texts(message, path, expected)
    return message


def _check_texts(message: Message, path: str, expected: str) -> None:
    """Protobuf hands over a text that is not UTF-8 as bytes."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        for item in value if field.is_repeated else (value,):
            if field.type == field.TYPE_MESSAGE:
                _check_texts(item, path, expected)
            elif not isinstance(item, str):
                raise FormatError(f"{path}: expected {expected}, got a {field.name} that is not UTF-8: {item[:40]!r}.")
