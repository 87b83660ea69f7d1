"""MatMul and BatchMatMul against einsum."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.mindspore.program.autodiff import gradients
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.interpreter import check_gradient, run_op, type_of


def operands(seed: int, sizes: tuple[int, int, int], is_a: bool, is_b: bool) -> tuple[Array, Array]:
    random, (m, k, n) = np.random.default_rng(seed), sizes
    return random.standard_normal((k, m) if is_a else (m, k)), random.standard_normal((n, k) if is_b else (k, n))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), st.tuples(*[st.integers(0, 20)] * 3), st.booleans(), st.booleans())
def test_matmul_is_its_definition(seed: int, sizes: tuple[int, int, int], is_a: bool, is_b: bool) -> None:
    a, b = operands(seed, sizes, is_a, is_b)
    y = run_op("MatMul", [a, b], {"transpose_a": is_a, "transpose_b": is_b})[0]
    expected = np.einsum(f"{'km' if is_a else 'mk'},{'nk' if is_b else 'kn'}->mn", a, b)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("is_a", [False, True])
@pytest.mark.parametrize("is_b", [False, True])
def test_bprop_agrees_with_differences(is_a: bool, is_b: bool) -> None:
    attrs = {"transpose_a": is_a, "transpose_b": is_b}
    a, b = operands(1, (2, 3, 4), is_a, is_b)
    check_gradient("MatMul", [a, b], attrs)
    check_gradient("BatchMatMul", [np.stack([a, 2 * a, a]), np.stack([[b]] * 2)], attrs)


def test_batches_broadcast() -> None:
    random = np.random.default_rng(2)
    a, b = random.standard_normal((2, 1, 3, 4)), random.standard_normal((5, 4, 2))
    np.testing.assert_allclose(run_op("BatchMatMul", [a, b])[0], np.einsum("bxij,xjk->bxik", a.repeat(5, 1), b))


def test_backward_of_a_dense_layer_is_the_original_s() -> None:
    """Source: MindSpore 2.0 IR of LeNet: dx = MatMul(dy, w), dw = MatMul(dy, x) with transpose_a."""
    graph = Graph()
    x, w = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    values = [graph.add_input("x", type_of(x)), graph.add_input("w", type_of(w))]
    node = graph.add_node(Primitive("MatMul", {"transpose_a": False, "transpose_b": True}), values, "Default/fc")
    gradients(graph, node.outputs[0], values)
    dx, dw = graph.nodes[1:]
    assert dx.primitive.attrs == {"transpose_a": False, "transpose_b": False}
    assert dw.primitive.attrs == {"transpose_a": True, "transpose_b": False}
    assert dx.inputs[1] is values[1]
    assert dw.inputs[1] is values[0]
    assert dx.inputs[0] is dw.inputs[0]
    assert dx.scope == "Gradients/Default/fc/gradMatMul-expand"


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 5e-3), (ml_dtypes.bfloat16, 5e-2)])
def test_narrow_dtypes_accumulate_in_float32(dtype: Any, tolerance: float) -> None:
    """4096 ones are beyond what a float16 or bfloat16 sum of ones can reach."""
    ones = np.ones((2, 4096), dtype)
    assert run_op("MatMul", [ones, ones], {"transpose_b": True})[0].astype(np.float64).tolist() == [[4096] * 2] * 2
    random = np.random.default_rng(3)
    a, b = random.standard_normal((3, 50)).astype(dtype), random.standard_normal((50, 40)).astype(dtype)
    y = run_op("MatMul", [a, b])[0]
    assert y.dtype == dtype
    np.testing.assert_allclose(
        y.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), rtol=tolerance, atol=tolerance
    )


def test_hostile_values_stay_in_their_row() -> None:
    a = np.ones((3, 4), np.float32)
    a[1, 2] = np.nan
    y = run_op("MatMul", [a, np.ones((4, 40), np.float32)])[0]
    assert np.isnan(y[1]).all()
    assert (y[[0, 2]] == 4).all()


def test_misfits_are_refused() -> None:
    with pytest.raises(GraphError, match="x2 with 3 rows"):
        run_op("MatMul", [np.zeros((2, 3)), np.zeros((2, 3))])
    with pytest.raises(GraphError, match="x1 with 2 dimensions"):
        run_op("MatMul", [np.zeros((2, 3, 4)), np.zeros((4, 3))])
    with pytest.raises(GraphError, match="one dtype"):
        run_op("MatMul", [np.zeros((2, 3)), np.zeros((3, 3), np.float32)])
    with pytest.raises(GraphError, match="broadcast"):
        run_op("BatchMatMul", [np.zeros((2, 3, 4)), np.zeros((3, 4, 5))])
