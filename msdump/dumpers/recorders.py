"""Recorders: the files that describe a graph, beside a dump or without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msdump.dumpers.dumper import Dumper
from msdump.dumpers.tally import Tally
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.iterations_jsonl import ExecutedOperators, IterationsFile, Maker
from msdump.formats.paths.sync import SyncPaths
from msdump.graph.graph import Graph
from msdump.graph.ir import ir_text
from msdump.graph.listing import order_csv_text
from msdump.graph.pb import model_bytes
from msdump.graph.run import FinishedStep
from msdump.tensors.records import OpInfo, TensorKey

_MODE = 0o400


class GraphRecorder:
    """Writes the description of each compiled graph, over that of an earlier run.

    Source: MindSpore sync dump tree.
    """

    def __init__(self, paths: SyncPaths) -> None:
        self._paths = paths

    def record(self, graph: Graph) -> None:
        """Raises: WriteError."""
        content = {
            self._paths.graph_file(graph.graph_id, "ir"): ir_text(graph).encode(),
            self._paths.graph_file(graph.graph_id, "pb"): model_bytes(graph),
            self._paths.order_file(graph.graph_id): order_csv_text(graph).encode(),
        }
        for path, data in content.items():
            make_dirs(path.parent)
            write_file(path, [data], _MODE, replace=True)


@dataclass(slots=True)
class _Executed:
    """What an open graph executed last.

    iteration  the last one of which anything is known
    ran        its operators so far, in the order in which they ran
    before     those of the graphs that had ended before it in the iteration
    is_noted   whether the file says so; what began as the iteration before may still become the same
    attributes of operators, as far as they are others than in the iteration before
    last       what the iteration before ran, after which graphs, and what the file says of it
    indices    of operators in the file of the graph, by full name
    """

    graph: Graph
    file: IterationsFile
    iteration: int = -1
    ran: list[OpInfo] = field(default_factory=list)
    before: dict[int, list[OpInfo]] = field(default_factory=dict)
    is_noted: bool = True
    attributes: dict[str, Mapping[str, object]] = field(default_factory=dict)
    last: tuple[list[OpInfo], dict[int, list[OpInfo]], ExecutedOperators] | None = None
    indices: dict[str, int] = field(default_factory=dict)


class IterationRecorder:
    """Writes what each iteration of an open graph executed: such a graph is described as it first ran.

    Keys of tensors tell who made what an operator reads, across the graphs of an iteration. A graph may end several
    times in an iteration, with what it ran since. The caller sees to it that graphs end one at a time.
    """

    # Programs in several threads have iterations of their own under way.
    _MAX_ITERATIONS = 16

    def __init__(self, paths: SyncPaths) -> None:
        self._paths = paths
        self._graphs: dict[int, _Executed] = {}
        self._ended: dict[int, dict[int, list[OpInfo]]] = {}
        self._numbers: dict[TensorKey, int] = {}

    def record(self, step: FinishedStep) -> None:
        """An iteration of an open graph has ended.   Raises: WriteError."""
        graph_id = step.graph.graph_id
        graph = self._graphs.get(graph_id)
        if graph is None:
            file = IterationsFile(self._paths.iterations_file(graph_id), graph_id)
            graph = self._graphs[graph_id] = _Executed(step.graph, file)
        ran = [event.op for event in step.events]
        if graph.iteration == step.iteration:
            ran = [*graph.ran, *ran]
        else:
            self._note(graph)
        graph.iteration, graph.ran, graph.is_noted = step.iteration, ran, False
        graph.attributes.update(step.attributes)
        ended = self._ended.setdefault(step.iteration, {})
        while len(self._ended) > self._MAX_ITERATIONS:
            del self._ended[next(iter(self._ended))]
        graph.before = {number: ops for number, ops in ended.items() if number != graph_id}
        if graph.last is None or len(ran) >= len(graph.last[0]) or ran != graph.last[0][: len(ran)]:
            self._note(graph)
        ended[graph_id] = graph.ran

    def close(self) -> None:
        """Write what may have been the beginning of more.   Raises: WriteError."""
        for graph in self._graphs.values():
            self._note(graph)

    def _note(self, graph: _Executed) -> None:
        if graph.is_noted:
            return
        graph.is_noted = True
        last = graph.last
        if last is None or graph.ran != last[0] or not _are_same(graph.before, last[1]):
            executed = self._executed(graph)
        else:
            graph.ran, executed = last[0], last[2]
        graph.last = graph.ran, graph.before, executed
        attributes = {graph.indices[name]: values for name, values in graph.attributes.items() if name in graph.indices}
        graph.attributes.clear()
        graph.file.note(graph.iteration, executed, attributes)

    def _executed(self, graph: _Executed) -> ExecutedOperators:
        if any(op.full_name not in graph.indices for op in graph.ran):
            graph.indices = {node.full_name: index for index, node in enumerate(graph.graph.kernels)}
        makers = _Makers()
        for graph_id, ran in graph.before.items():
            indices = self._graphs[graph_id].indices
            for op in ran:
                if op.full_name in indices:
                    makers.add(graph_id, indices[op.full_name], op)
        inputs: dict[int, tuple[Maker, ...]] = {}
        for op in graph.ran:
            index = graph.indices[op.full_name]
            inputs[index] = tuple(makers.find(info.key) or self._number(info.key) for info in op.inputs)
            makers.add(graph.graph.graph_id, index, op)
        return ExecutedOperators(tuple(graph.indices[op.full_name] for op in graph.ran), inputs)

    def _number(self, key: TensorKey) -> int:
        """Of what nobody made: another one when it was written since."""
        return self._numbers.setdefault(key, len(self._numbers))


def _are_same(now: dict[int, list[OpInfo]], then: dict[int, list[OpInfo]]) -> bool:
    """Whether the graphs before have run the same: their lists are kept where they have."""
    return len(now) == len(then) and all(ran is then.get(graph_id) for graph_id, ran in now.items())


class _Makers:
    """Who made each tensor of an iteration so far."""

    def __init__(self) -> None:
        self._by_key: dict[TensorKey, Maker] = {}
        self._by_memory: dict[int, Maker] = {}

    def add(self, graph_id: int, index: int, op: OpInfo) -> None:
        for output, info in enumerate(op.outputs):
            self._by_key[info.key] = self._by_memory[info.key.value_id] = graph_id, index, output

    def find(self, key: TensorKey) -> Maker:
        """Where it was written since by somebody else, the last one that made it."""
        return self._by_key.get(key) or self._by_memory.get(key.value_id)


class GraphFilesDumper(Dumper):
    """Observer of compiled graphs, beside a dump whose own engine writes no files of them. It watches no operator."""

    def __init__(self, paths: SyncPaths, tally: Tally) -> None:
        super().__init__(tally)
        self._recorder = GraphRecorder(paths)
        self._iterations = IterationRecorder(paths)
        # Open graphs that have operators which their files lack.
        self._grown: set[int] = set()

    def on_graph(self, graph: Graph) -> Sequence[int]:
        if not self._is_over() and not graph.is_open:
            with self._dumping():
                self._recorder.record(graph)
        # Operators of an open graph are announced one by one.
        return [] if graph.is_open else [0] * len(graph.kernels)

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        self._grown.add(graph.graph_id)
        return 0

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        """The dump beside it counts the runs. Of open graphs the end is watched: they may have grown."""
        return graph.is_open and not self._is_over()

    def on_iteration_end(self, step: FinishedStep) -> None:
        if self._is_over():
            return
        with self._dumping():
            if step.graph.graph_id in self._grown:
                self._grown.discard(step.graph.graph_id)
                self._recorder.record(step.graph)
            self._iterations.record(step)

    def _close(self) -> None:
        with self._dumping():
            self._iterations.close()

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return False
