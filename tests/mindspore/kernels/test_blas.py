"""Products on all cores, and what they leave behind."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.mindspore.kernels import blas, threads
from msdump.mindspore.kernels.blas import product
from msdump.tensors.arrays import Array

SHAPES = [
    ((700, 80), (80, 300)),
    ((300, 80), (80, 700)),
    ((5, 90, 70), (5, 70, 90)),
    ((1, 600, 90), (1, 90, 500)),
    ((3, 1, 90, 70), (4, 70, 90)),
]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_large_product_is_numpy_s(
    workers: int, a: tuple[int, ...], b: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "WORKERS", workers)
    monkeypatch.setattr(threads, "SERIAL_SIZE", 1)
    random = np.random.default_rng(1)
    left, right = random.standard_normal(a), random.standard_normal(b)
    expected = left @ right
    out = np.full(expected.shape, np.nan)
    product(left, right, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    again = np.empty_like(out)
    product(left, right, again)
    assert again.tobytes() == out.tobytes()


@settings(max_examples=40, deadline=None)
@given(st.tuples(*[st.integers(0, 9)] * 3), st.booleans(), st.booleans())
def test_small_and_empty_products_of_turned_operands(sizes: tuple[int, int, int], is_a: bool, is_b: bool) -> None:
    m, k, n = sizes
    random = np.random.default_rng(2)
    a = random.standard_normal((k, m)).T if is_a else random.standard_normal((m, k))
    b = random.standard_normal((n, k)).T if is_b else random.standard_normal((k, n))
    out = np.full((m, n), np.nan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "SERIAL_SIZE", 0)
        product(a, b, out)
    np.testing.assert_allclose(out, np.einsum("mk,kn->mn", a, b), rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(3, 4), (16, 33), (2, 9, 40), (130, 70)]),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
    st.integers(0, 1000),
)
def test_a_matrix_times_its_own_transpose_is_a_product_like_any_other(
    shape: tuple[int, ...], dtype: type[np.floating], is_first: bool, seed: int
) -> None:
    x = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    other = x.copy()
    if is_first:
        x, other = x.swapaxes(-1, -2), other.swapaxes(-1, -2)
    own = np.empty((*shape[:-2], x.shape[-2], x.shape[-2]), dtype)
    two = np.empty_like(own)
    product(x, x.swapaxes(-1, -2), own)
    product(x, other.swapaxes(-1, -2), two)
    assert own.tobytes() == two.tobytes()


def test_another_blas_gets_the_product_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "openblas_threads", lambda: None)
    out = np.empty((2, 2))
    product(np.eye(2), np.arange(4.0).reshape(2, 2), out)
    assert out.tolist() == [[0, 1], [2, 3]]


class FakeBlas:
    """A thread count that remembers what it was told."""

    def __init__(self, count: int) -> None:
        self.told = [count]

    def control(self) -> blas._ThreadCount:
        return blas._ThreadCount(lambda: self.told[-1], self.told.append)


def test_thread_count_comes_back_after_an_error() -> None:
    fake = FakeBlas(6)
    with pytest.raises(ZeroDivisionError), fake.control().held_at_one():
        raise ZeroDivisionError
    assert fake.told == [6, 1, 6]


def test_users_that_overlap_share_one_change() -> None:
    """The first one in remembers, the last one out restores, whatever their order."""
    fake = FakeBlas(4)
    control = fake.control()
    is_inside, may_leave = threading.Event(), threading.Event()

    def stay() -> None:
        with control.held_at_one():
            is_inside.set()
            may_leave.wait(20)

    thread = threading.Thread(target=stay)
    with control.held_at_one():
        thread.start()
        assert is_inside.wait(20)
    assert fake.told == [4, 1]
    may_leave.set()
    thread.join()
    assert fake.told == [4, 1, 4]


def test_numpy_s_own_threads_are_as_before() -> None:
    control = blas.openblas_threads()
    if control is None:
        pytest.skip("numpy does not bring OpenBLAS here")
    before = control._read()
    a: Array = np.ones((200, 200), np.float32)
    product(a, a, np.empty_like(a))
    assert control._read() == before
