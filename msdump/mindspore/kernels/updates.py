"""Weight updates that stand as one formula each: dense, and for gradients of single rows.

A formula changes its states in place. Its positional parameters are arrays, the states first; its keyword parameters
are numbers, operands where the operator has such an input and attributes otherwise. float16 and bfloat16 compute in
float32.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    FLOATS,
    INDICES,
    attribute,
    expect,
    expect_count,
    expect_dtype,
    expect_same_dtype,
    expect_shape,
)
from msdump.mindspore.kernels.optimizer import corrected_rate, number_of, update_in_blocks
from msdump.mindspore.kernels.program import publish
from msdump.mindspore.kernels.workspace import compute_type
from msdump.tensors.arrays import Array

Formula = Callable[..., None]

# How gradients of single rows meet the states: those of one row are added up first; they come one after another;
# or all rows are updated, with a gradient of zero where none is given.
SUMMED, IN_TURN, ALL_ROWS = "summed", "in turn", "all rows"


@dataclass(frozen=True)
class Rule:
    """An update.   states: how many of the formula's arrays it changes; outputs: how many of them it returns."""

    op_type: str
    inputs: tuple[str, ...]
    formula: Formula
    states: int
    outputs: int
    rows: str = ""

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """Names of the formula's arrays."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return tuple(name for name, each in _parameters(self.formula).items() if each.kind is kind)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Numbers of the formula that are no operands; those without a default must be there."""
        return tuple(name for name in _parameters(self.formula) if name not in self.arrays and name not in self.inputs)

    def numbers(self, operands: Mapping[str, Array], attrs: Attrs) -> dict[str, Any]:
        """Values of the formula's numbers."""
        numbers: dict[str, Any] = {}
        for name in _parameters(self.formula):
            if name in self.arrays:
                continue
            if name in operands:
                numbers[name] = number_of(operands[name])
            elif name in attrs:
                numbers[name] = attrs[name]
        return numbers


def _parameters(formula: Formula) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(formula).parameters


RULES: dict[str, Rule] = {}


def _define(
    op_type: str,
    inputs: str,
    formula: Formula,
    states: int,
    outputs: int | None = None,
    rows: str = "",
    name: str = "",
) -> None:
    rule = RULES[op_type] = Rule(
        op_type, tuple(inputs.split()), formula, states, states if outputs is None else outputs, rows
    )
    slots = tuple(rule.inputs.index(name) for name in rule.arrays[:states])
    def_primitive(
        op_type,
        rule.inputs,
        (name,) if name else rule.arrays[: rule.outputs],
        mutates=slots,
        aliases={place: slots[place] for place in range(rule.outputs)},
    )
    def_infer(op_type)(_infer(rule, slots))
    def_kernel(op_type)(_kernel(rule))


def _infer(rule: Rule, slots: Sequence[int]) -> Callable[[Sequence[TensorType], Attrs], tuple[TensorType, ...]]:
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        expect_count(types, len(rule.inputs))
        expect_dtype(types[slots[0]], FLOATS, rule.inputs[slots[0]])
        weight = types[slots[0]]
        for name, type_ in zip(rule.inputs, types, strict=True):
            if name == "indices":
                expect_dtype(type_, INDICES, name)
                expect(len(type_.shape) == 1, f"{name} with one axis", type_.shape)
            elif name not in rule.arrays:
                expect(type_.shape in ((), (1,)), f"{name} of shape () or (1,)", type_.shape)
            else:
                expect_same_dtype([weight, type_])
                is_rows = bool(rule.rows) and name == rule.arrays[-1]
                lead = types[rule.inputs.index("indices")].shape if is_rows else weight.shape[:1]
                expect_shape(type_, (*lead, *weight.shape[1:]), name)
        for name in rule.attributes:
            if _parameters(rule.formula)[name].default is inspect.Parameter.empty:
                value = attribute(attrs, name)
                expect(isinstance(value, (int, float)), f"attribute {name} to be a number", repr(value))
        return tuple(types[slot] for slot in slots[: rule.outputs])

    return infer


