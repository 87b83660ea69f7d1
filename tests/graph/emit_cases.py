"""Graphs to write to files: one by hand, and any number at random. They need no kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from msdump.graph.graph import Graph, Node, Parameter, Value
from msdump.graph.primitive import REGISTRY, Attrs, Primitive, def_infer, def_primitive
from msdump.graph.types import SourceLine, TensorType
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

SAME, PAIR, HIDDEN = "EmitSame", "EmitPair", "EmitHidden"
DTYPES = ("float32", "float16", "float64", "bfloat16", "bool", "int8", "int32", "int64", "uint8")


@pytest.fixture(scope="module", autouse=True)
def emit_primitives() -> Iterator[None]:
    """Three op types that only these tests know: one output, two outputs, no kernel."""
    def_primitive(SAME, ("x", "w"))
    def_primitive(PAIR, (), ("values", "count"))
    def_primitive(HIDDEN, is_kernel=False)

    @def_infer(SAME, HIDDEN)
    def infer_same(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return (types[0],)

    @def_infer(PAIR)
    def infer_pair(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return types[0], TensorType("int32", ())

    yield
    for name in (SAME, PAIR, HIDDEN):
        del REGISTRY[name]


def hand_graph() -> Graph:
    """Forward, a node with two outputs, a bookkeeping node, backward, update; numbered like a real one."""
    graph = Graph()
    x = graph.add_input("inputs0", TensorType("float32", (2, 3)))
    weight = graph.add_parameter(Parameter("conv3.weight", np.zeros((2, 3), np.float32), "float32"))
    rate = graph.add_parameter(Parameter("learning_rate", np.array(0.5, np.float32), "float32"))
    sizes = graph.add_constant(np.array([2, 6, 14, 14]), "int64")
    graph.parameter_order = [weight, x, rate]
    step = SourceLine("/home/user/wrap.py", 391, "        loss = self.network(*inputs)")
    cell = SourceLine("/home/user/train.py", 175, "        x = self.conv3(x)")
    attrs = {
        "kernel_size": (3, 3),
        "pad_mode": "same",
        "group": 1,
        "axis": (0,),
        "transpose_a": False,
        "sens": 1.0,
        "epsilon": 0.1,
        "dst_type": "float32",
        "nothing": None,
    }
    scope = "Default/network-Net/conv3-Conv2d"
    conv = graph.add_node(Primitive(SAME, attrs, "conv2d"), [x, weight], scope, [step, cell])
    pair = graph.add_node(Primitive(PAIR), [conv.outputs[0], sizes], "Default/network-Net", [step])
    pair.outputs[0].name = "loss"
    hidden = graph.add_node(Primitive(HIDDEN), list(pair.outputs), "Default", [])
    back_scope = f"Gradients/{scope}/gradEmitSame-expand"
    back = graph.add_node(
        Primitive(SAME), [hidden.outputs[0], pair.outputs[0]], back_scope, [step, cell], conv, "backward"
    )
    back.outputs[0].format = "FRACTAL_NZ"
    update = graph.add_node(
        Primitive(SAME, {"use_nesterov": True}, "opt"), [weight, back.outputs[0], rate], "", [], stage="update"
    )
    graph.outputs = [update.outputs[0]]
    graph.number(7)
    return graph


plain_attrs = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.sampled_from(["valid", "NCHW", "float32", "bfloat16", "a b", "", "string"]),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.lists(inner, max_size=3),
    max_leaves=5,
)
names = st.from_regex(r"[a-z_][a-z0-9_.]{0,8}", fullmatch=True)
scopes = st.sampled_from(["", "Default", "Default/net-Net/relu-ReLU", "Gradients/Default/net-Net/gradReLU-expand"])
# Letters, digits, signs and blanks of any script: what stands in a line of code.
codes = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=20).map(str.rstrip)
source_lines = st.builds(
    SourceLine, st.from_regex(r"/?[a-z0-9_./ -]{1,12}\.py", fullmatch=True), st.integers(0, 10**6), codes
)


@st.composite
def emit_graphs(draw: st.DrawFn) -> Graph:
    """A random graph of the three op types: any attributes, source lines, dtypes, shapes; values unused or shared."""
    number = draw(st.integers(0, 3))
    graph = Graph(f"kernel_graph_{number}", number)
    types = st.builds(TensorType, st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=3).map(tuple))

    def zeros(type: TensorType) -> Array:
        return np.zeros(type.shape, dtypes.dtype(type.dtype).numpy)

    values: list[Value] = []
    for name in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        type = draw(types)
        if draw(st.booleans()):
            values.append(graph.add_parameter(Parameter(name, zeros(type), type.dtype)))
        else:
            values.append(graph.add_input(name, type))
    for type in draw(st.lists(types, max_size=2)):
        values.append(graph.add_constant(zeros(type), type.dtype))
    nodes: list[Node] = []
    for _ in range(draw(st.integers(0, 6))):
        primitive = Primitive(
            draw(st.sampled_from([SAME, PAIR, HIDDEN])), draw(st.dictionaries(names, plain_attrs, max_size=3))
        )
        operands = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
        lines = draw(st.lists(source_lines, max_size=3))
        forward = draw(st.sampled_from([None, *nodes]))
        stage = "forward" if forward is None else "backward"
        nodes.append(graph.add_node(primitive, operands, draw(scopes), lines, forward, stage))
        values.extend(nodes[-1].outputs)
    graph.outputs = draw(st.lists(st.sampled_from(values), max_size=3))
    graph.number(draw(st.integers(0, 100)))
    return graph
