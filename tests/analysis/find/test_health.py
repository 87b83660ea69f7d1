"""What is not finite in a tensor, and how large the rest is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.find._health import HealthTable, count_non_finite
from msdump.formats.dump_dir import DumpDir
from msdump.formats.statistic_row import StatisticForm, StatisticRow
from tests.analysis.small_dump import write_dump


@given(
    st.lists(st.floats(width=16), max_size=8),
    st.sampled_from([np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]),
)
def test_counts_are_those_of_numpy(values: list[float], dtype: Any) -> None:
    with np.errstate(all="ignore"):
        array = np.array(values, np.float32).astype(dtype)
    wide = array.astype(np.float64)
    health = count_non_finite(array)
    assert health.nan == np.isnan(wide).sum()
    assert (health.negative_inf, health.positive_inf) == ((wide == -np.inf).sum(), (wide == np.inf).sum())
    finite = np.abs(wide[np.isfinite(wide)])
    assert health.largest == (None if not finite.size else finite.max())
    assert health.is_bad == (not np.isfinite(wide).all())


@pytest.mark.parametrize(
    ("values", "expected"), [([1, 448, -448, np.nan], (1, 1, 1)), ([1, 440], (0, 0, 1)), ([1, -416], (0, 0, 0))]
)
def test_a_dtype_without_inf_counts_where_it_saturates(values: list[float], expected: tuple[int, int, int]) -> None:
    health = count_non_finite(np.array(values, ml_dtypes.float8_e4m3fn))
    assert (health.nan, health.negative_inf, health.positive_inf) == expected


def test_either_part_of_a_complex_number_counts() -> None:
    health = count_non_finite(np.array([1 + 2j, complex(np.nan, np.inf)], np.complex64))
    assert (health.nan, health.negative_inf, health.positive_inf) == (1, 0, 1)


def test_integers_are_not_read_and_damaged_files_are_named(tmp_path: Path) -> None:
    tensors = {("input", 0): np.array([1], np.int32), ("output", 0): np.ones(1024, np.float32)}
    write_dump(tmp_path, [("D/Cast-op1", tensors)])  # the output is too large to be kept with its header
    listed = list(DumpDir.open(tmp_path))
    for path in tmp_path.rglob("*.npy"):
        path.write_bytes(path.read_bytes()[:-1])
    damaged: list[Any] = []
    table = HealthTable()
    table.add_tensors(listed, damaged)
    assert [Path(path).name.split(".")[5] for path, _ in damaged] == ["output"]
    assert not any(table.of(tensor).is_bad for tensor in listed)


def test_a_table_knows_whether_any_tensor_is_bad(tmp_path: Path) -> None:
    table = HealthTable()
    assert not table.has_bad
    for number, (value, expected) in enumerate([(1.0, False), (np.nan, True), (2.0, True)]):
        write_dump(tmp_path / str(number), [("D/Add-op1", {("output", 0): np.float32([value, 0])})])
        table.add_tensors(DumpDir.open(tmp_path / str(number)), [])
        assert table.has_bad == expected


def _row(dtype: str, form: StatisticForm, **numbers: float) -> StatisticRow:
    return StatisticRow("Add", "op", 0, 0, 0, "output", 0, 8, dtype, (2,), form=form, **numbers)  # type: ignore[arg-type]


def test_rows_are_believed_as_far_as_their_form_tells(tmp_path: Path) -> None:
    (tensor,) = DumpDir.open(write_dump(tmp_path, [("D/Add-op1", {("output", 0): np.zeros(2, np.float32)})]))
    form = StatisticForm(
        frozenset({"int32", "float32"}), frozenset({"float32"}), ("avg",), {"nan": "Nan", "avg": "Avg"}
    )
    for row, is_bad, is_damaged, untold in (
        (_row("int32", form), False, False, 0),
        (_row("float32", form, nan=1, negative_inf=0, positive_inf=0), True, False, 0),
        (_row("float32", form, avg=2.0), False, False, 0),
        (_row("float32", form, avg=np.nan), True, False, 0),
        (_row("float32", form, max=np.inf), True, False, 0),
        (_row("float32", form, max=2.0, nan=0), False, True, 0),
        (_row("complex64", form), False, False, 1),
    ):
        damaged: list[Any] = []
        table = HealthTable()
        table.add_rows(lambda _, row=row: row, [tensor], damaged)  # type: ignore[misc]
        assert (table.of(tensor).is_bad, bool(damaged), table.untold.total()) == (is_bad, is_damaged, untold), row
        assert not damaged or 'column that tells of NaN and Inf ("Nan" or "Avg")' in str(damaged[0][1])
