"""The viewer inside of a notebook (Jupyter, VS Code, marimo, Colab): the page of `msdump view`, answered by the kernel.

import msdump
msdump.view("dump")
"""

from __future__ import annotations

import asyncio
import os
import threading
import urllib.parse
import weakref
from typing import Any

try:
    import anywidget
    import traitlets
except ImportError as error:
    from msdump.errors import ConfigError

    raise ConfigError(
        f"view: expected the package {error.name}, got none. pip install 'msdump[notebook]'; `msdump view` needs none "
        "of it, and shows the same in a browser."
    ) from error

from msdump.analysis.compare.result import Comparison
from msdump.errors import ConfigError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.viewing.filling import Wanted
from msdump.viewing.guard import App
from msdump.viewing.report_file import asset, standalone
from msdump.viewing.serving import FilledIndex, application_maker

Shown = DumpDir | Comparison | DumpedTensor | str | os.PathLike[str]
_START = "<!doctype html>\n"
_FRAME = '<meta name="msdump-frame" content="">\n'


def view(
    what: Shown,
    golden: DumpDir | str | os.PathLike[str] | None = None,
    *,
    mapping: str | os.PathLike[str] | None = None,
    height: int = 720,
) -> View:
    """Show a dump in a notebook, as the last expression of a cell.

    what     a dump or any folder of one; what `msdump.compare` returned; a tensor of a dump, whose operator is shown
    golden   a dump to compare with
    mapping  file of pairs of operators, where two dumps are compared
    height   of the frame, in pixels
    Raises: ConfigError without the packages of the extra `notebook`; FormatError when there is nothing at the path.
    """
    at = ""
    if isinstance(what, Comparison):
        if golden is not None:
            raise ConfigError("golden: expected none beside a comparison, which has its own. Leave it out.")
        shown = os.fspath(what.mine)
        other: str | None = os.fspath(what.golden)
    else:
        if isinstance(what, DumpedTensor):
            levels = (what.rank_id, what.graph_id, what.file.levels.iteration)
            step = "/".join("-" if level is None else str(level) for level in levels)
            at = f"#/operators/{step}?{urllib.parse.urlencode({'q': what.op_name})}"
            what = os.path.dirname(what.path)
        shown = _path(what)
        other = None if golden is None else _path(golden)
    wanted = Wanted(shown, other, None if mapping is None else os.fspath(mapping))
    return View(wanted, at=at, height=height)


def _path(dump: DumpDir | str | os.PathLike[str]) -> str:
    return os.fspath(dump.path if isinstance(dump, DumpDir) else dump)


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
