"""Conv2D and its gradients against the definition, one output element at a time."""

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
from msdump.mindspore.kernels import conv
from msdump.mindspore.kernels.conv import conv_padding
from msdump.mindspore.program.autodiff import gradients
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.interpreter import check_gradient, run_graph, run_op, type_of

Case = tuple[Array, Array, dict[str, Any]]


def plain_conv(x: Array, w: Array, attrs: dict[str, Any]) -> Array:
    """Sum over the patch under each output pixel."""
    (sh, sw), (dh, dw), groups = attrs["stride"][-2:], attrs["dilation"][-2:], attrs["group"]
    top, bottom, left, right = conv_padding(attrs, x.shape, w.shape)
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    o, depth, kh, kw = w.shape
    oh = (padded.shape[2] - (kh - 1) * dh - 1) // sh + 1
    ow = (padded.shape[3] - (kw - 1) * dw - 1) // sw + 1
    y = np.zeros((len(x), o, oh, ow))
    for n, f, r, c in np.ndindex(*y.shape):
        first = f // (o // groups) * depth
        rows, columns = slice(r * sh, r * sh + (kh - 1) * dh + 1, dh), slice(c * sw, c * sw + (kw - 1) * dw + 1, dw)
        y[n, f, r, c] = np.sum(padded[n, first : first + depth, rows, columns] * w[f])
    return y


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Operands of a convolution that fits: any stride, pad mode, dilation and group; small and odd sizes."""
    small = st.integers(1, 3)
    groups, depth, width = draw(st.sampled_from([1, 1, 2, 3])), draw(small), draw(small)
    kernel, dilation = (draw(small), draw(small)), (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    attrs: dict[str, Any] = {
        "kernel_size": kernel,
        "stride": (1, 1, draw(small), draw(small)),
        "dilation": (1, 1, *dilation),
        "group": groups,
        "out_channel": groups * width,
        "pad_mode": draw(st.sampled_from(["valid", "same", "pad", "VALID"])),
    }
    if attrs["pad_mode"] == "pad":
        attrs["pad"] = tuple(draw(st.integers(0, 2)) for _ in range(4))
    size = [(k - 1) * d + 1 + draw(st.integers(0, 4)) for k, d in zip(kernel, dilation, strict=True)]
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = random.standard_normal((draw(st.integers(0, 3)), groups * depth, *size))
    return x, random.standard_normal((groups * width, depth, *kernel)), attrs


def filter_grad(dy: Array, x: Array, w: Array, attrs: dict[str, Any]) -> Array:
    sizes = np.array(w.shape, np.int64)
    return run_op("Conv2DBackpropFilter", [dy, x, sizes], {**attrs, "filter_sizes": w.shape})[0]


def input_grad(dy: Array, x: Array, w: Array, attrs: dict[str, Any]) -> Array:
    sizes = np.array(x.shape, np.int64)
    return run_op("Conv2DBackpropInput", [dy, w, sizes], {**attrs, "input_sizes": x.shape})[0]


@settings(max_examples=50, deadline=None)
@given(cases())
def test_conv_is_its_definition(case: Case) -> None:
    x, w, attrs = case
    np.testing.assert_allclose(run_op("Conv2D", [x, w], attrs)[0], plain_conv(x, w, attrs), rtol=1e-12, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(cases())
def test_gradients_are_the_transposes_of_the_convolution(case: Case) -> None:
    """A linear map and its transpose: <conv(x, w), dy> = <x, dx> = <w, dw>, for every x and w."""
    x, w, attrs = case
    y = run_op("Conv2D", [x, w], attrs)[0]
    dy = np.asarray(np.random.default_rng(1).standard_normal(y.shape))
    product = float(np.sum(y * dy))
    np.testing.assert_allclose(float(np.sum(x * input_grad(dy, x, w, attrs))), product, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(float(np.sum(w * filter_grad(dy, x, w, attrs))), product, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("block_bytes", [1, 300, 2000])
@settings(max_examples=15, deadline=None)
@given(case=cases())
def test_results_do_not_depend_on_how_images_are_cut(block_bytes: int, case: Case) -> None:
    x, w, attrs = case
    dy = run_op("Conv2D", [x, w], attrs)[0]
    whole = dy, filter_grad(dy, x, w, attrs), input_grad(dy, x, w, attrs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conv, "BLOCK_BYTES", block_bytes)
        patch.setattr(conv, "FILTER_BLOCK_BYTES", block_bytes)
        cut = run_op("Conv2D", [x, w], attrs)[0], filter_grad(dy, x, w, attrs), input_grad(dy, x, w, attrs)
    for one, other in zip(whole, cut, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    "attrs",
    [
        {"kernel_size": (2, 3), "stride": (1, 1, 2, 1), "pad_mode": "same"},
        {"kernel_size": (2, 3), "stride": (1, 2), "pad_mode": "pad", "pad": (1, 0, 2, 1), "dilation": (1, 1, 2, 1)},
        {"kernel_size": (2, 3), "pad_mode": "valid", "group": 2},
    ],
)
def test_bprop_agrees_with_differences(attrs: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    depth = 2 // attrs.get("group", 1)
    check_gradient("Conv2D", [random.standard_normal((2, 2, 4, 5)), random.standard_normal((4, depth, 2, 3))], attrs)


@pytest.mark.parametrize("wrt", [0, 1])
def test_second_derivatives_agree_with_differences(wrt: int) -> None:
    random = np.random.default_rng(4)
    attrs = {"kernel_size": (2, 2), "stride": (1, 1, 2, 1), "pad_mode": "same"}
    x, w = random.standard_normal((2, 2, 3, 3)), random.standard_normal((3, 2, 2, 2))
    dy = random.standard_normal((2, 3, 2, 3))
    sizes = np.array(x.shape, np.int64)
    check_gradient("Conv2DBackpropInput", [dy, w, sizes], {**attrs, "input_sizes": x.shape}, wrt=[wrt])
    sizes = np.array(w.shape, np.int64)
    check_gradient("Conv2DBackpropFilter", [dy, x, sizes], {**attrs, "filter_sizes": w.shape}, wrt=[wrt])


def test_worked_example() -> None:
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    w = np.array([[1, 0], [0, -1]], np.float32).reshape(1, 1, 2, 2)
    y = run_op("Conv2D", [x, w], {"kernel_size": (2, 2), "pad_mode": "valid"})[0]
    assert y.tolist() == [[[[-4, -4], [-4, -4]]]]
    same = run_op("Conv2D", [x, w], {"kernel_size": (2, 2), "pad_mode": "same"})[0]
    assert same.tolist() == [[[[-4, -4, 2], [-4, -4, 5], [6, 7, 8]]]]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2), (np.float32, 1e-5)])
def test_narrow_dtypes_are_rounded_once(dtype: Any, tolerance: float) -> None:
    random = np.random.default_rng(5)
    x, w = random.standard_normal((2, 3, 6, 7)).astype(dtype), random.standard_normal((4, 3, 3, 3)).astype(dtype)
    attrs = {"kernel_size": (3, 3), "pad_mode": "same", "stride": (1, 1), "dilation": (1, 1), "group": 1}
    wide = x.astype(np.float64), w.astype(np.float64)
    y = run_op("Conv2D", [x, w], attrs)[0]
    expected = run_op("Conv2D", wide, attrs)[0]
    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=tolerance, atol=tolerance)
    dx, dw = input_grad(y, x, w, attrs), filter_grad(y, x, w, attrs)
    assert dx.dtype == dw.dtype == dtype
    dy = y.astype(np.float64)
    np.testing.assert_allclose(dx.astype(np.float64), input_grad(dy, *wide, attrs), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(dw.astype(np.float64), filter_grad(dy, *wide, attrs), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("hostile", [np.nan, np.inf, -np.inf])
def test_hostile_pixel_reaches_the_outputs_it_touches_and_no_other(hostile: float) -> None:
    x = np.ones((2, 1, 5, 5), np.float32)
    x[0, 0, 1, 1] = hostile
    w = np.ones((1, 1, 2, 2), np.float32)
    y = run_op("Conv2D", [x, w], {"kernel_size": (2, 2), "pad_mode": "valid"})[0]
    touched = np.zeros(y.shape, bool)
    touched[0, 0, :2, :2] = True
    np.testing.assert_array_equal(y[touched], np.full(4, hostile, np.float32))
    np.testing.assert_array_equal(y[~touched], 4)


def test_replay_gives_the_same_bits() -> None:
    random = np.random.default_rng(6)
    attrs = {"kernel_size": (3, 3), "pad_mode": "same"}
    x = random.standard_normal((7, 16, 33, 31)).astype(np.float32)
    w = random.standard_normal((24, 16, 3, 3)).astype(np.float32)
    y = run_op("Conv2D", [x, w], attrs)[0]
    first = y, filter_grad(y, x, w, attrs), input_grad(y, x, w, attrs)
    for _ in range(3):
        again = run_op("Conv2D", [x, w], attrs)[0], filter_grad(y, x, w, attrs), input_grad(y, x, w, attrs)
        for one, other in zip(first, again, strict=True):
            assert one.tobytes() == other.tobytes()


def test_backward_nodes_are_those_of_the_original() -> None:
    """Source: ms_output_trace_code_graph of MindSpore 2.0: filter first, then input, shapes as int64 constants."""
    graph = Graph()
    x, w = np.ones((2, 1, 6, 6), np.float32), np.ones((3, 1, 3, 3), np.float32)
    values = [graph.add_input("x", type_of(x)), graph.add_input("w", type_of(w))]
    attrs = {"kernel_size": (3, 3), "stride": (1, 1, 2, 2), "pad_mode": "same", "format": "NCHW", "group": 1}
    node = graph.add_node(Primitive("Conv2D", attrs), values, "Default/conv1-Conv2d")
    found = gradients(graph, node.outputs[0], values)
    backward = graph.nodes[1:]
    assert [n.op_type for n in backward] == ["Conv2DBackpropFilter", "Conv2DBackpropInput"]
    assert {n.scope for n in backward} == {"Gradients/Default/conv1-Conv2d/gradConv2D-expand"}
    assert [np.array(n.inputs[2].constant).tolist() for n in backward] == [[3, 1, 3, 3], [2, 1, 6, 6]]
    assert backward[0].primitive.attrs["pad_mode"] == "SAME"
    assert backward[0].primitive.attrs["pad_list"] == (0, 1, 0, 1)
    assert "pad_list" not in attrs
    graph.lint()
    arrays = run_graph(graph, [x, w])
    assert [arrays[value.id].shape for value in found if value is not None] == [x.shape, w.shape]


def test_no_gradient_is_made_for_an_image_that_nobody_differentiates() -> None:
    graph = Graph()
    x, w = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 3, 3), np.float32)
    values = [graph.add_input("x", type_of(x)), graph.add_input("w", type_of(w))]
    node = graph.add_node(Primitive("Conv2D", {"kernel_size": (3, 3)}), values, "")
    gradients(graph, node.outputs[0], values[1:])
    assert [n.op_type for n in graph.nodes] == ["Conv2D", "Conv2DBackpropFilter"]


@pytest.mark.parametrize(
    ("x", "w", "attrs", "message"),
    [
        ((1, 3, 5, 5), (4, 2, 3, 3), {}, "w of shape \\(4, 3"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"kernel_size": (5, 5)}, "kernel of 5 x 5"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"out_channel": 6}, "6 filters"),
        ((1, 3, 2, 5), (4, 3, 3, 3), {}, "at least 3 x 3, got 2 x 5"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"pad_mode": "full"}, 'got "full"'),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"stride": 0}, "stride"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"group": 2}, "2 groups divide"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"format": "NHWC"}, "NHWC"),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"pad_mode": "pad", "pad": (1, 1)}, "pad to be"),
        ((3, 5, 5), (4, 3, 3, 3), {}, "x of shape"),
    ],
)
def test_misfits_are_refused(x: tuple[int, ...], w: tuple[int, ...], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        run_op("Conv2D", [np.zeros(x, np.float32), np.zeros(w, np.float32)], attrs)


def test_gradient_of_another_size_is_refused() -> None:
    x, w, dy = np.zeros((1, 1, 5, 5)), np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 4, 4))
    with pytest.raises(GraphError, match="out_backprop of shape"):
        input_grad(dy, x, w, {"kernel_size": (3, 3)})
    with pytest.raises(GraphError, match="out_backprop of shape"):
        filter_grad(dy, x, w, {"kernel_size": (3, 3)})
