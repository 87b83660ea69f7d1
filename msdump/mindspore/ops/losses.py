"""Losses beyond those of `network`: as one operator where MindSpore has one, composed of small ones elsewhere."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.dtype import float32, float_type
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import (
    abs,
    add,
    clip_by_value,
    div,
    exp,
    greater,
    less,
    log,
    maximum,
    mul,
    neg,
    select,
    square,
    sub,
)
from msdump.mindspore.ops.array import cast
from msdump.mindspore.ops.declaration import COMMON, operator
from msdump.mindspore.ops.network import _reduced
from msdump.mindspore.ops.reductions import mean, sum


def _whole(loss: Any, reduction: str) -> Any:
    """A tensor of PyTorch as `reduction` says."""
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


@operator("SmoothL1Loss", operands=COMMON)
def smooth_l1_loss(torch: Any, input: Tensor, target: Tensor, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """Half the squared difference over beta where it is below beta, the difference less beta / 2 elsewhere."""
    if input.shape != target.shape:
        raise ValueError(f"expected a target of shape {tuple(input.shape)}, got {tuple(target.shape)}.")
    return torch.nn.functional.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


@operator("SoftMarginLoss")
def soft_margin_loss(torch: Any, input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + e ** (-target * input)) for targets 1 and -1."""
    return _whole(torch.nn.functional.softplus(-target * input), reduction)


@operator("SigmoidCrossEntropyWithLogits", operands=COMMON)
def _sigmoid_cross_entropy(torch: Any, logits: Tensor, label: Tensor) -> Any:
    """Cross entropy of sigmoid(logits) with targets in [0, 1], element by element."""
    if logits.shape != label.shape:
        raise ValueError(f"expected a label of shape {tuple(logits.shape)}, got {tuple(label.shape)}.")
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, label, reduction="none")


@operator("KLDivLoss", constants=(1,))
def _kl_div(torch: Any, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """labels * (log(labels) - logits), 0 where labels are 0; labels have no gradient, as in MindSpore."""
    return _whole(torch.nn.functional.kl_div(logits, labels, reduction="none"), reduction)


def kl_div(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Kullback-Leibler divergence of log probabilities from probabilities.   Source: means are sums divided."""
    if reduction not in ("none", "mean", "batchmean", "sum"):
        raise ValueError(f"For 'kl_div', the 'reduction' must be none, mean, batchmean or sum, but got {reduction}.")
    if reduction in ("mean", "batchmean"):
        count = logits.shape[0] if reduction == "batchmean" else logits.size
        total: Tensor = _kl_div(logits, labels, "sum")
        return div(total, float(count))
    return _kl_div(logits, labels, reduction)


def _expect_rows(x: Tensor) -> None:
    """PyTorch gives what lies in the memory for a batch without rows."""
    if 0 in x.shape:
        raise ValueError(f"expected at least one row and one class, got shape {tuple(x.shape)}.")


@operator("MultilabelMarginLoss")
def _multilabel_margin_loss(torch: Any, x: Tensor, target: Tensor, reduction: str = "mean") -> tuple[Tensor, Tensor]:
    """The loss, and ones where a class is among the targets."""
    _expect_rows(x)
    labels: Any = torch.as_tensor(target).long()
    loss = torch.nn.functional.multilabel_margin_loss(x, labels, reduction=reduction)
    before_end = torch.cumprod((labels >= 0).long(), -1)
    classes = torch.arange(labels.shape[-1], device=labels.device)
    is_target = ((labels.unsqueeze(-1) == classes) & (before_end.unsqueeze(-1) > 0)).any(-2)
    return loss, is_target.to(torch.as_tensor(target).dtype)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Hinge loss of several classes per row; targets end at -1."""
    results: tuple[Tensor, Tensor] = _multilabel_margin_loss(input, target, reduction)
    return results[0]


@operator("CTCLossV2")
def _ctc_loss(
    torch: Any, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
    reduction: str = "none", zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Losses per sequence, and logarithms of the forward probabilities."""
    lengths: list[Any] = [torch.as_tensor(each).long() for each in (input_lengths, target_lengths)]
    if log_probs.device.type == "meta":  # type: ignore[attr-defined]
        steps, batch = log_probs.shape[:2]
        width = 2 * targets.shape[-1] + 1
        return log_probs.new_empty(batch), log_probs.new_empty((batch, steps, width))  # type: ignore[attr-defined]
    losses, alphas = torch._ctc_loss(
        log_probs, torch.as_tensor(targets).long(), *(each.tolist() for each in lengths), blank, zero_infinity
    )
    if zero_infinity:
        losses = torch.where(torch.isinf(losses), torch.zeros_like(losses), losses)
    # Beyond the end of a sequence PyTorch leaves its memory as it was.
    places = torch.arange(alphas.shape[-1], device=alphas.device)
    steps = torch.arange(alphas.shape[1], device=alphas.device).reshape(-1, 1)
    is_inside = (places <= 2 * lengths[1].reshape(-1, 1, 1)) & (steps < lengths[0].reshape(-1, 1, 1))
    alphas = torch.where(is_inside, alphas, torch.full_like(alphas, -torch.inf))
    # PyTorch makes it as wide as the longest sequence, not as the room for one.
    missing = 2 * targets.shape[-1] + 1 - alphas.shape[-1]
    return losses, torch.nn.functional.pad(alphas, (0, missing), value=-torch.inf)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Loss of unaligned sequences: log_probs (T, N, C), targets (N, S); also the forward log probabilities."""
    losses, alphas = _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, "none", zero_infinity)
    if reduction == "mean":
        lengths = maximum(cast(target_lengths, "float32"), 1.0)
        return cast(mean(div(cast(losses, "float32"), lengths)), losses.dtype), alphas
    return _reduced(losses, reduction), alphas


# -- composed ----------------------------------------------------------------------------------------------------------


def _scaled(x: Tensor, factor: float) -> Tensor:
    """x times a number; MindSpore's graphs have no product with 1."""
    return x if factor == 1 else mul(x, factor)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half the squared difference below delta, delta times the difference less delta / 2 elsewhere."""
    size = abs(sub(input, target))
    inside = mul(square(size), 0.5)
    outside = _scaled(sub(size, 0.5 * delta), delta)
    return _reduced(select(less(size, delta), inside, outside), reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin) for targets 1 and -1; of integers in float32."""
    loss = mul(neg(target), sub(input1, input2))
    loss = loss if loss.dtype in float_type else cast(loss, float32)
    return _reduced(maximum(add(loss, margin) if margin else loss, 0), reduction)


def hinge_embedding_loss(inputs: Tensor, targets: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """inputs where targets are 1, what they fall short of the margin where targets are -1."""
    dtype = inputs.type_.dtype
    is_positive, is_negative = cast(greater(targets, 0), dtype), cast(less(targets, 0), dtype)
    short = clip_by_value(sub(_scaled(is_negative, margin), mul(is_negative, inputs)), 0)
    return _reduced(add(mul(is_positive, inputs), short), reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of sigmoid(input) with targets, its mean over the classes."""
    positive = log(add(exp(neg(input)), 1))
    negative = log(add(exp(input), 1))
    loss = add(mul(target, positive), mul(sub(1, target), negative))
    if weight is not None:
        loss = mul(loss, weight)
    return _reduced(div(sum(loss, input.ndim - 1), float(input.shape[-1])), reduction)


publish(__name__)
