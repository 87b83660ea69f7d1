"""Steps: which iteration a run of a compiled graph belongs to.

A step of a model may run many graphs: the parts between graph breaks, their backward graphs, a second model. A new
iteration begins when a graph runs forward
- that has already run forward in this iteration, or
- after a backward graph has run, or
- that was captured in the other gradient mode than those of this iteration (training, then evaluation).
A backward graph belongs to the iteration of the forward run whose tensors it reads.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from typing import Protocol


class Leader(Protocol):
    """The iterations of a program: number of the one that runs, and whether what runs is part of none."""

    current: int | None
    is_paused: bool


class Steps:
    """Counters of one session, shared by threads: each call of these gives a number of its own.

    next_iteration   of the iteration that begins
    take_graph_id    of a graph; None: those of the program `beside`, else from 0 on
    beside           those of a program in another thread, which goes on meanwhile: its steps end none of these
    """

    def __init__(
        self,
        next_iteration: Callable[[], int],
        beside: Steps | None = None,
        take_graph_id: Callable[[], int] | None = None,
    ) -> None:
        self._next = next_iteration
        self._ran: set[Hashable] = set()
        self.is_over = True
        self._has_gradients = False
        self.iteration = 0
        self._leader: tuple[int, Leader] | None = None
        self.take_graph_id: Callable[[], int] = take_graph_id or (
            itertools.count().__next__ if beside is None else beside.take_graph_id
        )

    def forward(self, graph: Hashable, has_gradients: bool) -> int:
        """Iteration of a forward run that starts now."""
        if self.is_over or graph in self._ran or has_gradients != self._has_gradients:
            self._ran.clear()
            self.is_over = False
            self.iteration = self._next()
        self._has_gradients = has_gradients
        self._ran.add(graph)
        return self.iteration

    def lead(self, leader: Leader | None) -> None:
        """While a program is watched in this thread, it says in which iteration compiled graphs run that it calls."""
        self._leader = None if leader is None else (threading.get_ident(), leader)

    @property
    def leader_here(self) -> Leader | None:
        """The one that leads this thread."""
        return self._leader[1] if self._leader is not None and self._leader[0] == threading.get_ident() else None

    @property
    def has_gradients(self) -> bool:
        """Whether the last forward run was captured with gradients."""
        return self._has_gradients

    def has_run(self, graph: Hashable) -> bool:
        """Whether it has run forward in this iteration."""
        return graph in self._ran

    def go_on(self, graph: Hashable, has_gradients: bool) -> None:
        """A forward run that is known to belong to this iteration, be it after a backward."""
        self.is_over = False
        self._has_gradients = has_gradients
        self._ran.add(graph)

    def backward(self) -> None:
        """A backward graph runs: what runs forward after it is another step."""
        self.is_over = True


class ForwardRuns:
    """Iterations of forward runs whose backward is still to come, found by the address of a tensor that they saved.

    An address is taken by one tensor at a time, and what is saved lives until its backward has run.
    """

    _LIMIT = 1024

    def __init__(self) -> None:
        self._iteration_by_address: dict[int, int] = {}

    def add(self, address: int, iteration: int) -> None:
        # Newest last, so that the oldest goes first when forward runs are never followed by a backward.
        self._iteration_by_address.pop(address, None)
        self._iteration_by_address[address] = iteration
        if len(self._iteration_by_address) > self._LIMIT:
            del self._iteration_by_address[next(iter(self._iteration_by_address))]

    def find(self, address: int) -> int | None:
        return self._iteration_by_address.get(address)
