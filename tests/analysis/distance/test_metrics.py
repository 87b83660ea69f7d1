"""The ten metrics: msaccucmp's corner cases value by value, and what must hold for any two tensors."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis.distance import _pair_rows as pair_rows
from msdump.analysis.distance import metrics
from msdump.analysis.distance.metrics import METRICS, PairMetrics, compare_arrays, metric_text
from msdump.errors import FormatError
from msdump.testing import tensors

Array = np.ndarray[Any, np.dtype[Any]]
NAN, INF = np.nan, np.inf

# Metrics 0 1 2 3 4 6 7 8 9 as msaccucmp prints them; "0" stands for 0.000000.
CORNER_CASES = {
    "equal": ([1, 2], [1, 2], "1.000000 0 0 0 0 0 0 0 0"),
    "both zero": ([0, 0], [0, 0], "1.0 0 0 0 0 0 0 0 0"),
    "mine zero": ([0, 0], [1, 2], "NaN 2.000000 2.000000 1.000000 7.278046 1.500000 1.581139 1.000000 1.000000"),
    "golden zero": ([1, 2], [0, 0], "NaN 2.000000 0 0 0.693145 1.500000 1.581139 0 0"),
    "a zero in golden": ([1, 2], [0, 2], "0.894427 1.000000 0 0.500000 0 0.500000 0.707107 0 0"),
    "opposite": ([1, -1], [-1, 1], "-1.000000 2.000000 4.000000 2.000000 15.942381" + 4 * " 2.000000"),
    "tiny": ([1e-20, 2e-20], [2e-20, 1e-20], "1.0 0 0 0 15.942381 0 0 0 0"),
    "NaN in mine": ([NAN, 2], [1, 2], "nan nan nan nan nan nan nan nan nan"),
    "NaN in golden": ([1, 2], [NAN, 2], "nan nan 0 nan nan nan nan 0 0"),
    "NaN in both": ([NAN, 2], [NAN, 2], "nan nan 0 nan nan nan nan 0 0"),
    "Inf in mine": ([INF, 2], [1, 2], "nan inf inf inf nan inf inf inf inf"),
    "Inf in golden": ([1, 2], [INF, 2], "nan inf 1.000000 nan nan inf inf 1.000000 0.500000"),
    "scalar": (1, 2, "1.000000 1.000000 0.500000 0.500000 0 1.000000 1.000000 0.500000 0.500000"),
    "empty": ([], [], "1.0 NaN 0 0 NaN nan nan NaN nan"),
    "huge": ([3e38, 3e38], [-3e38, 3e38], "0 inf 2.000000 nan nan inf inf 2.000000 1.000000"),
}  # fmt: skip
PRINTED = [name for name in METRICS if name != "StandardDeviation"]


def texts(mine: Any, golden: Any) -> list[str]:
    pair = compare_arrays(np.asarray(mine, np.float32), np.asarray(golden, np.float32))
    return [metric_text(pair, name)[0] for name in PRINTED]


@pytest.mark.parametrize("case", CORNER_CASES)
def test_corner_cases_of_the_original(case: str) -> None:
    mine, golden, expected = CORNER_CASES[case]
    assert texts(mine, golden) == [("0.000000" if cell == "0" else cell) for cell in expected.split()]


def test_numbers_are_those_of_the_options() -> None:
    assert METRICS.index("KullbackLeiblerDivergence") == 4
    assert METRICS.index("MeanRelativeError") == 9


@pytest.mark.parametrize(
    ("mine", "golden", "cell"),
    [
        ([1, 3], [0, 0.001], "(2.000;1.000),(0.000;0.000)"),
        ([-0.0004, -0.0004], [1, 1], "(0.000;0.000),(1.000;0.000)"),
        ([1, NAN], [INF, 1], "(nan;nan),(inf;nan)"),
        ([-INF, 1], [INF, -INF], "(-inf;nan),(nan;nan)"),
    ],
)
def test_standard_deviation(mine: Any, golden: Any, cell: str) -> None:
    pair = compare_arrays(np.array(mine, np.float32), np.array(golden, np.float32))
    assert metric_text(pair, "StandardDeviation") == (cell, "")


def test_bool_tensors_have_only_a_cosine() -> None:
    pair = compare_arrays(np.array([True, True]), np.array([True, False]))
    assert metric_text(pair, "CosineSimilarity")[0] == "0.707107"
    for name in METRICS[1:]:
        cell, note = metric_text(pair, name)
        assert cell == "NaN" and note
    assert pair.unequal == 1


def test_scalars_zero_norms_and_empty_tensors_say_why() -> None:
    scalar = compare_arrays(np.ones((1, 1), np.float32), np.ones((), np.float32))
    assert metric_text(scalar, "CosineSimilarity") == ("1.000000", metrics.SCALAR_NOTE)
    zero = compare_arrays(np.zeros(2, np.float32), np.ones(2, np.float32))
    assert metric_text(zero, "CosineSimilarity")[1]
    empty = compare_arrays(np.zeros((0, 3), np.float32), np.zeros((3, 0), np.float32))
    assert metric_text(empty, "MaxRelativeError")[1]
    unasked = compare_arrays(np.ones(2, np.float32), np.ones(2, np.float32), has_divergence=False)
    assert metric_text(unasked, "KullbackLeiblerDivergence") == ("NaN", "It was not asked for.")


def test_sizes_must_be_equal() -> None:
    with pytest.raises(FormatError, match=r"got 6 elements \(2, 3\) and 4 elements \(4,\)"):
        compare_arrays(np.zeros((2, 3)), np.zeros(4))


def test_wide_dtypes_are_rounded_for_the_metrics_but_not_for_the_errors() -> None:
    pair = compare_arrays(np.array([1 + 1e-10, 2.0]), np.array([1.0, 2.0]))
    assert pair.max_absolute_error == 0
    assert pair.worst_error == pytest.approx(1e-10, rel=1e-6)
    assert pair.relative_error == pytest.approx(1e-10 / math.sqrt(5), rel=1e-6)
    large = compare_arrays(np.array([1e300, 1.0]), np.array([1e300, 1.0]))
    assert math.isnan(large.cosine) and large.inf_mine == 0 and large.relative_error == 0
    turned = compare_arrays(np.array([1 + 1j]), np.array([1 - 1j]))
    assert turned.max_absolute_error == 0 and turned.worst_error == 2
    whole = compare_arrays(np.array([2**24, 2**24 + 1]), np.array([2**24, 2**24]))
    assert whole.max_absolute_error == 0 and whole.unequal == 1 and whole.worst_error == 1


def test_non_finite_elements_are_counted_and_left_out_of_the_errors() -> None:
    mine = np.array([NAN, INF, -INF, 1, 2, NAN], np.float32)
    golden = np.array([NAN, INF, INF, 1, 4, 0], np.float32)
    pair = compare_arrays(mine, golden)
    assert (pair.nan_mine, pair.inf_mine, pair.nan_golden, pair.inf_golden) == (2, 2, 1, 2)
    assert pair.mismatched == 2
    assert pair.worst_error == 2 and pair.relative_error == pytest.approx(2 / math.sqrt(17))


def fields(pair: PairMetrics) -> dict[str, Any]:
    return {name: getattr(pair, name) for name in PairMetrics.__slots__}


@settings(max_examples=60, deadline=None)
@given(tensors(dtypes=["float32", "float16", "bfloat16", "float64", "int32", "uint8", "bool"]))
def test_a_tensor_agrees_with_itself(tensor: Array) -> None:
    pair = compare_arrays(tensor, tensor)
    assert (pair.relative_error, pair.worst_error, pair.mismatched, pair.unequal or 0) == (0, 0, 0, 0)
    with np.errstate(all="ignore"):
        values = tensor.astype(np.float64).astype(np.float32)
        # CANN computes the range in float32, which overflows where the ends are far apart.
        is_finite = tensor.size and np.isfinite(values).all() and np.isfinite(values.max() - values.min())
    if is_finite:
        assert pair.max_absolute_error == 0 and pair.divergence == 0 and pair.mean_relative_error == 0
        if np.linalg.norm(values.astype(np.float64)) < 1e19:
            assert pair.cosine == 1.0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_symmetric_metrics_are_symmetric(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    numbers = st.lists(st.floats(width=32, allow_nan=True), min_size=size, max_size=size)
    x, y = (np.array(data.draw(numbers), np.float32) for _ in range(2))
    there, back = compare_arrays(x, y), compare_arrays(y, x)
    for name in ("cosine", "max_absolute_error", "mean_absolute_error", "root_mean_square_error", "worst_error"):
        np.testing.assert_equal(getattr(there, name), getattr(back, name))
    assert (there.mean_mine, there.deviation_mine) == pytest.approx(
        (back.mean_golden, back.deviation_golden), nan_ok=True
    )
    assert there.mismatched == back.mismatched


def pairs() -> dict[str, tuple[Array, Array]]:
    rng = np.random.default_rng(5)
    count = 3 * pair_rows.CHUNK + 777
    y = rng.standard_normal(count).astype(np.float32) * np.exp(rng.standard_normal(count)).astype(np.float32)
    x = y + rng.standard_normal(count).astype(np.float32) * np.float32(1e-2)
    y[::97] = 0
    x[5], y[6] = 0, 0
    found = {"float32": (x, y)}
    for name, dtype in {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64}.items():
        found[name] = (x.astype(dtype), y.astype(dtype))
    found["int16"] = ((x * 100).astype(np.int16), (y * 100).astype(np.int16))
    found["float16 against float32"] = (x.astype(np.float16), y)
    wild = x.copy()
    wild[[100, pair_rows.CHUNK + 3]] = NAN, -INF
    found["NaN and Inf"] = (wild, y)
    found["denormal halves"] = ((x * 1e-7).astype(np.float16), (y * 1e-7).astype(np.float16))
    return found


@pytest.mark.parametrize("name", pairs())
def test_machine_code_and_numpy_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = pairs()[name]
    fast = fields(compare_arrays(x, y))
    monkeypatch.setattr(pair_rows, "_SMALL_COUNT", 1 << 40)
    plain = fields(compare_arrays(x, y))
    for key, value in plain.items():
        if value is None:
            assert fast[key] is None
            continue
        # The logarithm of the machine code is exact to 1e-8, its sums to rounding.
        assert fast[key] == pytest.approx(value, rel=1e-9, abs=1e-7 if key == "divergence" else 0, nan_ok=True), key


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_rows, "_THREADED_COUNT", 0)
    x, y = pairs()["NaN and Inf"]
    x = np.where(np.isfinite(x), x, 1)
    assert fields(compare_arrays(x, y, thread_count=1)) == fields(compare_arrays(x, y, thread_count=3))


def test_formulas_on_ordinary_tensors() -> None:
    x, y = (side.astype(np.float64) for side in pairs()["float32"])
    pair = compare_arrays(x.astype(np.float32), y.astype(np.float32))
    nonzero = np.abs(y) > pair_rows.EPSILON
    relative = np.abs(x[nonzero] / y[nonzero] - 1)
    assert pair.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-9)
    assert pair.accumulated_relative_error == pytest.approx(relative.sum(), rel=1e-4)
    assert pair.mean_relative_error == pytest.approx(relative.sum() / x.size, rel=1e-4)
    assert pair.max_relative_error == pytest.approx(relative.max(), rel=1e-5)
    assert pair.relative_euclidean_distance == pytest.approx(np.linalg.norm(x - y) / np.linalg.norm(y), rel=1e-6)
    assert pair.root_mean_square_error == pytest.approx(np.sqrt(np.square(x - y).mean()), rel=1e-6)
    p, q = (np.maximum((side - side.min()) / np.ptp(side), pair_rows.FLOOR) for side in (x, y))
    p, q = p / p.sum(), q / q.sum()
    assert pair.divergence == pytest.approx(float((p * np.log(p / q)).sum()), rel=1e-3, abs=1e-8)
    assert (pair.mean_mine, pair.deviation_mine) == pytest.approx((x.mean(), x.std()), rel=1e-9)


def test_the_deviation_of_a_large_mean_keeps_its_digits() -> None:
    values = np.tile(np.array([1e6, 1e6 + 1], np.float32), pair_rows.CHUNK)
    pair = compare_arrays(values, values)
    assert pair.deviation_mine == pytest.approx(0.5, rel=1e-9)


def test_shapes_and_byte_order_do_not_matter() -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    swapped = base.astype(">f4")
    assert fields(compare_arrays(base.T, np.ascontiguousarray(base.T))) == fields(compare_arrays(base, swapped))
