"""One operator of a GE graph alone, on given arrays: the text of a graph dump has its attributes.

graph = GraphText.read("dynamo_optimized_graph_1_rank_0_pid_7_ts_20260101000000000000.txt")
run_kernel("MatMulV2", [x1, x2, None, None], {"transpose_x2": True})
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from msdump.errors import ConfigError, DtypeError, FormatError, MsdumpError, did_you_mean
from msdump.formats.paths.acl import safe_piece
from msdump.graph._proto import ge_ir_pb2
from msdump.graph.ge import ge_definition
from msdump.storage.plain import readable
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.torch_arrays import array_like, tensor_of
from msdump.torchair.ge.graph import CONST, DATA
from msdump.torchair.ge.registry import has_kernel, kernel_of

# Attributes that are the number of a dtype.
_DTYPE_ATTRIBUTES = ("dst_type", "dtype", "output_dtype", "output_type", "y_dtype")
UNKNOWN_SIZE = -1
# What TorchAir tells no graph: which of two formulas the device takes.
_FORMULAS = {"approximate": ("none", "tanh")}
_ROW_BY_NAME = {row.ge_name: row for row in dtypes.TABLE if row.ge_number is not None}


@dataclass(frozen=True, slots=True)
class TextOp:
    """An operator of the text.

    inputs   name of the interface -> name of the operator that makes it; "" where nothing feeds an optional one
    types    name of the interface -> dtype and sizes, -1 for an open one
    attrs    bool, int, float, str, and lists of these
    """

    name: str
    type: str
    inputs: Mapping[str, str]
    types: Mapping[str, tuple[str, tuple[int, ...]]]
    attrs: Mapping[str, Any]


class GraphText:
    """A graph as the text of a graph dump has it.

    constants   values of Consts, and of shapes that the text tells, by name; Python's numbers where it says such
    """

    def __init__(self, definition: Any, where: str) -> None:
        self.where = where
        self.name = str(definition.name)
        self._originals: dict[str, list[str]] = {}
        self.ops: dict[str, TextOp] = {}
        self.constants: dict[str, Any] = {}
        for op in definition.op:
            if op.type == CONST:
                self.constants[str(op.name)] = _constant(op, where)
            elif op.type != DATA:
                self.ops[str(op.name)] = known = _text_op(op)
                sizes = next(iter(known.types.values()), ("", ()))[1]
                if known.type == "Shape" and UNKNOWN_SIZE not in sizes:
                    self.constants[known.name] = np.array(sizes, np.int64)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> GraphText:
        """Raises: FormatError for what is no such text."""
        with readable(path):
            return cls(ge_definition(path), os.fspath(path))

    def find(self, names: Iterable[str], op_type: str) -> TextOp:
        """Raises: ConfigError where the graph has no such operator, or one of another type."""
        wanted = [name for name in names if name]
        safe = {safe_piece(name) for name in wanted}
        for op in self.ops.values():
            if op.name in wanted or safe_piece(op.name) in safe:
                if op.type == op_type:
                    return op
                raise ConfigError(
                    f"{self.where}: expected {op.name} of type {op_type}, got {op.type}: another graph's?"
                )
        advice = did_you_mean(wanted[0] if wanted else op_type, self.ops)
        raise ConfigError(
            f"{self.where}: expected the graph that was dumped, got one without an operator "
            f"{wanted[0] if wanted else op_type}. {advice}".rstrip()
        )

    def arguments(self, op: TextOp, dumped: Sequence[Array]) -> list[Any]:
        """What the operator reads, in the order of its interface: arrays of the dump, values of the text, None.

        dumped  its inputs in the dump, which shows no sizes and no words

        Raises: ConfigError where an input is in neither.
        """
        fed = [name for name, maker in op.inputs.items() if maker]
        kernel = kernel_of(op.type)
        left = len(fed) - len(dumped)
        # Those that the dump does not show: first what the kernel takes as Python's values, then other constants.
        constant = [name for name in fed if op.inputs[name] in self.constants]
        unshown = [name for name in constant if name in kernel.host]
        unshown += [name for name in reversed(constant) if name not in unshown]
        shown = [name for name in fed if name not in unshown[:left]] if left >= 0 else []
        fits = len(shown) == len(dumped) and all(
            _fits(op.types[name], array) for name, array in zip(shown, dumped, strict=True)
        )
        if not fits:
            raise ConfigError(
                f"expected the inputs {', '.join(fed)} as {self.where} has them, got {len(dumped)} in the dump: sizes "
                "that only a run tells are in neither, and another graph has others."
            )
        arrays = dict(zip(shown, dumped, strict=True))
        return [
            None if not maker else self._python(op, name, kernel.host | kernel.numbers, arrays)
            for name, maker in op.inputs.items()
        ]

    def _python(self, op: TextOp, name: str, python: frozenset[str], arrays: Mapping[str, Array]) -> Any:
        known = self.constants.get(op.inputs[name])
        is_number = known is not None and not isinstance(known, np.ndarray)
        if name in python and known is not None and (is_number or name in kernel_of(op.type).host):
            return known.tolist() if isinstance(known, np.ndarray) else known
        if name in arrays:
            return arrays[name].tolist() if name in kernel_of(op.type).host else arrays[name]
        return known


def takes_no_attributes(op_type: str, inputs: int) -> bool:
    """Whether an operator of this type is known by its inputs, all of them tensors."""
    if not has_kernel(op_type):
        return False
    kernel = kernel_of(op_type)
    if kernel.host or kernel.mutates:
        return False
    try:
        parameters = inspect.signature(kernel.function).parameters.values()
    except ValueError:  # a function of PyTorch's own
        return 0 < inputs <= 2
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(parameters) == inputs and all(parameter.kind in by_place for parameter in parameters)


def variants(op_type: str, attrs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The attributes, once for each formula that the operator may have been computed by, the likeliest first.

    Raises: ConfigError for an operator that no kernel stands for, and for attributes that the text lacks.
    """
    try:
        parameters = inspect.signature(kernel_of(op_type).function).parameters.values()
    except ValueError:  # a function of PyTorch's own
        return [dict(attrs)]
    except MsdumpError as error:
        raise ConfigError(f"{op_type}: no kernel of PyTorch stands for it.") from error
    only = inspect.Parameter.KEYWORD_ONLY
    missing = [
        one.name for one in parameters if one.kind is only and one.default is one.empty and one.name not in attrs
    ]
    if not missing:
        return [dict(attrs)]
    if missing[0] in _FORMULAS and len(missing) == 1:
        return [{**attrs, missing[0]: value} for value in _FORMULAS[missing[0]]]
    raise ConfigError(f"{op_type}: expected its attributes {', '.join(missing)} in the text, got none.")


