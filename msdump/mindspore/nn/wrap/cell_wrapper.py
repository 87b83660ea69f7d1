"""Cells around a network: with loss, for training, for evaluation."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.parameter import ParameterTuple
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.context import ParallelMode, get_auto_parallel_context
from msdump.mindspore.differentiate import differentiate
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.nn.wrap.grad_reducer import DistributedGradReducer
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.composite import GradOperation


class WithLossCell(Cell):
    """Network and loss: (data, label) -> loss."""

    def __init__(self, backbone: Cell, loss_fn: Cell | Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn

    @property
    def backbone_network(self) -> Cell:
        return self._backbone

    def construct(self, data: Tensor, label: Tensor) -> Any:
        out = self._backbone(data)
        return self._loss_fn(out, label)


class WithEvalCell(Cell):
    """Network and loss for evaluation: (data, label) -> (loss, outputs, label)."""

    def __init__(self, network: Cell, loss_fn: Cell | Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Tensor, label: Tensor) -> tuple[Any, Any, Any]:
        outputs = self._network(data)
        if self.add_cast_fp32:
            outputs = F.cast(outputs, "float32")
        loss = self._loss_fn(outputs, label)
        return loss, outputs, label


class TrainOneStepCell(Cell):
    """One training step: loss of the network on the inputs, gradients, update of the weights.

    Subclasses may write `construct` with what is set here:
    grad          `self.grad(self.network, self.weights)(*inputs, sens)` gives the gradients of the weights
    grad_reducer  adds gradients up over devices: with one device it hands them on
    sens          gradient of the loss
    """

    def __init__(self, network: Cell, optimizer: Optimizer, sens: float | Tensor | None = 1.0) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        object.__setattr__(self, "weights", optimizer.parameters)
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = GradOperation(get_by_list=True)
        self.sens = 1.0 if sens is None else sens
        self.parallel_mode = get_auto_parallel_context("parallel_mode")
        self.reducer_flag = self.parallel_mode in (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
        self.grad_reducer: Any = DistributedGradReducer(self.weights) if self.reducer_flag else _as_they_are

    weights: ParameterTuple

    @property
    def takes_gradients(self) -> bool:
        """Does `construct` of a subclass take gradients of what it has run already?"""
        return type(self).construct is not TrainOneStepCell.construct

    def construct(self, *inputs: Any) -> Any:
        result = differentiate(self.network, inputs, (), self.weights, self.sens)
        self.optimizer(self.grad_reducer(result.weight_gradients))
        return result.outputs


def _as_they_are(gradients: Any) -> Any:
    return gradients


publish(__name__)

__getattr__ = explain_missing(__name__)
