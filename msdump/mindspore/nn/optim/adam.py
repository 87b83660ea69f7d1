"""Adam and its relatives: adaptive moments of the gradient, sums and means of its squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import publish
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.ops import function as F


def _check_betas(cls_name: str, beta1: float, beta2: float, eps: float) -> None:
    for name, number in (("beta1", beta1), ("beta2", beta2), ("eps", eps)):
        if isinstance(number, bool) or not isinstance(number, float):
            raise TypeError(f"For '{cls_name}', the type of '{name}' must be float, but got {type(number).__name__}.")
    for name, number in (("beta1", beta1), ("beta2", beta2)):
        if not 0 < number < 1:
            raise ValueError(f"For '{cls_name}', the '{name}' must be in range (0.0, 1.0), but got {number}.")
    if eps <= 0:
        raise ValueError(f"For '{cls_name}', the 'eps' must be > 0, but got {eps}.")


class _Adaptive(Optimizer):
    """What optimizers with two moments and powers of their betas share.   power_shape: of those powers."""

    power_shape: tuple[int, ...] = (1,)
    has_second_power = True

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        betas: tuple[float, float],
        eps: float,
        weight_decay: Any,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check_betas(self.cls_name, *betas, eps)
        self.beta1, self.beta2, self.eps = (Tensor(float(number)) for number in (*betas, eps))
        self.beta1_power = self._power("beta1_power")
        if self.has_second_power:
            self.beta2_power = self._power("beta2_power")
        self.moment1 = self.parameters.clone("moment1", "zeros")
        self.moment2 = self.parameters.clone("moment2", "zeros")

    def _power(self, name: str) -> Parameter:
        return Parameter(Tensor(np.ones(self.power_shape, np.float32)), name, requires_grad=False)

    def prepare(self) -> None:
        """Powers of the betas: a Mul and an Assign for each of them in a step, as in MindSpore's graphs."""
        pairs = [(self.beta1_power, self.beta1)]
        if self.has_second_power:
            pairs.append((self.beta2_power, self.beta2))
        powers = [F.mul(power, beta) for power, beta in pairs]
        for (power, _), value in zip(pairs, powers, strict=True):
            F.assign(power, value)
        object.__setattr__(self, "_powers", powers)

    _powers: list[Tensor]

    def _numbers(self, rate: Tensor) -> tuple[Tensor, ...]:
        """Operands between the moments and the gradient."""
        return (*self._powers, rate, self.beta1, self.beta2, self.eps)


