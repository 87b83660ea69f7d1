"""Convolution and pooling as GE operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_calls import check, graph_of  # noqa: E402

aten = torch.ops.aten

# x, weight, then: stride, padding, dilation, transposed, output padding, groups
CONVOLUTIONS: dict[str, tuple[Any, ...]] = {
    "2d": ((2, 4, 8, 9), (6, 4, 3, 3), [2, 1], [1, 0], [1, 1], False, [0, 0], 1),
    "2d one number": ((2, 4, 8, 9), (6, 4, 3, 3), [2], [1], [1], False, [0], 1),
    "2d grouped dilated": ((2, 4, 8, 9), (6, 2, 3, 3), [1, 1], [1, 0], [2, 2], False, [0, 0], 2),
    "2d depthwise": ((2, 4, 8, 9), (4, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 4),
    "2d transposed": ((2, 4, 8, 9), (4, 6, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 0], 1),
    "2d transposed grouped": ((2, 4, 8, 9), (4, 3, 3, 2), [2, 1], [1, 0], [1, 2], True, [0, 0], 2),
    "1d": ((2, 4, 9), (6, 4, 3), [2], [1], [1], False, [0], 1),
    "1d transposed": ((2, 4, 9), (4, 6, 3), [2], [1], [1], True, [1], 1),
    "3d": ((2, 4, 5, 6, 7), (6, 4, 3, 3, 3), [1, 2, 1], [1, 0, 1], [1, 1, 1], False, [0, 0, 0], 1),
    "3d transposed": ((2, 4, 3, 4, 5), (4, 6, 2, 3, 3), [1, 2, 1], [1, 0, 1], [1, 1, 1], True, [0, 1, 0], 1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_and_its_gradients(name: str) -> None:
    x_shape, weight_shape, *rest = CONVOLUTIONS[name]
    transposed, groups = rest[3], rest[-1]
    channels = weight_shape[1] * groups if transposed else weight_shape[0]
    x, weight, bias = torch.randn(x_shape), torch.randn(weight_shape), torch.randn(channels)
    kind = "Conv3D" if name.startswith("3d") else "Conv2D"
    widen, narrow = ("Unsqueeze(x) ", " Squeeze(x)") if name.startswith("1d") else ("", "")
    call = f"{kind}Transpose(input_size,x," if transposed else f"{kind}(x,"
    check(aten.convolution.default, x, weight, bias, *rest, spelled=f"{widen * 2}{call}filter,bias,offset_w?){narrow}")
    check(aten.convolution.default, x, weight, None, *rest, spelled=f"{widen * 2}{call}filter,bias?,offset_w?){narrow}")

    dy = torch.randn(aten.convolution.default(x, weight, None, *rest).shape)
    dx = f"{kind}(x,filter,bias?,offset_w?)" if transposed else f"{kind}BackpropInput(size,filter,dy)"
    dw = f"Shape(x) {kind}BackpropFilter(x,size,dy)"
    check(
        aten.convolution_backward.default, dy, x, weight, [channels], *rest, [True, True, True],
        spelled=f"{widen * 3}{dx} {dw} ReduceSum(x,axes){narrow * 2}",
    )  # fmt: skip
    check(
        aten.convolution_backward.default, dy, x, weight, None, *rest, [False, True, False],
        spelled=f"{widen * 3}{dw}{narrow}",
    )  # fmt: skip


def test_convolution_says_what_it_does_per_axis() -> None:
    x, weight = torch.randn(2, 4, 8, 9), torch.randn(6, 2, 3, 3)
    graph, _ = graph_of(aten.convolution.default, x, weight, None, [2, 1], [1, 0], [1, 2], False, [0, 0], 2)
    op = next(op for op in graph.ops if op.type == "Conv2D")
    assert op.attrs == {
        "strides": [1, 1, 2, 1],
        "pads": [1, 1, 0, 0],
        "dilations": [1, 1, 1, 2],
        "groups": 2,
        "data_format": "NCHW",
    }


@pytest.mark.parametrize(
    "window",
    [
        ([3, 3], [2, 2], [1, 1], [1, 1], False),
        ([2], [], [0], [1], True),
        ([3, 2], [1, 2], [1, 0], [2, 1], True),
    ],
)
@pytest.mark.parametrize("shape", [(2, 4, 8, 9), (4, 8, 9)])
def test_max_pooling(window: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    spelled = "MaxPoolWithArgmaxV1(x) Identity(x) Cast(x)"
    check(aten.max_pool2d_with_indices.default, x, *window, spelled=spelled)
    y, indices = aten.max_pool2d_with_indices.default(x, *window)
    spelled = "MaxPoolWithArgmaxV1(x) MaxPoolGradWithArgmaxV1(x,grad,argmax)"
    check(aten.max_pool2d_with_indices_backward.default, torch.randn(y.shape), x, *window, indices, spelled=spelled)


@pytest.mark.parametrize(
    "window",
    [
        ([2, 2], [2, 2], [0, 0], False, True, None),
        ([3], [2], [1], True, False, None),
        ([3, 2], [1, 2], [1, 0], False, True, 5),
    ],
)
def test_average_pooling(window: tuple[Any, ...]) -> None:
    x = torch.randn(2, 4, 8, 9)
    check(aten.avg_pool2d.default, x, *window, spelled="AvgPoolV2(x)")
    dy = torch.randn(aten.avg_pool2d.default(x, *window).shape)
    check(aten.avg_pool2d_backward.default, dy, x, *window, spelled="AvgPoolV2Grad(orig_input_shape,input_grad)")


def test_average_pooling_to_a_size() -> None:
    x = torch.randn(2, 4, 8, 9)
    check(aten.avg_pool2d.default, x, [2], spelled="AvgPoolV2(x)")
    check(aten._adaptive_avg_pool2d.default, x, [3, 4], spelled="AdaptiveAvgPool2d(x)")
    check(
        aten._adaptive_avg_pool2d_backward.default, torch.randn(2, 4, 3, 4), x,
        spelled="AdaptiveAvgPool2dGrad(input_grad,orig_input_shape)",
    )  # fmt: skip


def test_max_pooling_to_a_size() -> None:
    x = torch.randn(2, 4, 8, 9)
    check(aten.adaptive_max_pool2d.default, x, [3, 4], spelled="AdaptiveMaxPool2d(x) Cast(x)")
    y, indices = aten.adaptive_max_pool2d.default(x, [3, 4])
    given = (torch.randn(y.shape), x, indices)
    check(aten.adaptive_max_pool2d_backward.default, *given, spelled="AdaptiveMaxPool2dGrad(x,grad,argmax)")


def test_pooling_says_its_window() -> None:
    x = torch.randn(2, 4, 8, 9)
    graph, _ = graph_of(aten.max_pool2d_with_indices.default, x, [3, 2], [], [1, 0], [1])
    assert graph.ops[1].attrs == {
        "ksize": [1, 3, 2, 1],
        "strides": [1, 3, 2, 1],
        "pads": [1, 1, 0, 1],
        "dilation": [1, 1, 1, 1],
        "ceil_mode": False,
    }
    graph, _ = graph_of(aten.avg_pool2d.default, x, [3], [2], [1], True, False)
    assert graph.ops[1].attrs == {
        "ksize": [1, 1, 3, 3],
        "strides": [1, 1, 2, 2],
        "padding_mode": "CALCULATED",
        "pads": [1, 1, 1, 1],
        "data_format": "NCHW",
        "global_pooling": False,
        "ceil_mode": True,
        "exclusive": True,
    }
