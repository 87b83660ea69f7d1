"""Functions of neural networks."""

from __future__ import annotations

import math
from typing import Any

from msdump.frontends.mindspore.common.seed import random_generator
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call, execute
from msdump.frontends.mindspore.ops.arithmetic import add, div, erf, maximum, minimum, mul
from msdump.frontends.mindspore.ops.shapes import cast
from msdump.frontends.mindspore.tracer import current_tracer

__all__ = [
    "dropout",
    "dropout_with_mask",
    "gelu",
    "leaky_relu",
    "log_softmax",
    "softmax",
]


def softmax(input: Tensor, axis: int = -1, *, dtype: Any = None) -> Tensor:
    return call("Softmax", input if dtype is None else cast(input, dtype), axis=axis)


def log_softmax(logits: Tensor, axis: int = -1) -> Tensor:
    return call("LogSoftmax", logits, axis=axis)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Gauss error linear unit.   Source: `approximate`: "tanh" is MindSpore's GeLU operator, "none" uses erf."""
    if approximate == "tanh":
        return call("GeLU", input)
    return mul(mul(input, 0.5), add(erf(div(input, math.sqrt(2.0))), 1.0))


def leaky_relu(input: Tensor, alpha: float = 0.2) -> Tensor:
    """input above zero, alpha * input below."""
    return maximum(mul(input, alpha), input) if alpha <= 1 else minimum(mul(input, alpha), input)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, seed: int | None = None) -> Tensor:
    """Each element zero with probability p, the others scaled so that the mean stays.

    Raises: ValueError for p outside [0, 1).
    """
    if not 0 <= p < 1:
        raise ValueError(f"For 'dropout', the 'p' should be in range [0, 1), but got {p}.")
    if not training or p == 0:
        return input
    return dropout_with_mask(input, 1.0 - p, seed)[0]


def dropout_with_mask(input: Tensor, keep_prob: float, seed: int | None = None, seed1: int = 0) -> tuple[Tensor, ...]:
    """The result and the mask. In a graph the mask changes with every run, outside of it with every call."""
    first = int(random_generator().integers(1, 2**31)) if seed is None else seed
    attrs = {"keep_prob": keep_prob, "Seed0": first, "Seed1": seed1}
    tracer = current_tracer()
    if tracer is None or tracer.is_recording:
        return execute("Dropout", [input], attrs)
    return execute("Dropout", [input, tracer.draw()], attrs)
