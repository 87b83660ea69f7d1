"""Converters that a script registers, and what they build GE operators with: `torchair.ge`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import fx

from msdump.errors import ConfigError, GraphError
from msdump.torchair.ge.builder import Builder, dtype_of_number, ge_number
from msdump.torchair.ge.graph import AtenCall, GeTensor
from msdump.torchair.ge.numbers import DataType
from msdump.torchair.ge.registry import NoConverterError, has_kernel, register_own

__all__ = ["Cast", "Clone", "Const", "Tensor", "TensorSpec", "custom_op", "register_fx_node_ge_converter"]

# A converter of a script: what it registers stays what it is.
Converter = TypeVar("Converter", bound=Callable[..., object])


class Tensor:
    """A tensor of the GE graph, as a converter of a script gets and returns it.   Source: TorchAir, ge.Tensor."""

    def __init__(self, tensor: GeTensor) -> None:
        self._tensor = tensor

    @property
    def index(self) -> int:
        """Which output of its operator it is."""
        return self._tensor.index

    @property
    def dtype(self) -> DataType:
        """Its dtype under GE's number."""
        return DataType(ge_number(_with_values(self).dtype))

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return len(_with_values(self).shape)


@dataclass(frozen=True)
class TensorSpec:
    """PyTorch's metadata of a result of the node.   Source: TorchAir, ge.TensorSpec.

    size  ints, and SymInts where they are open
    """

    dtype: DataType
    rank: int
    size: list[int | torch.SymInt]

    @staticmethod
    def of(value: object) -> Any:
        """Of a FakeTensor, or of each of several; None for anything else."""
        if isinstance(value, tuple | list):
            return [TensorSpec.of(item) for item in value]
        if not isinstance(value, torch.Tensor):
            return None
        return TensorSpec(DataType(ge_number(value.dtype)), value.dim(), list(value.shape))


@dataclass
class _Conversion:
    """One call of a converter.   pending: outputs of operators that no kernel computes; the node's results they are"""

    builder: Builder
    node: fx.Node
    pending: list[GeTensor] = field(default_factory=list)


_current: ContextVar[_Conversion | None] = ContextVar("conversion", default=None)


def register_fx_node_ge_converter(aten_op: object) -> Callable[[Converter], Converter]:
    """Decorator: the function converts calls of this operator, in place of any converter that there is.

    aten_op  an overload, such as `torch.ops.npu.my_op.default`
    The function gets the arguments of the call, `Tensor` in place of tensors, and `meta_outputs` if it has that
    parameter; it returns a Tensor, or a list of them, one per result. What it builds is in graph dumps. A GE operator
    that msdump has no kernel for takes its values from the PyTorch operator itself.
    Raises: ConfigError for anything but an overload.
    Source: TorchAir, register_fx_node_ge_converter.
    """
    if not isinstance(aten_op, torch._ops.OpOverload):
        raise ConfigError(
            "register_fx_node_ge_converter: expected an overload of an operator, such as "
            f"torch.ops.aten.sin.default, got {aten_op!r}."
        )

    def register(function: Converter) -> Converter:
        takes_meta = _takes_meta(function)

        def convert(ge: Builder, *args: object, **keywords: object) -> Any:
            return _converted(ge, function, takes_meta, args, keywords)

        register_own(str(aten_op), convert)
        return function

    return register


def custom_op(
    op_type: str,
    *args: object,
    inputs: Mapping[str, object] | None = None,
    outputs: Sequence[str | tuple[str, int]] | None = None,
    attrs: Mapping[str, object] | None = None,
    node_name: str | None = None,
) -> Any:
    """Append a GE operator; a Tensor, or a list of them where `outputs` has several.

    args     inputs and attributes by position; their names are those of the PyTorch operator's schema where it has as
             many, else `x0`, `attr0`, ...
    outputs  names; a tuple (name, count) for an output that is a list
    Edges:   None is an optional input that nothing feeds. With `args` the other three are not read.
    Raises:  ConfigError outside of a converter.
    Source:  TorchAir, ge.custom_op.
    """
    conversion = _conversion(op_type)
    if args:
        inputs, attrs = _by_position(conversion.node, args)
    fed = {name: item for key, value in (inputs or {}).items() for name, item in _flat_inputs(key, value)}
    names = _output_names(conversion.node, outputs)
    results = [
        Tensor(tensor) for tensor in _append(conversion, op_type, fed, dict(attrs or {}), names, node_name or "")
    ]
    return results[0] if len(results) == 1 else results


def Const(v: Any, dtype: int | None = None, node_name: str | None = None, readable: bool = True) -> Tensor:
    """Append a Const.   dtype: a DataType; None: INT64 for ints, FLOAT for floats.   Source: TorchAir, ge.Const."""
    builder = _conversion("Const").builder
    with_dtype = None if dtype is None else dtype_of_number(int(dtype))
    tensor = builder.const(v, with_dtype)
    if node_name:
        builder.graph.rename(tensor.op, node_name)
    return Tensor(tensor)


def Cast(x: object, *, dst_type: int, dependencies: Sequence[Tensor] = (), node_name: str | None = None) -> Tensor:
    """Append a Cast to a DataType.   Source: TorchAir, ge.Cast."""
    return _known("Cast", x, {"dst_type": int(dst_type)}, dependencies, node_name)


def Clone(x: object, *, dependencies: Sequence[Tensor] = (), node_name: str | None = None) -> Tensor:
    """Append a TensorMove, a copy.   Source: TorchAir, ge.Clone."""
    return _known("TensorMove", x, {}, dependencies, node_name)


