"""Adam and its relatives: adaptive moments of the gradient, sums and means of its squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.mindspore.common.declared import KINDS
from msdump.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import publish
from msdump.mindspore.nn.optim.optimizer import _DeclaredOptimizer
from msdump.mindspore.ops import function as F


class _Adaptive(_DeclaredOptimizer):
    """What optimizers with two moments and powers of their betas share.   power_shape: of those powers."""

    power_shape: tuple[int, ...] = (1,)

    def _set_up(self, beta1: float, beta2: float, eps: float) -> None:
        self.beta1, self.beta2, self.eps = (Tensor(number) for number in (beta1, beta2, eps))
        self.beta1_power, self.beta2_power = self._power("beta1_power"), self._power("beta2_power")
        self.moment1 = self.parameters.clone("moment1", "zeros")
        self.moment2 = self.parameters.clone("moment2", "zeros")

    def _power(self, name: str) -> Parameter:
        return Parameter(Tensor(np.ones(self.power_shape, np.float32)), name, requires_grad=False)

    def prepare(self) -> None:
        """Powers of the betas: a Mul and an Assign for each of them in a step, as in MindSpore's graphs."""
        pairs = [(self.beta1_power, self.beta1), (self.beta2_power, self.beta2)]
        powers = [F.mul(power, beta) for power, beta in pairs]
        for (power, _), value in zip(pairs, powers, strict=True):
            F.assign(power, value)
        object.__setattr__(self, "_powers", powers)

    _powers: list[Tensor]

    def _numbers(self, rate: Tensor) -> tuple[Tensor, ...]:
        """Operands between the moments and the gradient."""
        return (*self._powers, rate, self.beta1, self.beta2, self.eps)

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        attrs = {"use_locking": self.use_locking, "use_nesterov": self.use_nesterov}
        self.call("Adam", index, (self.moment1, self.moment2), *self._numbers(rate), gradient, **attrs)


_SETTINGS = """params learning_rate=0.001 beta1:beta=0.9 beta2:beta=0.999 eps:epsilon=1e-08 use_locking=False
    use_nesterov=False weight_decay=0.0 loss_scale=1.0"""


