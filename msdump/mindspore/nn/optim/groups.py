"""Groups of parameters that are trained alike: how scripts state them, and what each parameter is trained with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.learning_rate_schedule import LearningRateSchedule
from msdump.mindspore.ops import function as F


class Rate(Cell):
    """One learning rate: a number, a list with one number per step, or a schedule."""

    def __init__(self, rate: Any, name: str) -> None:
        super().__init__(auto_prefix=False)
        self.schedule = rate if isinstance(rate, LearningRateSchedule) else None
        self.rate = None if self.schedule is not None else Parameter(_rate_tensor(rate), name, requires_grad=False)
        self.is_dynamic = self.rate is None or self.rate.ndim == 1

    @property
    def source(self) -> Any:
        """What scripts see: the parameter, or the schedule."""
        return self.schedule if self.rate is None else self.rate

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


@dataclass(frozen=True)
class Trained:
    """One parameter and what its group says. `decay` is a number, or a Cell of the step.

    is_decayed      whether weight decay applies to it at all
    is_centralized  whether the mean is taken from its gradient
    """

    parameter: Parameter
    rate: Rate
    decay: float | Cell
    is_decayed: bool
    is_centralized: bool


_GROUP_KEYS = ("params", "lr", "weight_decay", "order_params", "grad_centralization")


def trained_parameters(parameters: Any, learning_rate: Any, weight_decay: Any) -> tuple[list[Trained], bool]:
    """What is trained, in the order of the gradients, and whether the script states groups.

    Edges:  a plain list decays no normalisation parameters (names with "beta" or "gamma"), groups decay all.
    Raises: TypeError, ValueError, KeyError, RuntimeError for what is no list of parameters or of groups.
    Source: MindSpore, names of the rates: `learning_rate_group_{number of the group}`.
    """
    items = _checked(parameters, "parameters")
    default = Rate(learning_rate, "learning_rate")
    decay = checked_decay(weight_decay)
    if all(isinstance(item, Parameter) for item in items):
        applies = isinstance(decay, Cell) or decay > 0
        return [Trained(item, default, decay, applies and not _is_normalization(item), False) for item in items], False
    if not all(isinstance(item, dict) for item in items):
        raise TypeError(
            "For 'Optimizer', all elements of the argument 'parameters' must be 'Parameter' or 'dict', "
            "please check the 'parameters'."
        )
    trained: list[Trained] = []
    order: list[Parameter] | None = None
    for number, group in enumerate(items):
        _check_group(group)
        if "order_params" in group:
            order = list(group["order_params"])
            continue
        rate = Rate(group["lr"], f"learning_rate_group_{number}") if "lr" in group else default
        own = checked_decay(group.get("weight_decay", weight_decay))
        is_centralized = bool(group.get("grad_centralization", False))
        for parameter in _checked(group["params"], "group `params`"):
            if any(parameter is each.parameter for each in trained):
                raise RuntimeError(
                    f"For 'Optimizer', the {parameter.name} parameter already exists, it does not support repeated "
                    "setting."
                )
            trained.append(Trained(parameter, rate, own, isinstance(own, Cell) or own > 0, is_centralized))
    return (trained if order is None else _ordered(trained, order)), True


def checked_decay(decay: Any) -> float | Cell:
    """Weight decay.   Raises: TypeError for what is neither a number nor a Cell, ValueError for a negative number."""
    if isinstance(decay, Cell):
        return decay
    if isinstance(decay, bool) or not isinstance(decay, int | float):
        raise TypeError(
            f"For 'Optimizer', the argument 'weight_decay' must be int, float or Cell, but got {type(decay)}."
        )
    if decay < 0:
        raise ValueError(f"For 'Optimizer', the argument 'weight_decay' must be >= 0, but got {decay}.")
    return float(decay)


def _checked(parameters: Any, what: str) -> list[Any]:
    if parameters is None:
        raise ValueError(f"For 'Optimizer', the argument {what} can not be None.")
    if isinstance(parameters, Parameter) or not isinstance(parameters, Iterable):
        raise TypeError(f"For 'Optimizer', the argument {what} must be Iterable type, but got {type(parameters)}.")
    items = list(parameters)
    if not items:
        raise ValueError(f"For 'Optimizer', the argument {what} must not be empty. Does the net have parameters?")
    return items


def _check_group(group: dict[str, Any]) -> None:
    unknown = [key for key in group if key not in _GROUP_KEYS]
    if unknown or not {"params", "order_params"} & set(group):
        raise KeyError(f"For 'Optimizer', the key in group params must be one of in {_GROUP_KEYS}, but got {group!r}.")
    if "order_params" in group and len(group) > 1:
        raise ValueError(
            "For 'Optimizer', the order params dict in group parameters should only include the 'order_params' key, "
            f"but got {list(group)}."
        )
    for index, parameter in enumerate(group.get("params", ()) if "params" in group else ()):
        if not isinstance(parameter, Parameter):
            raise TypeError(
                f"For 'Optimizer', the element in group parameters must be Parameter type, "
                f"but got {type(parameter)} at index {index}."
            )


def _is_normalization(parameter: Parameter) -> bool:
    """Source: default decay filter of MindSpore."""
    return "beta" in parameter.name or "gamma" in parameter.name


def _ordered(trained: list[Trained], order: list[Parameter]) -> list[Trained]:
    by_id = {id(each.parameter): each for each in trained}
    if len(order) != len(trained) or {id(parameter) for parameter in order} != set(by_id):
        raise ValueError("order_params: expected exactly the parameters of all groups.")
    return [by_id[id(parameter)] for parameter in order]
