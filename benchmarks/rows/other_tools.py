"""A training step under each tool that watches PyTorch, beside the same step without one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from benchmarks.dump_config import write_config
from benchmarks.registry import Bench, Line, NotMeasurableError, Sample, row
from benchmarks.timing import scratch, timed
from benchmarks.workers import Worker

PLAIN = "a plain step"
COLUMNS = ["max", "min", "avg", "l2norm"]
STEPS = 3


@row(
    "other-tools",
    "Other tools for PyTorch",
    {
        "anomaly": Line("detect_anomaly", PLAIN),
        "debug": Line("DebugMode, no hashes", PLAIN),
        "hashes": Line("DebugMode, hashes of inputs and outputs", PLAIN),
        "probe": Line("mindstudio-probe 26.2, statistics, level mix", "a plain step there"),
        "msdump": Line("msdump, statistics without MD5, dispatch mode", PLAIN),
    },
    seconds=120.0,
)
def other_tools(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Steps of a transformer 256 wide, after the first ones, which name operators."""
    import torch
    from torch.utils._debug_mode import DebugMode

    import msdump
    from benchmarks.rows.torch_eager import observer
    from benchmarks.torch_models import training_step

    step = training_step("transformer", bench.is_quick)

    def steps(around: Callable[[ExitStack], AbstractContextManager[Any]] | None = None) -> float:
        with ExitStack() as stack:
            if around is not None:
                stack.enter_context(around(stack))
            step()
            return timed(lambda: [step() for _ in range(STEPS)])

    def hashing(stack: ExitStack) -> AbstractContextManager[Any]:
        return stack.enter_context(DebugMode()).log_tensor_hashes(hash_inputs=True)

    with scratch() as folder, ExitStack() as stack:
        config = write_config(folder, "all", saved_data="statistic", statistic_category=COLUMNS)

        def dumped() -> float:
            with observer(False):
                seconds = steps(lambda stack: msdump.watch(config=config))
            shutil.rmtree(folder / "dump")
            return seconds

        calls: dict[str, Callable[[], float]] = {
            "anomaly": lambda: steps(lambda stack: torch.autograd.detect_anomaly(check_nan=True)),
            "debug": lambda: steps(lambda stack: DebugMode()),
            "hashes": lambda: steps(hashing),
            "msdump": dumped,
        }
        probe = None
        try:
            arguments: dict[str, Any] = {"model": "transformer", "is_quick": bench.is_quick, "folder": str(folder)}
            python = bench.peer("msprobe")
            probe = stack.enter_context(Worker("probed_step", python, task="statistics", level="mix", **arguments))
        except NotMeasurableError:
            pass
        steps()
        for _ in range(100):
            values: dict[str, Sample] = {}
            for name, call in calls.items():
                base = steps()
                values[name] = call(), base
            if probe is not None:
                plain, probed = probe.turn()
                values["probe"] = probed, plain
            yield values
