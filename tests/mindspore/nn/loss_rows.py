"""Losses with their options, and the function that gives the same: PyTorch's, or a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from msdump.tensors.arrays import Array

F = torch.nn.functional
_RNG = np.random.default_rng(31)
REDUCTIONS = ("mean", "sum", "none")


def _numbers(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


def _chances(*shape: int) -> Array:
    return _RNG.uniform(0.1, 0.9, shape).astype(np.float32)


@dataclass(frozen=True)
class Row:
    """forms: paths in `mindspore` of a class made with the options, or of a function that gets them with the data.

    reference   function of the data, the options and the reduction
    own         options under the names of the reference, where they differ
    """

    forms: str
    reference: Callable[..., Any]
    data: tuple[Array, ...]
    options: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] | None = None
    reductions: tuple[str, ...] = REDUCTIONS


X, Y, Z = _numbers(4, 5), _numbers(4, 5), _numbers(4, 5)
P, Q = _chances(4, 5), _chances(4, 5)
MASK = (P > 0.5).astype(np.float32)
SIGNS = np.where(Y < 0, -1, 1).astype(np.float32)
CLASSES = np.array([0, 3, 1, 3], np.int32)
SHARES = (P / P.sum(1, keepdims=True)).astype(np.float32)
WEIGHT = np.array([1.0, 2.0, 0.5, 3.0, 0.25], np.float32)
# Pictures: (N, C, H, W) with a class per pixel.
MAP, PIXELS = _numbers(2, 5, 2, 3), _RNG.integers(0, 5, (2, 2, 3)).astype(np.int32)
COUNTS = np.array([[0, 1, 2, 3, 4]] * 4, np.int32)

_CE = "nn.CrossEntropyLoss ops.cross_entropy mint.nn.CrossEntropyLoss mint.nn.functional.cross_entropy"
_NLL = "nn.NLLLoss ops.nll_loss mint.nn.NLLLoss mint.nn.functional.nll_loss"
_BCE = "nn.BCELoss ops.binary_cross_entropy mint.nn.BCELoss mint.nn.functional.binary_cross_entropy"
_BCE_LOGITS = (
    "nn.BCEWithLogitsLoss ops.binary_cross_entropy_with_logits mint.nn.BCEWithLogitsLoss "
    "mint.nn.functional.binary_cross_entropy_with_logits"
)
_SMOOTH = "nn.SmoothL1Loss ops.smooth_l1_loss mint.nn.SmoothL1Loss mint.nn.functional.smooth_l1_loss"


def _soft(x: Any, y: Any, reduction: str) -> Any:
    """MindSpore's operator has no gradient of the labels."""
    return F.cross_entropy(x, y.detach(), reduction=reduction)


