"""Optimizer: what all optimizers share: parameters, learning rate, weight decay, gradient scale."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.context import get_context
from msdump.mindspore.dispatch import call, cast
from msdump.mindspore.iterations import add_optimizer, updating
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.nn.optim.groups import Rate, trained_parameters
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.composite import HyperMap, Map
from msdump.mindspore.ops.primitive import functional_classes
from msdump.mindspore.releases import STEP_COUNT
from msdump.mindspore.tracer import current_tracer

# Source: gradients are centralized where the second axis has a multiple of this many elements.
_CENTRALIZED_MULTIPLE = 16


class Optimizer(Cell):
    """Base of optimizers. Subclasses write `update(index, gradient, rate, decay)`, or a `construct` of their own out of
    `get_lr`, `get_weight_decay`, `decay_weight`, `gradients_centralization` and `scale_grad`.

    parameters       what is trained, in the order of the gradients that a call takes
    is_group         whether the script states groups of parameters
    is_group_lr      whether parameters have learning rates of their own
    dynamic_lr       whether a learning rate depends on the step
    dynamic_weight_decay  whether a weight decay does
    decay_flags      for each parameter, whether its weight decays
    """

    parameters: ParameterTuple

    # Whether updates run from the last parameter to the first.   Source: order of real runs of MindSpore.
    is_reversed = True

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        self._unique, self._target = True, str(get_context("device_target"))
        if isinstance(loss_scale, bool) or not isinstance(loss_scale, int | float):
            raise TypeError(
                f"For '{self.cls_name}', the type of 'loss_scale' must be float, but got {type(loss_scale)}."
            )
        if loss_scale <= 0:
            raise ValueError(f"For '{self.cls_name}', the argument 'loss_scale' must be > 0, but got {loss_scale}.")
        self.loss_scale = float(loss_scale)
        trained, self.is_group = trained_parameters(parameters, learning_rate, weight_decay)
        self.parameters = ParameterTuple(each.parameter for each in trained)
        add_optimizer(self)
        self._set_rates([each.rate for each in trained])
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), "global_step", requires_grad=False)
        self._set_decays([each.decay for each in trained], [each.is_decayed for each in trained])
        self.grad_centralization_flags = tuple(each.is_centralized for each in trained)
        self.reciprocal_scale = Tensor(np.float32(1.0 / self.loss_scale))
        self.need_scale = self.loss_scale != 1.0
        self.param_length = len(trained)
        self.optim_filter = (True,) * len(trained)
        self.unique, self.target, self.use_parallel = True, "CPU", False
        self.global_step_increase_tensor = Tensor(np.ones(1, np.int32))
        self.assignadd = functional_classes["AssignAdd"]()
        self.map_, self.map_reverse = Map(), Map(None, True)
        self.hyper_map, self.hyper_map_reverse = HyperMap(), HyperMap(None, True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with updating(self):
            return super().__call__(*args, **kwargs)

    @property
    def _parameters(self) -> ParameterTuple:
        """As MindSpore's own optimizers name what they update."""
        return self.parameters

    def _set_rates(self, rates: Sequence[Rate]) -> None:
        self._rate_of = tuple(rates)
        self.is_group_lr = any("_group_" in rate.rate.name for rate in rates if rate.rate is not None)
        self.is_group_lr |= len({id(rate) for rate in rates}) > 1
        self.dynamic_lr = any(rate.is_dynamic for rate in rates)
        # Rates are no child cells: their operators belong to the optimizer's own scope.
        for rate in rates:
            for parameter in rate.get_parameters():
                self.insert_param_to_cell(parameter.name, parameter)
        sources = tuple(rate.source for rate in rates)
        object.__setattr__(self, "learning_rate", sources if self.is_group_lr else sources[0])

    def _set_decays(self, decays: Sequence[float | Cell], flags: Sequence[bool]) -> None:
        self.decay_flags = tuple(flags)
        self.exec_weight_decay = any(flags)
        self.dynamic_weight_decay = any(isinstance(decay, Cell) for decay in decays)
        self._decays = tuple(decays)
        for number, decay in enumerate(dict.fromkeys(each for each in decays if isinstance(each, Cell))):
            self.insert_child_to_cell(f"weight_decay{number or ''}", decay)
        # Source: MindSpore decays gradients before it scales them back.
        tensors = tuple(
            decay if isinstance(decay, Cell) else Tensor(np.float32(decay * self.loss_scale)) for decay in decays
        )
        object.__setattr__(self, "weight_decay", tensors if self.is_group else tensors[0])

    # -- one step -----------------------------------------------------------------------------------

    def construct(self, gradients: Sequence[Tensor]) -> bool:
        if len(gradients) != len(self.parameters):
            raise GraphError(
                f"{self.cls_name}: expected a gradient for each of {len(self.parameters)} parameters, got "
                f"{len(gradients)}."
            )
        tracer = current_tracer()
        with nullcontext() if tracer is None else tracer.updating():
            decays = self._weight_decays()
            rates = self._step_rates()
            if STEP_COUNT.is_in_force:
                self._count()
            self.prepare()
            order = range(len(self.parameters))
            for index in reversed(order) if self.is_reversed else order:
                gradient = self._prepared(index, gradients[index], decays[index])
                self.update(index, gradient, rates[index], decays[index])
        return True

    def prepare(self) -> None:
        """What happens once per step, before the first update; subclasses may write it."""

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        """Update parameter `index`; subclasses write it. `decay` is for those that decay weights by themselves."""
        raise NotImplementedError(f"{self.cls_name}: expected an update(index, gradient, rate, decay) method.")

    def _prepared(self, index: int, gradient: Tensor, decay: Tensor) -> Tensor:
        """The gradient as `update` gets it."""
        gradient = self._decayed(index, gradient, decay)
        gradient = self._centralized(index, gradient)
        return self._unscaled(gradient)

    def _step_rates(self) -> Sequence[Tensor]:
        """Learning rates of this step, one per parameter."""
        rates = self.get_lr()
        return rates if isinstance(rates, tuple) else (rates,) * len(self.parameters)

    def _weight_decays(self) -> Sequence[Tensor]:
        decays = self.get_weight_decay()
        return decays if isinstance(decays, tuple) else (decays,) * len(self.parameters)

    def _decayed(self, index: int, gradient: Tensor, decay: Tensor) -> Tensor:
        """Source: weight decay in MindSpore's graphs: Mul and AddN."""
        if not self.decay_flags[index]:
            return gradient
        weight = self.parameters[index]
        return F.addn([F.mul(weight, cast(decay, weight.type_.dtype)), gradient])

    def _centralized(self, index: int, gradient: Tensor) -> Tensor:
        if not self.grad_centralization_flags[index] or gradient.ndim < 2:
            return gradient
        if gradient.shape[1] % _CENTRALIZED_MULTIPLE:
            return gradient
        return F.sub(gradient, F.mean(gradient, tuple(range(1, gradient.ndim)), True))

    def _unscaled(self, gradient: Tensor) -> Tensor:
        return F.mul(gradient, cast(self.reciprocal_scale, gradient.type_.dtype)) if self.need_scale else gradient

    # -- for the construct of subclasses ------------------------------------------------------------

    def get_lr(self) -> Any:
        """Learning rate of this step, for each parameter one when they differ; in MindSpore 2.0 it counts the step."""
        current: dict[int, Tensor] = {}
        for rate in self._rate_of:
            if id(rate) not in current:
                current[id(rate)] = rate.construct(self.global_step)
        if self._counts_in_get_lr:
            self._count()
        if self.is_group_lr:
            return tuple(current[id(rate)] for rate in self._rate_of)
        return current[id(self._rate_of[0])]

    @property
    def _counts_in_get_lr(self) -> bool:
        return not STEP_COUNT.is_in_force and (self.dynamic_lr or self.dynamic_weight_decay)

    @property
    def _counts_steps(self) -> bool:
        """Does each step count, without `prepare`?"""
        return STEP_COUNT.is_in_force or self._counts_in_get_lr

    def _count(self) -> None:
        call("AssignAdd", self.global_step, self.global_step_increase_tensor)

    def get_weight_decay(self) -> Any:
        """Weight decay of this step times the loss scale: a tensor, with groups one per parameter."""
        current: dict[int, Tensor] = {}
        decays = self.weight_decay if self.is_group else (self.weight_decay,)
        for decay in decays:
            if isinstance(decay, Cell) and id(decay) not in current:
                value = decay(self.global_step)
                current[id(decay)] = F.mul(value, self.loss_scale) if self.need_scale else value
        results = tuple(current.get(id(decay), decay) for decay in decays)
        return results if self.is_group else results[0]

    def get_lr_parameter(self, param: Any) -> Any:
        """The learning rate of a parameter, or of each of a list.   Raises: TypeError, ValueError."""
        if not isinstance(param, Parameter | list):
            raise TypeError(
                f"For 'get_lr_parameter', the 'param' must be 'Parameter' or 'list' type, but got {type(param)}."
            )
        rates = []
        for each in param if isinstance(param, list) else [param]:
            index = next((i for i, own in enumerate(self.parameters) if own is each), None)
            if index is None:
                raise ValueError(
                    f"For 'get_lr_parameter', the parameter {getattr(each, 'name', each)} is not in optimizer, "
                    "please check whether the argument 'param' is correct."
                )
            rates.append(self._rate_of[index].source)
        return rates if isinstance(param, list) else rates[0]

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients with weight decay."""
        if not self.exec_weight_decay:
            return tuple(gradients)
        decays = self._weight_decays()
        return tuple(self._decayed(index, each, decays[index]) for index, each in enumerate(gradients))

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients without their means, for the groups that want it."""
        return tuple(self._centralized(index, each) for index, each in enumerate(gradients))

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients divided by the loss scale."""
        return tuple(self._unscaled(each) for each in gradients)

    def flatten_gradients(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """The gradients: parameters lie one by one here."""
        return gradients

    def broadcast_params(self, optim_result: Any) -> Any:
        """Parameters of all devices: there is one."""
        return optim_result

    @property
    def unique(self) -> bool:
        """Whether gradients of sparse parameters may name a row twice; they are dense here."""
        return self._unique

    @unique.setter
    def unique(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"For 'Optimizer', the property 'unique' must be bool, but got {type(value)}")
        self._unique = value

    @property
    def target(self) -> str:
        """The device that updates parameters: "CPU", "Ascend" or "GPU"."""
        return self._target

    @target.setter
    def target(self, value: str) -> None:
        self._set_base_target(value)

    def _set_base_target(self, value: str) -> None:
        """Raises: TypeError; ValueError.   Source: MindSpore's checks; where the update runs changes no value here."""
        if not isinstance(value, str):
            raise TypeError(f"For 'Optimizer', the property 'target' must be string, but got {type(value)}")
        if value not in ("CPU", "Ascend", "GPU"):
            raise ValueError(
                f"For 'Optimizer', the property 'target' must be one of ['CPU', 'Ascend' ,'GPU'], but got {value}"
            )
        if self._target == "CPU" and value != "CPU":
            raise ValueError(
                "For 'Optimizer', the property 'target' cannot be set to 'GPU' or 'Ascend' in the 'CPU' environment."
            )
        self._target = value

    def __len__(self) -> int:
        return len(self.parameters)


