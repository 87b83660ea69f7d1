"""Files of debug.graph_dump: what stands in them, and who can read them."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from google.protobuf import text_format  # noqa: E402
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto  # noqa: E402
from google.protobuf.descriptor_pool import DescriptorPool  # noqa: E402
from google.protobuf.message_factory import GetMessageClass  # noqa: E402

from msdump import torchair  # noqa: E402
from msdump.errors import ConfigError, WriteError  # noqa: E402
from msdump.formats.paths.torchair import parse_graph_dump_name  # noqa: E402
from msdump.graph._proto import ge_ir_pb2  # noqa: E402
from msdump.process import sessions  # noqa: E402
from msdump.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor  # noqa: E402
from msdump.torchair.ge.passes import GE_PASSES  # noqa: E402
from msdump.torchair.graph_dump.emit import ge_graph_text, graph_text, tensorboard_text, write_ge_graph  # noqa: E402
from tests.torchair.golden_graph import FOLDER, golden_texts, stages  # noqa: E402
from tests.torchair.test_ge_core import compiled  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.linear(x)).view(-1, 2) * 2


def dumped(path: Path, file_type: str, function: Any = None, mode: str = "max-autotune", **options: Any) -> Any:
    """The function, compiled with a graph dump into `path`."""
    config = torchair.CompilerConfig()
    config.mode = mode
    config.debug.graph_dump.type = file_type
    config.debug.graph_dump.path = str(path)
    for name, value in options.items():
        setattr(config.debug, name, value)
    return torch.compile(function or Model(), backend=torchair.get_npu_backend(compiler_config=config))


def files_of(path: Path, stage: str) -> list[Path]:
    names = {file: parse_graph_dump_name(file.name) for file in path.iterdir()}
    assert all(names.values())
    return sorted(file for file, name in names.items() if name is not None and name.stage == stage)


def test_files_are_the_golden_ones() -> None:
    for name, text in golden_texts().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name}: see tests/torchair/golden_graph"


@pytest.mark.parametrize("file_type", ["txt", "pbtxt", "py"])
def test_constants_that_passes_make_are_written(file_type: str, tmp_path: Path) -> None:
    """The compiler is called in the mode in which AOTAutograd traces, where tensors hold nothing."""
    function = dumped(tmp_path, file_type, lambda x: torch.cat(x.split(1, -1)[::-1]))
    x = torch.randn(2, 3, requires_grad=True)
    function(x).sum().backward()
    assert len(files_of(tmp_path, "original")) == len(files_of(tmp_path, "optimized")) == 2


# -- txt -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_optimized", [False, True])
def test_txt_is_a_graph_definition(is_optimized: bool) -> None:
    graph = next(graph for graph, found in stages() if found == is_optimized)
    definition = text_format.Parse(ge_graph_text(graph, "txt", is_optimized), ge_ir_pb2.GraphDef())
    assert [(op.name, op.type) for op in definition.op] == [(op.name, op.type) for op in graph.ops]
    by_name = {op.name: op for op in definition.op}
    for op in definition.op:
        for edge in filter(None, op.input):
            name, _, index = edge.rpartition(":")
            assert -1 <= int(index) < len(by_name[name].output_desc)
        unfed = [desc for desc in op.input_desc if "_is_unfed_optional" in desc.attr]
        assert len(unfed) == list(op.input).count("")
        assert all((desc.layout == "ND") == (is_optimized or op.type == DATA) for desc in op.output_desc)
    assert by_name["MatMul"].attr["transpose_x2"].b == is_optimized
    assert by_name["Const_1"].attr["_readable_value"].s == b"2"
    assert sorted(definition.attr) == (
        ["_executor_type", "_input_placements", "_output_dtypes"] if is_optimized else []
    )


def test_a_constant_keeps_its_bytes() -> None:
    graph, _ = next(stages())
    definition = text_format.Parse(ge_graph_text(graph, "txt"), ge_ir_pb2.GraphDef())
    constants = {op.name: op.attr["value"].t for op in definition.op if op.type == CONST}
    for op in graph.ops:
        if op.type == CONST:
            assert op.constant is not None
            assert constants[op.name].data == op.constant.reshape(-1).view(torch.uint8).numpy().tobytes()
            assert list(constants[op.name].desc.shape.dim) == list(op.constant.shape)


def fx_tensors(text: str) -> dict[str, str]:
    """`_fx_tensor_name` -> name of the operator, read line by line as comparison tools do it."""
    found: dict[str, str] = {}
    op = key = ""
    depth: list[str] = []
    for line in text.splitlines():
        words = line.strip()
        if words.endswith("{"):
            depth.append(words[:-1].strip())
        elif words == "}":
            depth.pop()
        else:
            name, value = words.split(": ")
            if name == "name" and depth == ["op"]:
                op = value.strip('"')
            elif name == "key":
                key = value
            elif name == "s" and key == '"_fx_tensor_name"' and depth[:2] == ["op", "output_desc"]:
                found[value.strip('"')] = op
    assert not depth
    return found


def test_txt_names_the_fx_output_that_an_operator_gives() -> None:
    graph, _ = next(stages())
    assert fx_tensors(ge_graph_text(graph, "txt")) == {
        "permute_default-aten.permute.default.OUTPUT.0": "Transpose",
        "mm_default-aten.mm.default.OUTPUT.0": "MatMul",
        "mul_tensor-aten.mul.Tensor.OUTPUT.0": "Mul",
        "topk_default-aten.topk.default.OUTPUT.0": "TopKV2",
        "topk_default-aten.topk.default.OUTPUT.1": "Cast",
        "view_default-aten.view.default.OUTPUT.0": "Reshape",
        "add_tensor-aten.add.Tensor.OUTPUT.0": "Add",
        "copy__default-aten.copy_.default.OUTPUT.0": "Assign",
    }


def test_a_colon_in_a_value_parts_no_line() -> None:
    graph = GeGraph(1)
    values = {"note": "a: b", "notes": ["c: d: e", ""], "none": [], "mixed": [1, 2.5], "nested": [[1], [2, 3]]}
    graph.add(GeOp("", "Print", attrs=dict(values), output_names=()))
    text = graph_text(graph)
    assert all(line.count(": ") <= 1 for line in text.splitlines())
    (op,) = text_format.Parse(text, ge_ir_pb2.GraphDef()).op
    assert op.attr["note"].s == b"a: b"
    assert list(op.attr["notes"].list.s) == [b"c: d: e", b""]
    assert op.attr["none"].WhichOneof("value") == "list"
    assert list(op.attr["mixed"].list.f) == [1.0, 2.5]
    assert [list(item.list_i) for item in op.attr["nested"].list_list_int.list_list_i] == [[1], [2, 3]]


def test_open_sizes_are_minus_one() -> None:
    graphs: list[GeGraph] = []
    function = compiled(lambda x: (x + 1).view(-1, x.shape[0]), graphs, dynamic=True)
    for rows in (4, 6):
        assert torch.equal(function(torch.ones(rows, 2)), torch.full((2, rows), 2.0))
    definition = text_format.Parse(graph_text(graphs[0]), ge_ir_pb2.GraphDef())
    add = next(op for op in definition.op if op.type == "Add")
    assert -1 in add.output_desc[0].shape.dim
    scalars = [op.output_desc[0] for op in definition.op if op.type == DATA and not op.output_desc[0].shape.dim]
    assert [(desc.dtype, desc.device_type) for desc in scalars[:1]] == [(ge_ir_pb2.DT_INT64, "CPU")]


@pytest.mark.parametrize(
    ("dtype", "number", "ge_number"),
    [("float32", 1, 0), ("bfloat16", 27, 27), ("bool", 11, 12), ("int64", 8, 9), ("float8_e4m3fnuz", 0, 28)],
)
def test_dtypes_have_both_numbers(dtype: str, number: int, ge_number: int) -> None:
    graph = GeGraph(1)
    op = GeOp("x", DATA, attrs={"index": 0})
    op.outputs = (GeTensor(op, 0, fake=torch.empty(0, dtype=getattr(torch, dtype))),)
    graph.add(op)
    (data,) = text_format.Parse(graph_text(graph), ge_ir_pb2.GraphDef()).op
    assert data.output_desc[0].dtype == number
    assert f"dtype={ge_number}, shape=[0]" in ge_graph_text(graph, "py")
    (data,) = text_format.Parse(graph_text(graph, is_optimized=True), ge_ir_pb2.GraphDef()).op
    assert data.output_desc[0].dtype == (number or ge_ir_pb2.DT_FLOAT)


# -- pbtxt ---------------------------------------------------------------------------------------------------------


def tensorflow_graph() -> Any:
    """TensorFlow's GraphDef, as far as its nodes go.   Source: TensorFlow, graph.proto, node_def.proto."""
    field = FieldDescriptorProto
    file = FileDescriptorProto(name="tf.proto", package="tensorflow", syntax="proto3")

    def message(name: str, *fields: tuple[str, int, int, int, str]) -> DescriptorProto:
        made = DescriptorProto(name=name)
        for field_name, number, kind, label, type_name in fields:
            made.field.add(name=field_name, number=number, type=kind, label=label, type_name=type_name or None)
        return made

    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    text, node = field.TYPE_STRING, field.TYPE_MESSAGE
    node_def = message(
        "NodeDef",
        ("name", 1, text, one, ""),
        ("op", 2, text, one, ""),
        ("input", 3, text, many, ""),
        ("device", 4, text, one, ""),
        ("attr", 5, node, many, ".tensorflow.NodeDef.AttrEntry"),
    )
    entry = message("AttrEntry", ("key", 1, text, one, ""), ("value", 2, node, one, ".tensorflow.AttrValue"))
    entry.options.map_entry = True
    node_def.nested_type.append(entry)
    attr_value = message("AttrValue", ("s", 2, field.TYPE_BYTES, one, ""))
    graph_def = message("GraphDef", ("node", 1, node, many, ".tensorflow.NodeDef"))
    file.message_type.extend([graph_def, node_def, attr_value])
    descriptor = DescriptorPool().AddSerializedFile(file.SerializeToString())
    return GetMessageClass(descriptor.message_types_by_name["GraphDef"])()


