"""Base of losses, and the losses of classes, probabilities and numbers."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.ops import function as F

_REDUCTIONS = ("mean", "sum", "none")


def _check_reduction(cls_name: str, reduction: str) -> None:
    if reduction not in _REDUCTIONS:
        raise ValueError(f"For '{cls_name}', the 'reduction' must be in {list(_REDUCTIONS)}, but got {reduction}.")


class LossBase(Cell):
    """Base of losses: checks `reduction` and applies it."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        _check_reduction(type(self).__name__, reduction)
        self.reduction = reduction

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """All axes of `x`."""
        return tuple(range(x.ndim))

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


@as_layer(base=LossBase)
def CrossEntropyLoss(
    logits: Tensor,
    labels: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits (N, C, ...) with class indices or probabilities."""
    return F.cross_entropy(logits, labels, weight, ignore_index, reduction, label_smoothing)


@as_layer(base=LossBase)
def NLLLoss(
    logits: Tensor, labels: Tensor, *, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Negative log likelihood of log probabilities (N, C, ...)."""
    return F.nll_loss(logits, labels, weight, ignore_index, reduction)


class MSELoss(LossBase):
    """Squared differences."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.get_loss(F.square(F.sub(logits, labels)))


class L1Loss(LossBase):
    """Absolute differences."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.get_loss(F.abs(F.sub(logits, labels)))


@as_layer(base=LossBase)
def BCELoss(logits: Tensor, labels: Tensor, *, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """Cross entropy of probabilities with targets in [0, 1]."""
    return F.binary_cross_entropy(logits, labels, weight, reduction)


@as_layer(base=LossBase)
def BCEWithLogitsLoss(
    predict: Tensor,
    target: Tensor,
    *,
    reduction: str = "mean",
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of sigmoid(logits) with targets in [0, 1]."""
    return F.binary_cross_entropy_with_logits(predict, target, weight, pos_weight, reduction)


class MAELoss(LossBase):
    """Absolute differences."""

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return self.get_loss(F.abs(F.sub(logits, label)))


class RMSELoss(LossBase):
    """Root of the mean of squared differences."""

    def __init__(self) -> None:
        super().__init__()
        self.MSELoss = MSELoss()

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return F.sqrt(self.MSELoss(logits, label))


@as_layer(base=LossBase)
def SmoothL1Loss(logits: Tensor, labels: Tensor, *, beta: float = 1.0, reduction: str = "none") -> Any:
    """Squared differences below beta, absolute ones above."""
    return F.smooth_l1_loss(logits, labels, beta, reduction)


@as_layer(base=LossBase)
def HuberLoss(logits: Tensor, labels: Tensor, *, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Squared differences below delta, absolute ones above."""
    return F.huber_loss(logits, labels, reduction, delta)


@as_layer()
def KLDivLoss(logits: Tensor, labels: Tensor, *, reduction: str = "mean") -> Tensor:
    """Kullback-Leibler divergence of log probabilities from probabilities."""
    return F.kl_div(logits, labels, reduction)


@as_layer(base=LossBase)
def CTCLoss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    *,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Loss of sequences that are not aligned: log_probs (T, N, C) or (T, C), targets (N, S)."""
    lengths = (input_lengths, target_lengths)
    is_single = log_probs.ndim == 2
    if is_single:
        log_probs = F.expand_dims(log_probs, -2)
        targets = F.expand_dims(targets, 0) if targets.ndim == 1 else targets
        lengths = (F.reshape(input_lengths, (1,)), F.reshape(target_lengths, (1,)))
    loss, _ = F.ctc_loss(log_probs, targets, *lengths, blank, reduction, zero_infinity)
    return F.squeeze(loss, 0) if is_single and loss.ndim else loss


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
