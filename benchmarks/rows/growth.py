"""A chain of 1,000 to 200,000 operators: whether the time and the memory of one operator stay what they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.commands import dump_commands, seconds_of
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import scratch
from benchmarks.workers import Worker

SECTION = "Growth"
COUNTS = (1_000, 10_000, 60_000, 200_000)
QUICK = (1_000, 4_000, 10_000)
LEAST = "the least of all lengths"
TITLES = {
    "compile": "compilation",
    "step": "a step",
    "dumped": "a dumped step, outputs",
    "statistics": "a step with statistics",
    "memory": "memory",
    "ls": "msdump ls",
    "stat": "msdump stat",
    "nan": "msdump nan",
    "compare": "msdump compare DUMP DUMP",
}


@row(
    "growth",
    SECTION,
    {key: Line(f"{title}, an operator of the longest chain", LEAST, "<= 1.2") for key, title in TITLES.items()},
    least=1,
    most=3,
    seconds=400,
)
def growth(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Each length in processes of its own. Commands start anew for each length, and that time is not counted."""
    counts = QUICK if bench.is_quick else COUNTS
    while True:
        start = min(seconds_of(["-m", "msdump", "stat", "--help"]) for _ in range(3))
        measured = {count: _measure(count, start) for count in counts}
        for key in TITLES:
            unit, scale = ("KB", 1e-3) if key == "memory" else ("µs", 1e6)
            costs = ", ".join(f"{measured[count][key] * scale:.3g}" for count in counts)
            bench.notes[key] = f"{costs} {unit} for {', '.join(f'{count:,}' for count in counts)}"
        yield {key: (measured[counts[-1]][key], min(one[key] for one in measured.values())) for key in TITLES}


def _measure(count: int, start: float) -> dict[str, float]:
    """Seconds, or bytes, for one operator."""
    with scratch() as folder:
        with Worker("growth", count=count, folder=str(folder), saved_data="statistic") as worker:
            numbers = dict(worker.first)
        statistics = numbers["dumped"]
    with scratch() as folder:
        with Worker("growth", count=count, folder=str(folder), saved_data="tensor") as worker:
            numbers = {**worker.first, "statistics": statistics}
        return {**numbers, **_commands(folder / "dump", count, start)}


def _commands(dump: Path, count: int, start: float) -> dict[str, float]:
    return {key: max(0.0, seconds_of(arguments, 900) - start) / count for key, arguments in dump_commands(dump).items()}
