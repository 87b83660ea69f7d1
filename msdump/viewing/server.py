"""The server of a viewer: the front end, the answers of an index, and parts of tensors, which are read when asked for.

Nothing in an address is a path: tensors go by step and number. Nothing on the disk changes but the index.
"""

from __future__ import annotations

import asyncio
import gzip
import html
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import anyio
import numpy as np
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from msdump.analysis.compare.mapping import add_pair
from msdump.errors import ConfigError, FormatError, MsdumpError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.tensors.arrays import Array
from msdump.viewing.differences import KINDS, distance
from msdump.viewing.filling import GOLDEN
from msdump.viewing.histograms import blocks, histogram
from msdump.viewing.index import Index, TensorPlace
from msdump.viewing.pages import encoded
from msdump.viewing.report_file import asset
from msdump.viewing.slices import ArraySlice

MINE, OTHER = "mine", "golden"
_SIDES = (MINE, OTHER, *KINDS)
_HEAVY = 2  # tensors that are read at a time
_ASSETS = {
    "app.js": "text/javascript; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "THIRD_PARTY.txt": "text/plain; charset=utf-8",
}
_JSON = "application/json"
_MAX_BODY = 1 << 16
_BODY_SECONDS = 10.0
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Actions:
    """What the page may have written.

    mapping  file that takes pairs of operators
    token    that a page sends along with an action
    """

    mapping: str
    token: str


