"""Files of an exception dump: names, bytes, round trips, damaged cores."""

from __future__ import annotations

import struct
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.bin import BinFile
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_file import ELF, read_dump
from msdump.formats.exception import (
    CORE_MAGIC,
    FailedOperand,
    OperatorFailure,
    _tensor,
    brief_chunks,
    brief_file_name,
    core_chunks,
    core_file_name,
    described_operands,
    format_stamp,
    norm_chunks,
    norm_file_name,
    parse_core_file_name,
    read_core,
)
from msdump.formats.paths.parse import parse_dump_name
from msdump.statistics.stats import raw_bytes
from msdump.tensors import dtypes
from msdump.tensors.device_layouts import host_format
from msdump.tensors.records import INPUT, OUTPUT
from msdump.testing import tensors
from tests.contracts.writer_contract import record

quick = settings(max_examples=50, deadline=None)
# int4 and its like are packed on the disk.
WHOLE_DTYPES = [
    row.name
    for row in dtypes.TABLE
    if row.numpy_type is not None and row.bits >= 8 and row.is_dumped and row.name != "hifloat8"
]
STAMP = "20250611171538370"


def operand(io: str, slot: int, dtype: str, data: np.ndarray | None, address: int = 0) -> FailedOperand:
    if data is None:
        return FailedOperand(io, slot, dtype, (2, 3), "ND")
    made = record(op_type="Add", op_name="net/Add", io=io, slot=slot, dtype=dtype, data=data)
    return FailedOperand(io, slot, dtype, tuple(data.shape), host_format(data.shape), address, made)


def failure(*operands: FailedOperand, **changes: object) -> OperatorFailure:
    plain: dict[str, object] = {
        "op_type": "Add", "op_name": "net/Add", "task_id": 3, "stream_id": 7, "device_id": 1, "iteration": 2,
        "timestamp_us": 1700000000000000, "operands": operands, "error_type": "ValueError", "message": "no such row",
    }  # fmt: skip
    return OperatorFailure(**{**plain, **changes})  # type: ignore[arg-type]


def read(chunks: list[object], name: str) -> BinFile:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(b"".join(bytes(chunk) for chunk in chunks))  # type: ignore[call-overload]
        return read_dump(path)


@st.composite
def failures(draw: st.DrawFn) -> OperatorFailure:
    operands = []
    for io in (INPUT, OUTPUT):
        for slot in range(draw(st.integers(0, 3))):
            dtype = draw(st.sampled_from(WHOLE_DTYPES))
            is_made = draw(st.integers(0, 4)) > 0
            data = draw(tensors(dtypes=[dtype])) if is_made else None
            operands.append(operand(io, slot, dtype, data, draw(st.integers(0, 2**64 - 1)) if is_made else 0))
    texts = st.text(max_size=8)
    return failure(
        *operands,
        op_name=draw(st.text(min_size=1, max_size=12)),
        message=draw(texts),
        attributes=tuple(draw(st.dictionaries(texts, texts, max_size=3)).items()),
        stack=tuple(draw(st.lists(texts, max_size=3))),
        traceback=tuple(draw(st.lists(texts, max_size=3))),
        task_id=draw(st.integers(0, 2**31)),
    )


def clean(text: str) -> str:
    return text.encode(errors="replace").decode()


# -- names -----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 4 * 10**9).map(lambda milliseconds: 1_000_000_000_000_000 + milliseconds * 1000))
def test_stamps(timestamp_us: int) -> None:
    text, seconds = format_stamp(timestamp_us), timestamp_us // 1_000_000
    assert text == time.strftime("%Y%m%d%H%M%S", time.localtime(seconds)) + f"{timestamp_us // 1000 % 1000:03d}"


def test_names() -> None:
    made = failure(op_type="Mat Mul", op_name="net/a.b")
    assert brief_file_name(made, STAMP) == f"exception_info.7.3.{STAMP}"
    assert norm_file_name(made, STAMP) == f"Mat_Mul.net_a_b.3.{STAMP}"
    assert core_file_name(made, STAMP) == f"Mat_Mul_net_a_b.7.3.{STAMP}.core"
    found = [parse_dump_name(name(made, STAMP)) for name in (brief_file_name, norm_file_name, core_file_name)]
    assert [
        (name.op_type, name.op_name, name.task_id, name.stream_id, name.timestamp_us) for name in found if name
    ] == [
        ("exception_info", "7_3", 3, 7, int(STAMP)),
        ("Mat_Mul", "net_a_b", 3, None, int(STAMP)),
        ("core", "Mat_Mul_net_a_b", 3, 7, int(STAMP)),
    ]


