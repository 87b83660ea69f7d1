"""Loops over functions: WhileLoop, ForiLoop, Scan. On tensors of a graph they are control flow of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.control.hooks import for_, range_, while_
from msdump.mindspore.names import publish
from msdump.mindspore.ops.primitive import Primitive


def _check_function(name: str, argument: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"For '{name}', the '{argument}' must be a function, but got {type(function).__name__}.")


class WhileLoop(Primitive):
    """`value = loop_func(value)` as long as `cond_func(value)` is true."""

    def __call__(self, cond_func: Callable[[Any], Any], loop_func: Callable[[Any], Any], init_val: Any) -> Any:
        """Edges:  the value keeps its kind, dtype and shape.   Raises: TypeError, ValueError where it does not."""
        _check_function("WhileLoop", "cond_func", cond_func)
        _check_function("WhileLoop", "loop_func", loop_func)
        value = init_val

        def test() -> Any:
            return cond_func(value)

        def body() -> None:
            nonlocal value
            value = loop_func(value)

        while_(test, body, ("value",), "")
        return value


class ForiLoop(Primitive):
    """`value = loop_func(index, value)` for each index from `lower` to below `upper`."""

    def __call__(
        self, lower: Any, upper: Any, loop_func: Callable[[Any, Any], Any], init_val: Any, unroll: bool = True
    ) -> Any:
        """Edges:  bounds that are ints are unrolled, whatever `unroll` says.   Raises: as `WhileLoop`."""
        for name, bound in (("lower", lower), ("upper", upper)):
            if isinstance(bound, bool) or not isinstance(bound, int | Tensor):
                raise TypeError(f"For 'ForiLoop', the '{name}' must be an int or a Tensor, but got {bound!r}.")
        _check_function("ForiLoop", "loop_func", loop_func)
        value = init_val

        def body(index: Any) -> None:
            nonlocal value
            value = loop_func(index, value)

        for_(range_(range, lower, upper), body, ("value",), "")
        return value


class Scan(Primitive):
    """`value, y = loop_func(value, x)` for each x of `xs`; the last value, and all y in a list."""

    def __call__(
        self,
        loop_func: Callable[[Any, Any], Any],
        init: Any,
        xs: Sequence[Any] | None,
        length: int | None = None,
        unroll: bool = True,
    ) -> tuple[Any, list[Any]]:
        """Edges:  without `xs` the function gets None `length` times; always unrolled.

        Raises: TypeError, ValueError for wrong arguments, and for a function that does not return two things.
        """
        _check_function("Scan", "loop_func", loop_func)
        if xs is None and not isinstance(length, int):
            raise TypeError(f"For 'Scan', the 'length' must be an int where 'xs' is None, but got {length!r}.")
        if xs is not None and not isinstance(xs, tuple | list):
            raise TypeError(f"For 'Scan', the 'xs' must be a tuple, a list or None, but got {type(xs).__name__}.")
        value, ys = init, []
        for x in [None] * (length or 0) if xs is None else xs:
            result = loop_func(value, x)
            if not isinstance(result, tuple) or len(result) != 2:
                raise ValueError(f"For 'Scan', the 'loop_func' must return a tuple of two, but got {result!r}.")
            value = result[0]
            ys.append(result[1])
        return value, ys


publish(__name__)
