"""In an arena a model computes the same bits, and its results are neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from msdump.errors import ExecutionError, GraphError
from msdump.frontends.onnx import load_model
from msdump.frontends.onnx.inference import Inference
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, KEEP, OpEvent
from tests.frontends.onnx.models import Recorder, model_of, same_bits, true_values, value
from tests.frontends.onnx.test_model import CASES, chains


class Keeper:
    """Asks for the operands of some operators to be kept, and looks at them when the run has ended."""

    needs_all_values = False

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.seen: dict[str, Array] = {}
        self.at_end: dict[str, Array] = {}
        self.watches = True

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [AFTER | KEEP if node.full_name in self._names else 0 for node in graph.kernels]

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return self.watches

    def before_op(self, event: OpEvent) -> None: ...

    def after_op(self, event: OpEvent) -> None:
        self.seen[event.op.full_name] = event.outputs[0].copy()

    def on_iteration_end(self, step: FinishedStep) -> None:
        for event in step.events:
            if event.op.full_name in self._names:
                self.at_end[event.op.full_name] = event.outputs[0].copy()

    def on_error(self, event: OpEvent, error: BaseException) -> None: ...

    def close(self) -> None: ...


def chain(length: int, size: int) -> onnx.ModelProto:
    """x -> n0 -> n1 -> ...: each doubles."""
    names = ["x", *(f"v{at}" for at in range(length))]
    nodes = [helper.make_node("Add", [a, a], [b], name=f"n{at}") for at, (a, b) in enumerate(itertools.pairwise(names))]
    return model_of(nodes, [value("x", np.float32, [size])], [value(names[-1])])


@pytest.mark.parametrize("case", CASES)
def test_every_value_is_what_onnxruntime_computes(case: str) -> None:
    make, feed = CASES[case]
    model, feeds = make(), feed()
    seen = Recorder()
    loaded = load_model(model, [seen], has_arena=True)
    truth = true_values(model, feeds)
    for _ in range(2):
        outputs = loaded.run(feeds)
        for name, expected in truth.items():
            assert same_bits(seen.by_value[name], expected), name
        for name in outputs:
            assert same_bits(outputs[name], truth[name])
    (arena,) = loaded.arenas()
    (graph,) = seen.graphs
    known = [
        v.id
        for one in graph.kernels
        for v in one.outputs
        if all(-1 not in other.type.shape and other.type.size for other in one.outputs)
    ]
    assert set(arena.arrays) == set(known)


@settings(max_examples=25, deadline=None)
@given(chains(), st.integers(0, 2**32 - 1))
def test_random_graphs(model: onnx.ModelProto, seed: int) -> None:
    """With and without somebody looking, and with what he keeps."""
    size = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    x = np.random.default_rng(seed).standard_normal((size, size), np.float32)
    truth = true_values(model, {"x": x})
    plain = load_model(model, has_arena=True)
    keeper = Keeper(plain.node_names[:2])
    watched = load_model(model, [keeper], has_arena=True)
    for loaded in (plain, watched):
        outputs = loaded.run({"x": x})
        assert all(same_bits(outputs[name], truth[name]) for name in outputs)
    assert set(keeper.at_end) == set(plain.node_names[:2])
    assert all(same_bits(keeper.at_end[name], keeper.seen[name]) for name in keeper.seen)


def test_memory_is_used_again_but_for_what_is_kept() -> None:
    x = np.arange(1024, dtype=np.float32)
    plain = load_model(chain(6, 1024), has_arena=True)
    keeper = Keeper(["n2"])
    kept = load_model(chain(6, 1024), [keeper], has_arena=True)
    for loaded in (plain, kept):
        assert same_bits(loaded.run({"x": x})["v5"], x * 64)
    small, more = plain.arenas()[0].size_bytes, kept.arenas()[0].size_bytes
    assert 4096 * 2 <= small < more < 4096 * 6
    assert same_bits(keeper.at_end["n2"], x * 8)


def test_results_belong_to_who_asked() -> None:
    """Neither the next run nor the end of the model changes them."""
    loaded = load_model(chain(2, 64), has_arena=True)
    first = loaded.run({"x": np.ones(64, np.float32)})["v1"]
    second = loaded.run({"x": np.zeros(64, np.float32)})["v1"]
    del loaded
    assert first.tolist() == [4] * 64 and second.tolist() == [0] * 64


def overrun(size: int) -> onnx.ModelProto:
    """`bad` gets the memory of `early`, which is not needed any more; behind it lies the result of `victim`."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["early"], name="early"),
        helper.make_node("Mul", ["x", "x"], ["v"], name="victim"),
        helper.make_node("Mul", ["early", "x"], ["late"], name="late"),
        helper.make_node("Neg", ["x"], ["b"], name="bad"),
        helper.make_node("Sum", ["v", "b", "late"], ["y"], name="sum"),
    ]
    return model_of(nodes, [value("x", np.float32, [size])], [value("y")])


