"""Adamax, NAdam, RAdam, Adagrad, Adadelta, RMSprop, ASGD and Rprop."""

from __future__ import annotations

from typing import Any, ClassVar

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.experimental.optim.adaptive import _Moments, _number
from msdump.mindspore.experimental.optim.optimizer import _Stepping
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F

_ADAM = "betas:betas=(0.9,0.999) eps:from_0=1e-08 weight_decay:from_0=0.0"


class Adamax(_Moments, takes=f"params lr:from_0=0.002 {_ADAM} | maximize=False"):
    """Adam with the running maximum of the gradient in place of its second moment."""

    states: ClassVar[dict[str, Any]] = {"exp_avg": "zeros", "exp_inf": "zeros"}

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, (beta1, beta2) = self.parameters[index], group["betas"]
        first = self.exp_avg[index] * beta1 + gradient * (1 - beta1)
        largest = F.maximum(self.exp_inf[index] * beta2, F.abs(gradient) + group["eps"])
        F.assign(self.exp_avg[index], first)
        F.assign(self.exp_inf[index], largest)
        F.assign(weight, weight - rate / self.bias(beta1) * first / largest)


class NAdam(_Moments, takes=f"params lr:from_0=0.002 {_ADAM} momentum_decay:from_0=0.004"):
    """Adam that looks ahead as Nesterov's momentum does, with a momentum that grows."""

    scalars: ClassVar[dict[str, float]] = {"mu_product": 1.0}

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, (beta1, beta2) = self.parameters[index], group["betas"]
        first, second = self.means(index, gradient, group["betas"])
        spread = F.sqrt(second / self.bias(beta2)) + group["eps"]
        now, after = (
            beta1 * (1.0 - 0.5 * F.pow(_number(0.96), (self.step() + ahead) * group["momentum_decay"]))
            for ahead in (0.0, 1.0)
        )
        product = self.mu_product[index] * now
        F.assign(self.mu_product[index], product)
        of_gradient = rate * (1.0 - now) / (1.0 - product) * gradient / spread
        F.assign(weight, weight - of_gradient - rate * after / (1.0 - product * after) * first / spread)


class RAdam(_Moments, takes=f"params lr:from_0=0.001 {_ADAM}"):
    """Adam that takes plain momentum as long as its second moment says too little."""

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, (beta1, beta2) = self.parameters[index], group["betas"]
        first, second = self.means(index, gradient, group["betas"])
        bias2, longest = self.bias(beta2), 2 / (1 - beta2) - 1
        length = longest - 2.0 * self.step() * F.pow(_number(beta2), self.step()) / bias2
        ratio = (length - 4.0) * (length - 2.0) * longest / ((longest - 4) * (longest - 2) * length)
        scale = F.sqrt(F.maximum(ratio, 0.0)) * F.sqrt(bias2) / (F.sqrt(second) + group["eps"])
        is_long = F.broadcast_to(F.greater(length, 5.0), weight.shape)
        F.assign(weight, weight - first / self.bias(beta1) * rate * F.select(is_long, scale, F.ones_like(scale)))


class Adagrad(
    _Stepping,
    takes="params lr:above_0=0.01 lr_decay:from_0=0.0 weight_decay:from_0=0.0 initial_accumulator_value:from_0=0.0 "
    "eps:above_0=1e-10 | maximize=False",
):
    """Gradients over the root of the sum of their squares, with a rate that falls."""

    counter = "step_t"

    def _begin(self, settings: dict[str, Any]) -> None:
        object.__setattr__(self, "states", {"accum": settings["initial_accumulator_value"]})
        super()._begin(settings)

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        own, states = (
            rate / (1.0 + (self.step() - 1.0) * group["lr_decay"]),
            (self.parameters[index], self.accum[index]),
        )
        call("ApplyAdagradV2", *states, own, gradient, epsilon=float(group["eps"]), update_slots=True)


