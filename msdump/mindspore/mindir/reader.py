"""The bytes of a MINDIR file -> a program that runs operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.errors import FormatError
from msdump.graph.types import TensorType
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import execute
from msdump.mindspore.mindir.forms import TUPLES, Form, dtype_of_id, form_of_file
from msdump.mindspore.mindir.messages import read_tensor, read_type, read_value
from msdump.mindspore.ops import function as F
from msdump.mindspore.protobuf import parsed

# Nodes that give one of their operands on.
_FIRST = frozenset({"Load", "Depend", "Return", "return"})
_STATES = frozenset({"UpdateState"})
_TUPLES = frozenset({"MakeTuple", "make_tuple", "MakeList", "make_list"})
_ITEMS = frozenset({"TupleGetItem", "tuple_getitem", "ListGetItem", "list_getitem"})


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(x: Tensor, axis: Any = None, keep_dims: Any = False, dtype_id: Any = None) -> Any:
        operand = x if dtype_id is None else F.cast(x, dtype_of_id(dtype_id))
        return function(operand, axis, bool(keep_dims))

    return reduced


# Types that only files have -> what computes them.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Adds": F.add, "Div": F.div, "Divs": F.div, "MatMulExt": F.matmul, "Muls": F.mul, "Subs": F.sub,
    "MeanExt": _reduced(F.mean), "SumExt": _reduced(F.sum),
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A node: its type in the file, names of its operands and of its result, attributes of its primitive."""

    file_type: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any]
    where: str


@dataclass(frozen=True, eq=False)
class LoadedGraph:
    """What `mindspore.load` gives; `nn.GraphCell` runs it.

    inputs      name -> type, in the order of a call
    parameters  name of a node -> weight
    constants   name of a node -> value
    """

    name: str
    inputs: Mapping[str, TensorType]
    parameters: Mapping[str, Parameter]
    constants: Mapping[str, Any]
    steps: tuple[Step, ...]
    output: str

    def run(self, tensors: Sequence[Tensor], weights: Mapping[str, Tensor]) -> Any:
        """The outputs.   Raises: ValueError for another number of inputs."""
        if len(tensors) != len(self.inputs):
            raise ValueError(f"GraphCell: expected {len(self.inputs)} inputs, got {len(tensors)}.")
        values: dict[str, Any] = {**self.constants, **weights, **dict(zip(self.inputs, tensors, strict=True))}
        for step in self.steps:
            values[step.output] = _result(step, [values[name] for name in step.inputs])
        return _tensors(values[self.output])


def _tensors(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_tensors, value))
    return Tensor(value) if isinstance(value, np.ndarray) else value


def _result(step: Step, operands: list[Any]) -> Any:
    if step.file_type in _FIRST:
        return operands[0]
    if step.file_type in _STATES:
        return None
    if step.file_type in _TUPLES:
        return tuple(operands)
    if step.file_type in _ITEMS:
        return operands[0][int(operands[1])]
    if step.file_type in _FUNCTIONS:
        return _FUNCTIONS[step.file_type](*operands)
    form = form_of_file(step.file_type)
    assert form is not None, "load checks the types"
    results = execute(form.op_type, *_arguments(form, step, operands))
    return results if len(results) > 1 or form.op_type in TUPLES else results[0]


def _arguments(form: Form, step: Step, operands: list[Any]) -> tuple[list[Tensor], dict[str, Any]]:
    """Operands and attributes of the operator here."""
    tensors: list[Any] = []
    attrs: dict[str, Any] = {}
    sizes: list[Any] = []
    for place, field in enumerate(form.arguments):
        has_argument = place < len(operands)
        if field is None:
            value = operands[place]
            tensors.extend(value if form.is_packed else [value])
            continue
        value = operands[place] if has_argument else step.attributes.get(field.name, field.default)
        if value is None:
            continue
        value = value.tolist() if isinstance(value, np.ndarray) else value
        attrs[field.name] = field.from_file(tuple(value) if isinstance(value, list) else value)
        if field.kind == "sizes":
            sizes.append(np.array(value, np.int64))
    for field in form.attributes:
        value = step.attributes.get(field.name, field.default)
        if value is not None:
            attrs[field.name] = field.from_file(value)
    return [each if isinstance(each, Tensor) else Tensor(each) for each in (*tensors, *sizes)], attrs


# -- the file ----------------------------------------------------------------------------------------------------------


def from_mindir(content: bytes, path: str) -> LoadedGraph:
    """Raises: FormatError for anything but a MINDIR file; ValueError that names an operator it cannot run."""
    from msdump.mindspore._proto.mind_ir_pb2 import ModelProto

    model = parsed(ModelProto, content, f"load: {path}", "a MINDIR file")
    if not model.graph.output:
        raise FormatError(f"load: {path}: expected a MINDIR file with a graph, got none.")
    if model.functions:
        raise ValueError(f"load: {path}: expected one graph, got one with {len(model.functions)} functions inside.")
    graph = model.graph
    for node in graph.node:
        if not node.output:
            raise FormatError(f"load: {path}: {node.name}: expected a node with an output, got none.")
    primitives = {each.name: each for each in model.primitives}
    constants = {
        node.output[0]: read_value(node.attribute[0], f"{path}: {node.name}") if node.attribute else None
        for node in graph.node
        if node.op_type == "Constant"
    }
    loaded = LoadedGraph(
        graph.name,
        {each.name: _input_type(each, path) for each in graph.input},
        {each.name: _parameter(each, path) for each in graph.parameter},
        constants,
        tuple(_step(node, primitives, path) for node in graph.node if node.op_type != "Constant"),
        graph.output[0].name,
    )
    _check_names(loaded, path)
    return loaded


def _check_names(graph: LoadedGraph, path: str) -> None:
    """Whatever is read was made before."""
    names = {*graph.inputs, *graph.parameters, *graph.constants}
    for step in graph.steps:
        for name in step.inputs:
            if name not in names:
                raise FormatError(f"load: {step.where}: expected an operand that exists before, got {name!r}.")
        names.add(step.output)
    if graph.output not in names:
        raise FormatError(f"load: {path}: expected an output that exists, got {graph.output!r}.")


def _input_type(message: Any, path: str) -> TensorType:
    if not message.tensor:
        raise FormatError(f"load: {path}: {message.name}: expected an input with a type, got none.")
    return read_type(message.tensor[0], f"{path}: {message.name}")


def _parameter(message: Any, path: str) -> Parameter:
    array, _ = read_tensor(message, f"{path}: {message.name}")
    return Parameter(Tensor(array), message.ref_key or message.name.rpartition(":")[2])


def _step(node: Any, primitives: Mapping[str, Any], path: str) -> Step:
    name = node.op_type.removeprefix("REF::")
    primitive = primitives.get(name)
    file_type = primitive.op_type if primitive is not None else name
    where = f"{path}: {node.domain or node.name}"
    others = (_FIRST, _STATES, _TUPLES, _ITEMS, _FUNCTIONS)
    if form_of_file(file_type) is None and not any(file_type in group for group in others):
        raise ValueError(f"load: {where}: operator {file_type} of MINDIR files cannot run here.")
    messages = [*(primitive.attribute if primitive is not None else ()), *node.attribute]
    named = {each.name: each for each in messages if each.name not in ("shape", "input_names", "output_names")}
    attributes = {key: read_value(each, where) for key, each in named.items()}
    return Step(file_type, tuple(node.input), node.output[0], attributes, where)
