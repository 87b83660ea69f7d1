"""Device formats against their index rules, element by element, and against a round trip."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import LayoutError
from msdump.tensors import device_layouts

sizes = st.integers(1, 5)
c0s = st.sampled_from([2, 4, 16])


def _numbered(shape: tuple[int, ...]) -> device_layouts.Array:
    return np.arange(1, math.prod(shape) + 1, dtype=np.int32).reshape(shape)


@settings(max_examples=40, deadline=None)
@given(st.tuples(sizes, st.integers(1, 20), sizes, sizes), c0s)
def test_nc1hwc0_index_rule(shape: tuple[int, int, int, int], c0: int) -> None:
    host = _numbered(shape)
    device = device_layouts.to_device(host, "NC1HWC0", c0)
    assert device.shape == device_layouts.device_shape(shape, "NC1HWC0", c0)
    for n, c, h, w in np.ndindex(shape):
        assert host[n, c, h, w] == device[n, c // c0, h, w, c % c0]
    assert np.count_nonzero(device) == host.size


@settings(max_examples=40, deadline=None)
@given(st.tuples(st.integers(1, 33), st.integers(1, 9), sizes, sizes), c0s)
def test_fractal_z_index_rule(shape: tuple[int, int, int, int], c0: int) -> None:
    host = _numbered(shape)
    device = device_layouts.to_device(host, "FRACTAL_Z", c0)
    height, width = shape[2:]
    for n, c, h, w in np.ndindex(shape):
        assert host[n, c, h, w] == device[(c // c0) * height * width + h * width + w, n // 16, n % 16, c % c0]
    assert np.count_nonzero(device) == host.size


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(1, 5), st.integers(1, 5), sizes, sizes, c0s)
def test_grouped_fractal_z_index_rule(groups: int, cin: int, cout: int, height: int, width: int, c0: int) -> None:
    host = _numbered((groups * cout, cin, height, width))
    device = device_layouts.to_device(host, "FRACTAL_Z", c0, groups)
    merged = min(math.lcm(math.lcm(cin, c0) // cin, math.lcm(cout, 16) // cout), groups)
    c1 = -(-merged * cin // c0)
    for group in range(groups):
        for n, c, h, w in np.ndindex(cout, cin, height, width):
            dst_c, dst_n = (group % merged) * cin + c, (group % merged) * cout + n
            row = (group // merged) * c1 * height * width + (dst_c // c0) * height * width + h * width + w
            assert host[group * cout + n, c, h, w] == device[row, dst_n // 16, dst_n % 16, dst_c % c0]
    np.testing.assert_array_equal(device_layouts.from_device(device, "FRACTAL_Z", host.shape, groups), host)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 3), max_size=2), st.integers(1, 40), st.integers(1, 40), c0s)
def test_fractal_nz_index_rule(batch: list[int], height: int, width: int, c0: int) -> None:
    host = _numbered((*batch, height, width))
    device = device_layouts.to_device(host, "FRACTAL_NZ", c0)
    for index in np.ndindex(host.shape):
        h, w = index[-2:]
        assert host[index] == device[(*index[:-2], w // c0, h // 16, h % 16, w % c0)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ", "NDC1HWC0", "FRACTAL_Z_3D"]))
    ndim = {"NC1HWC0": 4, "FRACTAL_Z": 4, "NDC1HWC0": 5, "FRACTAL_Z_3D": 5}.get(name, data.draw(st.integers(0, 4)))
    host = _numbered(tuple(data.draw(st.integers(1, 18)) for _ in range(ndim)))
    c0 = data.draw(c0s)
    device = device_layouts.to_device(host, name, c0)
    np.testing.assert_array_equal(device_layouts.from_device(device, name, host.shape), host)
    np.testing.assert_array_equal(device_layouts.from_device(device.reshape(-1, c0), name, host.shape), host)


@pytest.mark.parametrize(
    ("source", "target", "axes"),
    [
        ("NCHW", "NHWC", (0, 2, 3, 1)),
        ("NHWC", "NCHW", (0, 3, 1, 2)),
        ("NHWC", "HWCN", (1, 2, 3, 0)),
        ("HWCN", "NCHW", (3, 2, 0, 1)),
        ("HWCN", "NHWC", (3, 0, 1, 2)),
    ],
)
def test_host_transposes(source: str, target: str, axes: tuple[int, ...]) -> None:
    host = _numbered((2, 3, 4, 5))
    np.testing.assert_array_equal(device_layouts.transpose_host(host, source, target), host.transpose(axes))


def test_format_numbers() -> None:
    assert device_layouts.FORMAT_NUMBER["NC1HWC0"] == 3
    assert device_layouts.FORMAT_NUMBER["FRACTAL_Z"] == 4
    assert device_layouts.FORMAT_NUMBER["FRACTAL_NZ"] == 29
    assert device_layouts.FORMAT_NUMBER["NCL"] == 47
    assert device_layouts.FORMAT_NAME[255] == "MAX"
    assert device_layouts.FORMAT_NAME[40] == "RESERVED"


def test_misfits_are_refused() -> None:
    with pytest.raises(LayoutError, match="expected a 4-D host shape"):
        device_layouts.device_shape((2, 3), "NC1HWC0", 16)
    with pytest.raises(LayoutError, match=r"expected device shape \(1, 1, 1, 1, 16\)"):
        device_layouts.from_device(np.zeros((2, 1, 1, 1, 16)), "NC1HWC0", (1, 3, 1, 1))
    with pytest.raises(LayoutError, match="no index rule"):
        device_layouts.to_device(np.zeros((1, 1)), "FRACTAL_ZN_LSTM", 16)
    with pytest.raises(LayoutError, match="two host formats"):
        device_layouts.transpose_host(np.zeros((1, 1, 1, 1)), "NCHW", "NDHWC")


def test_cube_size() -> None:
    assert [device_layouts.cube_size(name) for name in ("float32", "float16", "int8", "uint8")] == [16, 16, 32, 32]


@given(*[st.integers(1, size) for size in (6, 20, 20, 3, 3)], st.sampled_from([16, 32]))
def test_groups_share_blocks_only_with_groups_that_are_there(
    groups: int, cin: int, cout: int, height: int, width: int, c0: int
) -> None:
    """Fewer groups than would fill the blocks evenly take no more room than they need."""
    if groups == 1:
        return
    shape = device_layouts.device_shape((groups * cout, cin, height, width), "FRACTAL_Z", c0, groups)
    merged = next(
        count for count in range(1, groups + 1) if count == groups or not (count * cin % c0 or count * cout % 16)
    )
    blocks, c1, n1 = -(-groups // merged), -(-merged * cin // c0), -(-merged * cout // 16)
    assert shape == (blocks * c1 * height * width, n1, 16, c0)


def test_two_groups_of_a_small_convolution_fill_one_block() -> None:
    assert device_layouts.device_shape((16, 4, 3, 3), "FRACTAL_Z", 16, groups=2) == (9, 1, 16, 16)
