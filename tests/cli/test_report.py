"""`msdump report` writes a page and says what is on it; its status tells of what could not be read."""

from __future__ import annotations

import numpy as np
import pytest

from msdump.cli.main import main
from msdump.formats.sidecars import Lost, write_lost
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path / "dump", [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(np.nan, 0)})])


def test_a_report_and_its_verdict(dump, tmp_path, capsys):
    assert main(["report", str(dump), "-o", str(tmp_path / "r.html")]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "first NaN: Net/Log-op0" and "r.html (" in out
    assert (tmp_path / "r.html").is_file()


def test_markdown_goes_to_standard_output_alone(dump, tmp_path, capsys):
    assert main(["report", str(dump), "-o", str(tmp_path / "r.html"), "--md", "-"]) == 0
    assert capsys.readouterr().out.startswith("### ❌ ")
    assert main(["report", str(dump), "-o", str(tmp_path / "r.html"), "--md", str(tmp_path / "r.md"), "--redact"]) == 0
    assert (tmp_path / "r.md").read_text(encoding="utf-8").splitlines()[0] == "### ❌ `dump`"
    assert (tmp_path / "r.md").stat().st_mode & 0o777 == (tmp_path / "r.html").stat().st_mode & 0o777 == 0o600
    # The summary of a job is a file of the runner, who reads it afterwards.
    (tmp_path / "summary").touch(0o644)
    (tmp_path / "summary").chmod(0o644)
    assert main(["report", str(dump), "-o", str(tmp_path / "r.html"), "--md", str(tmp_path / "summary")]) == 0
    assert (tmp_path / "summary").stat().st_mode & 0o777 == 0o644


def test_two_dumps(dump, tmp_path, capsys):
    golden = write_dump(tmp_path / "golden", [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(5, 0)})])
    assert main(["report", str(golden), str(dump), "-o", str(tmp_path / "r.html")]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("first ")


def test_damaged_files_make_the_status(dump, tmp_path, capsys):
    (broken,) = dump.rglob("*.input.0.*")
    broken.write_bytes(b"no tensor")
    assert main(["report", str(dump), "-o", str(tmp_path / "r.html")]) == 4
    assert broken.name in capsys.readouterr().err


def test_what_is_missing_makes_the_status(dump, tmp_path, capsys):
    write_lost(dump / "rank_0/.dump_metadata", Lost(3, "no room on the disk"))
    assert main(["report", str(dump), "-o", str(tmp_path / "r.html")]) == 4
    assert "rank 0: the dump is not complete, 3 tensors lost: no room on the disk." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["nowhere"], 2, "nowhere"),
        (["dump", "--max-size", "much"], 2, "--max-size"),
        (["dump", "-o", "missing/r.html"], 2, "missing"),
        (["dump", "-o", "."], 2, "expected to write the report"),
    ],
)
def test_what_goes_wrong_is_said(dump, tmp_path, monkeypatch, capsys, arguments, status, text):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == status
    assert text in capsys.readouterr().err
