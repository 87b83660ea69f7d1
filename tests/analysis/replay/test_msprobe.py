"""Calls that PrecisionDebugger has dumped, again: of functions of PyTorch, forward and backward."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.analysis import replay_operator, write_repro  # noqa: E402
from msdump.analysis.replay import _torch_api as torch_api  # noqa: E402
from msdump.analysis.steps import Slot, read_steps  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.errors import ConfigError, KernelNotFoundError  # noqa: E402
from tests.analysis.conftest import ROOT  # noqa: E402
from tests.analysis.replay.damage import run_script, with_flipped_bit  # noqa: E402
from tests.frontends.msprobe.running import as_msprobe, config_file  # noqa: E402

functional = torch.nn.functional


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(2, 3, 3, padding="same")
        self.fc = torch.nn.Linear(9, 4)

    def forward(self, x: Any) -> Any:
        return self.fc(torch.relu(self.conv(x)).flatten(1))


def numbers(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5 + len(shape)))


# Operands in places and by name, lists, slices, words, dtypes, several results, in place, numbers on the left.
CALLS: dict[str, Callable[[Any], object]] = {
    "Functional.cross_entropy": lambda y: functional.cross_entropy(y, torch.tensor([0, 2]), label_smoothing=0.1),
    "Functional.gelu": lambda y: functional.gelu(y, approximate="tanh"),
    "Functional.interpolate": lambda y: functional.interpolate(y[None], scale_factor=2.0, mode="linear"),
    "Functional.layer_norm": lambda y: functional.layer_norm(y, (4,), eps=1e-3),
    "Functional.pad": lambda y: functional.pad(y, (1, 2), value=-1.5),
    "Functional.softmax": lambda y: functional.softmax(y, dim=-1, dtype=torch.float64),
    "Tensor.__rsub__": lambda y: 1.5 - y,
    "Tensor.__pow__": lambda y: y**2,
    "Tensor.mul_": lambda y: y.clone().mul_(0.9),
    "Tensor.masked_fill": lambda y: y.masked_fill(y > 0, float("-inf")),
    "Tensor.std": lambda y: y.std(dim=1, keepdim=True),
    "Torch.addmm": lambda y: torch.addmm(y, y, y[:, :2].repeat(2, 2)),
    "Torch.clamp": lambda y: torch.clamp(y, max=0.5),
    "Torch.cumsum": lambda y: torch.cumsum(y, 0),
    "Torch.einsum": lambda y: torch.einsum("ij,ij->i", y, y),
    "Torch.norm": lambda y: torch.linalg.norm(y.float(), ord=2),
    "Torch.topk": lambda y: torch.topk(y, 2)[0],
    "Torch.where": lambda y: torch.where(y > 0, y, -y),
}


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def dump(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("msprobe")
    with as_msprobe():
        from msprobe.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(config_path=config_file(folder, task="tensor", level="mix", risk_level="ALL"))
        torch.manual_seed(0)
        net = Net().to(getattr(torch, request.param))
        for step in range(2):
            debugger.start(model=net)
            y = net(numbers(2, 2, 3).to(getattr(torch, request.param)) * (step + 1))
            losses = [call(y) for call in CALLS.values()]
            functional.dropout(y, 0.5).sum().backward(retain_graph=True)
            sum(loss.float().nan_to_num(neginf=0.0).sum() for loss in losses).backward()
            debugger.stop()
            debugger.step()
    return folder / "dump", request.param


def records(dump: Path, step: int = 0) -> list[str]:
    return [
        operator.label
        for one in read_steps(msdump.open(dump))
        if one.key.iteration == step
        for operator in one.operators
    ]


def test_a_call_gives_its_dumped_results_again(dump: tuple[Path, str]) -> None:
    """In its own precision the same bits: forward, and what the last step of its backward made of the gradients."""
    folder, _ = dump
    seen = set()
    for name in records(folder, 1):
        if name.startswith("Module.") or "dropout" in name:
            continue
        if name.startswith("Tensor.float.") and name.endswith(".backward") and _gave_its_operand(folder, name):
            continue
        result = replay_operator(folder, name, iteration=1)
        own, exact = result.runs["torch"], result.runs["float64"]
        assert result.is_explained, (name, result.reason)
        assert not own.problem and own.errors and not exact.problem, (name, own.problem, exact.problem)
        for slot, dumped in result.outputs.items():
            again = own.outputs[slot.number]
            assert (again.dtype, again.shape) == (dumped.dtype, dumped.shape), name
            np.testing.assert_array_equal(again.astype(np.float64), dumped.astype(np.float64), err_msg=name)
        is_half = any(array.dtype.name == "bfloat16" for array in (*result.inputs, *result.outputs.values()))
        assert ("float32" in result.runs) == is_half, name
        seen.add(name)
    assert {f"{name}.0.forward" for name in CALLS} <= seen
    backward = {name for name in seen if name.endswith(".backward")}
    assert {"Functional.linear.0.backward", "Functional.conv1d.0.backward", "Tensor.mul_.0.backward"} <= backward


def _gave_its_operand(folder: Path, name: str) -> bool:
    """Whether a cast had nothing to do: then msprobe shows the backward of another call."""
    cast = replay_operator(folder, name.replace("backward", "forward"), iteration=1)
    if cast.inputs[0].dtype != cast.outputs[Slot(0)].dtype:
        return False
    with pytest.raises(KernelNotFoundError, match="it gave its operand back"):
        replay_operator(folder, name, iteration=1)
    return True


@pytest.mark.parametrize(
    "name", ["Functional.linear.0.forward", "Functional.linear.0.backward", "Torch.addmm.0.forward"]
)
def test_a_flipped_bit_of_a_result_is_found(dump: tuple[Path, str], tmp_path: Path, name: str) -> None:
    folder, _ = dump
    broken = with_flipped_bit(folder, tmp_path / "broken", name)
    assert main(["replay", str(broken), name, "--iteration", "0"]) == 1
    assert main(["replay", str(broken), name, "--iteration", "1"]) == 0
    if name == "Functional.linear.0.backward":
        assert run_script(write_repro(broken, name, tmp_path / "wrong", iteration=0))[0] == 1
        assert run_script(write_repro(broken, name, tmp_path / "right", iteration=1))[0] == 0


@pytest.mark.parametrize("name", ["Torch.norm", "Functional.pad", "Tensor.mul_", "Torch.einsum", "Functional.softmax"])
def test_a_script_of_its_own_runs(dump: tuple[Path, str], tmp_path: Path, name: str) -> None:
    if dump[1] == "float32":
        pytest.skip("one is enough")
    status, said = run_script(write_repro(dump[0], f"{name}.0.forward", tmp_path / "new"))
    assert status == 0 and "are what the inputs give" in said


def test_what_cannot_be_replayed_is_refused_with_the_reason(
    dump: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = dump
    for name, reason in {
        "Functional.dropout.0.forward": "it draws random numbers",
        "Functional.dropout.0.backward": "it draws random numbers",
        "Module.fc.Linear.forward.0": "Replay a function that it calls: Functional.linear.0.forward.",
        "Module.fc.Linear.parameters_grad.0": "the call of a module",
    }.items():
        for command in (["replay", str(folder), name], ["repro", str(folder), name, "-o", str(tmp_path / "new")]):
            assert main(command) == 2
            assert reason in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Path]:
    """The dump of some calls under a configuration."""

    def make(run: Callable[[], object], **config: Any) -> Path:
        with as_msprobe():
            from msprobe.pytorch import PrecisionDebugger

            debugger = PrecisionDebugger(
                config_path=config_file(tmp_path, **{"task": "tensor", "level": "L1", "risk_level": "ALL", **config})
            )
            debugger.start()
            run()
            debugger.stop()
            debugger.step()
        return tmp_path / "dump"

    return make


def data_file(dump: Path, name: str) -> Path:
    (path,) = dump.rglob(name)
    return path


def test_a_dump_of_msprobe_itself() -> None:
    golden = ROOT / "tests/golden/msprobe/tensor"
    for name in ("Functional.linear.0.forward", "Functional.linear.0.backward"):
        result = replay_operator(golden, name)
        assert result.is_explained and not result.runs["torch"].problem


def test_what_the_dump_lacks_is_named(small: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    x = numbers(3, 3).requires_grad_()
    dump = small(lambda: functional.relu(torch.matmul(x, x)).sum().backward())
    data_file(dump, "Torch.matmul.0.forward.input.1.pt").unlink()
    data_file(dump, "Functional.relu.0.backward.input.0.pt").unlink()
    for name, missing in {
        "Torch.matmul.0.forward": "none of Torch.matmul.0.forward.input.1.pt",
        "Torch.matmul.0.backward": "none of Torch.matmul.0.forward.input.1.pt",
        "Functional.relu.0.backward": "none of Functional.relu.0.backward.input.0.pt",
    }.items():
        assert main(["replay", str(dump), name]) == 2
        assert missing in capsys.readouterr().err
    (path,) = dump.rglob("dump.json")
    content = json.loads(path.read_text())
    del content["data"]["Functional.relu.0.forward"]["input_args"]
    path.chmod(0o600)
    path.write_text(json.dumps(content))
    assert main(["replay", str(dump), "Functional.relu.0.forward"]) == 2
    assert "expected input_args of Functional.relu.0.forward in dump.json" in capsys.readouterr().err
    path.write_text("{}")
    assert main(["replay", str(dump), "Functional.relu.0.forward"]) == 2
    assert "expected the record Functional.relu.0.forward" in capsys.readouterr().err


def test_statistics_alone_say_what_to_ask_for(small: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    dump = small(lambda: torch.relu(numbers(3, 3)), task="statistics")
    assert main(["replay", str(dump), "Torch.relu.0.forward"]) == 2
    assert '"task": "tensor"' in capsys.readouterr().err


def test_a_dtype_in_a_place_is_that_of_the_result(small: Callable[..., Path]) -> None:
    """dump.json has an empty description for it."""
    dump = small(lambda: numbers(3, 3).to(torch.float16))
    assert replay_operator(dump, "Tensor.to.0.forward").is_explained


def test_gradients_by_argument_as_early_versions_have_them(small: Callable[..., Path]) -> None:
    """These ask a module around the function, whose gradients are those of its arguments, in their order."""
    x, weight, bias = (numbers(*shape).requires_grad_() for shape in ((2, 3), (4, 3), (4,)))

    def run() -> None:
        functional.linear(x, weight, bias).sum().backward()

    dump = small(run)
    for number, gradient in enumerate((x.grad, weight.grad, bias.grad)):
        path = data_file(dump, f"Functional.linear.0.backward.output.{number}.pt")
        path.chmod(0o600)
        torch.save(gradient, path)
    result = replay_operator(dump, "Functional.linear.0.backward")
    assert result.is_explained and result.runs["torch"].errors
    np.testing.assert_array_equal(result.runs["torch"].outputs[1], weight.grad)


def test_functions_of_mindspore_are_called_where_pytorch_has_them(small: Callable[..., Path]) -> None:
    dump = small(lambda: torch.add(numbers(3, 3), numbers(3, 3), alpha=2))
    (path,) = dump.rglob("dump.json")
    path.chmod(0o600)
    text = path.read_text().replace('"pytorch"', '"mindspore"')
    path.write_text(text)
    with pytest.raises(ConfigError, match="a function of mindspore, which cannot be called here"):
        replay_operator(dump, "Torch.add.0.forward")
    path.write_text(text.replace("Torch.add", "Mint.add"))
    for file in list(dump.rglob("Torch.add.*")):
        file.rename(file.with_name(file.name.replace("Torch.add", "Mint.add")))
    (stack,) = dump.rglob("stack.json")
    stack.chmod(0o600)
    stack.write_text(stack.read_text().replace("Torch.add", "Mint.add"))
    assert replay_operator(dump, "Mint.add.0.forward").is_explained


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Distributed.all_reduce", "results come from other processes"),
        ("NPU.npu_fusion_attention", "runs on a device alone"),
        ("Torch.load", "it is not called"),
        ("Torch.save", "it is not called"),
        ("Torch.hub.load", "it is not called"),
        ("Torch.__class__", "it is not called"),
        ("Functional.__builtins__", "it is not called"),
        ("Tensor.__reduce__", "it is not called"),
        ("Tensor.__class__.__mro__", "it is not called"),
        ("os.system", "others cannot be run"),
        ("builtins.eval", "others cannot be run"),
        ("Torch.empty_like", "memory that nothing has written"),
        ("Aten.from_file", "reads a file"),
        ("VF.__loader__", "it is not called"),
    ],
)
def test_only_functions_that_msprobe_records_are_called(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        torch_api.functions_of(name)


@pytest.mark.parametrize("name", ["Aten.__class__", "Aten.no_such_operator", "Aten.name", "Aten.__init__"])
def test_operators_of_aten_are_registered_ones(name: str) -> None:
    with pytest.raises(ConfigError):
        torch_api.resolved(name, torch_api.functions_of(name)[0])


@pytest.mark.parametrize(
    "value",
    [
        7, "text", {}, {"type": "int", "value": "7"}, {"type": "float", "value": "x"}, {"type": "function", "value": 1},
        {"type": "torch.dtype", "value": "torch.save"}, {"type": "torch.dtype", "value": "__builtins__"},
        {"type": "torch.memory_format", "format": "load"}, {"type": "slice", "value": [1, "2", 3]},
        {"type": "slice", "value": [1]}, {"type": "complex", "value": "__import__('os')"},
        {"type": ["int"], "value": 1},
        {"type": "torch.Size", "value": [1, "s0"]}, {"class_type": "torch.distributed.P2POp", "op": "isend"},
    ],
)  # fmt: skip
def test_values_that_no_call_takes_are_refused(value: Any) -> None:
    arguments = torch_api.Arguments("Torch.add", lambda content: {"input": 0, "dtype": "float32"}, "")
    with pytest.raises(ConfigError, match="expected a value of argument 1"):
        arguments.of(value, "argument 1")


def test_a_hostile_dump_runs_no_code(small: Callable[..., Path], tmp_path: Path) -> None:
    dump = small(lambda: torch.add(numbers(3, 3), 2.0))
    (path,) = dump.rglob("dump.json")
    path.chmod(0o600)
    content = json.loads(path.read_text())
    record = content["data"]["Torch.add.0.forward"]
    record["input_kwargs"] = {'"""; open("HERE", "w"); """': {"type": "str", "value": '"""\nopen("HERE", "w")\n"""'}}
    path.write_text(json.dumps(content))
    with pytest.raises(KernelNotFoundError, match="torch refuses it"):
        write_repro(dump, "Torch.add.0.forward", tmp_path / "new")
    record["input_kwargs"], nested = {}, {"type": "int", "value": 1}
    for _ in range(200):
        nested = [nested]  # type: ignore[assignment]
    record["input_args"][1] = nested
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="lists in lists"):
        replay_operator(dump, "Torch.add.0.forward")
