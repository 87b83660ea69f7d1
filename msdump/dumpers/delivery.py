"""Delivery: from records to writers in other threads, and the end of a dump after a write error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from msdump.dumpers.capture import GraphMemory
from msdump.dumpers.staging import Staged, Staging, staged_size
from msdump.dumpers.tally import Tally
from msdump.dumpers.writer_pool import Job, WriterPool
from msdump.errors import DumpError, unwritten
from msdump.formats.writer import Writer
from msdump.tensors.arrays import Array
from msdump.tensors.records import TINY_BYTES, AlreadyWritten, TensorKey, TensorRecord

# Below this the memory order of a copy does not matter.
_ALIGNED_BYTES = 1 << 20
# Memory of a waiting record without its tensor, measured with CPython 3.11; so many may wait with any budget.
_RECORD_BYTES, _LEAST_RECORDS = 2048, 1024
_NO_COPIES: dict[TensorKey, Staged] = {}

DataOffsets = Callable[[Sequence[TensorRecord]], Sequence[int]]


class Delivery:
    """Copies what must be copied, queues it, and counts what is written and lost.

    budget_bytes  that copies of waiting tensors may take; a full budget makes the step wait, nothing is ever dropped.
                  What knows of a tensor takes memory as well, however small that is: no more records wait than take a
                  quarter of the budget
    data_offsets  where in its file the data of each record of an operator begins; the same for each run of it
    A failure to write ends the dump, not the run. Several threads may deliver, each its own rounds: the budget may then
    be passed by one operator of each.
    """

    def __init__(
        self,
        tally: Tally,
        budget_bytes: int,
        threads: int = 2,
        data_offsets: DataOffsets | None = None,
    ) -> None:
        self.staging = Staging(budget_bytes)
        self.pool = WriterPool(threads)
        self._most_records = max(_LEAST_RECORDS, budget_bytes // 4 // _RECORD_BYTES)
        self.tally = tally
        self._data_offsets = data_offsets
        self._offsets: dict[Hashable, Sequence[int]] = {}
        # Of the last run of each graph of a model.
        self._last_iteration: dict[tuple[Hashable, int], int] = {}
        # Counts of the pool that the tally has already: lost, written.
        self._counted = (0, 0)
        self._counting = threading.Lock()

    def begin(self, writers: Sequence[Writer], graph_id: int, iteration: int, model: Hashable = None) -> Round:
        """A dumped iteration of a graph begins.   `model`: as `Tally.count_dumped`.

        Waits until an earlier run of the graph in the same iteration is written, as that of a loop's body: writers take
        tensors of one iteration with the same key for one tensor.
        """
        if self._last_iteration.get((model, graph_id)) == iteration:
            self.pool.drain()
        self._last_iteration[model, graph_id] = iteration

        def complete(iteration: int, is_empty: bool) -> None:
            self.tally.count_dumped(iteration, model, is_empty)

        return Round(writers, graph_id, iteration, complete, self._fail)

    def end(self, round_: Round | None, is_complete: bool = False) -> None:
        """The round is over. `is_complete`: the step has ended and none of its records was lost."""
        if round_ is not None:
            round_.is_complete = is_complete
            self.pool.submit(Job(0, 0, round_.leave))

    def reserve(self, size_bytes: int, own_bytes: int = 0) -> None:
        """Wait for room, as `Staging.reserve`."""
        if not self.staging.has_room(size_bytes, own_bytes):
            with self.pool.hurry():
                self.staging.reserve(size_bytes, own_bytes)

    def stage(self, round_: Round, key: TensorKey, array: Array) -> Staged:
        """A copy of a tensor that is about to be overwritten; `reserve` room for it first."""
        return self.staging.stage((round_, key), array)

    def staged(
        self,
        round_: Round,
        memory: GraphMemory,
        records: Sequence[TensorRecord],
        old_inputs: Mapping[TensorKey, Staged] = _NO_COPIES,
        is_lent: bool = False,
    ) -> tuple[list[TensorRecord], list[object]]:
        """The records with arrays that are not overwritten, and the owners of these arrays.

        old_inputs  copies that the caller holds already
        is_lent     readers of borrowed memory are done before the run ends, so that it needs no copy
        """
        movable = [record for record in records if not memory.is_constant(record.key)]
        own = sum(staged.size_bytes for staged in old_inputs.values())
        self.reserve(sum(staged_size(record.data) for record in movable if record.key not in old_inputs), own)
        safe: list[TensorRecord] = []
        held: list[object] = []
        for record, offset in zip(records, self.offsets_of(records), strict=True):
            if memory.is_constant(record.key):
                safe.append(replace(record, is_constant=True))
                continue
            name = (round_, record.key)
            staged = old_inputs.get(record.key) if record.key is not None else None
            if staged is None and (memory.is_held(record.key) or (is_lent and memory.is_borrowed(record.key))):
                staged = self.staging.hold(name, record.data)
            staged = staged or self.staging.stage(name, record.data, offset)
            held.append(staged)
            is_same = staged.array is record.data
            safe.append(record if is_same else replace(record, data=staged.array.reshape(record.shape)))
        return safe, held

    def job(
        self,
        round_: Round,
        records: list[TensorRecord],
        held: list[object],
        writers: Sequence[Writer] | None = None,
    ) -> Job:
        """The job that hands the records of one operator to the round's writers, or to these. Waits for room."""
        self.pool.wait_for_room(self._most_records)

        def write() -> None:
            for writer in round_.writers if writers is None else writers:
                writer.write(records)
            round_.leave()

        round_.enter()
        round_.is_empty &= not records
        size = sum(record.size_bytes for record in records)
        return Job(size, len(records), write, held)

    def has_stopped(self) -> bool:
        """Whether the dump is over; an error of the pool ends it."""
        error = self.pool.error
        if error is not None:
            self.tally.fail(error)
        return bool(self.tally.error)

    def count(self) -> None:
        """Bring the tally up to date."""
        state = self.pool.state()
        with self._counting:
            # Others that write on their own add to the same tally.
            self.tally.count_lost(state.lost_records - self._counted[0])
            self.tally.count_written(state.written_records - self._counted[1])
            self._counted = (state.lost_records, state.written_records)

    def lose(self, records: int) -> None:
        """Records that were selected and never became jobs."""
        self.tally.count_lost(records)

    def close(self, writers: Sequence[Writer]) -> None:
        """Write what waits, then close the writers. Errors are in `tally.error` afterwards."""
        try:
            self.pool.close()
        finally:
            self.has_stopped()
            for writer in writers:
                with self.tally.stop_on_failure():
                    writer.close()
            self.count()

    # -- parts ------------------------------------------------------------------------------------

    def _fail(self, error: BaseException) -> None:
        """A writer could not finish an iteration; the job that ended it has written its own records."""
        # What a writer had taken, and has lost since.
        self.tally.take_back(unwritten(error))
        self.pool.fail(error)

    def offsets_of(self, records: Sequence[TensorRecord]) -> Sequence[int]:
        """Where the data of each record begin in its file, for copies aligned as there; 0 where it does not matter."""
        if self._data_offsets is None or max(record.data.nbytes for record in records) < _ALIGNED_BYTES:
            return [0] * len(records)
        first = records[0]
        name = (first.graph_id, first.op_name, len(records))
        found = self._offsets.get(name)
        if found is None:
            found = self._offsets[name] = self._data_offsets(records)
        return found


