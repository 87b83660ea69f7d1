"""Beside MindSpore 2.7 for CPUs: steps, dumps, small operators, compilation, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import scratch
from benchmarks.workers import Worker

SECTION = "Beside MindSpore"
BATCHES = {"lenet": 64, "alexnet": 32, "resnet50": 16, "transformer": 16}
TITLES = {
    "lenet": "LeNet-5, batch 64",
    "alexnet": "AlexNet, batch 32",
    "resnet50": "ResNet-50, 224 pixels, batch 16",
    "transformer": "a transformer of four layers, batch 16",
}
AIMS = {"torch": "<= 1.0", "numpy": "<= 1.5"}
PEER = "MindSpore 2.7 on the CPU"


def _workers(
    stack: ExitStack, bench: Bench, subject: str, kinds: tuple[str, ...], **arguments: Any
) -> dict[str, Worker]:
    """One process of each kind: MindSpore itself, and msdump with either library of kernels."""
    workers = {}
    for kind in kinds:
        is_peer = kind == "mindspore"
        where: dict[str, Any] = {"environ": {"MSDUMP_KERNELS": kind}}
        if is_peer:
            where = {"python": bench.peer("mindspore")}
        workers[kind] = stack.enter_context(Worker(subject, is_peer=is_peer, **where, **arguments))
    return workers


def _steps(model: str) -> None:
    lines = {kind: Line(f"{TITLES[model]}: a step on {kind} kernels", PEER, aim) for kind, aim in AIMS.items()}

    @row(f"peer-step-{model}", SECTION, lines, seconds=150)
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        batch = 2 if bench.is_quick else BATCHES[model]
        with ExitStack() as stack:
            workers = _workers(stack, bench, "mindspore_step", ("mindspore", *AIMS), model=model, batch=batch)
            while True:
                seconds = {kind: worker.turn() for kind, worker in workers.items()}
                yield {kind: (seconds[kind], seconds["mindspore"]) for kind in AIMS}


for _model in BATCHES:
    _steps(_model)


@row(
    "peer-sync-tensors",
    SECTION,
    {"added": Line("every input and output of AlexNet, batch 32, to tmpfs: added time", PEER, "<= 0.125")},
    seconds=240,
)
def sync_tensors(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    """Each in its own process with the kernels that it takes by itself; bytes are those under all names."""
    with scratch() as ours, scratch() as theirs:
        common: dict[str, Any] = {"model": "alexnet", "batch": 4 if bench.is_quick else 32}
        with (
            Worker("mindspore_dump", bench.peer("mindspore"), folder=str(theirs), is_peer=True, **common) as peer,
            Worker("mindspore_dump", folder=str(ours), is_peer=False, **common) as own,
        ):
            own.turn()
            while True:
                (dumped, plain, size), (peer_dumped, peer_plain, peer_size) = own.turn(), peer.turn()
                bench.notes["added"] = (
                    f"{size / 1e9:.2f} GB of names, of {peer_size / 1e9:.2f} GB there; "
                    f"a step there {peer_plain:.2f} s, dumped {peer_dumped:.2f} s"
                )
                yield {"added": (dumped, plain, peer_dumped, peer_plain)}


def _chains(name: str, is_graph: bool, what: str) -> None:
    lines = {kind: Line(f"{what}, {kind} kernels", PEER, "<= 1.0") for kind in AIMS}

    @row(f"peer-operators-{name}", SECTION, lines, seconds=60)
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        with ExitStack() as stack:
            kinds = ("mindspore", *AIMS)
            workers = _workers(stack, bench, "mindspore_chain", kinds, count=1000, is_graph=is_graph)
            while True:
                seconds = {kind: worker.turn() for kind, worker in workers.items()}
                for kind in AIMS:
                    times = f"{seconds[kind] * 1e6:.2f} µs an operator, {seconds['mindspore'] * 1e6:.2f} there"
                    bench.notes[kind] = times
                yield {kind: (seconds[kind], seconds["mindspore"]) for kind in AIMS}


_chains("graph", True, "1,000 operators on eight numbers, graph mode")
_chains("pynative", False, "1,000 operators on eight numbers, PyNative mode")


@row(
    "peer-compile",
    SECTION,
    {"first": Line("first step of ResNet-50's training less a later one, torch kernels", PEER, "<= 1.0")},
    least=3,
    most=5,
    seconds=200,
)
def compilation(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    while True:
        seconds = {}
        for kind in ("torch", "mindspore"):
            with ExitStack() as stack:
                (worker,) = _workers(stack, bench, "mindspore_compile", (kind,), model="resnet50", batch=2).values()
                seconds[kind] = worker.first
        yield {"first": (seconds["torch"], seconds["mindspore"])}


@row(
    "peer-memory",
    SECTION,
    {
        kind: Line(f"peak memory that three steps of ResNet-50, batch 8, add, {kind} kernels", "torch eager", "<= 1.2")
        for kind in AIMS
    },
    least=3,
    most=5,
)
def memory(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    while True:
        grown = {}
        for kind in ("eager", *AIMS):
            arguments: dict[str, Any] = {"kind": kind, "is_quick": bench.is_quick, "batch": 2 if bench.is_quick else 8}
            environ = {} if kind == "eager" else {"MSDUMP_KERNELS": kind}
            with Worker("peak_growth", environ=environ, **arguments) as worker:
                grown[kind] = worker.first
        yield {kind: grown[kind] / grown["eager"] for kind in AIMS}
