"""PyTorch models under `msdump.watch` and under a flight recorder, beside mindstudio-probe."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.dump_config import write_config
from benchmarks.registry import Bench, Line, NotMeasurableError, Sample, row
from benchmarks.timing import distinct_sizes, gigabytes, scratch, timed
from benchmarks.workers import Worker

SECTION = "PyTorch models, eager"
PLAIN = "a plain step"
PROBE = "what mindstudio-probe adds, level mix"
SAVE = "np.save of the same operands"
COLUMNS = ["max", "min", "avg", "l2norm"]
STEPS = 4
# Of a dump that goes on: the first ones name operators, and find out which of them come back.
WARM = 4
NAMING = 2  # the same, of large models
NATIVE_AIMS = {"alexnet": "<= 1.08", "resnet50": "<= 1.15", "transformer": "<= 1.20"}


@row(
    "eager-operators",
    SECTION,
    {
        "off": Line("200 modules of microseconds, no configuration", PLAIN, "<= 1.05"),
        "other": Line("the same, an iteration that is not dumped", PLAIN),
        "bare": Line("the same, a bare TorchDispatchMode", PLAIN),
        "none": Line("the same, no operator is selected", "a bare TorchDispatchMode", "<= 1.5"),
    },
)
def operators(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Small operators, forward and backward, where nothing of them is dumped, after the first steps of a block."""
    import torch
    from torch import nn
    from torch.utils._python_dispatch import TorchDispatchMode

    import msdump

    class Bare(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(100)))
    x = torch.ones(4, 8)

    def step() -> None:
        model(x).sum().backward()

    def inside(block: Callable[[], Any]) -> float:
        with block():
            for _ in range(NAMING):
                step()
            return timed(lambda: [step() for _ in range(15)])

    with scratch() as folder:
        other = write_config(folder, "1000000", name="other")
        none = write_config(folder, "all", name="none", dump_mode=1, kernels=["Default/none-op0"])
        blocks: dict[str, Callable[[], Any]] = {
            "off": msdump.watch,
            "other": lambda: msdump.watch(model, other),
            "bare": Bare,
            "none": lambda: msdump.watch(model, none),
        }
        inside(contextlib.nullcontext)
        for _ in range(100):
            values: dict[str, Sample] = {}
            with observer(False):
                for name, block in blocks.items():
                    values[name] = inside(block), inside(Bare if name == "none" else contextlib.nullcontext)
            yield values


@contextlib.contextmanager
def observer(is_compiled: bool) -> Iterator[None]:
    """Operators are seen by `msdump_native`, or by the dispatch mode."""
    from msdump.config.environment import NATIVE

    before = os.environ.get(NATIVE)
    os.environ[NATIVE] = "1" if is_compiled else "0"
    try:
        yield
    finally:
        os.environ.pop(NATIVE)
        if before is not None:
            os.environ[NATIVE] = before


def has_compiled_observer() -> bool:
    from msdump.frontends.torch.eager.native import why_not_native

    return not why_not_native()


