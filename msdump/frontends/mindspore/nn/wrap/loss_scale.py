"""Training with a scaled loss: steps whose gradients overflow change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.differentiate import differentiate
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.nn.optim.optimizer import Optimizer
from msdump.frontends.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell
from msdump.frontends.mindspore.ops import function as F


class FixedLossScaleUpdateCell(Cell):
    """A loss scale that stays."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = float(loss_scale_value)

    def get_loss_scale(self) -> float:
        return self.loss_scale_value

    def update(self, loss_scale: float, is_overflow: bool) -> float:
        return loss_scale


class DynamicLossScaleUpdateCell(Cell):
    """A loss scale that falls by `scale_factor` on overflow and rises after `scale_window` good steps."""

    def __init__(self, loss_scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__()
        self.loss_scale_value, self.scale_factor, self.scale_window = (
            float(loss_scale_value),
            scale_factor,
            scale_window,
        )
        self.good_steps = 0

    def get_loss_scale(self) -> float:
        return self.loss_scale_value

    def update(self, loss_scale: float, is_overflow: bool) -> float:
        """The scale of the next step.   Edges: never below 1."""
        if is_overflow:
            self.good_steps = 0
            return max(1.0, loss_scale / self.scale_factor)
        self.good_steps += 1
        if self.good_steps < self.scale_window:
            return loss_scale
        self.good_steps = 0
        return loss_scale * self.scale_factor


class _ScaledGradients(Cell):
    """(loss, gradients) of `loss * scale`, the gradients scaled back; and whether all of them are finite."""

    def __init__(self, network: Cell, weights: Any, reducer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.grad_reducer = reducer
        object.__setattr__(self, "weights", weights)

    weights: Any

    def construct(self, scale: Tensor, *inputs: Any) -> tuple[Any, tuple[Tensor, ...], Tensor]:
        result = differentiate(self.network, inputs, (), self.weights, F.reshape(scale, ()))
        gradients = tuple(F.mul(gradient, F.reciprocal(scale)) for gradient in result.weight_gradients)
        # Over all devices, so that each comes to the same decision.
        gradients = self.grad_reducer(gradients)
        finite = [F.all(F.isfinite(gradient)) for gradient in gradients]
        return result.outputs, gradients, F.all(F.stack(finite))


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One training step with a scaled loss -> (loss, overflow, scale).

    The decision to update needs the gradients' values, so a step is two graphs: gradients, then the update.
    """

    def __init__(self, network: Cell, optimizer: Optimizer, scale_sense: Any) -> None:
        super().__init__(network, optimizer)
        is_cell = isinstance(scale_sense, FixedLossScaleUpdateCell | DynamicLossScaleUpdateCell)
        self.loss_scaling_manager = scale_sense if is_cell else None
        # Source: MindSpore keeps the shape of a tensor, () or (1,); a cell's number becomes a scalar.
        first = scale_sense.get_loss_scale() if is_cell else scale_sense
        array = np.array(first.asnumpy() if isinstance(first, Tensor) else first, np.float32)
        self.scale_sense = Parameter(Tensor(array), "scale_sense", requires_grad=False)
        self.gradients = _ScaledGradients(network, optimizer.parameters, self.grad_reducer)

    def __call__(self, *inputs: Any, **kwargs: Any) -> tuple[Any, Tensor, Tensor]:
        scale = self.scale_sense.copy()
        loss, gradients, is_finite = self.gradients(scale, *inputs)
        overflow = not bool(is_finite)
        if not overflow:
            self.optimizer(gradients)
        if self.loss_scaling_manager is not None:
            self.scale_sense.set_data(Tensor(np.float32(self.loss_scaling_manager.update(float(scale), overflow))))
        return loss, Tensor(overflow), scale


publish(__name__)