class Adadelta(
    _Stepping, takes="params lr:above_0=1.0 rho:share=0.9 eps:above_0=1e-06 weight_decay:from_0=0.0 | maximize=False"
):
    """Gradients over the root of the mean of their squares, times the root of the mean of squared steps."""

    states: ClassVar[dict[str, Any]] = {"accum": "zeros", "accum_update": "zeros"}

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        states = self.parameters[index], self.accum[index], self.accum_update[index]
        call("ApplyAdadelta", *states, rate, _number(group["rho"]), _number(group["eps"]), gradient)


class RMSprop(
    _Stepping,
    takes="params lr:above_0=0.01 alpha:from_0=0.99 eps:above_0=1e-08 weight_decay:from_0=0.0 momentum:from_0=0.0 "
    "centered=False maximize=False",
):
    """Gradients divided by the root of their running mean square."""

    states: ClassVar[dict[str, Any]] = {"mean_grad": "zeros", "mean_square": "zeros", "moment": "zeros"}

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, alpha = self.parameters[index], group["alpha"]
        square = self.mean_square[index] * alpha + gradient * gradient * (1 - alpha)
        F.assign(self.mean_square[index], square)
        if group["centered"]:
            mean = self.mean_grad[index] * alpha + gradient * (1 - alpha)
            F.assign(self.mean_grad[index], mean)
            square = square - mean * mean
        step = gradient / (F.sqrt(square) + group["eps"])
        if group["momentum"] > 0:
            step = self.moment[index] * group["momentum"] + step
            F.assign(self.moment[index], step)
        F.assign(weight, weight - rate * step)


class ASGD(
    _Stepping,
    takes="params lr:above_0=0.01 lambd:factor=0.0001 alpha=0.75 t0:factor=1000000.0 weight_decay:from_0=0.0 "
    "maximize=False",
):
    """Averaged gradient descent: `ax` holds the average of the weights from step t0 on."""

    states: ClassVar[dict[str, Any]] = {"ax": "zeros"}
    scalars: ClassVar[dict[str, float]] = {"mu": 1.0, "eta": 0.0}
    counter = "step_t"

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, average, mu = self.parameters[index], self.ax[index], self.mu[index]
        step, lambd = self.step(), group["lambd"]
        eta = F.select(F.equal(step, 1.0), rate, self.eta[index])
        new = weight * (1.0 - lambd * eta) - eta * gradient
        F.assign(weight, new)
        F.assign_add(average, (new - average) * mu)
        F.assign(self.eta[index], rate / F.pow(1.0 + lambd * rate * step, group["alpha"]))
        F.assign(mu, 1.0 / F.maximum(step - group["t0"], 1.0))


class Rprop(_Stepping, takes="params lr:above_0=0.01 etas=(0.5,1.2) step_sizes=(1e-06,50) | maximize=False"):
    """Steps that grow while the gradient keeps its sign, and shrink when it changes."""

    states: ClassVar[dict[str, Any]] = {"prev": "zeros", "step_size": "zeros"}
    counter = "step_t"
    decays = False

    def _begin(self, settings: dict[str, Any]) -> None:
        if not 0 < settings["etas"][0] < 1 < settings["etas"][1]:
            given = settings["etas"]
            raise ValueError(f"For 'Rprop', etas must be below and above 1.0, the first positive, but got {given}.")
        super()._begin(settings)

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, previous, size = self.parameters[index], self.prev[index], self.step_size[index]
        ones = F.ones_like(size)
        length = F.select(F.broadcast_to(F.equal(self.step(), 1.0), size.shape), ones * rate, size)
        sign = F.sign(gradient * previous)
        has_turned = F.less(sign, 0.0)
        factor = F.select(F.greater(sign, 0.0), ones * group["etas"][1], ones)
        factor = F.select(has_turned, ones * group["etas"][0], factor)
        length = F.clip_by_value(length * factor, *map(float, group["step_sizes"]))
        gradient = F.select(has_turned, F.zeros_like(gradient), gradient)
        F.assign(size, length)
        F.assign(previous, gradient)
        F.assign(weight, weight - F.sign(gradient) * length)


publish(__name__)