@row(
    "eager-small",
    SECTION,
    {
        "native": Line("statistics without MD5, small transformer, compiled observer", PLAIN, "<= 1.35"),
        "mode": Line("the same, dispatch mode", PLAIN, "<= 5"),
        "native_none": Line("the same, no operator is selected, compiled observer", PLAIN, "<= 1.05"),
        "mode_none": Line("the same, no operator is selected, dispatch mode", PLAIN, "<= 2.2"),
        "idle": Line("the same, no iteration is dumped", PLAIN, "<= 1.02"),
        "between": Line("the same, between sampled iterations, with norms of gradients", PLAIN, "<= 1.05"),
        "bare": Line("small transformer: a bare TorchDispatchMode", PLAIN),
        "hashes": Line("small transformer: PyTorch's DebugMode with hashes of all tensors", PLAIN),
        "anomaly": Line("small transformer: detect_anomaly", PLAIN),
    },
    seconds=120.0,
)  # fmt: skip
def small(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """A transformer 64 wide, of some 500 operators of microseconds: steps of a dump that goes on.

    Times are of steps after the first ones, which name operators.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    import msdump
    from benchmarks.torch_models import training_step

    class Bare(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    step = training_step("small", bench.is_quick)
    count = 10 if bench.is_quick else 25

    def steps() -> float:
        for _ in range(WARM):
            step()
        return timed(lambda: [step() for _ in range(count)])

    def hashed() -> float:
        from torch.utils._debug_mode import DebugMode

        with DebugMode() as mode, mode.log_tensor_hashes(hash_inputs=True):
            return steps()

    def anomaly() -> float:
        with torch.autograd.detect_anomaly(check_nan=True):
            return steps()

    with scratch() as folder:
        numbers: dict[str, Any] = {"saved_data": "statistic", "statistic_category": COLUMNS}
        every = write_config(folder, "all", **numbers)
        none = write_config(folder, "all", name="none", dump_mode=1, kernels=["Default/none-op0"], **numbers)
        idle = write_config(folder, "1000000", name="idle", **numbers)
        between = write_config(folder, "all", name="between", sampling=1_000_000, **numbers)

        def dumped(config: Path, is_compiled: bool) -> float:
            with observer(is_compiled), msdump.watch(config=config):
                seconds = steps()
            shutil.rmtree(config.with_suffix(""), ignore_errors=True)
            return seconds

        def bare() -> float:
            with Bare():
                return steps()

        calls: dict[str, Callable[[], float]] = {
            "mode": lambda: dumped(every, False),
            "mode_none": lambda: dumped(none, False),
            "idle": lambda: dumped(idle, False),
            "between": lambda: dumped(between, False),
            "bare": bare,
            "hashes": hashed,
            "anomaly": anomaly,
        }
        if has_compiled_observer():
            calls["native"] = lambda: dumped(every, True)
            calls["native_none"] = lambda: dumped(none, True)
        for _ in range(100):
            values: dict[str, Sample] = {}
            for name, call in calls.items():
                # Beside each a plain one: a round takes ten seconds, in which the machine changes.
                base = steps()
                values[name] = call(), base
            yield values


STEP_AIMS = {
    "small": ("small transformer, statistics without MD5", 1.4, 1.6),
    "small_none": ("small transformer, no operator is selected", 1.15, 1.25),
    "mlp": ("perceptron of 45 operators, statistics without MD5", 2.0, 2.5),
    "idle": ("small transformer, steps that are not dumped after a dumped one", 1.0, 1.02),
    "mode": ("small transformer, statistics without MD5, dispatch mode", 8, 8),
}


@row(
    "eager-steps",
    SECTION,
    {
        f"{name}_{which}": Line(f"{what}: the {which} step, processor time", "that of plain steps", f"<= {aim}")
        for name, (what, *aims) in STEP_AIMS.items()
        for which, aim in zip(("shortest", "median"), aims, strict=True)
    },
    seconds=240.0,
    least=3,
)  # fmt: skip
def single_steps(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Processor time of single steps of a dump that goes on, beside as many plain ones before it, by one thread."""
    import torch

    import msdump
    from benchmarks.torch_models import training_step

    torch.set_num_threads(1)
    count = 20 if bench.is_quick else 100
    steps = {model: training_step(model, bench.is_quick) for model in ("small", "mlp")}

    def times(step: Callable[[], Any], count: int = count, warm: int = 0) -> list[float]:
        found = []
        for _ in range(warm + count):
            started = time.process_time()
            step()
            found.append(time.process_time() - started)
        return found[warm:]

    with scratch() as folder:
        numbers: dict[str, Any] = {"saved_data": "statistic", "statistic_category": COLUMNS}
        every = write_config(folder, "all", **numbers)
        none = write_config(folder, "all", name="none", dump_mode=1, kernels=["Default/none-op0"], **numbers)
        first = write_config(folder, "0", name="first", **numbers)
        cases = {"small": every, "small_none": none, "mlp": every, "idle": first, "mode": every}
        for step in steps.values():
            times(step)
        for _ in range(100):
            values: dict[str, Sample] = {}
            for name, config in cases.items():
                if name != "mode" and not has_compiled_observer():
                    continue
                step = steps["mlp" if name == "mlp" else "small"]
                plain = times(step)
                with observer(name != "mode"), msdump.watch(config=config):
                    # Those under a dispatch mode take as long as twenty plain ones.
                    dumped = times(step, count // 5 if name == "mode" else count, 2 + WARM)
                shutil.rmtree(config.with_suffix(""), ignore_errors=True)
                values[f"{name}_shortest"] = min(dumped), min(plain)
                values[f"{name}_median"] = statistics.median(dumped), statistics.median(plain)
            yield values


@row(
    "eager-small-tensors",
    SECTION,
    {
        "native": Line("tensors to tmpfs, small transformer, compiled observer: added time", SAVE, "<= 0.5"),
        "mode": Line("the same, dispatch mode: added time", SAVE, "<= 1.0"),
    },
)  # fmt: skip
def small_tensors(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Steps of a dump that goes on, after the first ones, beside `np.save` of the arrays of as many steps."""
    import numpy as np

    import msdump
    from benchmarks.torch_models import training_step

    step = training_step("small", bench.is_quick)
    count = 4

    def steps() -> float:
        for _ in range(WARM):
            step()
        return timed(lambda: [step() for _ in range(count)])

    with scratch() as folder:
        config = write_config(folder, "all")

        def dumped(is_compiled: bool) -> float:
            shutil.rmtree(config.with_suffix(""), ignore_errors=True)
            with observer(is_compiled), msdump.watch(config=config):
                return steps()

        dumped(False)
        arrays = [np.load(path) for path in config.with_suffix("").glob(f"rank_0/Net/*/{WARM}/*.npy")]

        def saved() -> None:
            target = folder / "saved"
            shutil.rmtree(target, ignore_errors=True)
            for number in range(count):
                (target / str(number)).mkdir(parents=True)
                for index, array in enumerate(arrays):
                    np.save(target / str(number) / f"{index}.npy", array)

        for _ in range(100):
            values: dict[str, Sample] = {"mode": (dumped(False), steps(), timed(saved))}
            if has_compiled_observer():
                values["native"] = dumped(True), steps(), timed(saved)
            yield values


MODELS = ("small", "alexnet", "resnet50", "transformer")


@row(
    "eager-observer",
    SECTION,
    {
        f"{model}-{name}": Line(f"compiled observer alone, {model}: {what}", PLAIN)
        for model in MODELS
        for name, what in (("seen", "callbacks and records"), ("measured", "these, and statistics"))
    },
    seconds=90.0,
)
def compiled_observer(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """What the compiled part adds to a step, before anybody reads what it has found."""
    from benchmarks.torch_models import training_step

    if not has_compiled_observer():
        raise NotMeasurableError("needs msdump-native")
    import msdump_native

    steps = {model: training_step(model, bench.is_quick) for model in MODELS}

    def seen(step: Callable[[], Any], measures: bool) -> float:
        watching = msdump_native.Observer(measures=measures)
        watching.enable()
        try:
            return timed(step)
        finally:
            watching.disable()

    for step in steps.values():
        step()
    for _ in range(100):
        values: dict[str, Sample] = {}
        for model, step in steps.items():
            for name in ("seen", "measured"):
                values[f"{model}-{name}"] = seen(step, name == "measured"), timed(step)
        yield values


def _watched(model: str, saved_data: str) -> None:
    is_statistic = saved_data == "statistic"
    what = "statistics without MD5" if is_statistic else "tensors to tmpfs"
    lines = {
        "step": Line(f"{what} of every operator, {model}", PLAIN, "<= 1.25" if is_statistic else ""),
        "probe": Line(f"{model}: mindstudio-probe 26.2, level mix, {saved_data}", "a plain step there"),
        "added": Line(f"{what}, {model}: added time", PROBE, "<= 0.33" if is_statistic else "<= 0.20"),
    }
    if is_statistic:
        lines["native"] = Line(f"{what} of every operator, {model}, compiled observer", PLAIN, NATIVE_AIMS[model])
        lines["native_added"] = Line(f"{what}, {model}, compiled observer: added time", PROBE, "<= 0.10")

    @row(f"eager-{saved_data}-{model}", SECTION, lines)
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        """Every ATen operator of a few steps.

        Statistics: of a dump that goes on, after the first steps, which name operators. Tensors: with the time that the
        end of a dump takes, as the files of several steps may not fit into memory.
        """
        import msdump
        from benchmarks.torch_models import training_step

        with scratch() as folder, ExitStack() as stack:
            columns: dict[str, Any] = {"statistic_category": COLUMNS} if is_statistic else {}
            config = write_config(
                folder, "all", saved_data=saved_data, is_sync=is_statistic, **_format(is_statistic), **columns
            )
            step, probe = training_step(model, bench.is_quick), _probe(stack, bench, folder, model, saved_data)
            count = STEPS if is_statistic else 1

            def steps() -> float:
                return timed(lambda: [step() for _ in range(count)])

            def dumped(is_compiled: bool) -> float:
                with observer(is_compiled):
                    started = time.perf_counter()
                    with msdump.watch(config=config):
                        for _ in range(NAMING if is_statistic else 0):
                            step()
                        seconds = steps()
                    if not is_statistic:
                        seconds = time.perf_counter() - started
                shutil.rmtree(folder / "dump")
                return seconds

            has_native = is_statistic and has_compiled_observer()
            steps(), dumped(False)
            for _ in range(100):
                base, cost = steps(), dumped(False)
                values: dict[str, Sample] = {"step": (cost, base)}
                if has_native:
                    native_base, native = steps(), dumped(True)
                    values["native"] = native, native_base
                if probe is not None:
                    there, probed = probe.turn()
                    values |= {"probe": (probed, there), "added": (cost / count, base / count, probed, there)}
                    if has_native:
                        values["native_added"] = native / count, native_base / count, probed, there
                yield values


def _format(is_sync: bool) -> dict[str, str]:
    return {} if is_sync else {"file_format": "npy"}


def _probe(stack: ExitStack, bench: Bench, folder: Path, model: str, saved_data: str) -> Worker | None:
    """A process with mindstudio-probe; None where it is not installed."""
    with contextlib.suppress(NotMeasurableError):
        python, task = bench.peer("msprobe"), "statistics" if saved_data == "statistic" else "tensor"
        arguments: dict[str, Any] = {
            "model": model,
            "is_quick": bench.is_quick,
            "folder": str(folder),
            "task": task,
            "level": "mix",
        }
        return stack.enter_context(Worker("probed_step", python, **arguments))
    return None


for _model in ("alexnet", "resnet50", "transformer"):
    _watched(_model, "statistic")
    _watched(_model, "tensor")


@row(
    "recorder",
    SECTION,
    {
        "statistics": Line("flight recorder, statistics of a transformer", "the same without a recorder", "<= 1.05"),
        "tensors": Line("flight recorder, tensors of a transformer's last 2 steps: added time",
                        "write() of the same bytes as new files", "<= 1.2"),
    },
)  # fmt: skip
def recorder(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """A ring in tmpfs that is full and that nothing triggers: a job runs for hours with it."""
    import msdump
    from benchmarks.torch_models import training_step

    step = training_step("transformer", bench.is_quick)
    with scratch() as folder:
        tensors = write_config(folder, "all", name="tensors", statistic_category=COLUMNS)
        numbers = write_config(folder, "all", name="numbers", saved_data="statistic", statistic_category=COLUMNS)
        with msdump.watch(config=tensors):
            _seconds(step, 1)
        sizes = distinct_sizes((folder / "tensors/rank_0/Net").glob("*/1/*.npy"))
        shutil.rmtree(folder / "tensors")
        bench.notes["tensors"] = gigabytes(sizes)
        only_statistics = {"saved_data": "statistic", "statistic_category": COLUMNS}

        def alone() -> float:
            with msdump.watch(config=numbers):
                seconds = _seconds(step, STEPS)
            shutil.rmtree(folder / "numbers")
            return seconds

        def recorded(name: str, **settings: Any) -> float:
            with msdump.recorder(folder / name, ring=folder, **settings), msdump.watch():
                _seconds(step, 6)
                seconds = _seconds(step, STEPS)
            shutil.rmtree(folder / name, ignore_errors=True)
            return seconds

        for _ in range(100):
            base, numbers_alone, idle = _seconds(step, STEPS), alone(), recorded("idle", config=only_statistics)
            cost, written = recorded("all", steps=2, statistics=0), _write(folder, sizes)
            yield {"statistics": (idle, numbers_alone), "tensors": (cost, base, written)}


def _seconds(step: Callable[[], Any], count: int) -> float:
    """Of one step, the first of which waits for whatever runs before."""
    step()
    return timed(lambda: [step() for _ in range(count)]) / count


def _write(folder: Path, sizes: list[int]) -> float:
    """The distinct bytes of steps as new files; two steps are there at a time."""
    block = memoryview(bytes(max(sizes)))
    started = time.perf_counter()
    for number in range(STEPS):
        target = folder / f"written{number % 2}"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for index, size in enumerate(sizes):
            handle = os.open(target / str(index), os.O_CREAT | os.O_WRONLY, 0o600)
            os.write(handle, block[:size])
            os.close(handle)
    for number in range(2):
        shutil.rmtree(folder / f"written{number}")
    return (time.perf_counter() - started) / STEPS
