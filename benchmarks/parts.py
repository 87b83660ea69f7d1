"""The measurements behind run.py; each prints its rows as JSON lines."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def row(what: str, ratio: float, aim: str, against: str) -> None:
    print(json.dumps({"what": what, "ratio": ratio, "aim": aim, "against": against}), flush=True)


def timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def alternate(repetitions: int, *calls: Callable[[], Any]) -> list[float]:
    """Median seconds of each call; calls take turns so that a slow moment of the machine hits all of them."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repetitions):
        for measured, call in zip(times, calls, strict=True):
            measured.append(timed(call))
    return [statistics.median(measured) for measured in times]


# -- the AlexNet step -----------------------------------------------------------------------------


def alexnet_step(batch: int) -> Callable[[], Any]:
    """One training step of the sample's network through the MindSpore front end, with whatever dump is configured."""
    import msdump

    msdump.install_aliases()
    import mindspore as ms
    from mindspore import nn

    from msdump.samples.train_alexnet import AlexNet

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)
    net = AlexNet(10)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.standard_normal((batch, 3, 227, 227)).astype(np.float32))
    y = ms.Tensor(rng.integers(0, 10, batch).astype(np.int32))
    return lambda: step(x, y).asnumpy()


def lenet_step(batch: int) -> Callable[[], Any]:
    """One training step of LeNet-5 on images of 32 pixels, whose operators take microseconds."""
    import msdump

    msdump.install_aliases()
    import mindspore as ms
    from mindspore import nn

    class LeNet(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.Conv2d(6, 16, 5, pad_mode="valid")
            self.pool, self.relu, self.flatten = nn.MaxPool2d(2, 2), nn.ReLU(), nn.Flatten()
            self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)

        def construct(self, x: Any) -> Any:
            x = self.pool(self.relu(self.conv2(self.pool(self.relu(self.conv1(x))))))
            return self.fc3(self.relu(self.fc2(self.relu(self.fc1(self.flatten(x))))))

    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)
    net = LeNet()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.standard_normal((batch, 1, 32, 32)).astype(np.float32))
    y = ms.Tensor(rng.integers(0, 10, batch).astype(np.int32))
    return lambda: step(x, y).asnumpy()


def write_config(
    folder: Path, iterations: str, saved_data: str = "tensor", op_debug_mode: int = 0, **more: Any
) -> Path:
    settings = {
        "common_dump_settings": {
            "dump_mode": 0,
            "path": str(folder / "dump"),
            "net_name": "AlexNet",
            "iteration": iterations,
            "saved_data": saved_data,
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
            "op_debug_mode": op_debug_mode,
            **more,
        },
        "e2e_dump_settings": {"enable": not op_debug_mode, "trans_flag": True},
    }
    path = folder / "dump.json"
    path.write_text(json.dumps(settings))
    return path


