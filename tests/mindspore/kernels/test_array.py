from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import ExecutionError, GraphError
from msdump.graph.primitive import definition_of
from msdump.graph.types import TensorType
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.arrays import FLOAT_NAMES, INT_NAMES, any_array, arrays, assert_same, shapes
from tests.mindspore.kernels.interpreter import run_op

quick = settings(max_examples=30, deadline=None)
ALL = [*FLOAT_NAMES, *INT_NAMES, "bool"]


@given(data=st.data())
@quick
def test_views_show_the_same_memory(data: st.DataObject) -> None:
    x = data.draw(any_array(ALL))
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    expanded = run_op("ExpandDims", [x], {"axis": axis})[0]
    assert expanded.shape == np.expand_dims(x, axis).shape and expanded.base is not None
    assert run_op("Squeeze", [expanded], {"axis": axis})[0].shape == x.shape
    assert run_op("Squeeze", [expanded])[0].shape == np.squeeze(x).shape
    flat = run_op("Reshape", [x], {"shape": (-1,)})[0] if x.size else x.reshape(-1)
    assert flat.tobytes() == x.tobytes()
    if x.ndim:
        assert run_op("Flatten", [x])[0].shape == (x.shape[0], int(np.prod(x.shape[1:])))


@given(data=st.data())
@quick
def test_transpose(data: st.DataObject) -> None:
    x = data.draw(any_array(ALL))
    perm = tuple(data.draw(st.permutations(range(x.ndim))))
    assert_same(run_op("Transpose", [x], {"perm": perm})[0], x.transpose(perm))


@given(data=st.data())
@quick
def test_join_and_cut_are_inverse(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ALL))
    shape = data.draw(shapes(min_ndim=1))
    parts = [data.draw(arrays(name, shape)) for _ in range(data.draw(st.integers(1, 3)))]
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    joined = run_op("Concat", parts, {"axis": axis})[0]
    assert_same(joined, np.concatenate(parts, axis))
    cut = run_op("Split", [joined], {"axis": axis, "output_num": len(parts)})
    stacked = run_op("Stack", parts, {"axis": axis})[0]
    assert_same(stacked, np.stack(parts, axis))
    for part, again, single in zip(parts, cut, run_op("Unstack", [stacked], {"axis": axis}), strict=True):
        assert_same(again, part)
        assert_same(single, part)


@given(data=st.data())
@quick
def test_repeat(data: st.DataObject) -> None:
    x = data.draw(any_array(ALL))
    multiples = tuple(data.draw(st.lists(st.integers(1, 3), min_size=x.ndim, max_size=x.ndim + 1)))
    assert_same(run_op("Tile", [x], {"multiples": multiples})[0], np.tile(x, multiples) if multiples else x)
    shape = (2, *(3 if size == 1 else size for size in x.shape))
    kept = (2, *(3 if size == 1 else -1 for size in x.shape))
    assert_same(run_op("BroadcastTo", [x], {"shape": kept})[0], np.broadcast_to(x, shape))


@given(x=any_array(ALL), name=st.sampled_from(ALL))
@quick
def test_cast(x: Array, name: str) -> None:
    with np.errstate(all="ignore"):
        expected = x.astype(dtypes.dtype(name).numpy)
    found = run_op("Cast", [x], {"dtype": name})[0]
    if x.dtype.kind in "biu" or dtypes.dtype(name).is_float or name == "bool":
        assert_same(found, expected)
    else:
        inside = np.abs(x.astype(np.float64)) < 100  # NaN and what does not fit are the machine's own
        if name.startswith("u"):
            inside &= x.astype(np.float64) > -1
        assert np.array_equal(found[inside], expected[inside])


@given(data=st.data())
@quick
def test_strided_slice_is_numpy_indexing(data: st.DataObject) -> None:
    x = data.draw(any_array(["float32", "bfloat16"], min_ndim=1))
    bound = st.integers(-6, 6)
    count = data.draw(st.integers(1, x.ndim))
    begin, end = (tuple(data.draw(bound) for _ in range(count)) for _ in range(2))
    strides = tuple(data.draw(st.sampled_from([1, 2, -1, -3])) for _ in range(count))
    begin_mask, end_mask = data.draw(st.integers(0, 7)), data.draw(st.integers(0, 7))
    index = tuple(
        slice(None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e, s)
        for i, (b, e, s) in enumerate(zip(begin, end, strides, strict=True))
    )
    attrs = {"begin": begin, "end": end, "strides": strides, "begin_mask": begin_mask, "end_mask": end_mask}
    part = run_op("StridedSlice", [x], attrs)[0]
    assert_same(part, np.ascontiguousarray(x[index]))
    back = run_op("StridedSliceGrad", [part], {**attrs, "shape": x.shape})[0]
    expected = np.zeros_like(x)
    expected[index] = x[index]
    assert_same(back, expected)


