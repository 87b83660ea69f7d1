"""Memory plan: offset of each result in an arena, with or without reuse."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from msdump.graph.graph import CONSTANT, INPUT, PARAMETER, Graph, Value
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# Cache line for small tensors; page for big ones, so that they can be handed to O_DIRECT writes as they lie.
_LINE, PAGE, _BIG = 64, 4096, 64 * 1024


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """offset: value id -> first byte in the arena, for values with memory of their own;
    source: value id -> the value whose memory it shows (views, aliases)."""

    size_bytes: int
    offset: dict[int, int]
    source: dict[int, Value]


def plan_memory(graph: Graph, is_reused: bool, kept: Iterable[Value] = ()) -> MemoryPlan:
    """Place every result of the graph whose size is known before it runs.

    With `is_reused` two results share bytes when one is dead before the other is made; a result that is a graph
    output lives to the end. Without it every result keeps its own bytes: nothing is overwritten but by operators
    that mutate.

    kept    results that live to the end as well
    """
    source = _sources(graph)
    last_use = _last_uses(graph, source, kept)
    offset: dict[int, int] = {}
    free = _FreeList()
    expiring: dict[int, list[tuple[int, int]]] = {}
    for step, node in enumerate(graph.nodes):
        for value in node.outputs:
            if value.id in source or -1 in value.type.shape:
                continue
            size = _rounded(value.type.size_bytes)
            offset[value.id] = at = free.take(size, _alignment(size))
            if is_reused:
                expiring.setdefault(last_use.get(value.id, step), []).append((at, size))
        for at, size in expiring.pop(step, ()):
            free.give(at, size)
    return MemoryPlan(free.end, offset, source)


class Memory:
    """The arrays of one executor: one arena for results, one buffer per data input.

    Owned by the executor, touched only by the thread that runs it.
    """

    def __init__(self, graph: Graph, is_reused: bool, kept: Iterable[Value] = ()) -> None:
        plan = plan_memory(graph, is_reused, kept)
        self.size_bytes = plan.size_bytes
        raw = np.empty(plan.size_bytes + PAGE, np.uint8)
        start = -raw.ctypes.data % PAGE
        self._arena = raw[start : start + plan.size_bytes]
        self._plan = plan
        self._array: dict[int, Array] = {}
        for value in graph.inputs:
            self._array[value.id] = np.empty(value.type.shape, dtypes.dtype(value.type.dtype).numpy)
        for value in graph.parameters:
            if value.parameter is not None:
                self._array[value.id] = value.parameter.array
        for value in graph.constants:
            if value.constant is not None:
                self._array[value.id] = value.constant

    def array(self, value: Value) -> Array:
        """The memory of a value, shaped as its type; the same array object at each call."""
        known = self._array.get(value.id)
        if known is None:
            shown = self._plan.source.get(value.id)
            if shown is not None:
                known = self.array(shown).reshape(value.type.shape)
            else:
                first = self._plan.offset[value.id]
                flat = self._arena[first : first + value.type.size_bytes]
                known = flat.view(dtypes.dtype(value.type.dtype).numpy).reshape(value.type.shape)
            self._array[value.id] = known
        return known

    def is_shown(self, value: Value) -> bool:
        """True when the value shows another value's memory, so that nothing need be computed for a view."""
        return value.id in self._plan.source


def _sources(graph: Graph) -> dict[int, Value]:
    """Values without memory of their own. A view of memory that an operator mutates would change under its reader,
    so such a view is a copy."""
    source: dict[int, Value] = {}

    def root(value: Value) -> Value:
        while value.id in source:
            value = source[value.id]
        return value

    mutated: set[int] = set()
    for node in graph.nodes:
        definition = node.definition
        for value in node.outputs:
            if value.index in definition.aliases:
                source[value.id] = node.inputs[definition.aliases[value.index]]
        mutated.update(root(node.inputs[slot]).id for slot in definition.mutates)
    for node in graph.nodes:
        definition = node.definition
        for value in node.outputs:
            if value.index in definition.views:
                shown = node.inputs[definition.views[value.index]]
                if root(shown).id not in mutated:
                    source[value.id] = shown
    return source


def _last_uses(graph: Graph, source: dict[int, Value], kept: Iterable[Value]) -> dict[int, int]:
    """Value id -> step of its last use, uses through views included; graph outputs and kept ones are used after it."""
    last: dict[int, int] = {}

    def use(value: Value, step: int) -> None:
        while True:
            last[value.id] = max(step, last.get(value.id, -1))
            if value.id not in source:
                return
            value = source[value.id]

    for step, node in enumerate(graph.nodes):
        for value in (*node.inputs, *node.outputs):
            use(value, step)
    for value in (*graph.outputs, *kept):
        if value.kind not in (INPUT, PARAMETER, CONSTANT):
            use(value, len(graph.nodes))
    return last


class _FreeList:
    """Best fit over the holes of a growing arena; neighbours merge."""

    def __init__(self) -> None:
        self.end = 0
        self._holes: list[tuple[int, int]] = []

    def take(self, size: int, alignment: int) -> int:
        best: tuple[int, int, int] | None = None
        for at, length in self._holes:
            lost = -at % alignment
            if length - lost >= size and (best is None or length < best[1]):
                best = (at, length, lost)
        if best is None:
            first = self.end + -self.end % alignment
            if first > self.end:
                self.give(self.end, first - self.end, is_new=True)
            self.end = first + size
            return first
        at, length, lost = best
        self._holes.remove((at, length))
        if lost:
            insort(self._holes, (at, lost))
        if length - lost > size:
            insort(self._holes, (at + lost + size, length - lost - size))
        return at + lost

    def give(self, at: int, size: int, is_new: bool = False) -> None:
        if size == 0:
            return
        if is_new:
            self.end = at + size
        merged: list[tuple[int, int]] = []
        for hole_at, hole_size in self._holes:
            if hole_at + hole_size == at:
                at, size = hole_at, hole_size + size
            elif at + size == hole_at:
                size += hole_size
            else:
                merged.append((hole_at, hole_size))
        insort(merged, (at, size))
        self._holes = merged


def _rounded(size: int) -> int:
    return size + -size % _LINE


def _alignment(size: int) -> int:
    return PAGE if size >= _BIG else _LINE
