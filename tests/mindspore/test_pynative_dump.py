"""Dump of operators that run at once: what is on disk is what ran, and scripts do not notice."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.dumpers.exception import ExceptionDumper
from msdump.dumpers.overflow import OverflowDumper
from msdump.dumpers.tally import Tally
from msdump.engine import opening
from msdump.errors import ConfigError, GraphError
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import parse_data_file_name
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.mindspore import Parameter, Tensor, nn, ops
from msdump.process import sessions
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, BEFORE, OpEvent
from tests.dumpers.memory_writer import MemoryWriter
from tests.mindspore.conftest import execution_order
from tests.mindspore.networks import LeNet5, SmallResNet, digits, rows, training_step
from tests.plans import plain_plan

Tensors = dict[tuple[str, str, int], Array]


@pytest.fixture
def config(plain_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a configuration and names it in the environment; returns the folder of the dump."""

    def write(is_sync: bool = True, **changes: Any) -> Path:
        common = {
            "dump_mode": 0, "path": str(plain_path / "dump"), "net_name": "Net", "iteration": "all", "input_output": 0,
            "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy", **changes,
        }  # fmt: skip
        e2e = {"e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
        (plain_path / "dump.json").write_text(json.dumps({"common_dump_settings": common, **e2e}))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(plain_path / "dump.json"))
        return plain_path / "dump"

    return write


def tensors(root: Path, iteration: int) -> Tensors:
    """(operator or parameter, side, slot) -> array of one iteration."""
    found: Tensors = {}
    for path in root.glob(f"**/{iteration}/*.npy"):
        name = parse_data_file_name(path.name)
        assert name is not None, path.name
        key = (name.op_name, name.io, name.slot)
        assert key not in found
        found[key] = read_npy(path)
    return found


def graphs_of(root: Path) -> list[Path]:
    """Folders of the graphs of a dump, by their numbers."""
    return sorted(root.glob("rank_0/Net/*"), key=lambda path: int(path.name))


def assert_equal(left: Tensors, right: Tensors) -> None:
    assert set(left) == set(right)
    for key, array in left.items():
        np.testing.assert_array_equal(array, right[key], str(key))


def run_in(mode: int, steps: int = 2, net_type: Callable[[], nn.Cell] = LeNet5, classes: int = 10) -> list[float]:
    """Losses of a training in this mode."""
    ms.set_context(mode=mode)
    ms.set_seed(3)
    net = net_type()
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    return [float(step(*digits(classes=classes))) for _ in range(steps)]


def without_ids(found: Tensors) -> dict[tuple[str, str, int], list[bytes]]:
    """Operators by type and side: op ids follow the order, which differs between the modes."""
    content: dict[tuple[str, str, int], list[bytes]] = {}
    for (name, io, slot), array in found.items():
        content.setdefault((name.rpartition("-op")[0] or name, io, slot), []).append(array.tobytes())
    return {key: sorted(value) for key, value in content.items()}


def test_both_modes_dump_the_same_tensors(config: Callable[..., Path]) -> None:
    root = config()
    eager = run_in(ms.PYNATIVE_MODE)
    assert opening.current() is not None
    opening.current().close()  # type: ignore[union-attr]
    dumped = [tensors(root, iteration) for iteration in (0, 1)]
    sessions.reset_for_tests()
    root.rename(root.with_name("eager"))
    assert run_in(ms.GRAPH_MODE) == eager
    for iteration in (0, 1):
        assert without_ids(dumped[iteration]) == without_ids(tensors(root, iteration))


def test_steps_of_one_structure_are_one_graph_with_its_files(config: Callable[..., Path]) -> None:
    root = config(iteration="1|3")
    run_in(ms.PYNATIVE_MODE, steps=5)
    (ir,) = root.glob("rank_0/graphs/*.ir")
    assert "tests/mindspore/networks.py:28/        x = self.max_pool2d(self.relu(self.conv1(x)))/" in ir.read_text()
    (order,) = root.glob("rank_0/execution_order/ms_execution_order_graph_*.csv")
    names = order.read_text().splitlines()[1:]
    assert names[0] == "Default/network-WithLossCell/_backbone-LeNet5/conv1-Conv2d/Conv2D-op0"
    assert [int(name.rpartition("-op")[2]) for name in names] == list(range(len(names)))
    (history,) = root.glob("rank_0/execution_order/ms_global_*.csv")
    assert history.read_text() == "1\n3\n"
    opened = opening.current()
    assert opened is not None
    report = opened.report()
    assert (report.iterations_run, report.iterations_dumped) == (5, 2)
    assert report.operators_seen == len(names)


