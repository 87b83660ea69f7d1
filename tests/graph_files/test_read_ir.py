"""Text of a graph from anywhere: an error that names the line, soon, whatever the line holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.graph_files.read_ir import parse_ir
from msdump.graph_files.source_line import SourceLine, parse_source_line

NODE = (
    "  %1(a) = Add(%para1_x)\n"
    "      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)\n"
    "      # Fullname with scope: (Default/Add-op1)"
)
LINES = {
    "parameter": "%para1_{}",
    "node": "  %1({}",
    "operands": "  %1(a) = Add({}",
    "types": "  %1(a) = Add(%2)\n      : (x) -> ({}\n      # Fullname with scope: (n)",
    "name": NODE + "{}",
    "source": NODE + "\n      # In file {}",
}
UNITS = (
    "a", "1", " ", "(", ")", ",", ") = ", ") = a(", " : <", ">  :  ", " : <>  :  ", "IsWeight: ", ":1/", "/", ":", "[",
    "Tensor[", "Tensor[Float32], (1", "Tensor[Float32]*9", "Tuple[", "], TupleShape(", "(1", "Tuple[], TupleShape(",
)  # fmt: skip


def graph(line: str) -> str:
    return f"# IR entry: @g\n{line}\n  Return(%1)\n"


def problem_of(text: str) -> str:
    """What is wrong with it; "" for a graph."""
    try:
        parse_ir(text)
    except FormatError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("place", LINES)
def test_a_long_line_is_read_or_refused_soon(place: str, alarm: None) -> None:
    """Of 300,000 characters: what takes the square of that, or more, takes hours."""
    for unit in UNITS:
        text = graph(LINES[place].replace("{}", unit * (300_000 // len(unit))))
        assert len(problem_of(text)) < 1000


@given(st.lists(st.one_of(st.sampled_from([*UNITS, *LINES.values(), NODE, "\n", "  Return(%1)"]), st.text(max_size=5))))
def test_any_text_is_a_graph_or_a_format_error(parts: list[str]) -> None:
    for text in ("".join(parts), graph("".join(parts)), graph("\n".join([NODE, *parts]))):
        problem = problem_of(text)
        assert not problem or problem.startswith("ir line ")


@pytest.mark.parametrize(
    "types",
    ["Tuple[Tensor[Float32]*999999999], TupleShape((1))", "Tensor[Float32], (" + "1" * 5000 + ")"],
)
def test_numbers_that_lie(types: str, alarm: None) -> None:
    text = NODE.replace("-> (<Tensor[Float32], (2)>)", f"-> (<{types}>)")
    assert text != NODE
    with pytest.raises(FormatError, match="ir line 3: expected"):
        parse_ir(graph(text))
    with pytest.raises(FormatError, match="ir line"):
        parse_ir(graph(NODE.replace("%1(", "%" + "1" * 5000 + "(")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# In file a.py:3/x = a[0:2/n]/", SourceLine("a.py", 3, "x = a[0:2/n]")),
        ("  # inlined:In file a:b.py:3//  ", SourceLine("a:b.py", 3, "")),
        ("# In file a.py:3/x", None),
        ("# In file a.py:3/", None),
        ("# In file :3/x/", None),
        ("# In file a.py:x/y/", None),
        ("a.py:3/x/", None),
    ],
)
def test_source_lines(text: str, expected: SourceLine | None) -> None:
    assert parse_source_line(text) == expected
