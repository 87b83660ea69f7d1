"""What is lost is counted: every tensor of a dumped step is on disk or in the number that the report gives."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path

import numpy as np
import pytest

from msdump.dumpers.tally import Tally
from msdump.formats.npy import NpyWriter
from msdump.formats.npy_reader import read_npy
from msdump.formats.statistic_csv import StatisticWriter, read_statistic_csv
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase
from tests.contracts.failing_calls import FailingCalls
from tests.dumpers.disk_limits import async_dumper, by_iteration, plain, sync_dumper


def square_case() -> GraphCase:
    """Four operators on one input, and two of them without elements."""
    graph = Graph()
    value = graph.add_input("x", TensorType("float32", (3, 4)))
    empty = graph.add_input("y", TensorType("float32", (0, 4)))
    outputs = [graph.add_node(Primitive("Neg"), [empty], "Default").outputs[0]]
    outputs += graph.add_node(Primitive("Neg"), outputs, "Default").outputs
    for _ in range(4):
        value = graph.add_node(Primitive("Square"), [value], "Default").outputs[0]
    graph.outputs = [value, *outputs]
    inputs = [np.full((3, 4), 1.1, np.float32), np.zeros((0, 4), np.float32)]
    return GraphCase(finish(graph), inputs, {})


def open_writers(kinds: str, root: Path) -> list[Writer]:
    folder = by_iteration(root)
    makers = {"npy": NpyWriter, "statistic": StatisticWriter}
    return [makers[kind](folder) for kind in kinds.split("+")]  # type: ignore[operator]


def stored(kinds: str, root: Path) -> int:
    """Tensors that every kind of file has; those without elements have a row and no file."""
    counts, empty = [], 0
    if "npy" in kinds:
        counts.append(sum(read_npy(path).size > 0 for path in root.rglob("*.npy")))
    if "statistic" in kinds:
        rows = [row for path in root.rglob("statistic.csv") for row in read_statistic_csv(path)]
        empty = sum(0 in row.shape for row in rows)
        counts.append(len(rows) - empty)
    return min(counts) + empty


@pytest.mark.parametrize("engine", ["sync", "async"])
@pytest.mark.parametrize("kinds", ["npy", "statistic", "npy+statistic"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_what_a_failing_call_costs_is_counted(
    engine: str, kinds: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever system call fails, the last ones of an iteration too."""
    case = square_case()
    expected = plain(case, 1)
    total = None
    for fails_at in itertools.chain([1 << 60], itertools.count()):
        root = tmp_path / str(fails_at) / "dump"
        tally = Tally()
        writers = open_writers(kinds, root)
        dumper = sync_dumper(root, writers, tally) if engine == "sync" else async_dumper(writers, tally, 1)
        with monkeypatch.context() as patch:
            calls = FailingCalls(patch, fails_at, number)
            executor = Executor(case.graph, (dumper,))  # a graph without its files is no dump: no step begins
            calls.start()
            outputs = [array.tobytes() for array in executor.run(case.inputs, 0)]
            dumper.close()
            calls.stop()
        assert outputs == expected
        if total is None:
            total = tally.tensors_written
            assert (tally.lost, tally.error, stored(kinds, root)) == (0, "", total)
            rows_alone = 2 if "statistic" in kinds else 0
            assert tally.skipped == {"empty tensor": 5 - rows_alone}
            continue
        if not calls.has_failed:
            break
        assert stored(kinds, root) >= tally.tensors_written
        assert tally.tensors_written + tally.lost == total
        assert tally.error or tally.tensors_written == total
        assert tally.iterations_dumped == 0 or tally.tensors_written == total
