"""Nodes of a model as they run here: constants taken out, names unique, what subgraphs read made plain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import onnx
from onnx import numpy_helper

from msdump.errors import FormatError, GraphError, TruncatedFileError
from msdump.frontends.onnx.ort_values import dtype_name
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.packing import unpack

# Where ATC writes which operators a fused one stands for.   Source: GE, `_datadump_original_op_names`.
ORIGINAL_NAMES = "_datadump_original_op_names"
# Constants up to this size may be shapes, axes, counts, which inference reads.
WHOLE_ELEMENTS = 1024

_Message = TypeVar("_Message", onnx.TensorProto, onnx.NodeProto)


@dataclass(frozen=True, slots=True)
class ModelConstant:
    """A tensor that the model brings along.

    proto   without its data when there are many
    array   None for strings and packed dtypes, which `proto` holds
    """

    name: str
    proto: onnx.TensorProto
    array: Array | None

    @property
    def elem_type(self) -> int:
        return int(self.proto.data_type)


@dataclass(frozen=True, slots=True)
class ModelNode:
    """One operator.

    name       unique in the model: its own, else that of its first output
    originals  other names that it went by: its own where that was taken, those of operators fused into it
    captured   names that its subgraphs read from outside
    loops      as of `graph.Node`
    """

    name: str
    originals: tuple[str, ...]
    proto: onnx.NodeProto
    captured: tuple[str, ...]
    loops: tuple[int, ...] = ()

    @property
    def op_type(self) -> str:
        return str(self.proto.op_type)

    @property
    def has_subgraphs(self) -> bool:
        return any(True for _ in subgraphs(self.proto))

    @property
    def inner_operators(self) -> int:
        """How many operators its subgraphs hold, those of nested ones included."""
        return sum(_operators_of(graph) for graph in subgraphs(self.proto))

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of all it reads, each once: operands, then what its subgraphs capture."""
        return tuple(dict.fromkeys(name for name in (*self.proto.input, *self.captured) if name))

    @property
    def makes(self) -> tuple[str, ...]:
        """Names of its outputs, without those that it leaves out."""
        return tuple(name for name in self.proto.output if name)

    @property
    def where(self) -> str:
        """For messages."""
        return f"%{self.name} = {self.op_type}({', '.join(self.proto.input)})"


def model_constants(graph: onnx.GraphProto) -> dict[str, ModelConstant]:
    """Initializers and results of Constant nodes, by name.   Raises: FormatError for data that do not fit."""
    constants = {tensor.name: _constant(tensor.name, tensor) for tensor in graph.initializer}
    for sparse in graph.sparse_initializer:
        raise FormatError(
            f"initializer {sparse.values.name}: expected a dense tensor, got a sparse one. Export it as a dense one."
        )
    for node in graph.node:
        if _is_constant(node):
            constants[node.output[0]] = _constant(node.output[0], _value_of(node))
    return constants


@dataclass(frozen=True, slots=True)
class Scope:
    """Where nodes stand: in the model, or in a subgraph of one of its operators.

    prefix   of the names of the nodes in a subgraph: `detect/then_branch/`
    loops    lengths of the beginnings of that prefix which end with the body of a loop
    taken    names of operators so far, in all of the model
    """

    prefix: str = ""
    loops: tuple[int, ...] = ()
    taken: set[str] = field(default_factory=set)

    def name(self, own: str) -> str:
        """Of an operator here. Those of PyTorch's exporter begin with a slash: one is enough."""
        return self.prefix + (own.lstrip("/") if self.prefix else own)

    def below(self, node: ModelNode, label: str, is_loop: bool) -> Scope:
        """Of a subgraph of a node of the same model."""
        prefix = f"{node.name}/{label}/"
        return Scope(prefix, (*node.loops, len(prefix)) if is_loop else node.loops, self.taken)


def model_nodes(graph: onnx.GraphProto, known: Iterable[str], scope: Scope) -> list[ModelNode]:
    """All nodes but Constants, in the order of the file, which is one they can run in.

    known   names that are there before the first node runs
    scope   those of the model come before those of its subgraphs, so that these take no name of theirs
    Raises: GraphError when a node reads what no node before it makes.
    """
    available = set(known)
    taken = scope.taken
    # Names in the file win over generated names.
    own = {scope.name(node.name) for node in graph.node if node.name}
    nodes: list[ModelNode] = []
    for proto in graph.node:
        if _is_constant(proto):
            available.add(proto.output[0])
            continue
        base = scope.name(proto.name or next((name for name in proto.output if name), proto.op_type))
        name = _free_name(base, taken, own if not proto.name else set())
        taken.add(name)
        renamed = (base,) if name != base else ()
        originals = (*renamed, *_fused_names(proto))
        node = ModelNode(name, originals, _copy(proto), tuple(captured_names(proto)), scope.loops)
        for read in node.reads:
            if read not in available:
                raise GraphError(
                    f"{node.where}: expected operands that the graph or a node before makes, got {read}. "
                    "Is the file whole, and are its nodes in order?"
                )
        available.update(node.makes)
        nodes.append(node)
    return nodes


