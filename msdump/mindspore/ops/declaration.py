"""One declaration per operator: a short function of PyTorch gives the operator with its kernel, shape rule and
gradient, the function of `mindspore.ops` and the operator class.

The function's first parameter is PyTorch, the others are those of MindSpore's function. Those that are
annotated as `Tensor` are operands; all others are attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, cast, common_dtype, execute, scalar_dtype
from msdump.mindspore.kernels.torch_operator import def_torch_operator, torch_of
from msdump.mindspore.ops.primitive import bound_arguments, class_of, functional_classes
from msdump.tensors import dtypes

# Annotations of a parameter that is an operand, that may be absent, that is a sequence of operands, that is a dtype.
_OPERAND, _OPTIONAL, _SEQUENCE, _DTYPE = (
    "Tensor",
    "Tensor | None",
    "Sequence[Tensor]",
    ("DType", "DType | None", "Type", "Type | None"),
)
# Attributes that say how operands of a node stand for parameters: which are absent, and how many a sequence has.
_ABSENT, _LENGTH = "absent", "operands"

# What becomes of operands before the operator sees them.
AS_IS, FLOAT, COMMON, COMMON_FLOAT = "as they are", "float", "of one dtype", "of one float dtype"


@dataclass(frozen=True)
class Declaration:
    """An operator as its function states it.

    function  of PyTorch and MindSpore's arguments
    operands  AS_IS; FLOAT: integers and bools become float32; COMMON: all get their common dtype; COMMON_FLOAT: both
    has_gradient  False: no gradient flows through it
    is_update     its result is written to the first operand, a parameter
    """

    op_type: str
    function: Callable[..., Any]
    operands: str
    has_gradient: bool
    is_update: bool = False

    @cached_property
    def signature(self) -> inspect.Signature:
        """Without the library."""
        full = inspect.signature(self.function)
        return full.replace(parameters=list(full.parameters.values())[1:])

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Parameters that are no operands."""
        kinds = (_OPERAND, _OPTIONAL, _SEQUENCE)
        return tuple(name for name, each in self.signature.parameters.items() if each.annotation not in kinds)

    @property
    def operand_names(self) -> tuple[str, ...]:
        """Parameters that are operands."""
        return tuple(name for name in self.signature.parameters if name not in self.attributes)

    @property
    def has_several_results(self) -> bool:
        """Whether it returns a tuple, be it of one tensor."""
        return str(self.signature.return_annotation).startswith(("tuple", "Sequence"))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The operator on tensors of the script.   Raises: TypeError for arguments that do not fit."""
        results = execute(self.op_type, *self.bound(*args, **kwargs))
        return results if self.has_several_results else results[0]

    def bound(self, *args: Any, **kwargs: Any) -> tuple[list[Tensor], dict[str, Any]]:
        """Operands, as the operator takes them, and attributes.   Raises: TypeError for arguments that do not fit."""
        tensors, attrs = self._split(bound_arguments(self.op_type, self.signature, args, kwargs))
        if self.is_update and not isinstance(tensors[0], Parameter):
            name, got = self.operand_names[0], type(tensors[0]).__name__
            raise TypeError(f"For '{self.op_type}', the argument '{name}' must be a Parameter, but got {got}.")
        return _prepared(tensors, self.operands), attrs

    def _split(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        operands: list[Any] = []
        attrs: dict[str, Any] = {}
        absent: list[str] = []
        for name, parameter in self.signature.parameters.items():
            value = arguments[name]
            if parameter.annotation == _SEQUENCE:
                attrs[_LENGTH] = len(value)
                operands.extend(value)
            elif name not in self.attributes:
                if value is None and parameter.annotation == _OPTIONAL:
                    absent.append(name)
                else:
                    operands.append(value)
            elif value is not None:
                attrs[name] = dtype_name(value) if parameter.annotation in _DTYPE else plain(value, name)
        if absent:
            attrs[_ABSENT] = tuple(absent)
        return operands, attrs

    def of_tensors(self, tensors: Sequence[Any], attrs: Mapping[str, Any]) -> Sequence[Any]:
        """The function on tensors of PyTorch."""
        result = self.function(torch_of(self.op_type), **dict(self._arguments(iter(tensors), attrs)))
        return result if isinstance(result, tuple | list) else (result,)

    def _arguments(self, remaining: Iterator[Any], attrs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        from msdump.tensors.torch_arrays import torch_dtype

        for name, parameter in self.signature.parameters.items():
            if parameter.annotation == _SEQUENCE:
                yield name, [next(remaining) for _ in range(attrs[_LENGTH])]
            elif name not in self.attributes:
                yield name, None if name in attrs.get(_ABSENT, ()) else next(remaining)
            elif parameter.annotation in _DTYPE and name in attrs:
                yield name, torch_dtype(attrs[name])
            else:
                yield name, attrs.get(name)


# By op type.
DECLARATIONS: dict[str, Declaration] = {}


def plain(value: Any, name: str) -> Any:
    """An attribute as a graph holds it: numbers, text, and tuples of them.

    Raises: GraphError for a tensor that has no value while the graph is traced; TypeError for anything else.
    """
    if isinstance(value, Tensor):
        return plain(value._concrete(f"the value of '{name}'", "Give a number"), name)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, DType):
        return dtype_name(value)
    if isinstance(value, tuple | list):
        return tuple(plain(item, name) for item in value)
    if isinstance(value, range):
        return tuple(value)
    if not isinstance(value, bool | int | float | complex | str):
        raise TypeError(f"{name}: expected a number, a text or a tuple of them, got {type(value).__name__}.")
    return value


def _prepared(operands: Sequence[Any], rule: str) -> list[Tensor]:
    """Operands as tensors, cast as the rule says. Numbers take the dtype of the tensors beside them."""
    if rule in (AS_IS, FLOAT):
        tensors = [as_tensor(operand) for operand in operands]
        return [_as_float(tensor) for tensor in tensors] if rule == FLOAT else tensors
    dtype = ""
    for operand in operands:
        if isinstance(operand, Tensor | np.ndarray | list | tuple):
            name = as_tensor(operand).type_.dtype
            dtype = common_dtype(dtype, name) if dtype else name
    for operand in operands:
        if isinstance(operand, bool | int | float) and dtype:
            dtype = scalar_dtype(dtype, operand)
    tensors = [
        as_tensor(each, dtype) if dtype and not isinstance(each, Tensor) else as_tensor(each) for each in operands
    ]
    tensors = [cast(tensor, dtype) if dtype else tensor for tensor in tensors]
    return [_as_float(tensor) for tensor in tensors] if rule == COMMON_FLOAT else tensors


def _as_float(tensor: Tensor) -> Tensor:
    kind = dtypes.dtype(tensor.type_.dtype).kind
    return tensor if kind in (dtypes.FLOAT, dtypes.COMPLEX) else cast(tensor, "float32")


def operator(
    op_type: str, *class_names: str, operands: str = AS_IS, init: str | None = None, has_gradient: bool = True,
    constants: Sequence[int] = (), is_sized_by_data: bool = False, is_update: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Decorator: the function becomes that of `mindspore.ops`; the operator and its class are made on the way.

    op_type           MindSpore's name of the operator, and of its class
    class_names       more names of the class
    operands          what becomes of operands before: AS_IS, FLOAT, COMMON or COMMON_FLOAT
    init              names of the attributes that the class takes when it is made, as text; None: all of them
    has_gradient      False: no gradient flows through it
    constants         numbers of the operands that have no gradient
    is_sized_by_data  only the data decide the shapes of its results
    is_update         its result is written to the first operand, which is a parameter; no gradient flows through it
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        flows = has_gradient and not is_update
        declaration = DECLARATIONS[op_type] = Declaration(op_type, function, operands, flows, is_update)
        def_torch_operator(
            op_type,
            declaration.of_tensors,
            declaration.operand_names,
            has_gradient=flows,
            constants=constants,
            is_sized_by_data=is_sized_by_data,
            is_update=is_update,
        )
        surface = _surface(declaration)
        made = declaration.attributes if init is None else tuple(init.split())
        functional_classes.update(dict.fromkeys((op_type, *class_names), class_of(op_type, surface, made)))
        return surface

    return declare


def _surface(declaration: Declaration) -> Callable[..., Any]:
    """The function of `mindspore.ops`."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return declaration.call(*args, **kwargs)

    own: Any = function
    own.__name__ = own.__qualname__ = declaration.function.__name__
    own.__doc__ = declaration.function.__doc__
    own.__module__ = declaration.function.__module__
    own.__signature__ = declaration.signature
    return function