def _kernel(rule: Rule) -> Callable[[Sequence[Array], Attrs, Sequence[Array]], None]:
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        operands = dict(zip(rule.inputs, inputs, strict=True))
        numbers = rule.numbers(operands, attrs)
        states = [operands[name] for name in rule.arrays[: rule.states]]
        reads = [operands[name] for name in rule.arrays[rule.states :]]

        def update(states: Sequence[Array], reads: Sequence[Array], free: Sequence[Array]) -> None:
            with np.errstate(all="ignore"):
                rule.formula(*states, *reads, **numbers)

        if rule.rows:
            for rows, gradient in _gradients_by_row(rule, states[0], reads[0], operands["indices"]):
                parts = [state[rows].astype(compute_type(state.dtype)) for state in states]
                update(parts, [gradient], ())
                for state, part in zip(states, parts, strict=True):
                    state[rows] = part
        else:
            update_in_blocks(states, reads, update)
        publish(states[: rule.outputs], out)

    return kernel


def _gradients_by_row(rule: Rule, weight: Array, gradient: Array, indices: Array) -> list[tuple[Array, Array]]:
    """(rows, their gradients), in the order of the updates.   Raises: GraphError for a row that is not there."""
    if indices.size and (indices.min() < 0 or indices.max() >= len(weight)):
        raise GraphError(f"{rule.op_type}: expected indices in [0, {len(weight)}), got {indices.tolist()}.")
    wide = gradient.astype(compute_type(gradient.dtype))
    if rule.rows == IN_TURN:
        return [(indices[place : place + 1], wide[place : place + 1]) for place in range(len(indices))]
    rows, places = np.unique(indices, return_inverse=True)
    if rule.rows == ALL_ROWS:
        rows, places = np.arange(len(weight)), indices
    total = np.zeros((len(rows), *weight.shape[1:]), wide.dtype)
    np.add.at(total, places.reshape(-1), wide)
    return [(rows, total)]


# -- formulas ----------------------------------------------------------------------------------------------------------


def _ada_max(
    var: Array, m: Array, v: Array, grad: Array, *, beta1_power: float, lr: float, beta1: float, beta2: float,
    epsilon: float,
) -> None:  # fmt: skip
    m += (1.0 - beta1) * (grad - m)
    np.maximum(beta2 * v, np.abs(grad), out=v)
    var -= _over(lr, 1.0 - beta1_power) * m / (v + epsilon)


def _adadelta(
    var: Array, accum: Array, accum_update: Array, grad: Array, *, lr: float, rho: float, epsilon: float
) -> None:
    accum += (1.0 - rho) * (grad * grad - accum)
    step = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    accum_update += (1.0 - rho) * (step * step - accum_update)
    var -= lr * step


def _adagrad(var: Array, accum: Array, grad: Array, *, lr: float, update_slots: bool = True) -> None:
    _adagrad_v2(var, accum, grad, lr=lr, epsilon=0.0, update_slots=update_slots)


def _adagrad_v2(var: Array, accum: Array, grad: Array, *, lr: float, epsilon: float, update_slots: bool = True) -> None:
    if update_slots:
        accum += grad * grad
    var -= lr * grad / (np.sqrt(accum) + epsilon)


def _adagrad_da(
    var: Array, gradient_accumulator: Array, gradient_squared_accumulator: Array, grad: Array, *, lr: float,
    l1: float, l2: float, global_step: float,
) -> None:  # fmt: skip
    gradient_accumulator += grad
    gradient_squared_accumulator += grad * grad
    shrunk = _shrunk(gradient_accumulator, l1 * global_step) if l1 > 0 else gradient_accumulator
    var[...] = -lr * shrunk / (l2 * global_step * lr + np.sqrt(gradient_squared_accumulator))