def test_of_a_long_name_the_end_counts() -> None:
    name = core_file_name(failure(op_name="x" * 300), STAMP)
    assert len(name) == 255 and name.endswith(f"x.7.3.{STAMP}.core") and name.startswith("xxx")
    assert parse_core_file_name(name) == ("x" * (255 - 27), 7, 3, int(STAMP))


# -- bytes -----------------------------------------------------------------------------------------------------------


def small() -> OperatorFailure:
    return failure(
        operand(INPUT, 0, "float32", np.array([1.0, -2.0], np.float32), 0x1000),
        operand(INPUT, 1, "int16", np.array(7, np.int16), 0x80),
        operand(OUTPUT, 0, "float32", None),
        attributes=(("axis", "1"),),
    )


def test_golden_brief() -> None:
    """Spelled out by hand: ND, size, address, arg_index, input_type 2; no type, no shape, no output."""
    stamp = bytes.fromhex("10 8080f9c0c1c48203")
    first = bytes.fromhex("1002 2808 408020 5802")
    second = bytes.fromhex("1002 2802 408001 5001 5802")
    header = b"\x0a\x032.0" + stamp + b"\x22" + bytes([len(first)]) + first + b"\x22" + bytes([len(second)]) + second
    header += b"\x32\x07net/Add"
    blocks = bytes.fromhex("0000803f 000000c0 0700")
    assert b"".join(map(bytes, brief_chunks(small()))) == struct.pack("<Q", len(header)) + header + blocks


def test_golden_norm() -> None:
    stamp = bytes.fromhex("10 8080f9c0c1c48203")
    first = bytes.fromhex("0801 1002 1a030a0102 2808 32030a0102 408020 5802")
    second = bytes.fromhex("0805 1002 1a00 2802 3200 408001 5001 5802")
    # The first attribute is the one that msaccucmp reads as JSON.
    slicing, attribute = b"\x0a\x07slicing\x12\x02{}", b"\x0a\x04axis\x12\x011"
    text = (
        b"device 1, stream 7, task 3, iteration 2: Add net/Add raised ValueError: no such row\n"
        b"input 0: float32[2] ND, 8 bytes at 0x1000\ninput 1: int16[] ND, 2 bytes at 0x80\n"
        b"output 0: float32[2, 3] ND, not made"
    )
    header = b"\x0a\x032.0" + stamp + b"\x22" + bytes([len(first)]) + first + b"\x22" + bytes([len(second)]) + second
    header += b"\x32\x07net/Add"
    header += b"".join(b"\x3a" + bytes([len(part)]) + part for part in (slicing, attribute))
    header += b"\x4a" + bytes([len(text) & 0x7F | 0x80, len(text) >> 7]) + text
    blocks = bytes.fromhex("0000803f 000000c0 0700")
    assert b"".join(map(bytes, norm_chunks(small()))) == struct.pack("<Q", len(header)) + header + blocks


def made_operands(made: OperatorFailure) -> list[FailedOperand]:
    return [one for one in made.operands if one.record is not None]


@quick
@given(failures())
def test_norm_is_read_back(made: OperatorFailure) -> None:
    found = read(norm_chunks(made), f"Add.net_Add.3.{STAMP}")  # type: ignore[arg-type]
    assert (found.container, found.op_name, found.dump_time_us) == ("2.0", clean(made.op_name), made.timestamp_us)
    assert found.attributes == tuple((clean(a), clean(b)) for a, b in made.attributes)
    assert found.message == clean(made.log_text)
    assert_tensors(found, made)


