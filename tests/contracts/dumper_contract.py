"""DumperContract: what holds for every dumper, whatever it selects and whenever it writes."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest

from msdump.dumpers.tally import Tally
from msdump.graph.run import Observer
from msdump.tensors.arrays import Array
from tests.contracts.run_contract import Witness
from tests.contracts.toy_program import CALLS, ToyError, ToyProgram, registered
from tests.dumpers.memory_writer import MemoryWriter

# Short name of an operator, io, slot; of a parameter its name.
Place = tuple[str, str, int]
_ORDER = {call.name: number for number, call in enumerate(CALLS)}
_SCOPE = re.compile(r"[/_]Toy(Assign)?[-_]op\d+")

QUIET, OVERFLOWING, FAILING, INTERRUPTED = ([-1.0, v, v, v] for v in (0.5, 99.0, 0.5, 0.5))
FAILING[0], INTERRUPTED[0] = 1.0, float("nan")
INPUTS: Sequence[Place] = [(call.name, "input", slot) for call in CALLS for slot in range(len(call.inputs))]
OUTPUTS: Sequence[Place] = [(call.name, "output", 0) for call in CALLS]


class DumperContract(ABC):
    """A dumper's tests inherit from it and say how it is opened, and what it writes of a run.

    step           the input with which the program gives the dumper something to write
    places         tensors that a dumped run writes
    is_gated       whether the numbers of iterations decide what is dumped
    has_own_stamps  whether each record has a time stamp of its own, or all of an operator have one
    gate_ticks     how often a run that is not dumped is timed
    """

    step = QUIET
    places: Sequence[Place] = [*INPUTS, *OUTPUTS]
    is_gated = True
    has_own_stamps = True
    gate_ticks = 0

    @pytest.fixture(autouse=True)
    def _primitives(self) -> Iterator[None]:
        with registered():
            yield

    @abstractmethod
    def open_dumper(self, writer: MemoryWriter, tally: Tally, iterations: str) -> Observer:
        """A dumper of everything in these iterations ("0-3|7")."""

    def settle(self, dumper: Observer) -> None:  # noqa: B027 - most dumpers write at once
        """Wait until what was dumped is written."""

    def close(self, dumper: Observer) -> None:
        dumper.close()

    # -- helpers ----------------------------------------------------------------------------------

    def _open(
        self, iterations: str = "all", fails_at: int | None = None
    ) -> tuple[Observer, MemoryWriter, Tally, ToyProgram]:
        writer, tally = MemoryWriter(fails_at), Tally()
        dumper = self.open_dumper(writer, tally, iterations)
        return dumper, writer, tally, ToyProgram([dumper])

    def _play(self, program: ToyProgram, dumper: Observer, count: int = 1) -> list[bytes]:
        """Run with the input that is dumped; an error of the program itself is expected."""
        results = []
        for _ in range(count):
            try:
                results.append(program.run(self.step))
            except ToyError:
                results.append(b"error")
            self.settle(dumper)
        return results

    def _dumped(self, writer: MemoryWriter) -> dict[int, list[Place]]:
        """By iteration, in the order of time stamps."""
        found: dict[int, list[Place]] = {}
        for record in sorted(writer.records, key=lambda record: record.timestamp_us):
            name = _short(record.op_name)
            found.setdefault(record.iteration, []).append((name, record.io, record.slot))
        return found

    # -- the contract -----------------------------------------------------------------------------

    def test_records_are_complete_true_and_in_order(self) -> None:
        writer, tally, witness = MemoryWriter(), Tally(), Witness()
        dumper = self.open_dumper(writer, tally, "all")
        program = ToyProgram([witness, dumper])
        self._play(program, dumper, 3)
        self.close(dumper)
        dumped = self._dumped(writer)
        assert sorted(dumped) == [0, 1, 2]
        for places in dumped.values():
            assert Counter(places) == Counter(self.places)
            names = [name.partition("_To_")[0] for name, _, _ in places]
            order = [_ORDER[name] for name in names if name in _ORDER]
            assert order == sorted(order)
        owners = {(record.op_name, record.iteration, record.timestamp_us) for record in writer.records}
        stamps = {record.timestamp_us for record in writer.records}
        assert len(stamps) == (len(writer.records) if self.has_own_stamps else len(owners))
        truth = _truth(witness)
        for record in writer.records:
            expected = truth.get((record.iteration, _short(record.op_name), record.io, record.slot))
            assert expected is None or record.data.tobytes() == expected.tobytes(), record.op_name
        assert (tally.tensors_written, tally.lost, tally.error) == (3 * len(self.places), 0, "")
        assert (tally.iterations_run, tally.iterations_dumped) == (3, 3)

    def test_a_dump_does_not_change_the_results(self) -> None:
        dumper, _, _, program = self._open()
        assert self._play(program, dumper, 3) == self._play(ToyProgram([]), dumper, 3)
        self.close(dumper)

    def test_iterations_that_are_not_dumped_cost_no_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ticks = itertools.count()
        monkeypatch.setattr("msdump.dumpers.tally.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
        dumper, writer, tally, program = self._open("1|3")
        compiling = tally.seconds
        seconds = []
        for _ in range(5):
            self._play(program, dumper)
            seconds.append(tally.seconds)
        self.close(dumper)
        spent = [later - earlier for earlier, later in itertools.pairwise([compiling, *seconds])]
        dumped = [1, 3] if self.is_gated else [0, 1, 2, 3, 4]
        assert sorted(self._dumped(writer)) == dumped
        assert [number for number, each in enumerate(spent) if each > self.gate_ticks] == dumped
        assert (tally.iterations_run, tally.iterations_dumped) == (5, len(dumped))

    @pytest.mark.parametrize("failing", [0, 1])
    def test_a_failure_ends_the_dump_once_and_is_counted(self, failing: int, caplog: pytest.LogCaptureFixture) -> None:
        dumper, writer, _, program = self._open()
        self._play(program, dumper, failing)
        batches = len(writer.batches)
        self.close(dumper)
        caplog.clear()
        dumper, writer, tally, program = self._open(fails_at=batches)
        results = self._play(program, dumper, 4)
        self.close(dumper)
        assert results == self._play(ToyProgram([]), dumper, 4)
        assert [record.levelno for record in caplog.records if "full disk" in record.message] == [logging.ERROR]
        assert tally.error == "/nowhere: expected to write, got a full disk."
        assert tally.tensors_written == len(writer.records) == failing * len(self.places)
        assert tally.lost == len(self.places)
        assert tally.iterations_dumped <= failing + 1

    def test_an_error_of_an_operator_costs_no_later_step(self) -> None:
        dumper, writer, tally, program = self._open()
        self._play(program, dumper)
        for step, error in ((FAILING, ToyError), (INTERRUPTED, KeyboardInterrupt)):
            with pytest.raises(error):
                program.run(step)
        self._play(program, dumper)
        self.close(dumper)
        dumped = self._dumped(writer)
        assert Counter(dumped[0]) == Counter(dumped[3]) == Counter(self.places)
        assert all(Counter(places) <= Counter([*INPUTS, *OUTPUTS, *self.places]) for places in dumped.values())
        assert not tally.error

    def test_nothing_of_a_run_is_kept_when_it_has_ended(self) -> None:
        dumper, _, _, program = self._open()
        for step in (self.step, QUIET):
            with contextlib.suppress(ToyError):
                program.run(step)
            self.settle(dumper)
            gc.collect()
            assert program.arrays and [ref for ref in program.arrays if ref() is not None] == []
        self.close(dumper)

    def test_it_may_be_closed_without_a_run_and_twice(self) -> None:
        for count in (0, 1):
            dumper, writer, tally, program = self._open()
            self._play(program, dumper, count)
            self.close(dumper)
            self.close(dumper)
            assert not tally.error
            assert len(writer.records) == count * len(self.places)

    def test_runs_after_the_end_are_not_dumped(self) -> None:
        dumper, writer, tally, program = self._open()
        self._play(program, dumper)
        self.close(dumper)
        results = self._play(program, dumper, 2)
        assert sorted(self._dumped(writer)) == [0]
        assert (tally.lost, tally.error) == (0, "") and len(results) == 2

    def test_a_graph_may_come_after_the_end(self) -> None:
        dumper, writer, tally, _ = self._open()
        self.close(dumper)
        self._play(ToyProgram([dumper]), dumper)
        assert (writer.records, tally.error) == ([], "")


def _short(op_name: str) -> str:
    """The name of a call."""
    return _SCOPE.sub("", op_name)


def _truth(witness: Witness) -> dict[tuple[int, str, str, int], Array]:
    """What each operator read before it ran, and wrote."""
    truth = {}
    for told in witness.told:
        name, number = _short(told.event.op.full_name), told.event.iteration
        if told.name == "before":
            truth.update({(number, name, "input", slot): array for slot, array in enumerate(told.inputs)})
        elif told.name == "after":
            truth.update({(number, name, "output", slot): array for slot, array in enumerate(told.outputs)})
    return truth
