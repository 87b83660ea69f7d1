"""StepRecorder: what the operators of one PyNative step read and wrote, kept until the step is handed to the dump."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from msdump.graph.graph import Node
from msdump.tensors.arrays import Array


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """One operator that ran, with the memory that it read and wrote."""

    node: Node
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


class StepRecorder:
    """The launches of a step in order. Memory that is written twice is copied in between; all else is held as it is.

    launches    operators that ran; the last one may have failed
    is_running  an operator began and did not end
    """

    def __init__(self) -> None:
        self.launches: list[RecordedLaunch] = []
        self.is_running = False
        # By identity of the memory: moments at which it was about to be written, and what it held then.
        self._copies: dict[int, list[tuple[int, Array, Array]]] = {}

    @contextmanager
    def launching(self, node: Node, inputs: Sequence[Array], outputs: Sequence[Array]) -> Iterator[None]:
        """While this is open, the operator runs."""
        if self.is_running:
            self.launches.pop()  # it failed, and the script caught the error
        moment = _read_at(len(self.launches)) + 1
        for slot in node.definition.mutates:
            self._keep(inputs[slot], moment)
        self.launches.append(RecordedLaunch(node, tuple(inputs), tuple(outputs)))
        self.is_running = True
        yield
        self.is_running = False

    def keep(self, array: Array) -> None:
        """Copy memory that the script itself is about to write, between two operators."""
        self._keep(array, _read_at(len(self.launches)) - 1)

    def _keep(self, array: Array, moment: int) -> None:
        self._copies.setdefault(id(array), []).append((moment, array.copy(), array))

    def read(self, index: int) -> list[Array]:
        """Inputs of a launch as it read them."""
        return [self._as_of(array, _read_at(index)) for array in self.launches[index].inputs]

    def written(self, index: int) -> list[Array]:
        """Outputs of a launch as it left them."""
        return [self._as_of(array, _read_at(index) + 2) for array in self.launches[index].outputs]

    def at_start(self, array: Array) -> Array:
        """Memory as it was before the first operator."""
        return self._as_of(array, _read_at(0) - 2)

    def _as_of(self, array: Array, moment: int) -> Array:
        for written_at, copy, _ in self._copies.get(id(array), ()):
            if written_at > moment:
                return copy
        return array


def _read_at(index: int) -> int:
    """Moment at which launch `index` reads; it writes one later, its results are seen two later, and the script may
    write three later."""
    return 4 * index
