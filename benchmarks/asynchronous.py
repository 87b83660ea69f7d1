"""What an asynchronous dump of everything adds to a training step: `benchmarks/asynchronous.py PART [--quick]`.

Several dumped steps in a row and the wait at their end, less as many plain steps, against plain write() of the same
files in the same run. Peak memory against the plain run, in units of what copies may take.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
from pathlib import Path

from parts import alexnet_step, bare_write, row, scratch, timed

WARM = 3


def write_config(folder: Path, file_format: str, dumped: int) -> Path:
    settings = {
        "common_dump_settings": {
            "dump_mode": 0, "path": str(folder / "dump"), "net_name": "AlexNet",
            "iteration": f"{WARM}-{WARM + dumped - 1}", "saved_data": "tensor", "input_output": 0, "kernels": [],
            "support_device": [0], "op_debug_mode": 0, "file_format": file_format,
        },
    }  # fmt: skip
    path = folder / "dump.json"
    path.write_text(json.dumps(settings))
    return path


def measure(base: str | None, place: str, file_format: str, quick: bool) -> None:
    batch, dumped = (4, 2) if quick else (32, 3)
    with scratch(base) as folder:
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(write_config(folder, file_format, dumped))
        step = alexnet_step(batch)
        for _ in range(WARM):
            step()
        from msdump import opening
        from msdump.dumpers.staging import staging_budget

        opened = opening.current()
        if opened is None or opened.pool is None:
            raise RuntimeError("no asynchronous dump is configured")
        pool, budget = opened.pool, staging_budget()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = timed(lambda: ([step() for _ in range(dumped)], pool.drain()))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        plain = statistics.median(timed(step) for _ in range(dumped))
        sizes = {path.stat().st_ino: path.stat().st_size for path in (folder / "dump").rglob("*") if path.is_file()}
        shutil.rmtree(folder / "dump")
        # What the dump left in the page cache must not be paid for by the peer.
        os.sync()
        bare = bare_write(folder, list(sizes.values()))
        added = seconds - dumped * plain
        what = f"async {file_format} dump on {place}"
        row(f"{what}: added time of a dumped step", added / bare, "<= 1.0",
            f"bare write() of its {sum(sizes.values()) / dumped / 1e9:.2f} GB")  # fmt: skip
        row(f"{what}: added peak memory", (peak - before) * 1024 / budget, "<= 1.1", "MSDUMP_ASYNC_BUFFER")


PARTS = {
    "bin_disk": (None, "disk", "bin"),
    "bin_tmpfs": ("/dev/shm", "tmpfs", "bin"),
    "npy_disk": (None, "disk", "npy"),
    "npy_tmpfs": ("/dev/shm", "tmpfs", "npy"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    measure(*PARTS[arguments.part], arguments.quick)


if __name__ == "__main__":
    main()
