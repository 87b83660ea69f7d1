"""Files of msprobe: what is written is what the reader of such trees finds again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.exporting import export
from msdump.analysis.overview.contents import Contents
from msdump.analysis.stat.statistics import tensor_statistics
from tests.analysis.exporting.conftest import HOSTILE
from tests.analysis.small_dump import write_dump


def test_statistics_come_back(nan_dump: Path, tmp_path: Path) -> None:
    written, contents = export(nan_dump, "msprobe", tmp_path / "x")
    assert any("parameters" in note for note in written.notes)
    back = tensor_statistics(tmp_path / "x")
    mine = [row for one in contents.operators if not one.operator.is_parameter for row in one.tensors]
    assert not back.damaged and len(back.rows) == len(mine)
    for one, other in zip(mine, back.rows, strict=True):
        assert (one.step.iteration, one.tensor.io, one.tensor.slot) == (
            other.step.iteration, other.tensor.io, other.tensor.slot,
        )  # fmt: skip
        assert one.shape == other.shape and one.tensor.true_dtype == other.tensor.true_dtype
        is_finite = not (one.numbers.nan or one.numbers.positive_inf or one.numbers.negative_inf)
        np.testing.assert_equal(other.numbers.l2norm, one.numbers.l2norm)
        assert one.numbers.max == other.numbers.max or not is_finite


def test_the_first_nan_is_the_same(nan_dump: Path, tmp_path: Path) -> None:
    export(nan_dump, "msprobe", tmp_path / "x")
    (mine, *_), (back, *_) = (Contents(one).non_finite.steps for one in (nan_dump, tmp_path / "x"))
    assert mine.operator.op_type == "Log" and "Log" in back.operator.label


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1.0, np.nan), (np.nan, np.nan, np.nan, np.nan)),
        ((1.0, np.inf), (np.inf, 1, np.inf, np.inf)),
        ((1.0, -np.inf), (1, -np.inf, -np.inf, np.inf)),
        ((np.inf, -np.inf), (np.inf, -np.inf, np.nan, np.inf)),
        ((-np.inf,), (-np.inf, -np.inf, -np.inf, np.inf)),
    ],
)
def test_numbers_are_those_of_all_elements(
    values: tuple[float, ...], expected: tuple[float, ...], tmp_path: Path
) -> None:
    dump = write_dump(tmp_path / "dump", [("Net/Log-op0", {("output", 0): np.array(values, np.float32)})])
    export(dump, "msprobe", tmp_path / "x")
    (file,) = (tmp_path / "x").rglob("dump.json")
    (record,) = json.loads(file.read_text())["data"].values()
    np.testing.assert_equal([record["output"][0][name] for name in ("Max", "Min", "Mean", "Norm")], expected)


def test_modules_stand_before_what_they_hold(nan_dump: Path, tmp_path: Path) -> None:
    export(nan_dump, "msprobe", tmp_path / "x")
    for folder in (tmp_path / "x").glob("step*/rank*"):
        parents = json.loads((folder / "construct.json").read_text())
        records = json.loads((folder / "dump.json").read_text())["data"]
        seen: set[str | None] = {None}
        for name, parent in parents.items():
            assert parent in seen
            seen.add(name)
        assert set(records) <= set(parents)
        stacks = json.loads((folder / "stack.json").read_text())
        assert sorted(name for names, _ in stacks.values() for name in names) == sorted(records)


def test_hostile_names_become_names(hostile_dump: Path, tmp_path: Path) -> None:
    export(hostile_dump, "msprobe", tmp_path / "x")
    (file,) = (tmp_path / "x").rglob("dump.json")
    names = list(json.loads(file.read_text())["data"])
    assert len(names) >= len(HOSTILE) and all(name.replace(".", "").replace("_", "").isalnum() for name in names)
