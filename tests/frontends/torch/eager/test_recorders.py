"""Who records a program sees nothing that msdump runs: a trace, an exported graph, a profile, modes of the script."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

import msdump  # noqa: E402
from msdump.config.environment import NATIVE  # noqa: E402
from msdump.frontends.torch.eager.native import why_not_native  # noqa: E402
from tests.frontends.torch.eager.test_watch import ROOT, config  # noqa: E402

pytestmark = [
    # What PyTorch says of its own functions.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
]


@pytest.fixture(params=["mode", "native"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "mode":
        monkeypatch.setenv(NATIVE, "0")
    elif why_not_native():
        pytest.skip(why_not_native())
    return str(request.param)


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


X = torch.arange(12.0).reshape(3, 4)


def traced(net: torch.nn.Module, is_training: bool = False) -> str:
    """As the script does it: PyTorch traces again, and compares."""
    graph: Any = torch.jit.trace(net.train(is_training), X).inlined_graph  # type: ignore[no-untyped-call]
    return "\n".join(line for line in str(graph.copy()).splitlines() if "GetAttr" not in line and "self" not in line)


def traced_in_training(net: torch.nn.Module) -> str:
    """A number is added to the count of batches: for the text of the graph PyTorch runs an operator on that number."""
    return traced(net, is_training=True)


def exported(net: torch.nn.Module) -> str:
    return torch.export.export(net.eval(), (X,)).graph_module.code


def exported_for_any_batch(net: torch.nn.Module) -> str:
    """Sizes are symbols, and operators are taken apart, through tensors that stand for others."""
    program = torch.export.export(net.eval(), (X,), dynamic_shapes=({0: torch.export.Dim("n")},))
    return program.run_decompositions().graph_module.code


def made(net: torch.nn.Module) -> str:
    return make_fx(net.eval())(X).code  # type: ignore[no-any-return]


def exported_by_trace(net: torch.nn.Module) -> list[str]:
    onnx = pytest.importorskip("onnx")
    file = io.BytesIO()
    torch.onnx.export(net.eval(), (X,), file, dynamo=False)
    return [node.op_type for node in onnx.load_model_from_string(file.getvalue()).graph.node]


def exported_by_dynamo(net: torch.nn.Module) -> list[list[str]]:
    pytest.importorskip("onnxscript")
    options: list[dict[str, Any]] = [{}, {"dynamic_shapes": ({0: "n"},)}]
    programs = [torch.onnx.export(net.eval(), (X,), dynamo=True, verbose=False, **each) for each in options]
    return [[node.op_type for node in each.model_proto.graph.node] for each in programs if each is not None]


class Functions(TorchFunctionMode):
    """Functions of PyTorch that a script calls inside of it."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names[getattr(function, "__name__", str(function))] += 1
        return function(*args, **(kwargs or {}))


def counted(net: torch.nn.Module) -> Counter[str]:
    with Functions() as functions:
        for _ in range(2):
            net(X).square().mean().backward()
    return functions.names


RECORDERS: dict[str, Callable[[torch.nn.Module], object]] = {
    "jit.trace": traced,
    "jit.trace in training": traced_in_training,
    "export": exported,
    "export for any batch": exported_for_any_batch,
    "make_fx": made,
    "onnx.export of a trace": exported_by_trace,
    "onnx.export by Dynamo": exported_by_dynamo,
    "function mode": counted,
}


@pytest.mark.parametrize("saved_data", ["statistic", "tensor"])
@pytest.mark.parametrize("name", RECORDERS)
def test_what_is_recorded_is_the_program(name: str, saved_data: str, tmp_path: Path) -> None:
    record = RECORDERS[name]
    net = model()
    net(X)
    expected = record(net)
    net = model()
    with msdump.watch(config=config(tmp_path, saved_data=saved_data)) as watch:
        # A step has run that is written when the next one begins, which is while the program is recorded.
        net(X)
        found = record(net)
        net(X)
    report = watch.report()
    assert found == expected
    assert report is not None and not report.error and not report.lost


_SCRIPT = """
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
x = torch.arange(12.0).reshape(3, 4)
for options in {}, {"dynamic_shapes": ({0: "n"},)}:
    net(x).sum().backward()
    program = torch.onnx.export(net, (x,), dynamo=True, verbose=False, **options)
    print([node.op_type for node in program.model_proto.graph.node])
"""


def test_a_script_exports_what_it_exports_without_msdump(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    (tmp_path / "script.py").write_text(_SCRIPT)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command, "script.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=240, check=True,
        )  # fmt: skip

    watched = run("-m", "msdump", "run", "--torch-eager", "--tensors", "all", "--out", "dump")
    assert watched.stdout == run().stdout
    assert "2 of 2 dumped" in watched.stderr and "not complete" not in watched.stderr


def profiled(net: torch.nn.Module) -> Counter[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(2):
            net(X).square().mean().backward()
    return Counter(event.name for event in profile.events() if event.name.startswith("aten::"))


def test_a_profile_has_no_operators_of_msdump(engine: str, tmp_path: Path) -> None:
    expected = profiled(model())
    net = model()
    with msdump.watch(config=config(tmp_path, saved_data="tensor")):
        net(X)
        found = profiled(net)
    if engine == "native":
        assert found == expected
    else:
        # PyTorch runs an operator once more below a mode, and decomposes others for it.
        assert set(found) >= set(expected) and "aten::resolve_neg" not in set(found) - set(expected)
