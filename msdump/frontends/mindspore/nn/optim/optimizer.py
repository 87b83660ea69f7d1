"""Optimizer: what all optimizers share: parameters, learning rate, weight decay, gradient scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from msdump.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.nn.learning_rate_schedule import LearningRateSchedule
from msdump.frontends.mindspore.ops import function as F
from msdump.frontends.mindspore.tracer import current_tracer


class _Rate(Cell):
    """One learning rate: a number, a list with one number per step, or a schedule."""

    def __init__(self, rate: Any, name: str) -> None:
        super().__init__(auto_prefix=False)
        self.schedule = rate if isinstance(rate, LearningRateSchedule) else None
        self.rate = None if self.schedule is not None else Parameter(_rate_tensor(rate), name, requires_grad=False)
        self.is_dynamic = self.rate is None or self.rate.ndim == 1

    def construct(self, global_step: Tensor) -> Tensor:
        if self.schedule is not None:
            return F.reshape(self.schedule(global_step), ())
        assert self.rate is not None
        return F.reshape(call("Gather", self.rate, global_step, axis=0), ()) if self.is_dynamic else self.rate


def _rate_tensor(rate: Any) -> Tensor:
    """Raises: TypeError, ValueError for what is no learning rate."""
    if isinstance(rate, Iterator):
        rate = list(rate)
    if isinstance(rate, bool) or not isinstance(rate, int | float | Tensor | np.ndarray | np.generic | list | tuple):
        raise TypeError(
            "For 'Optimizer', the argument 'learning_rate' must be a number, list, Tensor or schedule, "
            f"got {type(rate)}."
        )
    array = rate.asnumpy() if isinstance(rate, Tensor) else np.asarray(rate)
    if array.ndim > 1 or array.size == 0:
        raise ValueError(
            "For 'Optimizer', if 'learning_rate' is Tensor type, then the dimension of it must be 0 or 1, "
            f"but got {array.ndim}."
        )
    if bool(np.any(array < 0)):
        raise ValueError(f"For 'Optimizer', the argument 'learning_rate' must be >= 0, but got {float(array.min())}.")
    return Tensor(array.astype(np.float32))


class Optimizer(Cell):
    """Base of optimizers. Subclasses write `update(index, gradient, rate)`.

    parameters   what is trained, in the order of the gradients that a call takes
    """

    parameters: ParameterTuple

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: float = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        if weight_decay < 0:
            raise ValueError(
                f"For '{self.cls_name}', the argument 'weight_decay' must be >= 0, but got {weight_decay}."
            )
        if loss_scale <= 0:
            raise ValueError(f"For '{self.cls_name}', the argument 'loss_scale' must be > 0, but got {loss_scale}.")
        params, settings = _grouped(parameters)
        self.parameters = ParameterTuple(params)
        self.loss_scale = float(loss_scale)
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), "global_step", requires_grad=False)
        self._rates, self._rate_of = self._make_rates(learning_rate, settings)
        self.is_dynamic_lr = any(rate.is_dynamic for rate in self._rates)
        self._decays = [
            float(own.get("weight_decay", weight_decay)) if _is_decayed(parameter) or "weight_decay" in own else 0.0
            for parameter, own in zip(params, settings, strict=True)
        ]

    def _make_rates(self, learning_rate: Any, settings: Sequence[dict[str, Any]]) -> tuple[list[_Rate], list[int]]:
        """The distinct learning rates, and for each parameter which of them is its own."""
        rates = [_Rate(learning_rate, "learning_rate")]
        index_of: dict[int, int] = {}
        rate_of: list[int] = []
        for own in settings:
            if "lr" not in own:
                rate_of.append(0)
                continue
            if id(own) not in index_of:
                index_of[id(own)] = len(rates)
                rates.append(_Rate(own["lr"], f"learning_rate_group_{len(rates) - 1}"))
            rate_of.append(index_of[id(own)])
        # Not as child cells: their operators belong to the optimizer's own scope.
        for rate in rates:
            for parameter in rate.get_parameters():
                self.insert_param_to_cell(parameter.name, parameter)
        return rates, rate_of

    def construct(self, gradients: Sequence[Tensor]) -> bool:
        tracer = current_tracer()
        with nullcontext() if tracer is None else tracer.updating():
            rates = self.get_lr()
            self.prepare()
            # Source: order of a real LeNet-5 run: the update nodes are made from the last parameter to the first.
            for index in reversed(range(len(self.parameters))):
                self.update(index, self._decayed(index, self._unscaled(gradients[index])), rates[self._rate_of[index]])
        return True

    def get_lr(self) -> list[Tensor]:
        """Learning rates of this step, and one step more on the counter when one of them depends on it."""
        rates = [rate.construct(self.global_step) for rate in self._rates]
        if self.is_dynamic_lr:
            call("AssignAdd", self.global_step, Tensor(np.ones(1, np.int32)))
        return rates

    def prepare(self) -> None:
        """What happens once per step, before the first update; subclasses may write it."""

    def update(self, index: int, gradient: Tensor, rate: Tensor) -> None:
        """Update parameter `index`; subclasses write it."""
        raise NotImplementedError(f"{self.cls_name}: expected an update(index, gradient, rate) method.")

    def _unscaled(self, gradient: Tensor) -> Tensor:
        return gradient if self.loss_scale == 1.0 else F.mul(gradient, 1.0 / self.loss_scale)

    def _decayed(self, index: int, gradient: Tensor) -> Tensor:
        """Source: weight decay in MindSpore's graphs: Mul and AddN."""
        if not self._decays[index]:
            return gradient
        return F.addn([F.mul(self.parameters[index], self._decays[index]), gradient])

    def __len__(self) -> int:
        return len(self.parameters)


def _is_decayed(parameter: Parameter) -> bool:
    """Source: default decay filter of MindSpore: no decay for normalisation parameters."""
    return "beta" not in parameter.name and "gamma" not in parameter.name


_GROUP_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


def _grouped(parameters: Any) -> tuple[list[Parameter], list[dict[str, Any]]]:
    """Parameters, and for each the settings of its group.

    Raises: TypeError, ValueError for an empty list, other objects, unknown keys, or a parameter in two groups.
    """
    if isinstance(parameters, Parameter) or not isinstance(parameters, Iterable):
        raise TypeError(
            f"For 'Optimizer', the argument 'parameters' must be Iterable type, but got {type(parameters)}."
        )
    items = list(parameters)
    if not items:
        raise ValueError("For 'Optimizer', the argument 'parameters' must not be empty. Does the net have parameters?")
    if all(isinstance(item, Parameter) for item in items):
        plain: dict[str, Any] = {}
        return items, [plain] * len(items)
    params: list[Parameter] = []
    settings: list[dict[str, Any]] = []
    order: list[Parameter] | None = None
    for group in items:
        if not isinstance(group, dict) or not set(group) <= set(_GROUP_KEYS):
            raise TypeError(
                f"For 'Optimizer', expected parameters or dicts with the keys {_GROUP_KEYS}, got {group!r}."
            )
        if "order_params" in group:
            order = list(group["order_params"])
            continue
        for parameter in group["params"]:
            if any(parameter is each for each in params):
                raise RuntimeError(
                    f"The {parameter.name} parameter already exists, it does not support repeated setting."
                )
            params.append(parameter)
            settings.append(group)
    if order is not None:
        of = {id(parameter): own for parameter, own in zip(params, settings, strict=True)}
        if {id(parameter) for parameter in order} != set(of):
            raise ValueError("order_params: expected exactly the parameters of all groups.")
        params, settings = order, [of[id(parameter)] for parameter in order]
    return params, settings


publish(__name__)
