"""numpy's elementwise functions on tensors: arithmetic with an array before it is the tensor's, all else numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# What `array op tensor` asks of the tensor.
_REFLECTED: dict[np.ufunc, str] = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__", np.remainder: "__rmod__", np.power: "__rpow__", np.matmul: "__rmatmul__",
    np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__", np.equal: "__eq__",
    np.not_equal: "__ne__",
}  # fmt: skip


def applied(kind: type[Any], ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of a ufunc with tensors among its operands: a tensor for `array op tensor`, else what numpy gives.

    kind    the class of tensors
    Source: MindSpore gives numpy's array for all of them; a tensor keeps `array op tensor` part of the program.
    Raises: TypeError for a tensor to write to; GraphError for tensors of a graph that is traced.
    """
    if method == "__call__" and not options and len(inputs) == 2 and not isinstance(inputs[0], kind):
        name = _REFLECTED.get(ufunc)
        if name is not None:
            return getattr(inputs[1], name)(inputs[0])
    if any(isinstance(each, kind) for each in options.get("out", ())):
        raise TypeError(f"numpy.{ufunc.__name__}: expected an array as 'out', got a Tensor. Assign the result to it.")
    operands = [each.asnumpy() if isinstance(each, kind) else each for each in inputs]
    call: Callable[..., Any] = getattr(ufunc, method)
    return call(*operands, **options)
