"""Losses that compare distances, ranks or margins of several results."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.nn.loss.values import LossBase
from msdump.mindspore.ops import function as F


@as_layer(base=LossBase)
def SoftMarginLoss(logits: Tensor, labels: Tensor, *, reduction: str = "mean") -> Any:
    """log(1 + e ** (-label * logit)) for labels 1 and -1."""
    return F.soft_margin_loss(logits, labels, reduction)


@as_layer(base=LossBase)
def MarginRankingLoss(
    input1: Tensor, input2: Tensor, target: Tensor, *, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """How far two results are from the order that the target (1 or -1) states, with a margin."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction)


class CosineEmbeddingLoss(LossBase):
    """1 - cosine of alike vectors (label 1), what it exceeds the margin by of others (label -1)."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if not isinstance(margin, float):
            raise TypeError(f"For 'CosineEmbeddingLoss', the type of 'margin' must be float, but got {type(margin)}.")
        if not -1.0 <= margin <= 1.0:
            raise ValueError(f"For 'CosineEmbeddingLoss', the 'margin' must be in range [-1.0, 1.0], but got {margin}.")
        self.margin = margin

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:
        return F.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


@as_layer(base=LossBase)
def HingeEmbeddingLoss(logits: Tensor, labels: Tensor, *, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """A distance where the label is 1, what it falls short of the margin where the label is -1."""
    return F.hinge_embedding_loss(logits, labels, margin, reduction)


class TripletMarginLoss(LossBase):
    """Distance to the positive less the distance to the negative plus a margin, never below 0."""

    def __init__(
        self, p: int = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean", margin: float = 1.0
    ) -> None:
        super().__init__(reduction)
        self.p, self.swap, self.eps, self.margin = p, swap, eps, margin

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0) -> Tensor:
        margin = self.margin if self.margin != 1.0 else margin
        return F.triplet_margin_loss(x, positive, negative, margin, self.p, self.eps, self.swap, self.reduction)


@as_layer(base=LossBase)
def MultiLabelSoftMarginLoss(
    x: Tensor, target: Tensor, *, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of sigmoid(x) with targets 0 and 1, its mean over the classes."""
    return F.multilabel_soft_margin_loss(x, target, weight, reduction)


class MultiMarginLoss(LossBase):
    """Hinge loss of several classes."""

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        if p not in (1, 2):
            raise ValueError(f"For 'MultiMarginLoss', the 'p' must be in [1, 2], but got {p}.")
        self.p, self.margin, self.weight = p, margin, weight

    def construct(self, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        weight = weight if self.weight is None else self.weight
        if weight is None:
            weight = F.ones((x.shape[1],), x.dtype)
        return F.multi_margin_loss(x, target, self.p, self.margin, weight, self.reduction)


@as_layer(base=LossBase)
def MultilabelMarginLoss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Hinge loss of several classes per row; targets end at -1."""
    return F.multilabel_margin_loss(x, target, reduction)


publish(__name__)
