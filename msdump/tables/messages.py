"""Sentences of answers, in the languages that people read them in: one catalogue for the terminal and the viewer.

An answer is composed in English, of messages; each remembers what it was made of, so that whoever shows it may ask for
the same in another language. Programs read the English text: a message is that `str`, in JSON as anywhere else.

from msdump.tables.messages import CHINESE, message, translated
text = message("{count} operators", count=3)
text == "3 operators" and translated(text, CHINESE) == "3 个算子"
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, SupportsIndex

ENGLISH, CHINESE = "en", "zh"
LANGUAGES = (ENGLISH, CHINESE)


class Message(str):
    """English text that can be had in another language.

    template   with names in braces, as `str.format` takes them: the key of the catalogue
    arguments  for these; some may be messages

    Edges:  what a `str` makes of it (a slice, an f-string, `join`) is plain English text; `+` and `joined` keep what it
            is made of. A text that is no message, such as a name of the dump, is the same in all languages, whatever
            the catalogue says of such a word.
    """

    __slots__ = ("arguments", "template")

    template: str
    arguments: Mapping[str, Any]

    def __new__(cls, template: str, arguments: Mapping[str, Any]) -> Message:
        made = super().__new__(cls, template.format_map(arguments) if arguments else template)
        made.template, made.arguments = template, arguments
        return made

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (self.template, self.arguments)

    def __add__(self, other: str) -> Message:
        return joined("", (self, other))

    def __radd__(self, other: str) -> Message:
        return joined("", (other, self))

    def in_language(self, language: str) -> str:
        """The text; what the catalogue does not have stays English."""
        if language == ENGLISH:
            return str(self)
        template = catalogue().get(self.template, self.template)
        if not self.arguments:
            return template
        return template.format_map({name: translated(value, language) for name, value in self.arguments.items()})


class _Joined(Message):
    """Parts with a separator between them; arguments are `separator` and `parts`, and the template says nothing."""

    __slots__ = ()

    def __new__(cls, template: str, arguments: Mapping[str, Any]) -> _Joined:
        made = str.__new__(cls, arguments["separator"].join(arguments["parts"]))
        made.template, made.arguments = template, arguments
        return made

    def in_language(self, language: str) -> str:
        separator = translated(self.arguments["separator"], language)
        text: str = separator.join(translated(part, language) for part in self.arguments["parts"])
        return text


def message(template: str, /, **arguments: Any) -> Message:
    """A message of the catalogue.   template: a literal, which a test looks up there"""
    known = {name: value if isinstance(value, str | int | float) else str(value) for name, value in arguments.items()}
    return Message(template, known)


def messages(*texts: str) -> tuple[Message, ...]:
    """Messages without arguments: titles of columns, words."""
    return tuple(Message(text, {}) for text in texts)


def counted(count: int, one: str, many: str) -> Message:
    """A message about a number of things.   one, many: templates with {count}, where it is 1 and where it is not"""
    return Message(one if count == 1 else many, {"count": count})


def joined(separator: str, parts: Iterable[str]) -> Message:
    """`separator.join(parts)`, of which messages stay messages; so may the separator."""
    return _Joined("", {"separator": separator, "parts": tuple(parts)})


def operand(io: str, slot: object) -> Message:
    """An input or output of an operator: "output 0".   io: "input" or "output" """
    if io == "input":
        return message("input {slot}", slot=slot)
    return message("output {slot}", slot=slot) if io == "output" else message("{io} {slot}", io=io, slot=slot)


COMMA, SEMICOLON, COLON, AND = messages(", ", "; ", ": ", " and ")


def translated(value: Any, language: str) -> Any:
    """A message in a language; anything else as it is."""
    return value.in_language(language) if isinstance(value, Message) else value


def translations(value: Any) -> list[list[str]]:
    """[English, Chinese] of each message in a part of an answer, once: what a page needs to show it in both."""
    found: dict[str, str] = {}
    _collect(value, found)
    return [[english, chinese] for english, chinese in found.items() if english != chinese]


def _collect(value: Any, found: dict[str, str]) -> None:
    if isinstance(value, Message):
        if value not in found:
            found[str(value)] = value.in_language(CHINESE)
    elif isinstance(value, Mapping):
        for part in value.values():
            _collect(part, found)
    elif isinstance(value, list | tuple):
        for part in value:
            _collect(part, found)


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, str]:
    """Template in English -> template in Chinese, with the same names in braces. The viewer's words are in it, too."""
    import importlib.resources  # a tenth of the start of a command, which English does not need

    text = importlib.resources.files("msdump.tables").joinpath("chinese.json").read_text(encoding="utf-8")
    content: dict[str, str] = json.loads(text)
    return content