class Adam(_Adaptive):
    """Adaptive moments. `use_amsgrad`: the second moment never falls; `use_offload`: as AdamOffload."""

    power_shape = ()
    is_reversed = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
        **kwargs: Any,
    ) -> None:
        if set(kwargs) - {"use_lazy", "use_offload"}:
            raise KeyError(
                "For 'Adam', invalid keys are passed as kwargs, supported keys are 'use_lazy' and 'use_offload', "
                f"but got {list(kwargs)}."
            )
        super().__init__(params, learning_rate, (beta1, beta2), eps, weight_decay, loss_scale)
        self.use_lazy, self.use_offload = bool(kwargs.get("use_lazy")), bool(kwargs.get("use_offload"))
        if self.use_lazy + self.use_offload + use_amsgrad > 1:
            raise ValueError(
                "For 'Adam', at most one of 'use_lazy', 'use_offload' and 'use_amsgrad' can be True, "
                f"but got {self.use_lazy}, {self.use_offload}, {use_amsgrad}."
            )
        self.use_locking, self.use_nesterov, self.use_amsgrad = use_locking, use_nesterov, use_amsgrad
        if use_amsgrad:
            self.vhat = self.parameters.clone("vhat", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        attrs = {"use_locking": self.use_locking}
        states = [self.parameters[index], self.moment1[index], self.moment2[index]]
        if self.use_amsgrad:
            call("ApplyAdamWithAmsgradV2", *states, self.vhat[index], *self._numbers(rate), gradient, **attrs)
            return
        attrs["use_nesterov"] = self.use_nesterov
        if self.use_offload:
            _add_step(states, self._numbers(rate), gradient, attrs)
        else:
            call("Adam", *states, *self._numbers(rate), gradient, **attrs)


def _add_step(states: list[Any], numbers: tuple[Tensor, ...], gradient: Tensor, attrs: dict[str, Any]) -> None:
    step = call("AdamNoUpdateParam", *states[1:], *numbers, gradient, **attrs)
    F.assign_add(states[0], step)


class LazyAdam(_Adaptive):
    """Adam; gradients of embeddings are dense here, so that all rows are updated."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(params, learning_rate, (beta1, beta2), eps, weight_decay, loss_scale)
        self.use_locking, self.use_nesterov = use_locking, use_nesterov

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        states = [self.parameters[index], self.moment1[index], self.moment2[index]]
        attrs = {"use_locking": self.use_locking, "use_nesterov": self.use_nesterov}
        call("Adam", *states, *self._numbers(rate), gradient, **attrs)


class _Decoupled(Optimizer):
    """Base of optimizers that decay the weight by themselves, beside the step of the gradient."""

    is_reversed = False

    def __init__(
        self, params: Any, learning_rate: Any, numbers: tuple[float, float, float], weight_decay: Any, prefix: str
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        _check_betas(self.cls_name, *numbers)
        self.beta1, self.beta2, self.eps = (Tensor(np.array([number], np.float32)) for number in numbers)
        self.moments1 = self.parameters.clone(f"{prefix}_m", "zeros")
        self.moments2 = self.parameters.clone(f"{prefix}_v", "zeros")

    def _prepared(self, index: int, gradient: Tensor, decay: Tensor) -> Tensor:
        return self._centralized(index, gradient)

    def _operands(self, index: int, rate: Tensor, decay: Tensor) -> tuple[Any, ...]:
        """What both operators read before the gradient."""
        own_decay = decay if self.decay_flags[index] else Tensor(np.float32(0))
        states = (self.parameters[index], self.moments1[index], self.moments2[index])
        return *states, rate, self.beta1, self.beta2, self.eps, own_decay


class AdamWeightDecay(_Decoupled):
    """Adam without bias correction; weight decay is part of the operator."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(params, learning_rate, (beta1, beta2, eps), weight_decay, "adam")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        call("AdamWeightDecay", *self._operands(index, rate, decay), gradient, use_locking=False)


class Lamb(_Decoupled):
    """Adam with weight decay, whose step is as long as the weight."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(params, learning_rate, (beta1, beta2, eps), weight_decay, "lamb")

    def prepare(self) -> None:
        """The counter runs in each step: the operator reads it."""
        if not self._counts_steps:
            self._count()

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        call("Lamb", *self._operands(index, rate, decay), self.global_step, gradient)


def _check_numbers(cls_name: str, **numbers: float) -> None:
    """Raises: TypeError for what is no float, ValueError for negative ones."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, float):
            raise TypeError(f"For '{cls_name}', the type of '{name}' must be float, but got {type(number).__name__}.")
        if number < 0:
            raise ValueError(f"For '{cls_name}', the '{name}' must be >= 0, but got {number}.")


def _scalar(number: float) -> Tensor:
    return Tensor(np.float32(number))


class Adagrad(Optimizer):
    """Gradients over the root of the sum of their squares. `update_slots` False leaves that sum as it is."""

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 1e-3,
        update_slots: bool = True,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check_numbers("Adagrad", accum=accum)
        if not isinstance(update_slots, bool):
            raise TypeError(f"For 'Adagrad', the type of 'update_slots' must be bool, but got {type(update_slots)}.")
        self.accum = self.parameters.clone("accum", accum)
        self.update_slots = update_slots

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        states = self.parameters[index], self.accum[index]
        call("ApplyAdagrad", *states, rate, gradient, update_slots=self.update_slots)


class Adadelta(Optimizer):
    """Gradients over the root of the mean of their squares, times the root of the mean of squared steps."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check_numbers("Adadelta", rho=rho, epsilon=epsilon)
        if rho > 1:
            raise ValueError(f"For 'Adadelta', the 'rho' must be in range [0.0, 1.0], but got {rho}.")
        self.accum = self.parameters.clone("accum", 0)
        self.accum_update = self.parameters.clone("accum_update", 0)
        self.rho, self.epsilon = rho, epsilon

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        states = self.parameters[index], self.accum[index], self.accum_update[index]
        call("ApplyAdadelta", *states, rate, _scalar(self.rho), _scalar(self.epsilon), gradient)


class FTRL(Optimizer):
    """Follow the regularized leader: small weights become exactly 0."""

    is_reversed = False

    def __init__(
        self,
        params: Any,
        initial_accum: float = 0.1,
        learning_rate: float = 1e-3,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError(
                "For 'FTRL', dynamic learning rate and group learning rate are currently not supported, they should "
                f"all be false, but got dynamic learning rate {self.dynamic_lr} and group {self.is_group_lr}."
            )
        _check_numbers("FTRL", initial_accum=initial_accum, learning_rate=learning_rate, l1=l1, l2=l2)
        if lr_power > 0:
            raise ValueError(f"For 'FTRL', the 'lr_power' must be <= 0.0, but got {lr_power}.")
        self.moments = self.parameters.clone("moments", initial_accum)
        self.linear = self.parameters.clone("linear", "zeros")
        self.l1, self.l2, self.lr_power, self.use_locking = l1, l2, lr_power, use_locking
        if not self.is_group:
            # Source: here the weights of normalisations decay as well.
            self.decay_flags = (self.exec_weight_decay,) * self.param_length

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        states = self.parameters[index], self.moments[index], self.linear[index]
        numbers = (rate, _scalar(self.l1), _scalar(self.l2), _scalar(self.lr_power))
        call("ApplyFtrl", *states, gradient, *numbers, use_locking=self.use_locking)


publish(__name__)
