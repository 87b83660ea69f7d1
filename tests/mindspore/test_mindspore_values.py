"""Results where libraries have rules of their own: those of MindSpore 2.7 on a CPU, which gave the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from msdump.mindspore import Tensor, float32, ops

pytest.importorskip("torch")


def of(*values: Any, dtype: Any = np.int32) -> Tensor:
    return Tensor(np.array(values, dtype))


HALVES = of((0.5, 0.25), (0.75, 0.5), dtype=np.float16)
COUNTING = Tensor(np.arange(20, dtype=np.float32).reshape(1, 1, 4, 5))
UNEVEN = Tensor(np.array([[[[0, 1, 5], [3, 4, 5], [6, 2, 8]]]], np.float32))
BOXES = of((0, 0, 4, 4, 0.2), (1, 1, 5, 5, 0.9), (6, 6, 9, 8, 0.5), dtype=np.float32)
# Name -> the call, its results' dtypes, and the results.
CALLS: dict[str, tuple[Callable[[], Any], str, list[Any]]] = {
    "whole quotients by 0": (
        lambda: ops.TruncateDiv()(of(4, -4, 0, 7, -7), of(0, 0, 0, 2, 2)),
        "int32", [[2147483647, -2147483648, 0, 3, -3]],
    ),
    "a large whole quotient": (
        lambda: ops.TruncateDiv()(of(2**62 + 1, dtype=np.int64), of(1, dtype=np.int64)), "int64", [[2**62 + 1]]
    ),
    "a step at NaN": (
        lambda: ops.heaviside(of(np.nan, 0, -0.0, 1, dtype=np.float32), Tensor(np.float32(0.5))),
        "float32", [[0, 0.5, 0.5, 1]],
    ),
    "whole numbers and quotients": (
        lambda: ops.addcdiv(*(of(*row, dtype=np.int64) for row in ((1, 2, 3), (7, -7, 7), (2, 2, -2), (1,)))),
        "int64", [[4, -1, 0]],
    ),
    "powers of whole matrices": (lambda: ops.matrix_power(of((1, 1), (1, 0)), 5), "int32", [[[8, 5], [5, 3]]]),
    "eigenvalues alone": (
        lambda: ops.Eig(False)(of((2, 0), (0, 3), dtype=np.float32)), "complex64 complex64", [[2, 3], 0]
    ),
    "singular values alone": (
        lambda: ops.Svd(False, False)(of((3, 0), (0, 2), dtype=np.float32)),
        "float32 float32 float32", [[3, 2], [0], [0]]
    ),
    "counts of halves": (lambda: ops.histc(HALVES, 2, 0.0, 1.0), "float32", [[1, 3]]),
    "a spectrum of halves": (lambda: ops.fft(HALVES), "complex64", [[[0.75, 0.25], [1.25, 0.25]]]),
    "boxes by score": (
        lambda: ops.NMSWithMask(0.3)(BOXES)[1:], "int32 bool", [[0, 1, 2], [True, True, False]]
    ),
    "curves at corners": (
        lambda: ops.ResizeBicubic()(COUNTING, (2, 3))[0, 0],
        "float32", [[[0, 1.6299, 3.42557], [10, 11.6299, 13.42557]]]
    ),
    "curves of centers": (
        lambda: ops.interpolate(UNEVEN, (2, 2), mode="bicubic")[0, 0],
        "float32", [[[0.641487, 4.328265], [4.808122, 6.417653]]]
    ),
    "lines at corners": (
        lambda: ops.ResizeBilinearV2()(COUNTING, (2, 3))[0, 0],
        "float32", [[[0, 5 / 3, 10 / 3], [10, 35 / 3, 40 / 3]]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_mindspore(name: str, either_mode: int) -> None:
    call, names, expected = CALLS[name]
    results = call()
    results = results if isinstance(results, tuple | list) else (results,)
    for result, dtype, values in zip(results, names.split(), expected, strict=True):
        assert result.asnumpy().dtype == dtype
        np.testing.assert_allclose(result.asnumpy(), values, rtol=1e-5)


def test_arrays_of_a_pickle_are_as_others() -> None:
    """Their dtype says that it is not built in; datasets on disk are pickles."""
    import pickle

    array = pickle.loads(pickle.dumps(np.array([0.5, 2], np.float32)))
    assert array.dtype.isbuiltin == 0
    np.testing.assert_allclose(ops.erfinv(Tensor(array[:1])).astype(float32).asnumpy(), [0.47693628], rtol=1e-6)
