"""Views, parts, joins and paddings as GE operators: spelled as TorchAir does, equal to eager."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torchair.ge_exact import check_exactly, check_traced, types  # noqa: E402

aten = torch.ops.aten
X = torch.arange(24.0).reshape(2, 3, 4)
ONE = torch.arange(4.0).reshape(1, 4, 1)
SCALAR = torch.tensor(2.5)
EMPTY = torch.empty(0, 3)
BOOL = torch.tensor([[True, False, True], [False, False, True]])
HALF = X.half()

CASES = [
    (aten.view.default, (X, [4, -1]), "Reshape(x,shape)"),
    (aten.view.default, (SCALAR, [1, 1]), "Reshape(x,shape)"),
    (aten.reshape.default, (X.transpose(0, 1), [6, 4]), "Reshape(x,shape)"),
    (aten._unsafe_view.default, (X, [24]), "Reshape(x,shape)"),
    (aten._reshape_alias.default, (X, [6, 4], [4, 1]), "Reshape(x,shape)"),
    (aten.view.dtype, (X, torch.int32), "Bitcast(x)"),
    (aten.view.dtype, (X, torch.uint8), "Bitcast(x)"),
    (aten.permute.default, (X, [2, -3, 1]), "Transpose(x,perm)"),
    (aten.permute.default, (SCALAR, []), "Transpose(x,perm)"),
    (aten.transpose.int, (X, 0, -1), "Transpose(x,perm)"),
    (aten.t.default, (X[0],), "Transpose(x,perm)"),
    (aten.t.default, (X[0, 0],), "Transpose(x,perm)"),
    (aten.expand.default, (ONE, [3, -1, 5]), "BroadcastTo(x,shape)"),
    (aten.expand.default, (SCALAR, [2, 2]), "BroadcastTo(x,shape)"),
    (aten.squeeze.default, (ONE,), "Squeeze(x)"),
    (aten.squeeze.dim, (ONE, -1), "Squeeze(x)"),
    (aten.squeeze.dim, (X, 1), "Identity(x)"),
    (aten.squeeze.dim, (SCALAR, 0), "Identity(x)"),
    (aten.squeeze.dims, (ONE, [0, 1, 2]), "Squeeze(x)"),
    (aten.unsqueeze.default, (X, -1), "Unsqueeze(x)"),
    (aten.unsqueeze.default, (SCALAR, 0), "Unsqueeze(x)"),
    (aten.as_strided.default, (X, [2, 2], [12, 1], 3), "AsStrided(x,size,stride,storage_offset)"),
    (aten.slice.Tensor, (X, 1, 1, 2**63 - 1), "StridedSliceV2(x,begin,end,axes,strides)"),
    (aten.slice.Tensor, (X, -1, -3, -1, 2), "StridedSliceV2(x,begin,end,axes,strides)"),
    (aten.slice.Tensor, (X,), "StridedSliceV2(x,begin,end,axes,strides)"),
    (aten.select.int, (X, 1, -1), "GatherV2(x,indices,axis)"),
    (aten.select.int, (BOOL, -1, 0), "GatherV2(x,indices,axis)"),
    (
        aten.slice_scatter.default,
        (X, -X[:, :2], 1, 0, 2),
        "StridedSliceAssignV2(var,input_value,begin,end,axes,strides)",
    ),
    (
        aten.select_scatter.default,
        (X, -X[:, 0], 1, -1),
        "Unsqueeze(x) StridedSliceAssignV2(var,input_value,begin,end,axes,strides)",
    ),
    (
        aten.slice_backward.default,
        (X[:, 1:], [2, 3, 4], 1, 1, 2**63 - 1, 1),
        "StridedSliceV2Grad(shape,begin,end,strides,dy,axes)",
    ),
    (
        aten.select_backward.default,
        (X[0], [3, 4, 3], 2, -2),
        "Unsqueeze(x) StridedSliceV2Grad(shape,begin,end,strides,dy,axes)",
    ),
    (aten.cat.default, ([X, X, HALF], -1), "Cast(x) ConcatV2(x0,x1,x2,concat_dim)"),
    (aten.cat.default, ([X, torch.empty(0)], 0), "ConcatV2(x0,x1,concat_dim)"),
    (aten.stack.default, ([X, X], -1), "Pack(x0,x1)"),
    (aten.stack.default, ([SCALAR, SCALAR],), "Pack(x0,x1)"),
    (aten.split.Tensor, (X, 3, -1), "Pack(x0,x1) Cast(x) SplitV(x,size_splits,split_dim)"),
    (aten.split.Tensor, (X, 9, 1), "Pack(x0) Cast(x) SplitV(x,size_splits,split_dim)"),
    (aten.split_with_sizes.default, (X, [1, 0, 3], 2), "SplitV(x,size_splits,split_dim)"),
    (aten.unbind.int, (X, 1), "Unpack(x)"),
    (aten.unbind.int, (ONE,), "Unpack(x)"),
    (aten.repeat.default, (X, [2, 1, 1, 2]), "Tile(x,multiples)"),
    (aten.flip.default, (X, [0, -1]), "ReverseV2(x,axis)"),
    (aten.flip.default, (SCALAR, []), "ReverseV2(x,axis)"),
    (aten.roll.default, (X, [1, -2], [0, 2]), "Roll(x)"),
    (aten.roll.default, (X, [5]), "Roll(x)"),
    (aten.tril.default, (X, -1), "Tril(x)"),
    (aten.triu.default, (BOOL, 1), "Triu(x)"),
    (aten.constant_pad_nd.default, (X, [1, 2, 0, -1], 0.1), "PadV3(x,paddings,constant_values)"),
    (aten.constant_pad_nd.default, (HALF, [0, 1], 0.1), "PadV3(x,paddings,constant_values)"),
    (aten.constant_pad_nd.default, (BOOL, [0, 1]), "PadV3(x,paddings,constant_values)"),
    (aten.constant_pad_nd.default, (EMPTY, [0, 0, 1, 1], 7.0), "PadV3(x,paddings,constant_values)"),
    (aten.reflection_pad1d.default, (X, [1, 2]), "PadV3(x,paddings,constant_values?)"),
    (aten.reflection_pad2d.default, (X[None], [1, 0, 0, 1]), "PadV3(x,paddings,constant_values?)"),
    (aten.reflection_pad2d.default, (X, [1, 1, 1, 1]), "PadV3(x,paddings,constant_values?)"),
    (aten.replication_pad2d.default, (X[None], [0, 0, 2, 1]), "PadV3(x,paddings,constant_values?)"),
    (aten.replication_pad3d.default, (X[None, None], [1, 1, 1, 1, 1, 1]), "PadV3(x,paddings,constant_values?)"),
    (aten.reflection_pad1d_backward.default, (torch.randn(2, 3, 7), X, [1, 2]), "PadV3Grad(x,paddings)"),
    (
        aten.replication_pad2d_backward.default,
        (torch.randn(1, 2, 6, 5), X[None], [1, 0, 2, 1]),
        "PadV3Grad(x,paddings)",
    ),
    (aten.clone.default, (X.transpose(0, 1),), "Identity(x)"),
    (aten.detach.default, (X,), "Identity(x)"),
    (aten.alias.default, (X,), "Identity(x)"),
    (aten.lift_fresh_copy.default, (X,), "Identity(x)"),
    (aten.copy.default, (X, HALF[0, 0]), "Cast(x) Shape(x) BroadcastTo(x,shape) Identity(x)"),
    (aten.unfold.default, (X, -1, 2, 1), "GatherV2(x,indices,axis) Transpose(x,perm)"),
    (aten.diagonal.default, (X, 1, -2, -1), "MatrixDiagPartV3(input,k)"),
    (aten.diagonal.default, (X, -1, 2, 0), "Transpose(x,perm) MatrixDiagPartV3(input,k)"),
    (
        aten.diagonal_backward.default,
        (X[:, :, 0], [4, 2, 3], 1, 2, 0),
        "Fill(dims,value) MatrixSetDiagV3(input,diagonal,k) Transpose(x,perm)",
    ),
    (
        aten.diagonal_backward.default,
        (X[0], [3, 4, 5], 0, 1, 2),
        "Fill(dims,value) MatrixSetDiagV3(input,diagonal,k)",
    ),
    (aten.pixel_shuffle.default, (X.view(1, 4, 2, 3), 2), "PixelShuffle(x)"),
    (aten.pixel_unshuffle.default, (X.view(1, 1, 4, 6), 2), "PixelUnshuffle(x)"),
]


@pytest.mark.parametrize(("target", "args", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_is_spelled_and_computed(target: Any, args: Any, spelled: str) -> None:
    check_exactly(target, args, spelled)


@pytest.mark.parametrize(
    ("args", "named", "spelled"),
    [
        ((X,), {"dtype": torch.float16}, "Cast(x)"),
        ((X,), {"dtype": torch.bool}, "Cast(x)"),
        ((BOOL,), {"dtype": torch.bfloat16}, "Cast(x)"),
        ((X,), {"dtype": torch.float32}, "Identity(x)"),
        ((X[None],), {"memory_format": torch.channels_last}, "Identity(x)"),
        ((X[None],), {"dtype": torch.float64, "memory_format": torch.channels_last}, "Cast(x) Identity(x)"),
        ((SCALAR,), {"dtype": torch.int64}, "Cast(x)"),
    ],
)
def test_conversions(args: Any, named: Any, spelled: str) -> None:
    check_exactly(aten._to_copy.default, args, spelled, **named)


def test_clones_lie_as_asked_and_aliases_are_no_copies() -> None:
    from msdump.torchair.ge.program import runnable
    from tests.torchair.ge_calls import graph_of

    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    for named in ({}, {"memory_format": torch.contiguous_format}, {"memory_format": torch.channels_last}):
        given = x.transpose(1, 2)
        (copy,) = runnable(graph_of(aten.clone.default, given, **named)[0])([given])
        assert copy.stride() == given.clone(**named).stride() and copy.data_ptr() != x.data_ptr()
    for target, args in ((aten.detach.default, ()), (aten.view.default, ([24],)), (aten.select.int, (0, 0))):
        (view,) = runnable(graph_of(target, x, *args)[0])([x])
        assert view.data_ptr() == x.data_ptr() and view is not x


def test_what_has_no_elements_is_a_constant() -> None:
    graph = check_traced(lambda x, y: (x[:, :0] * 2, x + y[:, :0].sum()), X, X)
    assert [op.type for op in graph.ops].count("Const") >= 1
    assert "StridedSliceV2" not in types(graph) and "Mul" not in types(graph)
    first = graph.outputs[0]
    assert first.op.type == "Const" and first.fx_name.startswith("mul-aten.mul.Tensor")


def test_a_constant_result_is_a_new_tensor_each_time() -> None:
    from msdump.torchair.ge.program import runnable

    run = runnable(check_traced(lambda x: x[:0] * 2, X))
    (first,), (second,) = run([X]), run([X])
    assert first is not second


def test_open_sizes() -> None:
    def function(x: Any, y: Any) -> Any:
        rows = x.shape[0]
        parts = y.split(rows, 1)
        flat = x.view(rows * x.shape[1], -1)
        return (
            flat[rows:].t(),
            parts[-1],
            x[:, 1 : x.shape[1] - 1],
            x.select(0, rows - 1),
            x.expand(2, *x.shape).flatten(),
            x.repeat(rows, 1, 1),
            torch.nn.functional.pad(x, (0, rows)),
            torch.nn.functional.pad(x, (rows - 1, 1), mode="reflect"),
            torch.cat([x, x[:1]]),
            x.unbind(-1)[0],
        )

    def given(rows: int) -> Any:
        return torch.randn(rows, 5, 6), torch.randn(2, 3 * rows - 1)

    graph = check_traced(function, *given(4), also=[given(3), given(5)], symbolic=True)
    assert {"Shape", "Gather", "Pack", "Mul", "Sub"} <= set(types(graph))
