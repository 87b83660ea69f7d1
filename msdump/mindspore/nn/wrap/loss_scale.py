"""Training with a scaled loss: steps whose gradients overflow change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.differentiate import differentiate
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell
from msdump.mindspore.ops import function as F


class FixedLossScaleUpdateCell(Cell):
    """A loss scale that stays."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = float(loss_scale_value)

    def get_loss_scale(self) -> float:
        return self.loss_scale_value

    def update(self, loss_scale: float, is_overflow: bool) -> float:
        return loss_scale

    def construct(self, loss_scale: Tensor, overflow: Any) -> Any:
        """For training steps of one's own: the flag as it is."""
        return overflow


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
        self.cur_iter = Parameter(Tensor(np.int32(1)), "current_iterator_step", requires_grad=False)
        self.last_overflow_iter = Parameter(Tensor(np.int32(0)), "last_overflow_iterator_step", requires_grad=False)

    def construct(self, loss_scale: Parameter, overflow: Any) -> Any:
        """For training steps of one's own: the rule of `update` in operators. Writes `loss_scale`; gives the flag.

        Source: MindSpore counts from the last step that overflowed or raised the scale.
        """
        flag = overflow if isinstance(overflow, Tensor) else Tensor(bool(overflow))
        is_due = F.greater_equal(F.sub(self.cur_iter, self.last_overflow_iter), self.scale_window)
        smaller = F.maximum(F.div(loss_scale, float(self.scale_factor)), Tensor(np.float32(1)))
        larger = F.mul(loss_scale, float(self.scale_factor))
        next_scale = F.select(flag, smaller, F.select(is_due, larger, F.mul(loss_scale, 1.0)))
        last = F.select(F.logical_or(flag, is_due), F.add(self.cur_iter, 0), F.add(self.last_overflow_iter, 0))
        F.assign(self.last_overflow_iter, last)
        F.assign(loss_scale, F.reshape(next_scale, loss_scale.shape))
        F.assign(self.cur_iter, F.add(self.cur_iter, 1))
        return overflow

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

    The decision to update needs the gradients' values, so a step is two graphs: gradients, then the update. Subclasses
    may write `construct` with `start_overflow_check`, `get_overflow_status` and `process_loss_scale`.
    Raises: TypeError, ValueError for a scale that is neither a cell nor a tensor of shape () or (1,).
    """

    def __init__(self, network: Cell, optimizer: Optimizer, scale_sense: Any) -> None:
        super().__init__(network, optimizer)
        is_cell = isinstance(scale_sense, Cell)
        if isinstance(scale_sense, Tensor) and scale_sense.shape not in ((), (1,)):
            raise ValueError(
                "For 'TrainOneStepWithLossScaleCell', the shape of 'scale_sense' must be (1,) or (), but got "
                f"{scale_sense.shape}."
            )
        if not isinstance(scale_sense, Cell | Tensor):
            raise TypeError(
                "For 'TrainOneStepWithLossScaleCell', the 'scale_sense' must be Cell or Tensor, but got 'scale_sense' "
                f"type: {type(scale_sense)}."
            )
        manager: Any = scale_sense if is_cell else None
        self.loss_scaling_manager = manager
        # Source: MindSpore keeps the shape of a tensor, () or (1,); a cell's number becomes a scalar.
        first = manager.get_loss_scale() if is_cell else scale_sense
        array = np.array(first.asnumpy() if isinstance(first, Tensor) else first, np.float32)
        self.scale_sense = Parameter(Tensor(array), "scale_sense", requires_grad=False)
        self.gradients = _ScaledGradients(network, optimizer.parameters, self.grad_reducer)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.takes_gradients or type(self).construct is not TrainOneStepCell.construct:
            return super().__call__(*inputs, **kwargs)
        scale = self.scale_sense.copy()
        loss, gradients, is_finite = self.gradients(scale, *inputs)
        overflow = not bool(is_finite)
        if not overflow:
            self.optimizer(gradients)
        manager = self.loss_scaling_manager
        if isinstance(manager, FixedLossScaleUpdateCell | DynamicLossScaleUpdateCell):
            self.scale_sense.set_data(Tensor(np.float32(manager.update(float(scale), overflow))))
        elif manager is not None:
            manager(self.scale_sense, Tensor(overflow))
        return loss, Tensor(overflow), scale

    def set_sense_scale(self, sens: Tensor) -> None:
        """Another scale, of the shape of the first.   Raises: TypeError for anything but a tensor."""
        if not isinstance(sens, Tensor):
            raise TypeError(
                f"For 'TrainOneStepWithLossScaleCell', the type of 'sens' must be Tensor, but got {type(sens)}."
            )
        self.scale_sense.set_data(sens)

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Tensor, Any]:
        """A status for `get_overflow_status`, and `compute_input` as it is: the check looks at the gradients."""
        return Tensor(np.zeros(8, np.int32)), compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Is an element of a tensor, or of tensors nested as gradients are, infinite or NaN?"""
        finite = [F.all(F.isfinite(tensor)) for tensor in _each_tensor(compute_output)]
        return F.logical_not(F.all(F.stack(finite)))

    def process_loss_scale(self, overflow: Any) -> Any:
        """Let the manager decide on the next scale; the flag as it is."""
        return overflow if self.loss_scaling_manager is None else self.loss_scaling_manager(self.scale_sense, overflow)


def _each_tensor(thing: Any) -> list[Tensor]:
    if isinstance(thing, tuple | list):
        return [tensor for item in thing for tensor in _each_tensor(item)]
    return [thing]


publish(__name__)
