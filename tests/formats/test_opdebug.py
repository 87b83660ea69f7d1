"""Overflow files: field by field, there and back, and what damaged ones give."""

from __future__ import annotations

import contextlib
import json
import struct
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.bin import BinWriter, read_bin
from msdump.formats.opdebug import (
    AcceleratorRecord,
    Opdebug,
    OpdebugJsonWriter,
    TaskStatus,
    opdebug_content,
    opdebug_json,
    opdebug_record,
    opdebug_text,
    parse_opdebug_content,
    parse_opdebug_json,
    read_opdebug,
)
from msdump.formats.paths.acl import parse_bin_file_name, parse_overflow_json_name
from msdump.tensors.records import OUTPUT

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "opdebug"
number = st.integers(0, 2**64 - 1)
task = st.builds(TaskStatus, *[number] * 7)
core = st.builds(TaskStatus, *[number] * 9)
opdebugs = st.builds(Opdebug, task, task, core)
quick = settings(max_examples=40, deadline=None)


NEW = [(0, "AIC", 11, 88), (1, "AIV", 11, 88), (2, "AICPU", 8, 64), (3, "SDMA", 10, 80)]
# A model id that is the magic number of the newer content.
MAGIC = 0x5A5A5A5A


@quick
@given(opdebugs)
@example(Opdebug(TaskStatus(model_id=MAGIC)))
@example(Opdebug(TaskStatus(model_id=MAGIC, stream_id=4 << 32)))
@example(Opdebug(TaskStatus(model_id=MAGIC | 1 << 32, stream_id=1, task_id=87 << 32, para_base=5, status=3)))
def test_content_and_json_are_inverse(opdebug: Opdebug) -> None:
    content = opdebug_content(opdebug)
    assert content.shape == (2048,) and content.dtype == np.uint8
    assert parse_opdebug_content(content.tobytes(), "here") == opdebug
    assert parse_opdebug_json(opdebug_text(opdebug), "here") == opdebug
    assert parse_opdebug_json(json.dumps(opdebug_json(opdebug), indent=4), "here") == opdebug


@quick
@given(opdebugs, st.integers(0, 4), st.sampled_from([64, 80, 88]), st.integers(0, 2))
def test_a_model_id_that_is_the_magic_number_is_told_from_it(
    opdebug: Opdebug, acc_type: int, data_len: int, valid: int
) -> None:
    """Only content that is a complete head of the newer form, field by field, is read as one."""
    dha = replace(opdebug.dha, model_id=opdebug.dha.model_id >> 32 << 32 | MAGIC, stream_id=acc_type << 32 | valid)
    dha = replace(dha, task_id=data_len << 32 | opdebug.dha.task_id & 0xFFFFFFFF)
    content = opdebug_content(replace(opdebug, dha=dha)).tobytes()
    is_head = valid == 1 and (acc_type, data_len) in {(number, size) for number, _, _, size in NEW}
    parsed = parse_opdebug_content(content, "here")
    assert isinstance(parsed, AcceleratorRecord) if is_head else parsed == replace(opdebug, dha=dha)


@quick
@given(core)
def test_every_field_lies_where_the_table_says(status: TaskStatus) -> None:
    content = opdebug_content(Opdebug(status, status, status)).tobytes()
    info = ("model_id", "stream_id", "task_id", "task_type", "pc_start", "para_base")
    at = {0: info, 128: info, 256: info, 512: ("status",), 768: ("status",)}
    at[1024] = ("kernel_code", "block_idx", "status")
    used = bytearray(content)
    for offset, fields in at.items():
        for index, field in enumerate(fields):
            place = offset + 8 * index
            assert content[place : place + 8] == getattr(status, field).to_bytes(8, "little")
            used[place : place + 8] = bytes(8)
    assert not any(used)


