"""One reading for all who ask: what they find is what each of them finds alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import msdump
from msdump.analysis import find_non_finite, tensor_statistics
from msdump.analysis.find.nan import NonFinite
from msdump.analysis.measurements import Measurement, Measurements, StoreKey
from msdump.analysis.stat.rows import StatisticReport
from msdump.errors import ConfigError, FormatError
from msdump.tensors import dtypes
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
NAMES = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "uint8", "complex64")


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.held: dict[StoreKey, Measurement] = {}

    def get(self, key: StoreKey) -> Measurement | None:
        return self.held.get(key)

    def put(self, key: StoreKey, measurement: Measurement) -> None:
        self.held[key] = measurement


def told(report: StatisticReport) -> str:
    """All of it; NaN equals itself."""
    return repr((report.table(), [row.exponents for row in report.rows], [str(error) for _, error in report.damaged]))


def found(result: NonFinite) -> object:
    labels = [[one.label for one in group] for group in (result.infected, result.also_made, result.stopped)]
    return result.step, result.operator.label, result.kind, result.how, labels, result.parameters


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_shared_readings_find_what_own_ones_find(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("dump")
    values = st.sampled_from((0.0, 1.0, -2.5, 400.0, np.inf, -np.inf, np.nan))
    operators = []
    for number in range(data.draw(st.integers(1, 4))):
        tensors = {}
        for place in (IN, OUT):
            dtype = dtypes.dtype(data.draw(st.sampled_from(NAMES))).numpy
            with np.errstate(all="ignore"):
                tensors[place] = np.array(data.draw(st.lists(values, max_size=5)), np.float32).astype(dtype)
        operators.append((f"Net/Add-op{number}", tensors))
    write_dump(folder, operators)
    shared = Measurements()
    assert told(tensor_statistics(folder, measurements=shared)) == told(tensor_statistics(folder))
    with_shared, alone = find_non_finite(folder, measurements=shared), find_non_finite(folder)
    assert list(map(found, with_shared.steps)) == list(map(found, alone.steps))
    assert str(with_shared.damaged) == str(alone.damaged)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "dump", [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(np.nan, 0)})])


def test_a_store_is_asked_before_the_file_and_by_its_stamp(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    first = tensor_statistics(dump, measurements=Measurements(shelf, has_exponents=True))
    assert len(shelf.held) == 2
    read: list[str] = []
    measured = __import__("msdump.analysis.measurements", fromlist=["_measured"])._measured
    monkeypatch.setattr(
        "msdump.analysis.measurements._measured", lambda one, way: (read.append(one.path), measured(one, way))[1]
    )
    assert told(tensor_statistics(dump, measurements=Measurements(shelf, has_exponents=True))) == told(first)
    assert not read
    (changed,) = dump.rglob("*.output.0.*")
    os.utime(changed, ns=(1, 1))
    tensor_statistics(dump, measurements=Measurements(shelf, has_exponents=True))
    assert read == [str(changed)]


def test_nothing_is_read_where_nothing_may_be(dump: Path) -> None:
    rough = Measurements(is_complete=False)
    rows = tensor_statistics(dump, measurements=rough).rows
    assert [(row.numbers.max, row.numbers.nan, row.shape) for row in rows] == [(None, None, (2,))] * 2
    assert find_non_finite(dump, measurements=rough).first is None


def test_what_is_wrong_with_a_file_is_told_each_time(dump: Path) -> None:
    (tensor,) = (one for one in msdump.open(dump).tensors() if one.io == "output")
    tensor = replace(tensor, small=None)  # as one that is too large to be kept with its header
    Path(tensor.path).unlink()
    shared = Measurements(Shelf())
    assert isinstance(shared.of(tensor), FormatError) and shared.of(tensor) is shared.of(tensor)


def test_a_hash_is_not_among_them(dump: Path) -> None:
    with pytest.raises(ConfigError, match="measurements: expected None where has_md5"):
        tensor_statistics(dump, measurements=Measurements(), has_md5=True)