@pytest.mark.parametrize("watches", [True, False])
def test_a_kernel_that_writes_past_its_output_hits_its_neighbour(watches: bool) -> None:
    size, more = 64, 5

    def kernel(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Negates, and takes its output for larger than it is."""
        np.negative(inputs[0], out=outputs[0])
        np.lib.stride_tricks.as_strided(outputs[0], (size + more,))[size:] = -1

    keeper = Keeper(["victim"])
    keeper.watches = watches
    x = np.full(size, 3, np.float32)
    healthy = load_model(overrun(size), [keeper], has_arena=True)
    assert healthy.run({"x": x})["y"].tolist() == [24] * size
    (arena,) = healthy.arenas()
    assert (arena.offset("b"), arena.offset("v")) == (0, 4 * size)
    with pytest.raises(KeyError):
        arena.offset("x")
    sick = load_model(overrun(size), [keeper], kernels={"bad": kernel})
    assert sick.run({"x": x})["y"].tolist() == [14] * more + [24] * (size - more)
    if watches:
        assert keeper.seen["victim"].tolist() == [9] * size
        assert keeper.at_end["victim"].tolist() == [-1] * more + [9] * (size - more)


def test_kernels_that_have_no_place() -> None:
    with pytest.raises(GraphError, match="no operator n9"):
        load_model(chain(2, 4), kernels={"n9": lambda i, o: None})
    nodes = [helper.make_node("NonZero", ["x"], ["y"], name="which")]
    model = load_model(model_of(nodes, [value("x", np.float32, [4])], [value("y", np.int64)]), kernels={"which": print})
    with pytest.raises(GraphError, match="shapes are known"):
        model.run({"x": np.ones(4, np.float32)})


def test_shapes_that_only_the_data_decide_have_memory_of_their_own() -> None:
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")
    proto = model_of([node], [value("x", np.float32, [6]), value("shape", np.int64, [2])], [value("y", np.float32)])
    model = load_model(proto, has_arena=True)
    for shape in ([2, 3], [3, 2]):
        found = model.run({"x": np.arange(6, dtype=np.float32), "shape": np.array(shape)})
        assert found["y"].shape == tuple(shape)
    assert model.arenas()[0].arrays == {}


def test_a_wrong_foresight_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnx foresees another shape than the operator makes: its result gets memory of its own."""
    monkeypatch.setattr(Inference, "shapes", lambda self, inputs: {"x": (6,), "y": (7,)})
    model = load_model(
        model_of([helper.make_node("Neg", ["x"], ["y"])], [value("x", np.float32, [6])], [value("y")]), has_arena=True
    )
    for _ in range(2):
        assert model.run({"x": np.arange(6, dtype=np.float32)})["y"].tolist() == [0, -1, -2, -3, -4, -5]
    assert model.arenas()[0].arrays == {}


def test_an_operator_that_fails() -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["n"], name="neg"),
        helper.make_node("Gather", ["n", "at"], ["y"], name="gather"),
    ]
    proto = model_of(nodes, [value("x", np.float32, [4]), value("at", np.int64, [2])], [value("y")])
    seen = Recorder()
    model = load_model(proto, [seen], has_arena=True)
    x = np.arange(4, dtype=np.float32)
    feeds: dict[str, Any] = {"x": x, "at": np.array([0, 9])}
    with pytest.raises(ExecutionError, match="gather"):
        model.run(feeds)
    assert seen.errors == ["gather"]
    assert model.run({"x": x, "at": np.array([0, 3])})["y"].tolist() == [0, -3]
    assert len(model.arenas()[0].arrays) == 2
