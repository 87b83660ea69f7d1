"""The synchronous engine on random graphs: what is on disk is what the operators read and wrote."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.engine import opening
from msdump.engine.graphs import GraphSession
from msdump.errors import DumpError, WriteError
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import parse_data_file_name
from msdump.formats.sidecars import LOST_FILE, Lost, read_lost
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from msdump.process import sessions
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, BEFORE, OpEvent

Key = tuple[str, str, int]


def write_config(folder: Path, **changes: Any) -> Path:
    common = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0],
    }  # fmt: skip
    common.update(changes)
    path = folder / "dump.json"
    path.write_text(
        json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}})
    )
    return path


@contextmanager
def dumping(**changes: Any) -> Iterator[tuple[GraphSession, Path]]:
    """A session in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(write_config(folder, **changes))
        try:
            sessions.reset_for_tests()
            opened = opening.open_mindspore("CPU", 0)
            assert opened is not None
            yield opened, folder / "dump"
        finally:
            del os.environ["MINDSPORE_DUMP_CONFIG"]
            sessions.reset_for_tests()


def tensors_on_disk(root: Path, iteration: int) -> dict[Key, Array]:
    """(op name, io, slot) -> array of one iteration."""
    found: dict[Key, Array] = {}
    for path in (root / "rank_0/Net/0" / str(iteration)).glob("*.npy"):
        name = parse_data_file_name(path.name)
        assert name is not None, path.name
        key = (name.op_name, name.io, name.slot)
        assert key not in found
        found[key] = read_npy(path)
    return found


class Truth:
    """Copies what every operator reads just before, and leaves just after, it runs."""

    needs_all_values = False

    def __init__(self) -> None:
        self.tensors: dict[Key, Array] = {}

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [BEFORE | AFTER] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        self.tensors = {}
        return True

    def before_op(self, event: OpEvent) -> None:
        self._add(event, "input", event.inputs)

    def after_op(self, event: OpEvent) -> None:
        self._add(event, "output", event.outputs)

    def _add(self, event: OpEvent, io: str, arrays: Sequence[Array]) -> None:
        for slot, array in enumerate(arrays):
            self.tensors[event.op.full_name.rsplit("/", 1)[-1], io, slot] = array.copy()

    def on_iteration_end(self, step: FinishedStep) -> None: ...

    def on_error(self, event: OpEvent, error: BaseException) -> None: ...

    def close(self) -> None: ...


def assert_same(actual: dict[Key, Array], expected: dict[Key, Array]) -> None:
    assert actual.keys() == expected.keys()
    for key, array in expected.items():
        assert actual[key].dtype == array.dtype
        assert actual[key].shape == array.shape, key
        assert actual[key].tobytes() == array.tobytes(), key


@settings(max_examples=25, deadline=None)
@given(graphs())
def test_disk_holds_what_operators_read_and_wrote(case: GraphCase) -> None:
    truth = Truth()
    with dumping() as (opened, root), np.errstate(all="ignore"):
        executor = Executor(case.graph, (truth, *opened.observers))
        for iteration in range(2):
            executor.run(case.inputs, iteration)
            expected = dict(truth.tensors)
            for value in (*case.graph.parameters, *case.graph.inputs):
                expected[value.name, "output", 0] = executor.memory.array(value).copy()
            assert_same(tensors_on_disk(root, iteration), expected)
        opened.close()
        assert opened.report().error is None


@settings(max_examples=25, deadline=None)
@given(graphs(), st.integers(0, 2))
def test_dumping_never_changes_results(case: GraphCase, input_output: int) -> None:
    with np.errstate(all="ignore"):
        plain = [Executor(case.graph).run(case.inputs) for _ in range(1)]
        after = {value.name: value.parameter.array.copy() for value in case.graph.parameters if value.parameter}
        case.restore()
        with dumping(saved_data="full", input_output=input_output) as (opened, _root):
            dumped = [Executor(case.graph, opened.observers).run(case.inputs, 0)]
    for one, other in zip(plain[0], dumped[0], strict=True):
        assert one.tobytes() == other.tobytes()
    for value in case.graph.parameters:
        assert value.parameter is not None
        assert value.parameter.array.tobytes() == after[value.name].tobytes()


@settings(max_examples=25, deadline=None)
@given(graphs())
def test_replay_of_a_dumped_operator_gives_its_dumped_outputs(case: GraphCase) -> None:
    with dumping() as (opened, root), np.errstate(all="ignore"):
        Executor(case.graph, opened.observers).run(case.inputs, 0)
        found = tensors_on_disk(root, 0)
        for node in case.graph.kernels:
            name = node.full_name.rsplit("/", 1)[-1]
            inputs = [np.array(found[name, "input", slot]) for slot in range(len(node.inputs))]
            out = [np.empty_like(found[name, "output", slot]) for slot in range(len(node.outputs))]
            for index, slot in node.definition.aliases.items():
                out[index] = inputs[slot]
            node.definition.kernels["numpy"](inputs, node.primitive.attrs, out)
            for slot, array in enumerate(out):
                assert array.tobytes() == found[name, "output", slot].tobytes(), node.full_name


