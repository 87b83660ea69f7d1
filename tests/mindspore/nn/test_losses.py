"""Losses against PyTorch, forward and backward, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msdump.mindspore import nn
from tests.mindspore.nn.against_torch import RNG, check, numbers

torch = pytest.importorskip("torch")
F = torch.nn.functional

X, Y, Z = numbers(4, 5), numbers(4, 5), numbers(4, 5)
CHANCES = numbers(4, 5, low=0.1)
SIGNS = np.where(RNG.random((4, 5)) < 0.5, -1, 1).astype(np.float32)
SEVERAL = np.array([[3, 0, -1, 1, 1], [2, -1, 0, 0, 0], [0, 1, 2, 3, 4], [-1, 0, 0, 0, 0]], np.int64)
REDUCTIONS = ["mean", "sum", "none"]


def _reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else getattr(loss, reduction)()


def _kl_div(x: Any, y: Any, reduction: str) -> Any:
    """PyTorch warns of its own "mean". Targets have no gradient in MindSpore."""
    return _reduced(F.kl_div(x, y.detach(), reduction="none"), reduction)


def _soft_margin(x: Any, y: Any, reduction: str) -> Any:
    """PyTorch has no gradient of the targets."""
    return _reduced((1 + (-x * y).exp()).log(), reduction)


CASES: dict[str, tuple[Any, Any, list[Any]]] = {
    "mae": (nn.MAELoss, F.l1_loss, [X, Y]),
    "smooth_l1": (
        lambda reduction: nn.SmoothL1Loss(0.5, reduction),
        lambda x, y, reduction: F.smooth_l1_loss(x, y, beta=0.5, reduction=reduction),
        [X, Y],
    ),
    "huber": (
        lambda reduction: nn.HuberLoss(reduction, 0.7),
        lambda x, y, reduction: F.huber_loss(x, y, reduction=reduction, delta=0.7),
        [X, Y],
    ),
    "kl_div": (nn.KLDivLoss, _kl_div, [X, CHANCES]),
    "soft_margin": (nn.SoftMarginLoss, _soft_margin, [X, SIGNS]),
    "margin_ranking": (
        lambda reduction: nn.MarginRankingLoss(0.2, reduction),
        lambda x, y, t, reduction: F.margin_ranking_loss(x, y, t, 0.2, reduction=reduction),
        [X, Y, SIGNS],
    ),
    "hinge_embedding": (
        lambda reduction: nn.HingeEmbeddingLoss(1.5, reduction),
        lambda x, t, reduction: F.hinge_embedding_loss(x, t, 1.5, reduction=reduction),
        [CHANCES, SIGNS.astype(np.int32)],
    ),
    "multi_label_soft": (
        lambda reduction: nn.MultiLabelSoftMarginLoss(reduction=reduction),
        F.multilabel_soft_margin_loss,
        [X, (SIGNS > 0).astype(np.int32)],
    ),
    "multilabel_margin": (nn.MultilabelMarginLoss, F.multilabel_margin_loss, [X, SEVERAL]),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", CASES)
def test_losses_equal_torch(name: str, reduction: str, either_mode: int) -> None:
    make, reference, data = CASES[name]
    check(make(reduction=reduction), lambda *args: reference(*args, reduction=reduction), data)


def test_root_of_squares(either_mode: int) -> None:
    check(nn.RMSELoss(), lambda x, y: F.mse_loss(x, y).sqrt(), [X, Y])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_ctc_equals_torch(reduction: str, either_mode: int) -> None:
    logits = numbers(6, 2, 4)
    targets = np.array([[1, 2, 3], [2, 2, 0]], np.int32)
    lengths = np.array([6, 5], np.int32), np.array([3, 2], np.int32)

    def reference(x: Any, *others: Any) -> Any:
        return F.ctc_loss(x.log_softmax(-1), *others, reduction=reduction)

    loss = nn.CTCLoss(0, reduction)
    check(lambda x, *others: loss(nn.LogSoftmax()(x), *others), reference, [logits, targets, *lengths], atol=1e-5)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.MAELoss("average"), ValueError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()
