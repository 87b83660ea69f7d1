"""What a row tells of NaN and Inf is true of the tensor, whatever the form of file, the dtype and the columns."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.config.acl_rules import STATISTICS
from msdump.formats.acl_stats_csv import read_acl_stats, stats_text
from msdump.formats.msprobe_json import read_msprobe_json
from msdump.formats.statistic_csv import TITLE_BY_CATEGORY, StatisticWriter, read_statistic_csv
from msdump.formats.statistic_row import StatisticForm, StatisticRow
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from tests.contracts.writer_contract import record

# Dtypes that have an array, and values that each of them may hold.
DTYPES = [row.name for row in dtypes.TABLE if row.numpy_type is not None and row.kind != dtypes.OTHER]
VALUES = st.lists(st.sampled_from([0.0, 1.0, 3.0, math.nan, math.inf, -math.inf]), max_size=5)


def _array(values: list[float], dtype: str) -> Array:
    row = dtypes.dtype(dtype)
    finite = [value if row.may_be_non_finite or math.isfinite(value) else 1.0 for value in values]
    with np.errstate(all="ignore"):
        return np.array(finite, np.float32).astype(row.numpy)


def _mindspore(folder: Path, array: Array, dtype: str, columns: list[str]) -> StatisticRow:
    writer = StatisticWriter(lambda _: folder, columns, thread_count=1)
    writer.write([record(data=array, dtype=dtype)])
    writer.close()
    [row] = read_statistic_csv(folder / "statistic.csv")
    return row


def _acl(folder: Path, array: Array, dtype: str, columns: list[str]) -> StatisticRow:
    path = folder / "Add.op.1.2.1700000000000000.csv"
    path.write_text(stats_text([record(data=array, dtype=dtype)], columns))
    [row] = read_acl_stats(path)
    return row


def _msprobe(folder: Path, array: Array, dtype: str, columns: list[str]) -> StatisticRow:
    wide = array.astype(np.complex128).real
    extremes = {"Max": wide.max(), "Min": wide.min()} if wide.size else {"Max": None, "Min": None}
    content = {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": [array.size], **extremes}
    path = folder / "dump.json"
    path.write_text(json.dumps({"data": {"Torch.add.0.forward": {"output": [content]}}}))
    [row] = read_msprobe_json(path)
    return row


FORMS: dict[str, tuple[Callable[..., StatisticRow], list[str]]] = {
    "mindspore": (_mindspore, list(TITLE_BY_CATEGORY)),
    "acl": (_acl, list(STATISTICS)),
    "msprobe": (_msprobe, [""]),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), values=VALUES)
def test_what_is_told_is_true(form: str, data: Any, dtype: str, values: list[float]) -> None:
    write, names = FORMS[form]
    columns = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    array = _array(values, dtype)
    with tempfile.TemporaryDirectory() as folder:
        row = write(Path(folder), array, dtype, columns)
    wide = array.astype(np.complex128)
    nan, inf = bool(np.isnan(wide).any()), bool(np.isinf(wide).any())
    assert row.holds_nan in (nan, None) and row.holds_inf in (inf, None)
    if not dtypes.dtype(dtype).may_be_non_finite or not array.size:
        assert row.is_told and not row.holds_nan and not row.holds_inf
    elif row.is_told:
        assert bool(row.holds_nan or row.holds_inf) == (nan or inf)
    elif dtype in row.form.measured:
        assert row.form.telling(dtype)  # the columns that were left out


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "float16", "bfloat16", "float32", "float64"])
def test_the_default_of_acl_tells_of_every_dtype_that_it_measures(tmp_path: Path, dtype: str) -> None:
    for values in ([1.0, 2.0], [math.nan, 1.0], [1.0, math.inf], [math.inf, -math.inf]):
        array = _array(values, dtype)
        row = _acl(tmp_path, array, dtype, ["Max", "Min", "Avg", "Nan", "Negative Inf", "Positive Inf"])
        assert row.is_told
        assert bool(row.holds_nan or row.holds_inf) == (not np.isfinite(array.astype(np.float64)).all())


def test_a_norm_alone_tells(tmp_path: Path) -> None:
    """The columns that MindSpore writes by default from 2.4 on."""
    for number, value in enumerate((1.0, math.nan, math.inf)):
        folder = tmp_path / str(number)
        folder.mkdir()
        row = _mindspore(folder, np.float32([2, value]), "float32", ["max", "min", "l2norm"])
        assert (row.holds_nan, row.holds_inf) == (math.isnan(value), None if math.isnan(value) else math.isinf(value))


def test_a_row_of_no_form_tells_nothing_of_floats() -> None:
    row = StatisticRow("Add", "op", 0, 0, 0, "output", 0, 8, "float32", (2,), max=1.0, min=0.0)
    assert not row.is_told and row.holds_nan is None and row.holds_inf is None
    assert StatisticForm().telling("float32") == []