@quick
@given(opdebugs, st.integers(0, 9), st.integers(0, 9), st.integers(10**15, 10**16), st.booleans())
def test_files_are_read_back(opdebug: Opdebug, task_id: int, stream_id: int, stamp: int, is_json: bool) -> None:
    record = opdebug_record(opdebug, task_id, stream_id, stamp, iteration=3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "new" / "folder"
        writer = (OpdebugJsonWriter if is_json else BinWriter)(lambda _: folder)
        writer.write([record])
        writer.close()
        [path] = folder.iterdir()
        suffix = ".output.0.json" if is_json else ""
        assert path.name == f"Opdebug.Node_OpDebug.{task_id}.{stream_id}.{stamp}{suffix}"
        parsed = parse_overflow_json_name(path.name) if is_json else parse_bin_file_name(path.name)
        assert parsed is not None and parsed.is_overflow and parsed.timestamp_us == stamp
        assert read_opdebug(path) == opdebug
        assert writer.counts.files == 1 and writer.counts.bytes_written == path.stat().st_size
        assert path.stat().st_mode & 0o777 == 0o400


def test_binary_files_are_dump_files_of_one_uint8_output(tmp_path: Path) -> None:
    record = opdebug_record(Opdebug(ai_core=TaskStatus(task_id=7, status=1)), 9, 1, 1_700_000_000_000_010)
    BinWriter(lambda _: tmp_path).write([record])
    file = read_bin(tmp_path / "Opdebug.Node_OpDebug.9.1.1700000000000010")
    assert (file.container, file.version, file.op_name) == ("2.0", "2.0", "Node_OpDebug")
    assert file.dump_time_us == record.timestamp_us
    [output] = file.tensors
    assert (output.io, output.dtype_number, output.format, output.shape) == (OUTPUT, 4, "ND", (2048,))
    assert output.array().tobytes() == record.data.tobytes()


def test_the_newer_content_is_not_written(tmp_path: Path) -> None:
    record = replace(
        opdebug_record(Opdebug(), 0, 0, 1),
        data=np.frombuffer(struct.pack("<6I8Q", 0x5A5A5A5A, 1, 1, 2, 0, 64, *range(8)), np.uint8),
    )
    with pytest.raises(FormatError, match="plain overflow data"):
        OpdebugJsonWriter(lambda _: tmp_path).write([record])


def test_json_is_compact_and_in_alphabetical_order() -> None:
    text = opdebug_text(Opdebug(ai_core=TaskStatus(1, 2, 3, 4, 16, 32, 5, 0xABC, 6)))
    assert text.startswith(
        '{"AI Core":{"block_idx":6,"kernel_code":"0xabc","model_id":1,"para_base":"0x20","pc_start":"0x10",'
        '"status":5,"stream_id":2,"task_id":3,"task_type":4},"DHA Atomic Add":{"model_id":0,"para_base":"0x0",'
    )


def test_the_sample_is_read_as_the_real_converter_reads_it() -> None:
    sample = read_opdebug(GOLDEN / "Opdebug.Node_OpDebug.3.7.1700000000000010")
    shown = (GOLDEN / "Opdebug.Node_OpDebug.3.7.1700000000000010.output.0.json").read_text()
    assert isinstance(sample, Opdebug)
    assert json.dumps(opdebug_json(sample), indent=4) == shown
    assert read_opdebug(GOLDEN / "Opdebug.Node_OpDebug.3.7.1700000000000010.output.0.json") == sample
    assert (GOLDEN / "Opdebug.Node_OpDebug.3.7.1700000000000010").read_bytes()[51:] == opdebug_content(sample).tobytes()


@pytest.mark.parametrize(("acc_type", "name", "count", "data_len"), NEW)
def test_the_newer_content_is_read(acc_type: int, name: str, count: int, data_len: int) -> None:
    values = list(range(1, count + 1))
    content = struct.pack(f"<6I{count}Q", 0x5A5A5A5A, 1, 1, acc_type, 0, data_len, *values)
    record = parse_opdebug_content(content, "here")
    assert isinstance(record, AcceleratorRecord)
    assert (record.acc_type, record.data_len, list(record.values.values())) == (name, data_len, values)
    shown = opdebug_json(record)
    assert list(shown) == ["magic", "version", "acc_list"] and shown["magic"] == "0x5a5a5a5a"
    assert list(shown["acc_list"]) == ["valid", "acc_type", "rsv", "data_len", "data"]
    assert {key for key, value in shown["acc_list"]["data"].items() if isinstance(value, str)} <= {
        "pc_start", "para_base", "src_addr", "dst_addr"
    }  # fmt: skip
    assert parse_opdebug_json(json.dumps(shown), "here") == record
    # Also where it fills the room of the older content, and where only its status tells it from that.
    padded = content.ljust(2048, b"\0")
    assert parse_opdebug_content(padded, "here") == record
    damaged = parse_opdebug_content(padded[:8] + bytes(4) + padded[12:], "here")
    assert damaged == replace(record, valid=0)


@quick
@given(st.binary(max_size=200) | st.integers(0, 4000).map(bytes), st.booleans())
def test_any_bytes_give_a_record_or_a_format_error(data: bytes, is_new: bool) -> None:
    if is_new:
        data = struct.pack("<I", 0x5A5A5A5A) + data
    with contextlib.suppress(FormatError):
        assert isinstance(parse_opdebug_content(data, "somewhere"), Opdebug | AcceleratorRecord)


@quick
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.dictionaries(
            st.sampled_from(["AI Core", "DHA Atomic Add", "L2 Atomic Add", "acc_list", "data", "acc_type", "status"]),
            inner,
        ),
    )
)
def test_any_json_gives_a_record_or_a_format_error(shown: object) -> None:
    with pytest.raises(FormatError, match="somewhere"):
        parse_opdebug_json(json.dumps(shown), "somewhere")


@pytest.mark.parametrize(
    ("number", "is_right"), [(-1, False), (0, True), (2**64 - 1, True), (2**64, False), (True, False)]
)
def test_numbers_have_64_bits_and_no_sign(number: int, is_right: bool) -> None:
    shown = opdebug_json(Opdebug())
    shown["AI Core"]["model_id"] = number
    if is_right:
        found = parse_opdebug_json(json.dumps(shown), "here")
        assert isinstance(found, Opdebug) and found.ai_core.model_id == number
    else:
        with pytest.raises(FormatError, match="model_id: expected a number of 64 bits"):
            parse_opdebug_json(json.dumps(shown), "here")
