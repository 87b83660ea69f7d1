"""Formats and streams of an Ascend graph: as the guide's listing shows them, and without any effect on values."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.graph.graph import Graph, Node, Parameter, Value
from msdump.graph.ir import ir_text
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import MAX_STREAMS, assign_streams, dependencies, finish
from msdump.mindspore.program.device_formats import assign_device_formats
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from msdump.tensors import device_layouts
from msdump.tensors.arrays import Array
from msdump.tensors.records import DEFAULT_FORMAT
from tests.graph.emit_cases import emit_graphs, emit_primitives

__all__ = ["emit_primitives"]

CONV = {
    "out_channel": 384,
    "kernel_size": (3, 3),
    "mode": 1,
    "pad_mode": "same",
    "pad": (0, 0, 0, 0),
    "stride": (1, 1, 1, 1),
    "dilation": (1, 1, 1, 1),
    "group": 1,
    "format": "NCHW",
}


def parameter(name: str, *shape: int) -> Parameter:
    return Parameter(name, np.zeros(shape, np.float32), "float32")


def node(graph: Graph, op_type: str, inputs: list[Value], **attrs: object) -> Node:
    return graph.add_node(Primitive(op_type, attrs), inputs, "Default/network-Net")


def network() -> tuple[Graph, dict[str, Value]]:
    """Convolution, bias, activation, pooling, product, and an update of both weights."""
    graph = Graph()
    values = {
        "x": graph.add_input("x", TensorType("float32", (32, 256, 13, 13))),
        "w": graph.add_parameter(parameter("conv3.weight", 384, 256, 3, 3)),
        "moment": graph.add_parameter(parameter("moments.conv3.weight", 384, 256, 3, 3)),
        "bias": graph.add_parameter(parameter("conv3.bias", 384)),
        "fc": graph.add_parameter(parameter("fc.weight", 10, 384 * 36)),
        "rate": graph.add_constant(np.array(0.1, np.float32), "float32"),
    }
    conv = node(graph, "Conv2D", [values["x"], values["w"]], **CONV).outputs[0]
    biased = node(graph, "BiasAdd", [conv, values["bias"]], format="NCHW").outputs[0]
    relu = node(graph, "ReLU", [biased]).outputs[0]
    pool = node(graph, "MaxPool", [relu], kernel_size=(1, 1, 3, 3), strides=(1, 1, 2, 2), pad_mode="valid").outputs[0]
    flat = node(graph, "Flatten", [pool]).outputs[0]
    product = node(graph, "MatMul", [flat, values["fc"]], transpose_a=False, transpose_b=True).outputs[0]
    new = node(
        graph, "ApplyMomentum", [values["w"], values["moment"], values["rate"], values["w"], values["rate"]]
    ).outputs[0]
    values.update(conv=conv, biased=biased, relu=relu, pool=pool, flat=flat, product=product, new=new)
    graph.outputs = [product, new]
    return finish(graph, "Ascend"), values


def test_operands_have_the_formats_of_the_guide() -> None:
    _, values = network()
    images = {"x", "conv", "biased", "relu", "pool"}
    filters = {"w", "moment", "new"}
    for name, value in values.items():
        expected = "NC1HWC0" if name in images else "FRACTAL_Z" if name in filters else "FRACTAL_NZ"
        assert value.format == (DEFAULT_FORMAT if name in ("bias", "rate") else expected), name


def test_the_listing_shows_shapes_on_the_device_as_the_guide_does() -> None:
    text = ir_text(network()[0])
    assert (
        ": (<Float32xNC1HWC0[const vector][32, 16, 13, 13, 16]>, <Float32xFracZ[const vector][144, 24, 16, 16]>)"
        " -> (<Float32xNC1HWC0[const vector][32, 24, 13, 13, 16]>)\n"
    ) in text
    assert "<UnknownxFracZ[const vector][144, 24, 16, 16]>" in text
    assert "<Float32xFRACTAL_NZ[const vector][1, 2, 16, 16]>" in text


def test_other_targets_keep_the_layout_of_the_host() -> None:
    graph = network()[0]
    again = Graph()
    x = again.add_input("x", TensorType("float32", (2, 3)))
    again.outputs = [node(again, "MatMul", [x, x], transpose_a=False, transpose_b=True).outputs[0]]
    for value in (finish(again).outputs[0], finish(again, "GPU").outputs[0]):
        assert value.format == DEFAULT_FORMAT
    assert {op.stream_id for op in again.op_infos()} == {0}
    assert graph.outputs[0].format == "FRACTAL_NZ"


def test_groups_travel_with_the_weights() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (2, 8, 5, 5)))
    w = graph.add_parameter(parameter("w", 8, 2, 3, 3))
    graph.outputs = [node(graph, "Conv2D", [x, w], **{**CONV, "out_channel": 8, "group": 4}).outputs[0]]
    finish(graph, "Ascend")
    [op] = graph.op_infos()
    assert [(info.format, info.sub_format) for info in op.inputs] == [("NC1HWC0", 0), ("FRACTAL_Z", 4)]
    assert device_layouts.device_shape((8, 2, 3, 3), "FRACTAL_Z", 16, 4) == (9, 1, 16, 16)
    assert "<Float32xFracZ[const vector][9, 1, 16, 16]>" in ir_text(graph)


def test_channels_last_and_whole_numbers_are_left_alone() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("int32", (2, 3)))
    graph.outputs = [node(graph, "MatMul", [x, x], transpose_a=False, transpose_b=True).outputs[0]]
    assign_device_formats(graph)
    assert x.format == DEFAULT_FORMAT


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_formats_and_streams_change_no_value(case: GraphCase) -> None:
    def run() -> list[Array]:
        case.restore()
        with np.errstate(all="ignore"):
            return Executor(case.graph).run(case.inputs)

    plain = run()
    names = [op.full_name for op in case.graph.op_infos()]
    finish(case.graph, "Ascend")
    assert [array.tobytes() for array in run()] == [array.tobytes() for array in plain]
    assert [op.full_name for op in case.graph.op_infos()] == names
    for op in case.graph.op_infos():
        for info in (*op.inputs, *op.outputs):
            if info.format != DEFAULT_FORMAT:
                device_layouts.device_shape(
                    info.shape, info.format, device_layouts.cube_size(info.dtype), max(1, info.sub_format)
                )
    assert_same_memory_has_one_format(case.graph)


def assert_same_memory_has_one_format(graph: Graph) -> None:
    for made in graph.nodes:
        for slot, source in made.definition.aliases.items():
            output, operand = made.outputs[slot], made.inputs[source]
            assert (output.format, output.sub_format) == (operand.format, operand.sub_format)


def test_an_update_by_an_updated_tensor_leaves_no_memory_with_two_formats() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (3, 4)))
    weights = [graph.add_parameter(parameter(f"weight{number}", 3, 4)) for number in range(2)]
    first = node(graph, "Assign", [weights[1], x]).outputs[0]
    second = node(graph, "Assign", [weights[0], first]).outputs[0]
    product = node(graph, "MatMul", [x, weights[0]], transpose_a=False, transpose_b=True).outputs[0]
    graph.outputs = [second, product]
    finish(graph, "Ascend")
    assert_same_memory_has_one_format(graph)
    assert {value.format for value in (x, *weights, first, second, product)} == {"FRACTAL_NZ"}


def test_memory_that_an_operator_takes_after_its_update_has_that_format_before() -> None:
    """The operator names the updated tensor, not the parameter."""
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (2, 8, 5, 5)))
    weight = graph.add_parameter(parameter("w", 8, 2, 3, 3))
    new = node(graph, "AssignAdd", [weight, weight]).outputs[0]
    again = node(graph, "AssignAdd", [new, weight]).outputs[0]
    graph.outputs = [node(graph, "Conv2D", [x, again], **{**CONV, "out_channel": 8, "group": 4}).outputs[0]]
    finish(graph, "Ascend")
    assert {(value.format, value.sub_format) for value in (weight, new, again)} == {("FRACTAL_Z", 4)}


@settings(max_examples=40, deadline=None)
@given(emit_graphs())
def test_an_operator_follows_what_it_waits_for_or_is_on_a_stream_of_its_own(graph: Graph) -> None:
    assign_streams(graph)
    needs = dependencies(graph.nodes)
    last: dict[int, Node] = {}
    for made in graph.nodes:
        waits_for = {need.id for need in needs[made.id]}
        followed = {stream for stream, tail in last.items() if tail.id in waits_for}
        if followed:
            assert made.stream_id == min(followed)
        else:
            assert made.stream_id == len(last) if len(last) < MAX_STREAMS else made.stream_id in last
        last[made.stream_id] = made
    streams = [made.stream_id for made in graph.nodes]
    assign_streams(graph)
    assert [made.stream_id for made in graph.nodes] == streams


def test_independent_branches_are_on_different_streams() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (2,)))
    left, right = (node(graph, op_type, [x]).outputs[0] for op_type in ("Square", "Neg"))
    left = node(graph, "Exp", [left]).outputs[0]
    right = node(graph, "Exp", [right]).outputs[0]
    graph.outputs = [node(graph, "Add", [left, right]).outputs[0]]
    finish(graph, "Ascend")
    assert [(op.op_type, op.stream_id, op.task_id) for op in graph.op_infos()] == [
        ("Square", 0, 0),
        ("Neg", 1, 1),
        ("Exp", 0, 2),
        ("Exp", 1, 3),
        ("Add", 0, 4),
    ]
    assert re.search(r"Add-op\d+", graph.op_infos()[-1].full_name)
