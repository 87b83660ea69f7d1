"""A graph of the tracer -> the bytes of a MINDIR file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump._version import __version__
from msdump.errors import did_you_mean
from msdump.graph.graph import CONSTANT, PARAMETER, Graph, Node, Value
from msdump.mindspore.mindir.forms import FORMS, TUPLES, Field, Form
from msdump.mindspore.mindir.messages import write_abstract, write_tensor, write_type, write_value
from msdump.mindspore.structure import Structure

_PRIMITIVE, _FUNCTION = 1, 2
# Source: files of MindSpore 2.7.
_IR_VERSION, _MODEL_VERSION, _FORMAT_VERSION = "0.1.1", "2.7.0", 3


class _Writer:
    def __init__(self, graph: Graph, name: str) -> None:
        from msdump.mindspore._proto.mind_ir_pb2 import ModelProto

        self.graph, self.name = graph, name
        self.model = ModelProto()
        self.model.ir_version, self.model.model_version = _IR_VERSION, _MODEL_VERSION
        self.model.producer_name, self.model.producer_version = "msdump", __version__
        self.model.little_endian, self.model.mind_ir_version = True, _FORMAT_VERSION
        self.model.graph.name = name
        self._names: dict[int, str] = {}
        self._constants: dict[str, str] = {}
        self._primitives: dict[str, str] = {}
        self._count = 0

    def _next(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count}"

    def run(self, outputs: Structure) -> bytes:
        """Raises: ValueError for an operator, or an output, that files have no place for."""
        for value in self.graph.parameters:
            self._add_parameter(value)
        for value in self.graph.inputs:
            entry = self.model.graph.input.add()
            entry.name = self._names[value.id] = f"{self.name}:{value.name}"
            write_type(entry.tensor.add(), value.type)
        for node in _needed(self.graph):
            self._add_operator(node)
        self._add_output(outputs)
        content: bytes = self.model.SerializeToString(deterministic=True)
        return content

    def _add_parameter(self, value: Value) -> None:
        assert value.parameter is not None
        entry = self.model.graph.parameter.add()
        write_tensor(entry, value.parameter.array, value.type.dtype)
        entry.name = self._names[value.id] = f"{self.name}:{value.name}"
        entry.ref_key = value.name

    # -- nodes ------------------------------------------------------------------------------------

    def _add_operator(self, node: Node) -> None:
        form = FORMS.get(node.op_type)
        if form is None:
            raise ValueError(
                f"export: {node.where}: expected an operator with a form in MINDIR files, got {node.op_type}. Write it "
                f"with others. {did_you_mean(node.op_type, FORMS)}".rstrip()
            )
        _check(node)
        arguments = self._arguments(form, node)
        attributes = {field.name: self._value(field, node) for field in form.attributes}
        if node.op_type == "Stack":
            attributes["num"] = len(node.inputs)
        is_tuple = len(node.outputs) > 1 or form.op_type in TUPLES
        kind = _PRIMITIVE if attributes else _FUNCTION
        name = self._add_node(form.file_type, arguments, attributes, node.outputs, is_tuple, kind, node.scope)
        for value in node.outputs:
            if is_tuple:
                item = [name, self._constant(value.index)]
                self._names[value.id] = self._add_node("TupleGetItem", item, {}, [value], False, scope=node.scope)
            else:
                self._names[value.id] = name

    def _arguments(self, form: Form, node: Node) -> list[str]:
        operands = iter(node.inputs)
        arguments: list[str] = []
        for field in form.arguments:
            if field is None and form.is_packed:
                items = [self._of_value(value) for value in node.inputs]
                arguments.append(self._add_node("MakeTuple", items, {}, node.inputs, True, scope=node.scope))
            elif field is None:
                arguments.append(self._of_value(next(operands)))
            else:
                arguments.append(self._constant(self._value(field, node), node.inputs[0].type.dtype))
        return arguments

    def _value(self, field: Field, node: Node) -> Any:
        attrs = node.primitive.attrs
        if field.kind == "like" and attrs.get("mode") != "constant":
            return None
        try:
            return field.to_file(attrs)
        except KeyError:
            raise ValueError(f"export: {node.where}: expected a value of '{field.name}', got none.") from None

    def _of_value(self, value: Value) -> str:
        if value.kind == CONSTANT:
            assert value.constant is not None
            return self._constant(value.constant)
        return self._names[value.id]

    def _constant(self, value: Any, dtype: str = "float32") -> str:
        key = f"{dtype}{value!r}" if not hasattr(value, "tobytes") else f"{value.dtype}{value.shape}{value.tobytes()!r}"
        if key not in self._constants:
            node = self.model.graph.node.add()
            node.name = self._constants[key] = self._next("ValueNode")
            node.output.append(node.name)
            node.op_type = "Constant"
            attribute = node.attribute.add()
            attribute.name = "value"
            if value is None:
                attribute.type = 25
            else:
                write_value(attribute, value, dtype)
        return self._constants[key]

    def _add_node(
        self, op_type: str, inputs: Sequence[str], attributes: dict[str, Any], outputs: Sequence[Value], is_tuple: bool,
        kind: int = _PRIMITIVE, scope: str = "",
    ) -> str:  # fmt: skip
        node = self.model.graph.node.add()
        node.input.extend(inputs)
        node.name = f"{self.name}:{self._next('CNode')}"
        node.output.append(node.name)
        node.op_type = f"REF::{self._primitive(op_type, attributes, kind)}"
        shape = node.attribute.add()
        shape.name = "shape"
        write_abstract(shape, [value.type for value in outputs], is_tuple)
        node.domain = f"{scope or 'Default'}/{op_type}-op{self._count}"
        return str(node.name)

    def _primitive(self, op_type: str, attributes: dict[str, Any], kind: int) -> str:
        key = f"{op_type}{attributes!r}{kind}"
        if key not in self._primitives:
            message = self.model.primitives.add()
            message.name = self._primitives[key] = f"{op_type}:{len(self._primitives) + 1}"
            message.op_type, message.instance_name, message.prim_type = op_type, "", kind
            for name, value in attributes.items():
                attribute = message.attribute.add()
                attribute.name = name
                write_value(attribute, value)
        return self._primitives[key]

    # -- outputs ----------------------------------------------------------------------------------

    def _add_output(self, structure: Structure) -> None:
        output = self.model.graph.output.add()
        if structure.kind == "tensor":
            value = self.graph.outputs[0]
            output.name = self._result(value)
            write_type(output.tensor.add(), value.type)
            return
        if structure.kind not in ("tuple", "list") or any(child.kind != "tensor" for child in structure.children):
            raise ValueError("export: expected a network that returns a tensor or a tuple of tensors. Return these.")
        items = [self._of_value(value) for value in self.graph.outputs]
        output.name = self._add_node("MakeTuple", items, {}, self.graph.outputs, True)
        output.denotation = "Tuple"
        write_abstract(output.attr_info, [value.type for value in self.graph.outputs], True)

    def _result(self, value: Value) -> str:
        """A node for an output; one that the program has not made becomes that of an operator."""
        if value.kind in (CONSTANT, PARAMETER) or value.node is None:
            pair = [self._of_value(value), self._constant(0)]
            return self._add_node("Depend", pair, {}, [value], False)
        return self._of_value(value)


def _check(node: Node) -> None:
    attrs = node.primitive.attrs
    if node.op_type in ("MaxPool", "AvgPool") and str(attrs.get("pad_mode")).upper() not in ("SAME", "VALID"):
        raise ValueError(
            f"export: {node.where}: expected pad_mode 'same' or 'valid', got {attrs.get('pad_mode')!r}. "
            "Pad with an operator of its own before."
        )
    if node.regions:
        raise ValueError(f"export: {node.where}: control flow on tensors has no place in MINDIR files here.")


def _needed(graph: Graph) -> list[Node]:
    """The nodes that the outputs depend on, and those that write parameters, in their order."""
    needed = {value.id for value in graph.outputs}
    nodes = []
    for node in reversed(graph.nodes):
        if node.definition.mutates and any(
            node.inputs[slot].kind == PARAMETER for slot in node.definition.mutates if node.op_type != "BatchNorm"
        ):
            raise ValueError(f"export: {node.where}: it writes a parameter. Export a network that only reads them.")
        if any(value.id in needed for value in node.outputs):
            needed.update(value.id for value in node.inputs)
            nodes.append(node)
    return nodes[::-1]


def to_mindir(graph: Graph, outputs: Structure, name: str) -> bytes:
    """A MINDIR file.

    graph    as it was traced, before passes
    outputs  what becomes of its outputs
    Raises: ValueError that names an operator for which files have no place.
    """
    return _Writer(graph, name).run(outputs)
