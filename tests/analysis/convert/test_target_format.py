"""Formats that the user asks for: every pair against the index rules, original shapes in any axis order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msdump.analysis.convert.target_format import PAIRS, parse_format, to_format
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.errors import LayoutError
from msdump.tensors import device_layouts
from msdump.tensors.arrays import Array
from msdump.testing import assert_same_array

HOST = ("NCHW", "NHWC", "HWCN")
small = st.integers(1, 20)


def counted(*shape: int) -> Array:
    return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)


@settings(max_examples=40, deadline=None)
@given(st.tuples(small, small, st.integers(1, 4), st.integers(1, 4)), st.sampled_from(HOST), st.sampled_from([8, 16]))
def test_5hd(shape: tuple[int, int, int, int], target: str, c0: int) -> None:
    """The original shape is understood in the target's axis order and in NCHW, whichever fits."""
    host = counted(*shape)
    device = device_layouts.to_device(host, "NC1HWC0", c0)
    expected = device_layouts.transpose_host(host, "NCHW", target)
    assert_same_array(to_format(device, "NC1HWC0", target, expected.shape), np.ascontiguousarray(expected))


def test_5hd_with_an_original_shape_in_another_order() -> None:
    """A mended defect: msaccucmp cuts (1, 2, 3, 16) down to min(size, original size) on every axis."""
    host = counted(1, 5, 2, 3)
    device = device_layouts.to_device(host, "NC1HWC0", 16)
    assert_same_array(to_format(device, "NC1HWC0", "NHWC", (1, 5, 2, 3)), host.transpose(0, 2, 3, 1))


def test_5hd_without_a_shape_keeps_its_padding() -> None:
    device = device_layouts.to_device(counted(2, 5, 2, 3), "NC1HWC0", 16)
    assert to_format(device, "NC1HWC0", "NCHW", None).shape == (2, 16, 2, 3)


def test_a_shape_that_fits_nowhere_cuts_from_zero() -> None:
    host = counted(2, 5, 2, 3)
    device = device_layouts.to_device(host, "NC1HWC0", 16)
    assert_same_array(to_format(device, "NC1HWC0", "NCHW", (1, 3, 1, 2)), host[:1, :3, :1, :2])


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(["NCHW", "HWCN"]),
)
def test_fractal_z(shape: tuple[int, int, int, int], target: str) -> None:
    host = counted(*shape)
    expected = np.ascontiguousarray(device_layouts.transpose_host(host, "NCHW", target))
    device = device_layouts.to_device(host, "FRACTAL_Z", 16)
    assert_same_array(to_format(device, "FRACTAL_Z", target, expected.shape), expected)


