"""ms_iteration_order_graph_N.jsonl: written where iterations differ, read back for each of them."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.iterations_jsonl import ExecutedOperators, IterationsFile, Maker, read_iterations

GRAPH = 1
indices = st.integers(0, 30)
makers: st.SearchStrategy[Maker] = st.none() | indices | st.tuples(st.integers(0, 2), indices, st.integers(0, 3))


@st.composite
def executed(draw: st.DrawFn) -> ExecutedOperators:
    order = tuple(draw(st.lists(indices, max_size=12)))
    return ExecutedOperators(order, {index: tuple(draw(st.lists(makers, max_size=3))) for index in order})


def write(path: Path, runs: list[tuple[int, ExecutedOperators]]) -> None:
    file = IterationsFile(path, GRAPH)
    for iteration, one in runs:
        file.note(iteration, one)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), executed()), min_size=1, max_size=6))
def test_each_iteration_is_read_back(steps: list[tuple[int, ExecutedOperators]]) -> None:
    runs, iteration = [], -1
    for ahead, one in steps:
        iteration += ahead
        runs.append((iteration, one))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        write(path, runs)
        found = read_iterations(path, GRAPH)
        for iteration, one in runs:
            order, known = next((at.order, at.makers) for first, at in reversed(found) if first <= iteration)
            assert order == one.order
            assert {index: known[index] for index in one.order} == one.makers


def test_what_every_iteration_does_is_one_line(tmp_path: Path) -> None:
    same = ExecutedOperators((0, 1, 2, 3), {0: (None,), 1: ((GRAPH, 0, 0),), 2: ((0, 5, 1),), 3: ()})
    path = tmp_path / "execution_order" / "a.jsonl"
    write(path, [(iteration, same) for iteration in range(5)])
    assert path.read_text() == (
        '{"iteration":0,"order":[[0,3]],"inputs":{"0":[null],"1":[[0,0]],"2":[[0,5,1]],"3":[]}}\n'
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


def test_attributes_hold_until_there_are_others(tmp_path: Path) -> None:
    same = ExecutedOperators((0,), {0: ()})
    file = IterationsFile(tmp_path / "a.jsonl", GRAPH)
    file.note(0, same)
    file.note(1, same, {0: {"alpha": 0.5}})
    file.note(2, same)
    file.note(3, same, {0: {"alpha": float("nan")}})
    found = read_iterations(tmp_path / "a.jsonl", GRAPH)
    assert [first for first, _ in found] == [0, 1, 3]
    assert found[0][1].attributes == {} and found[1][1].attributes == {0: {"alpha": 0.5}}
    assert found[2][1].order == (0,) and str(found[2][1].attributes[0]["alpha"]) == "nan"


def test_a_later_run_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, [(0, ExecutedOperators((0,), {0: ()})), (1, ExecutedOperators((1,), {1: ()}))])
    write(path, [(0, ExecutedOperators((2,), {2: ()}))])
    assert read_iterations(path, GRAPH) == [(0, ExecutedOperators((2,), {2: ()}))]


def test_a_program_that_goes_back_forgets_what_came_later(tmp_path: Path) -> None:
    one, two = ExecutedOperators((0,), {0: ()}), ExecutedOperators((1,), {1: ()})
    path = tmp_path / "a.jsonl"
    write(path, [(0, one), (7, two), (3, two)])
    assert [(first, at.order) for first, at in read_iterations(path, GRAPH)] == [(0, (0,)), (3, (1,))]


def test_a_cut_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"iteration":0,"order":[0]}\n{"iteration":1,"ord')
    assert [first for first, _ in read_iterations(path, GRAPH)] == [0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "line 1: expected an object in JSON"),
        ("[]", "line 1: expected an object in JSON"),
        ("{", "line 1: expected an object in JSON"),
        ('{"iteration":-1}', "iteration: expected a number from 0, got -1"),
        ('{"iteration":true}', "iteration: expected a number"),
        ('{"iteration":0,"order":3}', "order: expected a list, got 3"),
        ('{"iteration":0,"order":[[5,2]]}', r"order: expected \[first, last\]"),
        ('{"iteration":0,"order":[[0,99999999999]]}', r"order: expected \[first, last\]"),
        ('{"iteration":0,"order":["a"]}', "order: expected a number"),
        ('{"iteration":0,"inputs":[]}', "inputs: expected an object"),
        ('{"iteration":0,"inputs":{"x":[]}}', "inputs: expected the index of an operator, got 'x'"),
        ('{"iteration":0,"attributes":{"1":4}}', "attributes: expected an object of objects"),
        ('{"iteration":0,"attributes":{"x":{}}}', "attributes: expected the index of an operator"),
        ('{"iteration":0,"inputs":{"1":4}}', "inputs: expected a list of makers"),
        ('{"iteration":0,"inputs":{"1":[[1]]}}', "inputs: expected a number, "),
        ('{"iteration":0,"inputs":{"1":[[1,"b"]]}}', "inputs: expected a number"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, expected: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(FormatError, match=expected):
        read_iterations(path, GRAPH)
