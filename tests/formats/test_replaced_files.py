"""Files that are written anew while their iteration goes on: whole, and counted as they lie on the disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import WriteError
from msdump.formats.replaced_files import ReplacedFiles
from msdump.formats.writer import WriteCounts
from msdump.tensors.records import OUTPUT, TensorRecord


def text(name: str, content: bytes, iteration: int = 0) -> TensorRecord:
    array = np.frombuffer(content, np.uint8)
    return TensorRecord("", name, 0, 0, 0, OUTPUT, 0, "uint8", array, iteration=iteration)


writes = st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.binary(min_size=1, max_size=9))


@given(st.lists(writes))
def test_the_last_content_counts(steps: list[tuple[int, str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        files = ReplacedFiles(lambda record: Path(root, str(record.iteration)), 0o600, 0o700)
        for iteration, name, content in steps:
            files.write([text(name, content, iteration)])
        expected = {f"{iteration}/{name}": content for iteration, name, content in steps}
        on_disk = {path.relative_to(root).as_posix(): path.read_bytes() for path in Path(root).glob("*/*")}
        assert on_disk == expected
        size = sum(map(len, expected.values()))
        assert files.counts == WriteCounts(len(expected), 0, size, size)
        files.end_iteration(0, 0)
        files.close()


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ReplacedFiles(lambda record: tmp_path, 0o600, 0o700)
    files.write([text("a", b"first")])
    before = files.counts

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("msdump.formats.atomic._write_all", full)
    with pytest.raises(WriteError, match="a: expected to write 6 bytes"):
        files.write([text("a", b"second")])
    assert files.counts == before and [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"first" and (tmp_path / "a").stat().st_mode & 0o777 == 0o600
