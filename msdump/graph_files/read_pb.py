"""Read a graph file of a synchronous dump (debugger.ModelProto), ours or MindSpore's, into plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from msdump import dtypes
from msdump.errors import FormatError
from msdump.graph_files.source_line import SourceLine, parse_source_line
from msdump.graph_files.tensor_summary import TensorSummary
from msdump.plain_files import GRAPH_BYTES, read_plain

if TYPE_CHECKING:
    from msdump._proto import debug_graph_pb2 as pb

# Nodes that are never launched: they have no data file and no line in the execution order.
BOOKKEEPING = frozenset({"Depend", "Load", "MakeTuple", "Return", "StopGradient", "TupleGetItem", "UpdateState"})

# Attribute of the node that gathers a graph's outputs: whose gradient each one is, "" for none. Only msdump writes it.
GRADIENT_OF = "gradient_of"


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One node.

    name     its number, by which others name it as an input
    inputs   numbers of nodes, names of parameters, keys of constants
    outputs  empty when its output is no tensor (a monad)
    attrs    without the operand names, which are in input_names and output_names
    source   the user's lines, outermost first
    """

    name: str
    op_type: str
    scope: str
    full_name: str
    inputs: tuple[str, ...]
    outputs: tuple[TensorSummary, ...]
    attrs: Mapping[str, Any]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    source: tuple[SourceLine, ...]

    @property
    def is_kernel(self) -> bool:
        return self.op_type not in BOOKKEEPING


@dataclass(frozen=True, slots=True)
class ParameterSummary:
    """A graph input: a parameter or a data input. The file does not tell them apart."""

    name: str
    type: TensorSummary


@dataclass(frozen=True, slots=True)
class ConstantSummary:
    """Constant `cst{N+1}`, full name `Default--data-{N}`; `type` is None and `value` set when it is no tensor."""

    key: str
    full_name: str
    type: TensorSummary | None
    value: Any


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """All that a graph file says. `nodes` is in execution order, `outputs` names nodes, parameters or constants."""

    name: str
    root_name: str
    parameters: tuple[ParameterSummary, ...]
    constants: tuple[ConstantSummary, ...]
    nodes: tuple[NodeSummary, ...]
    outputs: tuple[str, ...]

    @property
    def kernels(self) -> tuple[NodeSummary, ...]:
        """Nodes that are launched, in execution order."""
        return tuple(node for node in self.nodes if node.is_kernel)

    def types_by_name(self) -> dict[str, tuple[TensorSummary, ...]]:
        """Tensors behind every name that may stand in `NodeSummary.inputs`; several for the output of a tuple."""
        types: dict[str, tuple[TensorSummary, ...]] = {p.name: (p.type,) for p in self.parameters}
        types.update({c.key: (c.type,) if c.type is not None else () for c in self.constants})
        types.update({node.name: node.outputs for node in self.nodes})
        return types


def read_model(source: str | PathLike[str] | bytes) -> GraphSummary:
    """Read a file, or the bytes of one.

    Raises: FormatError when the bytes are not a ModelProto with a graph; OSError when the file cannot be read.
    """
    from google.protobuf.message import DecodeError

    from msdump._proto import debug_graph_pb2

    data, where = (source, "graph") if isinstance(source, bytes) else (read_plain(source, GRAPH_BYTES), str(source))
    model = debug_graph_pb2.ModelProto()
    try:
        model.ParseFromString(data)
        if not model.HasField("graph"):
            raise FormatError(f"{where}: expected a debugger.ModelProto with a graph, got none in {len(data)} bytes.")
        return _graph(model.graph)
    except (DecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{where}: expected a debugger.ModelProto, got {len(data)} bytes that do not parse ({error}). "
            "Is the file cut short, or no graph file?"
        ) from error


def _graph(proto: pb.GraphProto) -> GraphSummary:
    return GraphSummary(
        _text(proto.name),
        _text(proto.root_name),
        tuple(ParameterSummary(_text(p.name), _tensor(p.type)) for p in proto.parameters),
        tuple(_constant(constant) for constant in proto.const_vals),
        tuple(_node(node) for node in proto.node),
        tuple(_text(output.name) for output in proto.outputs),
    )