def stock_tensorflow_graph() -> Any:
    return pytest.importorskip("tensorboard.compat.proto.graph_pb2").GraphDef()


@pytest.mark.parametrize("message", [tensorflow_graph, stock_tensorflow_graph])
def test_pbtxt_is_a_tensorflow_graph(message: Any) -> None:
    graph, _ = list(stages())[-1]
    graph.ops[-1].controls.append(graph.ops[-2])
    parsed = text_format.Parse(ge_graph_text(graph, "pbtxt", is_optimized=True), message())
    assert [(node.name, node.op) for node in parsed.node] == [(op.name, op.type) for op in graph.ops]
    names = {node.name for node in parsed.node}
    for node in parsed.node:
        assert {edge.removeprefix("^").partition(":")[0] for edge in node.input} <= names
    by_name = {node.name: node for node in parsed.node}
    assert list(by_name["MatMul"].input) == ["arg0_1:0", "arg1_1:0"]
    assert list(by_name["NetOutput"].input)[-1] == "^Add"
    assert {"[i]x1", "[i]x2", "[i]bias", "[o]y", "transpose_x2"} <= set(by_name["MatMul"].attr)
    assert "[o]" in by_name["Const_1"].attr
    desc = text_format.Parse(by_name["Add"].attr["[o]y"].s.decode(), ge_ir_pb2.TensorDescriptor())
    assert desc.attr["_fx_tensor_name"].s == b"add_tensor-aten.add.Tensor.OUTPUT.0"
    assert text_format.Parse(by_name["MatMul"].attr["transpose_x2"].s.decode(), ge_ir_pb2.AttrDef()).b


