"""What TorchAir's graph mode costs: `python benchmarks/torchair.py [--quick] [--only PART ...] [--model NAME ...]`.

ge_step      a training step that runs GE graphs, over one that runs the same FX graphs in fx.Interpreter
debug_save   the first step of a model, compilation included, with TORCH_COMPILE_DEBUG=1, over the same without it
bin          what `dump_config` adds to a step, over bare write() of the same bytes to the same place
"""

from __future__ import annotations

import argparse
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

import torch
from torch import fx
from torch._functorch.aot_autograd import aot_module_simplified
from torch_models import NAMES, training_step
from torch_parts import alternate, row, show_row

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def interpreting(module: fx.GraphModule, inputs: Any) -> Any:
    """Backend that runs forward and backward in fx.Interpreter."""

    def compiler(graph: fx.GraphModule, _: Any) -> Any:
        interpreter = fx.Interpreter(graph)

        def run(args: list[Any]) -> Any:
            return interpreter.boxed_run(args)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return aot_module_simplified(module, inputs, fw_compiler=compiler, bw_compiler=compiler)


def measure_ge_step(model: str, is_quick: bool, folder: Path) -> None:
    import msdump.torchair as torchair

    config = torchair.CompilerConfig()
    # What asks for the GE graph; its files are written when it is compiled.
    config.debug.graph_dump.type = "py"
    config.debug.graph_dump.path = str(folder)
    ge = training_step(model, is_quick, torchair.get_npu_backend(compiler_config=config))
    base, cost = alternate(3 if is_quick else 7, training_step(model, is_quick, interpreting), ge)
    row(f"torchair {model}: step of the GE graph", cost / base, "<= 1.3", f"fx.Interpreter, {base:.3f} s")


def measure_bin(model: str, is_quick: bool, folder: Path) -> None:
    import msdump.torchair as torchair

    from msdump import sessions

    def backend(is_dumping: bool) -> Any:
        config = torchair.CompilerConfig()
        if is_dumping:
            config.dump_config.enable_dump = True
            config.dump_config.dump_path = str(folder)
        else:
            config.debug.graph_dump.type = "py"
            config.debug.graph_dump.path = str(folder / "graphs")
        return torchair.get_npu_backend(compiler_config=config)

    plain, dumped = training_step(model, is_quick, backend(False)), training_step(model, is_quick, backend(True))
    os.chdir(folder)  # the options of the dump are shown in a file there
    ranks = folder / "worldsize1_global_rank0"

    def without_files() -> None:
        plain()

    def with_files() -> None:
        dumped()

    def write_bare() -> None:
        (folder / "bare").mkdir()
        for number, size in enumerate(sizes):
            with open(folder / "bare" / str(number), "wb", buffering=0) as file:
                file.write(block[:size])

    for call in (plain, dumped):
        call()
    sessions.flush_all()
    sizes = [path.stat().st_size for path in ranks.rglob("*.*") if path.is_file()]
    _remove_steps(ranks)
    block = memoryview(bytes(max(sizes)))
    times: list[list[float]] = [[], [], []]
    for _ in range(2 if is_quick else 3):
        for measured, call in zip(times, (without_files, with_files, write_bare), strict=True):
            started = time.perf_counter()
            call()
            if call is with_files:
                sessions.flush_all()
            measured.append(time.perf_counter() - started)
            shutil.rmtree(folder / "bare", ignore_errors=True)
            _remove_steps(ranks)
    base, cost, bare = map(statistics.median, times)
    row(
        f"torchair {model}: bin dump, added time",
        (cost - base) / bare,
        "<= 1.0",
        f"bare write() of {sum(sizes) / 1e9:.2f} GB in {len(sizes)} files, {bare:.3f} s",
    )


def _remove_steps(rank: Path) -> None:
    """The folders of data; those above belong to the dump that goes on."""
    for step in rank.glob("*/*/*/*/*"):
        shutil.rmtree(step)


def measure_debug_save(model: str, is_quick: bool, folder: Path) -> None:
    """Each time in a process of its own: a compiler that has run before is quicker."""
    ratios: list[float] = []
    for _ in range(3):
        plain, saving = (_first_step(model, is_quick, folder, value) for value in ("0", "1"))
        ratios.append(saving / plain)
    row(f"torchair {model}: compilation with debug save", statistics.median(ratios), "<= 2", f"without, {plain:.2f} s")


_FIRST_STEP = """
import sys, time
import msdump.torchair as torchair
from torch_models import training_step
config = torchair.CompilerConfig()
# Both make the GE graph.
config.debug.graph_dump.type = "py"
config.debug.graph_dump.path = sys.argv[3]
backend = torchair.get_npu_backend(compiler_config=config)
eager = training_step(sys.argv[1], sys.argv[2] == "1")
eager()
started = time.perf_counter()
eager()
step = time.perf_counter() - started
first = training_step(sys.argv[1], sys.argv[2] == "1", backend)
started = time.perf_counter()
first()
print(time.perf_counter() - started - step)
"""


def _first_step(model: str, is_quick: bool, folder: Path, debug: str) -> float:
    environment = {
        **os.environ,
        "TORCH_COMPILE_DEBUG": debug,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")]),
    }
    command = [sys.executable, "-c", _FIRST_STEP, model, str(int(is_quick)), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=True)
    return float(done.stdout.split()[-1])


PARTS: dict[str, Callable[[str, bool, Path], None]] = {
    "ge_step": measure_ge_step,
    "debug_save": measure_debug_save,
    "bin": measure_bin,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small batches and few repetitions")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--model", nargs="+", choices=NAMES, default=["resnet50", "transformer"])
    parser.add_argument("--folder", type=Path, help="where files go while they are measured")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            PARTS[args.only[0]](args.model[0], args.quick, Path(folder))
        return 0
    print(f"{'what':52} {'ratio':>8} {'aim':>8}  of what")
    for part in args.only:
        for model in args.model:
            command = [sys.executable, __file__, "--inside", "--only", part, "--model", model]
            command += ["--quick"] * args.quick + (["--folder", str(args.folder)] if args.folder else [])
            if not show_row(command, 52):
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
