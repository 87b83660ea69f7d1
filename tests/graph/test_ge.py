"""Graph engine files: what protobuf reads back is the graph, at every level of detail."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.config.environment import GeGraphSettings, ge_graph_settings
from msdump.config.selectors import FullNameSelector, parse_selectors
from msdump.engine.ge_graph_files import GeGraphFiles
from msdump.errors import ConfigError, WriteError
from msdump.graph.ge import (
    BUILD,
    FULL,
    PRE_RUN_BEGIN,
    STAGES,
    TOPOLOGY,
    WITHOUT_DATA,
    ge_onnx_text,
    ge_proto_text,
    quoted,
)
from msdump.graph.graph import Graph
from msdump.mindspore.saved_graphs import write_ge_graph
from msdump.tensors import dtypes
from tests.graph.emit_cases import SAME, emit_graphs, emit_primitives, hand_graph
from tests.mindspore.program.test_device_formats import network

__all__ = ["emit_primitives"]

_TYPES = {"bytes": 12, "string": 9, "int64": 3, "uint32": 13, "float": 2, "bool": 8}
# Message -> fields as "number type name", "*" for repeated; a name of a message or enum of this table is its type.
_GE_IR = {
    "ListValue": "2 *bytes s,3 *int64 i,4 *float f,5 *bool b,20 ListValueType val_type",
    "ListInt": "1 *int64 list_i",
    "ListListInt": "1 *ListInt list_list_i",
    "AttrDef": "1 ListValue list,2 bytes s,3 int64 i,4 float f,5 bool b,12 TensorDef t,14 ListListInt list_list_int",
    "Entry": "1 string key,2 AttrDef value",
    "ShapeDef": "1 *int64 dim",
    "TensorDescriptor": "2 DataType dtype,3 ShapeDef shape,4 string layout,10 int64 size,5 *Entry attr",
    "TensorDef": "1 TensorDescriptor desc,2 bytes data",
    "OpDef": "1 string name,2 string type,5 *string input,10 *Entry attr,21 int64 id,22 int64 stream_id,"
    "24 *string src_name,25 *int64 src_index,26 *string dst_name,27 *int64 dst_index,"
    "33 *TensorDescriptor input_desc,34 *TensorDescriptor output_desc",
    "GraphDef": "1 string name,4 *string input,5 *string output,6 *OpDef op",
    "ModelDef": "7 *GraphDef graph",
}
_ENUMS = {
    "ListValueType": ["NONE", "STRING", "INT", "FLOAT", "BOOL"],
    "DataType": [
        "UNDEFINED", "FLOAT", "FLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64", "UINT32", "UINT64",
        "BOOL", "DOUBLE", "STRING",
    ],
}  # fmt: skip


def ge_model_class() -> Any:
    """ModelDef of ge_ir.proto, as far as it is written here. Maps are read as the entries that they are."""
    file = descriptor_pb2.FileDescriptorProto(name="ge_ir_of_tests.proto", package="ge_ir_of_tests", syntax="proto3")
    for name, values in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        prefix = "VT_LIST_" if name == "ListValueType" else "DT_"
        for place, value in enumerate(values):
            enum.value.add(name=prefix + value, number=place)
        if name == "DataType":
            enum.value.add(name="DT_BF16", number=27)
    for name, fields in _GE_IR.items():
        message = file.message_type.add(name=name)
        for text in fields.split(","):
            number, type_name, field_name = text.split()
            label = 3 if type_name.startswith("*") else 1
            plain = type_name.lstrip("*")
            if plain in _TYPES:
                message.field.add(name=field_name, number=int(number), type=_TYPES[plain], label=label)
            else:
                kind = 14 if plain in _ENUMS else 11
                message.field.add(
                    name=field_name, number=int(number), type=kind, label=label, type_name=f".ge_ir_of_tests.{plain}"
                )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ge_ir_of_tests.ModelDef"))


GE_MODEL = ge_model_class()


def read_ge(text: str) -> Any:
    [graph] = text_format.Parse(text, GE_MODEL()).graph
    return graph


def read_onnx(text: str) -> Any:
    onnx = pytest.importorskip("onnx")
    return text_format.Parse(text, onnx.ModelProto())


def spelled(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


quick = settings(max_examples=30, deadline=None)
details = st.sampled_from([FULL, WITHOUT_DATA, TOPOLOGY])


@quick
@given(st.text() | st.text(st.characters(categories=["Cs"])), st.binary())
def test_literals_are_read_back(text: str, data: bytes) -> None:
    parsed = text_format.Parse(f"name: {quoted(text)}", descriptor_pb2.FileDescriptorProto())
    assert parsed.name == spelled(text)
    tensor = text_format.Parse(f"string_value: {quoted(data)}", descriptor_pb2.UninterpretedOption())
    assert tensor.string_value == data


@quick
@given(emit_graphs(), details, st.sampled_from(STAGES))
def test_what_is_read_back_is_the_graph(graph: Graph, detail: int, stage: str) -> None:
    read = read_ge(ge_proto_text(graph, detail, stage))
    assert read.name == graph.name
    by_name = {op.name: op for op in read.op}
    assert len(by_name) == len(read.op)
    assert [(op.name, op.type) for op in read.op if op.type.startswith("Emit")] == [
        (node.full_name, node.op_type) for node in graph.nodes
    ]
    producer = {value.id: (node.full_name, value.index) for node in graph.nodes for value in node.outputs}
    for node in graph.nodes:
        op = by_name[node.full_name]
        sources = list(zip(op.src_name, op.src_index, strict=True))
        assert list(op.input) == [f"{name}:{index}" for name, index in sources]
        for value, source in zip(node.inputs, sources, strict=True):
            assert producer.get(value.id, source) == source and source[0] in by_name
        for name, slot in zip(op.dst_name, op.dst_index, strict=True):
            assert by_name[name].src_name[slot] == op.name
        if detail == TOPOLOGY:
            assert not op.attr and not op.input_desc and not op.output_desc
        else:
            assert [list(desc.shape.dim) for desc in op.output_desc] == [list(v.type.shape) for v in node.outputs]
            names = {entry.key for entry in op.attr}
            assert names >= set(node.primitive.attrs)
    [returned] = [op for op in read.op if op.type == "NetOutput"]
    assert list(returned.input) == list(read.output) and len(read.output) == len(graph.outputs)
    constants = [op for op in read.op if op.type == "Const"]
    assert len(constants) == len(graph.constants)
    for op, value in zip(constants, graph.constants, strict=True):
        data = [entry.value.t.data for entry in op.attr if entry.key == "value"]
        assert value.constant is not None
        assert data == ([] if detail == TOPOLOGY else [value.constant.tobytes() if detail == FULL else b""])


@quick
@given(emit_graphs(), details, st.sampled_from(STAGES))
def test_onnx_reads_the_same_graph(graph: Graph, detail: int, stage: str) -> None:
    read = read_onnx(ge_onnx_text(graph, detail, stage))
    assert [(node.name, node.op_type) for node in read.graph.node] == [(n.full_name, n.op_type) for n in graph.nodes]
    known = {value.name for value in read.graph.input}
    for node in read.graph.node:
        assert set(node.input) <= known
        known.update(node.output)
    assert {value.name for value in read.graph.output} <= known
    assert len(read.graph.output) == len(graph.outputs)
    if detail == FULL:
        assert len(read.graph.initializer) == len(graph.constants)


def attrs_of(op: Any) -> dict[str, Any]:
    return {entry.key: entry.value for entry in op.attr}


def test_attributes_of_every_kind() -> None:
    read = read_ge(ge_proto_text(hand_graph()))
    op = next(op for op in read.op if op.type == SAME)
    attrs = attrs_of(op)
    assert list(attrs["kernel_size"].list.i) == [3, 3]
    assert attrs["pad_mode"].s == b"same" and attrs["group"].i == 1 and attrs["transpose_a"].b is False
    assert attrs["epsilon"].f == np.float32(0.1)
    assert attrs["nothing"].s == b"None"
    assert list(attrs["input_names"].list.s) == [b"x", b"w"]


@pytest.mark.parametrize(
    ("value", "field", "expected"),
    [
        (((1, 2), (3,)), "list_list_int", [[1, 2], [3]]),
        ((True, False), "list", [True, False]),
        ((1.5,), "list", [1.5]),
        ((), "list", []),
        ((1, "a"), "s", b"(1, 'a')"),
        (2**64 - 1, "s", b"18446744073709551615"),
        (float("inf"), "f", float("inf")),
    ],
)
def test_odd_attributes(value: Any, field: str, expected: Any) -> None:
    graph = hand_graph()
    graph.nodes[0].primitive.attrs["odd"] = value  # type: ignore[index]
    found = next(attrs_of(op)["odd"] for op in read_ge(ge_proto_text(graph)).op if "odd" in attrs_of(op))
    if field == "list":
        assert [*found.list.i, *found.list.f, *found.list.b] == expected
    elif field == "list_list_int":
        assert [list(item.list_i) for item in found.list_list_int.list_list_i] == expected
    else:
        assert getattr(found, field) == expected
    names = {attr.name for node in read_onnx(ge_onnx_text(graph)).graph.node for attr in node.attribute}
    assert "odd" in names


def test_build_shows_the_device_and_the_first_stage_the_host() -> None:
    graph, values = network()
    built, first = (read_ge(ge_proto_text(graph, WITHOUT_DATA, stage)) for stage in (BUILD, PRE_RUN_BEGIN))

    def conv(read: Any) -> Any:
        return next(op for op in read.op if op.type == "Conv2D")

    assert [(desc.layout, list(desc.shape.dim)) for desc in conv(built).input_desc] == [
        ("NC1HWC0", [32, 16, 13, 13, 16]),
        ("FRACTAL_Z", [144, 24, 16, 16]),
    ]
    assert [(desc.layout, list(desc.shape.dim)) for desc in conv(first).input_desc] == [
        ("NCHW", [32, 256, 13, 13]),
        ("NCHW", [384, 256, 3, 3]),
    ]
    origin = attrs_of(conv(built).input_desc[1])
    assert origin["origin_format"].s == b"NCHW" and list(origin["origin_shape"].list.i) == [384, 256, 3, 3]
    assert {op.stream_id for op in first.op} == {0}
    assert {op.type for op in built.op if op.name in ("x", "conv3.weight")} == {"Data", "Variable"}
    assert values["x"].format == "NC1HWC0"


def test_names_are_what_a_configuration_accepts() -> None:
    graph, _ = network()
    names = [op.name for op in read_ge(ge_proto_text(graph, TOPOLOGY)).op if "-op" in op.name]
    assert names == [op.full_name for op in graph.op_infos()]
    for selector, name in zip(parse_selectors(names), names, strict=True):
        assert isinstance(selector, FullNameSelector) and selector.matches(name)


@pytest.mark.parametrize("name", sorted(dtypes.MINDSPORE_DUMPED))
def test_every_dumped_dtype_has_its_name_and_number(name: str) -> None:
    field = GE_MODEL.DESCRIPTOR.file.enum_types_by_name["DataType"].values_by_name
    assert field[dtypes.dtype(name).ge_name].number == dtypes.dtype(name).acl_number


def test_the_onnx_package_accepts_a_model() -> None:
    onnx = pytest.importorskip("onnx")
    graph, _ = network()
    model = read_onnx(ge_onnx_text(graph, FULL))
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input}
    assert shapes["conv3.weight:0"] == [384, 256, 3, 3]
    assert onnx.numpy_helper.to_array(model.graph.initializer[0]) == np.float32(0.1)
    assert onnx.load_from_string(model.SerializeToString()) == model


# -- settings and files --------------------------------------------------------------------------------------------


def settings_of(**environ: str) -> GeGraphSettings | None:
    return ge_graph_settings(PRE_RUN_BEGIN, BUILD, environ)


def test_without_the_switch_nothing_is_asked_for() -> None:
    assert settings_of() is None
    assert settings_of(DUMP_GE_GRAPH="", DUMP_GRAPH_LEVEL="nonsense") is None


@pytest.mark.parametrize(
    ("level", "stages"),
    [
        ("", STAGES),
        ("1", STAGES),
        ("2", STAGES),
        ("3", [BUILD]),
        ("4", [PRE_RUN_BEGIN]),
        ("Build|Other", [BUILD]),
        ("Begin | Build", STAGES),
    ],
)
def test_level_says_which_stages(level: str, stages: Sequence[str]) -> None:
    found = settings_of(DUMP_GE_GRAPH="2", DUMP_GRAPH_LEVEL=level)
    assert found is not None and found.folder == Path(".")
    assert [stage for stage in STAGES if found.wants(stage)] == list(stages)


@pytest.mark.parametrize(
    ("name", "value"), [("DUMP_GE_GRAPH", "4"), ("DUMP_GRAPH_LEVEL", "Bild"), ("DUMP_GRAPH_FORMAT", "readable|onx")]
)
def test_a_wrong_value_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^environment variable {name}: expected"):
        settings_of(**{"DUMP_GE_GRAPH": "1", name: value})


def test_files_have_the_names_of_the_original(tmp_path: Path) -> None:
    found = settings_of(DUMP_GE_GRAPH="3", DUMP_GRAPH_PATH=str(tmp_path / "graphs" / "new"))
    assert found is not None
    graph = hand_graph()
    for _ in range(2):
        recorder = GeGraphFiles(found)
        written = write_ge_graph(graph, recorder)
        assert [path.name for path in written] == [
            "ge_proto_00000_graph_0_PreRunBegin.txt",
            "ge_onnx_00000_graph_0_PreRunBegin.pbtxt",
            "ge_proto_00001_graph_0_Build.txt",
            "ge_onnx_00001_graph_0_Build.pbtxt",
        ]
    assert sorted(os.listdir(tmp_path / "graphs" / "new")) == sorted(path.name for path in written)
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
    assert read_ge(written[2].read_text()).name == graph.name
    assert [path.name[:14] for path in write_ge_graph(graph, recorder)] == [
        "ge_proto_00002",
        "ge_onnx_00002_",
        "ge_proto_00003",
        "ge_onnx_00003_",
    ]


def test_formats_are_a_choice(tmp_path: Path) -> None:
    found = settings_of(
        DUMP_GE_GRAPH="2", DUMP_GRAPH_LEVEL="3", DUMP_GRAPH_PATH=str(tmp_path), DUMP_GRAPH_FORMAT="ge_proto"
    )
    assert found is not None
    assert [path.suffix for path in write_ge_graph(hand_graph(), GeGraphFiles(found))] == [".txt"]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    recorder = GeGraphFiles(GeGraphSettings(1, None, tmp_path / "file" / "graphs", ("onnx",)))
    with pytest.raises(WriteError):
        write_ge_graph(hand_graph(), recorder)
