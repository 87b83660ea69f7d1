"""What becomes of a NaN: whether it reaches an end, or is dropped on the way; and steps that a scaler skipped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.analysis import NonFiniteReport, find_non_finite
from msdump.analysis.find._fate import skips_step
from msdump.analysis.find._health import HealthTable
from msdump.analysis.graph_info import GraphFile, GraphNode, Origin
from msdump.analysis.steps import read_steps
from msdump.formats.dump_dir import DumpDir
from tests.analysis.small_dump import floats, write_dump

IN, OTHER, OUT = ("input", 0), ("input", 1), ("output", 0)
FINE, BAD = floats(1, 2, 3), floats(np.nan, 1, 2)


def search(folder: Path, operators: Sequence[tuple[str, Any]]) -> NonFiniteReport:
    return find_non_finite(write_dump(folder / "dump", operators))


def test_what_a_choice_drops_is_an_observation(tmp_path: Path) -> None:
    report = search(
        tmp_path,
        [
            ("D/Log-op1", {IN: FINE, OUT: BAD}),
            ("D/aten_where_self-op2", {IN: BAD, OUT: FINE}),
            ("D/Mul-op3", {IN: FINE, OUT: FINE}),
        ],
    )
    assert report.first is None
    (dropped,) = report.benign
    assert (dropped.operator.op_name, dropped.kind) == ("Log-op1", "NaN")
    assert [stop.op_name for stop in dropped.stops] == ["aten_where_self-op2"]


@pytest.mark.parametrize("reader", ["aten_isnan_default", "Maximum", "aten_relu_default"])
def test_a_test_or_an_extreme_drops_nothing(tmp_path: Path, reader: str) -> None:
    report = search(tmp_path, [("D/Log-op1", {IN: FINE, OUT: BAD}), (f"D/{reader}-op2", {IN: BAD, OUT: FINE})])
    assert report.first is not None and report.first.operator.op_name == "Log-op1"


def test_what_nobody_reads_is_an_end(tmp_path: Path) -> None:
    report = search(tmp_path, [("D/Log-op1", {IN: FINE, OUT: BAD})])
    assert report.first is not None and not report.benign


def test_one_way_that_goes_on_is_enough(tmp_path: Path) -> None:
    report = search(
        tmp_path,
        [
            ("D/Log-op1", {IN: FINE, OUT: BAD}),
            ("D/aten_where_self-op2", {IN: BAD, OUT: FINE}),
            ("D/Sqrt-op3", {IN: BAD, OUT: BAD}),
        ],
    )
    assert report.first is not None and report.first.operator.op_name == "Log-op1"
    assert [each.op_name for each in report.first.stopped] == ["aten_where_self-op2"]


def test_the_nan_that_goes_on_comes_first(tmp_path: Path) -> None:
    other = floats(np.nan, np.nan, 2)
    report = search(
        tmp_path,
        [
            ("D/Log-op1", {IN: FINE, OUT: BAD}),
            ("D/aten_masked_fill_Scalar-op2", {IN: BAD, OUT: FINE}),
            ("D/Sqrt-op3", {IN: FINE, OUT: other}),
            ("D/Mul-op4", {IN: other, OUT: other}),
        ],
    )
    assert report.first is not None and report.first.operator.op_name == "Sqrt-op3"
    assert [each.operator.op_name for each in report.benign] == ["Log-op1"]


def gradients(found: float, parameter: Any = FINE) -> Sequence[tuple[str, Any]]:
    """A step of training whose gradients are Inf, and what its scaler says of them."""
    huge = floats(np.inf, 2, 3)
    scaler = "aten__amp_foreach_non_finite_check_and_unscale__default"
    return [
        ("D/MatMul-op1", {IN: FINE, OUT: FINE}),
        ("Gradients/D/MatMul-op2", {IN: FINE, OUT: huge}),
        (f"D/{scaler}-op3", {IN: huge, OUT: huge, ("output", 1): floats(found)}),
        ("D/AssignAdd-op4", {IN: parameter, OUT: parameter}),
    ]


def test_a_skipped_step_is_no_finding(tmp_path: Path) -> None:
    report = search(tmp_path, gradients(1.0))
    assert report.first is None and report.first_inf is None
    (skipped,) = report.skipped
    assert skipped.operator.op_name == "MatMul-op2" and skipped.kind == "Inf"


def test_a_scaler_that_found_nothing_skips_nothing(tmp_path: Path) -> None:
    report = search(tmp_path, gradients(0.0))
    assert report.first is not None and not report.skipped


def test_a_forward_pass_that_is_bad_is_a_finding_in_a_skipped_step(tmp_path: Path) -> None:
    report = search(tmp_path, [("D/Log-op0", {IN: FINE, OUT: BAD}), *gradients(1.0)])
    assert report.first is not None and report.first.operator.op_name == "Log-op0" and not report.skipped


HUGE = floats(np.inf, 2, 3)
# (operator, who makes what it reads)
TESTED = [("Gradients/D/MatMul-op1", ""), ("D/Mul-op2", "Gradients/D/MatMul-op1"), ("D/IsFinite-op3", "D/Mul-op2")]


@pytest.mark.parametrize(
    ("operators", "is_skipped"),
    [
        (TESTED, True),
        ([TESTED[0], ("D/IsFinite-op3", "Gradients/D/MatMul-op1")], True),
        ([*TESTED, ("D/Greater-op4", "D/Mul-op2")], True),
        ([*TESTED, ("D/SGD-op4", "D/Mul-op2")], False),  # it takes them all the same
        ([("D/Log-op1", ""), ("D/IsFinite-op2", "D/Log-op1")], False),  # a test of the loss
        (TESTED[:2], False),
    ],
)
def test_a_step_whose_gradients_are_only_tested_is_skipped(
    tmp_path: Path, operators: Sequence[tuple[str, str]], is_skipped: bool
) -> None:
    dump = write_dump(tmp_path, [(name, {IN: HUGE, OUT: HUGE} if maker else {OUT: HUGE}) for name, maker in operators])
    (step,) = read_steps(DumpDir.open(dump))
    health = HealthTable()
    health.add_tensors([tensor for operator in step.operators for _, _, tensor in operator.all_tensors()], [])
    nodes = tuple(
        GraphNode(name, name.rpartition("/")[2].partition("-")[0], (), (Origin(maker, 0),) if maker else ())
        for name, maker in operators
    )
    graph = GraphFile(tmp_path / "a.pb", 0, 0, nodes, {node.full_name: node for node in nodes})
    assert skips_step([step], health, {id(step): graph}) == is_skipped
    assert not skips_step([step], health, {id(step): None})


def test_what_is_written_into_memory_is_an_end(tmp_path: Path) -> None:
    """A cache that a later iteration reads."""
    report = search(
        tmp_path,
        [("D/Log-op1", {IN: FINE, OUT: BAD}), ("D/aten_index_put__default-op2", {IN: FINE, OTHER: BAD, OUT: BAD})],
    )
    assert report.first is not None and report.first.operator.op_name == "Log-op1"
