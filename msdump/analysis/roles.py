"""Role of a tensor in the model: its parameter, its layer, whether it is a gradient."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msdump.analysis.full_names import layer_of
from msdump.analysis.graph_info import GraphFile, GraphFiles, GraphNode
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.operators.traits import memory_use
from msdump.tensors.makers import maker
from msdump.tensors.records import INPUT

_GRADIENTS = "Gradients/"
_GRADIENT_INPUT = frozenset({"gradient", "grad", "gradients"})
_TANGENT = re.compile(r"tangents_[0-9]+")


@dataclass(frozen=True, slots=True)
class Role:
    """None, and False, where the dump does not tell.

    parameter    name of the parameter or graph input that a tensor is, or whose gradient it is
    layer        names of the modules around its operator: "features.0.conv"
    is_gradient  whether it is a gradient
    """

    parameter: str | None = None
    layer: str | None = None
    is_gradient: bool = False


_role = maker(Role)
_Output = tuple[str, int]


@dataclass(frozen=True)
class _GraphRoles:
    """Parameter of each output (full name, slot) that is one or is the gradient of one; outputs that are gradients, and
    operators whose outputs all are."""

    parameters: dict[_Output, str] = field(default_factory=dict)
    gradients: set[_Output] = field(default_factory=set)
    backward: set[str] = field(default_factory=set)

    def is_gradient(self, output: _Output) -> bool:
        return output in self.gradients or output[0] in self.backward


class Roles:
    """Roles of the tensors of one dump, as its graph files tell them. One thread."""

    def __init__(self, graphs: GraphFiles) -> None:
        self._graphs = graphs
        self._inputs = {name for graph in graphs if not _is_backward(graph) for name in graph.inputs}
        self._roles: dict[int, _GraphRoles] = {}

    def of(self, key: StepKey, operator: Operator, io: str, slot: Slot) -> Role:
        if operator.is_parameter:
            name = operator.op_name
            return Role(name, name.rpartition(".")[0] or None, _TANGENT.fullmatch(name) is not None)
        # Names of an exported model begin with a slash.
        layer = layer_of(operator.label.lstrip("/"))
        graph = self._graphs.of(key)
        node = None if graph is None else graph.find(operator.full_name, operator.op_name)
        if graph is None or node is None:
            return _role(None, layer, io != INPUT and operator.label.startswith(_GRADIENTS))
        parameter, is_gradient = self._of_node(graph, node, io, slot.number)
        return _role(parameter, layer, is_gradient)

    def _of_node(self, graph: GraphFile, node: GraphNode, io: str, slot: int) -> tuple[str | None, bool]:
        roles = self._of_graph(graph)
        output: _Output = node.full_name, slot
        if io == INPUT:
            origin = node.inputs[slot] if slot < len(node.inputs) else None
            if origin is None or origin.is_constant:
                return None, False
            if origin.slot is None:
                is_input = origin.name in self._inputs
                return (origin.name if is_input else None), _TANGENT.fullmatch(origin.name) is not None
            output = origin.name, origin.slot
        return roles.parameters.get(output), roles.is_gradient(output)

    def _of_graph(self, graph: GraphFile) -> _GraphRoles:
        roles = self._roles.get(id(graph))
        if roles is None:
            roles = self._roles[id(graph)] = _roles_of(graph)
        return roles


def gradients_of(graph: GraphFile) -> Mapping[_Output, str]:
    """Outputs of a graph that are gradients of parameters, and the parameter of each, as the graph alone tells."""
    roles = _roles_of(graph)
    return {output: roles.parameters[output] for output in roles.gradients if output in roles.parameters}


def _is_backward(graph: GraphFile) -> bool:
    return bool(graph.nodes) and all(node.full_name.startswith(_GRADIENTS) for node in graph.nodes)


def _roles_of(graph: GraphFile) -> _GraphRoles:
    roles = _GraphRoles(dict(graph.gradients), set(graph.gradients))
    for node in graph.nodes:
        names = dict(_parameter_inputs(node))
        for output, slot in memory_use(node.op_type).results.items():
            if slot in names:
                roles.parameters[node.full_name, output] = names[slot]
        _add_gradients(roles, node, names)
        if _computes_gradient(roles, node):
            roles.backward.add(node.full_name)
    return roles


def _parameter_inputs(node: GraphNode) -> Iterable[tuple[int, str]]:
    for slot, origin in enumerate(node.inputs):
        if origin is not None and origin.slot is None and not origin.is_constant:
            yield slot, origin.name


def _add_gradients(roles: _GraphRoles, node: GraphNode, names: Mapping[int, str]) -> None:
    """What an optimizer reads beside a weight is the gradient of that weight."""
    if 0 not in names:
        return
    for slot, (name, origin) in enumerate(zip(node.input_names, node.inputs, strict=False)):
        if slot and name in _GRADIENT_INPUT and origin is not None and origin.slot is not None:
            roles.parameters[origin.name, origin.slot] = names[0]
            roles.gradients.add((origin.name, origin.slot))


def _computes_gradient(roles: _GraphRoles, node: GraphNode) -> bool:
    """Whether an operator of the backward part passes a gradient on or begins one; it may also prepare a value of the
    forward part, such as the transpose of a weight."""
    if not node.full_name.startswith(_GRADIENTS):
        return False
    origins = [origin for origin in node.inputs if origin is not None and not origin.is_constant]
    return not origins or any(
        _TANGENT.fullmatch(origin.name) if origin.slot is None else roles.is_gradient((origin.name, origin.slot))
        for origin in origins
    )
