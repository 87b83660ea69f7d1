"""What stands in a file for each kind of value, and what is left out with a reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.testing import strategies
from msdump.testing.strategies import assert_same_array

torch = pytest.importorskip("torch")
arrays = pytest.importorskip("msdump.frontends.torch.convert")

NATIVE = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@settings(deadline=None, max_examples=40)
@given(strategies.tensors(dtypes=NATIVE))
def test_tensors_of_numpys_dtypes_are_kept_bit_for_bit(array: np.ndarray) -> None:
    array = array.astype(array.dtype.newbyteorder("="), order="C")
    found = arrays.array_from_value(torch.tensor(array).requires_grad_(array.dtype.kind in "fc"))
    assert found.dtype == array.dtype
    assert_same_array(found, array)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize(
    "name", [name for name in vars(torch) if name.startswith("float8_")] + ["bfloat16", "complex32"]
)
def test_other_dtypes_are_widened_without_loss(name: str) -> None:
    dtype = getattr(torch, name)
    tensor = torch.arange(256).to(torch.uint8).view(dtype) if dtype.itemsize == 1 else torch.arange(-8.0, 8).to(dtype)
    found = arrays.array_from_value(tensor)
    wider = torch.complex64 if name == "complex32" else torch.float32
    np.testing.assert_array_equal(found, tensor.to(wider))
    assert found.dtype == (np.complex64 if name == "complex32" else np.float32)


# torch speaks of sparse tensors as unfinished, and of quantized ones as outdated.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_views_bits_and_layouts_are_resolved() -> None:
    base = torch.tensor([[1 + 2j, 3 - 4j], [5j, -6.0]])
    for tensor, expected in [
        (base.conj(), base.numpy().conj()),
        (base.conj().imag, -base.numpy().imag),
        (base.t(), base.numpy().T),
        (base[:, 1], base.numpy()[:, 1]),
        (torch.eye(3).to_sparse(), np.eye(3)),
        (torch.eye(3).to_sparse_csr(), np.eye(3)),
        (torch.nn.Parameter(torch.ones(2)), np.ones(2)),
        (torch.empty(0, 3), np.empty((0, 3))),
        (torch.tensor(7), np.array(7)),
        (torch.quantize_per_tensor(torch.tensor([1.0, 2.5]), 0.5, 0, torch.qint8), np.array([1.0, 2.5])),
    ]:
        np.testing.assert_array_equal(arrays.array_from_value(tensor), expected)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, np.int64, 3),
        (2.5, np.float64, 2.5),
        (True, np.bool_, True),
        (1j, np.complex128, 1j),
        (2**80, "U", str(2**80)),
        ([2, 3], np.int64, [2, 3]),
        ([], np.float64, []),
        ([1, 2.5], np.float64, [1, 2.5]),
        ([True, False], np.bool_, [True, False]),
        ("sum", "U", "sum"),
        (["a", "bc"], "U", ["a", "bc"]),
        (None, "U", "None"),
        ([None, 1], "U", "[None, 1]"),
        ([[1], [2, 3]], "U", "[[1], [2, 3]]"),
        (torch.float32, "U", "torch.float32"),
        (torch.device("cpu"), "U", "cpu"),
        (torch.strided, "U", "torch.strided"),
        (torch.contiguous_format, "U", "torch.contiguous_format"),
        (slice(1, 2), "U", "slice(1, 2, None)"),
        ({"a": 1}, "U", "{'a': 1}"),
    ],
    ids=str,
)
def test_values_that_are_no_tensors(value: object, dtype: object, expected: object) -> None:
    array = arrays.array_from_value(value)
    assert array.dtype.kind == "U" if dtype == "U" else array.dtype == dtype
    assert array.tolist() == expected
    assert not array.dtype.hasobject


@given(st.text() | st.lists(st.text()))
def test_any_text_can_be_saved(value: object) -> None:
    array = arrays.array_from_value(value)
    assert array.dtype.kind in "Uf"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (torch.empty(2, device="meta"), "a meta tensor has no data"),
        (torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged), "a nested tensor"),
        (torch.sparse_coo_tensor(size=(1 << 16, 1 << 16), check_invariants=True), "bytes when dense"),
        (object(), "an object of type object has no array form"),
        (torch.nn.ReLU(), "a nested graph"),
    ],
)
def test_what_has_no_array_has_a_reason(value: object, reason: str) -> None:
    with pytest.raises(arrays.NoArrayError, match=reason):
        arrays.array_from_value(value)
