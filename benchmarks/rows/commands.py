"""Commands on a dump of 50,000 small files, against a plain loop of np.load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.commands import dump_commands, plain_loop, seconds_of
from benchmarks.dumps import write_npy_dump
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import scratch

SECTION = "Small tensors"
TITLES = {"stat": "msdump stat", "nan": "msdump nan", "compare": "msdump compare DUMP DUMP", "ls": "msdump ls"}
LOOP = "a loop of np.load with min, max, mean and the number of NaN"
COUNT = 50_000


@row(
    "small-commands",
    SECTION,
    {
        key: Line(f"{title} on 50,000 files of (8, 8)", LOOP, "<= 0.5" if key != "ls" else "")
        for key, title in TITLES.items()
    },
    seconds=300,
)
def small_commands(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    count = 2_000 if bench.is_quick else COUNT
    with scratch() as folder:
        write_npy_dump(folder, [256] * count, shape=(8, 8))
        while True:
            loop = seconds_of(plain_loop(folder))
            seconds = {key: seconds_of(arguments) for key, arguments in dump_commands(folder).items()}
            for key, took in seconds.items():
                bench.notes[key] = f"{took / count * 1e6:.0f} µs of {loop / count * 1e6:.0f} µs a file"
            yield {key: (took, loop) for key, took in seconds.items()}