# -- py ------------------------------------------------------------------------------------------------------------


def test_py_builds_every_operator_once() -> None:
    graph, _ = next(stages())
    text = ge_graph_text(graph, "py")
    compile(text, "graph.py", "exec")
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    assigned: dict[str, Any] = {"tensor": torch.tensor}

    class Api:
        """Stands in for TorchAir's: notes what is called."""

        def __getattr__(self, name: str) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if name == "Const":
                    return ("Const", args[0])
                calls.append((name, args, kwargs))
                return [f"{name}:{index}" for index in range(2)] if "node_name" not in kwargs else f"{name}:0"

            return call

    body = [line for line in text.splitlines() if not line.startswith(("from ", "#"))]
    exec("\n".join(body), {**assigned, "ge": Api()})
    types = [op.type for op in graph.ops if op.type != CONST]
    assert sorted(name for name, _, _ in calls) == sorted(types)
    by_type = {name: (args, kwargs) for name, args, kwargs in calls}
    assert by_type["Mul"][0] == ("MatMul:0", ("Const", 2))
    assert by_type["TopKV2"] == (("Mul:0", 2), {"sorted": True, "dim": -1, "largest": True})
    assert by_type["NetOutput"][0] == (["Add:0", "Cast:0"],)


def test_a_view_is_called_where_it_is_read() -> None:
    graph, _ = next(stages())
    lazy, eager = (GeGraph(1), GeGraph(1))
    for copy in (lazy, eager):
        copy.ops = graph.ops
    places = {
        is_lazy: [
            line.partition(":")[0] if line.startswith("##") else line.partition(" = ")[0]
            for line in ge_graph_text(copy, "py", is_view_lazy=is_lazy).splitlines()
        ]
        for is_lazy, copy in ((True, lazy), (False, eager))
    }
    for is_lazy, lines in places.items():
        comments = [index for index, line in enumerate(lines) if line == "## FX Code"]
        assert (lines.index("Transpose_0") > comments[1]) == is_lazy


