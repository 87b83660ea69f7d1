"""Tensors as arrays, of every dtype and in every state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msdump.frontends.torch.convert import array_of, bytes_of, why_unreadable  # noqa: E402
from msdump.tensors import dtypes  # noqa: E402
from msdump.tensors.torch_arrays import NAME_BY_DTYPE, dtype_name  # noqa: E402


@pytest.mark.parametrize("dtype", list(NAME_BY_DTYPE), ids=str)
def test_bits_are_those_of_the_tensor(dtype: Any) -> None:
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.arange(12 * size, dtype=torch.uint8) % (2 if dtype is torch.bool else 200)
    tensor = raw.view(dtype).reshape(3, 4)
    array = array_of(tensor)
    name = dtype_name(dtype)
    assert name is not None
    assert array.dtype == dtypes.dtype(name).numpy
    assert array.tobytes() == raw.numpy().tobytes()
    assert array_of(tensor.t()).tobytes() == np.ascontiguousarray(array.T).tobytes()


def test_memory_is_shared() -> None:
    tensor = torch.nn.Parameter(torch.zeros(3))
    array = array_of(tensor)
    with torch.no_grad():
        tensor += 1
    np.testing.assert_array_equal(array, [1, 1, 1])


def test_pending_signs_are_applied() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    np.testing.assert_array_equal(array_of(tensor.conj()), [1 - 2j, 3 + 4j])
    np.testing.assert_array_equal(array_of(tensor.conj().imag), [-2, 4])


def test_shapes_without_elements_or_axes() -> None:
    assert array_of(torch.zeros(0, 3)).shape == (0, 3)
    assert array_of(torch.tensor(1.5, dtype=torch.bfloat16)) == 1.5


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: torch.zeros(2), ""),
        (lambda: torch.zeros(2).to_sparse(), "sparse_coo tensor"),
        (lambda: torch.zeros(2, device="meta"), "tensor on the meta device"),
        (lambda: torch.empty(2, dtype=torch.complex32), "dtype complex32"),
    ],
)
def test_what_no_array_can_show_has_a_reason(make: Any, reason: str) -> None:
    assert why_unreadable(make()) == reason


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64], ids=str)
def test_a_tensor_that_was_read_can_be_resized(dtype: Any) -> None:
    tensor = torch.ones(4, 4, dtype=dtype)
    array_of(tensor)
    assert bytes_of(tensor.t()) == array_of(tensor).tobytes()
    tensor.resize_(8, 8)
    assert tensor.shape == (8, 8)


def test_an_array_keeps_the_memory_alive_whatever_becomes_of_the_tensor() -> None:
    tensor = torch.arange(1 << 16)
    array = array_of(tensor[2:].view(-1, 2).t())
    other = torch.zeros(1 << 16, dtype=torch.int64)
    tensor.set_(other)
    del tensor
    # What took the memory of the first tensor would show.
    takers = [torch.full((1 << 16,), -1) for _ in range(4)]
    np.testing.assert_array_equal(array, np.arange(2, 1 << 16).reshape(-1, 2).T)
    assert len(takers) == 4


def test_memory_dies_with_the_last_array() -> None:
    tensor = torch.zeros(8)
    reference = tensor.untyped_storage()._weak_ref()
    array = array_of(tensor)[2:]
    del tensor
    assert not torch.UntypedStorage._expired(reference)
    assert array.sum() == 0
    del array
    assert torch.UntypedStorage._expired(reference)
    torch.UntypedStorage._free_weak_ref(reference)


def test_a_storage_that_was_resized_to_nothing_is_not_read() -> None:
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="its storage was resized to 0"):
        array_of(tensor)