def _amsgrad(
    var: Array, m: Array, v: Array, vhat: Array, grad: Array, *, beta1_power: float, beta2_power: float, lr: float,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
) -> None:  # fmt: skip
    m += (1.0 - beta1) * (grad - m)
    v += (1.0 - beta2) * (grad * grad - v)
    np.maximum(vhat, v, out=vhat)
    var -= corrected_rate(lr, beta1_power, beta2_power) * m / (np.sqrt(vhat) + epsilon)


def _adam(
    var: Array, m: Array, v: Array, grad: Array, *, beta1_power: float, beta2_power: float, lr: float, beta1: float,
    beta2: float, epsilon: float, use_nesterov: bool = False,
) -> None:  # fmt: skip
    m += (1.0 - beta1) * (grad - m)
    v += (1.0 - beta2) * (grad * grad - v)
    mean = beta1 * m + (1.0 - beta1) * grad if use_nesterov else m
    var -= corrected_rate(lr, beta1_power, beta2_power) * mean / (np.sqrt(v) + epsilon)


def _add_sign(var: Array, m: Array, grad: Array, *, lr: float, alpha: float, sign_decay: float, beta: float) -> None:
    m += (1.0 - beta) * (grad - m)
    var -= lr * (alpha + sign_decay * np.sign(grad) * np.sign(m)) * grad


def _power_sign(
    var: Array, m: Array, grad: Array, *, lr: float, logbase: float, sign_decay: float, beta: float
) -> None:
    m += (1.0 - beta) * (grad - m)
    var -= lr * np.exp(logbase * sign_decay * np.sign(grad) * np.sign(m)) * grad


def _ftrl(
    var: Array, accum: Array, linear: Array, grad: Array, *, lr: float, l1: float, l2: float, lr_power: float,
    l2_shrinkage: float = 0.0,
) -> None:  # fmt: skip
    before = np.power(accum, -lr_power)
    accum += grad * grad
    after = np.power(accum, -lr_power)
    linear += grad + 2.0 * l2_shrinkage * var - (after - before) / lr * var
    var[...] = -_shrunk(linear, l1) / (after / lr + 2.0 * l2)


def _gradient_descent(var: Array, delta: Array, *, alpha: float) -> None:
    var -= alpha * delta


def _proximal_descent(var: Array, delta: Array, *, alpha: float, l1: float, l2: float) -> None:
    var[...] = _shrunk(var - alpha * delta, alpha * l1) / (1.0 + alpha * l2)


def _proximal_adagrad(var: Array, accum: Array, grad: Array, *, lr: float, l1: float, l2: float) -> None:
    accum += grad * grad
    rate = lr / np.sqrt(accum)
    var[...] = _shrunk(var - rate * grad, rate * l1) / (1.0 + rate * l2)


def _keras_momentum(
    var: Array, accum: Array, grad: Array, *, lr: float, momentum: float, use_nesterov: bool = False
) -> None:
    accum *= momentum
    accum -= lr * grad
    var += momentum * accum - lr * grad if use_nesterov else accum


def _rms_prop(
    var: Array, mean_square: Array, moment: Array, grad: Array, *, learning_rate: float, rho: float, momentum: float,
    epsilon: float,
) -> None:  # fmt: skip
    mean_square += (1.0 - rho) * (grad * grad - mean_square)
    _momentum_step(var, moment, grad, mean_square + epsilon, learning_rate, momentum)


def _centered_rms_prop(
    var: Array, mean_gradient: Array, mean_square: Array, moment: Array, grad: Array, *, learning_rate: float,
    rho: float, momentum: float, epsilon: float,
) -> None:  # fmt: skip
    mean_gradient += (1.0 - rho) * (grad - mean_gradient)
    mean_square += (1.0 - rho) * (grad * grad - mean_square)
    square = mean_square - mean_gradient * mean_gradient + epsilon
    _momentum_step(var, moment, grad, square, learning_rate, momentum)


def _sparse_rms_prop(
    var: Array, ms: Array, mom: Array, grad: Array, *, lr: float, rho: float, momentum: float, epsilon: float
) -> None:
    _rms_prop(var, ms, mom, grad, learning_rate=lr, rho=rho, momentum=momentum, epsilon=epsilon)


