"""Optimizer: groups of parameters with options that a script reads, and changes while it trains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np

from msdump.mindspore.common.declared import KINDS
from msdump.mindspore.common.parameter import Parameter, ParameterTuple, count_change
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, cast
from msdump.mindspore.iterations import add_optimizer, updating
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.ops import function as F
from msdump.mindspore.tracer import current_tracer


class _Group(dict[str, Any]):
    """Parameters and their options. A rate that is set goes to the memory that compiled graphs read; for another
    option they are compiled anew."""

    def __setitem__(self, name: str, value: Any) -> None:
        rate = self.get(name)
        if name == "lr" and isinstance(rate, Parameter) and value is not rate:
            rate.set_data(_rate_tensor(value))
            return
        count_change()
        super().__setitem__(name, value)


def _rate_tensor(rate: Any) -> Tensor:
    """Raises: TypeError, ValueError for what is no rate."""
    if isinstance(rate, bool) or not isinstance(rate, int | float | Tensor):
        raise TypeError(
            f"For 'Optimizer', the argument 'learning_rate' must be int, float or Tensor, but got {type(rate)}."
        )
    if isinstance(rate, Tensor):
        if rate.ndim:
            raise ValueError(
                "For 'Optimizer', if 'learning_rate' is a Tensor, then it should be scalar Tensor, "
                f"but got shape {rate.shape}."
            )
        return cast(rate, "float32")
    if rate < 0:
        raise ValueError(f"For 'Optimizer', the 'learning rate' must be >= 0, but got {rate}.")
    return Tensor(np.float32(rate))


class Optimizer(Cell):
    """Base of optimizers. Subclasses of scripts write `construct(gradients)`.

    param_groups     options by name, with the parameters under "params" and the rate, a Parameter, under "lr"
    parameters       those of all groups, in the order of the gradients that a call takes
    lrs              the rate of each group
    group_start_id   of each group the place of its first parameter, and in the end their number
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        if params is None or not isinstance(params, Iterable):
            raise (ValueError if params is None else TypeError)(
                f"For 'Optimizer', the argument params must be a list of Parameters or of dicts, but got {params!r}."
            )
        groups = list(params)
        if not groups:
            raise ValueError("For 'Optimizer', the argument params must not be empty.")
        self.defaults = defaults
        self.param_groups: list[_Group] = []
        self.lrs: list[Parameter] = []
        self.group_start_id = [0]
        self.parameters = ParameterTuple()
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)
        add_optimizer(self)

    parameters: ParameterTuple

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with updating(self):
            return super().__call__(*args, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train further parameters, with their own options.   Raises: TypeError; ValueError for a known parameter."""
        if not isinstance(param_group, dict):
            raise TypeError(f"Param group must be a dict, but got {type(param_group)}.")
        parameters = param_group["params"]
        if isinstance(parameters, set):
            raise TypeError("Optimizer parameters must have an order, but got a set. Please use a list instead.")
        parameters = [parameters] if isinstance(parameters, Parameter) else list(parameters)
        for each in parameters:
            if not isinstance(each, Parameter):
                raise TypeError(f"Optimizer can only optimize Parameters, but one of the params is {type(each)}.")
            if any(each is other for other in self.parameters):
                raise ValueError(f"Some parameters appear in more than one parameter group: {each.name}.")
        group = _Group({**self.defaults, **param_group, "params": parameters})
        name = f"learning_rate_group_{len(self.param_groups)}"
        rate = Parameter(_rate_tensor(group["lr"]), name, requires_grad=False)
        decay = group.setdefault("weight_decay", 0.0)
        if isinstance(decay, bool) or not isinstance(decay, int | float):
            raise TypeError(
                f"For 'Optimizer', the argument 'weight_decay' must be int or float, but got {type(decay)}."
            )
        if decay < 0:
            raise ValueError(f"For 'Optimizer', the 'weight_decay' must be >= 0, but got {decay}.")
        dict.update(group, lr=rate, weight_decay=float(decay))
        self.lrs.append(rate)
        self.param_groups.append(group)
        self.group_start_id.append(self.group_start_id[-1] + len(parameters))
        self.parameters = ParameterTuple((*self.parameters, *parameters))
        count_change()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            shown = {name: float(value) if name == "lr" else value for name, value in sorted(group.items())}
            lines += [f"    {name}: {value}" for name, value in shown.items() if name != "params"]
        return "\n".join(lines) + "\n)"

    def construct(self, *hyper_params: Any) -> Any:
        raise NotImplementedError(f"{self.cls_name}: expected a construct(gradients) method.")


class _Stepping(Declared, Optimizer):
    """Base of the optimizers here: they write `update`, for one parameter.

    states     what they keep beside each parameter: name -> what it holds at the start
    scalars    as states, one number each
    counter    name of the number of steps; "" for those that need none
    decays     whether weight decay is added to the gradient
    """

    states: ClassVar[dict[str, Any]] = {}
    scalars: ClassVar[dict[str, float]] = {}
    counter: ClassVar[str] = ""
    decays: ClassVar[bool] = True

    def _begin(self, settings: dict[str, Any]) -> None:
        defaults = dict(settings)
        settings.clear()
        Optimizer.__init__(self, defaults.pop("params"), defaults)
        if self.counter:
            self._steps = Parameter(Tensor(0, "int32"), self.counter, requires_grad=False)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        new = ParameterTuple(self.parameters[self.group_start_id[-2] :])
        for name, start in self.states.items():
            setattr(self, name, ParameterTuple((*getattr(self, name, ()), *new.clone(name, start))))
        for name, number in self.scalars.items():
            made = [Parameter(Tensor(np.float32(number)), f"{name}_{each.name}", requires_grad=False) for each in new]
            setattr(self, name, ParameterTuple((*getattr(self, name, ()), *made)))

    def construct(self, gradients: Sequence[Tensor]) -> bool:
        tracer = current_tracer()
        with nullcontext() if tracer is None else tracer.updating():
            if self.counter:
                call("AssignAdd", self._steps, Tensor(1, "int32"))
            for number, group in enumerate(self.param_groups):
                for index in range(*self.group_start_id[number : number + 2]):
                    gradient = F.neg(gradients[index]) if group.get("maximize") else gradients[index]
                    if self.decays and group["weight_decay"]:
                        weight = self.parameters[index]
                        gradient = F.addn([F.mul(weight, Tensor(group["weight_decay"], weight.dtype)), gradient])
                    self.update(index, gradient, self.lrs[number], group)
        return True

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        """Update parameter `index`."""
        raise NotImplementedError

    def step(self) -> Tensor:
        """The number of this step, from 1, as float32."""
        return F.cast(self._steps, "float32")


def _check_betas(where: str, name: str, betas: tuple[float, float]) -> None:
    for index, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"For '{where}', the '{name}[{index}]' must be in range [0.0, 1.0), but got {beta}.")


KINDS["betas"] = _check_betas

publish(__name__)
