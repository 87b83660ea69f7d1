"""What it costs to begin: `import msdump` and `msdump --help`, beside numpy alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.commands import seconds_of
from benchmarks.registry import Bench, Line, Sample, row

SECTION = "Start"


@row(
    "start",
    SECTION,
    {
        "import": Line("import msdump, beyond import numpy", aim="<= 10", unit="ms"),
        "help": Line("msdump --help", 'python -c "import numpy"', "<= 1.25"),
    },
)
def start(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """The least of five processes of each, in turns."""
    while True:
        turns = [
            [
                seconds_of(["-c", "import numpy"]),
                seconds_of(["-c", "import numpy, msdump"]),
                seconds_of(["-m", "msdump", "--help"]),
            ]
            for _ in range(5)
        ]
        numpy, both, shown = map(min, zip(*turns, strict=True))
        yield {"import": (both - numpy) * 1e3, "help": (shown, numpy)}
