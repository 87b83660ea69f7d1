"""Turns: what waits is written once, in time, and by nobody when its memory is no longer to be trusted."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from msdump.arrays import Array
from msdump.dump.delivery import Delivery
from msdump.dump.tally import Tally
from msdump.dump.turns import Turns
from msdump.errors import WriteError
from msdump.formats.writer import WriteCounts
from msdump.records import TensorKey, TensorRecord


class Recorder:
    """Writer that keeps the names of what it gets, one list for each call."""

    writes_once = True
    takes_empty = True
    counts = WriteCounts()

    def __init__(self, failing: str = "") -> None:
        self.calls: list[list[str]] = []
        self.ended: list[tuple[int, int]] = []
        self._failing = failing
        self._lock = threading.Lock()

    def write(self, records: Sequence[TensorRecord]) -> None:
        names = [record.op_name for record in records]
        if self._failing in names:
            raise WriteError(f"{self._failing}: no.")
        with self._lock:
            self.calls.append(names)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        self.ended.append((graph_id, iteration))

    def close(self) -> None: ...

    @property
    def names(self) -> list[str]:
        return [name for call in self.calls for name in call]


def record(name: str, data: Array, number: int = 0, is_repeat: bool = False) -> TensorRecord:
    key = TensorKey(number, 0)
    return TensorRecord("Op", name, 0, 0, 1, "output", 0, "float32", data, key=key, is_repeat=is_repeat)


def made(writer: Recorder, turn_bytes: int) -> tuple[Delivery, Turns]:
    delivery = Delivery(Tally(), 1 << 30)
    return delivery, Turns(delivery, turn_bytes)


def one_and_its_repeat(writer: Recorder) -> tuple[Delivery, Turns]:
    """A tensor and a record that repeats it wait."""
    delivery, turns = made(writer, 1 << 20)
    turns.make_room(delivery.begin([writer], 0, 0), 4)
    turns.add([record("a", np.zeros(1, np.float32))], [])
    turns.add_repeat(record("again", np.zeros(1, np.float32), is_repeat=True))
    return delivery, turns


def test_a_turn_ends_when_it_is_full_and_repeats_come_last() -> None:
    writer = Recorder()
    delivery, turns = made(writer, 100)
    round_ = delivery.begin([writer], 0, 0)
    for name, size in (("a", 60), ("b", 40), ("c", 4)):
        turns.make_room(round_, size)
        if name == "c":
            # Nobody but the step ends a turn: all is written when it goes on.
            assert sorted(writer.names[:2]) == ["a", "b"]
            assert writer.names[2:] == ["a again"]
        turns.add([record(name, np.zeros(size // 4, np.float32))], [])
        if name == "b":
            turns.add_repeat(record("a again", np.zeros(1, np.float32), is_repeat=True))
    assert "c" not in writer.names
    turns.end()
    turns.end()
    assert writer.names.count("c") == 1
    delivery.end(round_, is_complete=True)
    delivery.close([writer])
    assert writer.ended == [(0, 0)]


def test_a_tensor_larger_than_a_turn_goes_alone() -> None:
    writer = Recorder()
    delivery, turns = made(writer, 16)
    round_ = delivery.begin([writer], 0, 0)
    for name in ("a", "b"):
        turns.make_room(round_, 4000)
        turns.add([record(name, np.zeros(1000, np.float32))], [])
    assert writer.names == ["a"]
    turns.end()
    assert writer.names == ["a", "b"]
    delivery.close([writer])


def test_another_round_ends_the_turn() -> None:
    first, second = Recorder(), Recorder()
    delivery, turns = made(first, 1 << 20)
    rounds = [delivery.begin([writer], at, 0) for at, writer in enumerate((first, second))]
    for at, round_ in enumerate(rounds):
        turns.make_room(round_, 4)
        turns.add([record(str(at), np.zeros(1, np.float32))], [])
    assert (first.names, second.names) == (["0"], [])
    turns.end()
    assert (first.names, second.names) == (["0"], ["1"])
    delivery.close([])


def test_tensors_that_fill_one_memory_come_together() -> None:
    writer = Recorder()
    delivery, turns = made(writer, 1 << 30)
    round_ = delivery.begin([writer], 0, 0)
    memory = np.zeros((1 << 10, 1 << 10), np.float32)
    others = [np.zeros(1 << 20, np.float32) for _ in range(3)]
    for number, (name, data) in enumerate([("m", memory), *zip("xyz", others, strict=True), ("m.T", memory.T)]):
        turns.make_room(round_, data.nbytes)
        turns.add([record(name, data, number)], [])
    turns.end()
    assert ["m", "m.T"] in writer.calls
    assert len(writer.calls) == 4
    delivery.close([writer])


def test_what_is_lost_is_counted_and_never_read() -> None:
    writer = Recorder()
    delivery, turns = one_and_its_repeat(writer)
    turns.lose()
    turns.end()
    delivery.close([writer])
    assert writer.calls == []
    assert delivery._tally.lost == 2


@pytest.mark.parametrize("failing", ["a", "again"])
def test_a_failure_stops_the_dump_and_counts(failing: str) -> None:
    writer = Recorder(failing)
    delivery, turns = one_and_its_repeat(writer)
    turns.end()
    assert delivery.has_stopped()
    delivery.close([writer])
    assert delivery._tally.lost == (2 if failing == "a" else 1)
    assert delivery._tally.error == f"{failing}: no."