@contextmanager
def scratch(base: str | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="msdump-bench-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def bare_write(folder: Path, sizes: list[int]) -> float:
    """Seconds that plain write() of blocks of these sizes takes, one file each, from warm memory."""
    source = np.ones(max(sizes), np.uint8)
    target = folder / "bare"
    target.mkdir()
    started = time.perf_counter()
    for number, size in enumerate(sizes):
        handle = os.open(target / str(number), os.O_CREAT | os.O_WRONLY, 0o600)
        view = memoryview(source)[:size]
        while view:
            view = view[os.write(handle, view) :]
        os.close(handle)
    seconds = time.perf_counter() - started
    shutil.rmtree(target)
    return seconds


def measure_sync(base: str | None, place: str, quick: bool) -> None:
    """Dumped and plain steps in turn; the distinct files of each dumped step are written again by bare write()."""
    batch, rounds = (4, 2) if quick else (32, 3)
    with scratch(base) as folder:
        odd = "|".join(str(1 + 2 * number) for number in range(1, rounds + 1))
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(write_config(folder, odd))
        step = alexnet_step(batch)
        for _ in range(3):
            step()  # iterations 0 to 2: warm; iteration 3 is dumped first
        added: list[float] = []
        bare: list[float] = []
        named = written = 0
        for number in range(1, rounds + 1):
            dumped = timed(step)
            plain = timed(step)
            done = folder / "dump/rank_0/AlexNet/0" / str(1 + 2 * number)
            distinct: dict[int, int] = {}
            for path in done.iterdir():
                status = path.stat()
                named += status.st_size
                distinct[status.st_ino] = status.st_size
            written += sum(distinct.values())
            shutil.rmtree(done)
            bare.append(bare_write(folder, list(distinct.values())))
            added.append(dumped - plain)
        row(
            f"sync dump on {place}: added time of a dumped step",
            statistics.median(added) / statistics.median(bare),
            "<= 1.3",
            f"bare write() of its {written / rounds / 1e9:.2f} GB",
        )
        row(f"sync dump on {place}: bytes on disk", written / named, "<= 0.5", "bytes named")


def part_sync_tmpfs(quick: bool) -> None:
    measure_sync("/dev/shm", "tmpfs", quick)


def part_sync_disk(quick: bool) -> None:
    measure_sync(None, "disk", quick)


def measure_statistic(quick: bool, columns: str, aim: str, **more: Any) -> None:
    batch, rounds = (4, 2) if quick else (32, 5)
    with scratch("/dev/shm") as folder:
        odd = "|".join(str(1 + 2 * number) for number in range(1, rounds + 3))
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(write_config(folder, odd, "statistic", **more))
        step = alexnet_step(batch)
        for _ in range(5):
            step()
        pairs = [(timed(step), timed(step)) for _ in range(rounds)]
        dumped, plain = zip(*pairs, strict=True)
        for name, choose in (("minimum", min), ("median", statistics.median)):
            row(f"statistics of AlexNet, {columns}: {name}", choose(dumped) / choose(plain), aim, "plain step")


def part_statistic(quick: bool) -> None:
    measure_statistic(quick, "all columns", "<= 1.20")


def part_statistic_no_md5(quick: bool) -> None:
    measure_statistic(quick, "no MD5", "<= 1.08", statistic_category=_all_but_md5())


def _all_but_md5() -> list[str]:
    from msdump.config.sections import STATISTIC_CATEGORIES

    return [category for category in STATISTIC_CATEGORIES if category != "md5"]


def part_md5(quick: bool) -> None:
    """Digests of many messages in one thread; the shortest of many runs."""
    from msdump.md5 import md5_hex, md5_many

    rng = np.random.default_rng(0)
    cases = ((16, 16 << 10), (8, 1 << 20), (16, 1 << 20), (64, 1 << 20))
    md5_many([np.zeros(1 << 20, np.uint8)] * 2)  # loads the machine code
    for count, size in cases:
        arrays = [rng.integers(0, 256, size, np.uint8) for _ in range(count)]
        ours, theirs = shortest(5 if quick else 30, partial(md5_many, arrays), partial(each, md5_hex, arrays))
        what = f"MD5 of {count} tensors of {size >> 10} KiB, {count * size / ours / 1e9:.2f} GB/s"
        row(what, theirs / ours, ">= 5", f"hashlib, {count * size / theirs / 1e9:.2f} GB/s")


def each(call: Callable[[Any], Any], items: Iterable[Any]) -> None:
    for item in items:
        call(item)


def shortest(repetitions: int, *calls: Callable[[], Any]) -> list[float]:
    """Least seconds of each call; calls take turns."""
    return [min(times) for times in zip(*([timed(call) for call in calls] for _ in range(repetitions)), strict=True)]


def measure_lenet(quick: bool, columns: str, **more: Any) -> None:
    """Steps with statistics and plain ones in turn, of a network too small to hide them."""
    rounds = 10 if quick else 100
    with scratch("/dev/shm") as folder:
        odd = "|".join(str(1 + 2 * number) for number in range(rounds + 10))
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(write_config(folder, odd, "statistic", **more))
        step = lenet_step(32)
        for _ in range(20):
            step()
        pairs = [(timed(step), timed(step)) for _ in range(rounds)]
        plain, dumped = zip(*pairs, strict=True)
        for name, choose in (("minimum", min), ("median", statistics.median)):
            row(f"statistics of LeNet-5, {columns}: {name}", choose(dumped) / choose(plain), "", "plain step")


def part_lenet(quick: bool) -> None:
    measure_lenet(quick, "all columns")


def part_lenet_no_md5(quick: bool) -> None:
    measure_lenet(quick, "no MD5", statistic_category=_all_but_md5())


def part_overflow(quick: bool) -> None:
    """Every operator watched and nothing found, in every second step."""
    batch, rounds = (4, 5) if quick else (32, 5)
    with scratch(None) as folder:
        watched_steps = "|".join(str(2 * number) for number in range(rounds + 2))
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(write_config(folder, watched_steps, op_debug_mode=3))
        step = alexnet_step(batch)
        watched, plain = alternate(rounds, step, step)
        from msdump import opening

        opened = opening.current()
        if opened is None or opened.report().overflows != ():
            raise RuntimeError("expected a watched run without an overflow")
        row("overflow detection, nothing found: step time", watched / plain, "<= 1.15", "plain step")


def part_train(quick: bool) -> None:
    import torch

    batch, rounds = (4, 3) if quick else (32, 3)
    ours = alexnet_step(batch)
    theirs = torch_step(torch, batch)
    own, torch_time = alternate(rounds, ours, theirs)
    row(f"training step on numpy kernels, batch {batch}", own / torch_time, "<= 2.0", "torch eager")


def torch_step(torch: Any, batch: int) -> Callable[[], Any]:
    layers = torch.nn
    net = layers.Sequential(
        layers.Conv2d(3, 96, 11, 4, bias=False),
        layers.ReLU(),
        layers.MaxPool2d(3, 2),
        layers.Conv2d(96, 256, 5, padding="same", bias=False),
        layers.ReLU(),
        layers.MaxPool2d(3, 2),
        layers.Conv2d(256, 384, 3, padding="same", bias=False),
        layers.ReLU(),
        layers.Conv2d(384, 384, 3, padding="same", bias=False),
        layers.ReLU(),
        layers.Conv2d(384, 256, 3, padding="same", bias=False),
        layers.ReLU(),
        layers.MaxPool2d(3, 2),
        layers.Flatten(),
        layers.Linear(9216, 4096),
        layers.ReLU(),
        layers.Linear(4096, 4096),
        layers.ReLU(),
        layers.Linear(4096, 10),
    )
    loss = layers.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), 0.01, 0.9)
    x, y = torch.randn(batch, 3, 227, 227), torch.randint(0, 10, (batch,))

    def step() -> None:
        optimizer.zero_grad()
        loss(net(x), y).backward()
        optimizer.step()

    return step


