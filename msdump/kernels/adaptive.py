"""Weight updates of the rarer optimizers: each is one formula, applied block by block to weight, state and gradient.

Source: the formulas of MindSpore's operators of these names; `nn.Lamb` and `nn.LARS` have none on a CPU there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_scalar, expect_shape
from msdump.kernels.optimizer import corrected_rate, def_update, number_of, update_in_blocks
from msdump.kernels.program import publish
from msdump.kernels.workspace import compute_type

# (blocks of the states, written in place; block of the gradient; scalars by name; attributes).
Formula = Callable[[Sequence[Array], Array, dict[str, float], Attrs], None]


def _update(op_type: str, names: str, states: str, gradient: str) -> Callable[[Formula], Formula]:
    """Decorator: an update whose `states` are written and whose other operands but `gradient` are scalars."""
    slots = names.split()
    written = [slots.index(name) for name in states.split()]
    scalars = [slot for slot, name in enumerate(slots) if slot not in written and name != gradient]
    place = slots.index(gradient)
    def_update(op_type, slots, states.split(), state=written, like=[*written[1:], place], scalars=scalars)

    def register(formula: Formula) -> Formula:
        @def_kernel(op_type)
        def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
            numbers = {slots[slot]: number_of(inputs[slot]) for slot in scalars}

            def block(blocks: Sequence[Array], reads: Sequence[Array], free: Sequence[Array]) -> None:
                formula(blocks, reads[0], numbers, attrs)

            targets = [inputs[slot] for slot in written]
            with np.errstate(all="ignore"):
                update_in_blocks(targets, [inputs[place]], block)
            publish(targets[: len(out)], out)

        return formula

    return register


@_update("ApplyAdaMax", "var m v beta1_power lr beta1 beta2 epsilon grad", "var m v", "grad")
def _adamax(states: Sequence[Array], g: Array, n: dict[str, float], attrs: Attrs) -> None:
    w, m, v = states
    m += (g - m) * (1 - n["beta1"])
    np.maximum(v * n["beta2"], np.abs(g), out=v)
    rate = float(np.float64(n["lr"]) / (1 - n["beta1_power"]))
    w -= rate * m / (v + n["epsilon"])


@_update("ApplyAdadelta", "var accum accum_update lr rho epsilon grad", "var accum accum_update", "grad")
def _adadelta(states: Sequence[Array], g: Array, n: dict[str, float], attrs: Attrs) -> None:
    w, accum, accum_update = states
    rho, epsilon = n["rho"], n["epsilon"]
    accum += (g * g - accum) * (1 - rho)
    step = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * g
    accum_update += (step * step - accum_update) * (1 - rho)
    w -= n["lr"] * step


@_update("ApplyAdagrad", "var accum lr grad", "var accum", "grad")
def _adagrad(states: Sequence[Array], g: Array, n: dict[str, float], attrs: Attrs) -> None:
    w, accum = states
    if attrs.get("update_slots", True):
        accum += g * g
    w -= n["lr"] * g / np.sqrt(accum)


@_update("ApplyFtrl", "var accum linear grad lr l1 l2 lr_power", "var accum linear", "grad")
def _ftrl(states: Sequence[Array], g: Array, n: dict[str, float], attrs: Attrs) -> None:
    w, accum, linear = states
    power, lr, l1 = -n["lr_power"], n["lr"], n["l1"]
    before = accum**power
    accum += g * g
    after = accum**power
    linear += g - (after - before) / lr * w
    slope = after / lr + 2 * n["l2"]
    w[...] = np.where(np.abs(linear) > l1, (np.sign(linear) * l1 - linear) / slope, 0)


@_update("ApplyProximalAdagrad", "var accum lr l1 l2 grad", "var accum", "grad")
def _proximal_adagrad(states: Sequence[Array], g: Array, n: dict[str, float], attrs: Attrs) -> None:
    w, accum = states
    accum += g * g
    rate = n["lr"] / np.sqrt(accum)
    step = w - rate * g
    if n["l1"] > 0:
        step = np.sign(step) * np.maximum(np.abs(step) - rate * n["l1"], 0)
    w[...] = step / (1 + rate * n["l2"])


@_update(
    "ApplyAdamWithAmsgradV2",
    "var m v vhat beta1_power beta2_power lr beta1 beta2 epsilon grad",
    "var m v vhat",
    "grad",
)
def _amsgrad(states: Sequence[Array], g: Array, n: dict[str, float], attrs: Attrs) -> None:
    w, m, v, vhat = states
    _moments(m, v, g, n)
    np.maximum(vhat, v, out=vhat)
    rate = corrected_rate(n["lr"], n["beta1_power"], n["beta2_power"])
    w -= rate * m / (np.sqrt(vhat) + n["epsilon"])


def _moments(m: Array, v: Array, g: Array, n: dict[str, float]) -> None:
    m += (g - m) * (1 - n["beta1"])
    v += (g * g - v) * (1 - n["beta2"])


# -- updates that need whole tensors, or give the step instead of taking it ---------------------------

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


# -- LARS ---------------------------------------------------------------------------------------------

def_primitive("SquareSumAll", ("x", "y"), ("output_x", "output_y"))


@def_infer("SquareSumAll")
def _infer_square_sum_all(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 2)
    for type_, name in zip(types, ("x", "y"), strict=True):
        expect_dtype(type_, FLOATS, name)
    return tuple(TensorType(type_.dtype, ()) for type_ in types)


@def_kernel("SquareSumAll")
def _square_sum_all(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    for array, target in zip(inputs, out, strict=True):
        wide = array.astype(compute_type(array.dtype))
        np.copyto(target, np.sum(wide * wide), casting="same_kind")


_LARS = ("weight", "gradient", "norm_weight", "norm_gradient", "weight_decay", "learning_rate")
def_primitive("LARSUpdate", _LARS)


@def_infer("LARSUpdate")
def _infer_lars(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, len(_LARS))
    expect_dtype(types[0], FLOATS, "weight")
    expect_shape(types[1], types[0].shape, "gradient")
    for slot in range(2, 6):
        expect_scalar(types[slot], _LARS[slot])
    return (types[1],)


@def_kernel("LARSUpdate")
def _lars(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """(g + decay * w) * hyperpara * |w| / (|g| + decay * |w| + epsilon); the factor is 1 where either norm is 0.

    Attrs: epsilon, hyperpara, use_clip (the factor over the learning rate, at most 1).
    """
    weight, gradient = inputs[:2]
    norms = [float(np.sqrt(number_of(array))) for array in inputs[2:4]]
    decay, rate = number_of(inputs[4]), number_of(inputs[5])
    factor = 1.0
    if norms[0] > 0 and norms[1] > 0:
        factor = float(attrs["hyperpara"]) * norms[0] / (norms[1] + decay * norms[0] + float(attrs["epsilon"]))
        if attrs.get("use_clip"):
            factor = min(max(factor / rate, 0.0), 1.0) if rate else 1.0
    np.copyto(out[0], (gradient + decay * weight) * factor, casting="same_kind")


# -- AdaFactor ----------------------------------------------------------------------------------------

_ADA_FACTOR = (
    "epsilon", "clip_threshold", "beta1", "beta2t", "weight_decay", "learning_rate", "gradient", "param",
    "exp_avg", "exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq",
)  # fmt: skip
def_primitive("FusedAdaFactor", _ADA_FACTOR, mutates=(7, 8, 9, 10, 11), aliases={0: 7})


@def_infer("FusedAdaFactor")
def _infer_ada_factor(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, len(_ADA_FACTOR))
    expect(types[0].shape == (2,), "epsilon of shape (2,)", types[0].shape)
    for slot in range(1, 6):
        expect_scalar(types[slot], _ADA_FACTOR[slot])
    expect_shape(types[6], types[7].shape, "gradient")
    return (types[7],)


@def_kernel("FusedAdaFactor")
def _ada_factor(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Adam whose second moment is the product of its row and column means.

    Attrs: enable_scale_parameter, enable_first_moment, enable_weight_decay.
    Edges: weights of fewer than two axes keep the second moment itself.
    """
    states = [array.astype(compute_type(array.dtype)) for array in inputs[7:]]
    w, mean, row, column, square = states
    epsilon = [float(value) for value in inputs[0]]
    threshold, beta1, beta2, decay, rate = (number_of(array) for array in inputs[1:6])
    g = inputs[6].astype(w.dtype)
    if attrs.get("enable_scale_parameter"):
        rate *= max(epsilon[1], _root_mean_square(w))
    step = _factored_step(g, (row, column, square), epsilon[0], beta2)
    step *= rate / max(1.0, _root_mean_square(step) / threshold)
    if attrs.get("enable_first_moment"):
        mean += (step - mean) * (1 - beta1)
        step = mean
    if attrs.get("enable_weight_decay"):
        w -= w * decay * rate
    w -= step
    _written(inputs[7:], states)
    publish(inputs[7:8], out)


def _root_mean_square(array: Array) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64)))) if array.size else 0.0


def _factored_step(g: Array, moments: tuple[Any, Any, Any], epsilon: float, beta2: float) -> Array:
    """The gradient over the root of its second moment; `moments` (rows, columns, all) are moved toward its square."""
    row, column, square = moments
    new = g * g + epsilon
    if g.ndim < 2:
        square += (new - square) * (1 - beta2)
        return np.asarray(g / np.sqrt(square))
    row += (new.mean(-1) - row) * (1 - beta2)
    column += (new.mean(-2) - column) * (1 - beta2)
    rows = row / row.mean(-1, keepdims=True)
    return np.asarray(g / np.sqrt(rows)[..., None] / np.sqrt(column)[..., None, :])
