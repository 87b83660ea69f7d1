"""dynamo_export: files of a model that ATC would take, and what is said of a model that has none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump.torchair as torchair
from msdump.errors import ConfigError, WriteError
from msdump.graph._proto import ge_ir_pb2

torch = pytest.importorskip("torch")

from msdump.torchair.export import air  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


class Model(torch.nn.Module):
    """The example of TorchAir's documentation."""

    def __init__(self, dtype: Any = torch.float32) -> None:
        super().__init__()
        self.p1 = torch.nn.Parameter(torch.arange(8, dtype=dtype).view(4, 2).t())
        self.inner = torch.nn.Module()
        self.inner.p2 = torch.nn.Parameter(torch.full((2, 4), 2, dtype=dtype))

    def forward(self, x: Any, y: Any) -> Any:
        return x + y + self.p1 + self.inner.p2


class Sum(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return x + y


class Nothing(torch.nn.Module):
    def forward(self, x: Any) -> int:
        return 3


X, Y = torch.ones(2, 4), torch.ones(2, 4)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exported(*args: Any, model: Any, name: str = "export.air", path: str = "export_file", **options: Any) -> Any:
    """The GraphDef that was written."""
    torchair.dynamo_export(*args, model=model, export_path=path, **options)
    definition = ge_ir_pb2.ModelDef()
    definition.ParseFromString((Path(path) / name).read_bytes())
    (graph,) = definition.graph
    return graph


def by_type(graph: Any, *types: str) -> list[Any]:
    return [op for op in graph.op if op.type in types]


def nodes(text: str) -> list[str]:
    """Types of a readable graph's operators."""
    return [line.split('"')[1] for line in text.splitlines() if line.startswith("    op: ")]


def test_the_files_of_the_documentation() -> None:
    graph = exported(X, Y, model=Model(), dynamic=False)
    assert sorted(path.name for path in Path("export_file").iterdir()) == ["dynamo.pbtxt", "export.air"]
    assert list(graph.input) == [f"{op.name}:0" for op in by_type(graph, "Data")]
    kinds = [op.type for op in graph.op]
    assert sorted(kinds) == sorted(["Const"] * 2 + ["Data"] * 2 + ["Add"] * 3 + ["NetOutput"])
    assert nodes(Path("export_file/dynamo.pbtxt").read_text()) == kinds
    constants = [np.frombuffer(op.attr["value"].t.data, np.float32) for op in by_type(graph, "Const")]
    model = Model()
    for constant, parameter in zip(constants, (model.p1, model.inner.p2), strict=True):
        np.testing.assert_array_equal(constant, parameter.detach().numpy().ravel())
    assert not any("_readable_value" in op.attr for op in by_type(graph, "Const"))
    assert [op.attr["index"].i for op in by_type(graph, "Data")] == [0, 1]


def test_a_model_file_has_the_fields_of_torchairs() -> None:
    """Source: an .air file of TorchAir for the sum of two tensors."""
    torchair.dynamo_export(X, Y, model=Sum())
    definition = ge_ir_pb2.ModelDef()
    definition.ParseFromString(Path("export_file/export.air").read_bytes())
    assert not definition.name and definition.attr["target_type"].s == b"MINI"
    assert set(definition.attr) == {
        "target_type",
        "stream_num",
        "event_num",
        "weight_size",
        "p2p_memory_size",
        "memory_size",
        "label_num",
    }
    (graph,) = definition.graph
    assert set(graph.attr) == {"_executor_type"} and not graph.output
    ends = {f"_{side}_name_{kind}" for side in ("input", "output") for kind in ("key", "value")}
    said = {"origin_format", "origin_shape_initialized", "format_for_int", "origin_format_for_int"}
    data, _, add, output = graph.op
    assert (list(data.input), list(add.input), list(output.input)) == ([""], ["arg0_1:0", "arg1_1:0"], ["Add:0"])
    assert (set(data.attr), set(add.attr)) == ({"index", *ends}, ends)
    assert set(output.attr) == {"_input_name_key", "_input_name_value"}
    assert list(add.attr["_input_name_key"].list.s) == [b"x1", b"x2"]
    assert set(data.input_desc[0].attr) == said and set(data.output_desc[0].attr) == {*said, "_meta"}
    assert set(add.output_desc[0].attr) == {*said, "_meta", "_fx_tensor_name"} == set(output.input_desc[0].attr)
    for descriptor in (*data.input_desc, *data.output_desc, *add.input_desc, *add.output_desc, *output.input_desc):
        assert (descriptor.name, descriptor.dtype, descriptor.layout) == ("", ge_ir_pb2.DT_FLOAT, "ND")
        assert list(descriptor.shape.dim) == [2, 4]
        assert (descriptor.attr["origin_format"].s, descriptor.attr["format_for_int"].i) == (b"ND", 2)


def test_the_same_model_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    import itertools

    from msdump.torchair.export import dynamo_export

    texts = []
    for path in ("a", "b"):
        monkeypatch.setattr(dynamo_export, "_graph_ids", itertools.count(1))
        torchair.dynamo_export(X, Y, model=Model(), export_path=path)
        texts.append([(Path(path) / name).read_bytes() for name in ("export.air", "dynamo.pbtxt")])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_that_are_too_large_have_files(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(air, "LIMIT_BYTES", 8 * dtype.itemsize * 2 - 1)
    model = Model(dtype)
    graph = exported(X.to(dtype), Y.to(dtype), model=model)
    assert not by_type(graph, "Const")
    for op, name in zip(by_type(graph, "FileConstant"), ("p1", "inner_p2"), strict=True):
        assert (op.attr["file_path"].s.decode(), op.attr["file_id"].s) == (f"export_file/{name}", b"")
        assert list(op.attr["shape"].list.i) == [2, 4]
        assert op.attr["dtype"].dt == op.output_desc[0].dtype != 0
        parameter = model.get_parameter(name.replace("_", ".")).detach().contiguous()
        assert (Path("export_file") / name).read_bytes() == parameter.view(torch.uint8).numpy().tobytes()


def test_open_sizes_stay_open() -> None:
    class Shaped(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            z = torch.cat((x + y, y), 0)
            return z.size()[1], z

    graph = exported(X, Y, model=Shaped(), dynamic=True)
    assert [list(op.output_desc[0].shape.dim) for op in by_type(graph, "Data")] == [[-1, -1], [-1, -1]]
    assert len(by_type(graph, "Shape")) == 1


def test_inputs_and_buffers_that_are_written_are_references() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: Any, y: Any) -> Any:
            self.total.add_(x.sum(0))
            x.mul_(2)
            return y + self.total

    model, x = Counting(), torch.ones(2, 4)
    graph = exported(x, Y, model=model)
    names = [op.name for op in by_type(graph, "RefData")]
    assert sorted(name.rpartition("_")[0] for name in names) == ["RefData_2_4_4_1_0", "RefData_4_1_0"]
    assert [op.attr["index"].i for op in by_type(graph, "Data")] == [0]
    assert list(graph.input)[1:] == [f"{name}:0" for name in sorted(names, key=lambda name: name[-1])]
    assert {op.input[0] for op in by_type(graph, "Assign")} == {f"{name}:0" for name in names}
    # An export runs nothing.
    assert torch.equal(model.total, torch.zeros(4)) and torch.equal(x, torch.ones(2, 4))


@pytest.fixture
def one_process() -> Iterator[None]:
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_a_rank_of_a_job(one_process: None) -> None:
    class Reduced(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p1 = torch.nn.Parameter(torch.ones(2, 4))

        def forward(self, x: Any) -> Any:
            x = x + self.p1
            torch.distributed.all_reduce(x)
            return x

    config = torchair.CompilerConfig()
    config.export.experimental.auto_atc_config_generated = True
    graph = exported(X, model=Reduced(), path="mp", export_name="mp_rank", name="mp_rank0.air", config=config)
    (reduce,) = by_type(graph, "HcomAllReduce")
    assert list(reduce.attr["ranklist"].list.i) == [0]
    files = sorted(str(path.relative_to("mp")) for path in Path("mp").rglob("*") if path.is_file())
    assert files == ["model_relation_config.json", "mp_rank0.air", "numa_config.json", "rank_0/dynamo.pbtxt"]
    relation = json.loads(Path("mp/model_relation_config.json").read_text())
    assert relation["deploy_config"] == [{"submodel_name": "mp_rank0.air", "deploy_device_id_list": "0:0:0"}]
    assert [group["group_rank_list"] for group in relation["comm_group"]] == ["[0]"]
    cluster = json.loads(Path("mp/numa_config.json").read_text())
    assert cluster["cluster"][0]["cluster_nodes"][0]["item_list"] == [{"item_id": 0}]


def test_modules_are_recorded_where_that_is_chosen() -> None:
    outer = torch.nn.Sequential(torch.nn.Linear(4, 3))
    config = torchair.CompilerConfig()
    config.export.experimental.enable_record_nn_module_stack = True
    graph = exported(X, model=outer, config=config)
    assert "Linear" in by_type(graph, "Add", "MatMulV2")[0].attr["nn_module_stack"].s.decode()


def test_what_is_refused() -> None:
    captured, frozen = torchair.CompilerConfig(), torchair.CompilerConfig()
    captured.mode = "npugraph_ex"
    frozen.experimental_config.frozen_parameter = True
    for config, says in ((captured, "Only a GE graph"), (frozen, "frozen_parameter")):
        with pytest.raises(ConfigError, match=says):
            torchair.dynamo_export(X, Y, model=Sum(), config=config)
    with pytest.raises(ConfigError, match=r"torch\.nn\.Module, got function"):
        torchair.dynamo_export(X, model=lambda x: x)
    with pytest.raises(ConfigError, match="without an operator"):
        torchair.dynamo_export(X, model=Nothing())
    assert not Path("export_file").exists()


@pytest.mark.parametrize("link", ["export_file", "export_file/export.air", "export_file/dynamo.pbtxt"])
def test_a_link_is_not_followed(link: str) -> None:
    Path("elsewhere").mkdir()
    if "/" in link:
        Path("export_file").mkdir()
    Path(link).symlink_to(Path("elsewhere").resolve())
    with pytest.raises(WriteError, match="symbolic link"):
        torchair.dynamo_export(X, Y, model=Sum())
    assert not list(Path("elsewhere").iterdir())


JOB = """
import os, sys, torch, torch_npu, torchair

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.p1 = torch.nn.Parameter(torch.tensor([[1.1, 1.1], [1.1, 1.1]]))

    def forward(self, x, y):
        x = x + y + self.p1
        torch.distributed.all_reduce(x)
        return x

def example(rank, store):
    torch.distributed.init_process_group("hccl", init_method=f"file://{store}", rank=rank, world_size=2)
    x = torch.ones([2, 2], dtype=torch.int32)
    config = torchair.CompilerConfig()
    config.export.experimental.auto_atc_config_generated = True
    names = {"export_path": "./mp", "export_name": "mp_rank"}
    torchair.dynamo_export(x, x + 1, model=Model(), dynamic=True, config=config, **names)

if __name__ == "__main__":
    torch.multiprocessing.spawn(example, args=(os.path.abspath("store"),), nprocs=2, join=True)
"""


@pytest.mark.slow
def test_two_processes_of_a_job(folder: Path) -> None:
    (folder / "script.py").write_text(JOB)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "msdump", "run", "script.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    files = sorted(str(path.relative_to("mp")) for path in Path("mp").rglob("*") if path.is_file())
    assert files == [
        "model_relation_config.json",
        "mp_rank0.air",
        "mp_rank1.air",
        "numa_config.json",
        "rank_0/dynamo.pbtxt",
        "rank_1/dynamo.pbtxt",
    ]
    relation = json.loads(Path("mp/model_relation_config.json").read_text())
    assert [group["group_rank_list"] for group in relation["comm_group"]] == ["[0, 1]"]
