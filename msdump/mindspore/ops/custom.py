"""Operators whose kernel is a Python function of the script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from msdump.errors import OperandValueError
from msdump.graph.primitive import Attrs, PrimitiveDef
from msdump.graph.types import TensorType
from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.dispatch import as_tensor, execute
from msdump.mindspore.names import publish
from msdump.mindspore.ops.primitive import Primitive
from msdump.mindspore.own_gradient import with_bprop
from msdump.mindspore.tracer import current_tracer
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

_TYPES = ("hybrid", "akg", "tbe", "aicpu", "aot", "pyfunc", "julia")


class Custom(Primitive):
    """An operator that a function of numpy arrays computes: `func_type="pyfunc"`.

    out_shape  of the result, a tuple of them for several results, or a function of the shapes of the operands
    out_dtype  the same of dtypes
    bprop      function of the operands, the result and its gradient that returns the operands' gradients; without it
               a gradient through the operator is an error
    Raises: TypeError for anything but a function, or without `out_shape` or `out_dtype`; ValueError for another kind.
    """

    def __init__(
        self, func: Any, out_shape: Any = None, out_dtype: Any = None, func_type: str = "hybrid",
        bprop: Callable[..., Any] | None = None, reg_info: Any = None,
    ) -> None:  # fmt: skip
        where = f"For 'Custom', 'func_type': {func_type}, 'func': {func}"
        if not callable(func) and not isinstance(func, str):
            raise TypeError(f"For 'Custom', 'func' must be of type function or str, but got {type(func)}")
        if func_type not in _TYPES:
            raise ValueError(f"{where}, 'func_type' must be one of {list(_TYPES)}, but got {func_type}")
        if func_type != "pyfunc":
            raise ValueError(
                f"{where}: expected func_type 'pyfunc', which is all that runs without a compiler of kernels, got "
                f'{func_type!r}. Write the function for numpy arrays and give func_type="pyfunc".'
            )
        if isinstance(func, str):
            raise TypeError(f"{where}, 'func' must be a function, but got text")
        for name, value in (("out_shape", out_shape), ("out_dtype", out_dtype)):
            if value is None:
                raise TypeError(f"{where}, '{name}' must be given for a Python function, but got None")
        super().__init__("Custom", func_name=getattr(func, "__name__", type(func).__name__), func_type=func_type)
        self.func, self.func_type = func, func_type
        self.out_shape, self.out_dtype, self.bprop, self.reg_info = out_shape, out_dtype, bprop, reg_info

    def compute(self, *inputs: Any) -> Any:
        """The function's results; its gradient is that of `bprop`."""
        tracer = current_tracer()
        operands = [as_tensor(each) for each in inputs]
        if self.bprop is None or tracer is None or not tracer.is_differentiating:
            return self._run(*operands)
        return with_bprop(tracer, "Custom", self.bprop, self._run, operands, {})

    def _run(self, *operands: Any) -> Any:
        outputs = execute("Custom", operands, self.attrs, self._definition)
        return outputs if self._has_several else outputs[0]

    @cached_property
    def _definition(self) -> PrimitiveDef:
        return PrimitiveDef("Custom", infer=self._types, kernels={"numpy": self._kernel})

    def _types(self, types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        shapes = self.out_shape(*(type.shape for type in types)) if callable(self.out_shape) else self.out_shape
        kinds: Any = self.out_dtype
        if callable(kinds) and not isinstance(kinds, DType):
            kinds = kinds(*(DType(type.dtype) for type in types))
        self._has_several = bool(shapes) and isinstance(shapes[0], tuple | list)
        if not self._has_several:
            shapes = (shapes,)
        kinds = kinds if isinstance(kinds, tuple | list) else (kinds,) * len(shapes)
        if len(kinds) != len(shapes):
            raise OperandValueError(f"expected a dtype for each of {len(shapes)} results, got {len(kinds)}.")
        return tuple(TensorType(dtype_name(kind), tuple(shape)) for kind, shape in zip(kinds, shapes, strict=True))

    _has_several = False

    def _kernel(self, inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        # The function may write its arguments: it gets copies.
        results = self.func(*(np.array(array) for array in inputs))
        results = results if isinstance(results, tuple | list) and len(out) > 1 else (results,)
        if len(results) != len(out):
            raise OperandValueError(f"{attrs['func_name']}: expected {len(out)} results, got {len(results)}.")
        for result, place in zip(map(np.asarray, results), out, strict=True):
            if result.shape != place.shape:
                raise OperandValueError(
                    f"{attrs['func_name']}: expected a result of shape {place.shape}, got {result.shape}. Let "
                    "out_shape say what the function returns."
                )
            if result.dtype != place.dtype:
                kind = dtypes.dtype_from_numpy(place.dtype).name
                raise OperandValueError(
                    f"{attrs['func_name']}: expected a result of dtype {kind}, got {result.dtype}. Let out_dtype say "
                    "what the function returns."
                )
            np.copyto(place, result)


def custom_info_register(*reg_info: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that keeps with a function what is registered of it for other devices."""

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        own: Any = func
        own.reg_info = reg_info
        return func

    return register


publish(__name__)
