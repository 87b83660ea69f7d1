"""Synchronous dumps of MindSpore programs: tensors, statistics, overflow, memory, and no dump at all."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dump_config import configure, odd_iterations, statistic_columns
from benchmarks.mindspore_steps import alexnet_step, lenet_step
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import BareWriter, distinct_sizes, gigabytes, in_turns, scratch, settle, timed
from benchmarks.workers import Worker

SECTION = "MindSpore programs"
BARE = "bare write() of the distinct bytes"
PLAIN = "a plain step"


def alexnet_batch(bench: Bench) -> int:
    return 4 if bench.is_quick else 32


def _tensors(bench: Bench, medium: str) -> Iterator[Mapping[str, Sample]]:
    """Dumped and plain steps in turn; the distinct files of each dumped step are written again by bare write()."""
    with scratch(medium) as folder:
        configure(folder, odd_iterations())
        step, writer = alexnet_step(alexnet_batch(bench)), BareWriter(folder)
        plan = (folder / "dump/rank_0/Net/0").glob
        for _ in range(5):
            step()
        _remove(plan("[0-9]*"))
        while True:
            settle()
            dumped, plain = timed(step), timed(step)
            (done,) = plan("[0-9]*")
            sizes, named = distinct_sizes(done.iterdir()), sum(path.stat().st_size for path in done.iterdir())
            shutil.rmtree(done)
            settle()
            bare = writer.seconds(sizes)
            bench.notes["added"] = f"{gigabytes(sizes)}; a plain step {plain:.2f} s, dumped {dumped:.2f} s"
            bench.notes["bytes"] = f"{named / 1e9:.2f} GB of names"
            yield {"added": (dumped, plain, bare), "bytes": sum(sizes) / named}


def _remove(folders: Iterator[Path]) -> None:
    for folder in list(folders):
        shutil.rmtree(folder)


@row(
    "sync-tensors",
    SECTION,
    {
        "added": Line("every input and output of AlexNet, batch 32, to tmpfs: added time of a step", BARE, "<= 1.0"),
        "bytes": Line("bytes on disk", "bytes named", "<= 0.5"),
    },
)
def sync_tensors(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _tensors(bench, "tmpfs")


@row(
    "sync-tensors-disk",
    SECTION,
    {"added": Line("the same to a disk", BARE, "<= 0.5")},
    seconds=180,
)
def sync_tensors_disk(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return ({"added": values["added"]} for values in _tensors(bench, "disk"))


def _statistics(make: Callable[[], Callable[[], Any]], times: int, **common: Any) -> Iterator[Mapping[str, Sample]]:
    """Steps that only write statistic.csv, and plain ones, in turn."""
    with scratch() as folder:
        configure(folder, odd_iterations(), saved_data="statistic", **common)
        step = make()
        for _ in range(5):
            step()
        while True:
            pairs = [(timed(step), timed(step)) for _ in range(times)]
            yield {"step": (statistics.median(one for one, _ in pairs), statistics.median(two for _, two in pairs))}
            _remove((folder / "dump/rank_0/Net/0").glob("[0-9]*"))


@row("sync-statistics", SECTION, {"step": Line("statistics of AlexNet, every column, a step", PLAIN, "<= 1.20")})
def sync_statistics(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _statistics(lambda: alexnet_step(alexnet_batch(bench)), 1, statistic_category=statistic_columns())


@row("sync-statistics-no-md5", SECTION, {"step": Line("the same without the MD5 column", PLAIN, "<= 1.08")})
def sync_statistics_no_md5(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _statistics(lambda: alexnet_step(alexnet_batch(bench)), 1, statistic_category=statistic_columns("md5"))


@row("lenet", SECTION, {"step": Line("statistics of LeNet-5, batch 32, whose operators take microseconds", PLAIN)})
def lenet(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _statistics(lambda: lenet_step(32), 20, statistic_category=statistic_columns())


@row("lenet-no-md5", SECTION, {"step": Line("the same without the MD5 column", PLAIN)})
def lenet_no_md5(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    return _statistics(lambda: lenet_step(32), 20, statistic_category=statistic_columns("md5"))


@row("overflow", SECTION, {"step": Line("overflow detection, nothing found, AlexNet", PLAIN, "<= 1.15")})
def overflow(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Every operator watched in every second step."""
    with scratch("disk") as folder:
        configure(folder, odd_iterations(), is_sync=False, op_debug_mode=3)
        step = alexnet_step(alexnet_batch(bench))
        for _ in range(3):
            step()
        while True:
            watched, plain = timed(step), timed(step)
            yield {"step": (watched, plain)}


@row(
    "memory",
    SECTION,
    {"peak": Line("peak memory that a synchronous dump of AlexNet adds", "the distinct tensors of a step", "<= 1.2")},
    least=3,
    most=5,
)
def memory(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    while True:
        peaks = []
        for is_dumped in (False, True):
            with Worker("alexnet_peak", batch=alexnet_batch(bench), is_dumped=is_dumped) as worker:
                peaks.append(worker.first)
        (plain, _), (dumped, distinct) = peaks
        yield {"peak": (dumped - plain) / distinct}


@row("no-dump", SECTION, {"step": Line("200 small operators, no dump", "the same kernels called in a loop", "<= 1.02")})
def no_dump(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """A small network, where the cost of code around operators would show."""
    import msdump.mindspore.kernels  # noqa: F401
    from msdump.graph.graph import Graph
    from msdump.graph.primitive import Primitive
    from msdump.graph.types import TensorType
    from msdump.mindspore.program.compile import finish
    from msdump.mindspore.program.executor import Executor

    graph = Graph()
    value = graph.add_input("x", TensorType("float32", (64, 64)))
    for _ in range(200):
        value = graph.add_node(Primitive("ReLU"), [value], "Default").outputs[0]
    graph.outputs = [value]
    executor = Executor(finish(graph))
    x = [np.ones((64, 64), np.float32)]
    launches = [(launch.kernel, launch.inputs, launch.attrs, launch.outputs) for launch in executor.launches]
    buffer, out = executor.memory.array(graph.inputs[0]), executor.memory.array(graph.outputs[0])

    def without_observer_code() -> None:
        np.copyto(buffer, x[0])
        for kernel, inputs, attrs, outputs in launches:
            kernel(inputs, attrs, outputs)
        out.copy()

    for ours, bare in in_turns(lambda: executor.run(x), without_observer_code, times=50):
        yield {"step": (ours, bare)}