class Round:
    """One dumped iteration of one graph: who has which tensor, and how many jobs still need the writers' memory of it.

    The dumper itself counts as one until it knows that no more records come.

    written       for the step's thread only: tensors that were handed over, with the job that writes each; None where
                  nothing has to wait for it
    is_complete   whether the step ended, which the dumper says before its own job leaves
    is_empty      whether no job has a record
    on_complete   called with the iteration, and whether it is empty, when all of a complete step is on the disk; a job
                  that is lost never leaves
    on_failure    called with the error of each writer that cannot finish the iteration
    """

    def __init__(
        self,
        writers: Sequence[Writer],
        graph_id: int,
        iteration: int,
        on_complete: Callable[[int, bool], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.written: AlreadyWritten[Job] = AlreadyWritten()
        self.is_complete = False
        self.is_empty = True
        self.writers = writers
        self._on_complete = on_complete
        self._on_failure = on_failure
        self._name = (graph_id, iteration)
        self._jobs = 1
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self._jobs += 1

    def leave(self) -> None:
        """One job less; the last one ends the iteration."""
        with self._lock:
            self._jobs -= 1
            is_last = not self._jobs
        if is_last and self._finish() and self.is_complete:
            self._on_complete(self._name[1], self.is_empty)

    def _finish(self) -> bool:
        """End the iteration for every writer; False when one of them could not."""
        is_finished = True
        for writer in self.writers:
            try:
                writer.end_iteration(*self._name)
            except (DumpError, OSError, MemoryError) as error:
                self._on_failure(error)
                is_finished = False
        return is_finished


_BATCH_BYTES = 4 * 2**20


def batches(records: Sequence[TensorRecord]) -> Iterator[list[TensorRecord]]:
    """Groups of records; those of the same memory stay together, so that it is read once.

    All tiny ones are the first group: one thread has them done before two have.
    """
    tiny: list[TensorRecord] = []
    by_memory: dict[Hashable, list[TensorRecord]] = {}
    for number, record in enumerate(records):
        if record.size_bytes <= TINY_BYTES:
            tiny.append(record)
        else:
            by_memory.setdefault(record.filled_memory or number, []).append(record)
    if tiny:
        yield tiny
    batch: list[TensorRecord] = []
    size = 0
    for group in by_memory.values():
        batch += group
        size += sum(record.size_bytes for record in group)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Postponed:
    """Jobs that wait for the end of the run, whose thread then waits until they are written.

    A library that computes with all cores loses more to a thread that writes beside it than the writing takes. For jobs
    that keep no tensor alive: nothing bounds what waits here. Any thread may call it.
    """

    def __init__(self, pool: WriterPool) -> None:
        self._pool = pool
        self._jobs: list[Job] | None = []
        self._lock = threading.Lock()

    def add(self, job: Job) -> None:
        """Keep a job; after `end` jobs are queued immediately."""
        with self._lock:
            if self._jobs is not None:
                self._jobs.append(job)
                return
        self._pool.submit(job)

    def end(self) -> bool:
        """Queue what waits; False when there was nothing."""
        with self._lock:
            jobs, self._jobs = self._jobs or [], None
        for job in jobs:
            self._pool.submit(job)
        return bool(jobs)


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
        with delivery.pool.hurry():
            for batch in batches(records):
                delivery.pool.submit(delivery.job(round_, batch, list(held)))
            held.clear()
            delivery.pool.drain()
            if repeats:
                delivery.pool.submit(delivery.job(round_, repeats, []))
                delivery.pool.drain()

    def lose(self) -> None:
        """Drop what waits: its memory belongs to another owner by now."""
        self._delivery.lose(len(self._records) + len(self._repeats))
        self._forget()

    def _forget(self) -> None:
        self._round = None
        self._records, self._repeats, self._held = [], [], []
        self._size = 0
