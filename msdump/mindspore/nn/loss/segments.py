"""Losses of pictures, sequences and large vocabularies."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.nn.layer.activation import get_activation
from msdump.mindspore.nn.loss.values import LossBase
from msdump.mindspore.ops import function as F


class DiceLoss(LossBase):
    """1 - twice the common part of two masks over the sum of both."""

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if smooth <= 0:
            raise ValueError(f"For 'DiceLoss', the 'smooth' must be > 0.0, but got {smooth}.")
        self.smooth = smooth

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        if logits.shape != label.shape:
            raise ValueError(
                f"For 'DiceLoss', the 'logits_shape' must be equal to 'label_shape', "
                f"but got {logits.shape} and {label.shape}."
            )
        logits, label = F.reshape(logits, (-1,)), F.reshape(label, (-1,))
        common = F.sum(F.mul(logits, label))
        both = F.add(F.sum(F.mul(logits, logits)), F.sum(F.mul(label, label)))
        return F.sub(1, F.div(F.mul(common, 2), F.add(both, self.smooth)))


class MultiClassDiceLoss(LossBase):
    """Mean of the Dice losses of the classes (axis 1)."""

    def __init__(
        self, weights: Tensor | None = None, ignore_indiex: int | None = None, activation: Any = "softmax"
    ) -> None:
        super().__init__()
        names = ["softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid"]
        if isinstance(activation, str) and activation not in names:
            raise ValueError(f"For 'MultiClassDiceLoss', the 'activation' must be in {names}, but got {activation}.")
        if weights is not None and weights.ndim != 2:
            raise ValueError(f"For 'MultiClassDiceLoss', the dimension of 'weights' must be 2, but got {weights.ndim}.")
        self.binarydiceloss = DiceLoss()
        self.weights, self.ignore_indiex = weights, ignore_indiex
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        if self.activation is not None and not isinstance(self.activation, Cell):
            raise TypeError(
                f"For 'MultiClassDiceLoss', the 'activation' must be str or Cell, but got {type(self.activation)}."
            )

    def construct(self, logits: Tensor, label: Tensor) -> Any:
        if self.activation is not None:
            logits = self.activation(logits)
        total: Any = 0
        for index in range(label.shape[1]):
            if index != self.ignore_indiex:
                loss = self.binarydiceloss(logits[:, index], label[:, index])
                if self.weights is not None:
                    loss = F.mul(loss, self.weights[index])
                total = F.add(loss, total)
        return F.div(total, float(label.shape[1]))


class FocalLoss(LossBase):
    """Cross entropy that counts what is already certain less: times (1 - p) ** gamma."""

    def __init__(self, weight: Tensor | None = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if not isinstance(gamma, float):
            raise TypeError(f"For 'FocalLoss', the type of 'gamma' must be float, but got {type(gamma).__name__}.")
        if weight is not None and not isinstance(weight, Tensor):
            raise TypeError(f"For 'FocalLoss', the type of 'weight' must be a Tensor, but got {type(weight)}.")
        if weight is not None and weight.ndim != 1:
            raise ValueError(f"For 'FocalLoss', the dimension of 'weight' must be 1, but got {weight.ndim}.")
        self.weight, self.gamma = weight, gamma

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check(logits, labels)
        is_index = labels.shape[1] == 1
        logits = F.reshape(logits, (*logits.shape[:2], -1))
        labels = F.reshape(labels, (*labels.shape[:2], -1))
        logs = F.log_softmax(logits, 1)
        index = F.cast(labels, "int32")
        if is_index:
            logs = F.squeeze(F.gather_elements(logs, 1, index), 1)
        chance = F.exp(logs)
        if self.weight is not None:
            weights = F.tile(F.reshape(self.weight, (1, -1, 1)), (labels.shape[0], 1, labels.shape[2]))
            if is_index:
                weights = F.squeeze(F.gather_elements(weights, 1, index), 1)
            logs = F.mul(logs, weights)
        factor = F.mul(F.pow(F.add(F.mul(chance, -1), 1.0), self.gamma), -1)
        if is_index:
            return self.get_loss(F.mean(F.mul(factor, logs), 1))
        return self.get_loss(F.mean(F.mul(F.mul(factor, labels), logs), -1))

    def _check(self, logits: Tensor, labels: Tensor) -> None:
        if not 2 <= logits.ndim <= 4 or logits.ndim != labels.ndim:
            raise ValueError(
                "For 'FocalLoss', the dimensions of 'logits' and 'labels' must be equal and in [2, 4], "
                f"but got {logits.ndim} and {labels.ndim}."
            )
        if logits.shape[1] == 1 or labels.shape[1] not in (1, logits.shape[1]):
            raise ValueError(
                "For 'FocalLoss', the 'logits'.shape[1] cannot be one, and 'labels'.shape[1] must be one or equal to "
                f"it, but got {logits.shape[1]} and {labels.shape[1]}."
            )


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


class SampledSoftmaxLoss(LossBase):
    """Softmax cross entropy over the true class and some others.

    sampled_values   (classes, expected counts of the true ones, expected counts of the others)
    """

    def __init__(
        self,
        num_sampled: int,
        num_classes: int,
        num_true: int = 1,
        sampled_values: Any = None,
        remove_accidental_hits: bool = True,
        seed: int = 0,
        reduction: str = "none",
    ) -> None:
        super().__init__(reduction)
        if num_true < 1 or max(num_true, num_sampled) > num_classes:
            raise ValueError(
                "For 'SampledSoftmaxLoss', expected 1 <= num_true <= num_classes and num_sampled <= num_classes, "
                f"got {num_true}, {num_sampled}, {num_classes}."
            )
        if sampled_values is None:
            raise ValueError(
                "For 'SampledSoftmaxLoss', expected sampled_values (classes, true_expected_count, "
                "sampled_expected_count), got None. Draw them with numpy and pass them as tensors."
            )
        if len(sampled_values) != 3:
            raise ValueError(
                f"For 'SampledSoftmaxLoss', the length of 'sampled_values' must be equal to 3, "
                f"but got {len(sampled_values)}."
            )
        self.num_true, self.sampled_values = num_true, tuple(sampled_values)

    def construct(self, weights: Tensor, biases: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
        sampled, true_count, sampled_count = self.sampled_values
        labels = F.reshape(F.cast(labels, "int32"), (-1, self.num_true))
        flat, sampled = F.reshape(labels, (-1,)), F.cast(sampled, "int32")
        rows = F.reshape(F.gather(weights, flat), (-1, self.num_true, weights.shape[1]))
        of_true = F.sum(F.mul(F.expand_dims(logits, 1), rows), 2)
        of_true = F.add(of_true, F.reshape(F.gather(biases, flat), (-1, self.num_true)))
        others = F.matmul(logits, F.transpose(F.gather(weights, sampled), (1, 0)))
        others = F.add(others, F.gather(biases, sampled))
        both = F.concat([F.sub(of_true, F.log(true_count)), F.sub(others, F.log(sampled_count))], 1)
        targets = F.concat([F.div(F.ones_like(of_true), float(self.num_true)), F.zeros_like(others)], 1)
        powers = F.exp(F.sub(both, F.amax(both, 1, True)))
        chances = F.div(powers, F.sum(powers, 1, True))
        return F.mul(F.sum(F.mul(targets, F.log(F.add(chances, 1e-20))), 1), -1)


publish(__name__)
