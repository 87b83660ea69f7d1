"""Sums whose terms cancel: rounding is left of them in both runs, which is no difference."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401


def trained(folder: Path, scale: float = 1.0, epsilon: float = 1e-5) -> str:
    """Three steps of Adam; the batch norm takes out what the bias in front of it adds, whose gradient is zero."""
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm1d(16, eps=epsilon)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), norm, torch.nn.Tanh(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, y = torch.randn(64, 8) * scale, torch.randn(64, 4)
    with msdump.watch(model, config(folder)):
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return str(folder)


def test_rounding_that_is_left_is_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Data that differ by rounding stand for another library, or another order of additions.
    mine, golden = trained(tmp_path / "mine"), trained(tmp_path / "golden", scale=1 + 2e-7)
    assert main(["compare", mine, golden]) == 0
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("agree: all ")
    assert "Gradients/Default/0-Linear/aten.sum.dim_IntList-op" in second
    assert third.startswith("  sums up terms that cancel, and is left with their rounding, in 16 of 16 elements")


def test_a_fault_beside_it_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = trained(tmp_path / "mine", epsilon=1e-2), trained(tmp_path / "golden", scale=1 + 2e-7)
    assert main(["compare", mine, golden]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("first wrong operator: Default/1-BatchNorm1d/aten.native_batch_norm.default-op0 ")


def test_sums_that_do_not_cancel_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def summed(folder: Path, factor: float) -> str:
        torch.manual_seed(0)
        with msdump.watch(config=config(folder)):
            (torch.randn(64, 8).square().sum(0) * 1.0).mul(factor)
            torch.randn(64, 8).sum(0 if factor == 1.0 else 1)[:8].exp()
        return str(folder)

    mine, golden = summed(tmp_path / "mine", 1.0), summed(tmp_path / "golden", 1.5)
    assert main(["compare", mine, golden]) == 1
    assert "sums up terms that cancel" not in capsys.readouterr().out
