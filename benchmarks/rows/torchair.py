"""TorchAir's graph mode: steps of GE graphs, their bin dump, and debug save."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import BareWriter, gigabytes, in_turns, scratch, settle, timed
from benchmarks.workers import ROOT

SECTION = "TorchAir's graph mode"


def _backend(folder: Path, is_dumping: bool) -> Any:
    import msdump.torchair as torchair

    config = torchair.CompilerConfig()
    if is_dumping:
        config.dump_config.enable_dump = True
        config.dump_config.dump_path = str(folder)
    else:
        # What asks for the GE graph; its files are written when it is compiled.
        config.debug.graph_dump.type = "py"
        config.debug.graph_dump.path = str(folder)
    return torchair.get_npu_backend(compiler_config=config)


def _interpreting(module: Any, inputs: Any) -> Any:
    """Backend that runs forward and backward in fx.Interpreter."""
    from torch import fx
    from torch._functorch.aot_autograd import aot_module_simplified

    def compiler(graph: fx.GraphModule, _: Any) -> Any:
        interpreter = fx.Interpreter(graph)

        def run(args: list[Any]) -> Any:
            return interpreter.boxed_run(args)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return aot_module_simplified(module, inputs, fw_compiler=compiler, bw_compiler=compiler)


def _step(model: str, title: str) -> None:
    @row(f"ge-step-{model}", SECTION, {"step": Line(f"a step of GE graphs, {title}", "fx.Interpreter", "<= 1.1")})
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        from benchmarks.torch_models import training_step

        with scratch() as folder:
            graphs = training_step(model, bench.is_quick, _backend(folder, is_dumping=False))
            for ours, theirs in in_turns(graphs, training_step(model, bench.is_quick, _interpreting), warm=2):
                yield {"step": (ours, theirs)}


_step("resnet50", "ResNet-50")
_step("transformer", "transformer")


@row(
    "ge-bin",
    SECTION,
    {"added": Line("bin dump of GE graphs to tmpfs, transformer: added time", "bare write() of the same", "<= 1.2")},
)
def bin_dump(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    from benchmarks.torch_models import training_step
    from msdump.process import sessions

    with scratch() as folder:
        os.chdir(folder)  # the options of the dump are shown in a file there
        plain = training_step("transformer", bench.is_quick, _backend(folder / "graphs", is_dumping=False))
        dumped = training_step("transformer", bench.is_quick, _backend(folder, is_dumping=True))
        ranks, writer = folder / "worldsize1_global_rank0", BareWriter(folder)

        def to_the_end() -> None:
            dumped()
            sessions.flush_all()

        for number in range(1000):
            base, cost = timed(plain), timed(to_the_end)
            sizes = [path.stat().st_size for path in ranks.rglob("*.*") if path.is_file()]
            # The folders of data; those above belong to the dump that goes on.
            for step in list(ranks.glob("*/*/*/*/*")):
                shutil.rmtree(step)
            settle()
            bare = writer.seconds(sizes)
            bench.notes["added"] = f"{gigabytes(sizes)}; a step {base:.2f} s, dumped {cost:.2f} s"
            if number:
                yield {"added": (cost, base, bare)}


_FIRST_STEP = """
import sys, time
from pathlib import Path
from benchmarks.rows.torchair import _backend
from benchmarks.torch_models import training_step
model, is_quick, folder = sys.argv[1], sys.argv[2] == "1", Path(sys.argv[3])
eager = training_step(model, is_quick)
eager()
started = time.perf_counter()
eager()
step = time.perf_counter() - started
first = training_step(model, is_quick, _backend(folder, False))
started = time.perf_counter()
first()
print(time.perf_counter() - started - step)
"""


@row(
    "ge-debug-save",
    SECTION,
    {"compile": Line("compilation of a transformer with debug save", "without", "<= 2")},
    least=3,
    most=5,
)
def debug_save(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Each time in a process of its own: a compiler that has run before is quicker."""
    while True:
        saving, plain = (_first_step(bench, value) for value in ("1", "0"))
        yield {"compile": (saving, plain)}


def _first_step(bench: Bench, debug: str) -> float:
    environment = {**os.environ, "TORCH_COMPILE_DEBUG": debug, "PYTHONPATH": str(ROOT)}
    with scratch() as folder:
        command = [sys.executable, "-c", _FIRST_STEP, "transformer", str(int(bench.is_quick)), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=True)
    return float(done.stdout.split()[-1])
