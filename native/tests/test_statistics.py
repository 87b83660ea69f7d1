"""`measure` says of a tensor what `msdump.statistics.stats.statistics` says, to the last bit where the order is set.

Counts, extremes and sizes are equal for all tensors. Of sums, and of what is made of them:

up to 64 KiB  equal bits: the order is numpy's, also where values that are not finite are left out
above         the order is our own, 32 lanes in blocks of 8192 elements, which is written down in `in_lanes` below and
              is the same on all processors. msdump's is LLVM's choice there, as numba lets it reorder sums: any order
              of n sums in float64 is within n * 2^-53 of the sum of magnitudes, and two of them within twice of that
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

native = pytest.importorskip("msdump_native")

from msdump.frontends.torch.convert import array_of  # noqa: E402
from msdump.statistics.stats import statistics  # noqa: E402
from msdump.tensors.torch_arrays import dtype_name  # noqa: E402
from tests.frontends.torch.eager.native_tensors import FLOATS, plain, same  # noqa: E402

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
DTYPES = [*FLOATS, *INTEGERS, torch.bool]
SMALL_BYTES = 64 << 10


def check(tensor: torch.Tensor) -> None:
    name = dtype_name(tensor.dtype)
    array = array_of(tensor)
    theirs = statistics(array, name)
    (ours,) = native.measure(tensor)
    for field in ("count", "negative", "positive", "zero", "nan", "negative_inf", "positive_inf", "size_bytes"):
        assert ours[field] == getattr(theirs, field), field
    top, low = ("maximum", "minimum") if tensor.dtype in FLOATS else ("integer_maximum", "integer_minimum")
    if theirs.max is None:
        assert np.isnan(ours["average"])
    else:
        assert same(float(ours[top]), float(theirs.max)) and int(ours[top] == theirs.max)
        assert same(float(ours[low]), float(theirs.min))
    is_exact = array.nbytes <= SMALL_BYTES or tensor.dtype is torch.bool
    finite = theirs.count - theirs.nan - theirs.negative_inf - theirs.positive_inf
    if is_exact:
        assert same(float(ours["average"]), theirs.avg), (ours["average"], theirs.avg)
        assert same(float(ours["norm"]), theirs.l2norm), (ours["norm"], theirs.l2norm)
        return
    with np.errstate(invalid="ignore"):
        values = array.astype(np.float64)
    values = values[np.isfinite(values)]
    bound = 2 * values.size * 2.0**-53
    if finite:
        largest = np.abs(values).max() or 1.0
        slack = bound * np.abs(values / largest).mean() * largest
        assert abs(float(ours["average"]) - theirs.avg) <= slack
    if math.isfinite(theirs.l2norm):
        assert abs(float(ours["norm"]) - theirs.l2norm) <= bound * theirs.l2norm
    else:
        assert same(float(ours["norm"]), theirs.l2norm)


def in_lanes(values: np.ndarray) -> float:
    total = 0.0
    for chunk in range(0, values.size, 1 << 16):
        row = 0.0
        for start in range(chunk, min(chunk + (1 << 16), values.size), 8192):
            block = values[start : min(start + 8192, values.size)]
            whole = block.size // 32 * 32
            lanes = np.zeros((4, 8))
            for step in block[:whole].reshape(-1, 4, 8):
                lanes += step
            lane = ((lanes[0] + lanes[1]) + lanes[2]) + lanes[3]
            while lane.size > 1:
                lane = lane[: lane.size // 2] + lane[lane.size // 2 :]
            part, rest = float(lane[0]), 0.0
            for value in block[whole:].tolist():
                rest += value
            row += part + rest if whole < block.size else part
        total += row
    return total


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [40000, 65536, 70017, 150001])
def test_order_of_large_sums(dtype: torch.dtype, size: int) -> None:
    tensor = plain(size, dtype, size, "zeros")
    values = tensor.double().numpy()
    for each in (tensor, torch.stack([tensor, tensor], 1)[:, 1]):
        (ours,) = native.measure(each)
        assert ours["sum"] == in_lanes(values)
        assert ours["squares"] == in_lanes(np.square(values))


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 9) | st.just(1), max_size=4))
    factor = draw(st.sampled_from([1, 1, 3, 16, 40]))
    if shape:
        shape[draw(st.integers(0, len(shape) - 1))] *= factor
    steps = [draw(st.integers(1, 3)) for _ in shape]
    outer = [size * step for size, step in zip(shape, steps, strict=True)]
    kind = draw(st.sampled_from(["finite", "special", "zeros", "bits"]))
    tensor = plain(math.prod(outer), dtype, draw(st.integers(0, 2**31)), kind).reshape(outer)
    tensor = tensor[tuple(slice(None, None, step) for step in steps)]
    tensor = tensor.permute(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()) and tensor.dim():
        sizes = [3 if size == 1 and draw(st.booleans()) else size for size in tensor.shape]
        tensor = tensor.expand(sizes)
    return tensor


@settings(max_examples=400, deadline=None)
@given(tensors())
def test_as_msdump_says(tensor: torch.Tensor) -> None:
    check(tensor)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["finite", "special", "zeros", "bits"])
@pytest.mark.parametrize("size", [7, 8, 127, 128, 129, 1000, 8192, 65536, 70016, 131072, 200000])
def test_sizes(dtype: torch.dtype, kind: str, size: int) -> None:
    tensor = plain(size, dtype, size, kind)
    check(tensor)
    if size % 100 == 0:
        check(tensor.view(100, -1).t())
        check(tensor.view(100, -1)[:, 1:])
        check(tensor.view(-1, 10, 10).transpose(1, 2)[:, ::3])


@pytest.mark.parametrize("scale", [1e-200, 1e160, 1e-310, 1e308])
@pytest.mark.parametrize("size", [5, 1000, 100000])
def test_ends_of_the_range(scale: float, size: int) -> None:
    tensor = torch.linspace(-1, 1, size, dtype=torch.float64) * scale
    check(tensor)
    tensor[1] = math.nan
    check(tensor[:8000])


def test_elements_that_are_not_aligned() -> None:
    memory = bytearray(4 * 1000 + 1)
    tensor = torch.frombuffer(memory, dtype=torch.uint8)[1:]
    values = np.frombuffer(memory, np.float32, 1000, offset=1)
    tensor.copy_(torch.randn(1000).view(torch.uint8))
    theirs = statistics(values, "float32")
    (ours,) = native.measure(torch.frombuffer(memory, dtype=torch.float32, offset=1, count=1000))
    assert (ours["average"], ours["norm"], ours["maximum"]) == (theirs.avg, theirs.l2norm, theirs.max)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, device="meta"),
        lambda: torch.ones(2, dtype=torch.complex64),
        lambda: torch.ones(2, 2).to_sparse(),
        lambda: torch._neg_view(torch.ones(2)),
        lambda: torch.nested.nested_tensor([torch.ones(2)]),
        lambda: torch.ones(2, dtype=torch.float8_e5m2),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_measured(make: object) -> None:
    with pytest.raises(ValueError, match=r"msdump_native.measure: expected a plain tensor"):
        native.measure(make())


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per_channel")
def test_codes_count_as_the_numbers_that_they_mean() -> None:
    tensor = torch.arange(-6.0, 6.0).reshape(3, 4).t()
    (ours,) = native.measure(torch.quantize_per_tensor(tensor, 0.5, 1, torch.qint8))
    assert (ours["maximum"], ours["minimum"], ours["sum"], ours["count"]) == (5.0, -6.0, -6.0, 12)


def test_memory_that_was_given_back() -> None:
    tensor = torch.ones(100)
    tensor.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="no memory"):
        native.measure(tensor)
    with pytest.raises(TypeError, match=r"expected a torch.Tensor"):
        native.measure(3)


def test_check() -> None:
    assert native.check() == ""
