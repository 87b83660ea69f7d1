"""The overflow summary: old and new contents, order, matching, MindSpore's JSON, damage."""

from __future__ import annotations

import json
import struct
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.msaccucmp.overflow import find_overflows, summary_text, write_overflow_report
from msdump.cli.msaccucmp import main
from msdump.formats.bin import bin_chunks
from msdump.formats.opdebug import Opdebug, TaskStatus, opdebug_content, opdebug_text
from msdump.tensors.arrays import Array
from msdump.tensors.records import OUTPUT, TensorRecord

STAMP = 1_700_000_000_000_000


@pytest.fixture
def tmp_path(plain_path: Path) -> Path:
    """msaccucmp takes no other paths."""
    return plain_path


def dump(path: Path, op_name: str, data: Array, dtype: str = "float16") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    record = TensorRecord("X", op_name, 0, 0, STAMP, OUTPUT, 0, dtype, data, "ND")
    path.write_bytes(b"".join(bytes(chunk) for chunk in bin_chunks([record])))


def opdebug(path: Path, content: bytes) -> None:
    dump(path, "Node_OpDebug", np.frombuffer(content, np.uint8), "uint8")


def old(task_id: int, stream_id: int, status: int = 1) -> bytes:
    return opdebug_content(Opdebug(ai_core=TaskStatus(0, stream_id, task_id, status=status))).tobytes()


def new(acc_type: int, *values: int) -> bytes:
    return struct.pack("<6I", 0x5A5A5A5A, 1, 1, acc_type, 0, 8 * len(values)) + struct.pack(f"<{len(values)}Q", *values)


def test_the_first_by_time_with_the_earliest_dump(tmp_path: Path) -> None:
    opdebug(tmp_path / f"sub/Opdebug.Node_OpDebug.1.1.{STAMP + 9}", old(5, 6))
    opdebug(tmp_path / f"sub/Opdebug.Node_OpDebug.1.1.{STAMP + 3}", old(7, 8, 3))
    dump(tmp_path / f"sub/Add.late.7.8.{STAMP + 2}", "net/late", np.zeros(2, np.float16))
    dump(tmp_path / f"sub/Add.early.7.8.{STAMP + 1}", "net/early", np.array([1, 65504], np.float16))
    dump(tmp_path / f"Add.elsewhere.7.8.{STAMP}", "net/elsewhere", np.zeros(2, np.float16))
    report = find_overflows(tmp_path)
    assert (report.total, report.code) == (2, 0)
    lines = summary_text(report).splitlines()
    assert lines[0] == "=" * 49 + "[1]" + "=" * 50
    assert lines[1:] == [
        "[X] net/early".replace("X", "Add"),
        " [AI Core][TaskId:7][StreamId:8][Status:3]",
        f" [timestamp:{STAMP + 3}]",
        f" Add.early.7.8.{STAMP + 1}.output.0.npy",
        " -[Format: ND] [Shape: (2,)] [Dtype: float16] [Max: 65500.0] [Min: 1.0] [Mean: 32750.0]",
    ]
    both = summary_text(find_overflows(tmp_path, 5))
    assert both.splitlines()[6:] == [
        "=" * 49 + "[2]" + "=" * 50,
        " [AI Core][TaskId:5][StreamId:6][Status:1]",
        f" [timestamp:{STAMP + 9}]",
    ]


@pytest.mark.parametrize(
    ("acc_type", "name", "count"), [(0, "AIC", 11), (1, "AIV", 11), (2, "AICPU", 8), (3, "SDMA", 10)]
)
def test_new_contents(tmp_path: Path, acc_type: int, name: str, count: int) -> None:
    values = [0, 4, 3, 0, 65535, 65535, *[2] * (count - 7), 9]
    if name == "AICPU":
        values = [0, 4, 3, 0, 65535, 1, 65535, 9]
    opdebug(tmp_path / f"Opdebug.Node_OpDebug.1.1.{STAMP}", new(acc_type, *values))
    dump(tmp_path / f"Add.a.3.4.{STAMP}.4.8.7.0", "net/a", np.arange(3, dtype=np.float32), "float32")
    report = find_overflows(tmp_path)
    assert summary_text(report).splitlines()[1:3] == ["[Add] net/a", f" [{name}][TaskId:3][StreamId:4][Status:9]"]
    assert main(["convert", "-d", str(tmp_path), "-out", str(tmp_path / "out")]) == 0
    shown = json.loads((tmp_path / f"out/Opdebug.Node_OpDebug.1.1.{STAMP}.output.0.json").read_text())
    assert list(shown) == ["magic", "version", "acc_list"]
    assert shown["magic"] == "0x5a5a5a5a"
    assert list(shown["acc_list"]) == ["valid", "acc_type", "rsv", "data_len", "data"]
    assert (shown["acc_list"]["acc_type"], shown["acc_list"]["data_len"]) == (name, 8 * count)
    assert list(shown["acc_list"]["data"])[-1] == "status"


