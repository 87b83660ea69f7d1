"""Dumps of PyTorch models that are compiled with the backend `msdump`, and of a node without a dump."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.dump_config import configure
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import BareWriter, distinct_sizes, gigabytes, in_turns, scratch, settle, timed

SECTION = "PyTorch models, compiled"
EAGER = "an eager training step"
TITLES = {"alexnet": "AlexNet, batch 32", "resnet50": "ResNet-50, batch 8", "transformer": "transformer, batch 16"}


def _statistics(model: str, aim: str, is_sync: bool) -> None:
    engine = "" if is_sync else "-async"
    what = f"statistics of every operator, {TITLES[model]}{'' if is_sync else ', asynchronous engine'}"

    @row(f"torch-statistics{engine}-{model}", SECTION, {"step": Line(what, EAGER, aim)})
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        from benchmarks.torch_models import training_step
        from msdump.frontends.torch import backend

        with scratch() as folder:
            file_format = {} if is_sync else {"file_format": "npy"}
            configure(folder, "all", is_sync, saved_data="statistic", **file_format)
            plain, dumped = training_step(model, bench.is_quick), training_step(model, bench.is_quick, backend)
            for base, cost in in_turns(plain, dumped, warm=2):
                yield {"step": (cost, base)}


for _model, _aim in (("alexnet", "<= 1.06"), ("resnet50", "<= 1.15"), ("transformer", "<= 1.12")):
    _statistics(_model, _aim, is_sync=True)
    _statistics(_model, "", is_sync=False)


def _tensors(model: str, aim: str) -> None:
    what = f"every input and output to tmpfs, {TITLES[model]}: added time"

    @row(f"torch-tensors-{model}", SECTION, {"added": Line(what, "bare write() of the distinct bytes", aim)})
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        from benchmarks.torch_models import training_step
        from msdump.frontends.torch import backend

        with scratch() as folder:
            configure(folder, "all")
            plain, dumped = training_step(model, bench.is_quick), training_step(model, bench.is_quick, backend)
            writer, is_warm = BareWriter(folder), 0
            while True:
                base, cost = timed(plain), timed(dumped)
                sizes = distinct_sizes((folder / "dump").rglob("*.npy"))
                for iteration in list((folder / "dump").glob("rank_0/Net/*/[0-9]*")):
                    shutil.rmtree(iteration)
                settle()
                bare = writer.seconds(sizes)
                bench.notes["added"] = f"{gigabytes(sizes)}; an eager step {base:.2f} s, dumped {cost:.2f} s"
                is_warm += 1
                if is_warm > 2:
                    yield {"added": (cost, base, bare)}


for _model in TITLES:
    _tensors(_model, "<= 1.1")


@row(
    "torch-savers",
    SECTION,
    {"save": Line("every tensor of AlexNet, batch 32: added time", "np.save of each operand and result", "<= 0.2")},
    least=3,
)
def savers(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Beside np.save of each tensor, as TorchAir does it."""
    from benchmarks.torch_models import training_step
    from msdump.frontends.torch import backend

    with scratch() as folder:
        configure(folder, "all")
        (folder / "saved").mkdir()
        steps = [
            training_step("alexnet", bench.is_quick),
            training_step("alexnet", bench.is_quick, backend),
            training_step("alexnet", bench.is_quick, _saving_backend(folder / "saved")),
        ]
        for base, ours, saved in in_turns(*steps):
            yield {"save": (ours, base, saved, base)}
            for iteration in list((folder / "dump").glob("rank_0/Net/*/[0-9]*")):
                shutil.rmtree(iteration)


def _saving_backend(folder: Path) -> Callable[..., Any]:
    """A backend that saves each operand and each result with np.save, over the files of the step before."""
    import numpy as np
    import torch
    from torch import fx
    from torch._functorch.aot_autograd import aot_module_simplified

    class Saver(fx.Interpreter):
        step = 0

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            self.step += 1
            result = super().call_function(target, args, kwargs)
            for index, value in enumerate([*args, *(result if isinstance(result, tuple) else [result])]):
                if isinstance(value, torch.Tensor):
                    np.save(folder / f"{self.step}.{index}.npy", value.detach().numpy())
            return result

    def compiler(module: fx.GraphModule, _: Any) -> Any:
        saver = Saver(module)

        def run(args: list[Any]) -> Any:
            for old in folder.glob("*.npy"):
                old.unlink()
            return saver.boxed_run(args)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return lambda module, inputs: aot_module_simplified(module, inputs, fw_compiler=compiler, bw_compiler=compiler)


@row("torch-no-dump", SECTION, {"node": Line("200 small operators, no dump", "fx.Interpreter", "<= 1.2")})
def no_dump(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """A chain of small operators, run by the program of the backend and by fx.Interpreter."""
    import torch
    from torch import fx

    from msdump.frontends.torch.program import FxProgram

    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(200):
            x = torch.ops.aten.add.Tensor(x, 1.0)
        return x

    module = fx.symbolic_trace(chain)
    program, interpreter, x = FxProgram(module), fx.Interpreter(module), torch.zeros(4)
    for ours, theirs in in_turns(lambda: program.run([x]), lambda: interpreter.boxed_run([x]), times=50):
        bench.notes["node"] = f"{theirs / 200 * 1e6:.1f} µs a node"
        yield {"node": (ours, theirs)}
