"""Asking an ASGI application without a socket, cookies kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Names of headers are in lower case; `host` is this machine's unless another is given."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.cookie = ""

    def get(self, target: str, **headers: str) -> Answer:
        return self.request("GET", target, headers)

    def post(self, target: str, body: bytes, **headers: str) -> Answer:
        return self.request("POST", target, headers, body)

    def request(
        self, method: str, target: str, headers: Mapping[str, str] = {}, body: bytes = b"", is_whole: bool = True
    ) -> Answer:
        path, _, query = target.partition("?")
        told = {"host": "127.0.0.1:4000", **({"cookie": self.cookie} if self.cookie else {}), **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode("latin-1"),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in told.items()],
        }
        sent: list[Any] = []

        parts = [body]

        async def receive() -> dict[str, Any]:
            if not parts:
                await asyncio.Event().wait()  # the rest never comes
            return {"type": "http.request", "body": parts.pop(), "more_body": not is_whole}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self._app(scope, receive, send))
        headers_back = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        if "set-cookie" in headers_back:
            self.cookie = headers_back["set-cookie"].partition(";")[0]
        return Answer(sent[0]["status"], headers_back, b"".join(one.get("body", b"") for one in sent[1:]))