def test_the_asynchronous_engine_holds_the_same_tensors(config: Callable[..., Path]) -> None:
    synced = config(is_sync=True)
    run_in(ms.PYNATIVE_MODE)
    expected = [tensors(synced, iteration) for iteration in (0, 1)]
    sessions.reset_for_tests()
    synced.rename(synced.with_name("sync"))
    root = config(is_sync=False)
    run_in(ms.PYNATIVE_MODE)
    opening.current().close()  # type: ignore[union-attr]
    for iteration in (0, 1):
        found = {(key[0].rpartition("_")[2], *key[1:]): array for key, array in tensors(root, iteration).items()}
        assert sorted(map(bytes, map(np.ndarray.tobytes, found.values()))) == sorted(
            map(np.ndarray.tobytes, expected[iteration].values())
        )


def test_a_function_and_the_optimizer_are_graphs_of_one_step(config: Callable[..., Path]) -> None:
    root = config()
    net, (data, labels) = nn.Dense(5, 3), rows()
    optimizer = nn.SGD(net.trainable_params(), 0.5)
    loss_function = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def forward(x: Tensor, y: Tensor) -> Any:
        return loss_function(net(x), y)

    before = net.weight.asnumpy()
    loss, gradients = ms.value_and_grad(forward, None, optimizer.parameters)(data, labels)
    optimizer(gradients)
    first, second = (tensors(graph, 0) for graph in graphs_of(root))
    types = {name.partition("-")[0] for name, _, _ in first}
    assert {"MatMul", "BiasAdd", "SparseSoftmaxCrossEntropyWithLogits", "BiasAddGrad", "args0", "args1"} <= types
    np.testing.assert_array_equal(first["weight", "output", 0], before)
    np.testing.assert_array_equal(second["weight", "output", 0], net.weight.asnumpy())
    updates = [
        array for (name, io, slot), array in second.items() if name.startswith("SGD") and (io, slot) == ("input", 0)
    ]
    assert any(np.array_equal(array, before) for array in updates), "what the update read, not what it left"
    (losses,) = [a for (name, io, _), a in first.items() if name.startswith("Sparse") and io == "output" and not a.ndim]
    assert losses == loss.asnumpy()


# -- nothing changes ---------------------------------------------------------------------------------


