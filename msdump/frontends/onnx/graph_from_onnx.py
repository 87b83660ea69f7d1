"""A model -> Graph, for one set of input shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from msdump.frontends.onnx.inference import tensor_type
from msdump.frontends.onnx.nodes import ModelConstant, ModelNode
from msdump.frontends.onnx.ort_values import type_text
from msdump.frontends.onnx.program import Body, OnnxProgram
from msdump.graph.graph import SAVED, Graph, Node, Value
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.types import TensorType
from msdump.process.report import Skipped

# Results that hold the elements of their first operand in the same order, under another shape.
_SAME_BYTES = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_ONNX_DOMAINS = ("", "ai.onnx")


@dataclass(eq=False)
class OnnxGraph:
    """A Graph and what leads back to the model.

    nodes    in the order of the model's; None for one that neither reads nor makes a tensor that can be shown
    values   the value of each tensor that can be shown, by name
    skipped  why tensors are not shown -> how many
    parts    of each subgraph that runs here: the same Graph, with the nodes and values of the subgraph; values from
             around it are among them
    """

    graph: Graph
    nodes: list[Node | None] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=Skipped)
    parts: dict[Body, OnnxGraph] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelTypes:
    """Types of all values of a model for one set of input shapes."""

    elements: Mapping[str, onnx.TypeProto]
    shapes: Mapping[str, tuple[int, ...]]

    def of(self, name: str) -> TensorType | None:
        """None for what no file of a dump can hold."""
        element = self.elements.get(name)
        if element is None or not element.HasField("tensor_type"):
            return None
        return tensor_type(element.tensor_type.elem_type, self.shapes.get(name))

    def reason(self, name: str) -> str:
        """Why no file can hold it."""
        element = self.elements.get(name)
        kind = element.WhichOneof("value") if element is not None else None
        if element is None or kind is None:
            return "value of unknown type"
        return (
            f"dtype {type_text(element.tensor_type.elem_type)}" if kind == "tensor_type" else kind.removesuffix("_type")
        )


def graph_from_onnx(
    graph_id: int,
    program: OnnxProgram,
    inputs: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    has_views: bool = True,
) -> OnnxGraph:
    """The Graph of a model, numbered and checked. Constants that no node reads are left out. The nodes of a subgraph
    come before the node that runs them, which ends after them.

    shapes      of the model's values, as far as they are known
    has_views   False: a Reshape makes a tensor of its own, whose bytes need not stay those of its operand
    """
    result = OnnxGraph(Graph(f"kernel_graph_{graph_id}", graph_id))
    graph = result.graph
    types = ModelTypes(program.types, shapes)
    for name in inputs:
        type = types.of(name)
        if type is None:
            result.skipped.add(types.reason(name), name)
        else:
            result.values[name] = graph.add_input(name, type)
    _add_nodes(result, program, types, has_views)
    graph.outputs.extend(result.values[name] for name in program.outputs if name in result.values)
    # Each run makes its results anew; they are not written again. What a loop is given may be memory of the caller.
    graph.held = {value.id for node in graph.nodes for value in node.outputs} | {v.id for v in graph.constants}
    graph.number()
    graph.lint()
    return result


def _add_nodes(result: OnnxGraph, program: OnnxProgram, types: ModelTypes, has_views: bool) -> None:
    """The operators of a program, with the constants that they read."""
    read = dict.fromkeys(name for call in program.calls for name in call.node.reads)
    for name in dict.fromkeys([*read, *program.outputs]):
        if name in program.constants and name not in result.values:
            _add_constant(result, program.constants[name])
    for call in program.calls:
        first = len(result.graph.nodes)
        for body in call.flow.bodies if call.flow is not None else ():
            result.parts[body] = _part(result, body, has_views)
        inner = result.graph.nodes[first:]
        node = _add_node(result, call.node, types, has_views, is_owner=bool(inner))
        for each in inner:
            each.owner = each.owner or node
        result.nodes.append(node)


def _part(around: OnnxGraph, body: Body, has_views: bool) -> OnnxGraph:
    """A subgraph. Iterations of a loop may bring values of other shapes: all of them are open."""
    part = OnnxGraph(around.graph, skipped=around.skipped)
    types = ModelTypes(body.program.types, {})
    captured = (name for name in body.program.slot_by_name if name not in body.inputs and name in around.values)
    # A name that the subgraph itself gives to a value is another value.
    part.values = {name: around.values[name] for name in captured if name not in body.own_names}
    for name in body.inputs:
        type = types.of(name)
        if type is None:
            part.skipped.add(types.reason(name), name)
        else:
            part.values[name] = part.graph.add_input(name, type, SAVED)
    _add_nodes(part, body.program, types, has_views)
    return part


def _add_constant(result: OnnxGraph, constant: ModelConstant) -> None:
    dtype = None if constant.array is None else tensor_type(constant.elem_type, constant.array.shape)
    if constant.array is None or dtype is None:
        result.skipped.add(f"dtype {type_text(constant.elem_type)}", constant.name)
        return
    # The graph would copy the data; they belong to the model, and stay as they are.
    value = result.graph.add_constant(np.empty((0,), constant.array.dtype), dtype.dtype, constant.name)
    value.type, value.constant = dtype, constant.array
    result.values[constant.name] = value


def _add_node(
    result: OnnxGraph, node: ModelNode, types: ModelTypes, has_views: bool, is_owner: bool = False
) -> Node | None:
    """is_owner: it runs others, so it is there also where it neither reads nor makes what can be shown"""
    operands = [name for name in (*node.proto.input, *node.captured) if name in result.values]
    outputs = [(name, types.of(name)) for name in node.makes]
    results = [(name, type) for name, type in outputs if type is not None]
    for name, type in outputs:
        if type is None:
            result.skipped.add(types.reason(name), name)
    if not operands and not results and not is_owner:
        return None
    primitive = _primitive_of(node, operands, [name for name, _ in results], has_views)
    added = result.graph.add_foreign_node(
        primitive,
        [result.values[name] for name in operands],
        [type for _, type in results],
        node.name.rpartition("/")[0],
        name=node.name,
    )
    added.loops = node.loops
    for (name, _), value in zip(results, added.outputs, strict=True):
        value.name = name
        result.values[name] = value
        if node.originals and not node.loops:
            # What a chain that was fused gives is the output of its last operator.
            value.original = node.originals[-1], list(node.proto.output).index(name)
    return added


def _primitive_of(node: ModelNode, operands: Sequence[str], results: Sequence[str], has_views: bool) -> Primitive:
    attrs = {attribute.name: _plain(attribute) for attribute in node.proto.attribute}
    if node.proto.domain not in _ONNX_DOMAINS:
        attrs["domain"] = str(node.proto.domain)
    shows_input = has_views and node.op_type in _SAME_BYTES and node.proto.domain in _ONNX_DOMAINS
    is_view = shows_input and bool(results) and bool(operands) and operands[0] == node.proto.input[0]
    definition = PrimitiveDef(node.op_type, tuple(operands), tuple(results), views={0: 0} if is_view else {})
    return Primitive(node.op_type, attrs, definition=definition)


def _plain(attribute: onnx.AttributeProto) -> Any:
    """An attribute as graphs hold them; tensors and graphs as a word of what they are."""
    kind = onnx.AttributeProto
    if attribute.type in (kind.INT, kind.FLOAT, kind.STRING, kind.INTS, kind.FLOATS, kind.STRINGS):
        value = onnx.helper.get_attribute_value(attribute)
        return _text(value) if not isinstance(value, list) else tuple(_text(item) for item in value)
    if attribute.type == kind.TENSOR:
        return f"{type_text(attribute.t.data_type)}{list(attribute.t.dims)}"
    if attribute.type == kind.GRAPH:
        return str(attribute.g.name)
    return str(kind.AttributeType.Name(attribute.type)).lower()


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