def _classes(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference with targets of int64, as PyTorch has them."""

    def called(x: Any, target: Any, **options: Any) -> Any:
        return reference(x, target.long(), **options)

    return called


def _reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else getattr(loss, reduction)()


def _kl_div(x: Any, y: Any, reduction: str, log_target: bool = False) -> Any:
    """PyTorch warns of its own "mean"."""
    loss = F.kl_div(x, y, reduction="none", log_target=log_target)
    return loss.sum() / len(x) if reduction == "batchmean" else _reduced(loss, reduction)


def _soft_margin(x: Any, y: Any, reduction: str) -> Any:
    """PyTorch has no gradient of the targets."""
    return _reduced((1 + (-x * y).exp()).log(), reduction)


def _ctc(x: Any, targets: Any, *lengths: Any, reduction: str, **options: Any) -> Any:
    return F.ctc_loss(x, targets, *lengths, reduction=reduction, **options)


def _rows(forms: str, reference: Any, data: tuple[Array, ...], *options: dict[str, Any]) -> list[Row]:
    return [Row(forms, reference, data, each) for each in options]


ROWS: list[Row] = [
    *_rows(
        _CE,
        _classes(F.cross_entropy),
        (X, CLASSES),
        {},
        {"weight": WEIGHT},
        {"ignore_index": 3},
        {"label_smoothing": 0.2},
        {"weight": WEIGHT, "ignore_index": 3, "label_smoothing": 0.2},
    ),
    *_rows(_CE, _classes(F.cross_entropy), (MAP, PIXELS), {"weight": WEIGHT, "ignore_index": 2}),
    *_rows(_CE, F.cross_entropy, (X, SHARES), {}, {"weight": WEIGHT}, {"label_smoothing": 0.2, "weight": WEIGHT}),
    *_rows(_NLL, _classes(F.nll_loss), (X, CLASSES), {}, {"weight": WEIGHT}, {"ignore_index": 3, "weight": WEIGHT}),
    *_rows(_NLL, _classes(F.nll_loss), (MAP, PIXELS), {"weight": WEIGHT, "ignore_index": 2}),
    *_rows(_BCE, F.binary_cross_entropy, (P, Q), {}, {"weight": WEIGHT}),
    *_rows(
        _BCE_LOGITS,
        F.binary_cross_entropy_with_logits,
        (X, Q),
        {},
        {"weight": P},
        {"pos_weight": WEIGHT},
        {"weight": WEIGHT, "pos_weight": WEIGHT},
    ),
    Row("nn.SoftmaxCrossEntropyWithLogits", _classes(F.cross_entropy), (X, CLASSES), {"sparse": True}, {}),
    Row("nn.SoftmaxCrossEntropyWithLogits", _soft, (X, SHARES), {"sparse": False}, {}),
    Row("nn.MSELoss ops.mse_loss mint.nn.MSELoss mint.nn.functional.mse_loss", F.mse_loss, (X, Y)),
    Row("nn.L1Loss nn.MAELoss ops.l1_loss mint.nn.L1Loss mint.nn.functional.l1_loss", F.l1_loss, (X, Y)),
    *_rows(_SMOOTH, F.smooth_l1_loss, (X, Y), {}, {"beta": 0.4}),
    Row("nn.HuberLoss ops.huber_loss", F.huber_loss, (X, Y), {"delta": 0.7}),
    # Source: MindSpore 2.7: targets have no gradient.
    Row(
        "nn.KLDivLoss ops.kl_div",
        lambda x, y, reduction: _kl_div(x, y.detach(), reduction),
        (X, P),
        reductions=(*REDUCTIONS, "batchmean"),
    ),
    *(
        Row(
            "mint.nn.KLDivLoss mint.nn.functional.kl_div",
            _kl_div,
            (X, P),
            {"log_target": flag},
            reductions=(*REDUCTIONS, "batchmean"),
        )
        for flag in (False, True)
    ),
    Row(
        "nn.SoftMarginLoss ops.soft_margin_loss mint.nn.SoftMarginLoss mint.nn.functional.soft_margin_loss",
        _soft_margin,
        (X, SIGNS),
    ),
    Row("nn.MarginRankingLoss ops.margin_ranking_loss", F.margin_ranking_loss, (X, Y, SIGNS), {"margin": 0.3}),
    Row(
        "nn.HingeEmbeddingLoss ops.hinge_embedding_loss",
        F.hinge_embedding_loss,
        (P, SIGNS.astype(np.int32)),
        {"margin": 0.6},
    ),
    *_rows(
        "nn.MultiLabelSoftMarginLoss ops.multilabel_soft_margin_loss",
        F.multilabel_soft_margin_loss,
        (X, MASK.astype(np.int32)),
        {},
        {"weight": WEIGHT},
    ),
    Row(
        "nn.MultilabelMarginLoss ops.multilabel_margin_loss",
        _classes(F.multilabel_margin_loss),
        (X, np.array([[3, 0, -1, 1, 1], [2, -1, 0, 0, 0], [0, 1, 2, 3, 4], [-1, 0, 0, 0, 0]], np.int32)),
    ),
    *_rows(
        "nn.CTCLoss ops.ctc_loss",
        _ctc,
        (
            torch.tensor(_numbers(6, 2, 4)).log_softmax(-1).numpy(),
            np.array([[1, 2, 3], [2, 2, 0]], np.int32),
            np.array([6, 3], np.int32),
            np.array([3, 2], np.int32),
        ),
        {},
        {"blank": 3, "zero_infinity": True},
    ),
]
# With tests of their own, which need more than a row.
ELSEWHERE = {
    "nn.RMSELoss": "test_root_of_squares",
}
