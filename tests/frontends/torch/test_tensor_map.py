"""TensorMap: values belong to tensors, not to their addresses."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")

from msdump.frontends.torch.tensor_map import TensorMap  # noqa: E402


def test_a_tensor_at_the_address_of_one_that_is_gone_has_no_value() -> None:
    names: TensorMap[str] = TensorMap()
    first = torch.ones(3)
    names.set(first, "first")
    assert names.get(first) == "first" and names.get(torch.ones(3)) is None and names.get(None) is None
    address = id(first)
    del first
    others = []
    for _ in range(10_000):
        others.append(torch.ones(1))
        if id(others[-1]) == address:
            break
    else:
        pytest.skip("no tensor came to the same address")
    assert names.get(others[-1]) is None


def test_no_tensor_is_kept_alive() -> None:
    names: TensorMap[str] = TensorMap()
    tensor = torch.ones(3)
    names.set(tensor, "tensor")
    storage = torch.multiprocessing.reductions.StorageWeakRef(tensor.untyped_storage())
    del tensor
    gc.collect()
    assert storage.expired()
    names.clear()
