"""What each optimizer does to a weight in a step: PyTorch where it has the same rule, else the published formula.

A rule is `rule(weight, gradient, state, step, rate, decay)`, all in float64: the weight after a step. `state` is a dict
of the weight's own that lasts; steps count from 1; `decay` is 0 for a weight that does not decay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.tensors.arrays import Array

Rule = Callable[[Array, Array, dict[str, Any], int, float, float], Array]


def torch_rule(name: str, **options: Any) -> Rule:
    """The optimizer `name` of PyTorch, with `options`."""
    import torch

    def rule(weight: Array, gradient: Array, state: dict[str, Any], step: int, rate: float, decay: float) -> Array:
        if not state:
            state["weight"] = torch.tensor(weight, requires_grad=True)
            own = {"weight_decay": decay} if decay else {}
            state["optimizer"] = getattr(torch.optim, name)([state["weight"]], lr=rate, foreach=False, **own, **options)
        for group in state["optimizer"].param_groups:
            group["lr"] = rate
        state["weight"].grad = torch.tensor(gradient)
        state["optimizer"].step()
        result: Array = state["weight"].detach().numpy().copy()
        return result

    return rule


def _moments(state: dict[str, Any], gradient: Array, beta1: float, beta2: float) -> tuple[Array, Array]:
    """Running means of the gradient and of its square."""
    state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * gradient
    state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * gradient**2
    return state["m"], state["v"]


def adam(
    beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, nesterov: bool = False, amsgrad: bool = False
) -> Rule:
    """Differs from PyTorch in eps, which is added before the bias correction (the paper's second form).

    Nesterov's form looks ahead with the same beta1, where PyTorch's NAdam has a schedule of its own.
    """

    def rule(weight: Array, gradient: Array, state: dict[str, Any], step: int, rate: float, decay: float) -> Array:
        gradient = gradient + decay * weight
        m, v = _moments(state, gradient, beta1, beta2)
        if amsgrad:
            v = state["largest"] = np.maximum(state.get("largest", 0.0), v)
        if nesterov:
            m = beta1 * m + (1 - beta1) * gradient
        return weight - rate * np.sqrt(1 - beta2**step) / (1 - beta1**step) * m / (np.sqrt(v) + eps)

    return rule


def adam_weight_decay(beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6) -> Rule:
    """Differs from PyTorch's AdamW: no bias correction, as in BERT."""

    def rule(weight: Array, gradient: Array, state: dict[str, Any], step: int, rate: float, decay: float) -> Array:
        m, v = _moments(state, gradient, beta1, beta2)
        return weight - rate * (m / (np.sqrt(v) + eps) + decay * weight)

    return rule


def lamb(beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6) -> Rule:
    """PyTorch has none; the paper's formula."""

    def rule(weight: Array, gradient: Array, state: dict[str, Any], step: int, rate: float, decay: float) -> Array:
        m, v = _moments(state, gradient, beta1, beta2)
        move = m / (1 - beta1**step) / (np.sqrt(v / (1 - beta2**step)) + eps) + decay * weight
        return weight - rate * np.linalg.norm(weight) / np.linalg.norm(move) * move

    return rule


def rms_prop(rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10, centered: bool = False) -> Rule:
    """Differs from PyTorch: the mean square starts at 1, and epsilon is added under the root."""

    def rule(weight: Array, gradient: Array, state: dict[str, Any], step: int, rate: float, decay: float) -> Array:
        gradient = gradient + decay * weight
        state["square"] = rho * state.get("square", 1.0) + (1 - rho) * gradient**2
        spread = state["square"]
        if centered:
            state["mean"] = rho * state.get("mean", 0.0) + (1 - rho) * gradient
            spread = spread - state["mean"] ** 2
        state["moment"] = momentum * state.get("moment", 0.0) + rate * gradient / np.sqrt(spread + epsilon)
        return np.asarray(weight - state["moment"])

    return rule


def ftrl(accum: float = 0.1, power: float = -0.5, l1: float = 0.0, l2: float = 0.0) -> Rule:
    """PyTorch has none; the paper's formula."""

    def rule(weight: Array, gradient: Array, state: dict[str, Any], step: int, rate: float, decay: float) -> Array:
        gradient = gradient + decay * weight
        before = state.get("accum", np.full_like(weight, accum))
        state["accum"] = before + gradient**2
        sigma = (state["accum"] ** -power - before**-power) / rate
        state["linear"] = state.get("linear", 0.0) + gradient - sigma * weight
        over = np.clip(state["linear"], -l1, l1) - state["linear"]
        return np.asarray(over / (state["accum"] ** -power / rate + 2 * l2))

    return rule


def constant_adagrad(accum: float = 0.1) -> Rule:
    """Adagrad that never adds to the sum of squares, which PyTorch's always does."""

    def rule(weight: Array, gradient: Array, state: dict[str, Any], step: int, rate: float, decay: float) -> Array:
        return weight - rate * (gradient + decay * weight) / np.sqrt(accum)

    return rule


def ada_factor(
    eps: tuple[float, float] = (1e-30, 1e-3),
    clip: float = 1.0,
    power: float = 0.8,
    beta1: float = 0.9,
    is_scaled: bool = True,
    is_relative: bool = True,
    warmup: bool = False,
) -> Rule:
    """Differs from PyTorch's Adafactor, which has no first moment; the paper's algorithms 4 and 5."""

    def root_mean(array: Array) -> float:
        return float(np.sqrt((array**2).mean()))

    def rule(weight: Array, gradient: Array, state: dict[str, Any], step: int, rate: float, decay: float) -> Array:
        if is_relative:
            rate = min(1e-6 * step if warmup else 1e-2, 1 / np.sqrt(step))
        if is_scaled:
            rate = rate * max(eps[1], root_mean(weight))
        beta2 = 1 - step**-power
        square = gradient**2 + eps[0]
        if weight.ndim > 1:
            state["row"] = beta2 * state.get("row", 0.0) + (1 - beta2) * square.mean(-1)
            state["column"] = beta2 * state.get("column", 0.0) + (1 - beta2) * square.mean(-2)
            row = state["row"] / state["row"].mean(-1, keepdims=True)
            second = row[..., None] * state["column"][..., None, :]
        else:
            second = state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * square
        move = gradient / np.sqrt(second)
        move = rate * move / max(1.0, root_mean(move) / clip)
        if beta1:
            move = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * move
        return np.asarray(weight * (1 - decay * rate) - move)

    return rule
