"""What an ONNX model costs through msdump: `python benchmarks/onnx_dump.py [--quick] [--only PART ...]`.

ResNet-50, 224 pixels, batch 1. Each row compares two ways to run it that take turns in one process, so that a slow
moment of the machine hits both: the ratio is the median of those of the turns.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx_models import resnet50

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PARTS = ("plain", "statistics", "tensors")


def show(what: str, ratio: float, aim: str, against: str) -> None:
    print(f"{what:44} {ratio:8.2f} {aim:>8}  {against}", flush=True)


def in_turns(turns: int, one: Callable[[], Any], other: Callable[[], Any], times: int = 1) -> tuple[float, float]:
    """Median of one/other over the turns, and median seconds of other."""
    ratios, seconds = [], []
    for turn in range(turns + 2):
        took = [0.0, 0.0]
        # Who goes first changes: the second one meets the caches as the first one left them.
        for which in (0, 1) if turn % 2 else (1, 0):
            started = time.perf_counter()
            for _ in range(times):
                (one, other)[which]()
            took[which] = (time.perf_counter() - started) / times
        if turn >= 2:  # the first ones warm up
            ratios.append(took[0] / took[1])
            seconds.append(took[1])
    return statistics.median(ratios), statistics.median(seconds)


def measure_plain(turns: int, feeds: dict[str, Any], model: bytes) -> None:
    import msdump.acl
    import onnxruntime

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    net = msdump.acl.load(model)
    (expected,) = session.run(None, feeds)
    np.testing.assert_allclose(next(iter(net(feeds).values())), expected, rtol=1e-3, atol=1e-4)
    ratio, seconds = in_turns(turns, lambda: net(feeds), lambda: session.run(None, feeds), 3)
    show("ONNX ResNet-50: without dump", ratio, "<= 1.5", f"onnxruntime, the whole graph, {seconds:.4f} s")


def measure_statistics(turns: int, feeds: dict[str, Any], model: bytes, folder: Path) -> None:
    import msdump.acl

    plain = msdump.acl.load(model)
    for mode in ("output", "all"):
        section = {"dump_path": str(folder), "dump_list": [{}], "dump_mode": mode, "dump_data": "stats"}
        with msdump.acl.dump({"dump": section}):
            dumped = msdump.acl.load(model)
            ratio, seconds = in_turns(turns, lambda net=dumped: net(feeds), lambda: plain(feeds), 3)
        show(f"ONNX ResNet-50: statistics, {mode}", ratio, "<= 1.2", f"without dump, {seconds:.4f} s")
        _clear(folder)


def measure_tensors(turns: int, feeds: dict[str, Any], model: bytes, folder: Path) -> None:
    """Runs with a full dump, to the end of the last file, less as many without; against write() of the same files."""
    import msdump.acl

    plain, runs = msdump.acl.load(model), 5
    for mode in ("output", "all"):
        section = {"dump_path": str(folder), "dump_list": [{}], "dump_mode": mode}
        ratios, sizes = [], []
        for _ in range(turns):
            with msdump.acl.dump({"dump": section}):
                net = msdump.acl.load(model)
                started = time.perf_counter()
                for _ in range(runs):
                    net(feeds)
            dumped = time.perf_counter() - started
            started = time.perf_counter()
            for _ in range(runs):
                plain(feeds)
            alone = time.perf_counter() - started
            sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
            _clear(folder)
            ratios.append((dumped - alone) / _bare_write(folder, sizes))
            _clear(folder)
        what = f"bare write() of its {sum(sizes) / runs / 1e6:.0f} MB in {len(sizes) // runs} files"
        show(f"ONNX ResNet-50: tensors, {mode}, added time", statistics.median(ratios), "", what)


def _bare_write(folder: Path, sizes: list[int]) -> float:
    block = np.random.default_rng(0).bytes(max(sizes))
    view = memoryview(block)
    started = time.perf_counter()
    for number, size in enumerate(sizes):
        handle = os.open(folder / str(number), os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(handle, view[:size])
        os.close(handle)
    return time.perf_counter() - started


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    # What one way left to be written must not be paid for by the other.
    os.sync()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few turns")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--folder", type=Path, help="where dumps go while they are measured")
    args = parser.parse_args()
    model = resnet50().SerializeToString()
    feeds = {"data": np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)}
    turns = 5 if args.quick else 15
    print(f"{'what':44} {'ratio':>8} {'aim':>8}  of what (load {os.getloadavg()[0]:.1f})")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        if "plain" in args.only:
            measure_plain(turns, feeds, model)
        if "statistics" in args.only:
            measure_statistics(turns, feeds, model, Path(folder))
        if "tensors" in args.only:
            measure_tensors(3 if args.quick else 5, feeds, model, Path(folder))


if __name__ == "__main__":
    main()