@pytest.mark.parametrize(("groups", "cin", "cout"), [(2, 1, 1), (4, 3, 5), (40, 2, 1), (33, 1, 1), (3, 17, 18)])
def test_grouped_fractal_z_element_by_element(groups: int, cin: int, cout: int) -> None:
    """A mended defect: rows of later blocks. The rule of the device, written out."""
    n, h, w, c0 = groups * cout, 2, 3, 16
    host = counted(n, cin, h, w) + 1
    merged = min(np.lcm(np.lcm(cin, c0) // cin, np.lcm(cout, 16) // cout), groups)
    c1 = -(-merged * cin // c0)
    rows = -(-groups // merged) * c1 * h * w
    device = np.zeros((rows, -(-merged * cout // 16), 16, c0), np.int32)
    for group in range(groups):
        for out, channel, y, x in np.ndindex(cout, cin, h, w):
            dst_c, dst_n = (group % merged) * cin + channel, (group % merged) * cout + out
            row = (group // merged) * c1 * h * w + (dst_c // c0) * h * w + y * w + x
            device[row, dst_n // 16, dst_n % 16, dst_c % c0] = host[group * cout + out, channel, y, x]
    assert_same_array(to_format(device, "FRACTAL_Z", "NCHW", host.shape, groups), host)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 4), max_size=3), st.integers(1, 40), st.integers(1, 40), st.sampled_from([16, 32]))
def test_fractal_nz_keeps_its_batch(batch: list[int], height: int, width: int, c0: int) -> None:
    """A mended defect: several batch dimensions become one in msaccucmp."""
    host = counted(*batch, height, width)
    device = device_layouts.to_device(host, "FRACTAL_NZ", c0)
    for target in ("ND", "NCHW", "NHWC"):
        assert_same_array(to_format(device, "FRACTAL_NZ", target, host.shape), host)


@settings(max_examples=20, deadline=None)
@given(st.tuples(small, small, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)))
def test_6hd(shape: tuple[int, ...]) -> None:
    host = counted(*shape)
    device = device_layouts.to_device(host, "NDC1HWC0", 16)
    for target in ("NCDHW", "ND"):
        assert_same_array(to_format(device, "NDC1HWC0", target, shape), host)


@pytest.mark.parametrize("source", HOST)
def test_to_fractal_z_and_back(source: str) -> None:
    host = counted(5, 3, 2, 4)
    given_array = np.ascontiguousarray(device_layouts.transpose_host(host, "NCHW", source))
    device = to_format(given_array, source, "FRACTAL_Z", None)
    assert device.shape == (8, 1, 16, 16)
    assert_same_array(to_format(device, "FRACTAL_Z", "NCHW", host.shape), host)


@pytest.mark.parametrize(("source", "target"), sorted(pair for pair in PAIRS if {*pair} <= {*HOST}))
def test_host_pairs(source: str, target: str) -> None:
    sizes = {"N": 2, "C": 3, "H": 4, "W": 5}
    array = counted(*(sizes[axis] for axis in source))
    found = to_format(array, source, target, None)
    assert found.shape == tuple(sizes[axis] for axis in target)
    place = dict(zip(target, (1, 2, 1, 0), strict=True))
    assert found[1, 2, 1, 0] == array[tuple(place[axis] for axis in source)]


def test_host_formats_without_four_axes_are_nd() -> None:
    array = counted(2, 3)
    assert to_format(array, "NCHW", "ND", None) is array
    with pytest.raises(AnalysisError) as caught:
        to_format(array, "NCHW", "NHWC", None)
    assert caught.value.code is ExitCode.INVALID_FORMAT


@pytest.mark.parametrize(
    ("source", "target", "array", "shape", "code"),
    [
        ("ND", "NCHW", counted(2), None, 22),
        ("FRACTAL_Z", "NHWC", counted(1, 1, 16, 16), (1, 1, 1, 1), 22),
        ("FRACTAL_NZ", "ND", counted(1, 1, 16, 16), None, 6),
        ("FRACTAL_NZ", "ND", counted(1, 1, 16, 16), (), 6),
        ("FRACTAL_NZ", "ND", counted(2, 2, 16, 16), (16, 32), 6),
        ("FRACTAL_NZ", "ND", counted(2, 2), (2, 2), 6),
        ("FRACTAL_Z", "NCHW", counted(1, 1, 16, 16), None, 23),
        ("FRACTAL_Z", "NCHW", counted(1, 1, 16, 16), (1, 1, 9, 33), 23),
        ("FRACTAL_Z", "NCHW", counted(1, 1, 16, 16), (0, 1, 1, 1), 23),
        ("NC1HWC0", "NCHW", counted(2, 2), (1, 1, 2, 2), 23),
    ],
)
def test_what_cannot_be(source: str, target: str, array: Array, shape: tuple[int, ...] | None, code: int) -> None:
    with pytest.raises(AnalysisError) as caught:
        to_format(array, source, target, shape)
    assert caught.value.code == code


def test_names_of_formats() -> None:
    assert parse_format("NCHW") == "NCHW"
    assert parse_format("LOOKUP_KEYS") == "HASHTABLE_LOOKUP_KEYS"
    for name in ("FRACTAL_ZZ", "NC", "NCL", "nchw", ""):
        with pytest.raises(AnalysisError, match="expected the name of a format"):
            parse_format(name)


@example(("FRACTAL_Z", "HWCN"), [], [1, 1, 1, 1], 0)
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(PAIRS)),
    st.lists(st.integers(0, 17), max_size=6),
    st.none() | st.lists(st.integers(0, 20), max_size=6),
    st.integers(0, 4),
)
def test_any_shapes_give_an_array_or_an_error(
    pair: tuple[str, str], array_shape: list[int], shape: list[int] | None, groups: int
) -> None:
    if np.prod(array_shape) > 1e5:
        return
    try:
        found = to_format(np.zeros(array_shape, np.int8), *pair, shape, groups)
    except (AnalysisError, LayoutError):
        return
    assert isinstance(found, np.ndarray)
