"""Optimizers that MindSpore composes of small operators, or wraps around others: ASGD, Rprop, AdaFactor, LARS, thor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from msdump.mindspore.common.parameter import Parameter, ParameterTuple
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, cast, execute
from msdump.mindspore.names import publish
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.ops import function as F
from msdump.mindspore.tracer import current_tracer


class _Counting(Optimizer):
    """Base of optimizers whose formulas read the number of the step, which counts from 1."""

    is_reversed = False

    def prepare(self) -> None:
        if not self._counts_steps:
            self._count()

    def _step(self) -> Tensor:
        return F.cast(F.reshape(self.global_step, ()), "float32")


class ASGD(_Counting):
    """Averaged gradient descent: `ax` holds the average of the weights from step t0 on."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        for name, number in (("lambd", lambd), ("alpha", alpha), ("t0", t0)):
            if not isinstance(number, float):
                raise TypeError(f"For 'ASGD', the type of '{name}' must be float, but got {type(number).__name__}.")
        self.lambd, self.alpha, self.t0 = lambd, alpha, t0
        self.mu = _numbers_beside(self.parameters, "mu_", 1.0)
        self.eta = _numbers_beside(self.parameters, "eta_", 0.0)
        self.ax = self.parameters.clone("ax_", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        weight, mu, average = self.parameters[index], self.mu[index], self.ax[index]
        step = self._step()
        eta = F.select(F.equal(step, 1.0), rate, self.eta[index])
        old = F.cast(weight, "float32")
        new = F.sub(F.mul(old, F.sub(1.0, F.mul(eta, self.lambd))), F.mul(eta, F.cast(gradient, "float32")))
        F.assign(weight, new)
        kept = F.cast(average, "float32")
        F.assign(average, F.add(kept, F.mul(F.sub(new, kept), mu)))
        growth = F.pow(F.add(F.mul(F.mul(rate, step), self.lambd), 1.0), self.alpha)
        F.assign(self.eta[index], F.div(rate, growth))
        F.assign(mu, F.reciprocal(F.maximum(F.sub(step, self.t0), 1.0)))


def _numbers_beside(parameters: ParameterTuple, prefix: str, value: float) -> ParameterTuple:
    return ParameterTuple(
        Parameter(Tensor(np.float32(value)), f"{prefix}{parameter.name}", requires_grad=False)
        for parameter in parameters
    )


class Rprop(_Counting):
    """Steps that grow while the gradient keeps its sign, and shrink when it changes."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        for name, pair in (("etas", etas), ("step_sizes", step_sizes)):
            if not isinstance(pair, tuple):
                raise TypeError(f"For Rprop, {name} must be a tuple, but got {type(pair)}.")
            if len(pair) != 2:
                raise ValueError(f"For Rprop, {name} must be a tuple with the size of 2, but got {len(pair)}.")
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"For Rprop, etas must be below and above 1.0, the first positive, but got {etas}.")
        if step_sizes[0] > step_sizes[1]:
            raise ValueError(
                "For Rprop, maximal step size should not be less than minimal step size, "
                f"but got {step_sizes[0]} > {step_sizes[1]}."
            )
        self.etaminus, self.etaplus = etas
        self.step_size_min, self.step_size_max = step_sizes
        self.prev = self.parameters.clone("prev", "zeros")
        self.step_size = self.parameters.clone("step_size", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        weight, previous, size = self.parameters[index], self.prev[index], self.step_size[index]
        is_first = F.equal(self._step(), 1.0)
        first = F.mul(Tensor(np.ones(size.shape, np.float32)), rate)
        length = F.select(F.broadcast_to(is_first, size.shape), first, F.cast(size, "float32"))
        gradient = F.cast(gradient, "float32")
        sign = F.sign(F.mul(gradient, previous))
        one = Tensor(np.ones(size.shape, np.float32))
        factor = F.select(F.greater(sign, 0.0), F.mul(one, self.etaplus), one)
        has_turned = F.less(sign, 0.0)
        factor = F.select(has_turned, F.mul(one, self.etaminus), factor)
        length = F.clip_by_value(F.mul(length, factor), self.step_size_min, self.step_size_max)
        gradient = F.select(has_turned, F.mul(gradient, 0.0), gradient)
        F.assign(weight, F.sub(F.cast(weight, "float32"), F.mul(F.sign(gradient), length)))
        F.assign(previous, gradient)
        F.assign(size, length)


class AdaFactor(Optimizer):
    """Adam that keeps only row and column means of the second moment, and may choose its own learning rate."""

    is_reversed = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any = None,
        eps: Sequence[float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = 0.8,
        beta1: float | None = 0.9,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
        compression: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        if learning_rate is not None and relative_step:
            raise ValueError("Cannot combine manual lr and relative_step options", learning_rate)
        if warmup_init and not relative_step:
            raise ValueError("warmup_init requires relative_step=True")
        if learning_rate is None and not relative_step:
            raise ValueError("Cannot learning_rate is None and relative_step=False")
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        if len(eps) != 2:
            raise ValueError("eps must have 2 value: (eps1, eps2).")
        if not 0 < decay_rate < 1:
            raise ValueError(f"For 'AdaFactor', the 'decay_rate' must be in range (0, 1), but got {decay_rate}.")
        self.scale_lr = learning_rate is None or isinstance(learning_rate, int | float)
        self.relative_step, self.warmup_init, self.compression = relative_step, warmup_init, compression
        self.scale_parameter = scale_parameter and self.scale_lr
        self.eps = Tensor(np.array(eps, np.float32))
        self.clip_threshold, self.beta1 = Tensor(np.float32(clip_threshold)), Tensor(np.float32(beta1 or 0.0))
        self.decay_rate = Tensor(np.float32(-decay_rate))
        self.weight_decay_flag, self.use_first_moment = bool(weight_decay), bool(beta1)
        self._own_decay = Tensor(np.float32(weight_decay))
        self._make_states()
        self.step = Parameter(Tensor(np.zeros(1, np.float32)), "afactor_step", requires_grad=False)

    def _make_states(self) -> None:
        if self.use_first_moment:
            self.exp_avg = self.parameters.clone("exp_avg", "zeros")
        else:
            self.exp_avg = _states_beside(self.parameters, "exp_avg", lambda shape: (1,))
        shapes: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
            "exp_avg_sq_row": lambda shape: shape[:-1] if len(shape) > 1 else (1,),
            "exp_avg_sq_col": lambda shape: (*shape[:-2], shape[-1]) if len(shape) > 1 else (1,),
            "exp_avg_sq": lambda shape: (1,) if len(shape) > 1 else shape,
        }
        for name, shape_of in shapes.items():
            setattr(self, name, _states_beside(self.parameters, name, shape_of))

    exp_avg_sq_row: ParameterTuple
    exp_avg_sq_col: ParameterTuple
    exp_avg_sq: ParameterTuple

    def _prepared(self, index: int, gradient: Tensor, decay: Tensor) -> Tensor:
        return gradient

    def prepare(self) -> None:
        """The count of steps, the decay of the second moment, and the rate that follows from the count."""
        step = call("AssignAdd", self.step, Tensor(np.ones(1, np.float32)))
        rate = None
        if self.scale_lr and self.relative_step:
            least = F.mul(step, 1e-6) if self.warmup_init else Tensor(np.float32(0.01))
            rate = F.minimum(least, F.reciprocal(F.sqrt(step)))
        beta2 = F.sub(1.0, F.pow(step, self.decay_rate))
        object.__setattr__(self, "_current", (beta2, rate))

    _current: tuple[Tensor, Tensor | None]

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        beta2, own_rate = self._current
        rate = rate if own_rate is None else own_rate
        numbers = (self.eps, self.clip_threshold, self.beta1, beta2, self._own_decay)
        states = (self.exp_avg, self.exp_avg_sq_row, self.exp_avg_sq_col, self.exp_avg_sq)
        call(
            "FusedAdaFactor",
            *numbers,
            rate,
            gradient,
            self.parameters[index],
            *(state[index] for state in states),
            enable_scale_parameter=self.scale_parameter,
            enable_first_moment=self.use_first_moment,
            enable_weight_decay=self.weight_decay_flag,
        )


def _states_beside(
    parameters: ParameterTuple, prefix: str, shape_of: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> ParameterTuple:
    """Zeros of another shape for each parameter, named `{prefix}_{name}` as AdaFactor does."""
    return ParameterTuple(
        Parameter(F.zeros(shape_of(each.shape), each.dtype), f"{prefix}_{each.name}", requires_grad=False)
        for each in parameters
    )


def _is_scaled_by_lars(parameter: Parameter) -> bool:
    return "LayerNorm" not in parameter.name and "bias" not in parameter.name


class LARS(Optimizer):
    """Another optimizer, whose gradients are scaled by |weight| / |gradient| before."""

    def __init__(
        self,
        optimizer: Optimizer,
        epsilon: float = 1e-5,
        coefficient: float = 1e-3,
        use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = _is_scaled_by_lars,
    ) -> None:
        super().__init__(0.0, [Parameter(Tensor(0.0), name="fake_param")])
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"For 'LARS', the type of 'optimizer' must be Optimizer, but got {type(optimizer)}.")
        self.opt = optimizer
        self.parameters = optimizer.parameters
        self.lars_flag = tuple(bool(lars_filter(parameter)) for parameter in optimizer.parameters)
        self._attrs = {"epsilon": float(epsilon), "hyperpara": float(coefficient), "use_clip": bool(use_clip)}
        self.use_clip = use_clip
        # This optimizer decays weights and scales gradients in place of the one that it wraps.
        self._own_flags, optimizer.decay_flags = optimizer.decay_flags, (False,) * len(self.lars_flag)
        optimizer.exec_weight_decay = False
        self._is_scaling, optimizer.need_scale = optimizer.need_scale, False
        self.reciprocal_scale = optimizer.reciprocal_scale

    def construct(self, gradients: Sequence[Tensor]) -> bool:
        tracer = current_tracer()
        with nullcontext() if tracer is None else tracer.updating():
            scaled = [self._scaled(index, gradient) for index, gradient in enumerate(gradients)]
        return self.opt.construct(scaled)

    def _scaled(self, index: int, gradient: Tensor) -> Tensor:
        if self._is_scaling:
            gradient = F.mul(gradient, self.reciprocal_scale)
        if not self.lars_flag[index]:
            return gradient
        weight = self.parameters[index]
        norms = execute("SquareSumAll", [weight, gradient])
        decay: Any = self.opt.weight_decay[index] if self.opt.is_group else self.opt.weight_decay
        decay = F.div(decay, self.opt.loss_scale) if self._own_flags[index] else Tensor(np.float32(0))
        rate = self.opt._rate_of[index].construct(self.opt.global_step) if self.use_clip else Tensor(np.float32(0))
        return call("LARSUpdate", weight, gradient, *norms, cast(decay, "float32"), rate, **self._attrs)


def thor(*args: Any, **kwargs: Any) -> Any:
    """Raises: NotImplementedError: its second-order statistics need operators of Ascend."""
    raise NotImplementedError(
        "nn.thor: expected an optimizer that MindSpore runs on a CPU, got thor, which needs an Ascend device. "
        "Use nn.Momentum or nn.Lamb."
    )


publish(__name__)
