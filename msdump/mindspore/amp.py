"""`mindspore.amp`: mixed precision, loss scalers for training loops of one's own, and the check for overflow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np

from msdump.mindspore.common.api import jit, jit_class  # noqa: F401
from msdump.mindspore.common.mutable import mutable  # noqa: F401
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.ops import function as F
from msdump.mindspore.train.amp import (  # noqa: F401
    auto_mixed_precision,
    build_train_network,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)
from msdump.mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager  # noqa: F401


def init_status() -> Tensor:
    """The status that older scripts hand to `all_finite`: eight zeros."""
    return Tensor(np.zeros((8,), np.float32))


def all_finite(inputs: Any, status: Any = None) -> Tensor:
    """Are all elements of all tensors finite? `inputs`: tensors, nested as gradients are. Result: bool, 0-d."""
    tensors: list[Tensor] = []
    _each(inputs, tensors.append)
    if not tensors:
        raise ValueError("all_finite: expected at least one tensor, got none.")
    return F.all(F.stack([F.all(F.isfinite(tensor)) for tensor in tensors]))


class LossScaler(ABC):
    """Interface of the scalers."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """Tensors times the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """Tensors divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Any) -> Any:
        """Decide on the next scale from whether the gradients were finite."""


class _Scaling(LossScaler):
    """Scaling by `scale_value`, in the dtype of each tensor."""

    def __init__(self, scale_value: float) -> None:
        if isinstance(scale_value, bool) or not isinstance(scale_value, int | float):
            raise TypeError(f"scale_value: expected an int or a float, got {type(scale_value).__name__}.")
        if scale_value < 1:
            raise ValueError(f"The argument 'scale_value' must be >= 1, but got {scale_value}.")
        self.scale_value = Parameter(Tensor(np.float32(scale_value)), name="scale_value")

    def scale(self, inputs: Any) -> Any:
        return _each(inputs, lambda tensor: F.mul(tensor, F.cast(self.scale_value, tensor.dtype)))

    def unscale(self, inputs: Any) -> Any:
        def divided(tensor: Tensor) -> Tensor:
            return F.mul(tensor, F.cast(F.reciprocal(self.scale_value), tensor.dtype))

        return _each(inputs, divided)


@final
class StaticLossScaler(_Scaling):
    """Scale that stays."""

    def adjust(self, grads_finite: Any) -> bool:
        """The scale stays: False."""
        return False


@final
class DynamicLossScaler(_Scaling):
    """Scale that falls on overflow, not below 1, and rises after `scale_window` good steps.

    scale_value, counter   parameters, so that a compiled training step changes them
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__(scale_value)
        for name, number in (("scale_factor", scale_factor), ("scale_window", scale_window)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"{name}: expected an int >= 1, got {number!r}.")
        self.scale_factor, self.scale_window = scale_factor, scale_window
        self.counter = Parameter(Tensor(np.int32(0)), name="counter")

    def adjust(self, grads_finite: Any) -> bool:
        """Operators on tensors decide, so that it can be part of a graph. True."""
        finite = grads_finite if isinstance(grads_finite, Tensor) else Tensor(bool(grads_finite))
        scale, counter = self.scale_value, self.counter
        larger = F.mul(scale, float(self.scale_factor))
        is_due = F.logical_and(F.equal(counter, self.scale_window - 1), F.isfinite(larger))
        smaller = F.maximum(F.div(scale, float(self.scale_factor)), Tensor(np.float32(1)))
        next_scale = F.select(finite, F.select(is_due, larger, scale), smaller)
        next_counter = F.mul(F.floor_mod(F.add(counter, 1), self.scale_window), F.cast(finite, "int32"))
        F.assign(counter, next_counter)
        F.assign(scale, next_scale)
        return True


def _each(inputs: Any, function: Callable[[Tensor], Any]) -> Any:
    if isinstance(inputs, tuple | list):
        return type(inputs)(_each(item, function) for item in inputs)
    return function(inputs)


publish_all(__name__, "ABC", "abstractmethod")

__getattr__ = explain_missing(__name__)
