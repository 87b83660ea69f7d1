"""The `_proto` folders hold what proto/generate.py makes of proto/*.proto; both say what published tables say."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from msdump.formats._proto import dump_data_pb2
from msdump.graph._proto import debug_graph_pb2, ge_ir_pb2
from msdump.mindspore._proto import checkpoint_pb2, mind_ir_pb2
from msdump.tensors import dtypes
from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parent.parent
MODULES = [checkpoint_pb2, debug_graph_pb2, dump_data_pb2, ge_ir_pb2, mind_ir_pb2]

# One message a line: name, then `field = number type`.   Source: MindSpore's debug_graph.proto.
DEBUG_GRAPH = """
ModelProto: ir_version = 1 int64; domain = 2 string; model_version = 3 int64; graph = 4 GraphProto; metadata_operators = 5 OperatorSetProto
GraphProto: node = 1 rep NodeProto; name = 2 string; parameters = 3 rep ParameterProto; outputs = 4 rep OutputProto; const_vals = 5 rep NamedValueProto; root_name = 6 string
NodeProto: input = 1 rep InputProto; name = 2 string; op_type = 3 string; scope = 4 string; attribute = 5 rep AttributeProto; output_type = 6 TypeProto; output_i = 7 uint64; full_name = 8 string; source_address = 9 string
InputProto: name = 1 string; type = 2 InputProto.EdgeType
ParameterProto: name = 1 string; type = 2 TypeProto; default_val = 3 ValueProto
OutputProto: name = 1 string; type = 2 TypeProto
AttributeProto: name = 1 string; value = 2 ValueProto
NamedValueProto: key = 1 string; value = 2 ValueProto; full_name = 3 string
TypeProto: data_type = 1 DataType; tensor_type = 2 oneof TypeProto.Tensor; sequence_type = 3 oneof TypeProto.Sequence
TypeProto.Tensor: elem_type = 1 DataType; shape = 2 TensorShapeProto
TypeProto.Sequence: elem_types = 1 rep TypeProto
TensorShapeProto: dim = 1 rep TensorShapeProto.Dimension
TensorShapeProto.Dimension: size = 1 int64; name = 2 string
ValueProto: dtype = 1 DataType; bool_val = 2 bool; int_val = 3 int64; uint_val = 4 uint64; float_val = 5 float; double_val = 6 double; str_val = 7 string; tensor_val = 8 TensorProto; graph = 9 GraphProto; bool_vals = 10 rep bool; int_vals = 11 rep int64; uint_vals = 12 rep uint64; float_vals = 13 rep float; double_vals = 14 rep double; str_vals = 15 rep string; tensor_vals = 16 rep TensorProto; graphs = 17 rep GraphProto; values = 18 rep ValueProto; dict_val = 19 rep NamedValueProto; type_val = 20 TypeProto
TensorProto: node_name = 1 string; slot = 2 string; tensor_content = 3 bytes; dims = 4 rep int64; data_type = 5 DataType; finished = 6 bool; iter = 7 string; truncate = 8 bool
OperatorSetProto: operators = 1 rep OperatorProto; summary = 2 string
OperatorProto: name = 1 string; config = 2 bytes; obj_info = 3 bytes
"""  # noqa: E501

# Source: CANN's dump_data.proto.
DUMP_DATA = """
OriginalOp: name = 1 string; output_index = 2 uint32; data_type = 3 OutputDataType; format = 4 OutputFormat
Shape: dim = 1 rep uint64
DimRange: dim_start = 1 uint64; dim_end = 2 uint64
OpOutput: data_type = 1 OutputDataType; format = 2 OutputFormat; shape = 3 Shape; original_op = 4 OriginalOp; data = 5 bytes; size = 6 uint64; original_shape = 7 Shape; sub_format = 8 int32; address = 9 uint64; dim_range = 10 rep DimRange; offset = 11 uint64; arg_index = 12 uint32
OpInput: data_type = 1 OutputDataType; format = 2 OutputFormat; shape = 3 Shape; data = 4 bytes; size = 5 uint64; original_shape = 6 Shape; sub_format = 7 int32; address = 8 uint64; offset = 9 uint64; arg_index = 10 uint32; input_type = 11 uint32
OpBuffer: buffer_type = 1 BufferType; data = 2 bytes; size = 3 uint64
OpAttr: name = 1 string; value = 2 string
Workspace: type = 1 Workspace.SpaceType; data = 2 bytes; size = 3 uint64; arg_index = 4 uint32
DumpData: version = 1 string; dump_time = 2 uint64; output = 3 rep OpOutput; input = 4 rep OpInput; buffer = 5 rep OpBuffer; op_name = 6 string; attr = 7 rep OpAttr; space = 8 rep Workspace; dfx_message = 9 string
"""  # noqa: E501

# Source: MindSpore's checkpoint.proto.
CHECKPOINT = """
Checkpoint: value = 1 rep Checkpoint.Value
Checkpoint.Value: tag = 1 req string; tensor = 2 oneof TensorProto; maptensor = 3 oneof MapTensorProto
TensorProto: dims = 1 rep int64; tensor_type = 2 req string; tensor_content = 3 req bytes
MapTensorProto: tensor = 1 rep TensorProto
"""

# Source: CANN's ge_ir.proto; attribute groups are left out.
GE_IR = """
ModelDef: name = 1 string; version = 2 uint32; custom_version = 3 string; graph = 7 rep GraphDef; attr = 11 map AttrDef
GraphDef: name = 1 string; input = 4 rep string; output = 5 rep string; op = 6 rep OpDef; attr = 11 map AttrDef
OpDef: name = 1 string; type = 2 string; input = 5 rep string; attr = 10 map AttrDef; has_out_attr = 20 bool; id = 21 int64; stream_id = 22 int64; input_name = 23 rep string; src_name = 24 rep string; src_index = 25 rep int64; dst_name = 26 rep string; dst_index = 27 rep int64; input_i = 28 rep int64; output_i = 29 rep int64; workspace = 30 rep int64; workspace_bytes = 31 rep int64; is_input_const = 32 rep bool; input_desc = 33 rep TensorDescriptor; output_desc = 34 rep TensorDescriptor; subgraph_name = 35 rep string
TensorDescriptor: name = 1 string; dtype = 2 DataType; shape = 3 ShapeDef; layout = 4 string; attr = 5 map AttrDef; has_out_attr = 9 bool; size = 10 int64; weight_size = 11 int64; reuse_input = 12 bool; output_tensor = 13 bool; device_type = 14 string; input_tensor = 15 bool; real_dim_cnt = 16 int64; reuse_input_index = 17 int64; data_offset = 18 int64; cmps_size = 19 int64; cmps_tab = 20 bytes; cmps_tab_offset = 21 int64
ShapeDef: dim = 1 rep int64
TensorDef: desc = 1 TensorDescriptor; data = 2 bytes
NamedAttrs: name = 1 string; attr = 2 map AttrDef
AttrDef: list = 1 oneof AttrDef.ListValue; s = 2 oneof bytes; i = 3 oneof int64; f = 4 oneof float; b = 5 oneof bool; bt = 7 oneof bytes; func = 10 oneof NamedAttrs; td = 11 oneof TensorDescriptor; t = 12 oneof TensorDef; g = 13 oneof GraphDef; list_list_int = 14 oneof AttrDef.ListListInt; dt = 15 oneof int64; list_list_float = 16 oneof AttrDef.ListListFloat; expression = 17 oneof bytes
AttrDef.ListValue: s = 2 rep bytes; i = 3 rep int64; f = 4 rep float; b = 5 rep bool; bt = 7 rep bytes; td = 8 rep TensorDescriptor; t = 9 rep TensorDef; g = 10 rep GraphDef; na = 11 rep NamedAttrs; dt = 12 rep int64; val_type = 20 AttrDef.ListValue.ListValueType
AttrDef.ListListInt: list_list_i = 1 rep AttrDef.ListListInt.ListInt
AttrDef.ListListInt.ListInt: list_i = 1 rep int64
AttrDef.ListListFloat: list_list_f = 1 rep AttrDef.ListListFloat.ListFloat
AttrDef.ListListFloat.ListFloat: list_f = 1 rep float
"""  # noqa: E501

DATA_TYPES = {
    0: "UNDEFINED", 1: "BOOL", 2: "INT8", 3: "INT16", 4: "INT32", 5: "INT64", 6: "UINT8", 7: "UINT16", 8: "UINT32",
    9: "UINT64", 10: "FLOAT16", 11: "FLOAT32", 12: "FLOAT64", 13: "STRING", 14: "TENSOR", 15: "GRAPH", 16: "BOOLS",
    17: "INTS8", 18: "INTS16", 19: "INTS32", 20: "INTS64", 21: "UINTS8", 22: "UINTS16", 23: "UINTS32", 24: "UINTS64",
    25: "FLOATS16", 26: "FLOATS32", 27: "FLOATS64", 28: "STRINGS", 29: "TENSORS", 30: "GRAPHS", 31: "TUPLE",
    32: "LIST", 33: "DICT", 34: "NONE", 35: "SYM_INST", 36: "BASE_INT", 37: "BASE_UINT", 38: "BASE_FLOAT", 39: "TYPE",
    40: "ANYTHING", 41: "REFKEY", 42: "REF", 43: "UMONAD", 44: "IOMONAD",
}  # fmt: skip

# Those that the rest of CANN is known to number in this way; the dtype table is checked against all.
OUTPUT_DATA_TYPES = {
    0: "UNDEFINED", 1: "FLOAT", 2: "FLOAT16", 3: "INT8", 5: "INT16", 7: "INT32", 8: "INT64", 12: "DOUBLE", 11: "BOOL",
    4: "UINT8", 6: "UINT16", 9: "UINT32", 10: "UINT64", 16: "COMPLEX64", 17: "COMPLEX128", 23: "RESOURCE", 27: "BF16",
    29: "UINT1", 13: "STRING", 14: "DUAL_SUB_INT8", 15: "DUAL_SUB_UINT8", 18: "QINT8", 19: "QINT16", 20: "QINT32",
    21: "QUINT8", 22: "QUINT16", 24: "STRING_REF", 25: "DUAL", 26: "VARIANT", 28: "INT4", 30: "INT2", 31: "UINT2",
    32: "COMPLEX32", 33: "HIFLOAT8", 34: "FLOAT8_E5M2", 35: "FLOAT8_E4M3FN", 36: "FLOAT8_E8M0", 37: "FLOAT6_E3M2",
    38: "FLOAT6_E2M3", 39: "FLOAT4_E2M1", 40: "FLOAT4_E1M2", 41: "HIFLOAT4", 42: "HIFLOAT4_SCALE",
}  # fmt: skip

OUTPUT_FORMATS = {
    0: "NCHW", 1: "NHWC", 2: "ND", 3: "NC1HWC0", 4: "FRACTAL_Z", 12: "NC1HWC0_C04", 16: "HWCN", 27: "NDHWC",
    29: "FRACTAL_NZ", 30: "NCDHW", 32: "NDC1HWC0", 33: "FRACTAL_Z_3D", 34: "CN", 39: "FRACTAL_Z_G", 42: "NULL",
    43: "ND_RNN_BIAS", 46: "YUV_A", 47: "NCL", 49: "C1HWC0", 255: "MAX",
}  # fmt: skip


def descriptor_of(module: ModuleType) -> FileDescriptorProto:
    proto = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(proto)
    return proto


def message_lines(file: FileDescriptorProto) -> dict[str, str]:
    """Message -> its fields, in the words of the tables above."""
    prefix = f".{file.package}." if file.package else "."
    lines: dict[str, str] = {}

    def type_name(field: FieldDescriptorProto) -> str:
        return field.type_name.removeprefix(prefix) or FieldDescriptorProto.Type.Name(field.type)[5:].lower()

    def add(message: Any, outer: str) -> None:
        fields = []
        maps = {f"{outer}{message.name}.{n.name}": n for n in message.nested_type if n.options.map_entry}
        for field in message.field:
            kind = "oneof " if field.HasField("oneof_index") else ""
            kind = {field.LABEL_REPEATED: "rep ", field.LABEL_REQUIRED: "req "}.get(field.label, kind)
            entry = maps.get(type_name(field))
            typed = f"{kind}{type_name(field)}" if entry is None else f"map {type_name(entry.field[1])}"
            fields.append(f"{field.name} = {field.number} {typed}")
        lines[outer + message.name] = "; ".join(fields)
        for nested in message.nested_type:
            if not nested.options.map_entry:
                add(nested, f"{outer}{message.name}.")

    for message in file.message_type:
        add(message, "")
    return lines


def enum_numbers(file: FileDescriptorProto, name: str) -> dict[int, str]:
    (enum,) = (enum for enum in file.enum_type if enum.name == name)
    return {value.number: value.name for value in enum.value}


@pytest.mark.parametrize(
    ("module", "package", "syntax", "table"),
    [
        (debug_graph_pb2, "debugger", "", DEBUG_GRAPH),
        (dump_data_pb2, "toolkit.dumpdata", "proto3", DUMP_DATA),
        (ge_ir_pb2, "ge.proto", "proto3", GE_IR),
        (checkpoint_pb2, "", "", CHECKPOINT),
    ],
)
def test_messages_are_those_of_the_table(module: ModuleType, package: str, syntax: str, table: str) -> None:
    file = descriptor_of(module)
    assert (file.package, file.syntax) == (package, syntax)  # protoc leaves "proto2" out
    assert message_lines(file) == dict(line.split(": ", 1) for line in table.strip().splitlines())


def test_enum_numbers_are_those_of_the_table() -> None:
    graph, dump = descriptor_of(debug_graph_pb2), descriptor_of(dump_data_pb2)
    assert enum_numbers(graph, "DataType") == {number: f"DT_{name}" for number, name in DATA_TYPES.items()}
    assert enum_numbers(dump, "OutputDataType") == {n: f"DT_{name}" for n, name in OUTPUT_DATA_TYPES.items()}
    formats = enum_numbers(dump, "OutputFormat")
    assert set(formats) == {*range(50), 255}
    assert {number: formats[number] for number in OUTPUT_FORMATS} == {
        number: f"FORMAT_{name}" for number, name in OUTPUT_FORMATS.items()
    }
    assert (debug_graph_pb2.InputProto.DATA_EDGE, debug_graph_pb2.InputProto.CONTROL_EDGE) == (0, 1)


def test_the_dtype_table_has_the_same_numbers() -> None:
    for row in dtypes.TABLE:
        if row.debug_number is not None:
            assert getattr(debug_graph_pb2, f"DT_{row.name.upper()}") == row.debug_number
        if row.acl_number is not None:
            spelling = {"float32": "FLOAT", "float64": "DOUBLE", "bfloat16": "BF16"}.get(row.name, row.name.upper())
            assert getattr(dump_data_pb2, f"DT_{spelling}") == row.acl_number
            assert getattr(ge_ir_pb2, f"DT_{spelling}") == row.acl_number


@pytest.mark.parametrize("module", MODULES)
def test_every_message_is_a_class_of_the_module(module: ModuleType) -> None:
    for path in message_lines(descriptor_of(module)):
        found: Any = module
        for name in path.split("."):
            found = getattr(found, name)
        assert found().SerializePartialToString() == b""
        assert found.DESCRIPTOR.full_name.endswith(path)


def test_messages_survive_the_wire() -> None:
    checkpoint = checkpoint_pb2.Checkpoint()
    value = checkpoint.value.add(tag="conv1.weight")
    value.tensor.dims.extend([2, 3])
    value.tensor.tensor_type, value.tensor.tensor_content = "Float32", bytes(24)
    again = checkpoint_pb2.Checkpoint.FromString(checkpoint.SerializeToString())
    assert again == checkpoint
    assert again.value[0].WhichOneof("value") == "tensor"
    # version = "2.0", dump_time = 3; input: int32, ND, size 4.
    data = bytes.fromhex("0a03322e301003") + bytes.fromhex("220608071002" + "2804")
    dump = dump_data_pb2.DumpData.FromString(data)
    assert (dump.version, dump.dump_time, len(dump.input), dump.input[0].size) == ("2.0", 3, 1, 4)
    assert dump.input[0].data_type == dump_data_pb2.DT_INT32
    assert dump.input[0].format == dump_data_pb2.FORMAT_ND


def test_the_modules_load_without_the_c_runtime() -> None:
    code = (
        "from google.protobuf.internal import api_implementation as a; assert a.Type() == 'python'\n"
        "from msdump.graph._proto import debug_graph_pb2 as d, ge_ir_pb2 as g\n"
        "from msdump.formats._proto import dump_data_pb2\n"
        "t = d.TypeProto(tensor_type=d.TypeProto.Tensor(elem_type=d.DT_INT8))\n"
        "assert d.TypeProto.FromString(t.SerializeToString()) == t and d.InputProto.CONTROL_EDGE == 1\n"
        "o = g.OpDef(); o.attr['N'].i = 2; assert g.OpDef.FromString(o.SerializeToString()) == o\n"
    )
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, cwd=ROOT)


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_checked_in_files_are_what_the_generator_makes() -> None:
    pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools is not installed")
    texts = load("generate", ROOT / "proto" / "generate.py").generated_texts()
    assert {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("**/*_pb2.py*")} == set(texts)
    for name, text in texts.items():
        assert (PACKAGE / name).read_text(encoding="utf-8") == text, f"{name}: run python proto/generate.py"


@pytest.mark.parametrize("module", MODULES)
def test_stock_code_made_by_protoc_lives_in_the_same_process(module: ModuleType, tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools is not installed")
    name = module.DESCRIPTOR.name.removesuffix(".proto")
    assert protoc.main(["", f"-I{ROOT / 'proto'}", f"--python_out={tmp_path}", f"{name}.proto"]) == 0
    stock = load(f"stock_{name}", tmp_path / f"{name}_pb2.py")
    assert descriptor_of(stock).message_type == descriptor_of(module).message_type