def test_py_stays_what_it_was_before_the_passes() -> None:
    texts = golden_texts()
    assert texts["original.py.golden"] == texts["optimized.py.golden"]
    assert texts["original.txt.golden"] != texts["optimized.txt.golden"]


# -- files ---------------------------------------------------------------------------------------------------------


def test_the_original_comes_at_compilation_the_optimized_at_the_first_call(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    model = dumped(folder, "txt")
    assert not folder.exists()
    x = torch.randn(4, 3)
    result = model(x)
    assert len(files_of(folder, "original")) == len(files_of(folder, "optimized")) == 1
    result.sum().backward()
    originals, optimized = files_of(folder, "original"), files_of(folder, "optimized")
    assert len(originals) == len(optimized) == 2
    model(x)
    assert files_of(folder, "original") + files_of(folder, "optimized") == originals + optimized
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o640}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    for stage in (originals, optimized):
        names = [parse_graph_dump_name(file.name) for file in stage]
        ids = [name.graph_id for name in names if name is not None]
        assert ids[1] == ids[0] + 1


def test_run_eagerly_has_the_original_graph_only(tmp_path: Path) -> None:
    x = torch.randn(4, 3)
    model = Model()
    assert torch.equal(dumped(tmp_path, "py", model, run_eagerly=True)(x), model(x))
    assert len(files_of(tmp_path, "original")) >= 1
    assert not files_of(tmp_path, "optimized")


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    graph, _ = next(stages())
    target = tmp_path / "elsewhere"
    link = tmp_path / "graph.txt"
    link.symlink_to(target)
    with pytest.raises(RuntimeError) as error:
        write_ge_graph(graph, link, "txt")
    assert str(error.value).splitlines()[0] == f"Failed to create file: {link}"
    assert not target.exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="expected a folder"):
        dumped(tmp_path / "file", "txt")(torch.randn(4, 3))


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    graph, _ = next(stages())
    with pytest.raises(WriteError):
        write_ge_graph(graph, tmp_path / "gone" / "graph.txt", "txt")
    with pytest.raises(ConfigError, match="expected one of txt, pbtxt, py, got 'json'"):
        write_ge_graph(graph, tmp_path / "graph.json", "json")


@pytest.mark.parametrize("file_type", ["txt", "pbtxt"])
def test_other_modes_have_py_files_only(tmp_path: Path, file_type: str) -> None:
    with pytest.raises(Exception, match="Graph dump for aclGraph only support 'py' type"):
        dumped(tmp_path, file_type, mode="npugraph_ex")(torch.randn(4, 3))


def test_other_modes_print_the_fx_graph(tmp_path: Path) -> None:
    x, model = torch.randn(4, 3), Model()
    with torch.no_grad():
        assert torch.equal(dumped(tmp_path, "py", model, mode="npugraph_ex")(x), model(x))
    for stage in ("original", "optimized"):
        (file,) = files_of(tmp_path, stage)
        text = file.read_text()
        assert "def forward(self" in text
        assert "torch.ops.aten.relu" in text


