"""Functions of `mindspore.ops` under the parameters that `mindspore.mint` gives them: PyTorch's names and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from msdump.mindspore.common.signatures import signature_of


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


def of_axes(name: str, compute: Callable[..., Any], doc: str) -> dict[str, Callable[..., Any]]:
    """Name -> function for one, two and three axes, whose number `compute` gets first and {} stands for."""

    def of(ndim: int) -> Callable[..., Any]:
        def function(*args: Any) -> Any:
            return compute(ndim, *args)

        function.__doc__ = doc.format(ndim)
        return function

    return {name.format(ndim): of(ndim) for ndim in (1, 2, 3)}


def refuse_generator(where: str, generator: Any) -> None:
    """Raises: ValueError for a generator: random numbers come from the seed of the script."""
    if generator is not None:
        raise ValueError(f"{where}: expected generator=None, got {generator!r}. Call mindspore.set_seed.")
