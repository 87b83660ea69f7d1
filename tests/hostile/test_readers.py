"""Every reader on files that were changed at random: a value or a FormatError, nothing else, and no reader waits.

A run changes each kind of file some hundred times. MSDUMP_FUZZ_RUNS=100000 makes it a long one:

    MSDUMP_FUZZ_RUNS=100000 python -m pytest tests/hostile -n 4

What once failed lies in `corpus/`, as `{reader}.{what}`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msdump._proto import debug_graph_pb2
from msdump.analysis.graph_info import read_graph
from msdump.errors import FormatError
from msdump.formats.acl_core import core_chunks, read_core
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.bin_reader import read_bin
from msdump.formats.bin_writer import bin_chunks
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_file import NANO_MAGIC, read_dump
from msdump.formats.mapping_csv import read_mapping
from msdump.formats.metadata import CONFIG_COPY_FILE, CONFIG_FILE, read_metadata
from msdump.formats.npy import read_npy
from msdump.formats.opdebug import read_opdebug
from msdump.formats.order_csv import read_history, read_order
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.graph_files.read_ge import read_ge_originals
from tests.contracts.writer_contract import record
from tests.formats.test_acl_exception import failure, operand
from tests.hostile.mutations import mutated

RUNS = int(os.environ.get("MSDUMP_FUZZ_RUNS", "300"))
GOLDEN = Path(__file__).parent.parent / "golden"
CORPUS = Path(__file__).parent / "corpus"
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def golden(pattern: str) -> list[bytes]:
    files = [path.read_bytes() for path in sorted(GOLDEN.glob(pattern)) if path.is_file()]
    assert files, pattern
    return [data for data in files if len(data) < 100_000]


def dump_file() -> bytes:
    return b"".join(bytes(chunk) for chunk in bin_chunks([record(data=VALUES, dtype="float32")]))


def core() -> bytes:
    return b"".join(bytes(chunk) for chunk in core_chunks(failure(operand("input", 0, "float32", VALUES))))


def nano() -> bytes:
    tensor = struct.pack("<3i3QI", 0, 0, 24, 0, 0, 24, 24) + struct.pack("<2I2Q", 0, 16, 2, 3)
    block = struct.pack("<I", 1) + tensor
    empty = struct.pack("<I", 0)
    head = struct.pack("<2I", NANO_MAGIC, 1) + struct.pack("<2I", 4, len(block)) + block
    head += struct.pack("<2I", 5, len(empty)) + empty
    return struct.pack("<Q", len(head)) + head + VALUES.tobytes()


def model() -> bytes:
    proto = debug_graph_pb2.ModelProto()
    proto.graph.name = "graph_0"
    for number in range(3):
        node = proto.graph.node.add(name=str(number), op_type=("Add", "TupleGetItem", "Depend")[number])
        node.full_name = f"Default/{node.op_type}-op{number}"
        node.source_address = "# In file a.py:3/x = y/\n# In file b.py:4/z/"
        node.input.add(name=str((number + 1) % 3))
        node.input.add(name="x")
        node.output_type.data_type = debug_graph_pb2.DT_TENSOR
        node.output_type.tensor_type.elem_type = debug_graph_pb2.DT_FLOAT32
        node.output_type.tensor_type.shape.dim.add(size=2)
        attribute = node.attribute.add(name="axis")
        attribute.value.dtype, attribute.value.int_val = debug_graph_pb2.DT_INT64, 1
    return proto.SerializeToString()


def loaded(path: Path) -> None:
    """What a command does with a file whose name is that of a tensor."""
    dump = DumpDir.open(path)
    for tensor in dump:
        tensor.load_host()
    for _, error in dump.damaged:
        assert isinstance(error, FormatError)


STATS_NAME = "Add.a.1.0.1700000000000000.csv"
STATS = b"Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count\n"
STATS += b"Input,0,24,DT_FLOAT,ND,2x3,5,0,2.5,6,0\n"
READERS: dict[str, tuple[Callable[[Path], object], str, list[bytes]]] = {
    "acl_stats": (read_acl_stats, STATS_NAME, [STATS]),
    "bin": (read_bin, "x", [dump_file()]),
    "core": (read_core, "x", [core()]),
    "dump": (read_dump, "x", [dump_file(), core(), nano(), *golden("sync/Parameter.data-[12].*.npy")]),
    "ge": (read_ge_originals, "x.txt", golden("torchair/*.txt.golden")),
    "history": (read_history, "x", golden("sync/ms_global_*.csv")),
    "ir": (read_graph, "x.ir", golden("graph/hand_made.ir")),
    "load_bin": (loaded, "Add.a.1.0.1700000000000000", [dump_file(), nano(), core()]),
    "load_npy": (loaded, "Add.Add-op1.0.0.1.output.0.DefaultFormat.npy", golden("sync/*.npy")),
    "mapping": (read_mapping, "mapping.csv", [b"1.npy,Add.long-op1.0.0.1.output.0.DefaultFormat.npy\n2.npy,b\n"]),
    "metadata": (lambda path: read_metadata(path.parent), CONFIG_FILE, golden("sync/config.json")),
    "model": (read_graph, "x.pb", [model()]),
    "npy": (read_npy, "x.npy", golden("sync/*.npy")),
    "opdebug": (read_opdebug, "x", golden("opdebug/*0010")),
    "opdebug_json": (read_opdebug, "x.json", golden("opdebug/*.json")),
    "order": (read_order, "x", golden("sync/ms_execution_*.csv")),
    "statistic": (read_statistic_csv, "statistic.csv", golden("sync/statistic.csv")),
}


def refusal(reader: str, data: bytes, folder: Path) -> str:
    """Why the reader refuses a file of these bytes; "" when it does not."""
    read, name, _ = READERS[reader]
    (folder / CONFIG_COPY_FILE).write_bytes(b"{}")
    (folder / name).write_bytes(data)
    try:
        read(folder / name)
    except FormatError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("reader", READERS)
def test_the_files_themselves_are_read(reader: str, tmp_path: Path) -> None:
    for data in READERS[reader][2]:
        assert refusal(reader, data, tmp_path) == ""


@pytest.mark.parametrize("reader", READERS)
def test_no_mutation_of_a_file_is_more_than_a_format_error(reader: str, tmp_path: Path) -> None:
    for number in range(RUNS):
        is_fine = False
        try:
            is_fine = len(refusal(reader, mutated(READERS[reader][2], number), tmp_path)) < 10_000
        finally:
            if not is_fine:
                print(f"{reader}, number {number}")
        assert is_fine


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_what_once_failed_is_read_or_refused(path: Path, tmp_path: Path, alarm: None) -> None:
    refusal(path.name.partition(".")[0], path.read_bytes(), tmp_path)
