"""Packs: one archive for each iteration in the place of a folder of files."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks.dump_config import configure
from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import in_turns, scratch, timed

SECTION = "Packs"
COUNT = 2000


def _operators(shape: tuple[int, ...]) -> list[list[object]]:
    from msdump.tensors.records import OUTPUT, TensorKey, TensorRecord

    rng = np.random.default_rng(0)
    return [
        [
            TensorRecord(
                "ReLU", f"Default/net/layer{number}/ReLU-op{number}", 0, 0, 1_700_000_000_000_000 + number, OUTPUT, 0,
                "float32", rng.standard_normal(shape, np.float32), key=TensorKey(number, 0),
            )
        ]
        for number in range(COUNT)
    ]  # fmt: skip


def _write(folder: Path, operators: list[list[object]], is_packed: bool) -> None:
    from msdump.formats.npy import NpyWriter
    from msdump.formats.pack import Packs
    from msdump.formats.paths.sync import SyncPaths

    layout = SyncPaths(folder, 0, "Net")
    directory = lambda record: layout.data_dir(record.graph_id, record.iteration)  # noqa: E731
    packs = Packs(directory, 0o400) if is_packed else None
    writer = NpyWriter(directory, is_direct=True, open_folder=None if packs is None else packs.open)
    for records in operators:
        if packs is not None:
            packs.write(records)  # type: ignore[arg-type]
        writer.write(records)  # type: ignore[arg-type]
    writer.close()
    if packs is not None:
        packs.close()


def _step(name: str, shape: tuple[int, ...], medium: str) -> None:
    line = Line(f"2,000 operators on {shape}, {medium}: writing a pack", "writing single files", "<= 0.8")

    @row(f"pack-write-{name}-{medium}", SECTION, {"write": line})
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        operators = _operators(shape)
        with scratch(medium) as folder:

            def write(kind: bool) -> None:
                _write(folder / str(kind), operators, kind)
                shutil.rmtree(folder / str(kind))

            for packed, single in in_turns(lambda: write(True), lambda: write(False)):
                yield {"write": (packed, single)}


for _medium in ("tmpfs", "disk"):
    _step("small", (8, 8), _medium)
    _step("medium", (64, 64), _medium)


@row(
    "pack-resnet50",
    SECTION,
    {"step": Line("ResNet-50, batch 8, every tensor into packs on tmpfs: a step", "an eager training step", "<= 1.7")},
    environment={"MSDUMP_CONTAINER": "pack", "MSDUMP_KEEP_ITERATIONS": "1"},
)
def resnet50(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    from benchmarks.torch_models import training_step
    from msdump.frontends.torch import backend

    with scratch() as folder:
        configure(folder, "all", False, file_format="npy")
        plain = training_step("resnet50", bench.is_quick)
        dumped = training_step("resnet50", bench.is_quick, backend)
        for base, cost in in_turns(plain, dumped, warm=2):
            yield {"step": (cost, base)}


def _big(folder: Path, tensors: int, elements: int) -> None:
    """A packed dump; about a gigabyte where it is asked for."""
    from msdump.tensors.records import OUTPUT, TensorRecord

    rng = np.random.default_rng(1)
    block = rng.standard_normal(elements, np.float32)
    operators = []
    for number in range(tensors):
        block[0] = number
        data = block.copy()
        operators.append(
            [TensorRecord("Exp", f"Net/Exp-op{number}", 0, 0, 10**15 + number, OUTPUT, 0, "float32", data)]
        )
    _write(folder, operators, True)  # type: ignore[arg-type]


def _resident(path: Path) -> int:
    """Bytes of a file that lie in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    size = path.stat().st_size
    fd = os.open(path, os.O_RDONLY)
    address = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, fd, ctypes.c_long(0))
    os.close(fd)
    pages = -(-size // mmap.PAGESIZE)
    vector = (ctypes.c_ubyte * pages)()
    libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), vector)
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
    return sum(one & 1 for one in vector) * mmap.PAGESIZE


def _forget(path: Path) -> None:
    """Drop a file from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@row(
    "pack-compare",
    SECTION,
    {
        "bytes": Line(
            "compare of two equal packed dumps of 1 GB on disk, after the first time: bytes read of them",
            "their size",
            "<= 0.01",
        ),
        "seconds": Line("the same: time", unit="s"),
    },
    least=3,
    most=5,
)
def compare(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    from msdump.analysis.compare.dumps import compare_dumps
    from msdump.storage.packs import _packs, verified

    with scratch("disk") as folder:
        verified.folder = lambda: folder / "cache"
        _big(folder / "mine", 100 if bench.is_quick else 1000, 250_000)
        shutil.copytree(folder / "mine", folder / "golden")
        packs = list(folder.rglob("*.tar"))
        total = sum(path.stat().st_size for path in packs)
        time.sleep(3)  # what was written a moment ago is not remembered
        compare_dumps(folder / "mine", folder / "golden")
        _packs.remember()
        while True:
            _packs._by_path.clear()
            for path in packs:
                _forget(path)
            seconds = timed(lambda: compare_dumps(folder / "mine", folder / "golden"))
            yield {"bytes": sum(map(_resident, packs)) / total, "seconds": seconds}


@row(
    "pack-index",
    SECTION,
    {"open": Line("the index of a pack of 100,000 members: opening it", aim="<= 0.2", unit="s")},
)
def index(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    from msdump.storage.pack_format import Member, end_of_pack, header
    from msdump.storage.packs import LocalSource, Pack

    with scratch() as folder:
        members, body = [], []
        for number in range(100_000):
            name = f"5/MatMul.MatMul-op{number}.0.0.{1_700_000_000_000_000 + number}.output.0.DefaultFormat.npy"
            members.append(Member(name, 512 * (number + 1), 0, hashes=(f"128:{number:032x}",), head=b"x" * 128))
            body.append(header(name, 0, 0o400, 0))
        data = b"".join(body)
        path = folder / "5.tar"
        path.write_bytes(data + end_of_pack("5", members, len(data), 0o400, 0))
        while True:
            yield {"open": timed(lambda: Pack(LocalSource(str(path))))}


@row(
    "pack-statistics",
    SECTION,
    {"speed": Line("`msdump stat --tables` of 8 packs of 128 MB with two processes: speed", "with one", ">= 1.7")},
    least=3,
    most=7,
)
def statistics(bench: Bench) -> Iterator[Mapping[str, Sample]]:
    from joblib.externals.loky import get_reusable_executor

    from msdump.analysis.ranks.tables import units_of, write_part
    from msdump.analysis.ranks.work import each_unit

    with scratch() as folder:
        for rank in range(8):
            _big(folder / "one", 32 if not bench.is_quick else 4, 1_000_000)
            (folder / "dump").mkdir(exist_ok=True)
            (folder / "one" / "rank_0").rename(folder / "dump" / f"rank_{rank}")
        units = units_of([str(folder / "dump")])

        def measure(jobs: int) -> None:
            shutil.rmtree(folder / "tables", ignore_errors=True)
            (folder / "tables").mkdir()
            parts = each_unit(functools.partial(write_part, folder=str(folder / "tables")), units, jobs=jobs)
            assert not any(part.problem for part in parts)

        try:
            for one, two in in_turns(lambda: measure(1), lambda: measure(2), warm=2):
                yield {"speed": one / two}
        finally:
            # Processes that wait for more work would hold the pipe to whoever asked for the row.
            get_reusable_executor().shutdown()
