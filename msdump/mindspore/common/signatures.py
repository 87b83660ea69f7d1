"""Signatures as text: what a table of functions or layers says of each."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from msdump.mindspore.common import dtype as dtypes

_MARKS = {"|": inspect.Parameter.KEYWORD_ONLY}
_REST = {"**": inspect.Parameter.VAR_KEYWORD, "*": inspect.Parameter.VAR_POSITIONAL}


def signature_of(words: list[str]) -> inspect.Signature:
    """Parameters as words: `input`, `dim=None`, `dtype=float32`, `**kwargs`, and `|` before those that go by name."""
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    for word in words:
        if word in _MARKS:
            kind = _MARKS[word]
            continue
        stars = word[: len(word) - len(word.lstrip("*"))]
        name, has_default, text = word[len(stars) :].partition("=")
        default = _default(text) if has_default else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, _REST.get(stars, kind), default=default))
    return inspect.Signature(parameters)


def _default(text: str) -> Any:
    """A literal, or a dtype."""
    return getattr(dtypes, text) if hasattr(dtypes, text) else ast.literal_eval(text)


def declared(text: str) -> tuple[inspect.Signature, dict[str, str]]:
    """The signature of settings such as `channel:size=1`, and the kind of each that has one."""
    words, kinds = text.split(), {}
    for index, word in enumerate(words):
        head, equals, default = word.partition("=")
        name, colon, kind = head.partition(":")
        if colon:
            words[index], kinds[name] = name + equals + default, kind
    return signature_of(words), kinds