class Freedom(nn.Cell):
    """What a PyNative script may do with tensors and parameters besides operators."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)), name="weight")
        self.dropout = nn.Dropout(p=0.5)

    def construct(self, x: Tensor, which: str) -> Any:
        y = x * self.weight
        if which == "write":
            y[0] = y[1] + 1
            z = y.copy()
            z[0, 0] = -1
            return y, z, y + z
        if which == "write argument":
            x[0, 1] = 9
            return x + y
        if which == "mask":
            return y[y > 2], y[:, -1], y[[0, 0]], y[Tensor([1, 0])], y[0][1]
        if which == "branch":
            return y + 1 if float(y.sum()) > 3 else list(y)
        if which == "set data":
            before = self.weight + 0
            self.weight.set_data(self.weight * 2)
            self.weight[0, 0] = 5
            return before, x + self.weight, self.weight
        if which == "assign twice":
            first = ops.assign_add(self.weight, Tensor(np.ones((2, 3), np.float32))) + 0
            second = ops.assign_add(self.weight, first)
            return first, second + 0, {"x": x}
        if which == "random":
            return self.dropout(y), ops.dropout(x, 0.3)
        if which == "caught":
            try:
                ops.MatMul()(x, x)  # the shapes do not fit
            except GraphError:
                return y.asnumpy().sum()
        return which, x, y.astype(ms.float16), y.astype(ms.float32) is y, None


WAYS = ["write", "write argument", "mask", "branch", "set data", "assign twice", "random", "caught", "nothing"]


def plain(thing: Any) -> Any:
    if isinstance(thing, tuple | list):
        return [plain(item) for item in thing]
    if isinstance(thing, dict):
        return {key: plain(item) for key, item in thing.items()}
    return (thing.dtype, thing.asnumpy().tolist()) if isinstance(thing, Tensor) else thing


def free_run(ways: list[str], scale: float) -> list[Any]:
    ms.set_seed(5)
    net = Freedom().set_train()
    results: list[Any] = []
    for way in ways:
        x = Tensor(np.full((2, 3), scale, np.float32))
        result = net(x, way)
        results += [plain(result), plain(x), net.weight.asnumpy().tolist()]
        for leaf in result if isinstance(result, tuple) else ():
            if isinstance(leaf, Tensor) and not isinstance(leaf, Parameter) and leaf.ndim == 2:
                leaf[0, 0] = 0  # results are data again
    return results


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(ways=st.lists(st.sampled_from(WAYS), min_size=1, max_size=3), scale=st.sampled_from([0.5, 1.0, -2.0]))
@pytest.mark.parametrize("is_sync", [True, False])
def test_a_dump_changes_no_result(
    config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, is_sync: bool, ways: list[str], scale: float
) -> None:
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    sessions.reset_for_tests()
    expected = free_run(ways, scale)
    sessions.reset_for_tests()
    config(is_sync)
    assert free_run(ways, scale) == expected
    opened = opening.current()
    assert opened is not None
    opened.close()
    assert opened.report().iterations_dumped == len(ways)


class Truth:
    """An observer that checks each event against the kernel's own definition and counts them."""

    needs_all_values = True

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.events: list[OpEvent] = []
        self.steps: list[FinishedStep] = []
        self.errors: list[tuple[OpEvent, BaseException]] = []

    def on_graph(self, graph: Graph) -> list[int]:
        graph.lint()
        self.graphs.append(graph)
        return [BEFORE | AFTER] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return graph.graph_id >= 0

    def before_op(self, event: OpEvent) -> None:
        self.read = [array.copy() for array in event.inputs]

    def after_op(self, event: OpEvent) -> None:
        for array, copy in zip(event.inputs, self.read, strict=True):
            np.testing.assert_array_equal(array, copy)
        self.events.append(event)

    def on_iteration_end(self, step: FinishedStep) -> None:
        self.steps.append(step)

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self.errors.append((event, error))

    def close(self) -> None:
        """Nothing is pending."""


@contextmanager
def watched(config: Callable[..., Path], **changes: Any) -> Iterator[Truth]:
    """A session whose only observer is a Truth."""
    config(**changes)
    sessions.reset_for_tests()
    opened = opening.open_mindspore("CPU", 0, True)
    assert opened is not None
    truth = Truth()
    opened.observers = (truth,)
    yield truth


def test_tensors_of_one_key_hold_the_same_bytes(config: Callable[..., Path]) -> None:
    """What engines rely on when they write a tensor once."""
    with watched(config) as truth:
        net = Freedom().set_train()
        for way in WAYS:
            net(Tensor(np.ones((2, 3), np.float32)), way)
        run_in(ms.PYNATIVE_MODE, 2, SmallResNetOfDigits, classes=3)
    for step in truth.steps:
        seen: dict[Any, bytes] = {}
        for event in step.events:
            for info, array in (*zip(event.op.inputs, event.inputs), *zip(event.op.outputs, event.outputs)):  # noqa: B905
                assert array.shape == info.shape
                assert seen.setdefault(info.key, array.tobytes()) == array.tobytes(), event.op.full_name
        keys = step.graph.final_keys()
        for value in step.graph.dumped_parameters():
            data = step.array(value).tobytes()
            assert seen.get(keys[value.id], data) == data, value.name


class SmallResNetOfDigits(SmallResNet):
    """With batch normalisation, whose statistics operators write in place."""

    def construct(self, x: Tensor) -> Any:
        return super().construct(ops.concat([x, x, x], 1))


