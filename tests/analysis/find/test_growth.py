"""What grew: the first tensor that rises steeply from one iteration to the next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis import find_non_finite, write_statistic_files
from msdump.cli.main import main
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


def write_steps(root: Path, largest: list[float], later: list[float]) -> Path:
    """Iterations of two operators whose outputs have these largest absolute values."""
    for iteration, (first, second) in enumerate(zip(largest, later, strict=True)):
        operators = [
            ("D/MatMul-op1", {IN: floats(1, 1), OUT: floats(-first, first / 2)}),
            ("D/Mul-op2", {IN: floats(-first, first / 2), OUT: floats(second, np.nan)}),
        ]
        write_dump(root, operators, iteration=iteration)
    return root


@pytest.mark.parametrize("has_tensors", [True, False])
def test_the_first_tensor_that_rose_is_named_though_the_nan_came_later(tmp_path: Path, has_tensors: bool) -> None:
    dump = write_steps(tmp_path / "tensors", [1, 2, 300, 300], [1, 1, 1e6, 1e6])
    if not has_tensors:
        write_statistic_files(dump, tmp_path / "statistics")
        dump = tmp_path / "statistics"
    grew = find_non_finite(dump).grew
    assert grew is not None and (grew.operator.op_name, grew.io) == ("MatMul-op1", "output")
    assert (grew.before.iteration, grew.step.iteration) == (1, 2)
    assert (grew.largest_before, grew.largest, grew.factor) == (2, 300, 150)


def test_zeros_rounding_and_one_iteration_grow_nothing(tmp_path: Path) -> None:
    assert find_non_finite(write_steps(tmp_path / "zero", [0, 5], [1, 1])).grew is None
    assert find_non_finite(write_steps(tmp_path / "noise", [1e-9, 1e-6], [1, 1])).grew is None
    assert find_non_finite(write_steps(tmp_path / "one", [1], [1])).grew is None
    assert find_non_finite(write_steps(tmp_path / "slow", [1, 99, 9000], [1, 1, 1])).grew is None


def test_iterations_of_other_graphs_and_integers_are_no_measure(tmp_path: Path) -> None:
    for graph, value in enumerate((1, 1000)):
        write_dump(tmp_path, [("D/Mul-op1", {OUT: floats(value)})], iteration=graph, graph=graph)
    for iteration, number in enumerate((1, 10**6)):
        write_dump(tmp_path, [("D/Mul-op1", {OUT: np.array([number], np.int32)})], iteration=iteration, graph=7)
    assert find_non_finite(tmp_path).grew is None


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.sampled_from([0.5, 1.0, 60.0, 1e4, 1e6]), min_size=1, max_size=6))
def test_the_first_rise_of_a_hundred_times_is_found(
    values: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    grew = find_non_finite(write_steps(tmp_path_factory.mktemp("steps"), values, [1.0] * len(values))).grew
    rises = [i for i in range(1, len(values)) if values[i] >= 100 * values[i - 1]]
    assert (None if grew is None else grew.step.iteration) == (rises[0] if rises else None)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for iteration, (largest, made) in enumerate(((1, 1), (500, np.nan))):
        operators = [
            ("D/MatMul-op1", {IN: floats(1, 1), OUT: floats(-largest, largest / 2)}),
            ("D/Mul-op2", {IN: floats(-largest, largest / 2), OUT: floats(made)}),
        ]
        write_dump(tmp_path, operators, iteration=iteration)
    main(["nan", str(tmp_path)])
    text = capsys.readouterr().out
    assert "what grew first: output 0 of D/MatMul-op1 (MatMul), rank 0, graph 0, iteration 1\n" in text
    assert "  largest absolute value 500, 500 times the 1 of iteration 0\n" in text


@pytest.mark.parametrize("later", [1.0, np.nan], ids=["finite", "a NaN before it"])
def test_what_leads_to_no_finding_is_no_answer(
    later: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Running means, adapters that start at 0: much grows in ordinary training."""
    for iteration, (largest, made) in enumerate(((1, later), (500, 1.0))):
        operators = [("D/MatMul-op1", {OUT: floats(largest)}), ("D/Mul-op2", {IN: floats(1), OUT: floats(made)})]
        write_dump(tmp_path, operators, iteration=iteration)
    assert main(["nan", str(tmp_path)]) == int(np.isnan(later))
    assert "grew" not in capsys.readouterr().out
    main(["nan", "--all", str(tmp_path)])
    text = capsys.readouterr().out
    assert "grew" not in text
    assert "no finding, but this rose: output 0 of D/MatMul-op1 (MatMul), rank 0, graph 0, iteration 1\n" in text
