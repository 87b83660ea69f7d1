"""If, Loop and Scan run operator by operator: each is seen in each of its runs, and no result changes a bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from msdump.errors import ExecutionError
from msdump.frontends.onnx import load_model
from msdump.frontends.onnx.nodes import subgraphs
from msdump.graph.run import FinishedStep
from msdump.tensors.records import OpEvent
from tests.frontends.onnx.models import (
    Recorder,
    branches,
    graph_of,
    loops,
    model_of,
    nested,
    recurrent,
    same_bits,
    value,
)

node = helper.make_node
INT, BOOL = np.int64, np.bool_


def whole(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """What one session of the model as it is gives; onnxruntime takes no name of a node twice."""
    unnamed = onnx.ModelProto()
    unnamed.CopyFrom(model)
    graphs = [unnamed.graph]
    for graph in graphs:
        for each in graph.node:
            each.name = ""
            graphs += subgraphs(each)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(unnamed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


class Order(Recorder):
    """Remembers the names in the order in which operators ended, and the keys of what they made."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []
        self.keys: list[Any] = []
        self.at_end: list[str] = []

    def after_op(self, event: OpEvent) -> None:
        super().after_op(event)
        self.ended.append(event.op.full_name)
        # An Identity shows the tensor that it reads.
        self.keys += [info.key for info in event.op.outputs if event.op.op_type != "Identity"]

    def on_iteration_end(self, step: FinishedStep) -> None:
        super().on_iteration_end(step)
        self.at_end = [event.op.full_name for event in step.events]


