"""What a dump of a PyTorch model costs: `python benchmarks/torch_parts.py [--quick] [--only PART ...]`.

Each row is a ratio to the plain eager step, or to fx.Interpreter, measured in turns in the same process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx, nn
from torch._functorch.aot_autograd import aot_module_simplified
from torch.utils._python_dispatch import TorchDispatchMode
from torch_models import NAMES, training_step

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import msdump  # noqa: E402  (found through the line before)


def row(what: str, ratio: float, aim: str, against: str) -> None:
    print(json.dumps({"what": what, "ratio": ratio, "aim": aim, "against": against}), flush=True)


def show_row(command: list[str], width: int) -> bool:
    """Run a part in a process of its own and print its rows; False when it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return False
    for line in (json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")):
        print(f"{line['what']:{width}} {line['ratio']:8.2f} {line['aim']:>8}  {line['against']}", flush=True)
    return True


def alternate(repetitions: int, *calls: Callable[[], Any]) -> list[float]:
    """Median seconds of each call; calls take turns so that a slow moment of the machine hits all of them."""
    for call in calls * 2:
        call()
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repetitions):
        for measured, call in zip(times, calls, strict=True):
            started = time.perf_counter()
            call()
            measured.append(time.perf_counter() - started)
    return [statistics.median(measured) for measured in times]


def configure(folder: Path, saved_data: str, is_sync: bool, iterations: str = "all", **common: Any) -> None:
    """Let this process dump into a folder."""
    settings = {
        "common_dump_settings": {
            "dump_mode": 0,
            "path": str(folder / "dump"),
            "net_name": "Net",
            "iteration": iterations,
            "saved_data": saved_data,
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
            **({} if is_sync else {"file_format": "npy"}),
            **common,
        },
        "e2e_dump_settings": {"enable": is_sync, "trans_flag": True},
    }
    path = folder / "dump.json"
    path.write_text(json.dumps(settings))
    os.environ["MINDSPORE_DUMP_CONFIG"] = str(path)


def measure_dump(model: str, part: str, is_quick: bool, folder: Path) -> None:
    from msdump.frontends.torch import backend

    saved_data, engine = part.split("_")
    configure(folder, saved_data, engine == "sync")
    plain, dumped = training_step(model, is_quick), training_step(model, is_quick, backend)
    base, cost = alternate(3 if is_quick else 7, plain, dumped)
    row(f"torch {model}: {saved_data}, {engine}", cost / base, "<= 1.15", f"eager step, {base:.3f} s")


def measure_tensors(model: str, is_quick: bool, folder: Path) -> None:
    """All tensors, side by side: ours; np.save of each, as TorchAir does; mindstudio-probe, which is coarser."""
    from msdump.frontends.torch import backend

    configure(folder, "tensor", is_sync=False)
    (folder / "saved").mkdir()
    calls = [
        training_step(model, is_quick),
        training_step(model, is_quick, backend),
        training_step(model, is_quick, _saving_backend(folder / "saved")),
        *_probed_step(model, "tensor", is_quick, folder),
    ]
    base, ours, *others = alternate(1 if is_quick else 2, *calls)
    row(f"torch {model}: tensors, async", ours / base, "<= 1.7", f"eager step, {base:.3f} s")
    for name, cost in zip(("np.save of each tensor", "mindstudio-probe tensor"), others, strict=False):
        row(f"torch {model}: {name}", cost / base, "", "eager step")
        row(f"torch {model}: {name}, added time", (cost - base) / (ours - base), ">= 5", "what ours adds")


def measure_probe(model: str, is_quick: bool, folder: Path) -> None:
    """mindstudio-probe: statistics of what modules and functions read and wrote."""
    probed = _probed_step(model, "statistics", is_quick, folder)
    if not probed:
        print("mindstudio-probe is not installed: pip install mindstudio-probe", file=sys.stderr)
        return
    base, cost = alternate(1 if is_quick else 3, training_step(model, is_quick), *probed)
    row(f"torch {model}: mindstudio-probe statistics", cost / base, "", f"eager step, {base:.3f} s")


