"""`mindspore.nn.loss`: base of losses, and the losses of classes, probabilities and numbers."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import Declared, layers
from msdump.mindspore.nn.layer.activation import get_activation
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


class DiceLoss(LossBase, takes="smooth:above_0=1e-05"):
    """1 - twice the common part of two masks over the sum of both."""

    reduction = "mean"

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        if logits.shape != label.shape:
            raise ValueError(
                f"For 'DiceLoss', the 'logits_shape' must be equal to 'label_shape', "
                f"but got {logits.shape} and {label.shape}."
            )
        logits, label = F.reshape(logits, (-1,)), F.reshape(label, (-1,))
        both = F.add(F.sum(F.mul(logits, logits)), F.sum(F.mul(label, label)))
        return F.sub(1, F.div(F.mul(F.sum(F.mul(logits, label)), 2), F.add(both, self.smooth)))


class MultiClassDiceLoss(LossBase, takes="weights=None ignore_indiex=None activation='softmax'"):
    """Mean of the Dice losses of the classes (axis 1)."""

    reduction = "mean"

    def _set_up(self, activation: Any) -> None:
        names = ["softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid"]
        if isinstance(activation, str) and activation not in names:
            raise ValueError(f"For 'MultiClassDiceLoss', the 'activation' must be in {names}, but got {activation}.")
        if self.weights is not None and self.weights.ndim != 2:
            raise ValueError(f"For '{self.cls_name}', the dimension of 'weights' must be 2, got {self.weights.ndim}.")
        self.binarydiceloss = DiceLoss()
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        if not isinstance(self.activation, Cell | None):
            raise TypeError(f"For '{self.cls_name}', the 'activation' must be str or Cell, but got {activation!r}.")

    def construct(self, logits: Tensor, label: Tensor) -> Any:
        logits = logits if self.activation is None else self.activation(logits)
        total: Any = 0
        for index in range(label.shape[1]):
            if index != self.ignore_indiex:
                loss = self.binarydiceloss(logits[:, index], label[:, index])
                total = F.add(loss if self.weights is None else F.mul(loss, self.weights[index]), total)
        return F.div(total, float(label.shape[1]))


class FocalLoss(LossBase, takes="weight=None gamma:factor=2.0 reduction:way='mean'"):
    """Cross entropy that counts what is already certain less: times (1 - p) ** gamma."""

    def _set_up(self) -> None:
        if self.weight is not None and (not isinstance(self.weight, Tensor) or self.weight.ndim != 1):
            kind = TypeError if not isinstance(self.weight, Tensor) else ValueError
            raise kind(f"For 'FocalLoss', the 'weight' must be a Tensor of dimension 1, but got {self.weight!r}.")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        fits = 2 <= logits.ndim <= 4 and logits.ndim == labels.ndim and logits.shape[1] > 1
        if not fits or labels.shape[1] not in (1, logits.shape[1]):
            raise ValueError(
                "For 'FocalLoss', expected 'logits' and 'labels' of 2, 3 or 4 dimensions, logits.shape[1] above 1, and "
                f"labels.shape[1] 1 or the same, but got {logits.shape} and {labels.shape}."
            )
        is_index = labels.shape[1] == 1
        labels = F.reshape(labels, (*labels.shape[:2], -1))
        index = F.cast(labels, "int32")
        logs = F.log_softmax(F.reshape(logits, (*logits.shape[:2], -1)), 1)
        logs = F.squeeze(F.gather_elements(logs, 1, index), 1) if is_index else logs
        chance = F.exp(logs)
        if self.weight is not None:
            weights = F.tile(F.reshape(self.weight, (1, -1, 1)), (labels.shape[0], 1, labels.shape[2]))
            logs = F.mul(logs, F.squeeze(F.gather_elements(weights, 1, index), 1) if is_index else weights)
        factor = F.mul(F.pow(F.add(F.mul(chance, -1), 1.0), self.gamma), -1)
        if is_index:
            return self.get_loss(F.mean(F.mul(factor, logs), 1))
        return self.get_loss(F.mean(F.mul(F.mul(factor, labels), logs), -1))


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
