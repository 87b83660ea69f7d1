"""Weight updates that need whole tensors, or give the step instead of taking it.

Source: the formulas of MindSpore's operators of these names; `nn.Lamb` and `nn.LARS` have none on a CPU there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_scalar, expect_shape
from msdump.mindspore.kernels.optimizer import corrected_rate, def_update, number_of
from msdump.mindspore.kernels.program import publish
from msdump.mindspore.kernels.torch_operator import torch_operator
from msdump.mindspore.kernels.workspace import compute_type
from msdump.tensors.arrays import Array


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


# -- LARS ---------------------------------------------------------------------------------------------


def _infer_square_sum_all(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 2)
    for type_, name in zip(types, ("x", "y"), strict=True):
        expect_dtype(type_, FLOATS, name)
    return tuple(TensorType(type_.dtype, ()) for type_ in types)


@torch_operator("SquareSumAll", "x y", "output_x output_y", infer=_infer_square_sum_all)
def _square_sum_all(torch: Any, x: Any, y: Any) -> Any:
    return (x * x).sum(), (y * y).sum()


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
    shape = types[7].shape
    expect_shape(types[6], shape, "gradient")
    if attrs.get("enable_first_moment"):
        expect_shape(types[8], shape, "exp_avg")
    if len(shape) < 2:
        expect_shape(types[11], shape, "exp_avg_sq")
    else:
        expect_shape(types[9], shape[:-1], "exp_avg_sq_row")
        expect_shape(types[10], (*shape[:-2], shape[-1]), "exp_avg_sq_col")
    return (types[7],)


@def_kernel("FusedAdaFactor")
def _ada_factor(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Adam whose second moment is the product of its row and column means.

    Attrs: enable_scale_parameter, enable_first_moment, enable_weight_decay.
    Edges: weights of fewer than two axes keep the second moment itself; without elements nothing changes, as their rows
    and columns have no mean.
    """
    if not inputs[7].size:
        publish(inputs[7:8], out)
        return
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
