"""If, Loop and Scan as they run here: their bodies are programs like the model's own, so that all in them is seen.

Source: ONNX, `If`, `Loop`, `Scan` from version 9 on. Where they do nothing, onnxruntime runs them whole: what it gives
then is its own affair, such as the shape of results that no iteration has made.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import onnx

from msdump.errors import ExecutionError, FormatError, GraphError
from msdump.frontends.onnx.inference import Inference
from msdump.frontends.onnx.node_session import SessionMaker
from msdump.frontends.onnx.nodes import ModelConstant, ModelNode, Scope, captured_names_of, model_constants, model_nodes
from msdump.frontends.onnx.ort_values import array_of, dtype_name, owned_value_of
from msdump.frontends.onnx.program import Body, Flow, Launch, OnnxProgram, RunBody, Slots
from msdump.operators.traits import subgraph_labels
from msdump.tensors.arrays import Array

log = logging.getLogger("msdump")

_ONNX_DOMAINS = ("", "ai.onnx")
_T = onnx.TensorProto
# Before, a Scan had a batch axis and lengths of sequences.
_FIRST_SCAN = 9


class _Flow(Flow):
    is_loop: ClassVar[bool]

    def __init__(self, node: ModelNode, around: OnnxProgram, whole: Launch) -> None:
        self.node = node
        self._around = around
        self._whole = whole
        self._attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.proto.attribute}
        # Which of its outputs the model reads.
        self._wanted = tuple(index for index, name in enumerate(node.proto.output) if name)

    def graph(self, label: str) -> onnx.GraphProto:
        """The body as the file has it."""
        graph = self._attributes.get(label)
        if not isinstance(graph, onnx.GraphProto):
            raise GraphError(f"{self.node.where}: expected a graph as its attribute {label}, got none.")
        return graph

    @abstractmethod
    def given_types(self, graph: onnx.GraphProto, types: Mapping[str, onnx.TypeProto]) -> list[onnx.TypeProto]:
        """Types of what a run of a body is given.   types: of the values around it"""

    @abstractmethod
    def output_types(self) -> list[onnx.TypeProto | None]:
        """Types of the outputs, as far as the bodies tell them; without shapes."""

    # -- parts ------------------------------------------------------------------------------------

    def _operand(self, index: int, slots: Slots) -> Any:
        """What is in the slot of an operand; None for one that is left out."""
        name = self._name(index)
        if not name:
            return None
        constant = self._around.constants.get(name)
        if constant is None:
            return slots[self._around.slot_by_name[name]]
        if constant.array is None:
            return onnx.numpy_helper.to_array(constant.proto)
        return _value_of(constant.array, dtype_name(constant.elem_type))

    def _name(self, index: int) -> str:
        names = self.node.proto.input
        return str(names[index]) if index < len(names) else ""

    def _scalar(self, index: int, slots: Slots) -> Any:
        """The one element of an operand; None for an operand that is left out or has not one element."""
        value = self._operand(index, slots)
        array = None if value is None else array_of(value)
        return array.reshape(-1)[0] if array is not None and array.size == 1 else None

    def _handed_out(self, body: Body, results: Sequence[Any], first: int = 0) -> list[Any]:
        """Results of the last run of a body as results of the operator: memory that nothing else writes."""
        return [
            value if body.is_made[index] else _own(value, body.dtypes[index])
            for index, value in enumerate(results, first)
        ]

    def _chosen(self, results: Sequence[Any]) -> list[Any]:
        return [results[index] for index in self._wanted]

    def _stacked(self, body: Body, index: int, values: Sequence[Any], axis: int = 0) -> Any:
        """What the iterations gave as one output of a body, along a new axis.   Raises: ExecutionError."""
        dtype = body.dtypes[index]
        arrays = [np.asarray(value) if dtype is None else array_of(value) for value in values]
        shapes = list(dict.fromkeys(array.shape for array in arrays))
        if len(shapes) > 1:
            error = ExecutionError(
                f"{self.node.where}: expected results {body.outputs[index]} of one shape in all iterations, "
                f"got {list(shapes[0])} and {list(shapes[1])}. Carry what grows from iteration to iteration."
            )
            error.operator = self.node.name
            raise error
        stacked = np.stack(arrays)
        if axis:
            stacked = np.ascontiguousarray(np.moveaxis(stacked, 0, axis))
        return stacked if dtype is None else owned_value_of(stacked, dtype)


class If(_Flow):
    """Runs one of two bodies, which read what they need from around."""

    is_loop = False

    def given_types(self, graph: onnx.GraphProto, types: Mapping[str, onnx.TypeProto]) -> list[onnx.TypeProto]:
        return []

    def output_types(self) -> list[onnx.TypeProto | None]:
        each = [[_without_shape(body.type_of(name)) for name in body.outputs] for body in self.bodies]
        return [next((type for type in types if type is not None), None) for types in zip(*each, strict=False)]

    def run(self, slots: Slots, run_body: RunBody) -> Sequence[Any]:
        flag = self._scalar(0, slots)
        if flag is None:
            return self._whole(slots)
        body = self.bodies[0 if flag else 1]
        inner = body.begin(slots, ())
        run_body(body, inner, None)
        return self._chosen(self._handed_out(body, body.results(inner)))


class Loop(_Flow):
    """Runs its body again and again: it is given the number of the iteration, whether it goes on, and what it carries,
    and gives whether it goes on, what it carries, and what is collected."""

    is_loop = True

    def given_types(self, graph: onnx.GraphProto, types: Mapping[str, onnx.TypeProto]) -> list[onnx.TypeProto]:
        if len(graph.input) < 2 or len(graph.input) < len(self.node.proto.input):
            raise GraphError(f"{self.node.where}: expected a body with inputs for all that it carries, got fewer.")
        number = onnx.helper.make_tensor_type_proto(_T.INT64, _scalar_shape(graph.input[0].type))
        goes_on = onnx.helper.make_tensor_type_proto(_T.BOOL, _scalar_shape(graph.input[1].type))
        carried = [
            _given_type(self.node, declared, types.get(name))
            for declared, name in zip(graph.input[2:], self.node.proto.input[2:], strict=True)
        ]
        return [number, goes_on, *carried]

    def output_types(self) -> list[onnx.TypeProto | None]:
        (body,) = self.bodies
        return [_without_shape(body.type_of(name)) for name in body.outputs[1:]]

    def run(self, slots: Slots, run_body: RunBody) -> Sequence[Any]:
        (body,) = self.bodies
        has_limit, has_flag = bool(self._name(0)), bool(self._name(1))
        limit, goes_on = self._scalar(0, slots), self._scalar(1, slots)
        is_odd = (has_limit and limit is None) or (has_flag and goes_on is None)
        if is_odd or (has_limit and limit <= 0) or (has_flag and not goes_on):
            return self._whole(slots)
        count = len(body.inputs) - 2
        carried = [self._operand(2 + index, slots) for index in range(count)]
        shapes = [_scalar_shape(body.type_of(name)) for name in body.inputs[:2]]
        flag = owned_value_of(np.ones(shapes[1], np.bool_), "bool")
        collected: list[list[Any]] = [[] for _ in body.outputs[1 + count :]]
        number = 0
        while True:
            counter = owned_value_of(np.full(shapes[0], number, np.int64), "int64")
            inner = body.begin(slots, (counter, flag, *carried))
            run_body(body, inner, number)
            flag, *rest = body.results(inner)
            carried = rest[:count]
            for values, value in zip(collected, rest[count:], strict=True):
                values.append(value)
            number += 1
            if not array_of(flag).reshape(-1)[0] or (has_limit and number >= limit):
                break
        stacked = [self._stacked(body, 1 + count + index, values) for index, values in enumerate(collected)]
        return self._chosen([*self._handed_out(body, carried, 1), *stacked])


class Scan(_Flow):
    """Runs its body for each slice of its last operands: it is given what it carries and the slices, and gives what it
    carries and what is collected."""

    is_loop = True

    @property
    def _carried(self) -> int:
        return len(self.node.proto.input) - int(self._attributes.get("num_scan_inputs", 0))

    def given_types(self, graph: onnx.GraphProto, types: Mapping[str, onnx.TypeProto]) -> list[onnx.TypeProto]:
        names = self.node.proto.input
        if len(graph.input) != len(names):
            raise GraphError(f"{self.node.where}: expected a body with as many inputs as it has, got another number.")
        return [
            _given_type(self.node, declared, types.get(name)) for declared, name in zip(graph.input, names, strict=True)
        ]

    def output_types(self) -> list[onnx.TypeProto | None]:
        (body,) = self.bodies
        return [_without_shape(body.type_of(name)) for name in body.outputs]

    def run(self, slots: Slots, run_body: RunBody) -> Sequence[Any]:
        (body,) = self.bodies
        count = self._carried
        sliced = [array_of(self._operand(index, slots)) for index in range(count, len(body.inputs))]
        axes = self._of_each("scan_input_axes", len(sliced))
        fits = all(-array.ndim <= axis < array.ndim for array, axis in zip(sliced, axes, strict=True))
        lengths = {array.shape[axis] for array, axis in zip(sliced, axes, strict=True)} if fits else set()
        if len(lengths) != 1 or lengths == {0}:
            return self._whole(slots)
        (length,) = lengths
        rows = [
            np.moveaxis(array, axis, 0)[:: -1 if is_backward else 1]
            for array, axis, is_backward in zip(
                sliced, axes, self._of_each("scan_input_directions", len(sliced)), strict=True
            )
        ]
        carried = [self._operand(index, slots) for index in range(count)]
        collected: list[list[Any]] = [[] for _ in body.outputs[count:]]
        for number in range(length):
            slices = [
                _value_of(array[number], body.dtype_of(body.inputs[count + index])) for index, array in enumerate(rows)
            ]
            inner = body.begin(slots, (*carried, *slices))
            run_body(body, inner, number)
            results = body.results(inner)
            carried = results[:count]
            for values, value in zip(collected, results[count:], strict=True):
                values.append(value)
        axes = self._of_each("scan_output_axes", len(collected))
        backward = self._of_each("scan_output_directions", len(collected))
        stacked = [
            self._stacked(body, count + index, values[:: -1 if backward[index] else 1], axes[index])
            for index, values in enumerate(collected)
        ]
        return self._chosen([*self._handed_out(body, carried), *stacked])

    def _of_each(self, name: str, count: int) -> list[int]:
        """A list of the operator's, one number for each operand; zeros where it has none."""
        numbers = list(self._attributes.get(name, ()))
        return [*numbers, *[0] * (count - len(numbers))][:count]


