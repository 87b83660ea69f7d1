"""The small files: mapping.csv, the two execution-order files, .dump_metadata."""

from __future__ import annotations

import json
import stat
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError, WriteError
from msdump.formats.atomic import Folder
from msdump.formats.paths.sync import safe_op_name
from msdump.formats.sidecars import (
    LOST_FILE,
    DumpMetadata,
    Lost,
    append_history,
    append_mapping,
    mapped_name,
    read_history,
    read_lost,
    read_mapping,
    read_metadata,
    read_order,
    write_lost,
    write_metadata,
    write_order,
)
from msdump.testing import op_names

GOLDEN = Path(__file__).parents[1] / "golden" / "sync"
quick = settings(max_examples=40, deadline=None)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@quick
@given(st.lists(op_names().map(safe_op_name), unique=True, min_size=1, max_size=5))
def test_mappings_are_read_back(originals: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mapping.csv")
        expected: dict[str, str] = {}
        with Folder(folder) as opened:
            for original in originals:
                mapped = mapped_name(original, ".npy", expected.__contains__)
                append_mapping(opened, mapped, original)
                expected[mapped] = original
        assert read_mapping(path) == expected
        assert mode_of(path) == 0o400


def test_numbers_are_stable_and_never_shared() -> None:
    first = mapped_name("a", ".npy", lambda name: False)
    assert first == mapped_name("a", ".npy", lambda name: False)
    assert first.removesuffix(".npy").isdigit()
    second = mapped_name("a", ".npy", lambda name: name == first)
    assert int(second.removesuffix(".npy")) == (int(first.removesuffix(".npy")) + 1) % 2**64


@pytest.mark.parametrize("line", [b"no comma\n", b",empty\n", b"1.npy,\n", b"../1.npy,a\n", b"1.npy,\xff\n"])
def test_mapping_lines_that_are_none(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "mapping.csv").write_bytes(b"1.npy,good\n" + line)
    with pytest.raises(FormatError, match=r"mapping\.csv, line 2"):
        read_mapping(tmp_path / "mapping.csv")


def test_a_cut_mapping_line_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "mapping.csv").write_bytes(b"1.npy,a,b\n2.npy,cu")
    assert read_mapping(tmp_path / "mapping.csv") == {"1.npy": "a,b"}


def test_history_of_mindspore(tmp_path: Path) -> None:
    path = tmp_path / "execution_order" / "h.csv"
    for iteration in (0, 1):
        append_history(path, iteration)
    assert path.read_bytes() == (GOLDEN / "ms_global_execution_order_graph_0.csv").read_bytes()
    assert (mode_of(path), mode_of(path.parent)) == (0o400, 0o700)
    append_history(path, 7)
    assert read_history(path) == [0, 1, 7]