def test_an_error_hands_over_what_ran(config: Callable[..., Path]) -> None:
    class Fails(nn.Cell):
        def construct(self, x: Tensor, labels: Tensor) -> Any:
            y = ops.relu(x)
            if x.ndim == 1:
                raise KeyError("of the script")
            return ops.SparseSoftmaxCrossEntropyWithLogits()(y, labels)

    with watched(config) as truth:
        with pytest.raises(Exception, match="expected a class in"):
            Fails()(Tensor(np.ones((2, 3), np.float32)), Tensor(np.array([0, 9], np.int32)))
        ((event, error),) = truth.errors
        assert event.op.op_type == "SparseSoftmaxCrossEntropyWithLogits"
        assert "expected a class in" in str(error)
        assert [done.op.op_type for done in truth.events] == ["ReLU"]
        with pytest.raises(KeyError, match="of the script"):
            Fails()(Tensor(np.ones(3, np.float32)), Tensor([0]))
        assert len(truth.errors) == 1 and len(truth.events) == 2
        assert truth.steps == []


@pytest.mark.parametrize("device_target", ["CPU", "Ascend"])
@pytest.mark.parametrize("is_sync", [True, False])
def test_engines_take_steps_that_fail_or_hold_nothing(
    config: Callable[..., Path], is_sync: bool, device_target: str
) -> None:
    class Odd(nn.Cell):
        def construct(self, x: Tensor, way: str) -> Any:
            if way == "fails":
                return ops.relu(x).no_such_member
            return ops.relu(x) if way == "runs" else 3

    root = config(is_sync)
    ms.set_context(device_target=device_target)
    net = Odd()
    with pytest.raises(AttributeError, match="no_such_member"):
        net(Tensor(1.0), "fails")
    assert net(Tensor(1.0), "empty") == 3
    assert float(net(Tensor(2.0), "runs")) == 2
    opened = opening.current()
    assert opened is not None
    opened.close()
    assert opened.report().error is None
    # The synchronous engine writes steps that have ended, the asynchronous one operators that have.
    assert len(list(root.rglob("ReLU.*.npy"))) == (2 if is_sync else 4)


def test_overflow_and_exceptions_are_found_in_steps(config: Callable[..., Path]) -> None:
    class Scaled(nn.Cell):
        def construct(self, x: Tensor) -> Any:
            return ops.relu(ops.exp(x.astype(ms.float16) * 64.0)) + 1

    class Fails(nn.Cell):
        def construct(self, x: Tensor) -> Any:
            return ops.SparseSoftmaxCrossEntropyWithLogits()(x, Tensor(np.array([7], np.int32)))

    with watched(config):
        opened = opening.current()
        assert opened is not None
        overflow, exception, opdebug = MemoryWriter(), MemoryWriter(), MemoryWriter()
        finder = OverflowDumper(plain_plan(op_debug_mode=3), [overflow], opdebug, Tally())
        opened.observers = (finder, ExceptionDumper(plain_plan(op_debug_mode=4), [exception], Tally()))
        Scaled()(Tensor(np.full((1, 2), 0.1, np.float32)))
        assert finder.found == [] and overflow.records == []
        Scaled()(Tensor(np.full((1, 2), 1.0, np.float32)))
        assert [(found.iteration, found.full_name) for found in finder.found] == [(1, "Default/Exp-op2")]
        assert [(record.io, record.op_type) for record in overflow.records] == [("input", "Exp"), ("output", "Exp")]
        assert len(opdebug.records) == 1 and exception.records == []
        with pytest.raises(Exception, match="expected a class in"):
            Fails()(Tensor(np.ones((1, 2), np.float32)))
        kinds = [(record.io, record.slot) for record in exception.records]
        assert kinds == [("input", 0), ("input", 1), ("output", 0)]


def test_overflow_detection_needs_all_iterations(config: Callable[..., Path]) -> None:
    config(is_sync=False, op_debug_mode=3, iteration="0|2")
    for _ in range(2):
        with pytest.raises(ConfigError, match='expected "all" for overflow detection'):
            nn.ReLU()(Tensor(1.0))


