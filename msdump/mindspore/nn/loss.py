"""`mindspore.nn.loss`: base of losses, and the losses of classes, probabilities and numbers."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.declared import Declared, layers
from msdump.mindspore.ops import function as F


class LossBase(Declared, takes="reduction:way='mean'"):
    """Base of losses: checks `reduction` and applies it."""

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


class SoftmaxCrossEntropyWithLogits(LossBase, takes="sparse=False reduction:way='none'"):
    """Cross entropy of logits (N, C) with class indices (`sparse`) or probabilities."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.sparse and self.reduction == "mean":
            return call("SparseSoftmaxCrossEntropyWithLogits", logits, labels, is_grad=False)
        if self.sparse:
            labels = F.one_hot(labels, logits.shape[-1], Tensor(1.0), Tensor(0.0))
        return self.get_loss(execute("SoftmaxCrossEntropyWithLogits", [logits, labels])[0])


class MSELoss(LossBase):
    """Squared differences."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.get_loss(F.square(F.sub(logits, labels)))


class L1Loss(LossBase):
    """Absolute differences."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.get_loss(F.abs(F.sub(logits, labels)))


class MAELoss(LossBase):
    """Absolute differences."""

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return self.get_loss(F.abs(F.sub(logits, label)))


class RMSELoss(LossBase, takes=""):
    """Root of the mean of squared differences."""

    reduction = "mean"

    def _set_up(self) -> None:
        self.MSELoss = MSELoss()

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return F.sqrt(self.MSELoss(logits, label))


def _ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, **settings: Any
) -> Tensor:
    """Loss of sequences that are not aligned: log_probs (T, N, C) or (T, C), targets (N, S)."""
    lengths = (input_lengths, target_lengths)
    is_single = log_probs.ndim == 2
    if is_single:
        log_probs = F.expand_dims(log_probs, -2)
        targets = F.expand_dims(targets, 0) if targets.ndim == 1 else targets
        lengths = (F.reshape(input_lengths, (1,)), F.reshape(target_lengths, (1,)))
    loss, _ = F.ctc_loss(log_probs, targets, *lengths, **settings)
    return F.squeeze(loss, 0) if is_single and loss.ndim else loss


_TABLE = """
    BCELoss binary_cross_entropy logits labels | weight=None reduction:way='mean'
    BCEWithLogitsLoss binary_cross_entropy_with_logits predict target | reduction:way='mean' weight=None pos_weight=None
    CTCLoss _ctc_loss log_probs targets input_lengths target_lengths | blank=0 reduction:way='mean' zero_infinity=False
    CrossEntropyLoss cross_entropy logits labels
        | weight=None ignore_index=-100 reduction:way='mean' label_smoothing=0.0
    HingeEmbeddingLoss hinge_embedding_loss logits labels | margin=1.0 reduction:way='mean'
    HuberLoss huber_loss logits labels | reduction:way='mean' delta=1.0
    KLDivLoss kl_div logits labels | reduction='mean'
    MarginRankingLoss margin_ranking_loss input1 input2 target | margin=0.0 reduction:way='mean'
    MultiLabelSoftMarginLoss multilabel_soft_margin_loss x target | weight=None reduction:way='mean'
    MultilabelMarginLoss multilabel_margin_loss x target | reduction:way='mean'
    NLLLoss nll_loss logits labels | weight=None ignore_index=-100 reduction:way='mean'
    SmoothL1Loss smooth_l1_loss logits labels | beta=1.0 reduction:way='none'
    SoftMarginLoss soft_margin_loss logits labels | reduction:way='mean'
"""

globals().update(layers(_TABLE, {**vars(F), "_ctc_loss": _ctc_loss}, __name__, LossBase))

publish(__name__)

__getattr__ = explain_missing(__name__)
