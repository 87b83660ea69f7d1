"""Steps whose tensors were measured as they ran leave the rows of steps whose tensors are there."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.run import Calls, MeasuredEvents, ObservedGraph
from msdump.graph.types import TensorType
from msdump.statistics.measured import MeasuredNumbers
from msdump.statistics.stats import MeasuredArray, statistics
from msdump.tensors.arrays import Array
from msdump.tensors.records import OpInfo, TensorInfo, TensorKey
from tests.dumpers.test_sync import dumping
from tests.statistics.test_measured import table_of

X = np.array([[1.5, -2.0], [0.0, 3.25]], np.float32)
NAN = np.array([np.nan, 1.0], np.float32)
CODES = np.array([3, -4], np.int64)
# Of each operator its inputs and outputs.
OPERANDS: list[tuple[list[Array], list[Array]]] = [([X], [NAN]), ([NAN, CODES], [CODES * 2])]


class Ran(Calls):
    """Calls that have run; `arrays` that they read and wrote."""

    ops = ()
    is_before_told = False

    def __init__(self, arrays: Sequence[tuple[list[Array], list[Array]]] = ()) -> None:
        self._arrays = arrays

    def launch(self, number: int) -> None: ...

    def inputs(self, number: int) -> Sequence[Array]:
        return self._arrays[number][0]

    def outputs(self, number: int) -> Sequence[Array]:
        return self._arrays[number][1]

    def array(self, value: object) -> Array:
        raise AssertionError("there are no parameters")


class Measured:
    """The same calls, of which the statistics are known."""

    def __init__(self, ops: Sequence[OpInfo]) -> None:
        self.ops = ops
        arrays = [X, NAN, CODES, CODES * 2]
        is_integer = np.array([array.dtype.kind == "i" for array in arrays])
        self.numbers = MeasuredNumbers()
        self.numbers.add(table_of([statistics(each, each.dtype.name) for each in arrays], is_integer), is_integer)
        self.places = [0, 1, 1, 2, 3]

    def arrays(self, number: int) -> tuple[Sequence[Array], Sequence[Array]]:
        return tuple([self._of(array) for array in side] for side in OPERANDS[number])  # type: ignore[return-value]

    def _of(self, array: Array) -> Array:
        return MeasuredArray(array.shape, array.dtype, lambda: statistics(array, array.dtype.name))


def dumped(way: str, kernels: Sequence[str] = ()) -> list[list[str]]:
    """Rows of a step without time stamps."""
    common = {"saved_data": "statistic", "statistic_category": ["max", "min", "avg", "l2norm", "nan count"]}
    with dumping(**common, dump_mode=1 if kernels else 0, kernels=list(kernels)) as (session, root):
        graph = Graph("kernel_graph_0", 0, is_open=True)
        seen = ObservedGraph(graph, session.observers)
        run = None
        keys: dict[int, TensorKey] = {}
        ops = []
        for index, sides in enumerate(OPERANDS):
            infos = [
                tuple(
                    TensorInfo(keys.setdefault(id(array), TensorKey(len(keys), 0)), array.dtype.name, array.shape)
                    for array in side
                )
                for side in sides
            ]
            types = [TensorType(info.dtype, info.shape) for info in infos[1]]
            primitive = Primitive("Own", {}, definition=PrimitiveDef("Own"))
            node = graph.add_foreign_node(primitive, [], types, "Default", ())
            node.op_id = index
            op = OpInfo(0, index, "Own", node.full_name, index, 0, *infos)
            seen.append(op)
            ops.append(op)
        run = seen.begin(0)
        assert run is not None
        if way == "measured":
            assert run.may_wait(ops)
            run.add_measured(Measured(ops), may_wait=True)
        elif way == "told":
            run.add_measured(Measured(ops), may_wait=False)
        else:
            calls = Ran(OPERANDS)
            for number, op in enumerate(ops):
                run.launch(calls, number, op)
        run.finish(Ran())
        session.close()
        rows = []
        for path in sorted(Path(root).rglob("statistic.csv")):
            with path.open() as file:
                rows += [row[:4] + row[5:] for row in csv.reader(file)]
        return rows


@pytest.mark.parametrize("kernels", [(), ("Default/Own-op1",)], ids=["all", "one"])
def test_rows_are_those_of_arrays(kernels: Sequence[str]) -> None:
    expected = dumped("arrays", kernels)
    assert len(expected) == (4 if kernels else 6)
    assert dumped("measured", kernels) == expected
    assert dumped("told", kernels) == expected


def test_events_are_made_when_they_are_asked_for() -> None:
    ops = [OpInfo(0, index, "Own", f"Own-op{index}", index, 0, (), ()) for index in range(2)]
    events = MeasuredEvents(3, [Measured(ops)])
    assert len(events) == 2 and events.ops == ops
    assert events[1].op is ops[1] and events[-1].iteration == 3
    assert [event.op for event in events[:1]] == ops[:1]
    assert statistics(events[0].outputs[0], "float32").nan == 1