@pytest.mark.parametrize("call", [lambda x: nn.ReLU()(x), lambda x: ms.grad(ops.sin)(x), lambda x: ms.jit(ops.relu)(x)])
def test_a_wrong_configuration_fails_at_the_first_call(
    config: Callable[..., Path], call: Callable[[Tensor], Any]
) -> None:
    config(net_name="")
    with pytest.raises(ConfigError, match="net_name only supports"):
        call(Tensor(1.0))


def test_strict_refuses_as_the_original(config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    config()
    monkeypatch.setenv("MSDUMP_STRICT", "1")
    with pytest.raises(ConfigError, match=r"^In GPU or CPU, Dump is disabled in PyNative mode\."):
        nn.ReLU()(Tensor(1.0))


def test_compiled_functions_inside_a_step_keep_their_own_iterations(config: Callable[..., Path]) -> None:
    class Mixed(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.compiled = ms.jit(lambda x: ops.square(x))

        def construct(self, x: Tensor) -> Any:
            return ops.neg(self.compiled(ops.relu(x)))

    both = ["0 Neg", "0 ReLU", "1 Square", "2 Neg", "2 ReLU", "3 Square"]
    for selection, expected in (("all", both), ("3", ["3 Square"])):
        sessions.reset_for_tests()
        root = config(iteration=selection, input_output=2)
        net = Mixed()
        assert [float(net(Tensor(value))) for value in (2.0, 3.0)] == [-4, -9]
        files = [path for path in root.rglob("*.npy") if not path.name.startswith("Parameter")]
        assert sorted(f"{path.parent.name} {path.name.partition('.')[0]}" for path in files) == expected
        root.rename(root.with_name(f"dump {selection}"))


def test_marks_reach_steps(config: Callable[..., Path]) -> None:
    root = config(dump_mode=2)
    net = LeNet5()
    ms.set_dump(net.fc2)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    training_step(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))(*digits())
    types = {name.partition("-")[0] for name, _, _ in tensors(root, 0)}
    assert types == {"MatMul", "BiasAdd", "BiasAddGrad"}


def test_random_seeds_make_no_new_graphs(config: Callable[..., Path]) -> None:
    with watched(config) as truth:
        net = nn.Dropout(p=0.5).set_train()
        for _ in range(3):
            net(Tensor(np.ones((4, 4), np.float32)))
        net(Tensor(np.ones((2, 4), np.float32)))
    assert len(truth.graphs) == 2 and len(truth.steps) == 4


def test_without_dump_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    from msdump.mindspore import pynative

    def refuse(*args: Any) -> Any:
        raise AssertionError("recorded")

    monkeypatch.setattr(pynative, "Tracer", refuse)
    with warnings.catch_warnings():
        result = nn.SequentialCell([nn.Dense(2, 2), nn.ReLU()])(Tensor(np.ones((1, 2), np.float32)))
    assert result.shape == (1, 2)


def test_writing_elements_is_the_operator_of_graph_mode(sync_dump: Callable[..., Path]) -> None:
    """Source: MindSpore 2.0 runs TensorScatterUpdate, and Select for a mask, in PyNative as well."""
    pytest.importorskip("torch", reason="computes TensorScatterUpdate")

    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Any:
            y = x * 2
            kept = y.asnumpy()
            y[0] = 7
            y[y > 6] = x[0, 0]
            y[:, 1:] += 1
            return y, Tensor(kept + 0)

    root = sync_dump()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    changed, kept = Net()(Tensor(np.ones((2, 3), np.float32)))
    np.testing.assert_array_equal(changed.asnumpy(), [[1, 2, 2], [2, 3, 3]])
    np.testing.assert_array_equal(kept.asnumpy(), changed.asnumpy())
    names = execution_order(root)
    assert [name.rpartition("/")[2] for name in names if "Scatter" in name or "Select" in name] == [
        "TensorScatterUpdate", "Select", "TensorScatterUpdate",
    ]  # fmt: skip
    first, last = sorted(root.rglob("TensorScatterUpdate.*.output.0.*.npy"), key=lambda path: path.name)
    np.testing.assert_array_equal(np.load(first), [[7, 7, 7], [2, 2, 2]])
    np.testing.assert_array_equal(np.load(last), changed.asnumpy())