class _DeclaredOptimizer(Declared, Optimizer):
    """Base of the optimizers here, whose settings are declared; Optimizer takes those that all have."""

    def _begin(self, settings: dict[str, Any]) -> None:
        rate, params, decay = (settings.pop(name) for name in ("learning_rate", "params", "weight_decay"))
        Optimizer.__init__(self, rate, params, decay, settings.pop("loss_scale", 1.0))

    def call(self, op_type: str, index: int, states: tuple[Any, ...], *operands: Any, **attrs: Any) -> None:
        """Run the operator that writes parameter `index` and its states."""
        call(op_type, self.parameters[index], *(state[index] for state in states), *operands, **attrs)


def opt_init_args_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorator of an optimizer's constructor: the optimizer remembers what it was made of.

    Source: MindSpore: `init_params` has the parameters, `init_learning_rate` the rate (None for a schedule), and
    `init_args` all other arguments by name.
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        fn(self, *args, **kwargs)
        arguments = dict(list(bound.arguments.items())[1:])
        if "params" in arguments:
            self.init_params = {"params": arguments.pop("params")}
        if "optimizer" in arguments:
            self.init_params = {"params": arguments.pop("optimizer").init_params["params"]}
        if "learning_rate" in arguments:
            rate = arguments.pop("learning_rate")
            values = rate.asnumpy().tolist() if isinstance(rate, Tensor) else rate
            self.init_learning_rate = None if isinstance(rate, Cell) else values
        self.init_args = arguments

    return init


def thor(*args: Any, **kwargs: Any) -> Any:
    """Raises: NotImplementedError: its second-order statistics need operators of Ascend."""
    raise NotImplementedError(
        "nn.thor: expected an optimizer that MindSpore runs on a CPU, got thor, which needs an Ascend device. "
        "Use nn.Momentum or nn.Lamb."
    )


publish(__name__)
