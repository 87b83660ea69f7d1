"""dump_config: which files a compiled graph leaves, what they hold, and that the model does not notice."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import msdump.torchair as torchair  # noqa: E402
from msdump.config.acl_file import AclConfigError  # noqa: E402
from msdump.formats.bin import read_bin  # noqa: E402
from msdump.process import sessions  # noqa: E402
from msdump.torchair import graph_mode_dump  # noqa: E402
from msdump.torchair.ge.graph import GeGraph  # noqa: E402
from tests.torchair.graph_mode_dumps import (  # noqa: E402
    RANK,
    Net,
    backend,
    computed,
    dumped,
    files,
    net,
    steps,
    tree,
    values,
)

pytestmark = pytest.mark.usefixtures("own_dump")

FORWARD = {
    "Data.primals_1", "Data.primals_2", "Data.primals_3", "Data.primals_4", "MatMulV2.MatMulV2", "Mul.Mul", "Add.Add",
    "Relu.Relu", "Mul.Mul_1", "ReduceSum.ReduceSum", "Add.Add_1", "ReduceSum.ReduceSum_1",
}  # fmt: skip
BACKWARD = {
    "Data.tangents_1", "Data.detach", "Data.primals_3", "BroadcastTo.BroadcastTo", "Mul.Mul", "ReluGrad.ReluGrad",
    "MatMul.MatMul", "ReduceSum.ReduceSum", "Reshape.Reshape",
}  # fmt: skip


class Checked:
    """A dumped graph whose every call is made by single operators, too: the results must be the same bits."""

    def __init__(self, graph: GeGraph, run: Callable[[list[Any]], Any]) -> None:
        self.graph, self._run = graph, run
        self.calls: list[dict[tuple[str, int], Any]] = []

    def __call__(self, args: list[Any]) -> Any:
        expected, returned = computed(self.graph, args)
        self.calls.append(expected)
        result = self._run(args)
        for actual, other in zip(result, returned, strict=True):
            if isinstance(other, torch.Tensor):
                assert torch.equal(actual, other)
        return result


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Checked]:
    found: list[Checked] = []
    original = graph_mode_dump.dumped

    def spy(graph: GeGraph, config: Any) -> Any:
        run = original(graph, config)
        if run is None:
            return None
        found.append(Checked(graph, run))
        return found[-1]

    monkeypatch.setattr(graph_mode_dump, "dumped", spy)
    return found


def assert_values(path: Path, checked: list[Checked]) -> int:
    """Every dumped tensor holds the bits that its operator gives; how many there are."""
    sessions.close_all()
    count = 0
    found = files(path)
    for one in checked:
        readers = {
            (op.name, slot): tensor
            for op in one.graph.ops
            for slot, tensor in enumerate(tensor for tensor in op.inputs.values() if tensor is not None)
        }
        for index, expected in enumerate(one.calls):
            for (name, io, slot), value in values(found[one.graph.name, index]).items():
                tensor = readers.get((name, slot)) if io == "input" else None
                # An input has the place of the operand among those that are tensors while the graph runs.
                if io == "input" and (tensor is None or (tensor.op.name, tensor.index) not in expected):
                    continue
                other = expected[name, slot] if tensor is None else expected[tensor.op.name, tensor.index]
                assert value.dtype == other.dtype
                assert value.shape == other.shape, (name, io, slot)
                assert value.tobytes() == other.tobytes(), (name, io, slot)
                count += 1
    return count


# -- tree ----------------------------------------------------------------------------------------------------------


def test_every_operator_of_forward_and_backward(tmp_path: Path) -> None:
    assert dumped(tmp_path) == {
        ("graph_0", 0): FORWARD, ("graph_0", 1): FORWARD, ("graph_1", 0): BACKWARD, ("graph_1", 1): BACKWARD,
    }  # fmt: skip
    (folder,) = (tmp_path / RANK).iterdir()
    assert [device.name for device in folder.iterdir()] == ["0"]


@pytest.mark.parametrize(
    ("mode", "sides"), [("input", {"input"}), ("output", {"output"}), ("all", {"input", "output"})]
)
def test_mode_chooses_sides(tmp_path: Path, mode: str, sides: set[str]) -> None:
    dumped(tmp_path, 1, dump_mode=mode)
    found = files(tmp_path)
    assert {io for of_folder in found.values() for _, io, _ in values(of_folder)} == sides


def test_files_are_in_the_order_of_execution(tmp_path: Path, checked: list[Checked]) -> None:
    dumped(tmp_path, 1, dump_mode="output")
    forward = [file.name.split(".") for file in files(tmp_path)[checked[0].graph.name, 0]]
    tasks = [int(parts[2]) for parts in forward if parts[0] != "Data"]
    assert tasks == sorted(tasks)
    names = [parts[1] for parts in forward if parts[0] != "Data"]
    assert names == [op.name for op in checked[0].graph.ops if op.name in names]


@pytest.mark.parametrize(("steps_text", "indices"), [("0|3-4", {0, 3, 4}), ("1", {1}), ("2-3|", {2, 3}), ("7", set())])
def test_steps(tmp_path: Path, steps_text: str, indices: set[int]) -> None:
    found = dumped(tmp_path, 5, dump_step=steps_text, dump_mode="output")
    assert {index for _, index in found} == indices


def test_a_range_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    _, function = net(tmp_path, dump_step="4-3")
    with pytest.raises(Exception, match=r"EP0003: dump_step") as caught:
        function(torch.ones(2, 4))
    assert isinstance(getattr(caught.value, "inner_exception", caught.value), AclConfigError)


def test_layers_by_name_and_the_data_that_they_read(tmp_path: Path) -> None:
    found = dumped(tmp_path, 1, dump_layer="MatMulV2 Relu ReluGrad")
    assert found == {
        ("graph_0", 0): {"MatMulV2.MatMulV2", "Relu.Relu", "Data.primals_3", "Data.primals_1"},
        ("graph_1", 0): {"ReluGrad.ReluGrad", "Data.detach"},
    }


def test_layers_by_names_of_the_fx_graph(tmp_path: Path) -> None:
    found = dumped(tmp_path, 1, dump_layer='"relu"')
    assert found == {("graph_0", 0): {"Relu.Relu"}}


def test_a_layer_that_is_nowhere_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "msdump"):
        assert dumped(tmp_path, 1, dump_layer="Rellu") == {}
    (warning,) = [record.message for record in caplog.records if record.name == "msdump"]
    assert warning.startswith("config.dump_config.dump_layer: no graph has an operator Rellu.")
    assert '"Relu"' in warning


def test_a_layer_need_not_be_in_every_graph(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "msdump"):
        assert len(dumped(tmp_path, 1, dump_layer="Relu ReluGrad")) == 2
        sessions.reset_for_tests()
        torch._dynamo.reset()
        # And no operator of a whole graph need be a layer.
        assert len(dumped(tmp_path, 1, dump_layer="Relu")) == 3
    assert not [record for record in caplog.records if record.name == "msdump"]


def test_statistics(tmp_path: Path) -> None:
    dumped(tmp_path, 1, dump_data="stats", dump_layer="Relu")
    ((_, (file,)),) = files(tmp_path).items()
    title, first, second = file.read_text().splitlines()
    assert file.name.startswith("Relu.Relu.")
    assert file.suffix == ".csv"
    assert title.startswith("Input/Output,Index,Data Size,Data Type,Format,Shape,")
    assert "Max Value" in title
    assert first.startswith("Input,0,60,DT_FLOAT,ND,5x3,")
    assert second.startswith("Output,0,60,DT_FLOAT,ND,5x3,")


def test_quant_dumpable_is_handed_on(tmp_path: Path) -> None:
    assert dumped(tmp_path, 1, quant_dumpable=True)["graph_0", 0] == FORWARD
    assert options_file(tmp_path)["quant_dumpable"] == "1"


def test_inference(tmp_path: Path) -> None:
    _, function = net(tmp_path)
    with torch.no_grad():
        function(torch.ones(5, 4))
    sessions.close_all()
    assert {name for names in tree(tmp_path).values() for name in names} >= {"Data.arg0_1", "Relu.Relu"}


def options_file(folder: Path) -> dict[str, Any]:
    (file,) = (folder / "ge_dump_data_json").iterdir()
    assert file.name == f"dump_options_worldsize1_rank0_pid{os.getpid()}.json"
    content: dict[str, Any] = json.loads(file.read_text())
    assert content.keys() == {"dump"}
    return content["dump"]


def test_options_are_shown_in_a_file(tmp_path: Path) -> None:
    dumped(tmp_path, 1, dump_step="0", dump_layer="Relu  Mul", dump_mode="output")
    content = options_file(tmp_path)
    models = content.pop("dump_list")
    assert content == {
        "dump_path": str(tmp_path / RANK), "dump_mode": "output", "dump_data": "tensor", "quant_dumpable": "0",
        "dump_step": "0",
    }  # fmt: skip
    assert [model["layer"] for model in models] == [["Relu", "Mul"]] * 2
    first, second = (int(model["model_name"].removeprefix("graph_")) for model in models)
    assert second == first + 1


# -- scope ---------------------------------------------------------------------------------------------------------


class Scoped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(4))

    def forward(self, x: Any) -> Any:
        y = x * self.scale
        with torchair.scope.data_dump():
            z = y * 3
        return (z * y).sum()


def test_scope_chooses_by_name(tmp_path: Path, checked: list[Checked]) -> None:
    function = torch.compile(Scoped(), backend=backend(tmp_path, dump_mode="output"), fullgraph=True)
    steps(function, 1)
    assert_values(tmp_path, checked)
    found = tree(tmp_path)
    # y * 3 alone, not all operators of its type; and what its backward is.
    assert found["graph_0", 0] == {"Mul.Mul_1"}
    assert found["graph_1", 0] == {"Mul.Mul_2"}


def test_scope_adds_to_layers(tmp_path: Path) -> None:
    function = torch.compile(Scoped(), backend=backend(tmp_path, dump_mode="output", dump_layer="ReduceSum"))
    with torch.no_grad():
        function(torch.ones(5, 4))
    sessions.close_all()
    assert tree(tmp_path) == {("graph_0", 0): {"Mul.Mul_1", "ReduceSum.ReduceSum"}}


def test_scope_outside_of_compiled_code_does_nothing() -> None:
    with torchair.scope.data_dump():
        assert Net()(torch.ones(2, 4)).ndim == 0


# -- values --------------------------------------------------------------------------------------------------------


def test_values_are_those_of_the_operators(tmp_path: Path, checked: list[Checked]) -> None:
    steps(net(tmp_path)[1], 3)
    assert assert_values(tmp_path, checked) > 3 * (len(FORWARD) + len(BACKWARD))


def test_a_graph_of_open_shapes(tmp_path: Path, checked: list[Checked]) -> None:
    torch.manual_seed(0)
    function = torch.compile(Net(), backend=backend(tmp_path), dynamic=True)
    for rows in (5, 7, 5):
        function(torch.randn(rows, 4)).backward()
    assert len(checked) == 2
    assert assert_values(tmp_path, checked) > 100
    shapes = [values(files(tmp_path)[checked[0].graph.name, index])["Relu", "output", 0].shape for index in range(3)]
    assert shapes == [(5, 3), (7, 3), (5, 3)]
    (session,) = sessions.all_of(graph_mode_dump.GraphModeDump)
    assert set(session.report().skipped) == {"size of an open shape"}


def test_inputs_that_the_model_writes(tmp_path: Path, checked: list[Checked]) -> None:
    """A file shows an input as it was when it was first read, and the buffer ends as without a dump."""

    def work(x: Any, state: Any) -> Any:
        state.mul_(0.5).add_(x)
        state[0] = 7
        return state * 2 + x

    function = torch.compile(work, backend=backend(tmp_path))
    state, twin = torch.randn(3, 4), None
    twin = state.clone()
    for seed in range(2):
        torch.manual_seed(seed)
        x = torch.randn(3, 4)
        with torch.no_grad():
            assert torch.equal(function(x, state), work(x, twin))
        assert torch.equal(state, twin)
    assert assert_values(tmp_path, checked) > 10


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int8", "uint8", "int64", "bool"])
def test_dtypes(tmp_path: Path, checked: list[Checked], dtype: str) -> None:
    function = torch.compile(lambda x: (x + x).reshape(-1), backend=backend(tmp_path))
    for shape in ((2, 3), ()):
        torch._dynamo.reset()
        function(torch.ones(shape).to(getattr(torch, dtype)))
    assert_values(tmp_path, checked)
    assert {tensor.shape for of_folder in files(tmp_path).values() for tensor in values(of_folder).values()} >= {
        (2, 3), (6,), (),
    }  # fmt: skip


def test_a_tensor_without_elements(tmp_path: Path, checked: list[Checked]) -> None:
    torch.compile(lambda x: x.sum(0), backend=backend(tmp_path))(torch.ones(0, 3))
    assert_values(tmp_path, checked)
    (of_folder,) = files(tmp_path).values()
    found = values(of_folder)
    assert found["ReduceSum", "input", 0].shape == (0, 3)
    np.testing.assert_array_equal(found["ReduceSum", "output", 0], [0.0, 0.0, 0.0])


def test_training_is_the_same_with_and_without(tmp_path: Path) -> None:
    config = torchair.CompilerConfig()
    config.debug.graph_dump.type = "py"  # the GE graph runs, and nothing of it is dumped
    config.debug.graph_dump.path = str(tmp_path / "graphs")
    torch.manual_seed(0)
    plain = Net()
    losses = steps(torch.compile(plain, backend=torchair.get_npu_backend(compiler_config=config)), 3)
    torch._dynamo.reset()
    watched, function = net(tmp_path)
    assert all(map(torch.equal, steps(function, 3), losses))
    for (name, one), (_, other) in zip(watched.named_parameters(), plain.named_parameters(), strict=True):
        assert torch.equal(one.grad, other.grad), name
    assert torch.equal(watched.total, plain.total)


def test_outputs_know_what_they_are_in_the_fx_graph(tmp_path: Path, checked: list[Checked]) -> None:
    dumped(tmp_path, 1)
    names = {}
    for file in files(tmp_path)[checked[0].graph.name, 0]:
        for tensor in read_bin(file).tensors:
            assert tensor.io == "output" or tensor.original is None
            if tensor.original is not None:
                names[file.name.split(".")[1]] = tensor.original
    # The product and its scaled bias are steps of addmm; Data are no outputs.
    assert names == {
        "Add": ("addmm", 0), "Relu": ("relu", 0), "Mul_1": ("mul", 0), "ReduceSum": ("sum_1", 0), "Add_1": ("add", 0),
        "ReduceSum_1": ("sum_2", 0),
    }  # fmt: skip


def test_calls_from_several_threads(tmp_path: Path, checked: list[Checked]) -> None:
    function = torch.compile(lambda x: (x * 2).sin(), backend=backend(tmp_path, dump_mode="output"))
    function(torch.ones(4))
    threads = [threading.Thread(target=function, args=(torch.full((4,), float(one)),)) for one in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sessions.close_all()
    found = files(tmp_path)
    assert len(found) == 5
    for of_folder in found.values():
        inside = values(of_folder)
        doubled = inside["Mul", "output", 0]
        np.testing.assert_array_equal(inside["Sin", "output", 0], torch.from_numpy(doubled.copy()).sin().numpy())