def _probed_step(model: str, task: str, is_quick: bool, folder: Path, level: str = "L1") -> list[Callable[[], Any]]:
    """The step under mindstudio-probe; none where it is not installed."""
    try:
        from msprobe.pytorch import PrecisionDebugger
    except ImportError:
        return []
    config = {
        "task": task,
        "dump_path": str(folder / "probe"),
        "rank": [],
        "step": [],
        "level": level,
        task: {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
    }
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    debugger = PrecisionDebugger(config_path=str(path))

    def around(module: torch.nn.Module, gradients: Callable[[], Any]) -> Any:
        debugger.start(model=module)
        loss = gradients()
        debugger.stop()
        debugger.step()
        for old in (folder / "probe").glob("step*"):
            shutil.rmtree(old)
        return loss

    return [training_step(model, is_quick, around=around)]


def measure_interpreter(is_quick: bool) -> None:
    """A chain of small operators, run by the program of the backend and by fx.Interpreter."""
    from msdump.frontends.torch.program import FxProgram

    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(200):
            x = torch.ops.aten.add.Tensor(x, 1.0)
        return x

    module = fx.symbolic_trace(chain)
    program, interpreter, x = FxProgram(module), fx.Interpreter(module), torch.zeros(4)
    times = 10 if is_quick else 50

    def ours() -> None:
        for _ in range(times):
            program.run([x])

    def theirs() -> None:
        for _ in range(times):
            interpreter.boxed_run([x])

    cost, base = alternate(5, ours, theirs)
    row(
        "torch: a node without dump", cost / base, "<= 1.2", f"fx.Interpreter, {base / times / 200 * 1e6:.1f} us a node"
    )


class _Bare(TorchDispatchMode):
    """What any look at eager operators costs."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def measure_eager_operators(is_quick: bool, folder: Path) -> None:
    """Small operators, forward and backward, where nothing of them is dumped."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(100)))
    x = torch.ones(4, 8)

    def step() -> None:
        model(x).sum().backward()

    def inside(block: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            with block():
                for _ in range(5):
                    step()

        return run

    def watched(**common: Any) -> Callable[[], Any]:
        configure(folder, "tensor", False, **common)
        path = folder / f"{len(common)}.json"
        (folder / "dump.json").rename(path)
        del os.environ["MINDSPORE_DUMP_CONFIG"]
        return lambda: msdump.watch(model, path)

    plain, off, bare, other, none = alternate(
        3 if is_quick else 15,
        inside(contextlib.nullcontext),
        inside(msdump.watch),
        inside(_Bare),
        inside(watched(iterations="1000000")),
        inside(watched(dump_mode=1, kernels=["Default/none-op0"])),
    )
    row("torch eager: no configuration", off / plain, "1.00", f"plain step, {plain / 5 * 1e3:.1f} ms")
    row("torch eager: an iteration that is not dumped", other / plain, "1.00", f"plain step, {plain / 5 * 1e3:.1f} ms")
    row("torch eager: a look at each operator", bare / plain, "", "plain step: a bare TorchDispatchMode")
    row("torch eager: no operator is selected", none / bare, "<= 1.5", "a bare TorchDispatchMode")


STEPS = 4


def measure_eager(model: str, saved_data: str, is_quick: bool, folder: Path) -> None:
    """Every ATen operator of steps, forward, backward and optimizer, with the time that the end of a dump takes."""
    is_statistic = saved_data == "statistic"
    # Without a digest, as mindstudio-probe.
    columns = {"statistic_category": ["max", "min", "avg", "l2norm"]} if is_statistic else {}
    configure(folder, saved_data, is_statistic, **columns)
    step = training_step(model, is_quick)

    def plain() -> None:
        for _ in range(STEPS):
            step()

    def dumped() -> None:
        with msdump.watch(config=folder / "dump.json"):
            plain()
        shutil.rmtree(folder / "dump")

    def repeated(once: Callable[[], Any]) -> Callable[[], None]:
        def steps() -> None:
            for _ in range(STEPS):
                once()

        return steps

    probed = [
        repeated(one)
        for one in _probed_step(model, "statistics" if is_statistic else "tensor", is_quick, folder, "mix")
    ]
    base, cost, *others = alternate(1 if is_quick else 5, plain, dumped, *probed)
    aim = "<= 1.25" if is_statistic else ""
    row(f"torch eager {model}: {saved_data}", cost / base, aim, f"eager step, {base / STEPS:.3f} s")
    for other in others:
        row(f"torch eager {model}: mindstudio-probe mix", other / base, "", "eager step")
        aim = "<= 0.33" if is_statistic else "<= 0.20"
        row(f"torch eager {model}: added time", (cost - base) / (other - base), aim, "what mindstudio-probe adds")


def measure_recorder(model: str, is_quick: bool, folder: Path) -> None:
    """A flight recorder in tmpfs that nothing triggers: with statistics alone, and with all tensors of two steps.

    Its ring is full before it is measured: a job runs for hours with it.
    """
    step = training_step(model, is_quick)
    columns = ["max", "min", "avg", "l2norm"]
    until_full = 6

    def steps(count: int) -> float:
        """Seconds of one step, the first of which waits for whatever runs before."""
        step()
        started = time.perf_counter()
        for _ in range(count):
            step()
        return (time.perf_counter() - started) / count

    def dumped(saved_data: str, times: int) -> float:
        configure(folder, saved_data, True, statistic_category=columns)
        with msdump.watch(config=folder / "dump.json"):
            return steps(times)

    def statistics_alone() -> float:
        seconds = dumped("statistic", STEPS)
        shutil.rmtree(folder / "dump")
        return seconds

    def recorded(name: str, **settings: Any) -> Callable[[], float]:
        def run() -> float:
            with msdump.recorder(folder / name, ring=folder, **settings), msdump.watch():
                steps(until_full)
                seconds = steps(STEPS)
            shutil.rmtree(folder / name)
            return seconds

        return run

    dumped("tensor", 1)
    files = {file.stat().st_ino: file for file in (folder / "dump").glob("rank_0/Net/*/1/*.npy")}
    contents = [file.read_bytes() for file in files.values()]
    shutil.rmtree(folder / "dump")

    def write() -> float:
        """The distinct bytes of a step; two of them are on the disk at a time."""
        started = time.perf_counter()
        for number in range(STEPS):
            target = folder / f"written{number % 2}"
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            for index, content in enumerate(contents):
                (target / str(index)).write_bytes(content)
        for number in range(2):
            shutil.rmtree(folder / f"written{number}")
        return (time.perf_counter() - started) / STEPS

    only_statistics = {"saved_data": "statistic", "statistic_category": columns}
    calls: list[Callable[[], float]] = [
        lambda: steps(STEPS),
        statistics_alone,
        recorded("idle", config=only_statistics),
        recorded("tensors", steps=2, statistics=0),
        write,
    ]
    rounds = [[call() for call in calls] for _ in range(2 if is_quick else 6)][1:]
    base, alone, idle, tensors, written = (statistics.median(times) for times in zip(*rounds, strict=True))
    size = sum(map(len, contents)) / 1e6
    row(f"recorder {model}: statistics", idle / alone, "<= 1.02", "the same statistics without a recorder")
    row(
        f"recorder {model}: tensors of 2 steps",
        (tensors - base) / written,
        "<= 1.2",
        f"write() of {size:.0f} MB a step, which takes {written / base:.1f} steps",
    )


class _Saver(fx.Interpreter):
    def __init__(self, module: fx.GraphModule, folder: Path) -> None:
        super().__init__(module)
        self._folder, self._step = folder, 0

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        self._step += 1
        result = super().call_function(target, args, kwargs)
        for index, value in enumerate([*args, *(result if isinstance(result, tuple) else [result])]):
            if isinstance(value, torch.Tensor):
                np.save(self._folder / f"{self._step}.{index}.npy", value.detach().numpy())
        return result


def _saving_backend(folder: Path) -> Callable[..., Any]:
    def compiler(module: fx.GraphModule, _: Any) -> Any:
        saver = _Saver(module, folder)

        def run(args: list[Any]) -> Any:
            for old in folder.glob("*.npy"):
                old.unlink()
            return saver.boxed_run(args)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return lambda module, inputs: aot_module_simplified(module, inputs, fw_compiler=compiler, bw_compiler=compiler)


ONCE = ("interpreter", "eager_operators")
PARTS = (*ONCE, "statistic_sync", "statistic_async", "tensors", "eager_statistic", "eager_tensor", "recorder", "probe")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small batches and few repetitions")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--model", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--folder", type=Path, help="where dumps go while they are measured")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            _measure(args.only[0], args.model[0], args.quick, Path(folder))
        return 0
    print(f"{'what':44} {'ratio':>8} {'aim':>8}  of what")
    for part in args.only:
        for model in args.model if part not in ONCE else args.model[:1]:
            # One process for each: a process has one dump.
            command = [sys.executable, __file__, "--inside", "--only", part, "--model", model]
            command += ["--quick"] * args.quick + (["--folder", str(args.folder)] if args.folder else [])
            if not show_row(command, 44):
                return 1
    return 0


def _measure(part: str, model: str, is_quick: bool, folder: Path) -> None:
    if part == "interpreter":
        measure_interpreter(is_quick)
    elif part == "eager_operators":
        measure_eager_operators(is_quick, folder)
    elif part.startswith("eager_"):
        measure_eager(model, part.removeprefix("eager_"), is_quick, folder)
    elif part == "recorder":
        measure_recorder(model, is_quick, folder)
    elif part == "probe":
        measure_probe(model, is_quick, folder)
    elif part == "tensors":
        measure_tensors(model, is_quick, folder)
    else:
        measure_dump(model, part, is_quick, folder)


if __name__ == "__main__":
    sys.exit(main())