_TYPES: dict[str, type[_Flow]] = {"If": If, "Loop": Loop, "Scan": Scan}


class FlowMaker:
    """Makes what runs the subgraphs of a model.

    scope   of the nodes of the model itself
    """

    def __init__(self, opset_imports: Sequence[onnx.OperatorSetIdProto], scope: Scope) -> None:
        self._opset_imports = tuple(opset_imports)
        self._scope = scope
        versions = {entry.domain: entry.version for entry in opset_imports}
        self._version = next((versions[domain] for domain in _ONNX_DOMAINS if domain in versions), 0)

    def make(self, node: ModelNode, around: OnnxProgram, sessions: SessionMaker, whole: Launch) -> Flow | None:
        """What runs the subgraphs of a node; None where onnxruntime has to run it whole.

        around   the program that it is in, which knows the types of all that the node reads
        """
        kind = _TYPES.get(node.op_type) if node.proto.domain in _ONNX_DOMAINS else None
        if kind is None or (kind is Scan and self._version < _FIRST_SCAN):
            return None
        flow = kind(node, around, whole)
        try:
            labels = subgraph_labels(node.op_type)
            flow.bodies = tuple(self._body(flow, label, around, sessions) for label in labels)
        except (GraphError, FormatError) as error:
            log.info("%s: what it runs is not looked at: %s", node.where, error)
            return None
        around.learn_types(zip(node.proto.output, flow.output_types(), strict=False))
        return flow

    def _body(self, flow: _Flow, label: str, around: OnnxProgram, sessions: SessionMaker) -> Body:
        graph = flow.graph(label)
        read = captured_names_of(graph)
        own = model_constants(graph)
        constants = {name: around.constants[name] for name in read if name in around.constants} | own
        given = [value.name for value in graph.input]
        captured = [name for name in read if name not in constants]
        types = dict(zip(given, flow.given_types(graph, around.types), strict=True))
        for name in captured:
            if name not in around.types:
                raise GraphError(f"{flow.node.where}: expected a value of a known type around it, got {name}.")
            types[name] = around.types[name]
        nodes = model_nodes(graph, [*constants, *given, *captured], self._scope.below(flow.node, label, flow.is_loop))
        outputs = [value.name for value in graph.output]
        inner = sessions.within(constants)
        program = OnnxProgram(
            nodes, constants, [*given, *captured], outputs, self._types(graph, types, constants), inner, self
        )
        slots = [(around.slot_by_name[name], program.slot_by_name[name]) for name in captured]
        return Body(label, program, given, own, slots)

    def _types(
        self, graph: onnx.GraphProto, given: Mapping[str, onnx.TypeProto], constants: Mapping[str, ModelConstant]
    ) -> dict[str, onnx.TypeProto]:
        """Types of the values of a subgraph, as of a model of its own."""
        model = onnx.ModelProto(ir_version=10, opset_import=self._opset_imports)
        model.graph.name = graph.name or "body"
        model.graph.node.extend(graph.node)
        model.graph.output.extend(graph.output)
        model.graph.value_info.extend(graph.value_info)
        model.graph.input.extend(onnx.ValueInfoProto(name=name, type=type) for name, type in given.items())
        return {**Inference(model, constants).types(), **given}


