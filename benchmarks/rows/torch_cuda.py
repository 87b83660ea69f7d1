"""Eager PyTorch on a CUDA device: statistics of all operators, by the compiled observer and by the dispatch mode."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.dump_config import write_config
from benchmarks.registry import Bench, Line, NotMeasurableError, Sample, row
from benchmarks.rows.torch_eager import COLUMNS, PLAIN, WARM, has_compiled_observer, observer
from benchmarks.timing import scratch, timed

SECTION = "PyTorch models, eager, on a CUDA device"
COUNT = 10


def _on_cuda(model: str) -> None:
    what = f"statistics without MD5 of every operator, {model}"
    lines = {
        "native": Line(f"{what}, compiled observer", PLAIN),
        "mode": Line(f"{what}, dispatch mode", PLAIN),
    }

    @row(f"eager-cuda-{model}", SECTION, lines)
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        """Steps of a dump that goes on, after the first ones, until the device has done each."""
        import torch

        if not torch.cuda.is_available():
            raise NotMeasurableError("needs a CUDA device")
        import msdump
        from benchmarks.torch_models import training_step

        step = training_step(model, bench.is_quick, device="cuda")
        bench.notes["native"] = torch.cuda.get_device_name()

        def steps() -> float:
            for _ in range(WARM):
                step()
            return timed(lambda: [step() for _ in range(COUNT)])

        def dumped(config: Path, is_compiled: bool) -> float:
            with observer(is_compiled), msdump.watch(config=config):
                seconds = steps()
            shutil.rmtree(config.with_suffix(""), ignore_errors=True)
            return seconds

        with scratch() as folder:
            numbers: dict[str, Any] = {"saved_data": "statistic", "statistic_category": COLUMNS}
            config = write_config(folder, "all", **numbers)
            for _ in range(100):
                base = steps()
                values: dict[str, Sample] = {"mode": (dumped(config, False), base)}
                if has_compiled_observer():
                    values["native"] = dumped(config, True), steps()
                yield values


for _model in ("small", "alexnet", "resnet50", "transformer"):
    _on_cuda(_model)
