"""RunContract: what observers are told of a run, whichever front end runs the graph."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msdump.graph.graph import Graph, Value
from msdump.graph.run import FinishedStep, Observer
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, BEFORE, KEEP, OpEvent, OpInfo, TensorInfo

# Each class that inherits a property runs it; no example is remembered from one for another.
_INHERITED = [HealthCheck.differing_executors]

# Runs a program once and returns the bytes of its results.
Play = Callable[[], bytes]


class Witness:
    """Notes every call, with copies of what it was shown.

    bits        masks of the operators, taken in turn
    iterations  those that it watches; None: all
    graphs      those that have operators: an open graph is told before its first one
    calls       ("begin" | "before" | "after" | "error" | "end", iteration, index of the operator or -1) of these graphs
    """

    needs_all_values = False

    def __init__(self, bits: Sequence[int] = (BEFORE | AFTER | KEEP,), iterations: Sequence[int] | None = None) -> None:
        self._bits = bits
        self._iterations = iterations
        self._graphs: dict[int, Graph] = {}
        self._calls: list[tuple[int, str, int, int]] = []
        self.masks: dict[int, list[int]] = {}
        self.told: list[Told] = []
        self.ends: list[Told] = []
        self.errors: list[BaseException] = []

    def on_graph(self, graph: Graph) -> Sequence[int]:
        graph.lint()
        assert graph.graph_id not in self._graphs
        self._graphs[graph.graph_id] = graph
        mask = [] if graph.is_open else list(itertools.islice(itertools.cycle(self._bits), len(graph.kernels)))
        self.masks[graph.graph_id] = mask
        return list(mask)

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        graph.lint()
        mask = self.masks[graph.graph_id]
        assert graph.is_open and op.index == len(mask)
        mask.append(self._bits[op.index % len(self._bits)])
        return mask[-1]

    def on_parameter(self, graph: Graph, value: Value) -> None:
        assert graph.is_open and value in graph.parameters

    @property
    def graphs(self) -> list[Graph]:
        return [graph for graph in self._graphs.values() if graph.kernels]

    @property
    def calls(self) -> list[tuple[str, int, int]]:
        own = {graph.graph_id for graph in self.graphs}
        return [(name, iteration, index) for graph_id, name, iteration, index in self._calls if graph_id in own]

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        if graph.graph_id < 0:
            return False
        is_watched = self._iterations is None or iteration in self._iterations
        if is_watched:
            self._calls.append((graph.graph_id, "begin", iteration, -1))
        return is_watched

    def before_op(self, event: OpEvent) -> None:
        self._note("before", event)

    def after_op(self, event: OpEvent) -> None:
        self._note("after", event)

    def on_iteration_end(self, step: FinishedStep) -> None:
        self._calls.append((step.graph.graph_id, "end", step.iteration, -1))
        if step.graph.kernels:
            self.ends = [Told.of("end", event) for event in step.events]

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self._note("error", event)
        self.errors.append(error)

    def close(self) -> None: ...

    def _note(self, name: str, event: OpEvent) -> None:
        self._calls.append((event.op.graph_id, name, event.iteration, event.op.index))
        self.told.append(Told.of(name, event))


@dataclass(frozen=True)
class Told:
    """One call of an observer.   inputs, outputs: copies of the arrays."""

    name: str
    event: OpEvent
    inputs: list[Array] = field(default_factory=list)
    outputs: list[Array] = field(default_factory=list)

    @staticmethod
    def of(name: str, event: OpEvent) -> Told:
        return Told(name, event, *([array.copy() for array in arrays] for arrays in (event.inputs, event.outputs)))


class RunContract(ABC):
    """A front end's tests inherit from it and say how they run a program.

    The program has several operators, two of which read one result, and one that writes over what it reads where the
    front end has such operators.

    is_before_told  as of `Calls`
    resumes         whether the script may catch what an operator raises, and go on with the iteration
    """

    is_before_told = True
    resumes = False

    @abstractmethod
    def program(self, observers: Sequence[Observer]) -> Play:
        """The program, watched by these observers. Runs have the numbers 0, 1..."""

    @abstractmethod
    def failing_program(self, observers: Sequence[Observer]) -> Play:
        """A program of which an operator raises, neither the first nor the last one."""

    @settings(max_examples=15, deadline=None, suppress_health_check=_INHERITED)
    @given(st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=5), min_size=1, max_size=3))
    def test_each_observer_is_told_what_its_masks_say(self, bits: list[list[int]]) -> None:
        witnesses = [Witness(each) for each in bits]
        self.program(witnesses)()
        for witness in witnesses:
            (graph,) = witness.graphs
            mask = witness.masks[graph.graph_id]
            expected = [("begin", 0, -1)]
            for index in range(len(graph.kernels)):
                expected += [("before", 0, index)] if mask[index] & BEFORE and self.is_before_told else []
                expected += [("after", 0, index)] if mask[index] & AFTER else []
            assert witness.calls == [*expected, ("end", 0, -1)]

    @settings(max_examples=10, deadline=None, suppress_health_check=_INHERITED)
    @given(st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=3))
    def test_each_observer_sees_the_iterations_that_it_wants(self, iterations: list[set[int]]) -> None:
        witnesses = [Witness(iterations=sorted(each)) for each in iterations]
        play = self.program(witnesses)
        for _ in range(4):
            play()
        for witness, watched in zip(witnesses, iterations, strict=True):
            for name in ("begin", "end"):
                assert [number for call, number, _ in witness.calls if call == name] == sorted(watched)
            # An open graph has the operators that ran while somebody watched.
            size = len(witness.graphs[0].kernels) if witness.graphs else 0
            assert len(witness.told) == (1 + self.is_before_told) * size * len(watched)
            assert size or not (self.is_before_told or watched)

    def test_a_watched_run_gives_the_bits_of_one_that_is_not(self) -> None:
        plain, watched = self.program(()), self.program((Witness(), Witness((KEEP,))))
        assert [watched() for _ in range(3)] == [plain() for _ in range(3)]

    def test_what_an_operator_reads_is_what_another_wrote(self) -> None:
        witness = Witness()
        self.program((witness,))()
        (graph,) = witness.graphs
        written: dict[object, bytes] = {}
        for told in witness.told:
            op = told.event.op
            assert op.full_name == graph.kernels[op.index].full_name
            # After it ran the memory that it writes over shows what it wrote.
            inputs = [] if told.name == "after" and op.mutates else list(zip(op.inputs, told.inputs, strict=True))
            for info, array in (*inputs, *zip(op.outputs, told.outputs if told.name == "after" else (), strict=False)):
                assert _fits(array, info)
                assert written.setdefault(info.key, array.tobytes()) == array.tobytes(), (op.full_name, info)

    def test_what_is_kept_is_there_at_the_end(self) -> None:
        witness = Witness()
        self.program((witness,))()
        assert [told.event.op.index for told in witness.ends] == list(range(len(witness.graphs[0].kernels)))
        after = {told.event.op.index: told for told in witness.told if told.name == "after"}
        latest = {info.key.value_id: info.key for told in after.values() for info in self._infos(told)}
        for told in witness.ends:
            then = after[told.event.op.index]
            for info, kept, seen in zip(
                self._infos(told), (*told.inputs, *told.outputs), (*then.inputs, *then.outputs), strict=True
            ):
                if latest[info.key.value_id] == info.key:
                    assert kept.tobytes() == seen.tobytes(), (told.event.op.full_name, info)

    def test_what_is_not_kept_may_be_left_out(self) -> None:
        witness = Witness((AFTER,))
        self.program((witness,))()
        assert [told.event.op.index for told in witness.ends] == list(range(len(witness.graphs[0].kernels)))

    @pytest.mark.parametrize("bits", [BEFORE | AFTER, AFTER, 0])
    def test_an_error_reaches_every_observer_and_the_caller(self, bits: int) -> None:
        witnesses = [Witness((bits,)), Witness((0,)), Witness((bits,), iterations=())]
        play = self.failing_program(witnesses)
        with pytest.raises(Exception) as caught:
            play()
        for witness in witnesses[:2]:
            assert witness.errors == [caught.value]
            *_, last_call = witness.calls[:-1] if self.resumes else witness.calls
            assert not self.resumes or witness.calls[-1] == ("begin", 0, -1)
            name, _, index = last_call
            assert name == "error" and index > 0
            told = list(range(index)) if witness is witnesses[0] and bits & AFTER else []
            assert [at for call, _, at in witness.calls if call == "after"] == told
            assert sum(name in ("error", "end") for name, *_ in witness.calls) == 1
            # It raised before it wrote: its inputs are shown also where no mask asked for them.
            last = witness.told[-1]
            assert all(_fits(*each) for each in zip(last.inputs, last.event.op.inputs, strict=True))
        assert not witnesses[2].calls

    @staticmethod
    def _infos(told: Told) -> list[TensorInfo]:
        return [*told.event.op.inputs, *told.event.op.outputs]


def _fits(array: Array, info: TensorInfo) -> bool:
    """An operand whose type no tensor has, a number or a text, has a shape that only its value decides."""
    return array.shape == info.shape or info.shape == (-1,)
