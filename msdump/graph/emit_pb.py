"""`ms_output_trace_code_graph_{graph_id}.pb`: a graph as debugger.ModelProto.

What the format has no place for, or what its readers expect, is solved like this:
- an output of a node with several is used through a TupleGetItem node, several graph outputs through MakeTuple;
- constants carry dtype and shape, no data: the data are in the `constants` folder;
- bfloat16 has no number of its own and is DT_BASE_FLOAT; complex and narrow floats are DT_UNDEFINED;
- a float attribute that float32 cannot hold is DT_FLOAT64 with `double_val`, and `float_val` for old readers.

Source: debug_graph.proto; MindInsight's reader of these files (spelling of source lines, dtypes it accepts).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump import dtypes
from msdump.errors import GraphError
from msdump.graph.graph import Graph, Node, Value
from msdump.graph.listing import listed_parameters, shown_attrs, spare_op_ids
from msdump.graph.types import TensorType
from msdump.graph_files.read_pb import GRADIENT_OF
from msdump.graph_files.source_line import format_source_line

if TYPE_CHECKING:
    from msdump._proto import debug_graph_pb2 as pb

IR_VERSION = 1


def model_bytes(graph: Graph) -> bytes:
    """The whole file. Equal graphs give equal bytes.

    Raises: GraphError for an attribute or a number that the format cannot hold.
    """
    from msdump._proto import debug_graph_pb2

    model = debug_graph_pb2.ModelProto(ir_version=IR_VERSION)
    _GraphWriter(graph, model.graph).write()
    return model.SerializeToString(deterministic=True)


def debug_number(dtype: str) -> int:
    """Number of a dtype of tensors in the file.   Edges: 0 (DT_UNDEFINED) for one without a number."""
    from msdump._proto import debug_graph_pb2

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
        from msdump._proto import debug_graph_pb2

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
        from msdump._proto import debug_graph_pb2

        number = len(self.proto.node) + 1
        proto = self.proto.node.add(name=str(number), op_type=op_type, scope=scope, full_name=full_name)
        for name in inputs:
            proto.input.add(name=name, type=debug_graph_pb2.InputProto.DATA_EDGE)
        return proto


def fill_type(proto: pb.TypeProto, types: Sequence[TensorType]) -> None:
    """The type of one tensor, or the tuple of several."""
    from msdump._proto import debug_graph_pb2

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
    from msdump._proto import debug_graph_pb2

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
    from msdump._proto import debug_graph_pb2

    with np.errstate(all="ignore"):
        narrow = float(np.float32(value))
    proto.float_val = narrow
    if narrow == value or value != value:
        proto.dtype = debug_graph_pb2.DT_FLOAT32
    else:
        proto.dtype, proto.double_val = debug_graph_pb2.DT_FLOAT64, value
