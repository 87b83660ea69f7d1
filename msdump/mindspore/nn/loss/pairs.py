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


@as_layer(base=LossBase)
def MultilabelMarginLoss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Hinge loss of several classes per row; targets end at -1."""
    return F.multilabel_margin_loss(x, target, reduction)


publish(__name__)
