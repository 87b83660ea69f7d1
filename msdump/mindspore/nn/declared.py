"""Cells without parameters, each declared as the one function that it computes; and the check of their sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops.primitive import bound_arguments


def check_whole(where: str, name: str, value: Any) -> None:
    """Raises: TypeError for what is no int, ValueError for one below 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For '{where}', the '{name}' must be int, but got {type(value).__name__} {value!r}.")
    if value < 1:
        raise ValueError(f"For '{where}', the '{name}' must be int and must > 0, but got {value!r}.")


def check_sizes(where: str, **sizes: Any) -> None:
    """Raises: as `check_whole`, for each size, and for each of a tuple or list of sizes."""
    for name, size in sizes.items():
        for each in size if isinstance(size, tuple | list) else (size,):
            check_whole(where, name, each)


def as_layer(check: Callable[..., None] | None = None, base: type[Cell] = Cell) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: the function becomes the cell that calls it.

    Its parameters are those of `construct`; what stands behind `*` are settings: the constructor takes them in this
    order, and each is an attribute of the cell.

    check   gets the settings by name, and raises for those that do not fit
    base    of the cell; its constructor gets the settings that it takes
    """

    def declare(function: Callable[..., Any]) -> Any:
        name, parameters = function.__name__, inspect.signature(function).parameters.values()
        settings = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
        inputs = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
        of_class = inspect.Signature([each.replace(kind=each.POSITIONAL_OR_KEYWORD) for each in settings])
        names = tuple(of_class.parameters)
        of_base = [each for each in inspect.signature(base).parameters if each in names]

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = bound_arguments(name, of_class, args, kwargs)
            base.__init__(self, **{each: bound[each] for each in of_base})
            if check is not None:
                check(**bound)
            for each, value in bound.items():
                setattr(self, each, value)

        def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs, **{each: getattr(self, each) for each in names})

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        methods: dict[Any, Iterable[inspect.Parameter]] = {__init__: of_class.parameters.values(), construct: inputs}
        for method, rest in methods.items():
            method.__qualname__ = f"{name}.{method.__name__}"
            method.__signature__ = inspect.Signature([own, *rest])
        namespace = {"__init__": __init__, "construct": construct, "__doc__": function.__doc__}
        return type(name, (base,), {**namespace, "__module__": function.__module__})

    return declare
