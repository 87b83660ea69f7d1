"""`msdump doctor`: what an issue needs, and nothing private."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from msdump import __version__
from msdump.cli.main import main
from tests.analysis.small_dump import floats, write_dump


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    for iteration in range(2):
        write_dump(tmp_path / "dump", [("Net/Add-op0", {("output", 0): floats(1)})], iteration=iteration)
    return tmp_path / "dump"


def test_it_says_what_is_there(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(dump)]) == 0
    out = capsys.readouterr().out
    assert __version__ in out and "a second, with fsync" in out and "iterations" in out
    assert sorted(os.listdir(dump)) == ["rank_0"]


def test_as_json_and_without_what_is_private(
    dump: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(dump / "secret/nowhere.json"))
    monkeypatch.setenv("MSDUMP_DISK_BUDGET", "lots")
    monkeypatch.setenv("MASTER_ADDR", "10.1.2.3")
    monkeypatch.setenv("MSDUMP_UPLOAD", "s3://KEYID:SECRETPW@bucket/team/job")
    assert main(["doctor", str(dump), "--json", "-"]) == 1
    text = capsys.readouterr().out
    value = json.loads(text)
    assert value["dump"]["iterations"] == "2" and value["environment"]["MASTER_ADDR"] == "set"
    assert value["environment"]["MINDSPORE_DUMP_CONFIG"].endswith("nowhere.json")
    assert value["environment"]["MSDUMP_UPLOAD"] == "s3://(hidden)/job"
    assert [one for one in value["problems"] if "nowhere.json" in one] and len(value["problems"]) == 2
    for private in (
        str(dump.parent),
        str(Path.home()) + "/",
        "10.1.2.3",
        "SECRETPW",
        "KEYID",
        f'"{socket.gethostname()}"',
    ):
        assert private not in text


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(tmp_path / "no")]) == 2
    assert "DIR: expected a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sentence", "is_missing", "status"),
    [
        ("`msdump native`, once, builds it", True, 0),
        ("msdump-native was not used: it is old.", False, 1),
        ("", False, 0),
    ],
)
def test_what_a_report_says_of_compiled_code(
    sentence: str,
    is_missing: bool,
    status: int,
    dump: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That it is missing is no problem."""
    pytest.importorskip("torch")
    from msdump.frontends.torch.eager import native

    monkeypatch.setattr(native, "native_sentence", lambda: sentence)
    monkeypatch.setattr(native, "lacks_native", lambda: is_missing)
    assert main(["doctor", str(dump), "--json", "-"]) == status
    value = json.loads(capsys.readouterr().out)
    assert value["native"] == {"msdump-native": sentence or "is used for dumps of eager PyTorch"}
    assert len(value["problems"]) == status
    monkeypatch.setenv("MSDUMP_NATIVE", "0")
    assert main(["doctor", str(dump), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["native"] == {}