def run_kernel(op_type: str, arguments: Sequence[Any], attrs: Mapping[str, Any], precision: str = "") -> list[Array]:
    """Outputs of a GE operator, on copies of its inputs.

    arguments  in the order of the interface: arrays, Python's numbers and lists, None
    precision  "float32" or "float64": what all floating-point arrays and dtypes become; "" leaves them

    Raises: ConfigError for what PyTorch refuses, and for an operator that draws random numbers.
    """
    before = torch.get_rng_state()
    try:
        kernel = kernel_of(op_type)
        given = [_argument(value, precision) for value in arguments]
        keywords = {name: _attribute(name, value, precision) for name, value in attrs.items()}
        with torch.no_grad():
            result = kernel.function(*given, **keywords)
        has_drawn = not torch.equal(before, torch.get_rng_state())
        outputs = [array_like(tensor) for tensor in _tensors_in(result)]
    except (
        MsdumpError, RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, NotImplementedError,
        MemoryError, AssertionError,
    ) as error:  # fmt: skip
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigError(f"{op_type}: torch refuses it: {first}") from error
    finally:
        torch.set_rng_state(before)
    if has_drawn:
        raise ConfigError(
            f"{op_type}: it draws random numbers, which do not follow from its inputs: it cannot be replayed."
        )
    return outputs


