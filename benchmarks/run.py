"""All ratios that msdump promises, in one table: `python benchmarks/run.py [--quick] [--only NAME ...]`.

Each row is a ratio to a peer or to a physical limit measured in the same run, because machines differ and are
shared. Times are medians of alternating repetitions.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = (
    *("stats", "md5", "off", "train", "memory", "sync_tmpfs", "sync_disk"),
    *("statistic", "statistic_no_md5", "lenet", "lenet_no_md5", "overflow"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small batch and few repetitions")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="rows to measure")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    for part in args.only or PARTS:
        # Each part in a process of its own: no part may profit from another one's warm memory.
        command = [sys.executable, str(HERE / "parts.py"), part] + (["--quick"] if args.quick else [])
        done = subprocess.run(command, capture_output=True, text=True, env=_environment())
        if done.returncode:
            print(f"{part}: failed\n{done.stderr}", file=sys.stderr)
            return 1
        rows.extend(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    print(f"{'what':58} {'ratio':>8} {'aim':>8}  of what")
    for row in rows:
        print(f"{row['what']:58} {row['ratio']:8.2f} {row['aim']:>8}  {row['against']}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return 0


def _environment() -> dict[str, str]:
    root = str(HERE.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


def median(values: list[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    sys.exit(main())