def _value_of(array: Array, dtype: str | None) -> Any:
    """What a slot holds of an array: an OrtValue with memory of its own, or the array itself where it holds text."""
    return array if dtype is None else owned_value_of(np.ascontiguousarray(array).reshape(array.shape), dtype)


def _own(value: Any, dtype: str | None) -> Any:
    return value if dtype is None else owned_value_of(array_of(value), dtype)


def _given_type(node: ModelNode, declared: onnx.ValueInfoProto, outer: onnx.TypeProto | None) -> onnx.TypeProto:
    """Type of what a body is given: the kind of the value around it, with the shape that the body declares; another
    iteration may bring another one."""
    type = onnx.TypeProto()
    known = outer if outer is not None and outer.WhichOneof("value") is not None else declared.type
    type.CopyFrom(known)
    if type.WhichOneof("value") is None or (type.HasField("tensor_type") and not type.tensor_type.elem_type):
        raise GraphError(f"{node.where}: expected values of known types, got {declared.name}.")
    if type.HasField("tensor_type"):
        type.tensor_type.ClearField("shape")
        if declared.type.HasField("tensor_type") and declared.type.tensor_type.HasField("shape"):
            type.tensor_type.shape.CopyFrom(declared.type.tensor_type.shape)
    return type


def _without_shape(type: onnx.TypeProto | None) -> onnx.TypeProto | None:
    """Of what is collected it has one axis more, of what is carried it may change."""
    if type is None or not type.HasField("tensor_type"):
        return type
    return onnx.helper.make_tensor_type_proto(type.tensor_type.elem_type, None)


def _scalar_shape(declared: onnx.TypeProto | None) -> tuple[int, ...]:
    """Of a scalar that a body may declare as one axis of one element."""
    return (1,) if declared is not None and len(declared.tensor_type.shape.dim) == 1 else ()