def _known(op_type: str, x: object, attrs: Mapping[str, object], after: Sequence[Tensor], name: str | None) -> Tensor:
    tensor = _conversion(op_type).builder.op(op_type, {"x": _input(x)}, attrs, name=name or "")
    tensor.op.controls += [before._tensor.op for before in after if before._tensor.op not in tensor.op.producers]
    return Tensor(tensor)


def _conversion(what: str) -> _Conversion:
    conversion = _current.get()
    if conversion is None:
        raise ConfigError(
            f"torchair.ge ({what}): expected a call inside of a converter, got one outside. Operators are built while "
            "a graph is converted: see register_fx_node_ge_converter."
        )
    return conversion


# -- a call of a converter -----------------------------------------------------------------------------------------


def _converted(
    builder: Builder, function: Callable[..., Any], takes_meta: bool, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    node = builder.node
    assert node is not None
    conversion = _Conversion(builder, node)
    given, named = fx.node.map_aggregate((args, keywords), _wrapped)
    extra = {"meta_outputs": TensorSpec.of(node.meta.get("val"))} if takes_meta else {}
    token = _current.set(conversion)
    try:
        returned = function(*given, **dict(named), **extra)
    except NotImplementedError as error:
        raise NoConverterError(str(error)) from error
    except (ConfigError, GraphError):
        raise
    except Exception as error:
        raise GraphError(
            f"%{node.name} ({node.target}): expected its registered converter to build operators, got "
            f"{type(error).__name__}: {error}."
        ) from error
    finally:
        _current.reset(token)
    result = fx.node.map_aggregate(returned, lambda item: item._tensor if isinstance(item, Tensor) else item)
    _settle(conversion, args, keywords, result)
    return result


def _wrapped(item: object) -> Any:
    return Tensor(item) if isinstance(item, GeTensor) else item


def _settle(conversion: _Conversion, args: tuple[object, ...], keywords: dict[str, object], result: object) -> None:
    """Outputs that no kernel computes are what the PyTorch operator gives."""
    node = conversion.node
    promised: Any = node.meta["val"]
    has_many = isinstance(promised, list | tuple)
    results = list(result) if isinstance(result, list | tuple) else [result]
    values = list(promised) if has_many else [promised]
    for tensor in conversion.pending:
        matches = [index for index, item in enumerate(results[: len(values)]) if item is tensor]
        if not matches or not isinstance(values[matches[0]], torch.Tensor):
            raise GraphError(
                f"%{node.name} ({node.target}): expected output {tensor.index} of GE operator {tensor.op.type} to be a "
                "result of the node, which gives its values, got one that the converter does not return. Return it."
            )
        tensor.fake = values[matches[0]]
        call = tensor.op.exact or AtenCall(node, args, keywords, ())
        tensor.op.exact = AtenCall(node, args, keywords, (*call.indices, matches[0] if has_many else None))


def _append(
    conversion: _Conversion,
    op_type: str,
    inputs: dict[str, Any],
    attrs: Mapping[str, object],
    names: list[str],
    name: str,
) -> tuple[GeTensor, ...]:
    builder = conversion.builder
    if has_kernel(op_type):
        try:
            return builder.multi_op(op_type, inputs, names, attrs, name)
        except (TypeError, GraphError):
            # Another interface than the kernel's: a type of the script's own under a name that GE has.
            pass
    op = builder.foreign_op(op_type, inputs, attrs, names, name)
    conversion.pending += op.outputs
    return op.outputs


# -- arguments -----------------------------------------------------------------------------------------------------


def _takes_meta(function: Callable[..., object]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(item.name == "meta_outputs" or item.kind is item.VAR_KEYWORD for item in parameters)


def _with_values(tensor: Tensor) -> GeTensor:
    conversion = _current.get()
    if conversion is not None and any(tensor._tensor is item for item in conversion.pending):
        raise GraphError(
            f"%{conversion.node.name} ({conversion.node.target}): expected a GE operator that msdump has a kernel for, "
            f"got {tensor._tensor.op.type}, whose output is read before it is returned. Return "
            "what the operator gives, or build it of operators that msdump computes."
        )
    return tensor._tensor


def _input(value: object) -> Any:
    return _with_values(value) if isinstance(value, Tensor) else value


def _flat_inputs(name: str, value: object) -> list[tuple[str, object]]:
    """An input that is a list of tensors has a number behind its name."""
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return [(f"{name}{index}", _input(item)) for index, item in enumerate(value)]
    return [] if isinstance(value, list | tuple) and not value else [(name, _input(value))]


def _by_position(node: fx.Node, args: tuple[object, ...]) -> tuple[dict[str, object], dict[str, object]]:
    target: Any = node.target
    schema = target._schema.arguments
    inputs: dict[str, object] = {}
    attrs: dict[str, object] = {}
    for index, value in enumerate(args):
        is_input = value is None or isinstance(value, Tensor)
        is_input = is_input or (isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value))
        group, kind = (inputs, "x") if is_input else (attrs, "attr")
        group[schema[index].name if len(schema) == len(args) else f"{kind}{len(group)}"] = value
    return inputs, attrs


def _output_names(node: fx.Node, outputs: Sequence[str | tuple[str, int]] | None) -> list[str]:
    if outputs is None:
        count = len(node.meta["val"]) if isinstance(node.meta.get("val"), list | tuple) else 1
        return ["y"] if count == 1 else [f"y{index}" for index in range(count)]
    names: list[str] = []
    for output in outputs:
        if isinstance(output, str):
            names.append(output)
        else:
            names += [f"{output[0]}{index}" for index in range(output[1])]
    return names
