"""What functions of `mindspore.mint` share: one for each number of axes, and the generator that none of them takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