def checked(model: onnx.ModelProto, feeds: Mapping[str, Any], has_arena: bool = False) -> Order:
    """Run watched and not: the results are those of one session. Returns what was seen."""
    seen = Order()
    loaded = load_model(model, [seen], has_arena=has_arena, optimization="none")
    plain = load_model(model, optimization="none")
    assert not loaded.unseen()
    expected = whole(model, feeds)
    for results in (loaded.run(feeds), loaded.run(feeds), plain.run(feeds)):
        assert list(results) == list(expected)
        for name, array in expected.items():
            if isinstance(array, list):
                assert [same_bits(a, b) for a, b in zip(results[name], array, strict=True)] == [True] * len(array)
            else:
                assert same_bits(results[name], array), name
    # With the kernels that onnxruntime chooses by itself, a dump changes nothing either.
    chosen = [load_model(model, observers).run(feeds) for observers in ([], [Recorder()])]
    assert all(same_bits(chosen[0][name], chosen[1][name]) for name in expected if not isinstance(expected[name], list))
    half = len(seen.ended) // 2
    assert seen.ended[:half] == seen.ended[half:] == seen.at_end
    assert len(set(seen.keys[: len(seen.keys) // 2])) == len(seen.keys) // 2, "each run makes tensors of its own"
    seen.ended = seen.ended[:half]
    return seen


@pytest.mark.parametrize("has_arena", [False, True])
@pytest.mark.parametrize(("sign", "inside"), [(1, "choose/then_branch/t"), (-1, "choose/else_branch/e")])
def test_the_branch_that_is_taken_is_seen(sign: int, inside: str, has_arena: bool) -> None:
    x = sign * np.abs(np.random.default_rng(0).standard_normal((2, 300), np.float32))
    seen = checked(branches(), {"x": x}, has_arena)
    assert seen.ended == ["double", "sum", "compare", inside, "choose"]
    assert same_bits(seen.made[inside][0], seen.made["choose"][0])
    assert same_bits(seen.read[inside][0], seen.made["double"][0])
    (graph,) = seen.graphs
    assert [one.full_name for one in graph.nodes if one.owner is not None] == [
        "choose/then_branch/t", "choose/else_branch/e",
    ]  # fmt: skip


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_each_trip_of_a_loop_is_seen(count: int, rank: int) -> None:
    feeds = {"x": np.eye(2, dtype=np.float32), "count": np.array(count), "start": np.ones((2, 1), np.float32)}
    seen = checked(recurrent(rank), feeds)
    inside = ("mix", "add", "number", "count", "sum", "test")
    assert seen.ended == ["add", *(f"loop/body/{n}/{one}" for n in range(count) for one in inside), "loop"]
    for number in range(1, count):
        assert same_bits(seen.read[f"loop/body/{number}/mix"][1], seen.made[f"loop/body/{number - 1}/count"][0])
    for number in range(count):
        assert same_bits(seen.read[f"loop/body/{number}/mix"][0], seen.made["add"][0])
        assert same_bits(seen.made["loop"][1][number], seen.made[f"loop/body/{number}/add"][0])


def test_a_loop_ends_where_its_body_says() -> None:
    feeds = {"x": 2 * np.eye(2, dtype=np.float32), "count": np.array(100), "start": np.ones((2, 1), np.float32)}
    seen = checked(recurrent(), feeds)
    trips = {name.split("/")[2] for name in seen.ended if name.startswith("loop/")}
    assert 1 < len(trips) < 100
    assert not seen.made[f"loop/body/{len(trips) - 1}/test"][0]


@pytest.mark.parametrize("has_flag", [False, True])
def test_a_loop_without_a_limit(has_flag: bool) -> None:
    body = graph_of(
        "body",
        [node("Add", ["v", "one"], ["n"], "add"), node("Less", ["n", "bound"], ["on"], "test")],
        [value("i", INT, []), value("c", BOOL, []), value("v", shape=[])],
        [value("on", BOOL, []), value("n", shape=[])],
    )
    nodes = [node("Loop", ["", "flag" if has_flag else "", "x"], ["y"], "loop", body=body)]
    constants = {"one": np.float32(1), "bound": np.float32(3.5), "flag": np.array(True)}
    model = model_of(nodes, [value("x", shape=[])], [value("y", shape=[])], constants)
    assert len(checked(model, {"x": np.array(0, np.float32)}).ended) == 9


def test_what_a_loop_carries_may_grow() -> None:
    body = graph_of(
        "body",
        [
            node("Concat", ["v", "x"], ["n"], "join", axis=0),
            node("Shape", ["n"], ["size"], "size"),
            node("Identity", ["c"], ["on"], "on"),
        ],
        [value("i", INT, []), value("c", BOOL, []), value("v", shape=["n"])],
        [value("on", BOOL, []), value("n", shape=["m"]), value("size", INT, [1])],
    )
    nodes = [
        node("Loop", ["four", "", "x"], ["y", "sizes"], "loop", body=body),
        node("ReduceSum", ["y"], ["z"], "sum", keepdims=0),
    ]
    model = model_of(
        nodes, [value("x", shape=[2])], [value("y"), value("sizes", INT), value("z")], {"four": np.array(4)}
    )
    seen = checked(model, {"x": np.float32([1, 2])})
    assert [seen.made[f"loop/body/{n}/join"][0].shape for n in range(4)] == [(4,), (6,), (8,), (10,)]


def test_what_a_loop_collects_may_not_grow() -> None:
    body = graph_of(
        "body",
        [node("Concat", ["v", "x"], ["n"], "join", axis=0), node("Identity", ["n"], ["each"], "each")],
        [value("i", INT, []), value("c", BOOL, []), value("v", shape=["n"])],
        [value("c", BOOL, []), value("n", shape=["m"]), value("each", shape=["m"])],
    )
    nodes = [node("Loop", ["four", "", "x"], ["y", "all"], "loop", body=body)]
    model = model_of(nodes, [value("x", shape=[2])], [value("y"), value("all")], {"four": np.array(4)})
    seen = Order()
    with pytest.raises(ExecutionError, match=r"%loop = Loop\(.*one shape in all iterations, got \[4\] and \[6\]") as e:
        load_model(model, [seen]).run({"x": np.float32([1, 2])})
    assert e.value.operator == "loop"
    assert seen.errors == ["loop"]
    with pytest.raises(Exception, match=r"[Ii]nconsistent shape"):
        whole(model, {"x": np.float32([1, 2])})


@pytest.mark.parametrize("has_arena", [False, True])
def test_flow_inside_of_flow(has_arena: bool) -> None:
    seen = checked(nested(), {"x": np.float32([0.5, -2])}, has_arena)
    outer = lambda n, *names: [f"loop/body/{n}/{name}" for name in names]  # noqa: E731
    taken = [
        *outer(1, *(f"if/then_branch/loop/body/0/{name}" for name in ("add", "mul", "on")), "if/then_branch/loop"),
        *outer(3, *(f"if/then_branch/loop/body/{n}/{name}" for n in range(3) for name in ("add", "mul", "on"))),
        *outer(3, "if/then_branch/loop"),
    ]
    inside = [name for name in seen.ended if "/if/" in name]
    assert [name for name in inside if "then" in name] == taken
    assert [name for name in inside if "else" in name] == [f"loop/body/{n}/if/else_branch/add" for n in (0, 2)]
    assert seen.ended[-2:] == ["loop", "add"]
    for number in range(3):
        read = seen.read[f"loop/body/3/if/then_branch/loop/body/{number}/add"][1]
        assert same_bits(read, seen.made["loop/body/3/add"][0])


def test_names_of_the_file_are_known_and_those_of_the_model_win() -> None:
    model = load_model(nested())
    assert model.node_names == ("loop", "add")
    assert model.originals["mul"] == ("loop/body/if/then_branch/loop/body/mul",)
    assert "add" not in model.originals and "loop" not in model.originals
    taken = model_of(
        [node("Neg", ["x"], ["n"], "if/then_branch/a"), *branches_named("if", "a")],
        [value("x", shape=[2]), value("c", BOOL, [])],
        [value("y")],
    )
    seen = checked(taken, {"x": np.float32([1, 2]), "c": np.array(True)})
    assert seen.ended == ["if/then_branch/a", "if/then_branch/a_1", "if"]


def test_names_that_begin_with_a_slash() -> None:
    """As PyTorch's exporter writes them."""
    model = model_of(
        [node("Neg", ["x"], ["n"], "/neg"), *branches_named("/If", "/abs/Abs")],
        [value("x", shape=[2]), value("c", BOOL, [])],
        [value("y")],
    )
    seen = checked(model, {"x": np.float32([1, 2]), "c": np.array(True)})
    assert seen.ended == ["/neg", "/If/then_branch/abs/Abs", "/If"]
    assert load_model(model).originals["/abs/Abs"] == ("/If/then_branch/abs/Abs", "/If/else_branch/abs/Abs")


def branches_named(name: str, inside: str) -> list[onnx.NodeProto]:
    then = graph_of("t", [node("Abs", ["n"], ["r"], inside)], outputs=[value("r")])
    other = graph_of("e", [node("Exp", ["n"], ["r"], inside)], outputs=[value("r")])
    return [node("If", ["c"], ["y"], name, then_branch=then, else_branch=other)]


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize(("axis_in", "axis_out"), [(0, 0), (1, 1), (-1, -1), (-2, 1)])
def test_each_slice_of_a_scan_is_seen(axis_in: int, axis_out: int, backward: int) -> None:
    body = graph_of(
        "body",
        [node("Add", ["s", "row"], ["n"], "add"), node("Mul", ["n", "k"], ["each"], "mul")],
        [value("s", shape=[4]), value("row", shape=[4])],
        [value("n", shape=[4]), value("each", shape=[4])],
    )
    scan = node(
        "Scan", ["start", "x"], ["last", "all"], "scan", body=body, num_scan_inputs=1, scan_input_axes=[axis_in],
        scan_output_axes=[axis_out], scan_input_directions=[backward], scan_output_directions=[backward],
    )  # fmt: skip
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    model = model_of(
        [scan], [value("start", shape=[4]), value("x", shape=[4, 4])], [value("last"), value("all")],
        {"k": np.float32(3)},
    )  # fmt: skip
    seen = checked(model, {"start": np.ones(4, np.float32), "x": x})
    assert seen.ended == [*(f"scan/body/{n}/{name}" for n in range(4) for name in ("add", "mul")), "scan"]
    slices = np.moveaxis(x, axis_in, 0)[:: -1 if backward else 1]
    assert all(same_bits(seen.read[f"scan/body/{n}/add"][1], slices[n]) for n in range(4))


@pytest.mark.parametrize("length", [0, 3])
def test_loops_and_scans_of_the_model_of_other_tests(length: int) -> None:
    feeds = {"x": np.float32([1, 2, 3]), "count": np.array(length or 3)}
    assert len([name for name in checked(loops(), feeds).ended if name.startswith("scan/body/")]) == 6


def test_a_scan_of_an_empty_tensor_is_the_affair_of_onnxruntime() -> None:
    body = graph_of(
        "body",
        [node("Add", ["s", "row"], ["n"], "add"), node("Neg", ["n"], ["each"], "neg")],
        [value("s", shape=[4]), value("row", shape=[4])],
        [value("n", shape=[4]), value("each", shape=[4])],
    )
    scan = node("Scan", ["start", "x"], ["last", "all"], "scan", body=body, num_scan_inputs=1)
    model = model_of([scan], [value("start", shape=[4]), value("x", shape=["n", 4])], [value("last"), value("all")])
    feeds, seen = {"start": np.ones(4, np.float32), "x": np.zeros((0, 4), np.float32)}, Order()
    with pytest.raises(Exception, match=r"Dimension 0 is 0"):
        whole(model, feeds)
    with pytest.raises(ExecutionError, match=r"^%scan = Scan\(start, x\): .*Dimension 0 is 0"):
        load_model(model, [seen]).run(feeds)
    assert seen.errors == ["scan"] and not seen.ended


@pytest.mark.parametrize("has_arena", [False, True])
def test_results_that_no_operator_makes_are_memory_of_their_own(has_arena: bool) -> None:
    """A branch that gives a constant, a loop that carries on what it was given, and one that collects it."""
    then = graph_of("t", [node("Neg", ["h"], ["r"], "neg")], outputs=[value("r", shape=[2])])
    other = graph_of("e", [], outputs=[value("k", shape=[2])], constants={"k": np.float32([7, 8])})
    body = graph_of(
        "body",
        [node("Identity", ["c"], ["o"], "on")],
        [value("i", INT, []), value("c", BOOL, []), value("v", shape=[2])],
        [value("o", BOOL, []), value("v", shape=[2])],
    )
    nodes = [
        node("Neg", ["x"], ["h"], "neg"),
        node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other),
        node("Loop", ["two", "", "x"], ["z"], "loop", body=body),
        node("Abs", ["h"], ["w"], "abs"),
    ]
    model = model_of(
        nodes, [value("x", shape=[2]), value("c", BOOL, [])], [value(name) for name in ("y", "z", "w")],
        {"two": np.array(2)},
    )  # fmt: skip
    for flag in (True, False):
        x = np.float32([1, -2])
        checked(model, {"x": x, "c": np.array(flag)}, has_arena)
        results = load_model(model, [Order()], has_arena=has_arena).run({"x": x, "c": np.array(flag)})
        kept = {name: array.copy() for name, array in results.items()}
        x[:] = 0
        assert all(same_bits(results[name], kept[name]) for name in kept)


def test_a_value_from_around_may_be_a_result() -> None:
    """onnxruntime refuses that; there is nothing against it."""
    then = graph_of("t", [], outputs=[value("x", shape=[2])])
    other = graph_of("e", [node("Neg", ["x"], ["r"], "neg")], outputs=[value("r", shape=[2])])
    nodes = [node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other)]
    model = load_model(model_of(nodes, [value("x", shape=[2]), value("c", BOOL, [])], [value("y")]), [Order()])
    x = np.float32([1, -2])
    y = model.run({"x": x, "c": np.array(True)})["y"]
    x[:] = 0
    assert y.tolist() == [1, -2]


def test_sequences_are_carried_and_chosen() -> None:
    sequence = helper.make_tensor_sequence_value_info
    then = graph_of("t", [node("Abs", ["x"], ["a"], "abs"), node("SequenceConstruct", ["a", "x"], ["s"], "pair")],
                    outputs=[sequence("s", 1, None)])  # fmt: skip
    other = graph_of("e", [node("SequenceConstruct", ["x"], ["s"], "one")], outputs=[sequence("s", 1, None)])
    body = graph_of(
        "body",
        [node("Exp", ["x"], ["e"], "exp"), node("SequenceInsert", ["v", "e"], ["n"], "insert")],
        [value("i", INT, []), value("c", BOOL, []), sequence("v", 1, None)],
        [value("c", BOOL, []), sequence("n", 1, None)],
    )
    nodes = [
        node("If", ["c"], ["first"], "if", then_branch=then, else_branch=other),
        node("Loop", ["two", "", "first"], ["more"], "loop", body=body),
        node("ConcatFromSequence", ["more"], ["y"], "join", axis=0),
    ]
    model = model_of(nodes, [value("x", shape=[2]), value("c", BOOL, [])], [value("y")], {"two": np.array(2)})
    for flag in (True, False):
        seen = checked(model, {"x": np.float32([1, -2]), "c": np.array(flag)})
        assert [name for name in seen.ended if name.endswith("exp")] == ["loop/body/0/exp", "loop/body/1/exp"]
        assert ("if/then_branch/abs" in seen.ended) == flag


def test_an_operator_that_fails_inside_is_named_once() -> None:
    body = graph_of(
        "body",
        [node("Gather", ["table", "i"], ["row"], "pick"), node("Identity", ["c"], ["o"], "on")],
        [value("i", INT, []), value("c", BOOL, [])],
        [value("o", BOOL, []), value("row")],
    )
    nodes = [node("Loop", ["count", ""], ["y"], "loop", body=body)]
    model = model_of(nodes, [value("table", shape=[3]), value("count", INT, [])], [value("y")])
    feeds = {"table": np.ones(3, np.float32), "count": np.array(5)}
    seen = Order()
    for observers in ([seen], []):
        with pytest.raises(ExecutionError, match=r"^%loop/body/pick = Gather\(table, i\)") as error:
            load_model(model, observers).run(feeds)
        assert error.value.operator == "loop/body/pick"
    assert seen.errors == ["loop/body/3/pick"]


def test_what_cannot_be_looked_at_is_counted_and_runs_all_the_same() -> None:
    """An operator that is a function of others with a body, inside of a branch."""
    each = graph_of("each", [node("Log", ["e"], ["l"]), node("Neg", ["l"], ["n"])], [value("e")], [value("n")])
    then = graph_of(
        "t",
        [
            node("SequenceConstruct", ["x", "x"], ["pair"], "pack"),
            node("SequenceMap", ["pair"], ["mapped"], "map", body=each),
            node("ConcatFromSequence", ["mapped"], ["r"], "join", axis=0),
        ],
        outputs=[value("r")],
    )
    other = graph_of("e", [node("Neg", ["x"], ["r"], "neg")], outputs=[value("r")])
    model = model_of(
        [node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other)],
        [value("x", shape=[2]), value("c", BOOL, [])],
        [value("y")],
    )
    seen, feeds = Order(), {"x": np.float32([1, 2]), "c": np.array(True)}
    loaded = load_model(model, [seen])
    assert loaded.unseen() == {"SequenceMap": 2}
    assert same_bits(loaded.run(feeds)["y"], whole(model, feeds)["y"])
    assert seen.ended == ["if/then_branch/pack", "if/then_branch/join", "if"]