def test_order_of_mindspore(tmp_path: Path) -> None:
    names = read_order(GOLDEN / "ms_execution_order_graph_0.csv")
    assert names[-1] == "Default/optimizer-Momentum/ApplyMomentum-op115"
    text = (GOLDEN / "ms_execution_order_graph_0.csv").read_text()
    path = tmp_path / "execution_order" / "o.csv"
    write_order(path, "an earlier run's\n")
    write_order(path, text)
    assert path.read_text() == text
    assert (mode_of(path), mode_of(path.parent)) == (0o400, 0o700)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "line 1: expected NodeExecutionOrder"), (b"x\n", "got x"), (b"\xff\n", "UTF-8")],
)
def test_orders_that_are_none(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        read_order(tmp_path / "o.csv")


def test_a_name_may_not_be_empty_in_an_order(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("NodeExecutionOrder-FullNameWithScope\na\n\nb\n")
    with pytest.raises(FormatError, match="line 3"):
        read_order(tmp_path / "o.csv")


@pytest.mark.parametrize("line", ["x", "", "-1", "1.5", "\u0663", "9" * 30])
def test_histories_that_are_none(line: str, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text(f"0\n{line}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"h\.csv, line 2: expected an iteration number"):
        read_history(tmp_path / "h.csv")


def test_the_largest_iteration_of_a_history(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("9" * 20 + ",more\n")
    assert read_history(path) == [10**20 - 1]
    path.write_text("9" * 21 + "\n")
    with pytest.raises(FormatError, match="expected an iteration number"):
        read_history(path)


def test_metadata_is_a_byte_copy_and_a_compact_object(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbf{ "any":  "bytes" }\r\n'
    assert write_metadata(tmp_path / ".dump_metadata", text, "CPU", "2.0.0") is True
    folder = tmp_path / ".dump_metadata"
    assert (folder / "data_dump.json").read_bytes() == text
    assert (folder / "config.json").read_bytes() == (GOLDEN / "config.json").read_bytes()
    assert [mode_of(path) for path in (folder, folder / "data_dump.json", folder / "config.json")] == [
        0o700,
        0o400,
        0o400,
    ]
    assert read_metadata(folder) == DumpMetadata(text, "CPU", "2.0.0")


def test_metadata_of_an_earlier_run_is_kept(tmp_path: Path) -> None:
    write_metadata(tmp_path, b"first", "CPU", "2.0.0")
    assert write_metadata(tmp_path, b"second", "GPU", "2.0.0") is False
    assert read_metadata(tmp_path) == DumpMetadata(b"first", "CPU", "2.0.0")


def test_metadata_that_two_processes_write_at_once_is_written_once(tmp_path: Path) -> None:
    """Both find the place free, and one of them is slower."""

    class Unseeing(Folder):
        looked: ClassVar[set[str]] = set()

        def has(self, name: str) -> bool:
            first_look = name not in self.looked
            self.looked.add(name)
            return not first_look and super().has(name)

    write_metadata(tmp_path, b"first", "CPU", "2.0.0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("msdump.formats.sidecars.Folder", Unseeing)
        assert write_metadata(tmp_path, b"second", "GPU", "2.0.0") is False
    assert read_metadata(tmp_path) == DumpMetadata(b"first", "CPU", "2.0.0")


def test_metadata_without_a_folder_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="expected a folder"):
        write_metadata(tmp_path / "file", b"", "CPU", "2.0.0")


@pytest.mark.parametrize("content", ["", "[]", '{"device_target": 1}', "[" * 100_000, "{"])
def test_a_damaged_config_json(content: str, tmp_path: Path) -> None:
    (tmp_path / "data_dump.json").write_text(json.dumps({}))
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(FormatError, match=r"config\.json"):
        read_metadata(tmp_path)


def test_without_config_json_the_target_is_ascend(tmp_path: Path) -> None:
    (tmp_path / "data_dump.json").write_bytes(b"{}")
    assert read_metadata(tmp_path) == DumpMetadata(b"{}", "Ascend", None)


def test_a_chosen_library_of_kernels_stands_in_the_metadata(tmp_path: Path) -> None:
    write_metadata(tmp_path, b"{}", "CPU", "2.0.0", "torch")
    assert (tmp_path / "config.json").read_bytes() == b'{"device_target":"CPU","ms_version":"2.0.0","kernels":"torch"}'
    assert read_metadata(tmp_path).device_target == "CPU"


@quick
@given(st.lists(st.tuples(st.integers(0, 1 << 53), st.text(max_size=2000)), min_size=1, max_size=3))
def test_what_is_lost_is_read_back(runs: list[tuple[int, str]]) -> None:
    """Of the last run that lost something."""
    with tempfile.TemporaryDirectory() as name:
        for tensors, reason in runs:
            write_lost(name, Lost(tensors, reason))
        assert read_lost(Path(name, LOST_FILE)) == Lost(*runs[-1])
        assert mode_of(Path(name, LOST_FILE)) == 0o400


@pytest.mark.parametrize(
    "content", ["", "[]", "[" * 100_000, '{"version": 2}', '{"version": 1, "tensors": -1, "reason": ""}']
)
def test_a_damaged_file_of_what_is_lost(content: str, tmp_path: Path) -> None:
    path = tmp_path / LOST_FILE
    path.write_text(content)
    with pytest.raises(FormatError, match=LOST_FILE):
        read_lost(path)