def test_strided_slice_masks_of_axes() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    zeros, ones = (0, 0, 1), (1, 1, 2)
    attrs = {"begin": zeros, "end": ones, "strides": (1, 1, 1)}
    masks = {"ellipsis_mask": 1, "shrink_axis_mask": 4, "new_axis_mask": 2}
    assert np.array_equal(run_op("StridedSlice", [x], {**attrs, **masks})[0], x[..., None, 1])
    assert run_op("StridedSlice", [x], {**attrs, "shrink_axis_mask": 7})[0] == x[0, 0, 1]


@given(data=st.data())
@quick
def test_slice_and_pad_are_inverse(data: st.DataObject) -> None:
    x = data.draw(any_array(ALL))
    paddings = tuple((data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in range(x.ndim))
    padded = run_op("Pad", [x], {"paddings": paddings})[0]
    assert_same(padded, np.pad(x, paddings) if x.ndim else x)
    window = {"begin": tuple(before for before, _ in paddings), "size": x.shape}
    assert_same(run_op("Slice", [padded], window)[0], x)
    if x.dtype.kind != "b":
        assert_same(run_op("SliceGrad", [x, padded], window)[0], padded)


@given(data=st.data())
@quick
def test_gather_is_take(data: st.DataObject) -> None:
    x = data.draw(any_array(["float32", "bfloat16", "int8"], min_ndim=1, min_side=1))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    size = x.shape[axis]
    indices = data.draw(shapes(max_ndim=2).flatmap(lambda s: arrays("int64", s))) % (2 * size) - size
    assert_same(run_op("Gather", [x, indices], {"axis": axis})[0], np.take(x, indices, axis))


@given(data=st.data())
@quick
def test_segment_sum_is_a_loop(data: st.DataObject) -> None:
    ids = data.draw(shapes(max_ndim=2).flatmap(lambda s: arrays("int32", s))) % 4
    x = data.draw(arrays("int32", (*ids.shape, 2)))
    expected = np.zeros((4, 2), np.int32)
    with np.errstate(all="ignore"):
        for place in np.ndindex(*ids.shape):
            expected[ids[place]] += x[place]
    found = run_op("UnsortedSegmentSum", [x, ids.astype(np.int32)], {"num_segments": 4})[0]
    assert_same(found, expected)


@given(data=st.data())
@quick
def test_gather_d_and_its_gradient(data: st.DataObject) -> None:
    x = data.draw(any_array(["float64", "int32"], min_ndim=1, min_side=1))
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    shape = tuple(data.draw(st.integers(1, n if a != dim % x.ndim else 5)) for a, n in enumerate(x.shape))
    index = data.draw(arrays("int64", shape)) % x.shape[dim]
    crop = x[tuple(slice(None) if a == dim % x.ndim else slice(n) for a, n in enumerate(shape))]
    picked = run_op("GatherD", [x, index], {"dim": dim})[0]
    assert_same(picked, np.take_along_axis(crop, index, dim))
    ones = np.ones(shape, x.dtype)
    counts = run_op("GatherDGradV2", [x, index, ones], {"dim": dim})[0]
    expected = np.zeros(x.shape, x.dtype)
    for place in np.ndindex(*shape):
        target = list(place)
        target[dim % x.ndim] = index[place]
        expected[tuple(target)] += 1
    assert_same(counts, expected)


def test_half_gradients_add_up_in_float32() -> None:
    """4096 ones meet in one element; in float16 the sum would stop at 2048."""
    rows, index = np.ones((4096, 1), np.float16), np.zeros(4096, np.int32)
    assert run_op("UnsortedSegmentSum", [rows, index], {"num_segments": 2})[0].tolist() == [[4096.0], [0.0]]
    x = np.zeros((1, 2), np.float16)
    found = run_op("GatherDGradV2", [x, index.reshape(1, -1), rows.reshape(1, -1)], {"dim": 1})[0]
    assert found.tolist() == [[4096.0, 0.0]]


@given(data=st.data())
@quick
def test_one_hot(data: st.DataObject) -> None:
    indices = data.draw(shapes(max_ndim=2).flatmap(lambda s: arrays("int32", s))) % 7 - 1
    axis = data.draw(st.integers(-indices.ndim - 1, indices.ndim))
    on, off = np.float32(2.5), np.float32(-1)
    found = run_op("OneHot", [indices.astype(np.int32), on, off], {"depth": 4, "axis": axis})[0]
    expected = np.where(np.arange(4) == indices[..., None], on, off)
    assert_same(found, np.moveaxis(expected, -1, axis))


@given(name=st.sampled_from(ALL), shape=shapes())
@quick
def test_new_tensors(name: str, shape: tuple[int, ...]) -> None:
    numpy_dtype = dtypes.dtype(name).numpy
    attrs = {"dtype": name, "shape": shape}
    zeros, ones = np.zeros(shape, numpy_dtype), np.ones(shape, numpy_dtype)
    assert_same(run_op("Zeros", [], attrs)[0], zeros)
    assert_same(run_op("Ones", [], attrs)[0], ones)
    assert_same(run_op("Fill", [], {**attrs, "value": 1})[0], ones)
    assert_same(run_op("ZerosLike", [ones])[0], zeros)
    assert_same(run_op("OnesLike", [zeros])[0], ones)


@pytest.mark.parametrize(
    ("op_type", "inputs"),
    [
        ("Gather", [np.zeros(3), np.array([0, 3], np.int32)]),
        ("Gather", [np.zeros(3), np.array([-4], np.int32)]),
        ("GatherD", [np.zeros(3), np.array([3], np.int32)]),
    ],
)
def test_an_index_outside_is_an_error(op_type: str, inputs: list[Array]) -> None:
    with pytest.raises(ExecutionError, match=r"in \[-3, 3\), got -?[34]"):
        run_op(op_type, inputs)


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


REFUSED: list[tuple[str, list[TensorType], dict[str, Any], str]] = [
    ("Reshape", [f32(2, 3)], {"shape": (4, 2)}, r"a shape for the 6 elements of float32\[2, 3\], got \(4, 2\)"),
    ("Reshape", [f32(2, 3)], {"shape": (-1, -1)}, "a shape for the 6 elements"),
    ("Reshape", [f32(0)], {"shape": (0, -1)}, "a shape for the 0 elements"),
    ("Reshape", [f32(2)], {}, "expected attribute shape"),
    ("Squeeze", [f32(2, 1)], {"axis": 0}, "axis 0 of size 1"),
    ("ExpandDims", [f32(2)], {"axis": 2}, r"axis in \[-2, 2\)"),
    ("Transpose", [f32(2, 3)], {"perm": (0, 0)}, "perm to name each of 2 axes once"),
    ("Concat", [f32(2, 3), f32(2, 4)], {"axis": 0}, "agree with .* but for axis 0"),
    ("Concat", [f32(2), TensorType("int32", (2,))], {}, "operands of dtype float32"),
    ("Stack", [f32(2), f32(3)], {}, "operands of shape"),
    ("Split", [f32(5)], {"output_num": 2}, "output_num to divide the 5 elements of axis 0, got 2"),
    ("Tile", [f32(2, 3)], {"multiples": (2,)}, "at least 2 positive multiples"),
    ("BroadcastTo", [f32(3)], {"shape": (4,)}, "broadcast"),
    ("BroadcastTo", [f32(3)], {"shape": (-1, 3)}, "broadcasts to"),
    ("Slice", [f32(3)], {"begin": (2,), "size": (2,)}, "begin and size inside of"),
    ("Pad", [f32(3)], {"paddings": ((-1, 0),)}, "1 pairs of paddings >= 0"),
    ("StridedSlice", [f32(3)], {"begin": (0,), "end": (3,), "strides": (0,)}, "nonzero strides"),
    ("StridedSlice", [f32(3)], {"begin": (5,), "end": (6,), "shrink_axis_mask": 1}, "bounds inside of"),
    ("StridedSlice", [f32(3)], {"begin": (0, 0), "end": (1, 1)}, "at most 1 bounds"),
    ("StridedSlice", [f32(3, 3)], {"begin": (0, 0), "end": (1, 1), "ellipsis_mask": 3}, "at most one bit"),
    ("Gather", [f32(3), f32(2)], {}, "indices of dtype int32 or int64, got float32"),
    ("GatherD", [f32(3, 2), TensorType("int32", (4, 2))], {"dim": 1}, "index of a shape within"),
    ("OneHot", [TensorType("int32", (3,)), f32(2), f32()], {"depth": 3}, "on_value of shape"),
    ("OneHot", [TensorType("int32", (3,)), f32(), f32()], {"depth": -1}, "depth >= 0"),
    ("UnsortedSegmentSum", [f32(3, 2), TensorType("int32", (2,))], {"num_segments": 2}, "x of shape"),
    ("Cast", [f32(2)], {"dtype": "floaty"}, "dtype to be a dtype name, got 'floaty'"),
    ("Cast", [f32(2)], {"dtype": "string"}, "attribute dtype as the result"),
    ("Fill", [], {"dtype": "int8", "shape": (2,), "value": "x"}, "value to be a number"),
    ("Zeros", [], {"dtype": "int8", "shape": (-2,)}, "without negative sizes"),
]


@pytest.mark.parametrize(("op_type", "types", "attrs", "message"), REFUSED)
def test_operands_that_do_not_fit(op_type: str, types: list[TensorType], attrs: dict[str, Any], message: str) -> None:
    infer = definition_of(op_type).infer
    assert infer is not None
    with pytest.raises(GraphError, match=message):
        infer(types, attrs)
