"""Device formats of an Ascend graph: which tensors lie there in blocks for the matrix unit instead of as on the host.

Source: MindSpore dump guide, listing of a final graph on Ascend: convolutions read and write NC1HWC0, their weights are
FRACTAL_Z; CANN, matrix products are FRACTAL_NZ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msdump.graph.graph import Graph, Node, Value
from msdump.tensors import dtypes
from msdump.tensors.device_layouts import DEVICE_FORMATS

IMAGE, FILTER, MATRIX = "NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"
VOLUME, FILTER_3D = "NDC1HWC0", "FRACTAL_Z_3D"
_NDIM = {IMAGE: 4, FILTER: 4, VOLUME: 5, FILTER_3D: 5}


@dataclass(frozen=True)
class _Rule:
    """Format of all operands of an operator whose rank fits, but for the slots that are named."""

    format: str
    inputs: Mapping[int, str] = field(default_factory=dict)
    outputs: Mapping[int, str] = field(default_factory=dict)


_RULES = {
    "Conv2D": _Rule(IMAGE, {1: FILTER}),
    "Conv2DBackpropInput": _Rule(IMAGE, {1: FILTER}),
    "Conv2DBackpropFilter": _Rule(IMAGE, outputs={0: FILTER}),
    "DepthwiseConv2dNative": _Rule(IMAGE, {1: FILTER}),
    "Conv3D": _Rule(VOLUME, {1: FILTER_3D}),
    "Conv3DBackpropInput": _Rule(VOLUME, {1: FILTER_3D}),
    "Conv3DBackpropFilter": _Rule(VOLUME, outputs={0: FILTER_3D}),
    **dict.fromkeys(
        ("MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad", "BatchNorm", "BatchNormGrad", "InstanceNorm"), _Rule(IMAGE)
    ),
    **dict.fromkeys(("MatMul", "BatchMatMul"), _Rule(MATRIX)),
}

# Operators that work element by element take what they are given, and hand it on.
_ELEMENTWISE = frozenset({
    "Abs", "Add", "AddN", "AllReduce", "BiasAdd", "Cast", "Div", "Dropout", "DropoutGrad", "Exp", "GeLU", "GeLUGrad",
    "Log", "Maximum", "Minimum", "Mul", "Neg", "OnesLike", "ReLU", "ReLU6", "ReLU6Grad", "RealDiv", "Reciprocal",
    "ReluGrad", "Rsqrt", "Sigmoid", "SigmoidGrad", "Sqrt", "Square", "Sub", "Tanh", "TanhGrad", "ZerosLike",
})  # fmt: skip


def assign_device_formats(graph: Graph) -> None:
    """Set `Value.format` of every tensor that an Ascend device keeps in another layout than the host.

    The first operator that asks for a format decides; all values that are the same memory have one format.
    Everything else, scalars, vectors and whole numbers for the most part, keeps DefaultFormat.
    """
    formats = _Formats(graph)
    for node in graph.nodes:
        rule = _RULES.get(node.op_type)
        if rule is not None and _host_format(node) in ("NCHW", "NCDHW"):
            _ask(node, rule, formats)
    # Again until nothing changes: what a later operator gives a tensor concerns the earlier ones that update it too.
    # It ends, because a format once set stays.
    while _spread(graph, formats):
        pass


class _Formats:
    """Sets formats: each once, and for all values that are the same memory at the same time."""

    def __init__(self, graph: Graph) -> None:
        self._same_memory: dict[int, list[Value]] = {}
        for node in graph.nodes:
            for slot, source_slot in node.definition.aliases.items():
                source, output = node.inputs[source_slot], node.outputs[slot]
                group = self._same_memory.setdefault(source.id, [source])
                group.append(output)
                self._same_memory[output.id] = group

    def set(self, value: Value, format: str, sub_format: int) -> bool:
        """Whether that changed anything: a value that has a device format keeps it."""
        if value.format in DEVICE_FORMATS:
            return False
        for each in self._same_memory.get(value.id, [value]):
            each.format, each.sub_format = format, sub_format
        return True


def _spread(graph: Graph, formats: _Formats) -> bool:
    """Hand formats on once, from the first operator to the last.   Returns: whether any value got one."""
    has_changed = False
    for node in graph.nodes:
        if node.op_type in _ELEMENTWISE:
            pairs = _handed_on(node)
        elif node.definition.mutates:
            pairs = _agreed_on_update(node)
        else:
            continue
        for source, target in pairs:
            has_changed |= formats.set(target, source.format, source.sub_format)
    return has_changed


def _host_format(node: Node) -> str:
    """The index rules start from channels first."""
    attrs = node.primitive.attrs
    return str(attrs.get("data_format", attrs.get("format", "NCHW")))


def _ask(node: Node, rule: _Rule, formats: _Formats) -> None:
    groups = int(node.primitive.attrs.get("group", 1))
    for values, named in ((node.inputs, rule.inputs), (node.outputs, rule.outputs)):
        for slot, value in enumerate(values):
            wanted = named.get(slot, rule.format)
            if _fits(value, wanted):
                formats.set(value, wanted, groups if wanted == FILTER and groups > 1 else 0)


def _fits(value: Value, wanted: str) -> bool:
    is_rank = value.type.ndim == _NDIM[wanted] if wanted in _NDIM else value.type.ndim >= 2
    return is_rank and dtypes.dtype(value.type.dtype).is_float


def _handed_on(node: Node) -> list[tuple[Value, Value]]:
    """(source, target): an output gets the format of the first input that has one, and its shape."""
    return [(sources[0], output) for output in node.outputs if (sources := _with_device_format(node.inputs, output))]


def _agreed_on_update(node: Node) -> list[tuple[Value, Value]]:
    """(source, target): an optimizer keeps the states of a weight as it keeps the weight."""
    weight = node.inputs[node.definition.mutates[0]]
    return [(weight, value) for value in node.inputs if _with_device_format([weight], value)]


def _with_device_format(sources: Sequence[Value], target: Value) -> list[Value]:
    """Those that have a device format, and the shape of the target."""
    return [each for each in sources if each.format in DEVICE_FORMATS and each.type.shape == target.type.shape]
