"""Operators of PyTorch again: what a dump of eager programs holds, placed by their schemas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.analysis import replay_operator, write_repro  # noqa: E402
from msdump.analysis.graph_info import GraphFiles  # noqa: E402
from msdump.analysis.replay import _aten as aten  # noqa: E402
from msdump.analysis.replay.replay import DumpedCall, run_aten, runner_of  # noqa: E402
from msdump.analysis.steps import Slot, read_steps  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.errors import ConfigError, KernelNotFoundError  # noqa: E402
from tests.frontends.torch.eager.test_watch import config  # noqa: E402

functional = torch.nn.functional


def numbers(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7 + len(shape)))


# A call of each kind: tensors and lists of them, optional ones, scalars, dtypes, strings, several results, in place.
CALLS: dict[str, Callable[[Any], object]] = {
    "aten.add.Tensor": lambda x: torch.add(x, x * 2, alpha=3),
    "aten.addmm.default": lambda x: functional.linear(x, x[:3], x[0, :3]),
    "aten._to_copy.default": lambda x: x.to(torch.float16 if x.dtype != torch.float16 else torch.float32),
    "aten.cat.default": lambda x: torch.cat([x, x[:1]], 0),
    "aten.clamp.default": lambda x: x.clamp(max=0.5),
    "aten.convolution.default": lambda x: functional.conv1d(x[None], torch.stack([x[:, :3], x[:, 2:]]), padding=1),
    "aten.embedding.default": lambda x: functional.embedding(torch.tensor([2, 0]), x),
    "aten.gelu.default": lambda x: functional.gelu(x, approximate="tanh"),
    "aten.gt.Scalar": lambda x: x > 0.1,
    "aten.index.Tensor": lambda x: x[:, torch.tensor([1, 2])],
    "aten.index_put_.default": lambda x: x.clone().index_put_((torch.tensor([1, 2]),), x[0, 0]),
    "aten.log.default": lambda x: torch.log(x),  # NaN
    "aten.masked_fill.Scalar": lambda x: x.masked_fill(x > 0, float("-inf")),
    "aten.mean.dim": lambda x: x.mean(1, keepdim=True),
    "aten.mul_.Tensor": lambda x: x.clone().mul_(0.99),
    "aten.native_layer_norm.default": lambda x: functional.layer_norm(x, (5,), x[0], None, 1e-3),
    "aten.pow.Tensor_Scalar": lambda x: x.pow(3),
    "aten._softmax.default": lambda x: x.softmax(-1),
    "aten.sum.dim_IntList": lambda x: x.sum((0, 1)),
    "aten.topk.default": lambda x: x.topk(2, dim=1),
    "aten.where.self": lambda x: torch.where(x > 0, x, -x),
    "aten.exp.out": lambda x: torch.exp(x, out=torch.empty(0, dtype=x.dtype)),
    "aten._foreach_add_.Scalar": lambda x: torch._foreach_add_([x.clone(), x[0].clone()], 1.5),
    "aten.full_like.default": lambda x: torch.full_like(x, 2.5, dtype=torch.float64),
}
# They add up in an order that depends on the strides of their operands, which no dump holds. In units of rounding.
SUMS = {"aten.addmm.default": 8.0, "aten.convolution.default": 8.0}
DTYPES = ("float32", "bfloat16", "float16", "float64")


@pytest.fixture(scope="module", params=DTYPES)
def calls_dump(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("dump")
    x = numbers(4, 5).to(getattr(torch, request.param))
    with torch.no_grad(), msdump.watch(config=config(folder)):
        for call in CALLS.values():
            call(x)
    return request.param, folder


def test_a_dumped_operator_gives_its_dumped_output_again(calls_dump: tuple[str, Path]) -> None:
    """In its own precision, without rounding: PyTorch computes the same from the same."""
    dtype, folder = calls_dump
    checked = set()
    steps = [step for step in read_steps(msdump.open(folder)) if step.key.iteration == 0]
    graphs = GraphFiles(msdump.open(folder))
    for step in steps:
        graph = graphs.of(step.key)
        assert graph is not None
        for node in graph.nodes:
            if node.op_type not in CALLS:
                continue
            result = replay_operator(folder, node.full_name, graph=step.key.graph_id)
            own, exact = result.runs["torch"], result.runs["float64"]
            assert not own.problem and own.errors, (node.full_name, own.problem)
            for slot, dumped in result.outputs.items():
                again = own.outputs[slot.number]
                assert (again.dtype, again.shape) == (dumped.dtype, dumped.shape), node.full_name
                again, dumped = (
                    array.astype(np.float64) for array in (again, dumped)
                )  # numpy knows no NaN of bfloat16
                limit = SUMS.get(node.op_type, 0.0) * float(torch.finfo(getattr(torch, dtype)).eps)
                np.testing.assert_allclose(again, dumped, rtol=limit, atol=limit, err_msg=node.full_name)
            assert result.is_explained, (node.full_name, result.reason)
            assert not exact.problem, (node.full_name, exact.problem)
            assert ("float32" in result.runs) == ("16" in dtype or "16" in str(own.outputs[0].dtype))
            checked.add(node.op_type)
    assert checked == set(CALLS)


def test_the_attributes_are_those_of_the_iteration(tmp_path: Path) -> None:
    net = torch.nn.Linear(5, 5)
    with torch.no_grad(), msdump.watch(net, config(tmp_path)):
        for number in range(3):
            net(numbers(4, 5)).mul(0.5 + number)
    for number in range(3):
        result = replay_operator(tmp_path, "aten.mul.Tensor-op0", iteration=number)
        assert result.is_explained and result.runs["torch"].errors[Slot(0)].relative_error == 0


def test_a_changed_output_is_wrong(calls_dump: tuple[str, Path], tmp_path: Path) -> None:
    import shutil

    dtype, folder = calls_dump
    if dtype != "float32":
        pytest.skip("one is enough")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (path,) = copy.rglob("*aten.pow.Tensor_Scalar-op0.*.output.0.*")
    array = np.load(path)
    array[1, 2] += 0.01
    path.unlink()
    np.save(path, array)
    assert main(["replay", str(copy), "aten.pow.Tensor_Scalar-op0"]) == 1
    assert main(["replay", str(folder), "aten.pow.Tensor_Scalar-op0"]) == 0


@pytest.mark.parametrize(
    "op_type", ["log.default", "cat.default", "_foreach_add_.Scalar", "exp.out", "_to_copy.default"]
)
def test_a_script_of_its_own_runs(calls_dump: tuple[str, Path], tmp_path: Path, op_type: str) -> None:
    _, folder = calls_dump
    script = write_repro(folder, f"aten.{op_type}-op0", tmp_path / "repro")
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", str(script)],
        cwd="/", capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "") and "are what the inputs give" in done.stdout


def test_what_cannot_be_replayed_is_refused_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump"
    with torch.no_grad(), msdump.watch(config=config(dump)):
        functional.dropout(numbers(4, 5), 0.5)
        torch.as_strided(numbers(4, 5), (2,), (1,))
    for command in (["replay"], ["repro", "-o", str(tmp_path / "new")]):
        assert main([*command[:1], str(dump), "aten.bernoulli_.float-op0", *command[1:]]) == 2
        assert "it draws random numbers" in capsys.readouterr().err
        assert main([*command[:1], str(dump), "aten.as_strided.default-op0", *command[1:]]) == 2
        assert "as it lies" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_dropout_that_does_nothing_is_no_random_operator() -> None:
    attention = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    x = np.ones((1, 1, 2, 4), np.float32)
    call = DumpedCall(attention, (x, x, x), ("query", "key", "value"), {}, {Slot(0): x})
    np.testing.assert_array_equal(run_aten(call)[0], x)
    with pytest.raises(ConfigError, match="random"):
        run_aten(DumpedCall(attention, (x, x, x), ("query", "key", "value"), {"dropout_p": 0.5}, {}))


@pytest.mark.parametrize(
    "op_type",
    [
        "aten.no_such_operator.default", "aten.log.no_such_overload", "aten.__class__.default", "aten.log.__class__",
        "aten.log", "prim.Print.default", "os.system.default", "load_library.x.default",
        "_c10d_functional.wait.default",
        "aten.log.default.op", "aten..default",
        "aten.from_file.default", "aten.empty.memory_format", "aten.name.default",
    ],
)  # fmt: skip
def test_only_registered_operators_are_called(op_type: str) -> None:
    with pytest.raises(ConfigError):
        run_aten(DumpedCall(op_type, (), (), {"filename": "/etc/passwd", "size": (1,)}, {}))


@pytest.mark.parametrize(
    ("op_type", "names", "attrs"),
    [
        ("aten.add.Tensor", ("self",), {}),
        ("aten.log.default", ("input",), {}),
        ("aten.cat.default", ("tensors[1]",), {}),
        ("aten.cat.default", ("tensors[99999999]",), {}),
        ("aten._to_copy.default", ("self",), {"dtype": "save"}),
        ("aten._to_copy.default", ("self",), {"dtype": "__builtins__"}),
        ("aten.view.default", ("self",), {"size": ("s0", 2)}),
        ("aten.mul.Tensor", ("self",), {"other": "__import__('os')"}),
    ],
)
def test_a_hostile_or_incomplete_call_is_refused(op_type: str, names: tuple[str, ...], attrs: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        run_aten(DumpedCall(op_type, (np.ones(2, np.float32),), names, attrs, {}))


def test_values_of_the_plan_are_plain() -> None:
    plan = aten.plan_of("aten.mul.Tensor", [("self", "float32")], {"other": "(1+2j)"})
    assert json.loads(json.dumps(plan))["arguments"][1] == {"complex": [1.0, 2.0]}
    plan = aten.plan_of(
        "aten.full.default", [], {"size": (2,), "fill_value": 1, "dtype": "float32", "device": "cuda:3"}
    )
    assert plan["keywords"] == {"dtype": {"torch": "float32"}, "device": "cpu"}
    plan = aten.plan_of("aten.full.default", [], {"size": (2,), "fill_value": 1, "dtype": "bfloat16"}, (), "float64")
    assert plan["keywords"] == {"dtype": {"torch": "float64"}}


@pytest.mark.parametrize("name", ["Abs", "Ceil", "Exp", "Neg", "ReLU", "Sigmoid", "Sin", "Tanh"])
def test_numpy_has_simple_operators_too(name: str) -> None:
    x = numbers(3, 4).numpy()
    op_type = f"aten.{name.lower()}.default"
    call = DumpedCall(
        op_type, (x,), ("self",), {}, {Slot(0): run_aten(DumpedCall(op_type, (x,), ("self",), {}, {}))[0]}
    )
    (found,) = runner_of(call).runs["numpy"](call)
    np.testing.assert_allclose(found, call.outputs[Slot(0)], rtol=1e-5, atol=1e-6)


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    with torch.no_grad(), msdump.watch(config=config(dump)):
        torch.cumsum(numbers(4, 5), 0)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(KernelNotFoundError, match="pip install torch"):
        replay_operator(dump, "aten.cumsum.default-op0")
