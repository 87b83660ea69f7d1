"""A layer or loss against a function of PyTorch: values and gradients of all operands, in both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.mindspore import Tensor, ops
from msdump.mindspore.common.dtype import float_type

RNG = np.random.default_rng(13)


def numbers(*shape: int, low: float | None = None) -> Any:
    """Normal float32 numbers, or uniform ones in [low, 1)."""
    drawn = RNG.standard_normal(shape) if low is None else RNG.uniform(low, 1.0, shape)
    return drawn.astype(np.float32)


def check(
    layer: Any,
    reference: Callable[..., Any],
    data: Sequence[Any],
    rtol: float = 1e-5,
    atol: float = 2e-6,
    has_gradient: bool = True,
) -> None:
    """`reference` takes tensors of PyTorch, then the layer's parameters by name as keyword arguments.

    Raises: AssertionError where results, or gradients of float operands and of parameters, differ.
    """
    import torch

    named = {each.name.rpartition(".")[2]: each for each in layer.trainable_params()} if hasattr(layer, "cells") else {}
    weights = {name: torch.tensor(each.asnumpy(), requires_grad=True) for name, each in named.items()}
    operands = [torch.tensor(each, requires_grad=each.dtype.kind == "f") for each in data]
    expected = reference(*operands, **weights)
    tensors = [Tensor(each) for each in data]
    positions = [slot for slot, each in enumerate(tensors) if each.dtype in float_type]
    factor = numbers(*expected.shape)

    def scaled(*args: Any) -> Any:
        result = layer(*args)
        return (result * Tensor(factor)).sum(), result

    if not has_gradient:
        np.testing.assert_allclose(layer(*tensors).asnumpy(), expected.detach().numpy(), rtol=rtol, atol=atol)
        return
    (expected * torch.tensor(factor)).sum().backward()
    parameters = list(named.values())
    both = ops.value_and_grad(scaled, tuple(positions), parameters or None, has_aux=True)
    (_, result), gradients = both(*tensors)
    of_inputs, of_weights = gradients if parameters else (gradients, ())
    of_inputs = of_inputs if isinstance(of_inputs, tuple) else (of_inputs,)
    np.testing.assert_allclose(result.asnumpy(), expected.detach().numpy(), rtol=rtol, atol=atol)
    wanted = [operands[slot].grad for slot in positions] + [weight.grad for weight in weights.values()]
    for found, gradient in zip((*of_inputs, *of_weights), wanted, strict=True):
        target = np.zeros(found.shape) if gradient is None else gradient.numpy()
        np.testing.assert_allclose(found.asnumpy(), target, rtol=rtol * 10, atol=atol * 10)
