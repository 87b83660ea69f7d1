from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.graph.primitive import definition_of
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.optimizer import number_of
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.arrays import FLOAT_NAMES, arrays, shapes
from tests.mindspore.kernels.interpreter import run_kernel, run_op

quick = settings(max_examples=30, deadline=None)
WIDE = ["float32", "float64"]


def number(value: float) -> Array:
    return np.asarray(value, np.float32)


@st.composite
def tensors(draw: st.DrawFn, count: int, names: list[str] = WIDE) -> list[Array]:
    name, shape = draw(st.sampled_from(names)), draw(shapes())
    return [draw(arrays(name, shape, is_finite=True)) for _ in range(count)]


def close(found: Array, expected: Array) -> None:
    rtol = {2: 2.0**-7, 4: 1e-5, 8: 1e-12}[found.dtype.itemsize]
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=rtol, atol=rtol * 100)


def double(arrays: list[Array]) -> list[Array]:
    return [array.astype(np.float64) for array in arrays]


LR, MOMENTUM = 0.125, 0.5


@given(states=tensors(3, FLOAT_NAMES), is_nesterov=st.booleans(), scale=st.sampled_from([1.0, 0.25]))
@quick
def test_momentum(states: list[Array], is_nesterov: bool, scale: float) -> None:
    w, a, g = double(states)
    a = a * MOMENTUM + g * scale
    w = w - LR * (g * scale + MOMENTUM * a if is_nesterov else a)
    weight, accumulation, gradient = states
    attrs = {"use_nesterov": is_nesterov, "gradient_scale": scale}
    before = gradient.tobytes()
    (result,) = run_op("ApplyMomentum", [weight, accumulation, number(LR), gradient, number(MOMENTUM)], attrs)
    assert result is weight and gradient.tobytes() == before
    close(weight, w)
    close(accumulation, a)


@given(
    states=tensors(3),
    is_nesterov=st.booleans(),
    momentum=st.sampled_from([0.0, MOMENTUM]),
    decay=st.sampled_from([0.0, 0.25]),
)
@quick
def test_sgd_over_two_steps(states: list[Array], is_nesterov: bool, momentum: float, decay: float) -> None:
    """The first step takes the gradient itself as accumulator, the second one dampens."""
    w, a, g = double(states)
    weight, accumulation, gradient = states
    stat = np.ones_like(weight)
    attrs = {"dampening": 0.5, "weight_decay": decay, "nesterov": is_nesterov}
    for step in range(2):
        run_op("SGD", [weight, gradient, number(LR), accumulation, number(momentum), stat], attrs)
        total = g + decay * w
        if momentum:
            a = total if step == 0 else a * momentum + 0.5 * total
            total = total + momentum * a if is_nesterov else a
        w = w - LR * total
        close(weight, w)
        close(accumulation, a)
    assert np.array_equal(stat, np.ones_like(stat) if momentum == 0 else np.zeros_like(stat))


@given(states=tensors(4), is_nesterov=st.booleans())
@quick
def test_adam(states: list[Array], is_nesterov: bool) -> None:
    states[2] = np.asarray(np.abs(states[2]) + 1, states[2].dtype)
    w, m, v, g = double(states)
    beta1, beta2, epsilon = 0.5, 0.75, 0.125
    power1, power2 = 0.25, 0.5625
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    rate = LR * np.sqrt(1 - power2) / (1 - power1)
    w = w - rate * (beta1 * m + (1 - beta1) * g if is_nesterov else m) / (np.sqrt(v) + epsilon)
    scalars = [number(value) for value in (power1, power2, LR, beta1, beta2, epsilon)]
    results = run_op("Adam", [*states[:3], *scalars, states[3]], {"use_nesterov": is_nesterov})
    for result, expected in zip(results, (w, m, v), strict=True):
        close(result, expected)


@given(states=tensors(4))
@quick
def test_adam_weight_decay(states: list[Array]) -> None:
    states[2] = np.asarray(np.abs(states[2]) + 1, states[2].dtype)
    w, m, v, g = double(states)
    m = 0.5 * m + 0.5 * g
    v = 0.75 * v + 0.25 * g * g
    w = w - LR * (m / (np.sqrt(v) + 0.125) + 0.25 * w)
    scalars = [number(value) for value in (LR, 0.5, 0.75, 0.125, 0.25)]
    for result, expected in zip(run_op("AdamWeightDecay", [*states[:3], *scalars, states[3]]), (w, m, v), strict=True):
        close(result, expected)


@given(states=tensors(5), is_centered=st.booleans())
@quick
def test_rms_prop(states: list[Array], is_centered: bool) -> None:
    weight, mean, square, moment, gradient = states
    np.abs(square, out=square)
    square += 20001  # above the square of any mean
    w, a, s, mom, g = double(states)
    attrs = {"rho": 0.5, "momentum": 0.25, "epsilon": 0.125}
    s = 0.5 * s + 0.5 * g * g
    a = 0.5 * a + 0.5 * g
    mom = 0.25 * mom + LR * g / np.sqrt(s - a * a + 0.125 if is_centered else s + 0.125)
    if is_centered:
        run_op("ApplyCenteredRMSProp", [weight, mean, square, moment, gradient, number(LR)], attrs)
        close(mean, a)
    else:
        run_op("ApplyRMSProp", [weight, square, moment, number(LR), gradient], attrs)
    close(square, s)
    close(moment, mom)
    close(weight, w - mom)


