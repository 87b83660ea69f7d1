"""One LeNet through both front ends: `msdump compare` agrees on every operator that a mapping pairs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis import compare_dumps  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.frontends.torch import backend  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch.dumping import close, configure  # noqa: E402
from tests.frontends.torch.eager.test_watch import config as eager_config  # noqa: E402

MAPPING = {
    "types": {
        "aten_convolution_default": ["Conv2D", "BiasAdd"],
        "aten_relu_default": "ReLU",
        "aten_max_pool2d_with_indices_default": "MaxPool",
        "aten_addmm_default": ["MatMul", "BiasAdd"],
        # A reshape and a transposed weight compute nothing.
        "aten_view_default": [],
        "aten_t_default": [],
        "Flatten": [],
        "Reshape": [],
    },
    # The library's product reads bias, input and transposed weight; indices of maxima exist on one side only.
    "ignore": ["aten_addmm_default:input", "aten_max_pool2d_with_indices_default:output:1"],
}


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 16, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: Any) -> Any:
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


def run_mindspore(weights: dict[str, Any], x: Any) -> Any:
    ms = pytest.importorskip("msdump.mindspore")

    class Net(ms.nn.Cell):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = ms.nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
            self.conv2 = ms.nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
            self.fc1 = ms.nn.Dense(16 * 16, 120)
            self.fc2 = ms.nn.Dense(120, 84)
            self.fc3 = ms.nn.Dense(84, 10)
            self.relu = ms.nn.ReLU()
            self.pool = ms.nn.MaxPool2d(2, 2)
            self.flatten = ms.nn.Flatten()

        def construct(self, x: Any) -> Any:
            x = self.pool(self.relu(self.conv1(x)))
            x = self.flatten(self.pool(self.relu(self.conv2(x))))
            return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Net()
    for name, parameter in net.parameters_and_names():
        parameter.set_data(ms.Tensor(weights[name]))
    return net(ms.Tensor(x)).asnumpy()


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_both_doors_compute_the_same_lenet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    model = LeNet()
    x = np.random.default_rng(0).standard_normal((2, 1, 28, 28)).astype(np.float32)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    mine = configure(tmp_path / "a", monkeypatch)
    with torch.no_grad():
        expected = torch.compile(model, backend=backend)(torch.from_numpy(x)).numpy()
    close()
    sessions.reset_for_tests()
    golden = configure(tmp_path / "b", monkeypatch)
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    np.testing.assert_allclose(run_mindspore(weights, x), expected, rtol=1e-4, atol=1e-5)
    close()
    (tmp_path / "mapping.json").write_text(json.dumps(MAPPING))
    command = ["compare", str(mine), str(golden), "--mapping", str(tmp_path / "mapping.json")]
    status = main([*command, "--all", "--json", str(tmp_path / "result.json")])
    text = capsys.readouterr().out
    assert status == 0, text
    result = json.loads((tmp_path / "result.json").read_text())
    (step,) = result["steps"]
    pairs = {(found["op_type"], found["golden"].rpartition("/")[2].split("-")[0]) for found in step["operators"]}
    assert pairs >= {
        ("aten_convolution_default", "BiasAdd"),
        ("aten_relu_default", "ReLU"),
        ("aten_max_pool2d_with_indices_default", "MaxPool"),
        ("aten_addmm_default", "BiasAdd"),
    }
    operators = [found for found in step["operators"] if found["op_type"].startswith("aten_")]
    assert len(operators) == 11
    assert all(found["agrees"] for found in operators)
    assert "only in" not in text


def run_eager(folder: Path, has_more: bool, scale: float) -> Path:
    """Two steps of a program; with operators that change nothing, in front of others of their type, or without."""
    torch.manual_seed(0)
    net = nn.Linear(4, 4)
    x = torch.randn(3, 4)
    with msdump.watch(net, eager_config(folder)):
        for _ in range(2):
            y = net(x)
            if has_more:
                y = y + 0.0
                y = y + x * 0
            z = (y + x) * scale
            (z.square().sum() + (y + x).sum()).backward()
    return folder


def test_operators_that_one_run_alone_has_shift_no_others(tmp_path: Path) -> None:
    golden = run_eager(tmp_path / "golden", has_more=False, scale=1.0)
    found = compare_dumps(run_eager(tmp_path / "mine", has_more=True, scale=1.0), golden)
    assert found.is_agreeing and found.first_wrong is None
    for step in found.steps:
        added = [operator.op_type for operator in step.only_mine]
        assert added == (["aten_add_Tensor", "aten_mul_Tensor", "aten_add_Tensor"] if step.mine.graph_id == 0 else [])
        assert not step.only_golden


def test_a_fault_behind_them_is_the_first(tmp_path: Path) -> None:
    golden = run_eager(tmp_path / "golden", has_more=False, scale=1.0)
    found = compare_dumps(run_eager(tmp_path / "mine", has_more=True, scale=1.01), golden)
    assert found.first_wrong is not None
    assert found.first_wrong.pair.mine.op_type == "aten_mul_Tensor"
    assert [operator.input_error for operator in [found.first_wrong]] == [0]
