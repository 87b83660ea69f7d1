"""The server as a whole: connections that never ask, threads that never answer, and an end all the same."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from msdump.viewing.filling import Wanted
from msdump.viewing.server import TimedProtocol
from msdump.viewing.serving import Viewing
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "dump", [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(np.nan, 0)})])


@pytest.fixture
def viewing(dump: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Viewing]:
    """A server at work in a thread."""
    monkeypatch.setattr(TimedProtocol, "header_seconds", 0.2)
    with Viewing(Wanted(str(dump)), has_index=False) as viewing:
        thread = threading.Thread(target=viewing.serve)
        thread.start()
        try:
            yield viewing
        finally:
            viewing.stop()
            thread.join()


def sent(viewing: Viewing, *parts: bytes) -> bytes:
    """All that comes back until the server closes the connection."""
    answer = b""
    with socket.create_connection(("127.0.0.1", viewing.port)) as connection:
        for part in parts:
            connection.sendall(part)
        while data := connection.recv(1 << 16):
            answer += data
    return answer


HOST = b"Host: localhost\r\n"


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: ",
        # The second request of a connection, and the body of one that is answered already.
        b"GET / HTTP/1.1\r\n" + HOST + b"\r\nGET /",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 10\r\n\r\n1",
    ],
)
def test_what_does_not_come_is_not_waited_for(viewing: Viewing, part: bytes, alarm: None) -> None:
    answer = sent(viewing, part)
    assert answer.startswith(b"HTTP/1.1 4") if b"\r\n\r\n" in part else answer == b""


def test_a_connection_that_asks_in_time_is_kept(viewing: Viewing, alarm: None) -> None:
    request = b"GET /?token=x HTTP/1.1\r\n" + HOST + b"\r\n"
    last = request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert sent(viewing, request, request, last).count(b"HTTP/1.1 403") == 3


def test_large_headers_and_web_sockets_are_refused(viewing: Viewing, alarm: None) -> None:
    upgrade = (
        b"Upgrade: websocket\r\nConnection: Upgrade, close\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n"
    )
    assert sent(viewing, b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 100_000).startswith(b"HTTP/1.1 400")
    assert sent(viewing, b"GET / HTTP/1.1\r\n" + HOST + upgrade + b"\r\n").startswith(b"HTTP/1.1 403")


def test_a_thread_that_never_answers_does_not_keep_the_server(
    dump: Path, monkeypatch: pytest.MonkeyPatch, alarm: None
) -> None:
    """A file system that hangs holds a thread for ever."""
    begun, never = threading.Event(), threading.Event()
    before = set(threading.enumerate())  # those of tests before it may still end

    def hang(path: str) -> None:
        begun.set()
        never.wait()

    with Viewing(Wanted(str(dump)), has_index=False) as viewing:
        monkeypatch.setattr(viewing.index, "answer", hang)
        serving = threading.Thread(target=viewing.serve)
        serving.start()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        home = viewing.url.partition("?")[0]
        opener.open(viewing.url).read()

        def ask() -> None:
            with pytest.raises((urllib.error.URLError, ConnectionError)):
                opener.open(f"{home}api/overview")

        asking = threading.Thread(target=ask)
        asking.start()
        begun.wait()
        viewing.stop()
        serving.join()
    asking.join()
    (hung,) = [one for one in threading.enumerate() if one.name == "msdump view" and one not in before]
    assert hung.daemon, "else the process would wait for it at its end"
    never.set()
    hung.join()


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Whatever fails inside, the process ends, for which the test would wait otherwise."""
    try:
        yield
    finally:
        process.kill()


def test_the_browser_gets_an_address_that_holds_once(dump: Path, tmp_path: Path, alarm: None) -> None:
    browser = tmp_path / "browser"
    new, whole = (shlex.quote(str(tmp_path / name)) for name in ("told.new", "told"))
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {new} && mv {new} {whole}\n')
    browser.chmod(0o700)
    shown = f"{shlex.quote(str(browser))} %s"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path), "BROWSER": shown}
    environment.pop("SSH_CONNECTION", None)
    command = [sys.executable, "-m", "msdump", "view", str(dump)]
    with (
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process,
        _ended(process),
    ):
        assert process.stdout is not None
        printed = process.stdout.readline().strip()
        while not (tmp_path / "told").exists():
            assert process.poll() is None
            threading.Event().wait(0.02)
        told = (tmp_path / "told").read_text()
        assert re.sub("token=.*", "", told) == re.sub("token=.*", "", printed) and told != printed
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        page = opener.open(told).read()
        assert b'<div id="app">' in page
        assert told.partition("token=")[2].encode() not in page
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(told)
        process.terminate()
        assert process.wait() == 0