def test_blocks_do_not_show() -> None:
    """A weight of many blocks gets the bits of the plain formula."""
    rng = np.random.default_rng(2)
    weight, accumulation, gradient = (rng.standard_normal(200_003).astype(np.float32) for _ in range(3))
    momentum, rate = np.float32(0.9), np.float32(0.1)
    a = accumulation * momentum + gradient
    w = weight - a * rate
    run_op("ApplyMomentum", [weight, accumulation, rate, gradient, momentum])
    assert weight.tobytes() == w.tobytes() and accumulation.tobytes() == a.tobytes()


def test_half_weights_compute_in_float32() -> None:
    weight, accumulation = np.full(3, 1.0, ml_dtypes.bfloat16), np.zeros(3, ml_dtypes.bfloat16)
    gradient = np.full(3, 1.0, ml_dtypes.bfloat16)
    run_op("ApplyMomentum", [weight, accumulation, number(0.1), gradient, number(0.9)])
    assert weight.astype(np.float32).tolist() == np.full(3, 0.9, ml_dtypes.bfloat16).astype(np.float32).tolist()


def test_a_weight_that_does_not_lie_flat_is_written_too() -> None:
    base = np.ones((4, 6), np.float32)
    weight, accumulation = base[:, ::2], np.zeros((3, 4), np.float32).T
    out = np.empty((4, 3), np.float32)
    arrays = [weight, accumulation, number(0.5), np.ones((4, 3), np.float32), number(0.0)]
    definition_of("ApplyMomentum").kernels["numpy"](arrays, {}, [out])
    assert np.array_equal(out, np.full((4, 3), 0.5)) and np.array_equal(weight, out)
    assert np.array_equal(base[:, 1::2], np.ones((4, 3))) and np.array_equal(accumulation, np.ones((4, 3)))


def test_rate_of_shape_one() -> None:
    weight = np.ones(2, np.float32)
    run_op(
        "ApplyMomentum",
        [weight, np.zeros(2, np.float32), np.array([0.5], np.float32), np.ones(2, np.float32), number(0.0)],
    )
    assert weight.tolist() == [0.5, 0.5]


@given(data=st.data(), op_type=st.sampled_from(["Assign", "AssignAdd", "AssignSub"]))
@quick
def test_assignments(data: st.DataObject, op_type: str) -> None:
    ref, value = data.draw(tensors(2, ["float32", "bfloat16", "int32"] + FLOAT_NAMES))
    if data.draw(st.booleans()):
        value = value.reshape(-1)[:1] if value.size else np.ones(1, value.dtype)
    expected = {"Assign": 0 * ref + value, "AssignAdd": ref + value, "AssignSub": ref - value}[op_type]
    (result,) = run_op(op_type, [ref, value])
    assert result is ref
    np.testing.assert_array_equal(ref.astype(np.float64), np.asarray(expected.reshape(ref.shape), np.float64))


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


REFUSED: list[tuple[str, list[TensorType], dict[str, Any], str]] = [
    ("Assign", [f32(2), f32(3)], {}, r"value of shape \(2,\), got \(3,\)"),
    ("Assign", [f32(2), TensorType("int32", (2,))], {}, "one dtype"),
    ("AssignAdd", [TensorType("bool", ()), TensorType("bool", ())], {}, "ref of dtype"),
    ("ApplyMomentum", [f32(2), f32(3), f32(), f32(2), f32()], {}, r"accumulation of shape \(2,\), got \(3,\)"),
    ("ApplyMomentum", [f32(2), f32(2), f32(2), f32(2), f32()], {}, r"learning_rate of shape \(\) or \(1,\)"),
    ("ApplyMomentum", [f32(2)] * 4, {}, "expected 5 operands, got 4"),
    ("Adam", [TensorType("int32", (2,))] * 10, {}, "var of dtype"),
    ("ApplyRMSProp", [f32(2), f32(2), f32(2), f32(), f32(2)], {"rho": 0.9}, "attribute momentum"),
]


@pytest.mark.parametrize(("op_type", "types", "attrs", "message"), REFUSED)
def test_operands_that_do_not_fit(op_type: str, types: list[TensorType], attrs: dict[str, Any], message: str) -> None:
    infer = definition_of(op_type).infer
    assert infer is not None
    with pytest.raises(GraphError, match=message):
        infer(types, attrs)


def test_an_update_is_a_version_of_its_parameter() -> None:
    """What graph/ reads: an update writes its states and its result is the weight's memory."""
    row = definition_of("ApplyMomentum")
    assert (row.mutates, row.aliases, row.has_side_effect) == ((0, 1), {0: 0}, True)
    assert definition_of("Adam").aliases == {0: 0, 1: 1, 2: 2}
    assert definition_of("SGD").mutates == (0, 3, 5)
    weight = np.ones(2, np.float32)
    out = run_kernel("Assign", [weight, np.zeros(2, np.float32)], {}, "numpy")
    assert out[0] is weight


@pytest.mark.parametrize("shape", [(0,), (2,)])
def test_a_scalar_operand_is_one_number(shape: tuple[int, ...]) -> None:
    with pytest.raises(GraphError, match=re.escape(f"expected one number, got an array of shape {shape}")):
        number_of(np.ones(shape, np.float32))
    assert number_of(np.full((1,), 2, np.float32)) == 2
