"""FlowExecutor: runs a program with control flow, piece by piece; each piece runs as any other graph does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from msdump.graph.graph import Parameter, Value
from msdump.graph.run import Observer
from msdump.mindspore.program.cut import Decision, Part, Piece
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.regions import IF, STOP, WHILE
from msdump.tensors.arrays import Array


@dataclass(eq=False)
class _Frame:
    """One run of the program or of a region.

    values   value id -> what it holds
    around   the run that this one is part of
    forward  the run whose backward this one is: it holds what that one computed
    runs     id of a node that decides, whose backward is to come -> number of the region and frame of each of its runs
    """

    around: _Frame | None = None
    forward: _Frame | None = None
    values: dict[int, Array] = field(default_factory=dict)
    runs: dict[int, list[tuple[int, _Frame]]] = field(default_factory=dict)

    def read(self, value: Value) -> Array:
        """What a value holds; of a parameter its own memory."""
        if value.constant is not None:
            return value.constant
        if value.parameter is not None:
            return value.parameter.array
        around: _Frame | None = self
        while around is not None:
            for frame in around.with_forwards():
                if value.id in frame.values:
                    return frame.values[value.id]
            around = around.around
        raise AssertionError(f"value {value.id} is read before it is made")

    def kept(self, value: Value) -> Array:
        """As `read`, of a parameter a copy: it may be written before it is read."""
        return self.read(value).copy() if value.parameter is not None else self.read(value)

    def with_forwards(self) -> Iterator[_Frame]:
        """This run, the run whose backward it is, the one whose backward that is, and so on."""
        frame: _Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.forward

    def runs_of(self, node_id: int) -> list[tuple[int, _Frame]]:
        """The runs that a backward runs backward."""
        return next(frame.runs[node_id] for frame in self.with_forwards() if node_id in frame.runs)


class FlowExecutor:
    """A program with control flow, ready to run. Not thread safe: one run at a time.

    observers   see each run of each piece as a run of a graph, all in the iteration of the program
    draw        what random operators read: it counts on with each run of a loop's body
    """

    def __init__(self, program: Part, observers: Sequence[Observer] = (), draw: Parameter | None = None) -> None:
        self._program = program
        self._draw = draw
        self._executors = {piece: Executor(piece.graph, observers) for piece in program.pieces()}

    def run(self, arrays: Sequence[Array], iteration: int = 0, is_observed: bool = True) -> list[Array]:
        """Run once, as `Executor.run`.   Raises: as that."""
        frame = _Frame()
        self._run_part(self._program, frame, arrays, iteration, is_observed)
        return [np.array(frame.read(value)) for value in self._program.region.outputs]

    def _run_part(
        self, part: Part, frame: _Frame, inputs: Sequence[Array], iteration: int, is_observed: bool
    ) -> list[Array]:
        """One run of a region; what it gives."""
        frame.values.update((value.id, array) for value, array in zip(part.region.inputs, inputs, strict=True))
        for step in part.steps:
            if isinstance(step, Piece):
                arrays = [frame.read(value) for value in step.inputs]
                results = self._executors[step].run(arrays, iteration, is_observed)
                frame.values.update((value.id, array) for value, array in zip(step.outputs, results, strict=True))
            else:
                results = self._decide(step, frame, iteration, is_observed)
                frame.values.update((value.id, array) for value, array in zip(step.node.outputs, results, strict=True))
        return [frame.kept(value) for value in part.region.outputs]

    def _decide(self, step: Decision, frame: _Frame, iteration: int, is_observed: bool) -> list[Array]:
        node = step.node
        if node.op_type == WHILE:
            return self._loop(step, frame, iteration, is_observed)
        if node.op_type == IF:
            number = 0 if _is_true(frame.read(node.inputs[0])) else 1
            inner = _Frame(frame)
            results = self._run_part(step.parts[number], inner, (), iteration, is_observed)
            if step.has_backward:
                frame.runs[node.id] = [(number, inner)]
            return results
        assert node.forward is not None
        carried = [frame.kept(value) for value in node.inputs[: len(step.parts[-1].region.inputs)]]
        runs: list[tuple[int, _Frame]] = []
        for number, forward in reversed(frame.runs_of(node.forward.id)):
            inner = _Frame(frame, forward)
            carried = self._run_part(step.parts[number], inner, carried, iteration, is_observed)
            runs.append((number, inner))
        if step.has_backward:
            frame.runs[node.id] = runs
        return carried

    def _loop(self, step: Decision, frame: _Frame, iteration: int, is_observed: bool) -> list[Array]:
        node = step.node
        condition, body = step.parts
        stop = node.primitive.attrs[STOP]
        carried = [frame.kept(value) for value in node.inputs[: len(node.outputs)]]
        runs: list[tuple[int, _Frame]] = []
        while stop < 0 or not _is_true(carried[stop]):
            if not _is_true(self._run_part(condition, _Frame(frame), carried, iteration, is_observed)[0]):
                break
            inner = _Frame(frame)
            carried = self._run_part(body, inner, carried, iteration, is_observed)
            if step.has_backward:
                runs.append((0, inner))
            if self._draw is not None:
                self._draw.array += 1
        if step.has_backward:
            frame.runs[node.id] = runs
        return carried


def _is_true(array: Array) -> bool:
    return bool(array.reshape(-1)[0])