def test_every_operator_says_its_end_in_an_optimized_graph() -> None:
    graph, _ = list(stages())[-1]
    definition = text_format.Parse(ge_graph_text(graph, "txt", is_optimized=True), ge_ir_pb2.GraphDef())
    for op in definition.op:
        for side, descriptors in (("input", op.input_desc), ("output", op.output_desc)):
            names = [name.decode() for name in op.attr[f"_{side}_name_key"].list.s]
            assert names == [desc.name for desc in descriptors]
            assert list(op.attr[f"_{side}_name_value"].list.i) == list(range(len(names)))
    assert definition.op[-1].type == NET_OUTPUT


@pytest.mark.parametrize("file_type", ["txt", "pbtxt"])
def test_after_each_pass_the_text_is_that_of_the_graph_as_it_is_now(file_type: str) -> None:
    texts: list[str] = []
    graph, _ = next(stages())
    for _, apply in GE_PASSES:
        apply(graph, CompilerConfig())
        texts.append(ge_graph_text(graph, file_type))
        assert texts[-1] == {"txt": graph_text, "pbtxt": tensorboard_text}[file_type](graph)
    assert len(set(texts)) == 4


# -- DUMP_GE_GRAPH -------------------------------------------------------------------------------------------------


def listed(folder: Path, detail: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Any]:
    """The graphs in the files of `DUMP_GE_GRAPH`, in their order, of a model that is trained for one step."""
    monkeypatch.setenv("DUMP_GE_GRAPH", detail)
    monkeypatch.setenv("DUMP_GRAPH_PATH", str(folder))
    config = torchair.CompilerConfig()
    for name, value in options.items():
        setattr(config.dump_config, name, value)
    model = Model()
    x = torch.randn(2, 3)
    expected = model(x)
    found = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config))(x)
    assert torch.equal(found, expected)
    found.sum().backward()
    return [text_format.Parse(path.read_text(), ge_ir_pb2.ModelDef()).graph[0] for path in sorted(folder.iterdir())]


def test_names_that_dump_layer_takes_stand_in_files_of_the_graph_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = listed(tmp_path / "new", "3", monkeypatch)
    names = [path.name for path in sorted((tmp_path / "new").iterdir())]
    assert [name.rpartition("_")[2] for name in names] == ["PreRunBegin.txt", "Build.txt"] * 2
    assert all(re.fullmatch(r"ge_proto_[0-9]{5}_graph_[0-9]+_\w+\.txt", name) for name in names)
    operators = [op.name for op in graphs[1].op if op.type == "Relu"]
    assert operators and not any(len(op.attr) or len(op.input_desc) or len(op.output_desc) for op in graphs[1].op)
    assert {edge.partition(":")[0] for op in graphs[1].op for edge in op.input if edge} <= {
        op.name for op in graphs[1].op
    }
    monkeypatch.delenv("DUMP_GE_GRAPH")
    (tmp_path / "dump").mkdir()
    torch._dynamo.reset()
    config = torchair.CompilerConfig()
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(tmp_path / "dump")
    config.dump_config.dump_layer = operators[0]
    torch.compile(Model(), backend=torchair.get_npu_backend(compiler_config=config))(torch.randn(2, 3))
    sessions.flush_all()
    assert [path.name for path in (tmp_path / "dump").rglob("Relu.*")]


@pytest.mark.parametrize("detail", ["1", "2"])
def test_detail_says_whether_constants_have_data(detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = listed(tmp_path, detail, monkeypatch)
    constants = [op for graph in graphs for op in graph.op if op.type == CONST]
    assert constants and all(len(op.output_desc) for op in constants)
    assert {"value" in op.attr for op in constants} == {detail == "1"}


def test_a_graph_that_runs_as_ge_graph_is_listed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dump").mkdir()
    options = {"enable_dump": True, "dump_path": str(tmp_path / "dump")}
    assert len(listed(tmp_path / "graphs", "3", monkeypatch, **options)) == 4


def test_a_wrong_variable_is_refused_and_a_wrong_folder_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DUMP_GE_GRAPH", "3")
    monkeypatch.setenv("DUMP_GRAPH_PATH", str(tmp_path / "file" / "graphs"))
    torch.compile(Model(), backend=torchair.get_npu_backend())(torch.randn(2, 3))
    assert "DUMP_GE_GRAPH: " in caplog.text
    monkeypatch.setenv("DUMP_GE_GRAPH", "4")
    with pytest.raises(Exception, match="environment variable DUMP_GE_GRAPH: expected"):
        torch.compile(Model(), backend=torchair.get_npu_backend())(torch.randn(2, 3))
