"""Data in a device format are measured and shown as the host has them; `--raw` shows them as they are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.analysis import show_operator, tensor_statistics, write_statistic_files
from msdump.cli.main import main
from msdump.formats.bin import bin_chunks
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.statistics.stats import statistics
from msdump.tensors.records import TensorRecord

NAME = "Default/net/ReLU-op1"


def write_bin(root: Path, array: Any, format_name: str) -> Path:
    """An asynchronous dump of one operator whose output lies in a device format."""
    folder = root / "20240101120000/0/Net/0/0"
    folder.mkdir(parents=True)
    record = TensorRecord("ReLU", NAME, 1, 0, 1_700_000_000_000_001, "output", 0, "float32", array, format_name)
    data = b"".join(bytes(chunk) for chunk in bin_chunks([record]))
    (folder / f"ReLU.Default_net_ReLU-op1.1.0.{record.timestamp_us}").write_bytes(data)
    return root


@settings(max_examples=25, deadline=None)
@given(shape=st.tuples(*[st.integers(1, 5)] * 4), format_name=st.sampled_from(["NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"]))
def test_statistics_are_those_of_the_host(
    shape: tuple[int, ...], format_name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    dump = write_bin(tmp_path_factory.mktemp("bin"), host, format_name)
    (row,) = tensor_statistics(dump, has_md5=True).rows
    assert row.numbers == statistics(host, "float32") and row.shape == shape and row.numbers.zero == 0
    (raw,) = tensor_statistics(dump, is_raw=True).rows
    assert raw.shape == row.tensor.shape and raw.numbers.count == np.prod(row.tensor.shape)
    assert raw.numbers.zero == raw.numbers.count - host.size


def test_show_gives_the_elements_of_the_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 2, 2)
    dump = write_bin(tmp_path, host, "NC1HWC0")
    (shown,) = show_operator(dump, "*ReLU-op1").tensors
    assert shown.shape == (1, 3, 2, 2) and shown.preview == "[1, 2, 3, 4, 5, 6, ...]"
    (stored,) = show_operator(dump, "*ReLU-op1", is_raw=True).tensors
    assert stored.shape == (1, 1, 2, 2, 16) and stored.preview == "[1, 5, 9, 0, 0, 0, ...]"
    assert main(["show", str(dump), "*ReLU-op1"]) == 0
    assert "1x3x2x2" in capsys.readouterr().out
    assert main(["show", str(dump), "*ReLU-op1", "--raw"]) == 0
    assert "1x1x2x2x16" in capsys.readouterr().out


def test_the_table_and_the_csv_take_the_host_form_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 2, 2)
    dump = write_bin(tmp_path / "dump", host, "NC1HWC0")
    for option, zero, shape in (([], "0 %", "1x3x2x2"), (["--raw"], "81 %", "1x1x2x2x16")):
        assert main(["stat", str(dump), *option]) == 0
        table, _ = capsys.readouterr().out.split("\nnext:")
        assert shape in table.split() and f"zero {zero}" in table
    for is_raw, shape in ((False, (1, 3, 2, 2)), (True, (1, 1, 2, 2, 16))):
        (path,), _ = write_statistic_files(dump, tmp_path / str(is_raw), is_raw=is_raw)
        (row,) = read_statistic_csv(path)
        assert row.shape == shape