# -- random models -----------------------------------------------------------------------------------------------------


class _Builder:
    """Draws a model of nested branches and loops over vectors of three elements."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.count = 0

    def name(self, of: str) -> str:
        self.count += 1
        return f"{of}{self.count}"

    def pick(self, known: Sequence[str]) -> str:
        return str(self.draw(st.sampled_from(list(known))))

    def nodes(self, known: list[str], depth: int) -> tuple[list[onnx.NodeProto], list[str]]:
        """Some operators; known: what they may read, which their results are added to."""
        known, made = list(known), []
        for _ in range(self.draw(st.integers(1, 3))):
            kind = self.draw(st.sampled_from(["op", "op", "if", "loop", "scan"] if depth else ["op"]))
            out = self.name("v")
            made += getattr(self, kind)(known, out, depth)
            known.append(out)
        return made, known

    def op(self, known: Sequence[str], out: str, _: int) -> list[onnx.NodeProto]:
        kind = self.pick(["Add", "Mul", "Sub", "Neg", "Tanh", "Sigmoid", "Identity"])
        operands = [self.pick(known) for _ in range(2 if kind in ("Add", "Mul", "Sub") else 1)]
        return [node(kind, operands, [out], self.pick(["", "same", out]) or "")]

    def inner(self, known: Sequence[str], depth: int) -> tuple[list[onnx.NodeProto], str]:
        made, all_known = self.nodes(list(known), depth - 1)
        result = self.name("r")
        # onnxruntime takes no value from around as a result.
        return [*made, node("Identity", [self.pick(all_known)], [result])], result

    def flag(self, known: Sequence[str]) -> tuple[list[onnx.NodeProto], str]:
        total, flag = self.name("s"), self.name("c")
        return [node("ReduceSum", [self.pick(known)], [total], keepdims=0), node("Less", [total, "zero"], [flag])], flag

    def op_if(self, known: Sequence[str], depth: int, label: str) -> onnx.GraphProto:
        made, result = self.inner(known, depth)
        return graph_of(label, made, outputs=[value(result, shape=[3])])

    def __getattr__(self, name: str) -> Any:
        if name == "if":
            return self.branch
        raise AttributeError(name)

    def branch(self, known: Sequence[str], out: str, depth: int) -> list[onnx.NodeProto]:
        made, flag = self.flag(known)
        then, other = self.op_if(known, depth, "t"), self.op_if(known, depth, "e")
        return [*made, node("If", [flag], [out], self.name("if"), then_branch=then, else_branch=other)]

    def loop(self, known: Sequence[str], out: str, depth: int) -> list[onnx.NodeProto]:
        i, c, v, on, all_ = (self.name(one) for one in ("i", "c", "v", "o", "all"))
        made, result = self.inner([*known, v], depth)
        flags, flag = self.flag([*known, v])
        keeps = self.draw(st.booleans())
        # A result that stands twice among the outputs is refused by the checker of some releases.
        carried, each = self.name("n"), self.name("a")
        body = graph_of(
            "body",
            [*made, *flags, node("Identity", [c if keeps else flag], [on]), node("Neg", [result], [carried]),
             node("Identity", [result], [each])],
            [value(i, INT, []), value(c, BOOL, []), value(v, shape=[3])],
            [value(on, BOOL, []), value(carried, shape=[3]), value(each, shape=[3])],
        )  # fmt: skip
        count = self.pick(["n0", "n1", "n3"])
        return [node("Loop", [count, "", self.pick(known)], [out, all_], self.name("loop"), body=body)]

    def scan(self, known: Sequence[str], out: str, depth: int) -> list[onnx.NodeProto]:
        v, row, n, each, last, all_ = (self.name(one) for one in ("v", "row", "n", "a", "last", "all"))
        made, result = self.inner([*known, v], depth)
        body = graph_of(
            "body",
            [*made, node("Mul", [result, row], [n]), node("Tanh", [n], [each])],
            [value(v, shape=[3]), value(row, shape=[])],
            [value(n, shape=[3]), value(each, shape=[3])],
        )
        operands = [self.pick(known), self.pick(known)]
        return [
            node("Scan", operands, [last, all_], self.name("scan"), body=body, num_scan_inputs=1),
            node("ReduceSum", [all_, "axis"], [out], keepdims=0),
        ]

    def model(self) -> onnx.ModelProto:
        made, known = self.nodes(["x", "k"], 2)
        constants = {
            "k": np.float32([0.5, -1, 2]), "zero": np.float32(0), "axis": np.array([0]), "n0": np.array(0),
            "n1": np.array(1), "n3": np.array(3),
        }  # fmt: skip
        made.append(node("Identity", [known[-1]], ["y"], "end"))
        return model_of(made, [value("x", shape=[3])], [value("y", shape=[3])], constants)


@st.composite
def nested_models(draw: Any) -> onnx.ModelProto:
    """Models of nested branches and loops over a vector of three elements."""
    return _Builder(draw).model()


@settings(max_examples=25, deadline=None)
@given(nested_models(), st.booleans(), st.sampled_from([1.0, -1.0, np.nan]))
def test_random_models_give_what_one_session_gives(model: onnx.ModelProto, has_arena: bool, first: float) -> None:
    checked(model, {"x": np.float32([first, 2, -0.25])}, has_arena)
