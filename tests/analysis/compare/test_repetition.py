"""What a backward pass computes once more: the same, or something else than the forward pass had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.analysis import compare_dumps  # noqa: E402
from msdump.analysis.compare.repetition import differing_repetition  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401


def block(x: Any) -> Any:
    return torch.nn.functional.dropout(x * 2)


def dumped(folder: Path, *, is_exact: bool, seed: int = 0, scale: float = 1.0) -> str:
    """A step whose forward pass runs again in its backward pass, with its random numbers or without."""

    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.state = torch.get_rng_state()
            return block(x)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                if is_exact:
                    torch.set_rng_state(ctx.state)
                y = block(x)
            torch.autograd.backward(y, gradient * scale)
            return x.grad

    torch.manual_seed(seed)
    with msdump.watch(config=config(folder)):
        Again.apply(torch.arange(64.0, requires_grad=True)).square().sum().backward()
    return str(folder)


def test_another_result_of_what_is_recomputed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = dumped(tmp_path / "mine", is_exact=False), dumped(tmp_path / "golden", is_exact=True)
    found = differing_repetition(compare_dumps(mine, golden))
    assert found is not None
    assert found.first.pair.mine.label.startswith("Default/aten.bernoulli_")
    assert found.again.pair.mine.label.startswith("Gradients/Default/aten.bernoulli_")
    assert main(["compare", mine, golden]) == 1
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("first difference: Gradients/Default/aten.bernoulli_")
    assert "it repeats Default/aten.bernoulli_" in second and "with another result" in second


def test_what_is_no_repetition_with_another_result(tmp_path: Path) -> None:
    """Another seed changes the forward pass; a gradient has the line of its operator, and reads something else."""
    golden = dumped(tmp_path / "golden", is_exact=True)
    assert differing_repetition(compare_dumps(golden, golden)) is None
    for name, changes in (("seed", {"seed": 1}), ("scale", {"scale": 3.0})):
        other = dumped(tmp_path / name, is_exact=True, **changes)
        assert differing_repetition(compare_dumps(other, golden)) is None