def _node(proto: pb.NodeProto) -> NodeSummary:
    attrs = {_text(attribute.name): _value(attribute.value) for attribute in proto.attribute}
    input_names, output_names = (_names(attrs.pop(key, ())) for key in ("input_names", "output_names"))
    lines = [parse_source_line(text) for text in reversed(_text(proto.source_address).split("\n"))]
    return NodeSummary(
        _text(proto.name),
        _text(proto.op_type),
        _text(proto.scope),
        _text(proto.full_name),
        tuple(_text(edge.name) for edge in proto.input),
        _tensors(proto.output_type),
        attrs,
        input_names,
        output_names,
        tuple(line for line in lines if line is not None),
    )


def _text(value: object) -> str:
    """A string field: protobuf hands over one that is no UTF-8 as bytes.   Raises: UnicodeDecodeError for these."""
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in value) if isinstance(value, (tuple, list)) else (str(value),)


def _constant(proto: pb.NamedValueProto) -> ConstantSummary:
    from msdump._proto import debug_graph_pb2

    key, full_name = _text(proto.key), _text(proto.full_name)
    if proto.value.dtype != debug_graph_pb2.DT_TENSOR:
        return ConstantSummary(key, full_name, None, _value(proto.value))
    tensor = proto.value.tensor_val
    # MindSpore writes no tensor_val; an empty shape then means "not said", not "0-d".
    shape = tuple(tensor.dims) if proto.value.HasField("tensor_val") else None
    return ConstantSummary(key, full_name, TensorSummary(_dtype_name(tensor.data_type), shape), None)


def _tensors(proto: pb.TypeProto) -> tuple[TensorSummary, ...]:
    from msdump._proto import debug_graph_pb2

    if proto.data_type == debug_graph_pb2.DT_TUPLE:
        return tuple(_tensor(item) for item in proto.sequence_type.elem_types)
    return (_tensor(proto),) if proto.data_type == debug_graph_pb2.DT_TENSOR else ()


def _tensor(proto: pb.TypeProto) -> TensorSummary:
    tensor = proto.tensor_type
    shape = tuple(dim.size for dim in tensor.shape.dim) if tensor.HasField("shape") else None
    return TensorSummary(_dtype_name(tensor.elem_type), shape)


def _dtype_name(number: int) -> str | None:
    from msdump._proto import debug_graph_pb2

    if number == debug_graph_pb2.DT_BASE_FLOAT:
        return "bfloat16"
    row = dtypes.BY_DEBUG_NUMBER.get(number)
    return row.name if row is not None and row.numpy_type is not None else None


def _value(proto: pb.ValueProto) -> Any:
    """Plain Python value.   Edges: None for "undefined" and for kinds that have no plain form (tensors, graphs)."""
    from msdump._proto import debug_graph_pb2

    kind = proto.dtype
    if kind == debug_graph_pb2.DT_BOOL:
        return proto.bool_val
    if debug_graph_pb2.DT_INT8 <= kind <= debug_graph_pb2.DT_INT64:
        return proto.int_val
    if debug_graph_pb2.DT_UINT8 <= kind <= debug_graph_pb2.DT_UINT64:
        return proto.uint_val
    if debug_graph_pb2.DT_FLOAT16 <= kind <= debug_graph_pb2.DT_FLOAT64:
        return proto.double_val if proto.HasField("double_val") else proto.float_val
    if kind == debug_graph_pb2.DT_STRING:
        return _text(proto.str_val)
    if kind == debug_graph_pb2.DT_TYPE:
        return _type_name(proto.type_val)
    if kind == debug_graph_pb2.DT_TUPLE:
        return tuple(_value(item) for item in proto.values)
    if kind == debug_graph_pb2.DT_LIST:
        return [_value(item) for item in proto.values]
    return None


def _type_name(proto: pb.TypeProto) -> str | None:
    from msdump._proto import debug_graph_pb2

    number = proto.data_type
    if number == debug_graph_pb2.DT_TENSOR:
        number = proto.tensor_type.elem_type
    return "string" if number == debug_graph_pb2.DT_STRING else _dtype_name(number)
