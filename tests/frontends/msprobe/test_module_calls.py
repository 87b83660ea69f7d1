"""Started models stay what they were: copied, saved, transformed, called in themselves, freed."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tests.frontends.msprobe.running import as_msprobe, config_file, records  # noqa: E402

Module: Any = nn.Module


@pytest.fixture(autouse=True)
def msprobe() -> Iterator[Any]:
    with as_msprobe():
        import msprobe.pytorch  # type: ignore[import-not-found]

        yield msprobe.pytorch


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.norm = nn.LayerNorm(2)

    def forward(self, x: Any) -> Any:
        return self.norm(self.fc(x)).relu()


def saved(model: Any) -> bytes:
    data = io.BytesIO()
    torch.save(model, data)
    return data.getvalue()


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_a_started_model_is_copied_and_saved_as_before(msprobe: Any, tmp_path: Path, level: str) -> None:
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level=level))
    model = Net()
    before = pickle.dumps(model), saved(model)
    debugger.start(model)
    for _ in range(2):
        model(torch.ones(1, 2))
        assert (pickle.dumps(model), saved(model)) == before
        twin = copy.deepcopy(model)
        twin(torch.ones(1, 2))
        torch.optim.swa_utils.AveragedModel(model).update_parameters(model)
        assert pickle.loads(pickle.dumps(twin))(torch.ones(1, 2)).shape == (1, 2)
        debugger.stop()
    names = [name for name in records(tmp_path) if name.startswith("Module.fc.")]
    assert names == ["Module.fc.Linear.forward.0"]  # calls of copies are none of the model


@pytest.mark.parametrize("is_made_first", [True, False])
def test_a_model_that_holds_functions_of_pytorch_is_saved_as_before(
    msprobe: Any, tmp_path: Path, is_made_first: bool
) -> None:
    def model_of() -> Any:
        torch.manual_seed(0)
        model = nn.ModuleList([nn.TransformerEncoderLayer(4, 2, activation=torch.nn.functional.gelu), nn.Identity()])
        model[1].functions = [torch.sigmoid, torch.Tensor.exp, torch.nn.functional.gelu, torch.nn.functional.softmax]
        return model

    model = model_of()
    before = saved(model)
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="mix"))
    model = model if is_made_first else model_of()
    debugger.start(model)
    assert saved(model) == before
    assert torch.load(io.BytesIO(before), weights_only=False)[1].functions[0] is not None
    debugger.stop()
    torch.save({"x": torch.ones(2)}, tmp_path / "x.pt", pickle_module=pickle, _use_new_zipfile_serialization=False)
    assert torch.load(tmp_path / "x.pt")["x"].tolist() == [1.0, 1.0]
    assert torch.nn.functional.relu(torch.ones(1)).item() == 1.0


def test_a_module_is_copied_inside_of_its_own_hooks(msprobe: Any, tmp_path: Path) -> None:
    model = Net()
    twins: list[Any] = []
    model.fc.register_forward_pre_hook(lambda module, _: twins.append(copy.deepcopy(module)))
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(model)
    model(torch.ones(1, 2))
    debugger.stop()
    assert twins[0](torch.ones(1, 2)).shape == (1, 2)
    assert "Module.fc.Linear.forward.1" not in records(tmp_path)


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_transforms_of_functions_go_through_a_started_model(msprobe: Any, tmp_path: Path, level: str) -> None:
    from torch.func import functional_call, grad, jacrev, vmap

    model = Net()
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0], [2.0, 0.0]])

    def loss(values: Any, row: Any) -> Any:
        return functional_call(model, values, (row[None],)).square().sum()

    def all_of_them() -> list[Any]:
        each = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
        return [*each.values(), *grad(loss)(parameters, x[0]).values(), *jacrev(loss)(parameters, x[1]).values()]

    plain = all_of_them()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level=level, risk_level="ALL"))
    debugger.start(model)
    dumped = all_of_them()
    debugger.stop()
    assert all(torch.equal(left, right) for left, right in zip(plain, dumped, strict=True))
    found = records(tmp_path)
    assert any("backward" in name for name in found)
    tensors = [each for each in _tensors(found) if each["shape"] and "Tensor" in each["type"]]
    assert {each["type"] for each in tensors} >= {"GradTrackingTensor"}
    assert all(isinstance(each["Max"], float) for each in tensors if each["dtype"] == "torch.float32")


def _tensors(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "shape" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _tensors(item)


def test_a_module_that_calls_itself_has_a_record_for_each_call(msprobe: Any, tmp_path: Path) -> None:
    class Down(Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x: Any, depth: int = 2) -> Any:
            return self.fc(x) if depth == 0 else self(x, depth=depth - 1) * 2

    model = nn.ModuleDict({"down": Down()})
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(model)
    x = torch.ones(1, 2, requires_grad=True)
    model["down"](x).sum().backward()
    debugger.stop()
    found = records(tmp_path)
    assert [found[f"Module.down.Down.forward.{n}"]["input_kwargs"]["depth"]["value"] for n in (1, 2)] == [1, 0]
    sizes = [found[f"Module.down.Down.backward.{number}"]["input"][0]["Max"] for number in range(3)]
    assert sizes == [1.0, 2.0, 4.0]
    parents = records(tmp_path, name="construct.json")
    assert parents["Module.down.Down.forward.2"] == "Module.down.Down.forward.1"


def test_records_show_what_forward_gets_and_gives(msprobe: Any, tmp_path: Path) -> None:
    model = nn.ModuleDict({"act": nn.Tanh()})
    model["act"].register_forward_pre_hook(lambda _, args: (args[0] * 0,))
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(model)
    model["act"].register_forward_hook(lambda _, args, output: output + 5)
    assert model["act"](torch.ones(2)).tolist() == [5.0, 5.0]
    debugger.stop()
    record = records(tmp_path)["Module.act.Tanh.forward.0"]
    assert (record["input_args"][0]["Max"], record["output"][0]["Max"]) == (0.0, 0.0)


def test_a_module_of_two_started_models_has_both_names(msprobe: Any, tmp_path: Path) -> None:
    inner = Net()
    outer = nn.ModuleDict({"net": inner})
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    for model in (inner, outer, inner, outer):
        debugger.start(model)
    inner(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    names = [name for name in records(tmp_path) if "Linear.forward" in name]
    assert names == ["Module.net.fc.Linear.forward.0", "Module.fc.Linear.forward.0"]


def test_a_started_model_is_freed(msprobe: Any, tmp_path: Path) -> None:
    model = Net()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="mix"))
    debugger.start(model)
    model(torch.ones(1, 2)).sum().backward()
    debugger.stop()
    debugger.step()
    module, parameter = weakref.ref(model.fc), weakref.ref(model.fc.weight)
    del model
    gc.collect()
    assert module() is None and parameter() is None


def test_a_started_model_is_compiled_and_traced(msprobe: Any, tmp_path: Path) -> None:
    model = Net()
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="mix"))
    debugger.start(model)
    counted: list[int] = []

    def backend(graph: Any, _: Any) -> Any:
        counted.append(1)
        return graph

    compiled = torch.compile(model, fullgraph=True, backend=backend)
    assert torch.equal(compiled(torch.ones(1, 2)), model(torch.ones(1, 2))) and counted == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(model, torch.ones(1, 2))
    assert traced(torch.ones(1, 2)).shape == (1, 2)
    debugger.stop()


def test_modules_are_called_as_before_without_a_debugger(msprobe: Any, tmp_path: Path) -> None:
    from msdump.process import sessions

    before = torch.nn.Module._call_impl
    debugger = msprobe.PrecisionDebugger(config_file(tmp_path, level="L0"))
    debugger.start(Net())
    assert torch.nn.Module._call_impl is not before
    sessions.reset_for_tests()
    assert torch.nn.Module._call_impl is before
