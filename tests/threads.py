"""Calls in several threads at once, and what they left on disk whatever their order was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import parse_data_file_name

# Of one run of a graph: (operator, side, slot, bytes) of each file.
Run = frozenset[tuple[str, str, int, bytes]]


def run_at_once(calls: Sequence[Callable[[], object]]) -> None:
    """Call each in a thread of its own, from the same moment on.   Raises: the first error of a thread."""
    gate = threading.Barrier(len(calls))
    errors: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        gate.wait()
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - handed to the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    with _frequent_turns():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


@contextmanager
def _frequent_turns() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def runs_by_graph(root: Path) -> list[tuple[Run, ...]]:
    """The npy files of each graph, run by run in their order. Numbers of graphs and iterations do not count."""
    graphs: dict[str, dict[int, set[tuple[str, str, int, bytes]]]] = {}
    for path in root.rglob("*.npy"):
        name = parse_data_file_name(path.name)
        assert name is not None, path
        if path.parent.name != "constants":
            run = graphs.setdefault(path.parts[-3], {}).setdefault(int(path.parts[-2]), set())
            run.add((name.op_name, name.io, name.slot, read_npy(path).tobytes()))
    in_order = [tuple(frozenset(runs[number]) for number in sorted(runs)) for runs in graphs.values()]
    return sorted(in_order, key=lambda runs: sorted(runs[0]))
