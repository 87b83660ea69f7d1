"""`mindspore.boost`: adding up gradients. The rest of it changes how fast a training is, and is not here."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.control.hooks import if_expression
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.ops import composite, function

gradient_accumulation_op = composite.MultitypeFuncGraph("gradient_accumulation_op")
gradient_clear_op = composite.MultitypeFuncGraph("gradient_clear_op")


@gradient_accumulation_op.register("Int64", "Tensor", "Tensor")
def _accumulate(accumulation_step: int, cumulative_grad: Parameter, grad: Tensor) -> Parameter:
    """Add a gradient's share of the mean."""
    function.assign_add(cumulative_grad, grad / accumulation_step)
    return cumulative_grad


@gradient_clear_op.register("Tensor")
def _clear(cumulative_grad: Parameter) -> Tensor:
    return function.assign(cumulative_grad, function.zeros_like(cumulative_grad))


class GradientAccumulation(Cell):
    """Update the weights after the gradients of several steps, with their mean.

    max_accumulation_step   steps for one update
    optimizer               updates the weights
    """

    def __init__(self, max_accumulation_step: int, optimizer: Optimizer) -> None:
        super().__init__()
        self._max_accumulation_step = max_accumulation_step
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.hyper_map = composite.HyperMap()
        self._grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
        self._accumulation_step = Parameter(Tensor(np.zeros((), np.int32)), name="accumulation_step")

    def construct(self, loss: Tensor, grads: Any) -> Tensor:
        """The loss, after this step's part of the work."""
        for total, grad in zip(self._grad_accumulation, grads, strict=True):
            gradient_accumulation_op(self._max_accumulation_step, total, grad)
        self._accumulation_step += 1
        is_due = self._accumulation_step >= self._max_accumulation_step
        result: Tensor = if_expression(is_due, lambda: self._updated(loss), lambda: loss)
        return result

    def _updated(self, loss: Tensor) -> Tensor:
        loss = function.depend(loss, self.optimizer(self._grad_accumulation))
        for total in self._grad_accumulation:
            gradient_clear_op(total)
        function.assign(self._accumulation_step, 0)
        return loss


publish(__name__, "gradient_accumulation_op", "gradient_clear_op")

__getattr__ = explain_missing(__name__)
