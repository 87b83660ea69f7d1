"""Running statistics that differ: the operator that writes them with another attribute, not what reads them later."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401


def trained(folder: Path, momentum: float, steps: int) -> str:
    """The second of two batch norms has this momentum; its backward pass reads the running statistics too."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4)]
    model = torch.nn.Sequential(*layers, torch.nn.BatchNorm1d(4, momentum=momentum), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with msdump.watch(model, config(folder)):
        for _ in range(steps):
            optimizer.zero_grad()
            model(2 * torch.randn(8, 4) + 1).square().mean().backward()
            optimizer.step()
    return str(folder)


@pytest.mark.parametrize("steps", [1, 3])
def test_what_writes_them_is_named_with_its_attribute(
    steps: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, golden = trained(tmp_path / "mine", 0.2, steps), trained(tmp_path / "golden", 0.1, steps)
    assert main(["compare", mine, golden]) == 1
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("first difference: Default/3-BatchNorm1d/aten.native_batch_norm.default-op1 ")
    assert "iteration 0" in first and Path(__file__).name in first
    assert second == "  attribute momentum: 0.2 against 0.1"
    assert third.startswith("  3.running_mean, which it reads, differs after the step: relative error")


def test_weights_of_other_runs_are_no_attribute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = trained(tmp_path / "mine", 0.1, 2)
    golden = trained(tmp_path / "golden", 0.1, 2)
    assert main(["compare", mine, golden]) == 0
    assert "attribute" not in capsys.readouterr().out
