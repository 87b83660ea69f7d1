"""Device formats of an Ascend graph: which tensors lie there in blocks for the matrix unit instead of as on the host.

Source: MindSpore dump guide, listing of a final graph on Ascend: convolutions read and write NC1HWC0, their weights are
FRACTAL_Z; CANN, matrix products are FRACTAL_NZ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msdump import dtypes
from msdump.graph.graph import Graph, Node, Value
from msdump.layouts import DEVICE_FORMATS

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
_ELEMENTWISE = frozenset(
    {
        "Abs",
        "Add",
        "AddN",
        "AllReduce",
        "BiasAdd",
        "Cast",
        "Div",
        "Dropout",
        "DropoutGrad",
        "Exp",
        "GeLU",
        "GeLUGrad",
        "Log",
        "Maximum",
        "Minimum",
        "Mul",
        "Neg",
        "OnesLike",
        "ReLU",
        "ReLU6",
        "ReLU6Grad",
        "RealDiv",
        "Reciprocal",
        "ReluGrad",
        "Rsqrt",
        "Sigmoid",
        "SigmoidGrad",
        "Sqrt",
        "Square",
        "Sub",
        "Tanh",
        "TanhGrad",
        "ZerosLike",
    }
)


def assign_device_formats(graph: Graph) -> None:
    """Set `Value.format` of every tensor that an Ascend device keeps in another layout than the host.

    The first operator that asks for a format decides; a mutated tensor and the output that is the same memory agree.
    Everything else, scalars, vectors and whole numbers for the most part, keeps DefaultFormat.
    """
    for node in graph.nodes:
        rule = _RULES.get(node.op_type)
        if rule is not None and _host_format(node) in ("NCHW", "NCDHW"):
            _ask(node, rule)
    # Again until all agree: what a later operator gives a tensor concerns the earlier ones that update it as well.
    for _ in graph.nodes:
        before = _formats(graph)
        _spread(graph)
        if _formats(graph) == before:
            return


def _spread(graph: Graph) -> None:
    """Hand formats on once, from the first operator to the last."""
    for node in graph.nodes:
        if node.op_type in _ELEMENTWISE:
            for value in node.outputs:
                _hand_on(node, value)
        elif node.definition.mutates:
            _agree_on_update(node)


def _formats(graph: Graph) -> list[str]:
    return [value.format for node in graph.nodes for value in (*node.inputs, *node.outputs)]


def _host_format(node: Node) -> str:
    """The index rules start from channels first."""
    attrs = node.primitive.attrs
    return str(attrs.get("data_format", attrs.get("format", "NCHW")))


def _ask(node: Node, rule: _Rule) -> None:
    groups = int(node.primitive.attrs.get("group", 1))
    for values, named in ((node.inputs, rule.inputs), (node.outputs, rule.outputs)):
        for slot, value in enumerate(values):
            wanted = named.get(slot, rule.format)
            if value.format not in DEVICE_FORMATS and _fits(value, wanted):
                value.format = wanted
                value.sub_format = groups if wanted == FILTER and groups > 1 else 0


def _fits(value: Value, wanted: str) -> bool:
    is_rank = value.type.ndim == _NDIM[wanted] if wanted in _NDIM else value.type.ndim >= 2
    return is_rank and dtypes.dtype(value.type.dtype).is_float


def _hand_on(node: Node, value: Value) -> None:
    """Give an output the format of the first input that has one, and its shape."""
    for source in node.inputs:
        if source.format in DEVICE_FORMATS and source.type.shape == value.type.shape:
            _copy_format(source, value)
            return


def _agree_on_update(node: Node) -> None:
    """An optimizer keeps the states of a weight as it keeps the weight."""
    definition = node.definition
    weight = node.inputs[definition.mutates[0]]
    if weight.format in DEVICE_FORMATS:
        for value in node.inputs:
            if value.type.shape == weight.type.shape:
                _copy_format(weight, value)
    for value in node.outputs:
        if value.index in definition.aliases:
            source = node.inputs[definition.aliases[value.index]]
            value.format, value.sub_format = source.format, source.sub_format


def _copy_format(source: Value, target: Value) -> None:
    if target.format not in DEVICE_FORMATS:
        target.format, target.sub_format = source.format, source.sub_format
