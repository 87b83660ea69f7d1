"""Curves: what is joined under one name is what all of its elements together would give."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis import tensor_statistics
from msdump.analysis.stat.curve import AXES, JOINERS, Curve, curve
from msdump.errors import ConfigError
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    for iteration in range(2):
        operators = [
            ("Net/one/Add-op0", {IN: floats(9), OUT: floats(3 + iteration, 0)}),
            ("Net/one/Mul-op1", {OUT: floats(4, 0)}),
            ("Net/two/Log-op2", {OUT: floats(math.nan, 5)}),
            ("Net/two/aten_empty_like_default-op3", {OUT: floats(1e30)}),
            ("Parameter.w", {OUT: floats(7)}),
        ]
        write_dump(tmp_path, operators, iteration=iteration)
    return tmp_path


def test_by_operator_and_iteration(dump: Path) -> None:
    report = tensor_statistics(dump)
    found = curve(report, "max", "operator")
    assert found.names == ("Net/one/Add-op0", "Net/one/Mul-op1", "Net/two/Log-op2")
    assert found.values == (4.0, 4.0, 5.0)
    assert math.isnan(curve(report, "l2norm", "operator").values[2])
    assert curve(report, "nan", "iteration") == Curve(("0", "1"), (1.0, 1.0))
    one = tensor_statistics(dump, op_type=["Add", "Mul"], iteration=0)
    assert curve(one, "l2norm", "rank").values == (5.0,)
    assert curve(one, "avg", "rank").values == (1.75,)


@pytest.mark.parametrize("statistic", JOINERS)
@pytest.mark.parametrize("by", AXES)
def test_every_statistic_over_every_axis(dump: Path, statistic: str, by: str) -> None:
    found = curve(tensor_statistics(dump, op_type=["Add", "Mul"]), statistic, by)
    assert len(found.names) == len(found.values) > 0 and np.isfinite(found.values).all()


@pytest.mark.parametrize(("statistic", "by", "words"), [("l2nrm", "layer", '"l2norm"'), ("max", "leyer", '"layer"')])
def test_what_is_not_known_is_refused(dump: Path, statistic: str, by: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        curve(tensor_statistics(dump), statistic, by)
