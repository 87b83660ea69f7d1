"""ResNet-50 as an ONNX file, 224 pixels, batch 1: runs without a dump, statistics, tensors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.registry import Bench, Line, NotMeasurableError, Sample, row
from benchmarks.timing import BareWriter, gigabytes, in_turns, scratch, settle, timed

SECTION = "Models from ONNX files"
PLAIN = "a run without dump"
MODES = ("output", "all")
TITLES = {"output": "every output", "all": "every input and output"}
RUNS = 5


def _model() -> tuple[bytes, dict[str, Any]]:
    try:
        from benchmarks.onnx_models import resnet50
    except ImportError as error:
        raise NotMeasurableError(f"needs {error.name} (pip install '.[onnx]')") from error
    feeds = {"data": np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)}
    return resnet50().SerializeToString(), feeds


@row("onnx-no-dump", SECTION, {"run": Line(PLAIN, "onnxruntime with the whole graph, which it fuses", "<= 1.3")})
def no_dump(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    model, feeds = _model()
    import msdump.acl
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Its threads would go on turning for some 20 ms after each run, on the cores of the run that comes next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    net = msdump.acl.load(model)
    (expected,) = session.run(None, feeds)
    np.testing.assert_allclose(next(iter(net(feeds).values())), expected, rtol=1e-3, atol=1e-4)
    for ours, theirs in in_turns(lambda: net(feeds), lambda: session.run(None, feeds), warm=2, times=3):
        bench.notes["run"] = f"{theirs * 1e3:.0f} ms"
        yield {"run": (ours, theirs)}


def _statistics(mode: str, aim: str) -> None:
    @row(f"onnx-statistics-{mode}", SECTION, {"run": Line(f"statistics of {TITLES[mode]}", PLAIN, aim)})
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        model, feeds = _model()
        import msdump.acl

        plain = msdump.acl.load(model)
        with scratch() as folder:
            section = {"dump_path": str(folder), "dump_list": [{}], "dump_mode": mode, "dump_data": "stats"}
            with msdump.acl.dump({"dump": section}):
                dumped = msdump.acl.load(model)
                for cost, base in in_turns(lambda: dumped(feeds), lambda: plain(feeds), warm=2, times=3):
                    yield {"run": (cost, base)}


_statistics("output", "<= 1.3")
_statistics("all", "<= 1.4")


def _tensors(mode: str) -> None:
    lines = {"added": Line(f"tensors, {TITLES[mode]}, to tmpfs: added time", "bare write() of the same")}

    @row(f"onnx-tensors-{mode}", SECTION, lines)
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        """Runs with a full dump, to the end of the last file, and as many without."""
        model, feeds = _model()
        import msdump.acl

        plain = msdump.acl.load(model)
        with scratch() as folder:
            section = {"dump_path": str(folder), "dump_list": [{}], "dump_mode": mode}
            while True:
                dumped = timed(lambda: _dumped_runs(section, model, feeds))
                alone = timed(lambda: _repeat(lambda: plain(feeds)))
                sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
                _clear(folder)
                settle()
                bench.notes["added"] = gigabytes(sizes[: len(sizes) // RUNS])
                yield {"added": (dumped, alone, BareWriter(folder).seconds(sizes))}

    def _dumped_runs(section: dict[str, Any], model: bytes, feeds: dict[str, Any]) -> None:
        import msdump.acl

        with msdump.acl.dump({"dump": section}):
            net = msdump.acl.load(model)
            _repeat(lambda: net(feeds))


def _repeat(call: Callable[[], Any]) -> None:
    for _ in range(RUNS):
        call()


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else os.unlink(path)


for _mode in MODES:
    _tensors(_mode)
