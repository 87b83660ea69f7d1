"""Numbers of tensors."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from msdump.frontends.msprobe.config import Slice  # noqa: E402
from msdump.frontends.msprobe.statistics import NO_NUMBERS, as_numbers, crc_of, numbers_of, sliced, xor_of  # noqa: E402


def shown(tensor: Any, is_precise: bool = False) -> list[Any]:
    numbers = numbers_of(tensor, is_precise)
    return [as_numbers([number])[0] if isinstance(number, torch.Tensor) else number for number in numbers]


def test_floats_have_all_four() -> None:
    x = torch.tensor([[3.0, -4.0]])
    assert shown(x) == [3.0, -4.0, -0.5, 5.0]
    assert shown(x, is_precise=True) == [3.0, -4.0, None, None]
    assert shown(x.half()) == [3.0, -4.0, -0.5, 5.0]
    assert shown(x.double()) == [3.0, -4.0, None, None]


def test_other_dtypes_have_fewer() -> None:
    assert shown(torch.tensor([3, -4])) == [3, -4, None, None]
    assert shown(torch.tensor([True, False])) == [True, False, None, None]
    assert shown(torch.tensor([3 + 4j, 0])) == [5.0, 0.0, 2.5, None]
    assert shown(torch.tensor(7)) == [7, 7, 7, 7]
    assert shown(torch.tensor(True)) == [True, True, None, None]
    assert numbers_of(torch.empty(0), False) is NO_NUMBERS
    assert numbers_of(torch.ones(2).to(torch.float8_e5m2), False) is NO_NUMBERS


def test_nan_is_the_largest_and_the_smallest() -> None:
    assert all(math.isnan(number) for number in shown(torch.tensor([1.0, math.nan])))
    assert shown(torch.tensor([1.0, math.inf]))[:2] == [math.inf, 1.0]


def test_a_later_write_changes_no_number() -> None:
    x = torch.tensor(1.0)
    numbers = numbers_of(x, False)
    x.add_(1)
    assert as_numbers(list(numbers)) == [1.0] * 4


def test_crc_is_that_of_the_elements_in_order() -> None:
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3).T
    assert crc_of(x) == f"{zlib.crc32(np.ascontiguousarray(x.numpy()).tobytes()):08x}"
    assert crc_of(torch.empty(0)) == "00000000"
    assert crc_of(torch.tensor([1 + 2j]).conj()) == crc_of(torch.tensor([1 - 2j]))
    narrow = np.array([0x3F80], np.uint16).tobytes()
    assert crc_of(torch.tensor(1.0, dtype=torch.bfloat16)) == f"{zlib.crc32(narrow):08x}"


def test_xor_of_words() -> None:
    assert xor_of(torch.tensor([1, 2, 4])) == "0x0000000000000007"
    assert xor_of(torch.tensor([1, 2], dtype=torch.uint8)) == "0x0000000000000201"
    assert xor_of(torch.tensor([-1, 0])) == "0xffffffffffffffff"
    assert xor_of(torch.tensor(5)) == "0x0000000000000005"
    assert xor_of(torch.tensor(0.5)) == 0.5
    assert xor_of(torch.empty(0)) is None


def test_slices_take_what_fits() -> None:
    x = torch.arange(12).reshape(3, 4)
    assert torch.equal(sliced(x, (Slice(0, 1, 2), Slice(1, 0, 2))), x[1:2, :2])
    assert sliced(x, (Slice(2, 1, 2), Slice(0, 1, 2, size=4))) is x
