"""Addresses that scripts hold: real memory, and no wrong one ends the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msdump.frontends import acl
from msdump.frontends.acl.process import process
from msdump.testing.strategies import tensors
from tests.frontends.acl.calls import ok

H2D, D2H = acl.const.ACL_MEMCPY_HOST_TO_DEVICE, acl.const.ACL_MEMCPY_DEVICE_TO_HOST
quick = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@quick
@given(st.data())
def test_arrays_go_there_and_back(data: Any) -> None:
    array = data.draw(tensors())
    flat = np.ascontiguousarray(array)
    if not flat.nbytes:
        return
    device, host = ok(acl.rt.malloc(flat.nbytes, 0)), ok(acl.rt.malloc_host(flat.nbytes))
    ok(acl.rt.memcpy(device, flat.nbytes, acl.util.numpy_contiguous_to_ptr(array), flat.nbytes, H2D))
    ok(acl.rt.memcpy(host, flat.nbytes, device, flat.nbytes, D2H))
    assert acl.util.ptr_to_bytes(host, flat.nbytes) == flat.tobytes()
    ok(acl.rt.free(device))
    ok(acl.rt.free_host(host))


def test_sizes_that_numpy_has_no_array_of(caplog: pytest.LogCaptureFixture) -> None:
    """numpy multiplies the sizes of an array without elements, too."""
    assert acl.util.ptr_to_numpy(441, (441, 1 << 56, 0), 11).shape == (0,)
    assert "shape: expected sizes that an array of numpy can have" in caplog.text


def test_an_array_over_memory_sees_what_is_written_and_outlives_it() -> None:
    address = ok(acl.rt.malloc_host(24))
    view = acl.util.ptr_to_numpy(address, (2, 3), 11)
    assert view.dtype == np.float32 and not view.any()
    ok(acl.rt.memset(address, 24, 0x3F, 24))
    assert (view.view(np.uint8) == 0x3F).all()
    view[:] = 7
    assert np.frombuffer(acl.util.ptr_to_bytes(address, 24), np.float32).tolist() == [7] * 6
    ok(acl.rt.free_host(address))
    assert view.sum() == 42


def test_foreign_memory() -> None:
    """Pointers that other libraries gave: numpy's own here."""
    source, target = np.arange(1000.0), np.zeros(1000)
    ok(acl.rt.memcpy(target.ctypes.data, 8000, source.ctypes.data, 8000, H2D))
    assert np.array_equal(source, target)


def test_pointers_of_views_and_of_what_nobody_holds() -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    pointer = acl.util.numpy_to_ptr(array.ravel())
    for _ in range(100):
        acl.util.bytes_to_ptr(bytes(1000))
    assert acl.util.ptr_to_bytes(pointer, 48) == array.tobytes()
    assert len(process.memory._lent) < 100
    temporary = acl.util.bytes_to_ptr(np.arange(5).tobytes())
    assert acl.util.ptr_to_bytes(temporary, 40) == np.arange(5).tobytes()


def test_memory_that_may_not_be_written(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    array = np.load(tmp_path / "x.npy", mmap_mode="r")
    address, pointer = ok(acl.rt.malloc(24, 0)), acl.util.numpy_to_ptr(array)
    ok(acl.rt.memcpy(address, 24, pointer, 24, H2D))
    assert acl.rt.memcpy(pointer, 24, address, 24, D2H) == 100000
    assert "expected 24 bytes that may be written" in acl.get_recent_err_msg()
    view = acl.util.ptr_to_numpy(pointer, (3,), 12)
    assert not view.flags.writeable and view.tolist() == [0, 0, 0]
    data = bytes(24)
    ok(acl.rt.memcpy(acl.util.bytes_to_ptr(data), 24, address, 24, D2H))


@pytest.mark.parametrize(
    ("size", "code"), [(0, 100000), (-1, 100000), (1 << 62, 200000), (1 << 80, 200000)], ids=lambda v: str(v)
)
def test_sizes_that_cannot_be(size: int, code: int) -> None:
    assert acl.rt.malloc(size, 0) == (0, code)
    assert acl.rt.malloc_host(size) == (0, code)


def test_wrong_frees() -> None:
    device, host = ok(acl.rt.malloc(8, 0)), ok(acl.rt.malloc_host(8))
    assert acl.rt.free(host) == acl.rt.free_host(device) == acl.rt.free(device + 1) == acl.rt.free(0) == 100000
    ok(acl.rt.free(device))
    assert acl.rt.free(device) == 100000
    assert "was freed already" in acl.get_recent_err_msg().splitlines()[-2]


def test_copies_that_do_not_fit() -> None:
    device, host = ok(acl.rt.malloc(8, 0)), ok(acl.rt.malloc_host(8))
    for arguments in (
        (device, 8, host, 9, H2D),  # more than dest_max
        (device, 9, host, 9, H2D),  # past the end
        (device + 4, 8, host, 8, H2D),
        (device, 8, host, 8, 9),  # no direction
        (device, 8, host, -1, H2D),
        (0, 8, host, 8, H2D),
        (device, 8, 0, 8, H2D),
        (device, 8, 1, 8, H2D),
        (1 << 60, 8, host, 8, H2D),
        (-5, 8, host, 8, H2D),
    ):
        assert acl.rt.memcpy(*arguments) == 100000, arguments
    ok(acl.rt.memcpy(device, 8, host, 0, H2D))
    ok(acl.rt.free_host(host))
    assert acl.rt.memcpy(device, 8, host, 8, H2D) == 100000
    assert acl.util.ptr_to_bytes(host, 8) == b""
    with pytest.raises(TypeError, match="src: expected an int, got bytes"):
        acl.rt.memcpy(device, 8, b"12345678", 8, H2D)  # type: ignore[arg-type]


def test_mem_info() -> None:
    free, total, code = acl.rt.get_mem_info(acl.const.ACL_HBM_MEM)
    assert code == 0 and 0 < free <= total