@settings(max_examples=25, deadline=None)
@given(graphs(), st.data())
def test_subset_of_kernels_dumps_a_subset(case: GraphCase, data: st.DataObject) -> None:
    names = [node.full_name for node in case.graph.kernels]
    small = data.draw(st.lists(st.sampled_from(names), unique=True))
    large = small + data.draw(st.lists(st.sampled_from([*names, "relu", "add"]), unique=True, max_size=4))
    keys = []
    for kernels in (small, large):
        case.restore()
        with dumping(dump_mode=1, kernels=kernels) as (opened, root), np.errstate(all="ignore"):
            Executor(case.graph, opened.observers).run(case.inputs, 0)
            keys.append(set(tensors_on_disk(root, 0)))
    assert keys[0] <= keys[1]
    assert {name for name, _, _ in keys[0]} == {name.rsplit("/", 1)[-1] for name in small}


@settings(max_examples=15, deadline=None)
@given(graphs())
def test_statistics_have_one_row_per_file(case: GraphCase) -> None:
    with dumping(saved_data="full") as (opened, root), np.errstate(all="ignore"):
        Executor(case.graph, opened.observers).run(case.inputs, 0)
        opened.close()
        files = tensors_on_disk(root, 0)
        rows = read_statistic_csv(root / "rank_0/Net/0/0/statistic.csv")
    assert {(row.op_name, row.io, row.slot) for row in rows} == set(files)
    for row in rows:
        array = files[row.op_name, row.io, row.slot]
        assert row.count == array.size
        assert row.nan == np.count_nonzero(np.isnan(array))


def test_iterations_counted_over_all_runs() -> None:
    with dumping(iteration="1|3") as (opened, root):
        graph = _small_graph()
        executor = Executor(graph, opened.observers)
        for _ in range(5):
            executor.run([np.ones(3, np.float32)], opened.next_iteration())
        report = opened.report()
        assert sorted(path.name for path in (root / "rank_0/Net/0").iterdir()) == ["1", "3"]
        history = root / "rank_0/execution_order/ms_global_execution_order_graph_0.csv"
        assert history.read_text() == "1\n3\n"
        assert (report.iterations_run, report.iterations_dumped) == (5, 2)


def test_why_nothing_was_dumped_does_not_contradict_itself() -> None:
    with dumping(iteration="0") as (opened, _):
        assert "No iteration ran" in opened.report().advice[0]
    for asked, begins, words in (("7", 2, "in '7': 2 ran, and the first one is 0"), ("0", 1, "none of those in '0'")):
        with dumping(iteration=asked) as (opened, _):
            for iteration in range(begins):
                opened.tally.count_run(iteration)
            assert words in opened.report().advice[0]


def _small_graph() -> Graph:
    from msdump.graph.primitive import Primitive
    from msdump.graph.types import TensorType
    from msdump.mindspore.program.compile import finish

    graph = Graph()
    value = graph.add_input("x", TensorType("float32", (3,)))
    for _ in range(3):
        value = graph.add_node(Primitive("Neg"), [value], "Default/net-Net").outputs[0]
    graph.outputs = [value]
    return finish(graph)


class FullDisk:
    """A writer on a disk that takes `room` records."""

    writes_once = False
    takes_empty = False

    def __init__(self, room: int) -> None:
        from msdump.formats.writer import WriteCounts

        self.room = room
        self.counts = WriteCounts()

    def write(self, records: Sequence[object]) -> None:
        self.room -= len(records)
        if self.room < 0:
            raise WriteError("x.npy: expected room on the disk, got none. Free some.")

    def end_iteration(self, graph_id: int, iteration: int) -> None: ...

    def close(self) -> None: ...


