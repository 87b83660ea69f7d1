"""Weight updates, one formula each, which walks through weight, state and gradient once, block by block inside the
cache, on all cores.

A formula changes its states in place. Its positional parameters are arrays, the states first; its keyword parameters
are numbers, operands of shape () or (1,) where the operator has such an input and attributes otherwise. float16 and
bfloat16 compute in float32.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    FLOATS,
    attribute,
    expect_count,
    expect_dtype,
    expect_same_dtype,
    expect_scalar,
    expect_shape,
)
from msdump.mindspore.kernels.program import publish
from msdump.mindspore.kernels.threads import BLOCK, run_blocks
from msdump.mindspore.kernels.workspace import compute_type, scratch
from msdump.tensors.arrays import Array


def _in_blocks(states: Sequence[Array], reads: Sequence[Array], update: Callable[..., None]) -> None:
    """Run `update(states..., reads...)` over matching flat stretches of all arrays, of one float dtype."""
    wide = compute_type(states[0].dtype)
    # A state that does not lie flat is updated in a copy and written back.
    flat_states = [np.ascontiguousarray(state).reshape(-1) for state in states]
    flat_reads = [np.ascontiguousarray(read).reshape(-1) for read in reads]

    def block(start: int, stop: int) -> None:
        arrays = [array[start:stop] for array in (*flat_states, *flat_reads)]
        if wide != states[0].dtype:
            arrays = [_copied(f"optimizer.wide{i}", array, wide) for i, array in enumerate(arrays)]
        with np.errstate(all="ignore"):
            update(*arrays)
        if wide != states[0].dtype:
            for array, flat in zip(arrays, flat_states, strict=False):
                np.copyto(flat[start:stop], array, casting="unsafe")

    run_blocks(states[0].size, block, BLOCK)
    for state, flat in zip(states, flat_states, strict=True):
        if not np.may_share_memory(state, flat):
            np.copyto(state, flat.reshape(state.shape))


def _copied(name: str, array: Array, dtype: np.dtype[np.generic]) -> Array:
    copy = scratch(name, array.shape, dtype)
    np.copyto(copy, array, casting="unsafe")
    return copy


def number_of(array: Array) -> float:
    """The one element of a scalar operand.   Raises: GraphError for an array of none or several."""
    if array.size != 1:
        raise GraphError(f"scalar operand of an optimizer: expected one number, got an array of shape {array.shape}.")
    return float(array.reshape(()))


def _def_update(
    op_type: str, names: Sequence[str], outputs: Sequence[str], *, state: Sequence[int], like: Sequence[int],
    scalars: Sequence[int], attributes: Sequence[str] = (),
) -> None:  # fmt: skip
    """Register an update.

    `state` slots are written, `like` slots have the weight's type, `scalars` one element. Others may be anything.
    `attributes` must be there.
    """
    aliases = {slot: state[slot] for slot in range(len(outputs))}
    def_primitive(op_type, names, outputs, mutates=state, aliases=aliases)

    @def_infer(op_type)
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        expect_count(types, len(names))
        expect_dtype(types[0], FLOATS, names[0])
        for slot in like:
            expect_same_dtype([types[0], types[slot]])
            expect_shape(types[slot], types[0].shape, names[slot])
        for slot in scalars:
            expect_scalar(types[slot], names[slot])
        for name in attributes:
            attribute(attrs, name)
        return tuple(types[state[slot]] for slot in range(len(outputs)))


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
    _def_update(op_type, names, outputs, state=slots[:states], like=slots, scalars=scalars, attributes=required)

    @def_kernel(op_type)
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        given: dict[str, Any] = {name: number_of(inputs[names.index(name)]) for name in names if name in numbers}
        given |= {name: attrs[name] for name in numbers if name not in names and name in attrs}

        operands = [inputs[slot] for slot in slots]
        _in_blocks(operands[:states], operands[states:], partial(formula, **given))
        publish(operands[: len(outputs)], out)


# -- formulas of the core ----------------------------------------------------------------------------------------------


def _apply_momentum(
    variable: Array, accumulation: Array, gradient: Array, *, learning_rate: float, momentum: float,
    use_nesterov: bool = False, gradient_scale: float = 1.0,
) -> None:  # fmt: skip
    scaled = gradient if gradient_scale == 1.0 else gradient * gradient_scale
    accumulation *= momentum
    accumulation += scaled
    variable -= (accumulation * momentum + scaled if use_nesterov else accumulation) * learning_rate


def _sgd(
    parameters: Array, accum: Array, stat: Array, gradient: Array, *, learning_rate: float, momentum: float,
    dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
) -> None:  # fmt: skip
    """Edges: where stat is above 0 the accumulator starts as the gradient itself and stat becomes 0; momentum 0 leaves
    both alone."""
    if weight_decay:
        gradient = parameters * weight_decay + gradient
    if momentum > 0:
        is_fresh = stat > 0
        accum *= momentum
        accum += gradient * (1.0 - dampening)
        np.copyto(accum, gradient, where=is_fresh)
        np.copyto(stat, 0, where=is_fresh)
        gradient = accum * momentum + gradient if nesterov else accum
    parameters -= gradient * learning_rate


def _moved(m: Array, v: Array, gradient: Array, beta1: float, beta2: float) -> None:
    """Running means of the gradient and of its square."""
    m += (gradient - m) * (1.0 - beta1)
    v += (gradient * gradient - v) * (1.0 - beta2)


def _adam(
    var: Array, m: Array, v: Array, gradient: Array, *, beta1_power: float, beta2_power: float, lr: float,
    beta1: float, beta2: float, epsilon: float, use_nesterov: bool = False,
) -> None:  # fmt: skip
    """lr * sqrt(1 - beta2_power) / (1 - beta1_power) corrects what the means lack at the start."""
    _moved(m, v, gradient, beta1, beta2)
    mean = m * beta1 + gradient * (1.0 - beta1) if use_nesterov else m
    var -= mean * corrected_rate(lr, beta1_power, beta2_power) / (np.sqrt(v) + epsilon)


def _adam_weight_decay(
    var: Array, m: Array, v: Array, gradient: Array, *, lr: float, beta1: float, beta2: float, epsilon: float,
    decay: float,
) -> None:  # fmt: skip
    _moved(m, v, gradient, beta1, beta2)
    var -= (m / (np.sqrt(v) + epsilon) + var * decay) * lr


# -- other formulas ----------------------------------------------------------------------------------------------------


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


def corrected_rate(rate: float, power1: float, power2: float) -> float:
    """Edges: NaN or Inf where the powers leave [0, 1), as division and root of floats have it."""
    if not power2 <= 1.0:
        return math.nan
    with np.errstate(all="ignore"):
        return float(np.float64(rate) * math.sqrt(1.0 - power2) / np.float64(1.0 - power1))


def _ada_max(
    var: Array, m: Array, v: Array, grad: Array, *, beta1_power: float, lr: float, beta1: float, beta2: float,
    epsilon: float,
) -> None:  # fmt: skip
    m += (1.0 - beta1) * (grad - m)
    np.maximum(beta2 * v, np.abs(grad), out=v)
    var -= np.float32(lr / (1.0 - beta1_power)) * m / (v + epsilon)


# -- operators ---------------------------------------------------------------------------------------------------------

_define("ApplyMomentum", "variable accumulation learning_rate gradient momentum", _apply_momentum, 2, "output")
_define("SGD", "parameters gradient learning_rate accum momentum stat", _sgd, 3, "output")
_define("Adam", "var m v beta1_power beta2_power lr beta1 beta2 epsilon gradient", _adam, 3)
_define("AdamWeightDecay", "var m v lr beta1 beta2 epsilon decay gradient", _adam_weight_decay, 3)
_define("ApplyAdadelta", "var accum accum_update lr rho epsilon grad", _adadelta, 3)
_define("ApplyAdaMax", "var m v beta1_power lr beta1 beta2 epsilon grad", _ada_max, 3)
_define("ApplyAdagrad", "var accum lr grad", _adagrad, 2)
_define("ApplyAdagradV2", "var accum lr grad", _adagrad_v2, 2)
_define("ApplyAdamWithAmsgrad", "var m v vhat beta1_power beta2_power lr grad", _amsgrad, 4)
_define("ApplyAdamWithAmsgradV2", "var m v vhat beta1_power beta2_power lr beta1 beta2 epsilon grad", _amsgrad, 4)
_define("ApplyFtrl", "var accum linear grad lr l1 l2 lr_power", _ftrl, 3, "var")
_define("ApplyRMSProp", "var mean_square moment learning_rate grad", _rms_prop, 3, "output")
_CENTERED = "var mean_gradient mean_square moment grad learning_rate"
_define("ApplyCenteredRMSProp", _CENTERED, _centered_rms_prop, 4, "output")


# -- of whole tensors, or without the weight ---------------------------------------------------------------------------


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
    _moved(m, v, g, n["beta1"], n["beta2"])
    mean = m * n["beta1"] + g * (1 - n["beta1"]) if attrs.get("use_nesterov") else m
    rate = corrected_rate(n["lr"], n["beta1_power"], n["beta2_power"])
    np.copyto(out[0], -rate * mean / (np.sqrt(v) + n["epsilon"]), casting="same_kind")


_LAMB = ("var", "m", "v", "lr", "beta1", "beta2", "epsilon", "decay", "global_step", "gradient")
_def_update("Lamb", _LAMB, _LAMB[:1], state=(0, 1, 2), like=(1, 2, 9), scalars=(3, 4, 5, 6, 7))


@def_kernel("Lamb")
def _lamb(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Adam's step with weight decay, scaled by |w| / |step| (1 where either is 0).   `global_step` counts from 1."""
    w, m, v, g = (array.astype(compute_type(array.dtype)) for array in (*inputs[:3], inputs[9]))
    n = dict(zip(_LAMB[3:9], map(number_of, inputs[3:9]), strict=True))
    _moved(m, v, g, n["beta1"], n["beta2"])
    mean = m / (1 - n["beta1"] ** n["global_step"])
    square = v / (1 - n["beta2"] ** n["global_step"])
    step = mean / (np.sqrt(square) + n["epsilon"]) + n["decay"] * w
    norms = float(np.linalg.norm(w)), float(np.linalg.norm(step))
    ratio = norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else 1.0
    w -= n["lr"] * ratio * step
    _written(inputs[:3], (w, m, v))
    publish(inputs[:1], out)


