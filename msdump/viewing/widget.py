"""View: the page of `msdump view` as a widget of a notebook, answered by the kernel."""

from __future__ import annotations

import asyncio
import threading
import urllib.parse
import weakref
from typing import Any

import anywidget
import traitlets

from msdump.viewing.filling import Wanted
from msdump.viewing.guard import App
from msdump.viewing.report_file import asset, standalone
from msdump.viewing.serving import FilledIndex, application_maker

_START = "<!doctype html>\n"
_FRAME = '<meta name="msdump-frame" content="">\n'


class View(anywidget.AnyWidget):
    """The page in a frame. A process fills the index of its dump, and ends with the widget or with the kernel."""

    _esm = asset("widget.js")
    _page = traitlets.Unicode().tag(sync=True)
    at = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int().tag(sync=True)

    def __init__(self, wanted: Wanted, at: str = "", height: int = 720) -> None:
        make_application = application_maker()
        filled = FilledIndex(wanted)
        weakref.finalize(self, filled.close)
        self._application = make_application(filled.index, filled.title, None, "")
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="msdump view", daemon=True).start()
        super().__init__(_page=_START + standalone(f"{filled.title} – msdump", _FRAME), at=at, height=height)
        self.on_msg(_take)

    def __repr__(self) -> str:
        return f"<msdump.view {self.at or 'overview'}>"

    async def _answer(self, content: dict[str, Any]) -> None:
        status, body = await asked(self._application, str(content["address"]))
        self.send({"view": content.get("view"), "number": content.get("number"), "status": status}, [body])


def _take(widget: View, content: Any, buffers: object) -> None:
    if isinstance(content, dict) and "address" in content:
        asyncio.run_coroutine_threadsafe(widget._answer(content), widget._loop)


async def asked(application: App, address: str) -> tuple[int, bytes]:
    """Ask the routes of a viewer as a browser would, without a connection.   Returns: status and body."""
    path, _, query = address.partition("?")
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": f"/{urllib.parse.unquote(path)}", "raw_path": f"/{path}".encode(), "query_string": query.encode(),
        "root_path": "", "headers": [], "client": None, "server": None,
    }  # fmt: skip
    status, body = 500, b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, body
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            body += message.get("body", b"")

    await application(scope, receive, send)
    return status, body
