"""Weight updates that stand as one formula each.

A formula changes its states in place. Its positional parameters are arrays, the states first; its keyword parameters
are numbers, operands where the operator has such an input and attributes otherwise. float16 and bfloat16 compute in
float32.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect_count, expect_dtype, expect_scalar, expect_shape
from msdump.mindspore.kernels.optimizer import corrected_rate, def_update, number_of, update_in_blocks
from msdump.mindspore.kernels.program import publish
from msdump.mindspore.kernels.workspace import compute_type
from msdump.tensors.arrays import Array


def _define(op_type: str, inputs: str, formula: Callable[..., None], states: int, output: str = "") -> None:
    """Register an update.

    inputs   names of the operands: arrays and numbers of the formula
    states   how many of the formula's arrays it changes
    output   the name of the result where the weight alone is returned; "": all states are
    """
    names, parameters = inputs.split(), inspect.signature(formula).parameters
    arrays = [name for name, each in parameters.items() if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    numbers = [name for name in parameters if name not in arrays]
    required = [n for n in numbers if n not in names and parameters[n].default is inspect.Parameter.empty]
    slots = [names.index(name) for name in arrays]
    outputs = [output] if output else arrays[:states]
    scalars = [names.index(name) for name in names if name in numbers]
    def_update(op_type, names, outputs, state=slots[:states], like=slots, scalars=scalars, attributes=required)

    @def_kernel(op_type)
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        given: dict[str, Any] = {name: number_of(inputs[names.index(name)]) for name in names if name in numbers}
        given |= {name: attrs[name] for name in numbers if name not in names and name in attrs}

        def update(states: Sequence[Array], reads: Sequence[Array], free: Sequence[Array]) -> None:
            with np.errstate(all="ignore"):
                formula(*states, *reads, **given)

        operands = [inputs[slot] for slot in slots]
        update_in_blocks(operands[:states], operands[states:], update)
        publish(operands[: len(outputs)], out)


# -- formulas ----------------------------------------------------------------------------------------------------------


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


def _amsgrad(
    var: Array, m: Array, v: Array, vhat: Array, grad: Array, *, beta1_power: float, beta2_power: float, lr: float,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
) -> None:  # fmt: skip
    m += (1.0 - beta1) * (grad - m)
    v += (1.0 - beta2) * (grad * grad - v)
    np.maximum(vhat, v, out=vhat)
    var -= corrected_rate(lr, beta1_power, beta2_power) * m / (np.sqrt(vhat) + epsilon)


def _ftrl(
    var: Array, accum: Array, linear: Array, grad: Array, *, lr: float, l1: float, l2: float, lr_power: float,
    l2_shrinkage: float = 0.0,
) -> None:  # fmt: skip
    before = np.power(accum, -lr_power)
    accum += grad * grad
    after = np.power(accum, -lr_power)
    linear += grad + 2.0 * l2_shrinkage * var - (after - before) / lr * var
    var[...] = -_shrunk(linear, l1) / (after / lr + 2.0 * l2)


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


def _momentum_step(var: Array, moment: Array, grad: Array, square: Array, rate: float, momentum: float) -> None:
    moment *= momentum
    moment += rate * grad / np.sqrt(square)
    var -= moment


def _shrunk(values: Array, threshold: Any) -> Array:
    """Each value moved toward zero by `threshold`, at most to zero."""
    result: Array = np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0)
    return result


# -- operators ---------------------------------------------------------------------------------------------------------

_define("ApplyAdadelta", "var accum accum_update lr rho epsilon grad", _adadelta, 3)
_define("ApplyAdagrad", "var accum lr grad", _adagrad, 2)
_define("ApplyAdagradV2", "var accum lr grad", _adagrad_v2, 2)
_define("ApplyAdamWithAmsgrad", "var m v vhat beta1_power beta2_power lr grad", _amsgrad, 4)
_define("ApplyAdamWithAmsgradV2", "var m v vhat beta1_power beta2_power lr beta1 beta2 epsilon grad", _amsgrad, 4)
_define("ApplyFtrl", "var accum linear grad lr l1 l2 lr_power", _ftrl, 3, "var")
_define("ApplyRMSProp", "var mean_square moment learning_rate grad", _rms_prop, 3, "output")
_CENTERED = "var mean_gradient mean_square moment grad learning_rate"
_define("ApplyCenteredRMSProp", _CENTERED, _centered_rms_prop, 4, "output")


# -- of whole tensors, or without the weight ---------------------------------------------------------------------------


def _moments(m: Array, v: Array, g: Array, n: dict[str, float]) -> None:
    m += (g - m) * (1 - n["beta1"])
    v += (g * g - v) * (1 - n["beta2"])


_NO_UPDATE = ("m", "v", "beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "gradient")
def_primitive("AdamNoUpdateParam", _NO_UPDATE, mutates=(0, 1))


@def_infer("AdamNoUpdateParam")
def _infer_adam_no_update(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, len(_NO_UPDATE))
    for slot in (0, 1, 8):
        expect_dtype(types[slot], FLOATS, _NO_UPDATE[slot])
        expect_shape(types[slot], types[8].shape, _NO_UPDATE[slot])
    for slot in range(2, 8):
        expect_scalar(types[slot], _NO_UPDATE[slot])
    return (types[8],)


@def_kernel("AdamNoUpdateParam")
def _adam_no_update(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Adam's moments, and the step that the script adds to the weight.   Attrs: use_nesterov."""
    m, v, g = inputs[0], inputs[1], inputs[8]
    n = dict(zip(_NO_UPDATE[2:8], map(number_of, inputs[2:8]), strict=True))
    _moments(m, v, g, n)
    mean = m * n["beta1"] + g * (1 - n["beta1"]) if attrs.get("use_nesterov") else m
    rate = corrected_rate(n["lr"], n["beta1_power"], n["beta2_power"])
    np.copyto(out[0], -rate * mean / (np.sqrt(v) + n["epsilon"]), casting="same_kind")


_LAMB = ("var", "m", "v", "lr", "beta1", "beta2", "epsilon", "decay", "global_step", "gradient")
def_update("Lamb", _LAMB, _LAMB[:1], state=(0, 1, 2), like=(1, 2, 9), scalars=(3, 4, 5, 6, 7))


@def_kernel("Lamb")
def _lamb(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Adam's step with weight decay, scaled by |w| / |step| (1 where either is 0).   `global_step` counts from 1."""
    w, m, v, g = (array.astype(compute_type(array.dtype)) for array in (*inputs[:3], inputs[9]))
    n = dict(zip(_LAMB[3:9], map(number_of, inputs[3:9]), strict=True))
    _moments(m, v, g, n)
    mean = m / (1 - n["beta1"] ** n["global_step"])
    square = v / (1 - n["beta2"] ** n["global_step"])
    step = mean / (np.sqrt(square) + n["epsilon"]) + n["decay"] * w
    norms = float(np.linalg.norm(w)), float(np.linalg.norm(step))
    ratio = norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else 1.0
    w -= n["lr"] * ratio * step
    _written(inputs[:3], (w, m, v))
    publish(inputs[:1], out)


def _written(states: Sequence[Array], values: Sequence[Array]) -> None:
    for state, value in zip(states, values, strict=True):
        np.copyto(state, value, casting="same_kind")
