"""Losses."""

from __future__ import annotations

from typing import Any

from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call, execute
from msdump.frontends.mindspore.names import explain_missing, publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.ops import function as F

_REDUCTIONS = ("mean", "sum", "none")


class LossBase(Cell):
    """Base of losses: checks `reduction` and applies it."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in _REDUCTIONS:
            raise ValueError(
                f"For '{type(self).__name__}', the 'reduction' must be in {list(_REDUCTIONS)}, but got {reduction}."
            )
        self.reduction = reduction

    def get_loss(self, x: Tensor, weights: Any = 1.0) -> Tensor:
        """`x` weighed and reduced."""
        if isinstance(weights, Tensor) or weights != 1.0:
            x = F.mul(x, weights)
        if self.reduction == "mean":
            return F.mean(x)
        return F.sum(x) if self.reduction == "sum" else x


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Cross entropy of logits (N, C) with class indices (`sparse`) or probabilities."""

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = sparse

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.sparse and self.reduction == "mean":
            return call("SparseSoftmaxCrossEntropyWithLogits", logits, labels, is_grad=False)
        if self.sparse:
            labels = F.one_hot(labels, logits.shape[-1], Tensor(1.0), Tensor(0.0))
        return self.get_loss(execute("SoftmaxCrossEntropyWithLogits", [logits, labels])[0])


class CrossEntropyLoss(LossBase):
    """Cross entropy of logits (N, C, ...) with class indices or probabilities."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(LossBase):
    """Negative log likelihood of log probabilities (N, C, ...)."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class MSELoss(LossBase):
    """Squared differences."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.get_loss(F.square(F.sub(logits, labels)))


class L1Loss(LossBase):
    """Absolute differences."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.get_loss(F.abs(F.sub(logits, labels)))


class BCELoss(LossBase):
    """Cross entropy of probabilities with targets in [0, 1]."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """Cross entropy of sigmoid(logits) with targets in [0, 1]."""

    def __init__(self, reduction: str = "mean", weight: Tensor | None = None, pos_weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, predict: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(predict, target, self.weight, self.pos_weight, self.reduction)


publish(__name__)

__getattr__ = explain_missing(__name__)
