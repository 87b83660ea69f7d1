"""What a worker measures: `python -m benchmarks.subjects NAME ARGUMENTS`, also in the environments of peers.

Each subject prepares itself, and gives what it has to say first and what one turn measures. Nothing of msdump is
imported here but where a subject says so.
"""

from __future__ import annotations

import json
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.dump_config import configure, odd_iterations
from benchmarks.timing import TMPFS, distinct_sizes, timed
from benchmarks.workers import answer

Subject = tuple[Any, Callable[[], Any]]


def _mindspore_models(is_peer: bool) -> Any:
    """The models on MindSpore itself, or on msdump in its place."""
    if not is_peer:
        import msdump

        msdump.install_aliases()
    from benchmarks import mindspore_models

    return mindspore_models


def mindspore_step(model: str, batch: int, is_peer: bool) -> Subject:
    """A training step. A turn is the shortest of three: threads that wait for a core lengthen some of them."""
    step = _mindspore_models(is_peer).training_step(model, batch)
    first = timed(step)
    step()
    return first, lambda: min(timed(step) for _ in range(3))


def mindspore_compile(model: str, batch: int, is_peer: bool) -> Subject:
    """The first step less a later one; there is nothing to repeat in this process."""
    step = _mindspore_models(is_peer).training_step(model, batch)
    first = timed(step)
    return first - min(timed(step) for _ in range(2)), lambda: None


def mindspore_chain(count: int, is_graph: bool, is_peer: bool) -> Subject:
    """Operators on eight numbers. A turn is the median of a few runs, for one operator."""
    call = _mindspore_models(is_peer).chain(is_graph, count)
    for _ in range(5):
        call()
    return None, lambda: statistics.median(timed(call) for _ in range(10)) / count


def mindspore_dump(model: str, batch: int, folder: str, is_peer: bool) -> Subject:
    """A dumped step of every input and output, and a plain one: seconds of both, and bytes named."""
    dump = Path(configure(Path(folder), odd_iterations()).parent, "dump")
    step = _mindspore_models(is_peer).training_step(model, batch)
    for _ in range(3):
        step()
    _remove_iterations(dump)

    def turn() -> list[float]:
        dumped, plain = timed(step), timed(step)
        size = sum(path.stat().st_size for path in dump.rglob("*.npy"))
        _remove_iterations(dump)
        return [dumped, plain, size]

    return None, turn


def alexnet_dump(batch: int, folder: str, saved_data: str, **common: Any) -> Subject:
    """A dumped step of the sample's AlexNet and a plain one: seconds of both, sizes of distinct files, and names."""
    from benchmarks.mindspore_steps import alexnet_step

    dump = Path(configure(Path(folder), odd_iterations(), saved_data=saved_data, **common).parent, "dump")
    step = alexnet_step(batch)
    for _ in range(3):
        step()
    _remove_iterations(dump)

    def turn() -> list[Any]:
        dumped, plain = timed(step), timed(step)
        files = [file for iteration in dump.glob("rank_0/Net/0/[0-9]*") for file in iteration.glob("*.npy")]
        sizes, names = distinct_sizes(files), len(files)
        _remove_iterations(dump)
        return [dumped, plain, sizes, names]

    return None, turn


def _remove_iterations(dump: Path) -> None:
    for iteration in dump.glob("rank_0/Net/*/[0-9]*"):
        shutil.rmtree(iteration)


def probed_step(model: str, is_quick: bool, folder: str, task: str, level: str) -> Subject:
    """A training step of PyTorch, plain and under mindstudio-probe."""
    from msprobe.pytorch import PrecisionDebugger

    from benchmarks.torch_models import training_step

    root = Path(folder)
    section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    config = {"task": task, "dump_path": str(root / "probe"), "rank": [], "step": [], "level": level, task: section}
    (root / "config.json").write_text(json.dumps(config))
    debugger = PrecisionDebugger(config_path=str(root / "config.json"))

    def around(module: Any, gradients: Callable[[], Any]) -> Any:
        debugger.start(model=module)
        loss = gradients()
        debugger.stop()
        debugger.step()
        return loss

    plain, probed = training_step(model, is_quick), training_step(model, is_quick, around=around)

    def turn() -> list[float]:
        seconds = [timed(plain), timed(probed)]
        for old in (root / "probe").glob("step*"):
            shutil.rmtree(old)
        return seconds

    turn()
    return None, turn


def peak_growth(kind: str, is_quick: bool, batch: int) -> Subject:
    """Bytes that three steps of ResNet-50 add to a process with its libraries loaded."""
    import torch

    from benchmarks import torch_models

    torch.conv2d(torch.ones(1, 8, 8, 8), torch.ones(8, 8, 3, 3))
    models = None if kind == "eager" else _mindspore_models(False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = (
        torch_models.training_step("resnet50", is_quick) if models is None else models.training_step("resnet50", batch)
    )
    for _ in range(3):
        step()
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before), lambda: None


def alexnet_peak(batch: int, is_dumped: bool) -> Subject:
    """Peak memory of three steps, dumped or not, and the bytes of the distinct tensors of one."""
    from benchmarks.mindspore_steps import alexnet_step

    with tempfile.TemporaryDirectory(dir=TMPFS) as folder:
        if is_dumped:
            configure(Path(folder), "1")
        step = alexnet_step(batch)
        for _ in range(3):
            step()
        distinct = sum(distinct_sizes(Path(folder).rglob("1/*.npy")))
    return [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, distinct], lambda: None


def growth(count: int, folder: str, saved_data: str) -> Subject:
    """A chain of operators: compilation, a plain step and a dumped one, the least of three, and bytes that the process
    grows by. The last dump stays."""
    models = _mindspore_models(False)
    # All graphs share one counter of iterations; the first dump of a process starts its writers.
    configure(Path(folder), "0|2|4|6", saved_data=saved_data, input_output=2)
    models.chain(True, 10)()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call = models.chain(True, count)
    first = timed(call)
    dumped, plain = [], []
    for _ in range(3):
        for earlier in Path(folder).glob("dump/rank_0/Net/*/[0-9]*"):
            shutil.rmtree(earlier)
        dumped.append(timed(call))
        plain.append(timed(call))
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    numbers = {"compile": first - min(plain), "step": min(plain), "dumped": min(dumped), "memory": grown}
    return {key: number / count for key, number in numbers.items()}, lambda: None


SUBJECTS: dict[str, Callable[..., Subject]] = {
    made.__name__: made
    for made in (
        mindspore_step, mindspore_compile, mindspore_chain, mindspore_dump, probed_step, peak_growth, alexnet_peak,
        alexnet_dump, growth,
    )
}  # fmt: skip


def main() -> None:
    name, arguments = sys.argv[1], json.loads(sys.argv[2])
    answer(*SUBJECTS[name](**arguments))


if __name__ == "__main__":
    main()