_ADA_FACTOR = (
    "epsilon", "clip_threshold", "beta1", "beta2t", "weight_decay", "learning_rate", "gradient", "param", "exp_avg",
    "exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq",
)  # fmt: skip
def_primitive("FusedAdaFactor", _ADA_FACTOR, mutates=(7, 8, 9, 10, 11), aliases={0: 7})


@def_infer("FusedAdaFactor")
def _infer_ada_factor(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, len(_ADA_FACTOR))
    expect_shape(types[0], (2,), "epsilon")
    for slot in range(1, 6):
        expect_scalar(types[slot], _ADA_FACTOR[slot])
    shape = types[7].shape
    shapes = {9: shape[:-1], 10: (*shape[:-2], shape[-1])} if len(shape) > 1 else {11: shape}
    for slot, expected in {6: shape, **({8: shape} if attrs.get("enable_first_moment") else {}), **shapes}.items():
        expect_shape(types[slot], expected, _ADA_FACTOR[slot])
    return (types[7],)


@def_kernel("FusedAdaFactor")
def _ada_factor(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Adam whose second moment is the product of its row and column means.

    Attrs: enable_scale_parameter, enable_first_moment, enable_weight_decay.
    Edges: weights of fewer than two axes keep the second moment itself; without elements nothing changes.
    """
    states = [array.astype(compute_type(array.dtype)) for array in inputs[7:]]
    w, mean, *moments = states
    if w.size:
        (epsilon, least), g = (float(value) for value in inputs[0]), inputs[6].astype(w.dtype)
        threshold, beta1, beta2, decay, rate = (number_of(array) for array in inputs[1:6])
        rate *= max(least, _root_mean_square(w)) if attrs.get("enable_scale_parameter") else 1.0
        step = _factored_step(g, moments, epsilon, beta2)
        step *= rate / max(1.0, _root_mean_square(step) / threshold)
        if attrs.get("enable_first_moment"):
            mean += (step - mean) * (1 - beta1)
            step = mean
        w -= w * (decay * rate if attrs.get("enable_weight_decay") else 0.0) + step
        _written(inputs[7:], states)
    publish(inputs[7:8], out)


def _root_mean_square(array: Array) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64))))


def _factored_step(g: Array, moments: Sequence[Array], epsilon: float, beta2: float) -> Array:
    """The gradient over the root of its second moment; `moments` (rows, columns, all) are moved toward its square."""
    new, (row, column, square) = g * g + epsilon, moments
    if g.ndim < 2:
        square += (new - square) * (1 - beta2)
        return np.asarray(g / np.sqrt(square))
    row += (new.mean(-1) - row) * (1 - beta2)
    column += (new.mean(-2) - column) * (1 - beta2)
    rows = row / row.mean(-1, keepdims=True)
    return np.asarray(g / np.sqrt(rows)[..., None] / np.sqrt(column)[..., None, :])


def _written(states: Sequence[Array], values: Sequence[Array]) -> None:
    for state, value in zip(states, values, strict=True):
        np.copyto(state, value, casting="same_kind")
