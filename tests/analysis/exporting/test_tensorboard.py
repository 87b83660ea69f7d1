"""Event files: TensorBoard's format as tensorboardX writes it, read back by its own messages."""

from __future__ import annotations

import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from msdump.analysis.exporting import export, tensorboard
from msdump.errors import ConfigError

pytest.importorskip("tensorboardX")


def tags(folder: Path) -> dict[str, list[tuple[int, Any]]]:
    """Records of all event files: length (8 bytes), checksum (4), message, checksum (4)."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for path in sorted(folder.rglob("events.*")):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack_from("<Q", data)
            event = Event.FromString(data[12 : 12 + length])
            for value in event.summary.value:
                found[value.tag].append((event.step, value))
            data = data[16 + length :]
    return found


def test_statistics_over_iterations(nan_dump: Path, tmp_path: Path) -> None:
    written, contents = export(nan_dump, "tensorboard", tmp_path / "x")
    assert written.paths == (tmp_path / "x",) and not written.notes
    found = tags(tmp_path / "x")
    rows = [row for one in contents.operators for row in one.tensors]
    norms = {tag: values for tag, values in found.items() if tag.endswith("/l2norm")}
    assert sum(map(len, norms.values())) == len([row for row in rows if row.numbers.l2norm is not None])
    (log,) = (tag for tag in norms if "Log-op" in tag and "/output_0/" in tag)
    assert [step for step, _ in norms[log]] == [0, 1]
    nans = found[log.replace("l2norm", "nan")]
    assert all(value.simple_value > 0 for _, value in nans)
    histograms = [value.histo for tag, values in found.items() if tag.endswith("/exponents") for _, value in values]
    counts = sorted(row.exponents.count for row in rows if row.exponents is not None and row.exponents.count)
    assert sorted(histo.num for histo in histograms) == counts
    assert all(len(histo.bucket) == len(histo.bucket_limit) for histo in histograms)


def test_the_worst_have_room_first(nan_dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard, "MOST_TAGS", 5)
    written, _ = export(nan_dump, "tensorboard", tmp_path / "x")
    assert "Left out: " in written.notes[0]
    found = tags(tmp_path / "x")
    assert 0 < len(found) <= 5 and all("Log-op" in tag and "output" in tag for tag in found)


def test_a_place_that_is_taken(nan_dump: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(ConfigError, match="expected the path of a new or an empty folder"):
        export(nan_dump, "tensorboard", tmp_path / "x")
    assert (tmp_path / "x").read_text() == "mine"
