"""Recorders: the files that describe a graph, beside a dump or without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from msdump.operators.traits import only_moves
from msdump.tensors.records import OpInfo, TensorKey

_MODE = 0o400
# Views of views.
_LONGEST_WAY = 100


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
    ran        its operators, in the order in which they ran
    attributes of operators, as far as they are others than in the iteration before
    is_noted   whether the file says so
    last       what was written last: what it ran, and what the other graphs did, and what the file says of it
    indices    of operators in the file of the graph, by full name
    """

    graph: Graph
    file: IterationsFile
    iteration: int = -1
    ran: list[OpInfo] = field(default_factory=list)
    attributes: dict[str, Mapping[str, object]] = field(default_factory=dict)
    is_noted: bool = True
    last: tuple[list[OpInfo], dict[int, list[OpInfo]], ExecutedOperators] | None = None
    indices: dict[str, int] = field(default_factory=dict)


class IterationRecorder:
    """Writes what each iteration of an open graph executed: such a graph is described as it first ran.

    Keys of tensors tell who made what an operator reads, across the graphs of an iteration. A graph may end several
    times in an iteration, with what it ran since, and may read what one made that ends later: an iteration is written
    when the next one ends, or at the end. The caller sees to it that graphs end one at a time.
    """

    def __init__(self, paths: SyncPaths) -> None:
        self._paths = paths
        self._graphs: dict[int, _Executed] = {}
        self._numbers: dict[TensorKey, int] = {}

    def record(self, step: FinishedStep) -> None:
        """An iteration of an open graph has ended.   Raises: WriteError."""
        for iteration in {graph.iteration for graph in self._graphs.values() if not graph.is_noted}:
            if iteration < step.iteration:
                self._note(iteration)
        graph_id = step.graph.graph_id
        graph = self._graphs.get(graph_id)
        if graph is None:
            file = IterationsFile(self._paths.iterations_file(graph_id), graph_id)
            graph = self._graphs[graph_id] = _Executed(step.graph, file)
        if graph.iteration != step.iteration:
            graph.iteration, graph.ran = step.iteration, []
        graph.ran = [*graph.ran, *step.ops]
        graph.attributes.update(step.attributes)
        graph.is_noted = False

    def close(self) -> None:
        """Write what is known of the last iterations.   Raises: WriteError."""
        for iteration in {graph.iteration for graph in self._graphs.values() if not graph.is_noted}:
            self._note(iteration)

    def _note(self, iteration: int) -> None:
        graphs = {number: graph for number, graph in self._graphs.items() if graph.iteration == iteration}
        for graph in graphs.values():
            if graph.last is not None and graph.ran == graph.last[0]:
                # The same list where nothing has changed.
                graph.ran = graph.last[0]
            elif any(op.full_name not in graph.indices for op in graph.ran):
                graph.indices = {node.full_name: index for index, node in enumerate(graph.graph.kernels)}
        for graph_id, graph in graphs.items():
            if graph.is_noted:
                continue
            graph.is_noted = True
            others = {number: other.ran for number, other in graphs.items() if number != graph_id}
            last = graph.last
            if last is not None and graph.ran is last[0] and _are_same(others, last[1]):
                executed = last[2]
            else:
                executed = self._executed(graph, others)
            graph.last = graph.ran, others, executed
            # One that has only ever raised is no operator that ran.
            attributes = {
                graph.indices[name]: values for name, values in graph.attributes.items() if name in graph.indices
            }
            graph.attributes.clear()
            graph.file.note(iteration, executed, attributes)

    def _executed(self, graph: _Executed, others: Mapping[int, list[OpInfo]]) -> ExecutedOperators:
        elsewhere, makers = _Makers(), _Makers()
        runs = {graph.graph.graph_id: graph.ran, **others}
        turned_back = _turned_back(op for graph_id in self._graphs for op in runs.get(graph_id, ()))
        for graph_id, ran in others.items():
            indices = self._graphs[graph_id].indices
            for op in ran:
                if id(op) not in turned_back:
                    elsewhere.add(graph_id, indices[op.full_name], op)
        inputs: dict[int, tuple[Maker, ...]] = {}
        for op in graph.ran:
            index = graph.indices[op.full_name]
            inputs[index] = tuple(
                # Where it was written since by somebody else, the last one that made it.
                makers.by_key.get(info.key)
                or elsewhere.by_key.get(info.key)
                or makers.by_memory.get(info.key.value_id)
                or elsewhere.by_memory.get(info.key.value_id)
                or self._number(info.key)
                for info in op.inputs
            )
            makers.add(graph.graph.graph_id, index, op)
        return ExecutedOperators(tuple(graph.indices[op.full_name] for op in graph.ran), inputs)

    def _number(self, key: TensorKey) -> int:
        """Of what nobody made: another one when it was written since."""
        return self._numbers.setdefault(key, len(self._numbers))


def _turned_back(ran: Iterable[OpInfo]) -> set[int]:
    """Identities of operators that turn a view back into what it is a view of, as the transpose of a weight in a
    backward pass: they have not made that.

    ran   by all graphs, in the order in which these ran first
    """
    views: dict[TensorKey, TensorKey] = {}
    found = set()
    for op in ran:
        if not (op.inputs and op.outputs and only_moves(op.op_type)):
            continue
        made, source = op.outputs[0].key, op.inputs[0].key
        for _ in range(_LONGEST_WAY):
            if source == made or source not in views:
                break
            source = views[source]
        if source == made:
            found.add(id(op))
        else:
            views.setdefault(made, op.inputs[0].key)
    return found


def _are_same(now: Mapping[int, list[OpInfo]], then: Mapping[int, list[OpInfo]]) -> bool:
    """Whether other graphs have run the same: their lists are kept where they have."""
    return len(now) == len(then) and all(ran is then.get(graph_id) for graph_id, ran in now.items())


class _Makers:
    """Who made each tensor of an iteration so far."""

    def __init__(self) -> None:
        self.by_key: dict[TensorKey, Maker] = {}
        self.by_memory: dict[int, Maker] = {}

    def add(self, graph_id: int, index: int, op: OpInfo) -> None:
        for output, info in enumerate(op.outputs):
            self.by_key[info.key] = self.by_memory[info.key.value_id] = graph_id, index, output


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
