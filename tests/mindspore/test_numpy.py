"""`mindspore.numpy` against numpy itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msdump import mindspore as ms
from msdump.mindspore import numpy as mnp

A = np.array([[0.5, -1.5, 2.25], [3.0, 0.25, -0.75]], np.float32)
B = np.array([1.5, 0.5, 2.0], np.float32)
P = np.array([[0.1, 0.5, 0.9], [0.3, 0.7, 0.2]], np.float32)
I = np.array([[4, 6, 9], [12, 8, 3]], np.int32)  # noqa: E741
N = np.array([[np.nan, 1.0, 2.0], [4.0, np.inf, 3.0]], np.float32)
F = np.array([[np.nan, 1.0, 2.0], [4.0, 7.0, 3.0]], np.float32)

# Function -> arguments, arrays as tensors; the same of numpy is expected. PyTorch computes those of TORCH.
_UNARY = """abs absolute arctan arcsinh ceil cos cosh deg2rad exp expm1 fabs floor negative positive rad2deg radians
    reciprocal rint sign signbit sin sinh square tan tanh trunc fix cbrt exp2 isfinite isinf isnan isneginf isposinf"""
_AXES = "sum mean var std amax amin max min argmax argmin cumsum cumprod ptp"
_BINARY = """add arctan2 copysign divide true_divide equal float_power floor_divide fmod greater greater_equal heaviside
    hypot less less_equal logaddexp logaddexp2 maximum minimum mod remainder multiply not_equal subtract divmod"""
CASES: dict[str, list[tuple[Any, ...]]] = {
    **{name: [(A,)] for name in _UNARY.split()},
    **{name: [(P,)] for name in ["arccos", "arcsin", "arctanh", "log", "log10", "log1p", "log2", "sqrt"]},
    **{name: [(A, B), (A, 2.0)] for name in _BINARY.split()},
    **{name: [(I, I[0])] for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"]},
    **{name: [(N,)] for name in ["isnan", "isinf", "isfinite", "isneginf", "isposinf"]},
    **{name: [(F,), (F, 1)] for name in ["nansum", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nancumsum"]},
    **{name: [(A,), (A, 1), (A, 0)] for name in _AXES.split()},
    **{name: [(I > 5, I < 9)] for name in ["logical_and", "logical_or", "logical_xor"]},
    "logical_not": [(I > 5,)],
    "bitwise_not": [(I,)],
    "invert": [(I,)],
    "arccosh": [(A + 3,)],
    "power": [(P, B), (P, 3)],
    "norm": [(A,), (A, 2, 1), (A, np.inf, 0), (A, "fro"), (A, -1), (A, 3, 1), (A, 0, 0)],
    "count_nonzero": [(A,), (A, 1)], "sometrue": [(I > 9, 1)],
    "clip": [(A, -1, 1)], "around": [(A, 1)], "isclose": [(A, A + 1e-7), (N, N)], "where": [(A > 0, A, B)],
    "array_equiv": [(A, A)],
    "dot": [(A, B), (A, A.T), (B, B)],
    "inner": [(A, B), (A, A)],
    "outer": [(B, B)], "tensordot": [(A, A.T, 1), (A, A, ([0, 1], [0, 1]))],
    "polyval": [(B, A)], "isin": [(I, I[0])], "in1d": [(I[0], I[1])], "matmul": [(A, A.T)],
    "reshape": [(A, (3, 2))],
    "ravel": [(A,)],
    "copy": [(A,)],
    "expand_dims": [(A, 0), (A, (0, 2))],
    "squeeze": [(A[:1],)],
    "transpose": [(A,), (A, (1, 0))], "swapaxes": [(A, 0, 1)], "moveaxis": [(A[None], 0, 2)],
    "rollaxis": [(A[None], 2, 0), (A[None], 0, 3)], "broadcast_to": [(B, (2, 3))], "broadcast_arrays": [(A, B)],
    "concatenate": [((A, A), 1), ((A, B), None)], "append": [(A, B), (A, A, 0)], "stack": [((A, A), 1)],
    **{name: [((A, A),)] for name in ("hstack", "vstack", "dstack", "column_stack")},
    **{name: [(B,), (B, A)] for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
    "array_split": [(B, 2)],
    "split": [(A, 3, 1), (B, [1, 2])],
    "hsplit": [(A, 3)],
    "vsplit": [(A, 2)],
    "dsplit": [(A[None], 3)],
    "tile": [(A, 2), (B, (2, 1))],
    "repeat": [(A, 2), (A, 2, 1)],
    "flip": [(A,), (A, 1)],
    "fliplr": [(A,)],
    "flipud": [(A,)],
    "roll": [(A, 1), (A, 1, 1)],
    "rot90": [(A,), (A, 2)],
    "diag": [(B,), (A,)],
    "diagflat": [(B, 1)],
    "diagonal": [(A, 1)],
    "tril": [(A,)], "triu": [(A, 1)],
    "take_along_axis": [(A, np.array([[0], [2]], np.int32), 1)], "meshgrid": [(B, B[:2])], "diff": [(A,), (A, 2)],
    "ediff1d": [(A,), (A, B, B)], "size": [(A,), (A, 1)],
    "eye": [(3,), (2, 3, 1)], "identity": [(3,)], "tri": [(3,)], "linspace": [(0, 1, 5)],
    "logspace": [(0, 2, 5), (1.0, 3.0, 4, False, 2.0)],
    "indices": [((2, 3),)],
    "diag_indices": [(3,)],
    "tril_indices": [(3,)],
    "triu_indices": [(3, 1)],
    "tril_indices_from": [(A,)],
    "triu_indices_from": [(A,)],
    "ix_": [([0, 1], [2, 0])],
    "ones": [((2, 3),)],
    "zeros": [(3,)],
    "full": [((2,), 3)], "arange": [(5,), (1, 6, 2), (0.5, 2)], "ones_like": [(A,)], "zeros_like": [(I,)],
    "full_like": [(I, 2)], **{name: [(5,)] for name in ("bartlett", "blackman", "hamming", "hanning")},
}  # fmt: skip


def tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ms.Tensor(value)
    return tuple(map(tensors, value)) if isinstance(value, tuple) else value


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
        return
    ours = ours.asnumpy() if isinstance(ours, ms.Tensor) else ours
    assert np.shape(ours) == np.shape(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy(name: str) -> None:
    pytest.importorskip("torch")
    theirs = getattr(np, name, None) or {"sometrue": np.any, "in1d": np.isin, "norm": np.linalg.norm}[name]
    for args in CASES[name]:
        with np.errstate(all="ignore"):
            assert_same(getattr(mnp, name)(*tensors(args)), theirs(*args))


def test_every_function_has_a_case() -> None:
    others = {"array", "asarray", "asfarray", "empty", "empty_like", "rand", "randn", "randint", "isscalar", "round"}
    functions = {
        name for name in mnp.__all__ if callable(getattr(mnp, name)) and not isinstance(getattr(mnp, name), type)
    }
    dtypes = {name for name in functions if isinstance(getattr(mnp, name), type(ms.float32))}
    # test_numpy_pad.py has those of pad, test_public_names.py the rest.
    elsewhere = {"pad", "array_equal", "average", "take"}
    assert functions - dtypes - CASES.keys() - others - elsewhere == set()


def test_data_are_int32_and_float32() -> None:
    dtypes = [mnp.array(x).dtype for x in ([1], [1.0], [True], np.ones(1))]
    assert dtypes == [ms.int32, ms.float32, ms.bool_, ms.float32]
    assert mnp.array([1], ms.int64).dtype == ms.int64 and mnp.asfarray([1]).dtype == ms.float32
    assert mnp.array([1, 2], ndmin=2).shape == (1, 2)
    assert mnp.add([1], 2.5).dtype == ms.float32 and mnp.sin(A, dtype=ms.float16).dtype == ms.float16


def test_random_numbers_and_scalars() -> None:
    assert mnp.rand(2, 3).shape == (2, 3) and mnp.randn(4).shape == (4,)
    drawn = mnp.randint(5, shape=(50,)).asnumpy()
    assert drawn.dtype == np.int32 and drawn.min() >= 0 and drawn.max() < 5
    assert mnp.isscalar(1) and not mnp.isscalar(mnp.ones(1))


def test_one_random_number_has_an_axis() -> None:
    assert mnp.rand().shape == mnp.randn().shape == (1,)


def test_functions_are_compiled_and_differentiated() -> None:
    x = ms.Tensor(A)
    assert_same(ms.jit(lambda x: mnp.tensordot(mnp.sin(x), B, 1))(x), np.sin(A) @ B)
    assert_same(ms.grad(lambda x: mnp.mean(mnp.square(x)))(x), 2 * A / A.size)


def test_parts_that_are_not_equal_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a divisor of 3, but got 2"):
        mnp.split(B, 2)


@pytest.mark.parametrize("name", ["tril", "triu"])
@given(
    array=arrays.arrays(
        st.sampled_from([np.float32, np.float16, np.int32, np.bool_]),
        arrays.array_shapes(max_dims=3),
        elements=st.just(1),
    ),
    k=st.integers(-3, 3),
)
def test_triangles_of_one_dimension_and_more(name: str, array: Any, k: int) -> None:
    result = getattr(mnp, name)(ms.Tensor(array), k).asnumpy()
    expected = getattr(np, name)(array, k)
    assert result.dtype == expected.dtype and result.tolist() == expected.tolist()


def test_a_number_has_no_triangle() -> None:
    assert mnp.tril([1, 2, 3]).asnumpy().tolist() == [[1, 0, 0], [1, 2, 0], [1, 2, 3]]
    for function in (mnp.tril, mnp.triu):
        with pytest.raises(ValueError, match=r"expected an array of at least one dimension, got a number"):
            function(ms.Tensor(3.0))