def captured_names(node: onnx.NodeProto) -> list[str]:
    """Names that the subgraphs of a node read and do not make, in the order of their first use."""
    return list(dict.fromkeys(name for graph in subgraphs(node) for name in captured_names_of(graph)))


def captured_names_of(graph: onnx.GraphProto) -> list[str]:
    """Names that a subgraph reads and does not make, in the order of their first use."""
    captured: dict[str, None] = {}
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        for name in (*node.input, *captured_names(node)):
            if name and name not in own:
                captured[name] = None
        own.update(node.output)
    for value in graph.output:
        if value.name not in own:
            captured[value.name] = None
    return list(captured)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The bodies of an If, Loop or Scan."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def _operators_of(graph: onnx.GraphProto) -> int:
    own = [node for node in graph.node if not _is_constant(node)]
    return len(own) + sum(_operators_of(inner) for node in own for inner in subgraphs(node))


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in ("", "ai.onnx") and _value_name(node) != "sparse_value"


def _value_name(node: onnx.NodeProto) -> str:
    return str(node.attribute[0].name) if len(node.attribute) else ""


def _value_of(node: onnx.NodeProto) -> onnx.TensorProto:
    value = onnx.helper.get_attribute_value(node.attribute[0])
    if isinstance(value, onnx.TensorProto):
        return value
    numpy_types = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    dtype = numpy_types.get(_value_name(node), np.object_)
    return numpy_helper.from_array(np.array(value, dtype))


def _constant(name: str, proto: onnx.TensorProto) -> ModelConstant:
    dtype = dtype_name(proto.data_type)
    if dtype is None:
        return ModelConstant(name, _copy(proto), None)
    try:
        array = np.ascontiguousarray(_elements(proto, dtype)).reshape(tuple(proto.dims))
    except (ValueError, TruncatedFileError) as error:
        raise FormatError(
            f"initializer {name}: expected data for shape {list(proto.dims)}, got {error}. Is the file whole?"
        ) from error
    # Old releases of onnx widen what numpy has no dtype of its own for.
    array = array.astype(dtypes.dtype(dtype).numpy, copy=False)
    array.flags.writeable = False
    if array.size <= WHOLE_ELEMENTS:
        return ModelConstant(name, _copy(proto), array)
    return ModelConstant(name, onnx.TensorProto(name=name, data_type=proto.data_type, dims=proto.dims), array)


def _elements(proto: onnx.TensorProto, dtype: str) -> Array:
    """The elements of a tensor. Those of 8 bits and less are read here: onnx 1.16 misreads float8, widens the rest."""
    is_narrow = dtypes.dtype(dtype).bits < 8 or dtype.startswith("float8")
    if not is_narrow:
        return np.asarray(numpy_helper.to_array(proto))
    codes = np.asarray(proto.int32_data, np.int32).astype(np.uint8)
    return unpack(np.frombuffer(proto.raw_data, np.uint8) if proto.raw_data else codes, dtype, tuple(proto.dims))


def _copy(proto: _Message) -> _Message:
    """A message of its own: part of another one, it would keep all of that in memory, weights included."""
    copy = type(proto)()
    copy.CopyFrom(proto)
    return copy


def _free_name(base: str, taken: set[str], reserved: set[str]) -> str:
    if base not in taken and base not in reserved:
        return base
    number = 1
    while (name := f"{base}_{number}") in taken or name in reserved:
        number += 1
    return name


def _fused_names(node: onnx.NodeProto) -> tuple[str, ...]:
    """Names in the node's metadata: a JSON list, or separated by commas."""
    text = next((entry.value for entry in node.metadata_props if entry.key == ORIGINAL_NAMES), "")
    try:
        names = json.loads(text)
    except ValueError:
        names = text.split(",")
    if not isinstance(names, list):
        names = [names]
    return tuple(str(name).strip() for name in names if str(name).strip())
