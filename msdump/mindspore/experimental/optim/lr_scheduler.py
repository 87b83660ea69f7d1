"""`mindspore.experimental.optim.lr_scheduler`: schedules of the learning rates of an optimizer's groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.declared import KINDS, Declared
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.experimental.optim.optimizer import Optimizer
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.sources import user_line
from msdump.mindspore.tracer import current_tracer


def _set(parameter: Parameter, value: float) -> None:
    parameter.set_data(Tensor(np.array(value, np.float32)))


def _held(parameter: Parameter) -> Tensor:
    """What it holds now, as a tensor that stays so."""
    return Tensor(parameter.asnumpy().copy())


def _number(name: str, value: float) -> Parameter:
    return Parameter(Tensor(np.float32(value)), name, requires_grad=False)


class LRScheduler:
    """Base of schedules. Subclasses write `get_lr()`: the rate of each group in epoch `last_epoch`.

    base_lrs     rates at the start
    last_epoch   number of the epoch, a Parameter
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self._last_lr = list(optimizer.lrs)
        KINDS["epochs"](type(self).__name__, "last_epoch", last_epoch)
        if last_epoch < -1:
            raise ValueError(f"Invalid last_epoch: {last_epoch}")
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch != -1 and "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming an optimizer"
                )
            group.setdefault("initial_lr", group["lr"].value())
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.groups_num = len(self.base_lrs)
        self.last_epoch = _number(f"last_epoch_{type(self).__name__}", last_epoch)
        self.step()

    def get_last_lr(self) -> list[Tensor]:
        """The rate of each group."""
        return [_held(rate) for rate in self._last_lr]

    def get_lr(self) -> Sequence[Any]:
        raise NotImplementedError(f"{type(self).__name__}: expected a get_lr() method.")

    def step(self, epoch: Any = None) -> bool:
        """Go to the next epoch, or to this one."""
        tracer = current_tracer()
        if tracer is not None and not tracer.is_recording:
            raise RuntimeError(
                f"{user_line()}: expected {type(self).__name__}.step() between the steps of a training, got it in a "
                "function that is compiled. Call it after that function."
            )
        _set(self.last_epoch, int(self.last_epoch) + 1 if epoch is None else float(epoch))
        closed = getattr(self, "_get_closed_form_lr", None)
        rates = self.get_lr() if epoch is None or closed is None else closed()
        for memory, rate in zip(self._last_lr, rates, strict=True):
            _set(memory, float(rate))
        return True


class StepLR(Declared, LRScheduler, takes="optimizer step_size:epochs gamma:factor=0.1 last_epoch=-1"):
    """Times gamma every step_size epochs.

    In training it multiplies the last rate, so that schedules can be chained.
    """

    last_epoch: Parameter

    def _set_up(self, optimizer: Optimizer, last_epoch: int) -> None:
        LRScheduler.__init__(self, optimizer, last_epoch)

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (int(self.last_epoch) // self.step_size) for base in self.base_lrs]

    def get_lr(self) -> list[float]:
        epoch, rates = int(self.last_epoch), [float(rate) for rate in self._last_lr]
        return [rate * self.gamma for rate in rates] if epoch and epoch % self.step_size == 0 else rates


class LambdaLR(LRScheduler):
    """The rate at the start times a function of the epoch, one for all groups or one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factors = [float(function(_held(self.last_epoch))) for function in self.lr_lambdas]
        return [base * factor for base, factor in zip(self.base_lrs, factors, strict=True)]


publish(__name__)

__getattr__ = explain_missing(__name__)
