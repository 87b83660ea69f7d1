"""The viewer in a notebook: questions come as messages of the widget, and get what the server would answer."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("starlette")

import msdump
from msdump.errors import ConfigError, FormatError
from msdump.viewing.widget import View
from tests.analysis.small_dump import floats, write_dump


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(
        tmp_path / "dump", [("Add-op0", {("output", 0): floats(1, 2)}), ("Log-op1", {("output", 0): floats(3, 4)})]
    )


class Kernel:
    """Sends questions to a widget as the page of a notebook does, and waits for the answers."""

    def __init__(self, widget: View, monkeypatch: pytest.MonkeyPatch) -> None:
        self._widget = widget
        self._come = threading.Condition()
        self._answers: dict[int, tuple[dict[str, Any], bytes]] = {}
        monkeypatch.setattr(widget, "send", self._take)

    def _take(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        with self._come:
            self._answers[content["number"]] = content, buffers[0]
            self._come.notify_all()

    def ask(self, address: str) -> tuple[int, Any]:
        number = len(self._answers) + 1
        self._widget._handle_custom_msg({"view": "a", "number": number, "address": address}, [])
        with self._come:
            assert self._come.wait_for(lambda: number in self._answers, timeout=60)
        content, body = self._answers[number]
        assert content["view"] == "a"
        return content["status"], body

    def filled(self) -> None:
        deadline = time.monotonic() + 60
        while json.loads(self.ask("api/progress")[1])["stage"] != "ready":
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def kernel(dump: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    kernel = Kernel(msdump.view(dump), monkeypatch)
    kernel.filled()
    yield kernel
    kernel._widget.close()


def test_it_answers_as_the_server_does(kernel: Kernel) -> None:
    status, body = kernel.ask("api/overview")
    assert status == 200 and json.loads(body)["verdict"]["kind"] == "ok"
    status, body = kernel.ask("api/step/0/0/0")
    assert status == 200 and [name.split("/")[-1] for name in json.loads(body)["operators"]["name"]] == [
        "Add-op0",
        "Log-op1",
    ]
    status, body = kernel.ask("api/text/0/0/0/1?index=0%3A1")
    assert status == 200 and json.loads(body)["text"] == [["3.0"]]


def test_what_is_not_there_is_refused(kernel: Kernel) -> None:
    status, body = kernel.ask("api/step/9/9/9")
    assert status == 404 and "expected a page of this dump" in json.loads(body)["error"]
    assert kernel.ask("../etc/passwd")[0] == 404
    assert kernel.ask("api/text/0/0/0/99")[0] == 400


def test_the_page_names_no_address(kernel: Kernel) -> None:
    page = kernel._widget._page
    assert (
        "connect-src &#x27;none&#x27;" in page
        and 'name="msdump-frame"' in page
        and "src=" not in page.split("<script>")[0]
    )


def test_what_can_be_shown(dump: Path, tmp_path: Path) -> None:
    comparison = msdump.compare(dump, dump)
    widget = msdump.view(comparison)
    assert widget.at == ""
    with pytest.raises(ConfigError, match="has its own"):
        msdump.view(comparison, dump)
    tensor = next(iter(msdump.open(dump).tensors()))
    assert msdump.view(tensor).at == "#/operators/0/0/0?q=Add-op0"
    with pytest.raises(FormatError, match="got nothing"):
        msdump.view(tmp_path / "absent")


def test_without_the_package_the_error_says_what_to_install(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "msdump.viewing.widget")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ConfigError, match=r"expected the package anywidget.*msdump\[notebook\]"):
        msdump.view(dump)
