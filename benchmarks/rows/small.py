"""2,000 operators on (8, 8) tensors: what a record costs when it has hardly any bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.dump_config import configure, odd_iterations, statistic_columns
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import BareWriter, distinct_sizes, scratch, timed

SECTION = "Small tensors"
COUNT = 2000


def _steps(folder: Path, **common: Any) -> Iterator[tuple[float, float, Path]]:
    """Seconds of dumped and plain steps, outputs only, and where the files of each lie."""
    import msdump

    msdump.install_aliases()
    from benchmarks import mindspore_models

    configure(folder, odd_iterations(), input_output=2, **common)
    step = mindspore_models.chain(True, COUNT, (8, 8))
    for number in range(1000):
        plain, dumped = timed(step), timed(step)
        (done,) = (folder / "dump/rank_0/Net/0").glob("[0-9]*")
        if number:
            yield dumped, plain, done
        shutil.rmtree(done)


@row(
    "small-tensors",
    SECTION,
    {"added": Line("2,000 operators on (8, 8), outputs to tmpfs: added time", "bare create, write, close", "<= 1.11")},
)
def tensors(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    with scratch() as folder:
        writer = BareWriter(folder)
        for dumped, plain, done in _steps(folder):
            sizes = distinct_sizes(done.iterdir())
            bare = writer.seconds(sizes)
            bench.notes["added"] = f"{(dumped - plain) / COUNT * 1e6:.1f} µs of {bare / COUNT * 1e6:.1f} µs a file"
            yield {"added": (dumped, plain, bare)}


def _statistics(name: str, what: str, *without: str) -> None:
    line = Line(f"the same operators, statistics, {what}: records a second", aim=">= 100000", unit="records/s")

    @row(name, SECTION, {"rate": line})
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        with scratch() as folder:
            columns = statistic_columns(*without)
            for dumped, plain, _ in _steps(folder, saved_data="statistic", statistic_category=columns):
                yield {"rate": COUNT / (dumped - plain)}


_statistics("small-statistics", "every column")
_statistics("small-statistics-no-md5", "no MD5", "md5")