def _argument(value: Any, precision: str) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    tensor = tensor_of(np.array(value, order="C"))
    return tensor.to(getattr(torch, precision)) if precision and _is_narrow(tensor.dtype) else tensor


def _is_narrow(dtype: Any) -> bool:
    return bool(dtype.is_floating_point and dtype != torch.float64)


def _attribute(name: str, value: Any, precision: str) -> Any:
    row = dtypes.BY_GE_NUMBER.get(value) if name in _DTYPE_ATTRIBUTES and isinstance(value, int) else None
    if precision and row is not None and row.is_float and row.name != "float64":
        return dtypes.dtype(precision).ge_number
    return value


def _tensors_in(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [tensor for item in result for tensor in _tensors_in(item)] if isinstance(result, list | tuple) else []


def _fits(type: tuple[str, tuple[int, ...]], array: Array) -> bool:
    dtype, sizes = type
    is_same = dtype in ("", dtypes.dtype_from_numpy(array.dtype).name)
    same_sizes = len(sizes) == array.ndim and all(
        size in (UNKNOWN_SIZE, actual) for size, actual in zip(sizes, array.shape, strict=False)
    )
    return is_same and same_sizes


# -- messages ----------------------------------------------------------------------------------------------------------


def _dtype_of(descriptor: Any) -> str:
    row = _ROW_BY_NAME.get(_proto_dtype(descriptor.dtype))
    return "" if row is None else row.name


def _proto_dtype(number: int) -> str:
    return str(ge_ir_pb2.DESCRIPTOR.enum_types_by_name["DataType"].values_by_number[number].name)


def _text_op(op: Any) -> TextOp:
    names = [str(descriptor.name) for descriptor in op.input_desc]
    makers = [str(edge).rpartition(":")[0] for edge in op.input if not str(edge).endswith(":-1")]
    types = {str(one.name): (_dtype_of(one), tuple(int(size) for size in one.shape.dim)) for one in op.input_desc}
    attrs = {str(name): _plain(value) for name, value in op.attr.items() if not name.startswith("_")}
    return TextOp(str(op.name), str(op.type), dict(zip(names, makers, strict=False)), types, attrs)


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "list":
        return next((list(getattr(value.list, name)) for name in ("i", "f", "b") if len(getattr(value.list, name))), [
            text.decode(errors="replace") for text in value.list.s
        ])  # fmt: skip
    if kind == "list_list_int":
        return [list(one.list_i) for one in value.list_list_int.list_list_i]
    if kind == "dt":
        row = _ROW_BY_NAME.get(_proto_dtype(value.dt))
        return None if row is None else row.ge_number
    if kind == "s":
        return value.s.decode(errors="replace")
    return getattr(value, kind) if kind in ("i", "f", "b") else None


def _constant(op: Any, where: str) -> Any:
    """A Python number where the text says one: in more digits than a short dtype has."""
    tensor = op.attr["value"].t
    shape = tuple(int(size) for size in tensor.desc.shape.dim)
    if not shape and "_readable_value" in op.attr:
        text = op.attr["_readable_value"].s.decode(errors="replace")
        if text in ("True", "False"):
            return text == "True"
        for number in (int, float):
            try:
                return number(text)
            except (ValueError, OverflowError):
                continue
    try:
        row = dtypes.dtype(_dtype_of(tensor.desc))
        return np.frombuffer(bytes(tensor.data), row.numpy).reshape(shape)
    except (ValueError, KeyError, DtypeError) as error:
        raise FormatError(f"{where}: expected the data of {op.name} as its dtype and shape say, got others.") from error
