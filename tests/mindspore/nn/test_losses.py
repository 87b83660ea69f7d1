"""Losses against PyTorch, forward and backward, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msdump.mindspore import Tensor, nn
from tests.mindspore.nn.against_torch import RNG, check, numbers

torch = pytest.importorskip("torch")
F = torch.nn.functional

X, Y, Z = numbers(4, 5), numbers(4, 5), numbers(4, 5)
CHANCES = numbers(4, 5, low=0.1)
SIGNS = np.where(RNG.random((4, 5)) < 0.5, -1, 1).astype(np.float32)
ROW_SIGNS = np.array([1, -1, -1, 1], np.int32)
CLASSES = np.array([0, 3, 1, 4], np.int64)
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
    "cosine_embedding": (
        lambda reduction: nn.CosineEmbeddingLoss(0.1, reduction),
        lambda x, y, t, reduction: F.cosine_embedding_loss(x, y, t, 0.1, reduction=reduction),
        [X, Y, ROW_SIGNS],
    ),
    "hinge_embedding": (
        lambda reduction: nn.HingeEmbeddingLoss(1.5, reduction),
        lambda x, t, reduction: F.hinge_embedding_loss(x, t, 1.5, reduction=reduction),
        [CHANCES, SIGNS.astype(np.int32)],
    ),
    "triplet": (
        lambda reduction: nn.TripletMarginLoss(2, True, 1e-6, reduction, 0.5),
        lambda a, p, n, reduction: F.triplet_margin_loss(a, p, n, 0.5, 2, 1e-6, True, reduction=reduction),
        [X, Y, Z],
    ),
    "multi_label_soft": (
        lambda reduction: nn.MultiLabelSoftMarginLoss(reduction=reduction),
        F.multilabel_soft_margin_loss,
        [X, (SIGNS > 0).astype(np.int32)],
    ),
    "multi_margin": (
        lambda reduction: nn.MultiMarginLoss(2, 0.8, reduction),
        lambda x, t, reduction: F.multi_margin_loss(x, t, 2, 0.8, reduction=reduction),
        [X, CLASSES],
    ),
    "multilabel_margin": (nn.MultilabelMarginLoss, F.multilabel_margin_loss, [X, SEVERAL]),
    "poisson": (
        lambda reduction: nn.PoissonNLLLoss(False, True, reduction=reduction),
        lambda x, t, reduction: F.poisson_nll_loss(x, t, False, True, reduction=reduction),
        [CHANCES, np.array([[0, 1, 2, 3, 4]] * 4, np.int32)],
    ),
    "gaussian": (
        lambda reduction: nn.GaussianNLLLoss(full=True, reduction=reduction),
        lambda x, y, v, reduction: F.gaussian_nll_loss(x, y, v, True, reduction=reduction),
        [X, Y, CHANCES],
    ),
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


def test_dice(either_mode: int) -> None:
    """Source: formula of MindSpore's DiceLoss."""

    def dice(x: Any, y: Any) -> Any:
        return 1 - 2 * (x * y).sum() / ((x * x).sum() + (y * y).sum() + 1e-5)

    labels = (SIGNS > 0).astype(np.float32)
    check(nn.DiceLoss(), dice, [CHANCES, labels])

    def of_classes(x: Any, y: Any) -> Any:
        p = x.softmax(-1)
        return sum(dice(p[:, index], y[:, index]) for index in range(5) if index != 2) / 5

    check(nn.MultiClassDiceLoss(ignore_indiex=2), of_classes, [X, labels], rtol=3e-5)


@pytest.mark.parametrize("is_index", [False, True])
def test_focal(is_index: bool, either_mode: int) -> None:
    """Source: formula of MindSpore's FocalLoss."""
    logits = numbers(3, 4, 5)
    index = RNG.integers(0, 4, (3, 1, 5)).astype(np.int32)
    labels = index if is_index else (np.arange(4)[None, :, None] == index).astype(np.float32)
    weight = np.array([1.0, 0.5, 2.0, 1.0], np.float32)

    def focal(x: Any) -> Any:
        logs = x.log_softmax(1)
        loss = -((1 - logs.exp()) ** 2) * logs * torch.tensor(weight).view(1, -1, 1)
        chosen = loss.gather(1, torch.tensor(index).long())
        return chosen.mean() if is_index else chosen.sum() / loss.numel()

    layer = nn.FocalLoss(Tensor(weight), 2.0)
    check(lambda x: layer(x, Tensor(labels)), focal, [logits], rtol=3e-5)


def test_sampled_softmax_of_all_classes_is_cross_entropy(either_mode: int) -> None:
    """With every other class sampled and counts of one, it is the cross entropy over true and sampled logits."""
    weights, biases, features = numbers(5, 3), numbers(5), numbers(2, 3)
    labels, sampled = np.array([[1], [4]], np.int32), np.array([0, 2, 3], np.int32)
    ones = (Tensor(sampled), Tensor(np.ones((2, 1), np.float32)), Tensor(np.ones(3, np.float32)))
    layer = nn.SampledSoftmaxLoss(3, 5, sampled_values=ones)

    def reference(w: Any, b: Any, x: Any) -> Any:
        logits = x @ w.T + b
        chosen = torch.cat([logits.gather(1, torch.tensor(labels).long()), logits[:, sampled.tolist()]], 1)
        return -chosen.log_softmax(1)[:, 0]

    check(lambda w, b, x: layer(w, b, Tensor(labels), x), reference, [weights, biases, features], rtol=3e-5)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.MAELoss("average"), ValueError),
        (lambda: nn.CosineEmbeddingLoss(2.0), ValueError),
        (lambda: nn.DiceLoss(0.0), ValueError),
        (lambda: nn.FocalLoss(gamma=2), TypeError),
        (lambda: nn.MultiMarginLoss(3), ValueError),
        (lambda: nn.GaussianNLLLoss(eps=0.0), ValueError),
        (lambda: nn.SampledSoftmaxLoss(2, 5), ValueError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()