@quick
@given(failures())
def test_brief_is_read_back_as_bytes(made: OperatorFailure) -> None:
    found = read(brief_chunks(made), f"exception_info.7.3.{STAMP}")  # type: ignore[arg-type]
    # What has neither type nor bytes says nothing.
    present = [one for one in made_operands(made) if one.record is not None and one.record.size_bytes]
    assert [(t.io, t.slot, t.dtype_number, t.shape, t.address) for t in found.tensors] == [
        (one.io, one.slot, 0, None, one.address) for one in present
    ]
    for tensor, one in zip(found.tensors, present, strict=True):
        assert one.record is not None and tensor.array().tobytes() == bytes(raw_bytes(one.record.data))


@quick
@given(failures())
def test_core_is_read_back(made: OperatorFailure) -> None:
    found = read(core_chunks(made), f"Add.7.3.{STAMP}.core")  # type: ignore[arg-type]
    assert (found.container, found.op_name, found.dump_time_us) == ("core", clean(made.op_name), made.timestamp_us)
    assert all(tensor.offset % 64 == 0 for tensor in found.tensors)
    assert_tensors(found, made)


def assert_tensors(found: BinFile, made: OperatorFailure) -> None:
    present = made_operands(made)
    assert [(t.io, t.slot, t.shape, t.format, t.address) for t in found.tensors] == [
        (one.io, one.slot, one.shape, one.format, one.address) for one in present
    ]
    for tensor, one in zip(found.tensors, present, strict=True):
        assert one.record is not None and dtypes.BY_ACL_NUMBER[tensor.dtype_number].name == one.dtype
        assert bytes(raw_bytes(tensor.array())) == bytes(raw_bytes(one.record.data))


def test_what_a_core_says(tmp_path: Path) -> None:
    made = failure(
        *small().operands, attributes=(("axis", "1"),), stack=("  File a", "    b()"), traceback=("ValueError: no",)
    )
    path = tmp_path / "x.core"
    path.write_bytes(b"".join(map(bytes, core_chunks(made))))
    core = read_core(path)
    assert (core.op_type, core.op_name, core.task_id, core.stream_id, core.device_id, core.iteration) == (
        "Add", "net/Add", 3, 7, 1, 2,
    )  # fmt: skip
    assert (core.error_type, core.message, core.attributes) == ("ValueError", "no such row", {"axis": "1"})
    assert (core.stack, core.traceback) == (made.stack, made.traceback)
    assert core.log == made.log_text and set(core.process) == {"pid", "python", "system"}


def test_a_damaged_core_is_refused(tmp_path: Path) -> None:
    whole = b"".join(map(bytes, core_chunks(small())))
    path = tmp_path / "x.core"
    path.write_bytes(whole)
    end = max(tensor.offset + tensor.payload.size for tensor in read_core(path).tensors)
    for size in [*range(60), *range(60, end, 37), end - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match=r"x\.core"):
            read_core(path)
    path.write_bytes(whole[: end - 1])
    with pytest.raises(TruncatedFileError, match="expected 2 bytes, got 1"):
        read_core(path)


@pytest.mark.parametrize(("field", "value"), [("slot", -1), ("offset", -1), ("io", "inout"), ("dtype", "none")])
def test_an_operand_of_a_core_that_cannot_be(tmp_path: Path, field: str, value: object) -> None:
    entry = described_operands(small())[0][0]
    path = tmp_path / "x.core"
    with pytest.raises(FormatError, match="expected an input or output of a known dtype"):
        _tensor(path, np.zeros(10**6, np.uint8), entry | {field: value})
    assert _tensor(path, np.zeros(10**6, np.uint8), entry | {"slot": 0}).slot == 0


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_change_of_a_core_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(b"".join(map(bytes, core_chunks(small()))))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.core")
        path.write_bytes(whole)
        try:
            for tensor in read_core(path).tensors:
                tensor.array()
        except FormatError:
            pass


def test_the_core_of_a_device_is_left_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "extra-info" / "data-dump" / "0"
    folder.mkdir(parents=True)
    path = folder / f"te_add.0.3.{STAMP}.core"
    path.write_bytes(b"\x7fELF" + bytes(60))
    assert (read_dump(path).container, read_dump(path).tensors) == (ELF, ())
    with pytest.raises(FormatError, match="msDebug"):
        read_core(path)
    dump = DumpDir.open(tmp_path)
    assert [tensor for file in dump.files() for tensor in file.tensors()] == []
    assert not path.read_bytes().startswith(CORE_MAGIC)
