"""Turns: statistics that are taken while the step waits."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.dump.batches import batches
from msdump.dump.delivery import Delivery, Round
from msdump.records import TensorRecord


class Turns:
    """Records that wait until there is a turn's worth of them; then the step waits until all of them are written.

    A library that computes with all cores and threads that measure beside it slow each other down by more than the
    measuring takes.

    turn_bytes  of tensors that may wait: few turns, and memory that is soon used again
    """

    def __init__(self, delivery: Delivery, turn_bytes: int) -> None:
        self._delivery = delivery
        self._turn_bytes = turn_bytes
        self._round: Round | None = None
        self._records: list[TensorRecord] = []
        self._repeats: list[TensorRecord] = []
        self._held: list[object] = []
        self._size = 0

    def make_room(self, round_: Round, size_bytes: int) -> None:
        """End the turn when that many bytes more are too many for it, or when it is another round's."""
        if self._round is not round_ or self._size + size_bytes > self._turn_bytes:
            self.end()
        self._round = round_
        self._size += size_bytes

    def add(self, records: Sequence[TensorRecord], held: Sequence[object]) -> None:
        """Records of the round that room was made for, and the owners of their arrays."""
        self._records += records
        self._held += held

    def add_repeat(self, record: TensorRecord) -> None:
        """A record without data, of a tensor that an earlier one has."""
        self._repeats.append(record)

    def end(self) -> None:
        """Write what waits; the step waits for it."""
        round_, records, repeats, held = self._round, self._records, self._repeats, self._held
        self._forget()
        if round_ is None:
            return
        delivery = self._delivery
        for batch in batches(records):
            delivery.pool.submit(delivery.job(round_, batch, list(held)))
        held.clear()
        delivery.pool.drain()
        if repeats:
            delivery.pool.submit(delivery.job(round_, repeats, []))
            delivery.pool.drain()

    def lose(self) -> None:
        """Write nothing of what waits: its memory is somebody else's by now."""
        self._delivery.lose(len(self._records) + len(self._repeats))
        self._forget()

    def _forget(self) -> None:
        self._round = None
        self._records, self._repeats, self._held = [], [], []
        self._size = 0
