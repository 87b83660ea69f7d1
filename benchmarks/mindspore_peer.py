"""Training steps, small operators, compilation and memory beside MindSpore itself and torch eager:
`python benchmarks/mindspore_peer.py --mindspore PYTHON [--quick] [--only NAME ...]`.

MindSpore needs an environment of its own: `python -m venv ms && ms/bin/pip install mindspore==2.7.0`, and then
`--mindspore ms/bin/python`. Without it the rows print seconds, and ratios only to what else there is. Each measurement
is a process; those of one row take turns, and the minimum and the median are over all steps of all turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MODELS = ("lenet", "alexnet", "resnet50", "transformer")
PARTS = (*MODELS, "operators", "compile", "memory")
AIMS = {"torch": 1.0, "numpy": 2.0}
# Batch of the row of memory, as in torch_models.py.
MEMORY_BATCH = 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--mindspore", metavar="PYTHON", type=os.path.abspath, help="interpreter of an environment with MindSpore 2.7"
    )
    parser.add_argument("--quick", action="store_true", help="small batch and one turn")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="rows to measure")
    parser.add_argument("--turns", type=int, default=2, help="processes of each kind for a row")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each process measures steps")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        _measure(*args.measure, args.quick, args.seconds)
        return 0
    if args.mindspore is None:
        print(
            "no --mindspore: python -m venv ms && ms/bin/pip install mindspore==2.7.0, then --mindspore ms/bin/python"
        )
    for part in args.only or PARTS:
        if part in MODELS:
            _step_rows(part, args)
        elif part == "operators":
            _operator_rows(args)
        elif part == "compile":
            _compile_row(args)
        else:
            _memory_row(args)
    return 0


# -- rows ------------------------------------------------------------------------------------------


def _step_rows(model: str, args: argparse.Namespace) -> None:
    kinds = [*(["mindspore"] if args.mindspore else []), "torch", "numpy"]
    times = _in_turns(model, kinds, args)
    peer = times.get("mindspore")
    if peer:
        print(f"{model}: a step of MindSpore: {_seconds(peer)}")
    for kind, aim in AIMS.items():
        ratio = f", {_ratio(times[kind], peer)}, aim {aim:g}" if peer else ""
        print(f"{model}: a step on {kind} kernels: {_seconds(times[kind])}{ratio}", flush=True)


def _operator_rows(args: argparse.Namespace) -> None:
    kinds = [*(["mindspore"] if args.mindspore else []), "torch", "numpy"]
    for part, aim in (("graph", 5), ("pynative", 30)):
        for kind, times in _in_turns(part, kinds, args).items():
            each = [f"{1e6 * pick(times) / 1000:.1f}" for pick in (min, statistics.median)]
            limit = "" if kind == "mindspore" else f", aim {aim}"
            print(
                f"{part}: µs for each of 1000 tiny operators, {kind}: min {each[0]}, median {each[1]}{limit}",
                flush=True,
            )


def _compile_row(args: argparse.Namespace) -> None:
    kinds = [*(["mindspore"] if args.mindspore else []), "torch"]
    for kind, times in _in_turns("compile", kinds, args).items():
        limit = "" if kind == "mindspore" else ", aim 3 s"
        print(f"compile: first step of ResNet-50 less a later one, {kind}: {_seconds(times)}{limit}", flush=True)


def _memory_row(args: argparse.Namespace) -> None:
    grown = _in_turns("memory", ["torch", "numpy", "eager"], args)
    eager = min(grown["eager"])
    print(f"memory: peak growth of three steps of ResNet-50 in torch eager: {eager / 2**20:.0f} MiB")
    for kind in AIMS:
        print(f"memory: the same on {kind} kernels: ratio {min(grown[kind]) / eager:.2f}, aim 1.2", flush=True)


def _seconds(times: list[float]) -> str:
    return f"min {min(times):.4f} s, median {statistics.median(times):.4f} s"


def _ratio(times: list[float], peer: list[float]) -> str:
    best, usual = min(times) / min(peer), statistics.median(times) / statistics.median(peer)
    return f"ratio {best:.2f} of minima, {usual:.2f} of medians"


def _in_turns(part: str, kinds: list[str], args: argparse.Namespace) -> dict[str, list[float]]:
    """Kind -> what its processes measured; kinds take turns so that a slow moment of the machine hits all of them."""
    measured: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(1 if args.quick else args.turns):
        for kind in kinds:
            measured[kind] += _process(part, kind, args)
    return measured


def _process(part: str, kind: str, args: argparse.Namespace) -> list[float]:
    python = args.mindspore if kind == "mindspore" else sys.executable
    command = [python, str(HERE / "mindspore_peer.py"), "--measure", part, kind, "--seconds", str(args.seconds)]
    env = {**os.environ, "MSDUMP_KERNELS": kind if kind in AIMS else "auto"}
    if kind != "mindspore":
        env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), env.get("PYTHONPATH", "")])
    command += ["--quick"] if args.quick else []
    with tempfile.TemporaryDirectory() as folder:  # MindSpore leaves files where it runs
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{part}, {kind}: failed\n{done.stderr}")
    return [float(number) for number in json.loads(done.stdout.splitlines()[-1])]


# -- one process -----------------------------------------------------------------------------------


def _measure(part: str, kind: str, is_quick: bool, seconds: float) -> None:
    """Print the list of what was measured as the last line: seconds, or bytes for memory."""
    if part == "memory":
        print(json.dumps([_peak_growth(kind, is_quick)]))
        return
    models = _models(kind)
    if part in ("graph", "pynative"):
        call = models.chain(part == "graph")
    else:
        model = "resnet50" if part == "compile" else part
        call = models.training_step(model, 2 if is_quick or part == "compile" else models.BATCHES[model])
    first = _timed(call)
    _timed(call)
    limit = time.perf_counter() + (0.0 if is_quick else seconds)
    times = [_timed(call) for _ in range(3)]
    while time.perf_counter() < limit and len(times) < 1000:
        times.append(_timed(call))
    print(json.dumps([first - min(times)] if part == "compile" else times))


def _models(kind: str) -> Any:
    if kind != "mindspore":
        import msdump

        msdump.install_aliases()
    import mindspore_models

    return mindspore_models


def _peak_growth(kind: str, is_quick: bool) -> float:
    """Bytes that the process grew by over what it was with its libraries loaded."""
    import torch
    import torch_models

    torch.conv2d(torch.ones(1, 8, 8, 8), torch.ones(8, 8, 3, 3))
    make: Callable[[], Callable[[], Any]]
    if kind == "eager":
        make = lambda: torch_models.training_step("resnet50", is_quick)  # noqa: E731
    else:
        models = _models(kind)
        make = lambda: models.training_step("resnet50", 2 if is_quick else MEMORY_BATCH)  # noqa: E731
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = make()
    for _ in range(3):
        step()
    return 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
