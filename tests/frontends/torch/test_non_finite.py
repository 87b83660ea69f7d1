"""`msdump nan` on a real model with a mask of -Inf: where the NaN was made, and where it only came in."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from msdump.analysis import NonFiniteReport, find_non_finite
from tests.frontends.torch.dumping import close, configure

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from tests.frontends.torch.eager.test_watch import config as eager_config  # noqa: E402


class Attention(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, ending: Any) -> None:
        super().__init__()
        self.query = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.ending = ending

    def forward(self, x: Any, mask: Any) -> Any:
        scores = (self.query(x) @ x.transpose(-1, -2)).masked_fill(mask, float("-inf"))
        return self.ending(self.norm(torch.softmax(scores, -1) @ x))


def train(run: Any, ending: Any, loss: Any) -> None:
    """One step forward and backward; `run` compiles a model."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    loss(run(Attention(ending))(torch.randn(2, 5, 8), mask)).backward()


def report_of(way: str, folder: Path, patch: pytest.MonkeyPatch, ending: Any, loss: Any = torch.sum) -> NonFiniteReport:
    """What `msdump nan` says of one step, dumped in one of the ways."""
    if way == "torchair":
        from tests.torchair.dumps import backend_for

        train(lambda model: torch.compile(model, backend=backend_for(folder)), ending, loss)
        return find_non_finite(folder)
    from msdump.frontends.torch import backend

    root = configure(
        folder, patch, is_sync=way != "asynchronous", saved_data="statistic" if way == "statistics" else "tensor"
    )
    train(lambda model: torch.compile(model, backend=backend), ending, loss)
    close()
    return find_non_finite(root)


WAYS = ["tensors", "statistics", "asynchronous", "torchair"]


@pytest.mark.parametrize("way", WAYS)
def test_the_mask_is_benign_and_the_square_root_is_named(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(way, tmp_path, monkeypatch, torch.sqrt)
    assert report.first is not None and report.first is report.first_nan
    assert report.first.how == "made" and "sqrt" in report.first.operator.op_type
    assert [benign.how for benign in report.benign] == ["constant"]
    assert "masked_fill" in report.benign[0].operator.op_type
    assert "softmax" in report.benign[0].stops[0].op_type


@pytest.mark.parametrize("way", WAYS)
def test_a_nan_of_the_loss_is_said_to_come_after_the_models_output(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(way, tmp_path, monkeypatch, torch.relu, lambda output: torch.sqrt(output * 0).sum())
    assert report.first is not None and report.first.how == "came in"
    assert report.first.stage == "after output"
    assert report.first.after is not None
    assert report.first_inf is None and len(report.benign) == 1


def test_overflow_detection_names_the_square_root_and_not_the_mask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from msdump.frontends.torch import backend

    configure(tmp_path, monkeypatch, is_sync=False, op_debug_mode=3)
    train(lambda model: torch.compile(model, backend=backend), torch.sqrt, torch.sum)
    (overflow, *_) = close().overflows or ()
    assert "sqrt" in overflow


@pytest.mark.parametrize("selected", [{"input_output": 1}, {"dump_mode": 1, "kernels": ["softmax", "sqrt"]}])
def test_a_mask_that_was_not_dumped_is_benign_all_the_same(
    selected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph file says that a masked_fill made it."""
    from msdump.frontends.torch import backend

    root = configure(tmp_path, monkeypatch, **selected)
    train(lambda model: torch.compile(model, backend=backend), torch.sqrt, torch.sum)
    close()
    report = find_non_finite(root, graph=min(step.graph_id or 0 for step in _keys(root)))
    assert report.first_inf is None and [one.how for one in report.benign] == ["constant"]
    assert report.first_nan is None or "softmax" not in report.first_nan.operator.op_type


def _keys(root: Path) -> list[Any]:
    from msdump.analysis.steps import read_steps
    from msdump.formats.dump_dir import DumpDir

    return [step.key for step in read_steps(DumpDir.open(root))]


def test_a_buffer_that_is_filled_through_a_view_is_no_nan_and_one_that_is_read_is(tmp_path: Path) -> None:
    """Edges are known here: the step begins with the buffer."""
    buffer = torch.full((6,), math.nan)
    for name, is_read in (("filled", False), ("read", True)):
        with msdump.watch(config=eager_config(tmp_path / name)):
            view = buffer.view(2, 3)
            if not is_read:
                torch.mul(torch.ones(2, 3), 2, out=view)
            view.t().exp()
        first = find_non_finite(tmp_path / name).first
        assert (first is not None) == is_read
        buffer.fill_(math.nan)
