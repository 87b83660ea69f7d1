"""Graphs in which some nodes run others: names of runs, and what observers are told of them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from msdump.graph.graph import SAVED, Graph, run_name
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.types import TensorType

PIECES = st.lists(st.text("ab./0", min_size=1, max_size=4), min_size=1, max_size=4)
FLOATS = TensorType("float32", (2,))


def primitive(op_type: str) -> Primitive:
    return Primitive(op_type, definition=PrimitiveDef(op_type))


def looping() -> Graph:
    """A value from outside, one that a loop gives to its body, the operator in there and the loop."""
    graph = Graph()
    outer, carried = graph.add_input("x", FLOATS), graph.add_input("v", FLOATS, SAVED)
    inner = graph.add_foreign_node(primitive("Add"), [carried, outer], [FLOATS], "", name="loop/body/add")
    inner.loops = (len("loop/body/"),)
    loop = graph.add_foreign_node(primitive("Loop"), [outer], [FLOATS], "", name="loop")
    inner.owner = loop
    graph.number()
    return graph


@given(PIECES, st.data())
def test_names_of_runs_fit_the_pattern_and_are_told_apart(pieces: list[str], data: st.DataObject) -> None:
    graph = looping()
    node = graph.nodes[0]
    ends = tuple(itertools.accumulate(map(len, pieces)))
    node.name, node.loops = "".join(pieces), ends[:-1]
    numbers = st.tuples(*(st.integers(0, 12) for _ in node.loops))
    first, second = data.draw(numbers), data.draw(numbers)
    names = [run_name(node.name, node.loops, each) for each in (first, second)]
    if not node.loops:
        assert node.run_pattern is None and names == [node.name] * 2
        return
    assert node.run_pattern is not None
    assert all(node.run_pattern.fullmatch(name) for name in names)
    assert not node.run_pattern.fullmatch(node.name + "/more")
    assert all(name.count("/") == node.name.count("/") + len(node.loops) for name in names)


def test_a_name_has_the_number_behind_the_body() -> None:
    node = looping().nodes[0]
    assert run_name(node.full_name, node.loops, (2,)) == "loop/body/2/add"
    assert node.run_pattern is not None and not node.run_pattern.fullmatch("loop/body/add")


def test_what_comes_from_outside_and_what_hands_on() -> None:
    graph = looping()
    assert [value.name for value in graph.handed_in] == ["x"]
    assert graph.owners == {graph.nodes[1].id}
    graph.lint()
