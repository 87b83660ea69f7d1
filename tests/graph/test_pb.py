"""The .pb file: what its readers need, and that what is read back is the graph."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError, GraphError
from msdump.graph._proto import debug_graph_pb2 as pb
from msdump.graph.graph import Graph
from msdump.graph.pb import GraphSummary, model_bytes, read_model
from msdump.graph.primitive import Primitive
from msdump.graph.types import SourceLine, TensorSummary, TensorType
from tests.graph.emit_cases import HIDDEN, PAIR, SAME, emit_graphs, emit_primitives, hand_graph

__all__ = ["emit_primitives"]

# How MindInsight's reader takes a stack apart.
MINDINSIGHT_LINE = re.compile(
    r"#(\s\s(?P<has_substack>\s|-))?\sIn\sfile\s(?P<file_path>.+)\:(?P<line_no>\d+)/(?P<code_line>.+)/"
)
ADDED = {"TupleGetItem", "MakeTuple"}


def own_nodes(summary: GraphSummary) -> list[str]:
    return [node.full_name for node in summary.nodes if node.op_type not in ADDED]


def test_the_hand_made_graph_field_by_field() -> None:
    model = pb.ModelProto.FromString(model_bytes(hand_graph()))
    graph = model.graph
    assert (model.ir_version, graph.name, graph.root_name) == (1, "kernel_graph_0", "0")
    assert [parameter.name for parameter in graph.parameters] == ["conv3.weight", "inputs0", "learning_rate"]
    assert [(c.key, c.full_name) for c in graph.const_vals] == [
        ("cst1", "Default--data-0"),
        ("cst2", "Default--data-1"),
        ("cst3", "Default--data-2"),
    ]
    assert graph.const_vals[0].value.tensor_val == pb.TensorProto(data_type=pb.DT_INT64, dims=[4])
    assert [c.value.int_val for c in graph.const_vals[1:]] == [0, 1]  # indices of TupleGetItem
    rows = [(node.name, node.op_type, node.full_name, [edge.name for edge in node.input]) for node in graph.node]
    assert rows == [
        ("1", SAME, f"Default/network-Net/conv3-Conv2d/{SAME}-op7", ["inputs0", "conv3.weight"]),
        ("2", PAIR, f"Default/network-Net/{PAIR}-op8", ["1", "cst1"]),
        ("3", "TupleGetItem", "Default/network-Net/TupleGetItem-op12", ["2", "cst2"]),
        ("4", "TupleGetItem", "Default/network-Net/TupleGetItem-op13", ["2", "cst3"]),
        ("5", HIDDEN, f"Default/{HIDDEN}-op9", ["3", "4"]),
        ("6", SAME, f"Gradients/Default/network-Net/conv3-Conv2d/gradEmitSame-expand/{SAME}-op10", ["5", "3"]),
        ("7", SAME, f"{SAME}-op11", ["conv3.weight", "6", "learning_rate"]),
    ]
    assert all(edge.type == pb.InputProto.DATA_EDGE for node in graph.node for edge in node.input)
    assert not any(node.HasField("output_i") for node in graph.node)
    assert [output.name for output in graph.outputs] == ["7"]
    assert [node.scope for node in graph.node[:2]] == ["Default/network-Net/conv3-Conv2d", "Default/network-Net"]


def test_attributes_of_the_hand_made_graph() -> None:
    node = pb.ModelProto.FromString(model_bytes(hand_graph())).graph.node[0]
    values = {attribute.name: attribute.value for attribute in node.attribute}
    assert list(values) == [
        *("kernel_size", "pad_mode", "group", "axis", "transpose_a", "sens", "epsilon", "dst_type", "nothing"),
        *("input_names", "output_names"),
    ]
    assert values["kernel_size"].dtype == pb.DT_TUPLE
    assert [(item.dtype, item.int_val) for item in values["kernel_size"].values] == [(pb.DT_INT64, 3)] * 2
    assert (values["pad_mode"].dtype, values["pad_mode"].str_val) == (pb.DT_STRING, "same")
    assert (values["transpose_a"].dtype, values["transpose_a"].bool_val) == (pb.DT_BOOL, False)
    assert (values["sens"].dtype, values["sens"].float_val) == (pb.DT_FLOAT32, 1.0)
    # 0.1 is no float32: exact for us, near for readers that know float_val only.
    assert (values["epsilon"].dtype, values["epsilon"].double_val) == (pb.DT_FLOAT64, 0.1)
    assert values["epsilon"].float_val == np.float32(0.1)
    assert (values["dst_type"].dtype, values["dst_type"].type_val.data_type) == (pb.DT_TYPE, pb.DT_FLOAT32)
    assert [item.str_val for item in values["input_names"].values] == ["x", "w"]


def test_mindinsight_reads_the_source_lines_innermost_first() -> None:
    node = pb.ModelProto.FromString(model_bytes(hand_graph())).graph.node[0]
    matches = [MINDINSIGHT_LINE.search(line.strip()) for line in node.source_address.strip().split("\n")]
    found = [(m["file_path"], m["line_no"], m["code_line"], m["has_substack"]) for m in matches if m is not None]
    assert found == [
        ("/home/user/train.py", "175", "        x = self.conv3(x)", None),
        ("/home/user/wrap.py", "391", "        loss = self.network(*inputs)", None),
    ]


def test_mindinsight_knows_every_kind_of_value() -> None:
    """Kinds that its reader takes apart; it refuses the whole file for any other."""
    known = {pb.DT_UNDEFINED, pb.DT_TYPE, pb.DT_BOOL, pb.DT_STRING, pb.DT_LIST, pb.DT_TUPLE}
    known |= {*range(pb.DT_INT8, pb.DT_UINT64 + 1), pb.DT_FLOAT16, pb.DT_FLOAT32, pb.DT_FLOAT64}
    for node in pb.ModelProto.FromString(model_bytes(hand_graph())).graph.node:
        assert {attribute.value.dtype for attribute in node.attribute} <= known
        assert node.output_type.data_type in (pb.DT_TENSOR, pb.DT_TUPLE)


@settings(max_examples=50, deadline=None)
@given(graph=emit_graphs())
def test_what_is_read_back_is_the_graph(graph: Graph) -> None:
    summary = read_model(model_bytes(graph))
    assert (summary.name, summary.root_name) == (graph.name, str(graph.graph_id))
    assert [parameter.name for parameter in summary.parameters] == [v.name for v in graph.dumped_parameters()]
    assert own_nodes(summary) == [node.full_name for node in graph.nodes]
    assert [node.name for node in summary.nodes] == [str(number + 1) for number in range(len(summary.nodes))]
    assert len({node.full_name for node in summary.nodes}) == len(summary.nodes)
    read = {node.full_name: node for node in summary.nodes}
    for node in graph.nodes:
        again = read[node.full_name]
        assert (again.op_type, again.scope) == (node.op_type, node.scope)
        assert again.attrs == node.primitive.attrs
        assert repr(again.attrs) == repr(dict(node.primitive.attrs))  # 1 is not True, (1,) not [1]
        assert again.source == node.source
        assert again.outputs == tuple(TensorSummary(v.type.dtype, v.type.shape) for v in node.outputs)
        assert (again.input_names, again.output_names) == (node.definition.input_names, node.definition.output_names)
    types = summary.types_by_name()
    made = set(types) - {node.name for node in summary.nodes}
    for row in summary.nodes:  # in order: what a node reads stands before it
        assert set(row.inputs) <= made
        made.add(row.name)
    for node in graph.nodes:
        operands = [types[name] for name in read[node.full_name].inputs]
        assert operands == [(TensorSummary(v.type.dtype, v.type.shape),) for v in node.inputs]
    assert len(summary.outputs) == 1
    assert summary.outputs[0] in types


@settings(max_examples=50, deadline=None)
@given(graph=emit_graphs(), data=st.data())
def test_damaged_bytes_are_read_or_refused(graph: Graph, data: st.DataObject) -> None:
    whole = model_bytes(graph)
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (whole[:at], bytes(flipped)):
        with contextlib.suppress(FormatError):  # and nothing else
            read_model(damaged).types_by_name()


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = model_bytes(hand_graph())
    path = tmp_path / "ms_output_trace_code_graph_0.pb"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(FormatError, match=re.escape(str(path))):
            read_model(path)
    path.write_bytes(whole)
    assert len(read_model(path).kernels) == 5


def test_a_file_of_the_original_in_small() -> None:
    """No tensor_val in constants, monads, Load: what MindSpore writes and msdump does not."""
    model = pb.ModelProto(ir_version=1)
    graph = model.graph
    graph.const_vals.add(key="cst1", full_name="Default--data-0").value.dtype = pb.DT_UMONAD
    graph.const_vals.add(key="cst2", full_name="Default--data-1").value.dtype = pb.DT_TENSOR
    load = graph.node.add(name="1", op_type="Load", full_name="conv1.weight")
    load.input.add(name="conv1.weight")
    load.output_type.data_type = pb.DT_TENSOR
    load.output_type.tensor_type.elem_type = pb.DT_FLOAT32
    state = graph.node.add(name="2", op_type="UpdateState", full_name="Default/UpdateState-op3")
    state.output_type.data_type = pb.DT_UMONAD
    summary = read_model(model.SerializeToString())
    assert [(constant.type, constant.value) for constant in summary.constants] == [
        (None, None),
        (TensorSummary(None, None), None),
    ]
    assert summary.nodes[0].outputs == (TensorSummary("float32", None),)
    assert summary.nodes[0].outputs[0].size_bytes is None
    assert summary.nodes[1].outputs == ()
    assert summary.kernels == ()


def test_sizes_in_bytes() -> None:
    assert TensorSummary("bfloat16", (3, 5)).size_bytes == 30
    assert TensorSummary("int64", ()).size_bytes == 8
    assert TensorSummary("int64", (0, 4)).size_bytes == 0
    assert TensorSummary("float32", (-1, 4)).size_bytes is None
    assert TensorSummary(None, (4,)).size_bytes is None


def test_what_the_file_cannot_hold_is_an_error_at_the_node() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", ()))
    source = [SourceLine("net.py", 3, "y = f(x)")]
    graph.add_node(Primitive(SAME, {"seed": 2**64}), [x], "Default", source)
    with pytest.raises(GraphError, match=r"EmitSame\(%x\) at net.py:3: attribute seed: .* 64 bits, got 18446744073709"):
        model_bytes(graph)
    graph.nodes.clear()
    graph.add_node(Primitive(SAME, {"shape": {1}}), [x], "Default", source)
    with pytest.raises(GraphError, match=r"attribute shape: expected a bool, .* got set"):
        model_bytes(graph)


def test_a_parameter_missing_in_the_order_is_an_error() -> None:
    graph = hand_graph()
    del graph.parameter_order[2]
    with pytest.raises(GraphError, match="%learning_rate is used, but missing in the parameter order"):
        model_bytes(graph)
