"""Measure all rows, or some by name: `python -m benchmarks [NAME ...]`.

Each row has a process of its own: none may profit from another one's warm memory. Rounds go on until the middle half of
them lies within 10 % of the median, or the row's time is over; either is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks import page, peers, timing
from benchmarks.registry import Bench, NotMeasurableError, Row, load_rows
from benchmarks.results import RESULTS, machine, merged, read_results
from benchmarks.sampling import sample

ROOT = Path(__file__).resolve().parent.parent
# Beyond the seconds of its rounds: what a row prepares, and the round that is under way.
PATIENCE_S = 900


def main() -> int:
    rows = load_rows()
    args = _parser(rows).parse_args()
    if args.list:
        for row in rows.values():
            print(f"{row.name:26} {row.section}: {'; '.join(line.what for line in row.lines.values())}")
        return 0
    if args.one:
        return _measure_here(
            _limited(rows[args.names[0]], args.seconds), args.quick, dict(pair.split("=", 1) for pair in args.peer)
        )
    if args.page:
        page.write(read_results(RESULTS))
        return 0
    with ExitStack() as stack:
        found: dict[str, Path] = {}
        if args.peers is not None:
            folder = args.peers or stack.enter_context(tempfile.TemporaryDirectory())
            found = peers.install(Path(folder).resolve())
        results, failed = _measure_all(
            [_limited(rows[name], args.seconds) for name in args.names or rows], args.quick, found
        )
    if args.json:
        args.json.write_text(json.dumps({"machine": machine(), "results": results}, indent=1) + "\n")
    if args.write:
        page.write(merged(RESULTS, results, list(rows)))
    return 1 if failed else 0


def _parser(rows: dict[str, Row]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*rows, []], metavar="NAME", help="rows to measure; all without it")
    parser.add_argument("--list", action="store_true", help="names of the rows and what they measure")
    parser.add_argument("--quick", action="store_true", help="small batches and few rounds")
    parser.add_argument(
        "--peers", nargs="?", const="", metavar="FOLDER",
        help="install MindSpore and other tools there, or in a temporary folder, and measure beside them",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, help="no round of a row begins after them; each row has its own limit")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    parser.add_argument("--write", action="store_true", help="put the results into docs/performance.md")
    parser.add_argument("--page", action="store_true", help="only make docs/performance.md anew from results.json")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peer", action="append", default=[], help=argparse.SUPPRESS)
    return parser


def _limited(row: Row, seconds: float | None) -> Row:
    return row if seconds is None else replace(row, seconds=min(row.seconds, seconds))


def _measure_all(rows: Sequence[Row], is_quick: bool, found: dict[str, Path]) -> tuple[list[dict[str, Any]], list[str]]:
    """Results of all rows that could be measured, and the names of those that failed."""
    results: list[dict[str, Any]] = []
    failed: list[str] = []
    for row in rows:
        done = _measure_apart(row, is_quick, found)
        if isinstance(done, str):
            print(f"{row.name}: {done}", file=sys.stderr, flush=True)
            failed.append(row.name)
            continue
        for result in done:
            print(page.text_line(result), flush=True)
        results += done
    return results, failed


def _measure_apart(row: Row, is_quick: bool, found: dict[str, Path]) -> list[dict[str, Any]] | str:
    """Results of a row, measured in a process of its own; or why there are none."""
    command = [sys.executable, "-m", "benchmarks", row.name, "--one", "--seconds", str(row.seconds)]
    command += ["--quick"] * is_quick
    for name, python in found.items():
        command += ["--peer", f"{name}={python}"]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    tag, limit = f"{os.getpid()}", row.seconds + PATIENCE_S
    environment = {**os.environ, "PYTHONPATH": paths, timing.TAG: tag, **row.environment}
    # An installed package has its bytecode; without it each process would compile msdump anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"not measured: took longer than {limit:.0f} s"
    finally:
        timing.sweep(tag)
    if done.returncode:
        return done.stderr.strip()[-3000:] or f"ended with status {done.returncode}"
    results: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return results


def _measure_here(row: Row, is_quick: bool, found: dict[str, str]) -> int:
    bench = Bench(is_quick, {name: Path(python) for name, python in found.items()})
    try:
        results = sample(row, bench)
    except NotMeasurableError as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 3
    print(json.dumps([asdict(result) for result in results]), flush=True)
    # A dump that is still open has nothing to say any more.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