def test_context_and_thread_decide(tmp_path: Path) -> None:
    opdebug(tmp_path / f"Opdebug.Node_OpDebug.1.1.{STAMP}", new(0, 0, 4, 3, 0, 8, 7, 0, 0, 0, 0, 1))
    dump(tmp_path / f"Add.other.3.4.{STAMP}.4.8.6.0", "net/other", np.zeros(1, np.float16))
    dump(tmp_path / f"Add.right.3.4.{STAMP + 1}.4.8.7.0", "net/right", np.zeros(1, np.float16))
    (overflow,) = find_overflows(tmp_path).overflows
    assert [file.op_name for file in overflow.operators] == ["right"]


def test_mindspore_npy_mode(tmp_path: Path) -> None:
    text = opdebug_text(Opdebug(ai_core=TaskStatus(0, 4, 3, status=2)))
    (tmp_path / f"Opdebug.Node_OpDebug.1.1.{STAMP}.output.0.json").write_text(text)
    for slot in (0, 1):
        np.save(tmp_path / f"Add.Add-op1.3.4.{STAMP + slot}.output.{slot}.ND.npy", np.full(2, slot, np.float32))
    report = find_overflows(tmp_path)
    moment = datetime(2024, 1, 2, 3, 4, 5)
    written = write_overflow_report(report, tmp_path / "out", moment)
    assert written == (tmp_path / "out/overflow_summary_20240102030405.txt").read_text()
    assert written.splitlines()[1] == "[Add] Add-op1"
    assert [line.rsplit("[Max", 1)[1] for line in written.splitlines() if "[Max" in line] == [
        ": 0.0] [Min: 0.0] [Mean: 0.0]",
        ": 1.0] [Min: 1.0] [Mean: 1.0]",
    ]
    assert json.loads((tmp_path / f"out/Opdebug.Node_OpDebug.1.1.{STAMP}.output.0.json").read_text())


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (old(1, 1, 0), 35),
        (new(0, *[0] * 11), 36),
        (new(9, *[0] * 11), 4),
        (b"x" * 2047, 4),
        (struct.pack("<I", 0x5A5A5A5A), 4),
        (b"", 4),
    ],
)
def test_contents_that_say_nothing(tmp_path: Path, content: bytes, code: int) -> None:
    opdebug(tmp_path / f"Opdebug.Node_OpDebug.1.1.{STAMP}", content)
    assert main(["overflow", "-d", str(tmp_path), "-out", str(tmp_path / "out")]) == code
    report = find_overflows(tmp_path)
    assert (len(report.overflows), len(report.damaged)) == (0, 1)
    # What can be read is there as JSON, also without a status.
    made = [path.name for path in (tmp_path / "out").iterdir()]
    assert made == ([] if code == 4 else [f"Opdebug.Node_OpDebug.1.1.{STAMP}.output.0.json"])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_first_file_without_an_overflow_ends_the_analysis(tmp_path: Path, count: int) -> None:
    for number, content in enumerate((old(3, 4), old(1, 1, 0), old(3, 4))):
        opdebug(tmp_path / f"Opdebug.Node_OpDebug.1.1.{STAMP + number}", content)
    code = main(["overflow", "-d", str(tmp_path), "-out", str(tmp_path / "out"), "-n", str(count)])
    made = {path.name.split(".")[4] for path in (tmp_path / "out").glob("*.json")}
    has_summary = bool(list((tmp_path / "out").glob("overflow_summary_*.txt")))
    assert (code, len(made), has_summary) == ((0, 1, True) if count == 1 else (35, 2, False))


def test_an_unknown_accelerator_cannot_be_converted(tmp_path: Path) -> None:
    opdebug(tmp_path / f"Opdebug.Node_OpDebug.1.1.{STAMP}", new(9, *[0] * 11))
    assert main(["convert", "-d", str(tmp_path), "-out", str(tmp_path / "out")]) == 35


def test_a_damaged_operator_file_is_told(tmp_path: Path) -> None:
    opdebug(tmp_path / f"Opdebug.Node_OpDebug.1.1.{STAMP}", old(3, 4))
    (tmp_path / f"Add.a.3.4.{STAMP}").write_bytes(b"broken")
    assert main(["overflow", "-d", str(tmp_path), "-out", str(tmp_path / "out")]) == 11
    assert "Add.a.3.4" in find_overflows(tmp_path).damaged[0][1]


def test_empty_tensors_have_no_numbers(tmp_path: Path) -> None:
    opdebug(tmp_path / f"Opdebug.Node_OpDebug.1.1.{STAMP}", old(3, 4))
    dump(tmp_path / f"Add.a.3.4.{STAMP}", "net/a", np.empty((0, 2), np.float16))
    assert "[Shape: (0, 2)] [Dtype: float16] [empty]" in summary_text(find_overflows(tmp_path))