def application(index: Index, title: str, actions: Actions | None = None) -> Starlette:
    """The routes, without the checks of `Guard`.

    index    that another process may be filling
    title    of the page: plain text
    actions  None: the page only reads
    """
    limiter = anyio.CapacityLimiter(_HEAVY)

    async def page(request: Request) -> Response:
        return Response(_page(title, actions), media_type="text/html; charset=utf-8")

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _ASSETS:
            return _refused(404, "no such file")
        return Response(asset(name), media_type=_ASSETS[name])

    async def progress(request: Request) -> Response:
        told = {**asdict(index.progress), "is_server": True}
        del told["stamp"]
        return Response(encoded(told), media_type=_JSON)

    async def answer(request: Request) -> Response:
        path = request.path_params["path"]
        body = await _in_thread(lambda: index.answer(path))
        if body is not None:
            return _packed(request, body)
        now = index.progress
        if now.version == 0:
            return _refused(503, now.message or "The dump is being read.")
        return _refused(404, f"expected a page of this dump, got {path!r}")

    def heavy(make: Callable[[_Asked], tuple[bytes, str]]) -> Callable[[Request], Any]:
        async def cut(request: Request) -> Response:
            query = request.query_params
            step, number = request.path_params["step"], request.path_params["number"]
            asked = _Asked(index, step, number, query.get("what", MINE), query.get("index"))

            def work() -> tuple[bytes, str]:
                return make(asked)

            try:
                async with limiter:
                    body, kind = await _in_thread(work)
            except (MsdumpError, OSError) as error:
                return _refused(400, str(error))
            return Response(body, media_type=kind)

        return cut

    def part(make: Callable[[ArraySlice], tuple[bytes, str]]) -> Callable[[Request], Any]:
        return heavy(lambda asked: make(_slice(asked)))

    def counted(asked: _Asked) -> tuple[bytes, str]:
        return encoded(_histogram(asked)), _JSON

    def picture(one: ArraySlice) -> tuple[bytes, str]:
        return one.picture(), "application/octet-stream"

    def text(one: ArraySlice) -> tuple[bytes, str]:
        return encoded(one.text()), _JSON

    def npy(one: ArraySlice) -> tuple[bytes, str]:
        return one.npy(), "application/octet-stream"

    async def pair(request: Request) -> Response:
        if actions is None:
            return _refused(405, "expected a server with --allow-actions, got one that only reads")
        try:
            names = _names_of(await _body(request))
            await _in_thread(lambda: add_pair(actions.mapping, *names))
        except MsdumpError as error:
            return _refused(400, str(error))
        except ClientDisconnect:
            return _refused(400, "expected a body, got the end of the connection")
        except TimeoutError:
            return _refused(408, f"expected the body within {_BODY_SECONDS:.0f} seconds, got a part of it")
        return Response(encoded({"mapping": actions.mapping}), media_type=_JSON)

    routes = [
        Route("/", page),
        Route("/assets/{name}", file),
        Route("/api/progress", progress),
        *(
            Route(f"/api/{name}/{{step:path}}/{{number:int}}", part(make))
            for name, make in (("picture", picture), ("text", text), ("npy", npy))
        ),
        Route("/api/histogram/{step:path}/{number:int}", heavy(counted)),
        Route("/api/pairs", pair, methods=["POST"]),
        Route("/api/{path:path}", answer),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # addresses are made by the page: there is one for each answer
    return app


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    """Result of a function, run in a thread of its own that keeps neither the server nor the process from ending.

    A file system that does not answer holds such a thread for ever.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def tell(result: _Result | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is waited for
            error = raised
        try:
            loop.call_soon_threadsafe(tell, result, error)
        except RuntimeError:  # the server has ended meanwhile
            return

    threading.Thread(target=run, name="msdump view", daemon=True).start()
    return await future


async def _body(request: Request) -> bytes:
    """Raises: ConfigError when it is longer than two names may be; TimeoutError."""
    body = b""
    with anyio.fail_after(_BODY_SECONDS):
        async for part in request.stream():
            body += part
            if len(body) > _MAX_BODY:
                raise ConfigError(f"pair: expected at most {_MAX_BODY} bytes, got more.")
    return body


def _names_of(body: bytes) -> tuple[str, str]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"pair: expected json, got: {error}.") from error
    names = [content.get(side) for side in (MINE, OTHER)] if isinstance(content, dict) else []
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ConfigError(f'pair: expected {{"{MINE}": name, "{OTHER}": name}}, got {type(content).__name__}.')
    mine, golden = str(names[0]), str(names[1])
    try:
        (mine + golden).encode()
    except UnicodeEncodeError as error:
        raise ConfigError("pair: expected names, got half a character (a lone surrogate).") from error
    return mine, golden


def _page(title: str, actions: Actions | None) -> str:
    # Who can read this page has passed the checks; other sites' pages cannot.
    token = "" if actions is None else f'<meta name="msdump-token" content="{html.escape(actions.token)}">\n'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'{token}<title>{html.escape(title)} – msdump</title>\n<link rel="stylesheet" href="assets/app.css">\n'
        '<link rel="icon" href="data:,"></head>\n'
        '<body><div id="app"></div>\n<script src="assets/app.js"></script></body></html>\n'
    )


def _packed(request: Request, body: bytes) -> Response:
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(body, media_type=_JSON, headers={"content-encoding": "gzip"})
    return Response(gzip.decompress(body), media_type=_JSON)


def _refused(status: int, text: str) -> Response:
    return Response(encoded({"error": text}), status, media_type=_JSON)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request wants to see of a tensor: a side or a distance, and the part that an expression names."""

    index: Index
    step: str
    number: int
    what: str
    expression: str | None

    def side(self, name: str) -> DumpedTensor:
        place = self.index.tensor(f"{GOLDEN if name == OTHER else ''}{self.step}", self.number)
        return _tensor(place, name)


def _loaded(asked: _Asked) -> tuple[tuple[Array, ...], Callable[..., Array]]:
    """One array or two, and what a part of it is, or of both.

    Raises: ConfigError for what is not there; FormatError for a file that cannot be read.
    """
    if asked.what not in _SIDES:
        raise ConfigError(f"what: expected {', '.join(_SIDES[:-1])} or {_SIDES[-1]}, got {asked.what!r}.")
    if asked.what not in KINDS:
        return (asked.side(asked.what).load_host(),), lambda values: values
    tensors = asked.side(MINE), asked.side(OTHER)
    mine, golden = (tensor.load_host() for tensor in tensors)
    names = tensors[0].true_dtype, tensors[1].true_dtype
    return (mine, golden), distance(asked.what, names, (mine, golden))


def _slice(asked: _Asked) -> ArraySlice:
    """Raises: as `_loaded` and `ArraySlice.of`."""
    arrays, combined = _loaded(asked)
    parts = [ArraySlice.of(array, asked.expression) for array in arrays]
    _check_shapes([part.values for part in parts])
    return ArraySlice(combined(*(part.values for part in parts)), parts[0].index, parts[0].axes)


def _check_shapes(parts: Sequence[Array]) -> None:
    if len({part.shape for part in parts}) > 1:
        shapes = " and ".join(str(list(part.shape)) for part in parts)
        raise ConfigError(f"what: expected parts of one shape for a difference, got {shapes}.")


def _histogram(asked: _Asked) -> dict[str, Any]:
    """Of the whole tensor without an expression.   Raises: as `_slice`."""
    arrays, combined = _loaded(asked)
    if asked.expression is not None:
        arrays = tuple(ArraySlice.of(array, asked.expression).values for array in arrays)
    _check_shapes(arrays)
    if arrays[0].dtype.kind not in "biufcV":
        raise ConfigError(f"index: expected a tensor of numbers, got elements of {arrays[0].dtype}.")

    def parts() -> Iterator[Array]:
        for values in (combined(*part) for part in blocks(*arrays)):
            yield np.abs(values) if values.dtype.kind == "c" else values.astype(np.float64)

    return {"what": asked.what, **histogram(parts, asked.what in KINDS)}


def _tensor(place: TensorPlace | None, what: str) -> DumpedTensor:
    if place is None:
        raise ConfigError(f"tensor: expected one that the dump holds, got none ({what}).")
    for tensor in DumpDir.open(place.file).tensors():
        found = tensor.io, tensor.slot, tensor.part, tensor.keyword, tensor.offset
        if found == (place.io, place.slot, place.part, place.keyword, place.offset):
            return tensor
    raise FormatError(f"{place.file}: expected {place.io} {place.slot}, got a file without elements of it.")


# -- connections -------------------------------------------------------------------------------------------------------

HEADER_SECONDS = 10.0


class TimedProtocol(H11Protocol):
    """One connection, which ends when a request does not come in time.

    uvicorn bounds the size of the headers and how long a connection may be idle between two requests, and waits for
    ever for the rest of headers that have begun.

    header_seconds   in which the headers of a request must be complete
    """

    header_seconds = HEADER_SECONDS
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Start the clock where headers are waited for, and stop it where a request is being answered."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.header_seconds, self.transport.close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
