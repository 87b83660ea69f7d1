"""The .ir file: a golden one, MindSpore's kinds of lines, and that what is read back is the graph."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.graph.graph import Graph, Value
from msdump.graph.ir import ir_text, parse_ir
from msdump.graph.pb import model_bytes, read_model
from msdump.graph.primitive import Primitive
from msdump.graph.types import SourceLine, TensorSummary, TensorType, format_source_line, parse_source_line
from tests.graph.emit_cases import SAME, emit_graphs, emit_primitives, hand_graph

__all__ = ["emit_primitives"]

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "graph"
HAND_MADE = GOLDEN / "hand_made.ir"
ORIGINAL = GOLDEN / "mindspore_2.0.0_lenet.ir"


def original() -> str:
    return ORIGINAL.read_text(encoding="utf-8")


def test_the_hand_made_graph_line_by_line() -> None:
    assert ir_text(hand_graph()) == HAND_MADE.read_text(encoding="utf-8")


# Kind of line -> its form.
_SIZES = r"[0-9, ]*"
_TUPLE = rf"<Tuple\[[^>]*\], TupleShape\(((\({_SIZES}\)|NoShape)(, )?)*\)>"
_HOST = (
    rf"(<Tensor\[\w+\], \({_SIZES}\)(, value=\.\.\.)?>|<Ref\[Tensor\[\w+\]\], \({_SIZES}\), ref_key=:[\w.]+>"
    rf"|{_TUPLE}|<UMonad, NoShape>|<Bool, NoShape>)"
)
_DEVICE = rf"<\w+x\w+\[const vector\]\[{_SIZES}\]>"
_PAIRS = r"\{\w+: [^{}]+(, \w+: [^{}]+)*\}"
KINDS = {
    "entry": r"# IR entry: @\w+",
    "subgraphs": r"# Total subgraphs: 1",
    "blank": r"",
    "attrs": r"# Attrs:",
    "attr": r"\w+ : \w+",
    "count": r"# Total params: \d+",
    "params": r"# Params:",
    "parameter": rf"%para\d+_\S+ : <Ref\[.*ref_key=:\S+>  :  has_default  :  {_DEVICE}  :  IsWeight: true",
    "input": rf"%para\d+_\S+ : {_HOST}  :  {_DEVICE}  :  IsWeight: false",
    "graph attrs": r"subgraph attr:",
    "instance": r"subgraph instance: \w+ : 0x[0-9a-f]+",
    "open": r"subgraph @\w+\(\) \{",
    "node": r"  %\d+\([\w\[\]]+\) = \w+\([^{}]*\)( \{instance name: \w+\})?"
    rf"( primitive_attrs: {_PAIRS})?( cnode_attrs: {_PAIRS})?( cnode_primal_attrs: {_PAIRS})?",
    "host types": rf"      : \({_HOST}(, {_HOST})*\) -> \({_HOST}\)",
    "device types": rf"      : \({_DEVICE}(, {_DEVICE})*\) -> \({_DEVICE}(, {_DEVICE})*\)",
    "kinds": r"      : \((Tensor|Scalar)(, (Tensor|Scalar))*\) -> \((Tensor|TupleUnfold)\)",
    "full name": r"      # Fullname with scope: \([\w/-]+\)",
    "forward mark": r"      # Corresponding forward node candidate:",
    "code mark": r"      # Corresponding code candidate:",
    "frame": r"      # In file \S+:\d+/.*/",
    "inlined frame": r"      # inlined:In file \S+:\d+/.*/",
    "return": r"  Return\(%\d+\)",
    "return type": rf"      : \({_HOST}\)",
    "close": r"\}",
}


def kinds_of(text: str) -> list[str]:
    """The kind of every line; each line must be of exactly one."""
    found = []
    for line in text.split("\n"):
        fitting = [kind for kind, form in KINDS.items() if re.fullmatch(form, line)]
        assert len(fitting) == 1, (line, fitting)
        found += fitting
    return found


def test_every_line_is_of_a_kind_of_the_original() -> None:
    assert set(kinds_of(original())) == set(KINDS)
    # Code candidates are for fused operators, of which there are none here.
    assert set(kinds_of(ir_text(hand_graph()))) == set(KINDS) - {"code mark"}


def test_lines_follow_each_other_as_in_the_original() -> None:
    def pairs(text: str) -> set[tuple[str, str]]:
        return set(pairwise(kinds_of(text)))

    # MindSpore's bookkeeping nodes have no frames and its last parameter is a weight by chance.
    assert pairs(ir_text(hand_graph())) - pairs(original()) <= {("input", "parameter")}


def test_blocks_come_in_the_order_of_the_original() -> None:
    marks = ["# IR entry", "# Total subgraphs", "# Attrs:", "# Total params", "# Params:", "%para1_", "subgraph attr:"]
    marks += ["subgraph instance:", "subgraph @", "  %0(", "  Return(", "}\n\n\n"]
    for text in (original(), ir_text(hand_graph())):
        places = [text.index(mark) for mark in marks]
        assert places == sorted(places)
        assert text.endswith("}\n\n\n")


def test_the_original_is_read() -> None:
    graph = parse_ir(original())
    assert len(graph.parameters) == 20
    assert [parameter.name for parameter in graph.parameters if not parameter.is_weight] == ["inputs0", "inputs1"]
    assert graph.parameters[1].type == TensorSummary("float32", (10, 84))
    assert len(graph.nodes) == 68
    assert graph.returned == ("%67",)
    conv = graph.nodes[1]
    assert conv.full_name == "Default/network-WithLossCell/_backbone-LeNet5/conv1-Conv2d/Conv2D-op77"
    assert conv.operands == ("%para9_inputs0", "%0")
    assert conv.outputs == (TensorSummary("float32", (2, 6, 28, 28)),)
    assert conv.source[2] == SourceLine(
        "/home/user/lenet.py", 24, "        x = self.max_pool2d(self.relu(self.conv1(x)))"
    )
    backward = graph.nodes[27]
    assert backward.operands == ("%26", "%4", "Tensor(shape=[4], dtype=Int64, value=[ 2  6 14 14])")
    assert len(graph.nodes[31].outputs) == 8
    assert graph.nodes[32].outputs == ()


def summary(value: Value) -> TensorSummary:
    return TensorSummary(value.type.dtype, value.type.shape)


@settings(max_examples=50, deadline=None)
@given(graph=emit_graphs())
def test_what_is_read_back_is_the_graph(graph: Graph) -> None:
    again = parse_ir(ir_text(graph))
    assert again.name == graph.name
    assert [(p.name, p.type, p.is_weight) for p in again.parameters] == [
        (value.name, summary(value), value.kind == "parameter") for value in graph.dumped_parameters()
    ]
    own = again.nodes[: len(graph.nodes)]
    for number, (row, node) in enumerate(zip(own, graph.nodes, strict=True)):
        assert (row.number, row.op_type, row.full_name) == (number, node.op_type, node.full_name)
        assert row.outputs == tuple(summary(value) for value in node.outputs)
        assert row.source == node.source
        assert len(row.operands) == len(node.inputs)
    assert len(again.returned) == 1
    assert [row.op_type for row in again.nodes[len(graph.nodes) :]] == ["MakeTuple"] * (len(graph.outputs) != 1)


@settings(max_examples=25, deadline=None)
@given(graph=emit_graphs())
def test_text_and_pb_agree(graph: Graph) -> None:
    text, model = parse_ir(ir_text(graph)), read_model(model_bytes(graph))
    shown = [(node.full_name, node.source) for node in text.nodes if node.op_type != "MakeTuple"]
    added = ("TupleGetItem", "MakeTuple")
    assert shown == [(node.full_name, node.source) for node in model.nodes if node.op_type not in added]


def test_a_prefix_of_a_file_is_refused() -> None:
    text = ir_text(hand_graph())
    for end in range(0, text.index("  Return("), 7):
        with pytest.raises(FormatError, match=r"^ir line \d+: expected"):
            parse_ir(text[:end])


@settings(max_examples=100, deadline=None)
@given(path=st.text(min_size=1, max_size=8), number=st.integers(0, 10**6), code=st.text(max_size=12))
def test_a_source_line_is_one_line_whatever_it_holds(path: str, number: int, code: str) -> None:
    text = "# In file " + format_source_line(SourceLine(path, number, code))
    assert len(text.splitlines()) == 1
    text.encode("utf-8")
    found = parse_source_line(text)
    assert found is not None
    if ":" not in path:
        assert found.line == number


def test_file_names_that_are_no_text() -> None:
    broken = SourceLine(b"net\xff.py".decode("utf-8", "surrogateescape"), 1, "x")
    assert format_source_line(broken) == "net\\udcff.py:1/x/"


def test_large_and_many_dimensional_constants_stay_on_one_line() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", ()))
    big = graph.add_constant(np.arange(1000).reshape(10, 100), "int32")
    half = graph.add_constant(np.array([[0.5, np.nan], [1, -np.inf]], np.float16), "float16")
    graph.add_node(Primitive(SAME), [x, big, half], "Default")
    text = ir_text(graph)
    with np.printoptions(precision=1, threshold=2, suppress=True, floatmode="fixed", sign="+", legacy="1.13"):
        assert ir_text(graph) == text
    (node,) = parse_ir(text).nodes[:1]
    assert node.operands[1].startswith("Tensor(shape=[10, 100], dtype=Int32, value=[[  0   1   2 ...  97")
    assert node.operands[2].startswith("Tensor(shape=[2, 2], dtype=Float16, value=[[")
    assert node.operands[2].split("value=")[1].replace("[", " ").replace("]", " ").split() == [
        "0.5",
        "nan",
        "1.",
        "-inf",
        ")",
    ]


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
