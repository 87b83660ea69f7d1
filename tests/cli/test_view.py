"""`msdump view` serves the address that it prints, and says what stands in its way."""

from __future__ import annotations

import http.cookiejar
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from msdump.cli.main import main
from msdump.viewing.filling import Wanted
from msdump.viewing.serving import Viewing
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "dump", [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(np.nan, 0)})])


@pytest.fixture
def served(dump: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command at work, and its address."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("SSH_CONNECTION", None)
    command = [sys.executable, "-m", "msdump", "view", str(dump), "--no-browser"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_the_printed_address_leads_to_the_dump(served: tuple[subprocess.Popen[str], str], tmp_path: Path) -> None:
    process, url = served
    assert url.startswith("http://127.0.0.1:") and "?token=" in url
    home = url.partition("?")[0]
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    assert b'<div id="app">' in opener.open(url, timeout=30).read()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{home}api/overview", timeout=30)
    for _ in range(600):
        progress = json.load(opener.open(f"{home}api/progress", timeout=30))
        if progress["stage"] == "ready":
            break
        time.sleep(0.1)
    assert json.load(opener.open(f"{home}api/overview", timeout=30))["verdict"]["kind"] == "first-nan"
    assert [path.suffix for path in (tmp_path / "cache" / "msdump" / "index").glob("*.sqlite")] == [".sqlite"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0 and errors == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "no.such.host.invalid"], "--host: expected a name or an address of this machine"),
        (["--host", "192.0.2.1"], "expected a place to listen at"),
    ],
)
def test_a_host_that_is_not_this_machine(
    arguments: list[str], message: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(dump), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_all_addresses_are_called_by_this_machines(dump: Path) -> None:
    """As in a container, which is asked from outside: 0.0.0.0 is no address to go to."""
    with Viewing(Wanted(str(dump)), host="0.0.0.0", has_index=False) as viewing:
        assert viewing.url.startswith(f"http://127.0.0.1:{viewing.port}/?token=")


def test_a_port_in_use(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["view", str(dump), "--port", str(taken.getsockname()[1])]) == 2
    assert "which another program has" in capsys.readouterr().err


def test_no_dump_and_no_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["view", str(tmp_path / "nowhere")]) == 2
    assert "got nothing" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["view", str(tmp_path)]) == 2
    assert "pip install 'msdump[view]'; msdump report needs no package" in capsys.readouterr().err