def part_off(quick: bool) -> None:
    """A small network, where the cost of code around operators would show."""
    import msdump.kernels  # noqa: F401
    from msdump.graph.compile import finish
    from msdump.graph.executor import Executor
    from msdump.graph.graph import Graph
    from msdump.graph.primitive import Primitive
    from msdump.graph.types import TensorType

    graph = Graph()
    value = graph.add_input("x", TensorType("float32", (64, 64)))
    for _ in range(200):
        value = graph.add_node(Primitive("ReLU"), [value], "Default").outputs[0]
    graph.outputs = [value]
    executor = Executor(finish(graph))
    x = [np.ones((64, 64), np.float32)]
    launches = [(launch.kernel, launch.inputs, launch.attrs, launch.outputs) for launch in executor._launches]
    buffer, out = executor.memory.array(graph.inputs[0]), executor.memory.array(graph.outputs[0])

    def without_observer_code() -> None:
        np.copyto(buffer, x[0])
        for kernel, inputs, attrs, outputs in launches:
            kernel(inputs, attrs, outputs)
        out.copy()

    with_code, bare = alternate(50 if quick else 300, lambda: executor.run(x), without_observer_code)
    row("step without dump, 200 small operators", with_code / bare, "1.00", "the same kernels called in a loop")


def part_stats(quick: bool) -> None:
    from msdump.stats import statistics as one_pass

    size = 16 * 2**20
    array = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    ours, limit = alternate(5 if quick else 15, lambda: one_pass(array, "float32"), lambda: np.sum(array))
    row("bandwidth of one-pass statistics, 64 MiB float32", limit / ours, ">= 0.5", "np.sum")
    half = array[: size // 2].astype(np.float16)
    ours, limit = alternate(5 if quick else 15, lambda: one_pass(half, "float16"), lambda: np.sum(array[: size // 4]))
    row("bandwidth of one-pass statistics, 16 MiB float16", limit / ours, "", "np.sum of as many bytes of float32")


def part_memory(quick: bool) -> None:
    """Peak memory that a sync dump adds to a plain run, against the bytes of the distinct tensors."""
    batch = 4 if quick else 32
    peaks = []
    distinct = 1
    for is_dumped in (False, True):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            with scratch("/dev/shm") as folder:
                if is_dumped:
                    os.environ["MINDSPORE_DUMP_CONFIG"] = str(write_config(folder, "1"))
                step = alexnet_step(batch)
                for _ in range(3):
                    step()
                files = {path.stat().st_ino: path.stat().st_size for path in folder.rglob("1/*.npy")}
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            os.write(writer, json.dumps([peak, sum(files.values())]).encode())
            os._exit(0)
        os.waitpid(child, 0)
        peak, size = json.loads(os.read(reader, 1000))
        peaks.append(peak)
        distinct = max(distinct, size)
    row("peak memory of a run with sync dump", peaks[1] / distinct, "", f"its {distinct / 1e9:.2f} GB distinct tensors")
    row("peak memory that sync dump adds", (peaks[1] - peaks[0]) / distinct, "<= 1.2", "its distinct tensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("part")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    globals()[f"part_{arguments.part}"](arguments.quick)