def test_full_disk_stops_the_dump_not_the_training(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    from msdump.config.environment import Environment
    from msdump.config.mindspore import plan_mindspore
    from msdump.dumpers.sync import SyncDumper
    from msdump.dumpers.tally import Tally
    from msdump.formats.paths.sync import SyncPaths

    environment = Environment.from_os({"MINDSPORE_DUMP_CONFIG": str(write_config(tmp_path))})
    plan = plan_mindspore(environment, "CPU", 0)
    assert plan is not None
    tally = Tally()
    paths = SyncPaths(plan.where.path, 0, "Net")
    dumper = SyncDumper(plan, paths, [FullDisk(8)], FullDisk(10), tally)
    opened = GraphSession(plan, (dumper,), (), tally, metadata_dir=paths.metadata_dir)
    executor = Executor(_small_graph(), opened.observers)
    x = np.arange(3, dtype=np.float32)
    with caplog.at_level(logging.ERROR, "msdump"):
        results = [executor.run([x], opened.next_iteration())[0] for _ in range(4)]
    assert all(np.array_equal(result, -x) for result in results)
    assert [record.message for record in caplog.records if "Dump stopped" in record.message] == [
        "Dump stopped, training continues: x.npy: expected room on the disk, got none. Free some."
    ]
    assert (tally.tensors_written, tally.lost, tally.iterations_dumped) == (7 + 0, 7, 1)
    with pytest.raises(DumpError, match="7 tensors"):
        opened.close()
    opened.close()
    assert read_lost(paths.metadata_dir / LOST_FILE) == Lost(
        7, "x.npy: expected room on the disk, got none. Free some."
    )


def test_a_string_is_told_and_counted_and_all_else_is_dumped(caplog: pytest.LogCaptureFixture) -> None:
    from msdump.graph.primitive import Primitive
    from msdump.graph.types import TensorType
    from msdump.mindspore.program.compile import finish

    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (3,)))
    graph.add_node(Primitive("Print", {"strings": ("x:", None)}), [x], "Default")
    graph.outputs = [graph.add_node(Primitive("Neg"), [x], "Default").outputs[0]]
    with dumping() as (opened, root), caplog.at_level(logging.ERROR, "msdump"):
        Executor(finish(graph), opened.observers).run([np.ones(3, np.float32)], opened.next_iteration())
        assert opened.tally.skipped["string operand"] == 1
        assert sorted(key[1:] for key in tensors_on_disk(root, 0) if "Print" in key[0]) == [("input", 0), ("output", 0)]
    assert [record.message for record in caplog.records] == [
        "Default/Print-op0: a string cannot be dumped; its tensors are."
    ]


def test_a_graph_that_cannot_be_described_loses_no_tensor_by_itself(tmp_path: Path) -> None:
    from msdump.config.environment import Environment
    from msdump.config.mindspore import plan_mindspore
    from msdump.dumpers.sync import SyncDumper
    from msdump.dumpers.tally import Tally
    from msdump.formats.paths.sync import SyncPaths

    environment = Environment.from_os({"MINDSPORE_DUMP_CONFIG": str(write_config(tmp_path))})
    plan = plan_mindspore(environment, "CPU", 0)
    assert plan is not None
    (tmp_path / "in_the_way").write_text("")
    tally = Tally()
    dumper = SyncDumper(plan, SyncPaths(tmp_path / "in_the_way", 0, "Net"), [FullDisk(8)], FullDisk(10), tally)
    dumper.on_graph(_small_graph())
    assert "in_the_way" in tally.error and tally.lost == 0
    dumper.close()


KILLED = """
import sys
import numpy as np
from msdump.engine import opening
from msdump.process import sessions
from msdump.engine.graphs import GraphSession
sys.path.insert(0, {tests!r})
from tests.dumpers.test_sync import _small_graph
from msdump.mindspore.program.executor import Executor

opened = opening.open_mindspore("CPU", 0)
executor = Executor(_small_graph(), opened.observers)
x = np.ones(3, np.float32)
print("started", flush=True)
while True:
    executor.run([x], opened.next_iteration())
"""


def test_sigkill_leaves_no_damaged_file(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    config = write_config(tmp_path, saved_data="full")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(tests=str(root))], stdout=subprocess.PIPE, cwd=root,
        env={**os.environ, "MINDSPORE_DUMP_CONFIG": str(config), "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    deadline = time.monotonic() + 60
    while not list((tmp_path / "dump").glob("rank_0/Net/0/2/*.npy")):
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    files = [path for path in (tmp_path / "dump").rglob("*") if path.is_file()]
    arrays = [path for path in files if path.name.endswith(".npy")]
    assert arrays
    for path in arrays:
        assert parse_data_file_name(path.name) is not None
        assert read_npy(path).shape == (3,)
    for path in files:
        assert path.suffix in (".npy", ".csv", ".json", ".ir", ".pb"), path
    for path in (tmp_path / "dump").rglob("statistic.csv"):
        assert path.read_text().endswith("\n")
        read_statistic_csv(path)


def test_empty_tensor_has_no_file_and_one_row() -> None:
    from msdump.graph.primitive import Primitive
    from msdump.graph.types import TensorType
    from msdump.mindspore.program.compile import finish

    graph = Graph()
    value = graph.add_input("x", TensorType("float32", (0, 3)))
    graph.outputs = [graph.add_node(Primitive("Neg"), [value], "Default").outputs[0]]
    with dumping(saved_data="full") as (opened, root):
        Executor(finish(graph), opened.observers).run([np.empty((0, 3), np.float32)], 0)
        opened.close()
        assert tensors_on_disk(root, 0) == {}
        (row,) = read_statistic_csv(root / "rank_0/Net/0/0/statistic.csv")
        report = opened.report()
        assert (report.tensors_written, report.lost, report.skipped) == (1, 0, {"empty tensor": 2})
    assert (row.io, row.slot, row.count, row.max) == ("output", 0, 0, None)
