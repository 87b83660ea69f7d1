"""Reading and converting files, each as a ratio to a peer in the same run: `python benchmarks/files.py [--quick]`.

Prints its rows as JSON lines, like parts.py, and takes the name of one part.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from parts import alternate, row, scratch, timed


def write_dump(folder: Path, count: int, largest: int) -> int:
    """Dump files of one float32 tensor each, sizes spread evenly over the powers of two from 1 KiB on; all bytes."""
    from msdump.formats.bin import bin_chunks
    from msdump.records import TensorRecord

    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(np.log(1024), np.log(largest), count)).astype(int)
    values = rng.standard_normal(largest // 4).astype(np.float32)
    total = 0
    for number, size in enumerate(sizes):
        record = TensorRecord(
            "Add",
            f"Default/Add-op{number}",
            number,
            0,
            1_700_000_000_000_000 + number,
            "output",
            0,
            "float32",
            values[: size // 4],
        )
        path = folder / f"Add.Default_Add-op{number}.{number}.0.{record.timestamp_us}"
        with path.open("wb") as file:
            for chunk in bin_chunks([record]):
                total += file.write(chunk)
    return total


def measure_convert(base: str | None, place: str, quick: bool) -> None:
    from msdump.analysis.convert.files import ConvertOptions, convert_files, dump_sources

    count, largest = (100, 8 << 20) if quick else (500, 64 << 20)
    with scratch(base) as folder:
        dump, copy, converted = folder / "dump", folder / "copy", folder / "converted"
        dump.mkdir()
        total = write_dump(dump, count, largest)
        files = sorted(dump.iterdir())

        def plain() -> None:
            copy.mkdir()
            for file in files:
                shutil.copyfile(file, copy / file.name)

        def ours() -> None:
            options = ConvertOptions(converted)
            for result in convert_files(dump_sources(dump, options), options):
                assert not result.code, result.problems

        # What is written goes away between the measured calls: memory for all of it may not be there.
        seconds: dict[str, list[float]] = {"plain": [], "ours": []}
        for _ in range(3 if quick else 4):
            for name, call, made in (("ours", ours, converted), ("plain", plain, copy)):
                os.sync()  # or one of them pays for what the other has written
                seconds[name].append(timed(call))
                shutil.rmtree(made)
        plain_best, ours_best = min(seconds["plain"]), min(seconds["ours"])
        row(f"convert on {place}: {count} dump files to npy", plain_best / ours_best, ">= 0.8",
            f"copying their {total / 1e9:.2f} GB with shutil.copyfile")  # fmt: skip


def part_convert_tmpfs(quick: bool) -> None:
    measure_convert("/dev/shm", "tmpfs", quick)


def part_convert_disk(quick: bool) -> None:
    measure_convert(None, "disk", quick)


def part_listing(quick: bool) -> None:
    """Names of many files in a folder, against the walk that any reader must make."""
    from msdump.formats.dump_dir import DumpDir

    count = 2_000 if quick else 20_000
    with scratch("/dev/shm") as folder:
        place = folder / "rank_0/Net/0/0"
        place.mkdir(parents=True)
        for number in range(count):
            (place / f"Add.Add-op{number}.0.0.{1_700_000_000_000_000 + number}.output.0.DefaultFormat.npy").touch()
        listed, walked = alternate(
            5, lambda: sum(1 for _ in DumpDir(folder).files()), lambda: sum(1 for _ in os.walk(folder))
        )
        row(f"names of {count} files in execution order", listed / walked, "", "os.walk over them")


def part_start(quick: bool) -> None:
    """Seconds of `msdump --help` beyond a bare interpreter, in units of `import numpy`."""

    def run(*arguments: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        return time.perf_counter() - started

    rounds = 5 if quick else 15
    help_seconds = min(run("-m", "msdump", "--help") for _ in range(rounds))
    numpy_seconds = min(run("-c", "import numpy") for _ in range(rounds))
    row("msdump --help", help_seconds / numpy_seconds, "<= 1.25", 'python -c "import numpy"')


PARTS = ("convert_tmpfs", "convert_disk", "listing", "start")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    for part in [arguments.part] if arguments.part else PARTS:
        globals()[f"part_{part}"](arguments.quick)
