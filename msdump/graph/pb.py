"""`ms_output_trace_code_graph_{graph_id}.pb`: a graph as debugger.ModelProto; writer and reader.

Data without a field in the format, and expectations of its readers, are handled like this:
- an output of a node with several is used through a TupleGetItem node, several graph outputs through MakeTuple;
- constants carry dtype and shape, no data: the data are in the `constants` folder;
- bfloat16 has no number of its own and is DT_BASE_FLOAT; complex and narrow floats are DT_UNDEFINED;
- a float attribute that float32 cannot hold is DT_FLOAT64 with `double_val`, and `float_val` for old readers.

Source: debug_graph.proto; MindInsight's reader of these files (spelling of source lines, dtypes it accepts).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.errors import FormatError, GraphError
from msdump.graph.graph import Graph, Node, Value
from msdump.graph.listing import listed_parameters, shown_attrs, spare_op_ids
from msdump.graph.types import SourceLine, TensorSummary, TensorType, format_source_line, parse_source_line
from msdump.storage.files import read_file
from msdump.storage.plain import GRAPH_BYTES
from msdump.tensors import dtypes

if TYPE_CHECKING:
    from msdump.graph._proto import debug_graph_pb2 as pb

IR_VERSION = 1


def model_bytes(graph: Graph) -> bytes:
    """The whole file. Equal graphs give equal bytes.

    Raises: GraphError for an attribute or a number that the format cannot hold.
    """
    from msdump.graph._proto import debug_graph_pb2

    model = debug_graph_pb2.ModelProto(ir_version=IR_VERSION)
    _GraphWriter(graph, model.graph).write()
    return model.SerializeToString(deterministic=True)


def debug_number(dtype: str) -> int:
    """Number of a dtype of tensors in the file.   Edges: 0 (DT_UNDEFINED) for one without a number."""
    from msdump.graph._proto import debug_graph_pb2

    if dtype == "bfloat16":
        return debug_graph_pb2.DT_BASE_FLOAT
    return dtypes.dtype(dtype).debug_number or debug_graph_pb2.DT_UNDEFINED


class _GraphWriter:
    """One walk over a graph; lives while its GraphProto is filled."""

    def __init__(self, graph: Graph, proto: pb.GraphProto) -> None:
        self.graph = graph
        self.proto = proto
        self.parameters = listed_parameters(graph)
        self.name_by_value = {value.id: value.name for value in self.parameters}
        self.name_by_value.update({value.id: f"cst{n}" for n, value in enumerate(graph.constants, 1)})
        self.used = {value.id for node in graph.nodes for value in node.inputs} | {v.id for v in graph.outputs}
        self.op_ids = spare_op_ids(graph)
        self.name_by_index: dict[int, str] = {}
        """Item index -> constant that holds it, for TupleGetItem."""

    def write(self) -> None:
        self.proto.name = self.graph.name
        self.proto.root_name = str(self.graph.graph_id)
        for value in self.parameters:
            parameter = self.proto.parameters.add(name=value.name)
            fill_type(parameter.type, [value.type])
        for value in self.graph.constants:
            self._add_constant(value)
        for node in self.graph.nodes:
            self._add_node(node)
        self._add_outputs()

    def _add_constant(self, value: Value) -> None:
        from msdump.graph._proto import debug_graph_pb2

        constant = self._new_constant()
        constant.value.dtype = debug_graph_pb2.DT_TENSOR
        constant.value.tensor_val.data_type = debug_number(value.type.dtype)
        constant.value.tensor_val.dims.extend(value.type.shape)

    def _new_constant(self) -> pb.NamedValueProto:
        index = len(self.proto.const_vals)
        return self.proto.const_vals.add(key=f"cst{index + 1}", full_name=f"Default--data-{index}")

    def _add_node(self, node: Node) -> None:
        inputs = [self.name_by_value[value.id] for value in node.inputs]
        proto = self._new_node(node.op_type, node.scope, node.full_name, inputs)
        for name, value in shown_attrs(node).items():
            fill_value(proto.attribute.add(name=name).value, value, f"{node.where}: attribute {name}")
        fill_type(proto.output_type, [value.type for value in node.outputs])
        # Innermost first, unlike the .ir.
        proto.source_address = "\n".join(f"# In file {format_source_line(line)}" for line in reversed(node.source))
        if len(node.outputs) == 1:
            self.name_by_value[node.outputs[0].id] = proto.name
            return
        for value in node.outputs:
            if value.id in self.used:
                self._add_item(node, proto.name, value)

    def _add_item(self, node: Node, producer: str, value: Value) -> None:
        inputs = [producer, self._index_constant(value.index)]
        proto = self._new_bookkeeping_node("TupleGetItem", node.scope, inputs)
        fill_type(proto.output_type, [value.type])
        self.name_by_value[value.id] = proto.name

    def _index_constant(self, index: int) -> str:
        if index not in self.name_by_index:
            constant = self._new_constant()
            fill_value(constant.value, index, "TupleGetItem")
            self.name_by_index[index] = constant.key
        return self.name_by_index[index]

    def _add_outputs(self) -> None:
        outputs = self.graph.outputs
        names = [self.name_by_value[value.id] for value in outputs]
        output = self.proto.outputs.add()
        fill_type(output.type, [value.type for value in outputs])
        gradients = tuple(self.graph.gradient_of.get(value.id, "") for value in outputs)
        if len(outputs) == 1 and not any(gradients):
            output.name = names[0]
            return
        proto = self._new_bookkeeping_node("MakeTuple", "Default", names)
        if any(gradients):
            fill_value(proto.attribute.add(name=GRADIENT_OF).value, gradients, GRADIENT_OF)
        fill_type(proto.output_type, [value.type for value in outputs])
        output.name = proto.name

    def _new_bookkeeping_node(self, op_type: str, scope: str, inputs: Sequence[str]) -> pb.NodeProto:
        last = f"{op_type}-op{next(self.op_ids)}"
        return self._new_node(op_type, scope, f"{scope}/{last}" if scope else last, inputs)

    def _new_node(self, op_type: str, scope: str, full_name: str, inputs: Sequence[str]) -> pb.NodeProto:
        from msdump.graph._proto import debug_graph_pb2

        number = len(self.proto.node) + 1
        proto = self.proto.node.add(name=str(number), op_type=op_type, scope=scope, full_name=full_name)
        for name in inputs:
            proto.input.add(name=name, type=debug_graph_pb2.InputProto.DATA_EDGE)
        return proto


def fill_type(proto: pb.TypeProto, types: Sequence[TensorType]) -> None:
    """The type of one tensor, or the tuple of several."""
    from msdump.graph._proto import debug_graph_pb2

    if len(types) != 1:
        proto.data_type = debug_graph_pb2.DT_TUPLE
        proto.sequence_type.SetInParent()
        for type in types:
            fill_type(proto.sequence_type.elem_types.add(), [type])
        return
    proto.data_type = debug_graph_pb2.DT_TENSOR
    proto.tensor_type.elem_type = debug_number(types[0].dtype)
    proto.tensor_type.shape.SetInParent()
    for size in types[0].shape:
        proto.tensor_type.shape.dim.add(size=size)


def fill_value(proto: pb.ValueProto, value: Any, where: str) -> None:
    """A plain Python value; names of dtypes become types.   Raises: GraphError for an int above 64 bits."""
    from msdump.graph._proto import debug_graph_pb2

    if value is None:
        proto.dtype = debug_graph_pb2.DT_UNDEFINED
    elif isinstance(value, bool):
        proto.dtype, proto.bool_val = debug_graph_pb2.DT_BOOL, value
    elif isinstance(value, int):
        if -(2**63) <= value < 2**63:
            proto.dtype, proto.int_val = debug_graph_pb2.DT_INT64, value
        elif 0 <= value < 2**64:
            proto.dtype, proto.uint_val = debug_graph_pb2.DT_UINT64, value
        else:
            raise GraphError(f"{where}: expected an integer of at most 64 bits, got {value}.")
    elif isinstance(value, float):
        _fill_float(proto, value)
    elif isinstance(value, str):
        if value in dtypes.BY_NAME and debug_number(value) != debug_graph_pb2.DT_UNDEFINED:
            proto.dtype, proto.type_val.data_type = debug_graph_pb2.DT_TYPE, debug_number(value)
        else:
            proto.dtype, proto.str_val = debug_graph_pb2.DT_STRING, value
    else:
        proto.dtype = debug_graph_pb2.DT_TUPLE if isinstance(value, tuple) else debug_graph_pb2.DT_LIST
        for item in value:
            fill_value(proto.values.add(), item, where)


def _fill_float(proto: pb.ValueProto, value: float) -> None:
    from msdump.graph._proto import debug_graph_pb2

    with np.errstate(all="ignore"):
        narrow = float(np.float32(value))
    proto.float_val = narrow
    if narrow == value or value != value:
        proto.dtype = debug_graph_pb2.DT_FLOAT32
    else:
        proto.dtype, proto.double_val = debug_graph_pb2.DT_FLOAT64, value


# -- reader: into plain values -----------------------------------------------------------------------------------------

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

    from msdump.graph._proto import debug_graph_pb2

    data, where = (source, "graph") if isinstance(source, bytes) else (read_file(source, GRAPH_BYTES), str(source))
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
    from msdump.graph._proto import debug_graph_pb2

    key, full_name = _text(proto.key), _text(proto.full_name)
    if proto.value.dtype != debug_graph_pb2.DT_TENSOR:
        return ConstantSummary(key, full_name, None, _value(proto.value))
    tensor = proto.value.tensor_val
    # MindSpore writes no tensor_val; an empty shape then means "not said", not "0-d".
    shape = tuple(tensor.dims) if proto.value.HasField("tensor_val") else None
    return ConstantSummary(key, full_name, TensorSummary(_dtype_name(tensor.data_type), shape), None)


def _tensors(proto: pb.TypeProto) -> tuple[TensorSummary, ...]:
    from msdump.graph._proto import debug_graph_pb2

    if proto.data_type == debug_graph_pb2.DT_TUPLE:
        return tuple(_tensor(item) for item in proto.sequence_type.elem_types)
    return (_tensor(proto),) if proto.data_type == debug_graph_pb2.DT_TENSOR else ()


def _tensor(proto: pb.TypeProto) -> TensorSummary:
    tensor = proto.tensor_type
    shape = tuple(dim.size for dim in tensor.shape.dim) if tensor.HasField("shape") else None
    return TensorSummary(_dtype_name(tensor.elem_type), shape)


def _dtype_name(number: int) -> str | None:
    from msdump.graph._proto import debug_graph_pb2

    if number == debug_graph_pb2.DT_BASE_FLOAT:
        return "bfloat16"
    row = dtypes.BY_DEBUG_NUMBER.get(number)
    return row.name if row is not None and row.numpy_type is not None else None


def _value(proto: pb.ValueProto) -> Any:
    """Plain Python value.   Edges: None for "undefined" and for kinds that have no plain form (tensors, graphs)."""
    from msdump.graph._proto import debug_graph_pb2

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
    from msdump.graph._proto import debug_graph_pb2

    number = proto.data_type
    if number == debug_graph_pb2.DT_TENSOR:
        number = proto.tensor_type.elem_type
    return "string" if number == debug_graph_pb2.DT_STRING else _dtype_name(number)
