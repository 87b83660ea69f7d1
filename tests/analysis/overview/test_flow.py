"""What flows between operators: by graph files, recovered from equal tensors, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis.overview.contents import Contents
from msdump.analysis.overview.flow import GRAPH, ORDER, RECOVERED, Flow, flow_of
from msdump.analysis.steps import StepKey
from tests.analysis.small_dump import Array, Tensors, floats, write_dump

IN, IN1, OUT = ("input", 0), ("input", 1), ("output", 0)
A, B, C = floats(1, 2, 3), floats(4, 5, 6.5), floats(-1, 0, 1)


def flow(root: Path, operators: Sequence[tuple[str, Tensors]]) -> Flow:
    return flow_of(Contents(write_dump(root / "dump", operators)).operators)


def test_an_input_comes_from_the_last_equal_output(tmp_path: Path) -> None:
    found = flow(
        tmp_path,
        [
            ("Net/Data-op0", {OUT: A}),
            ("Net/Relu-op1", {IN: A, OUT: A}),
            ("Net/Add-op2", {IN: A, IN1: C, OUT: B}),
            ("Net/Exp-op3", {IN: B, OUT: C}),
        ],
    )
    assert found.how == RECOVERED
    # Nothing earlier has made C when Add reads it: an output is no source of what came before.
    assert found.sources == ((None,), (0, None), (1, None, None), (2, None))


@pytest.mark.parametrize("other", [A.astype(np.float64), A.reshape(3, 1), floats(1, 2, 3.5), floats(3, 2, 1, 0)])
def test_another_dtype_shape_or_value_is_another_tensor(other: Array, tmp_path: Path) -> None:
    found = flow(tmp_path, [("Net/Data-op0", {OUT: A}), ("Net/Relu-op1", {IN: other, OUT: B})])
    assert found == Flow(ORDER, ((None,), (None, None)), ((), ()))


def test_a_constant_has_a_source_only_where_there_is_one_candidate(tmp_path: Path) -> None:
    zeros = np.zeros(4, np.float32)
    one = [("Net/Zeros-op0", {OUT: zeros}), ("Net/Relu-op1", {IN: zeros, OUT: B})]
    assert flow(tmp_path / "one", one).sources == ((None,), (0, None))
    two = [("Net/Zeros-op0", {OUT: zeros}), ("Net/Sub-op1", {OUT: zeros}), ("Net/Relu-op2", {IN: zeros, OUT: B})]
    assert flow(tmp_path / "two", two).sources[2] == (None, None)


def test_nan_flows_as_any_other_value(tmp_path: Path) -> None:
    bad = floats(np.nan, 1, np.inf)
    found = flow(tmp_path, [("Net/Log-op0", {OUT: bad}), ("Net/Exp-op1", {IN: bad, OUT: A})])
    assert found.sources == ((None,), (0, None))


@settings(max_examples=15, deadline=None)
@given(reads=st.lists(st.lists(st.integers(0, 9), max_size=2), min_size=1, max_size=8))
def test_recovered_sources_are_the_real_ones(reads: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where all outputs differ, what was recovered is what was read."""
    rng = np.random.default_rng(0)
    outputs = [rng.standard_normal(5).astype(np.float32) for _ in reads]
    operators: list[tuple[str, Tensors]] = []
    expected = []
    for number, wanted in enumerate(reads):
        sources = [one for one in wanted if one < number]
        tensors = {("input", slot): outputs[one] for slot, one in enumerate(sources)}
        operators.append((f"Net/Op-op{number}", {**tensors, OUT: outputs[number]}))
        expected.append((*sources, None))
    found = flow(tmp_path_factory.mktemp("flow"), operators)
    assert found.sources == tuple(expected)
    assert found.how == (RECOVERED if any(len(own) > 1 for own in expected) else ORDER)


def test_a_graph_file_is_believed(nan_dump: Path) -> None:
    operators = [one for one in Contents(nan_dump).operators if one.step == StepKey(0, 0, 0)]
    found = flow_of(operators)
    assert found.how == GRAPH and not any(found.reads)
    for operator, sources in zip(operators, found.sources, strict=True):
        for row, source in zip(operator.tensors, sources, strict=True):
            # A dump has parameters as the step left them.
            if source is not None and not operators[source].operator.is_parameter:
                assert row.tensor.io == "input" and any(
                    np.array_equal(row.tensor.load(), other.tensor.load(), equal_nan=True)
                    for other in operators[source].tensors
                    if other.tensor.io == "output"
                )


def test_inputs_that_were_not_dumped_are_read_all_the_same(nan_dump: Path) -> None:
    whole = [one for one in Contents(nan_dump).operators if one.step == StepKey(0, 0, 0)]
    expected = [{source for source in own if source is not None} for own in flow_of(whole).sources]
    for operator in whole:
        operator.tensors = tuple(row for row in operator.tensors if row.tensor.io == "output")
    found = flow_of(whole)
    assert found.how == GRAPH
    parameters = {number for number, one in enumerate(whole) if one.operator.is_parameter}
    assert [set(own) for own in found.reads] == [own - parameters for own in expected]
    assert any(found.reads)
