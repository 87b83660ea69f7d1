"""Signatures as text, and functions under signatures that a table gives them, such as PyTorch's names and defaults."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from msdump.mindspore.common import dtype as dtypes

_MARKS = {"|": inspect.Parameter.KEYWORD_ONLY}
# What a default says by name -> it.
NAMED: dict[str, Any] = {}
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
    """A literal, a dtype, or one of NAMED."""
    if text in NAMED:
        return NAMED[text]
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


def bound_arguments(where: str, signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments by name, with the defaults of those that are left out.   Raises: TypeError."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"For '{where}', {error}.") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def in_forms(table: str, functions: Mapping[str, Any], module: str) -> dict[str, Callable[..., Any]]:
    """Name -> function, of a table with a line for each.

    table      `name parameter ...`, a parameter as `input` or `dim=None`; those behind `|` go by their names alone;
               `name:other` takes the function `other`. Arguments go on in their order, those behind `|` by name
    functions  those that compute
    Raises: KeyError for a function that is not there.
    """
    made: dict[str, Callable[..., Any]] = {}
    for line in table.strip().splitlines():
        head, *parameters = line.split()
        name, _, other = head.partition(":")
        made[name] = _in_form(name, functions[other or name], signature_of(parameters), module)
    return made


def of_axes(name: str, compute: Callable[..., Any], doc: str) -> dict[str, Callable[..., Any]]:
    """Name -> function for one, two and three axes, whose number `compute` gets first and {} stands for."""

    def of(ndim: int) -> Callable[..., Any]:
        def function(*args: Any) -> Any:
            return compute(ndim, *args)

        function.__doc__ = doc.format(ndim)
        return function

    return {name.format(ndim): of(ndim) for ndim in (1, 2, 3)}


def _in_form(name: str, compute: Callable[..., Any], signature: inspect.Signature, module: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"For '{name}', {error}.") from None
        bound.apply_defaults()
        return compute(*bound.args, **bound.kwargs)

    own: Any = function
    own.__name__ = own.__qualname__ = name
    own.__doc__, own.__module__, own.__signature__ = compute.__doc__, module, signature
    return function
