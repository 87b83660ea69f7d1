"""Converting and listing files, against copying and walking."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.dumps import spread_sizes, write_bin_dump
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import MEDIA, gigabytes, in_turns, scratch, settle, timed

SECTION = "Files"


def _convert(name: str, what: str, sizes: Sequence[int], medium: str, aim: str) -> None:
    lines = {"time": Line(f"convert of {what} to npy, {medium}", "copying them with shutil.copyfile", aim)}

    @row(name, SECTION, lines, seconds=180)
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        from msdump.analysis.convert.files import ConvertOptions, convert_files, dump_sources

        with scratch(medium) as folder:
            dump, copy, converted = folder / "dump", folder / "copy", folder / "converted"
            write_bin_dump(dump, [max(4, size // 32) for size in sizes] if bench.is_quick else sizes)
            files, options = sorted(dump.iterdir()), ConvertOptions(converted)
            bench.notes["time"] = gigabytes([file.stat().st_size for file in files])

            def plain() -> None:
                copy.mkdir()
                for file in files:
                    shutil.copyfile(file, copy / file.name)

            def ours() -> None:
                for result in convert_files(dump_sources(dump, options), options):
                    assert not result.code, result.problems

            # What is written goes away between the calls: memory for all of it may not be there. Each measured call
            # finds the memory that the one before gave back: a host may be slow to give more.
            while True:
                plain()
                shutil.rmtree(copy)
                settle()
                converting = timed(ours)
                shutil.rmtree(converted)
                settle()
                copying = timed(plain)
                shutil.rmtree(copy)
                yield {"time": (converting, copying)}


for _medium in MEDIA:
    _convert(f"convert-{_medium}", "90 dump files", spread_sizes(90, 300 << 20), _medium, "<= 1.0")
_convert("convert-small", "2,000 dump files of 256 bytes", [256] * 2000, "tmpfs", "")


@row("listing", SECTION, {"time": Line("names of 20,000 files in execution order", "os.walk over them")})
def listing(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Names of many files in a folder, against the walk that any reader must make."""
    from msdump.formats.dump_dir import DumpDir

    with scratch() as folder:
        data_folder = folder / "rank_0/Net/0/0"
        data_folder.mkdir(parents=True)
        for number in range(2_000 if bench.is_quick else 20_000):
            (
                data_folder / f"Add.Add-op{number}.0.0.{1_700_000_000_000_000 + number}.output.0.DefaultFormat.npy"
            ).touch()
        for listed, walked in in_turns(
            lambda: sum(1 for _ in DumpDir(folder).files()), lambda: sum(1 for _ in os.walk(folder))
        ):
            yield {"time": (listed, walked)}