class Adam(_Adaptive, takes=f"{_SETTINGS} use_amsgrad=False **kwargs"):
    """Adaptive moments. `use_amsgrad`: the second moment never falls; `use_offload`: as AdamOffload."""

    power_shape = ()
    is_reversed = False

    def _set_up(self, beta1: float, beta2: float, eps: float, kwargs: Any = None) -> None:
        kwargs = kwargs or {}
        if set(kwargs) - {"use_lazy", "use_offload"}:
            raise KeyError(
                "For 'Adam', invalid keys are passed as kwargs, supported keys are 'use_lazy' and 'use_offload', "
                f"but got {list(kwargs)}."
            )
        super()._set_up(beta1, beta2, eps)
        self.use_lazy, self.use_offload = bool(kwargs.get("use_lazy")), bool(kwargs.get("use_offload"))
        if self.use_lazy + self.use_offload + self.use_amsgrad > 1:
            raise ValueError(
                "For 'Adam', at most one of 'use_lazy', 'use_offload' and 'use_amsgrad' can be True, "
                f"but got {self.use_lazy}, {self.use_offload}, {self.use_amsgrad}."
            )
        if self.use_amsgrad:
            self.vhat = self.parameters.clone("vhat", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        operands, attrs = (*self._numbers(rate), gradient), {"use_locking": self.use_locking}
        if self.use_amsgrad:
            states = (self.moment1, self.moment2, self.vhat)
            self.call("ApplyAdamWithAmsgradV2", index, states, *operands, **attrs)
        elif self.use_offload:
            moments = (self.moment1[index], self.moment2[index])
            step = call("AdamNoUpdateParam", *moments, *operands, **attrs, use_nesterov=self.use_nesterov)
            F.assign_add(self.parameters[index], step)
        else:
            super().update(index, gradient, rate, decay)


class AdaMax(
    _Adaptive,
    takes="params learning_rate=0.001 beta1:beta=0.9 beta2:beta=0.999 eps:epsilon=1e-08 weight_decay=0.0 "
    "loss_scale=1.0",
):
    """Adam with the running maximum of the gradient in place of its second moment."""

    is_reversed = False

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        power1, _, *numbers = self._numbers(rate)
        self.call("ApplyAdaMax", index, (self.moment1, self.moment2), power1, *numbers, gradient)


class LazyAdam(_Adaptive, takes=_SETTINGS):
    """Adam; gradients of embeddings are dense here, so that all rows are updated."""


class _Decoupled(_DeclaredOptimizer):
    """Base of optimizers that decay the weight by themselves, beside the step of the gradient.

    prefix   of the names of their moments
    """

    is_reversed = False
    prefix = "adam"

    def _set_up(self, beta1: float, beta2: float, eps: float) -> None:
        self.beta1, self.beta2, self.eps = (Tensor(np.array([each], np.float32)) for each in (beta1, beta2, eps))
        self.moments1 = self.parameters.clone(f"{self.prefix}_m", "zeros")
        self.moments2 = self.parameters.clone(f"{self.prefix}_v", "zeros")

    def _prepared(self, index: int, gradient: Tensor, decay: Tensor) -> Tensor:
        return self._centralized(index, gradient)

    def _operands(self, index: int, rate: Tensor, decay: Tensor) -> tuple[Any, ...]:
        """What both operators read before the gradient."""
        own_decay = decay if self.decay_flags[index] else Tensor(np.float32(0))
        states = (self.parameters[index], self.moments1[index], self.moments2[index])
        return *states, rate, self.beta1, self.beta2, self.eps, own_decay


_DECOUPLED = "beta1:beta=0.9 beta2:beta=0.999 eps:epsilon=1e-06 weight_decay=0.0"


class AdamWeightDecay(_Decoupled, takes=f"params learning_rate=0.001 {_DECOUPLED}"):
    """Adam without bias correction; weight decay is part of the operator."""

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        call("AdamWeightDecay", *self._operands(index, rate, decay), gradient, use_locking=False)


class Lamb(_Decoupled, takes=f"params learning_rate {_DECOUPLED}"):
    """Adam with weight decay, whose step is as long as the weight."""

    prefix = "lamb"

    def prepare(self) -> None:
        """The counter runs in each step: the operator reads it."""
        if not self._counts_steps:
            self._count()

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        call("Lamb", *self._operands(index, rate, decay), self.global_step, gradient)


def _scalar(number: float) -> Tensor:
    return Tensor(np.float32(number))


class Adagrad(
    _DeclaredOptimizer,
    takes="params accum:amount=0.1 learning_rate=0.001 update_slots:bool=True loss_scale=1.0 weight_decay=0.0",
):
    """Gradients over the root of the sum of their squares. `update_slots` False leaves that sum as it is."""

    def _set_up(self, accum: float) -> None:
        self.accum = self.parameters.clone("accum", accum)

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        self.call("ApplyAdagrad", index, (self.accum,), rate, gradient, update_slots=self.update_slots)


class ASGD(
    _DeclaredOptimizer,
    takes="params learning_rate=0.1 lambd:any_rate=0.0001 alpha:any_rate=0.75 t0:any_rate=1000000.0 weight_decay=0.0",
):
    """Gradient descent at a rate that falls; `ax` is the mean of the weights since step t0."""

    prepare = Lamb.prepare

    def _set_up(self) -> None:
        self.ax = self.parameters.clone("ax_", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        weight, mean = self.parameters[index], self.ax[index]
        before = F.reshape(F.sub(F.cast(self.global_step, "float32"), 1.0), ())
        eta = F.div(rate, F.pow(F.add(F.mul(F.mul(rate, self.lambd), before), 1.0), self.alpha))
        new = F.sub(F.mul(weight, F.sub(1.0, F.mul(eta, self.lambd))), F.mul(gradient, eta))
        F.assign(weight, new)
        F.assign_add(mean, F.div(F.sub(new, mean), F.maximum(F.sub(before, self.t0), 1.0)))


class Adadelta(
    _DeclaredOptimizer,
    takes="params learning_rate=1.0 rho:amount=0.9 epsilon:amount=1e-06 loss_scale=1.0 weight_decay=0.0",
):
    """Gradients over the root of the mean of their squares, times the root of the mean of squared steps."""

    def _set_up(self) -> None:
        if self.rho > 1:
            raise ValueError(f"For 'Adadelta', the 'rho' must be in range [0.0, 1.0], but got {self.rho}.")
        self.accum = self.parameters.clone("accum", 0)
        self.accum_update = self.parameters.clone("accum_update", 0)

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        states = (self.accum, self.accum_update)
        self.call("ApplyAdadelta", index, states, rate, _scalar(self.rho), _scalar(self.epsilon), gradient)


class FTRL(
    _DeclaredOptimizer,
    takes="params initial_accum:amount=0.1 learning_rate=0.001 lr_power=-0.5 l1:amount=0.0 l2:amount=0.0 "
    "use_locking=False loss_scale=1.0 weight_decay=0.0",
):
    """Follow the regularized leader: small weights become exactly 0."""

    is_reversed = False

    def _begin(self, settings: dict[str, Any]) -> None:
        rate = settings["learning_rate"]
        super()._begin(settings)
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError(
                "For 'FTRL', dynamic learning rate and group learning rate are currently not supported, they should "
                f"all be false, but got dynamic learning rate {self.dynamic_lr} and group {self.is_group_lr}."
            )
        KINDS["amount"]("FTRL", "learning_rate", rate)

    def _set_up(self, initial_accum: float) -> None:
        if self.lr_power > 0:
            raise ValueError(f"For 'FTRL', the 'lr_power' must be <= 0.0, but got {self.lr_power}.")
        self.moments = self.parameters.clone("moments", initial_accum)
        self.linear = self.parameters.clone("linear", "zeros")
        if not self.is_group:
            # Source: here the weights of normalisations decay as well.
            self.decay_flags = (self.exec_weight_decay,) * self.param_length

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        numbers = (rate, _scalar(self.l1), _scalar(self.l2), _scalar(self.lr_power))
        states = (self.moments, self.linear)
        self.call("ApplyFtrl", index, states, gradient, *numbers, use_locking=self.use_locking)


class AdaFactor(
    _DeclaredOptimizer,
    takes="params learning_rate=None eps=(1e-30,0.001) clip_threshold=1.0 decay_rate:beta=0.8 beta1=0.9 "
    "weight_decay=0.0 scale_parameter=True relative_step=True warmup_init=False compression=False loss_scale=1.0",
):
    """Adam that keeps only row and column means of the second moment, and may choose its own learning rate."""

    is_reversed = False

    def _begin(self, settings: dict[str, Any]) -> None:
        rate, is_relative = settings["learning_rate"], settings["relative_step"]
        if (rate is None) != bool(is_relative):
            wrong = "got both" if is_relative else "got neither"
            raise ValueError(f"For 'AdaFactor', expected either a learning_rate or relative_step=True, {wrong}.")
        if settings["warmup_init"] and not is_relative:
            raise ValueError("For 'AdaFactor', warmup_init requires relative_step=True.")
        if len(settings["eps"]) != 2:
            raise ValueError(f"For 'AdaFactor', the 'eps' must have 2 values, but got {settings['eps']}.")
        # A rate that changes from step to step takes no part of the size of the weight.
        settings["scale_parameter"] &= rate is None or isinstance(rate, int | float)
        self._enabled = {
            "enable_scale_parameter": bool(settings["scale_parameter"]),
            "enable_first_moment": bool(settings["beta1"]),
            "enable_weight_decay": bool(settings["weight_decay"]),
        }
        self._own_decay = _scalar(settings["weight_decay"])
        settings["learning_rate"] = 0.0 if rate is None else rate
        super()._begin(settings)

    def _set_up(self, eps: Any, clip_threshold: float, beta1: float | None) -> None:
        self.eps, self.clip_threshold = Tensor(np.array(eps, np.float32)), _scalar(clip_threshold)
        self.beta1 = _scalar(beta1 or 0.0)
        clones = self.parameters.clone
        self.exp_avg = clones("exp_avg", "zeros") if beta1 else self._beside("exp_avg", lambda _: (1,))
        self.exp_avg_sq_row = self._beside("exp_avg_sq_row", lambda shape: shape[:-1] if len(shape) > 1 else (1,))
        self.exp_avg_sq_col = self._beside(
            "exp_avg_sq_col", lambda shape: (*shape[:-2], shape[-1]) if len(shape) > 1 else (1,)
        )
        self.exp_avg_sq = self._beside("exp_avg_sq", lambda shape: (1,) if len(shape) > 1 else shape)
        self.step = Parameter(Tensor(np.zeros(1, np.float32)), "afactor_step", requires_grad=False)

    def _beside(self, prefix: str, shape_of: Callable[[tuple[int, ...]], tuple[int, ...]]) -> ParameterTuple:
        """Zeros of another shape for each parameter."""
        return ParameterTuple(
            Parameter(F.zeros(shape_of(each.shape), each.dtype), f"{prefix}_{each.name}", requires_grad=False)
            for each in self.parameters
        )

    def _prepared(self, index: int, gradient: Tensor, decay: Tensor) -> Tensor:
        return gradient

    def prepare(self) -> None:
        """The count of steps, the decay of the second moment, and the rate that follows from the count."""
        step = call("AssignAdd", self.step, Tensor(np.ones(1, np.float32)))
        least = F.mul(step, 1e-6) if self.warmup_init else _scalar(0.01)
        rate = F.minimum(least, F.reciprocal(F.sqrt(step))) if self.relative_step else None
        object.__setattr__(self, "_current", (F.sub(1.0, F.pow(step, -self.decay_rate)), rate))

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        beta2, own_rate = self._current
        numbers = (self.eps, self.clip_threshold, self.beta1, beta2, self._own_decay)
        states = (self.parameters, self.exp_avg, self.exp_avg_sq_row, self.exp_avg_sq_col, self.exp_avg_sq)
        rate = rate if own_rate is None else own_rate
        call("FusedAdaFactor", *numbers, rate, gradient, *(state[index] for state in states), **self._enabled)


publish(__name__)