def _momentum_step(var: Array, moment: Array, grad: Array, square: Array, rate: float, momentum: float) -> None:
    moment *= momentum
    moment += rate * grad / np.sqrt(square)
    var -= moment


def _shrunk(values: Array, threshold: Any) -> Array:
    """Each value moved toward zero by `threshold`, at most to zero."""
    result: Array = np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0)
    return result


def _over(number: float, divisor: float) -> float:
    """Quotient, Inf or NaN for a divisor of zero."""
    with np.errstate(all="ignore"):
        return float(np.float64(number) / np.float64(divisor))


# -- operators ---------------------------------------------------------------------------------------------------------

_ADAM_SPARSE = "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad indices"

_define("ApplyAdaMax", "var m v beta1_power lr beta1 beta2 epsilon grad", _ada_max, 3)
_define("ApplyAdadelta", "var accum accum_update lr rho epsilon grad", _adadelta, 3)
_define("ApplyAdagrad", "var accum lr grad", _adagrad, 2)
_define("ApplyAdagradV2", "var accum lr grad", _adagrad_v2, 2)
_define(
    "ApplyAdagradDA",
    "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step",
    _adagrad_da,
    3,
    1,
)
_define("ApplyAdamWithAmsgrad", "var m v vhat beta1_power beta2_power lr grad", _amsgrad, 4)
_define("ApplyAdamWithAmsgradV2", "var m v vhat beta1_power beta2_power lr beta1 beta2 epsilon grad", _amsgrad, 4)
_define("ApplyAddSign", "var m lr alpha sign_decay beta grad", _add_sign, 2)
_define("ApplyPowerSign", "var m lr logbase sign_decay beta grad", _power_sign, 2)
_define("ApplyFtrl", "var accum linear grad lr l1 l2 lr_power", _ftrl, 3, 1)
_define("ApplyGradientDescent", "var alpha delta", _gradient_descent, 1)
_define("ApplyProximalGradientDescent", "var alpha l1 l2 delta", _proximal_descent, 1)
_define("ApplyProximalAdagrad", "var accum lr l1 l2 grad", _proximal_adagrad, 2)
_define("ApplyRMSProp", "var mean_square moment learning_rate grad", _rms_prop, 3, 1, name="output")
_define(
    "ApplyCenteredRMSProp",
    "var mean_gradient mean_square moment grad learning_rate",
    _centered_rms_prop,
    4,
    1,
    name="output",
)
_define("ApplyKerasMomentum", "var accum lr grad momentum", _keras_momentum, 2)
_define("SparseApplyAdagrad", "var accum grad indices", _adagrad, 2, rows=SUMMED)
_define("SparseApplyAdagradV2", "var accum grad indices", _adagrad_v2, 2, rows=IN_TURN)
_define("SparseApplyAdadelta", "var accum accum_update lr rho grad indices", _adadelta, 3, 1, IN_TURN)
_define("SparseApplyFtrl", "var accum linear grad indices", _ftrl, 3, rows=IN_TURN)
_define("SparseApplyFtrlV2", "var accum linear grad indices", _ftrl, 3, rows=IN_TURN)
_define("SparseApplyProximalAdagrad", "var accum lr l1 l2 grad indices", _proximal_adagrad, 2, rows=IN_TURN)
_define("SparseApplyRMSProp", "var ms mom lr grad indices", _sparse_rms_prop, 3, rows=IN_TURN)
_define("FusedSparseAdam", _ADAM_SPARSE, _adam, 3, rows=ALL_ROWS)
_define("FusedSparseLazyAdam", _ADAM_SPARSE, _adam, 3, rows=SUMMED)
_define("FusedSparseFtrl", "var accum linear grad indices", _ftrl, 3, rows=SUMMED)
_define("FusedSparseProximalAdagrad", "var accum lr l1 l2 grad indices", _proximal_adagrad, 2, rows=SUMMED)
