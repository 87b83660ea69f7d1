"""A small S3 server in a thread: objects, their metadata, listings in pages, uploads in parts, and bad manners.

with SmallS3() as server:
    server.environment            # variables by which clients reach it
    server.objects["job/5.tar"]   # what it holds, bucket left out
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "dump"
_METADATA = "x-amz-meta-"
_MODIFIED = "Thu, 26 Nov 2026 05:00:00 GMT"


@dataclass(frozen=True)
class Held:
    """One object."""

    content: bytes
    tag: str
    metadata: dict[str, str] = field(default_factory=dict)


def _digest(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


class SmallS3:
    """keeps_metadata  False: as stores that drop what a client says of an object
    tag_of             entity tag of an object that came in one request; S3 has the MD5
    listing            what answers a listing in place of the server: pages without end
    """

    def __init__(self) -> None:
        self.objects: dict[str, Held] = {}
        self.uploads: dict[str, tuple[str, dict[str, str], dict[int, bytes]]] = {}
        self.requests: list[tuple[str, str]] = []
        self.keeps_metadata = True
        self.tag_of: Callable[[bytes], str] = _digest
        self.listing: Callable[[str], str] | None = None
        self.page = 1000
        server = self

        class Requests(_Requests):
            store = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
        return {"AWS_ENDPOINT_URL": self.url, **keys}

    def hold(self, name: str, content: bytes, tag: str = "", metadata: dict[str, str] | None = None) -> None:
        self.objects[name] = Held(
            content, tag or self.tag_of(content), metadata if self.keeps_metadata and metadata else {}
        )

    def puts(self) -> list[str]:
        """Names of objects that clients sent, in order."""
        return [name for method, name in self.requests if method == "PUT"]

    def __enter__(self) -> SmallS3:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Requests(BaseHTTPRequestHandler):
    store: SmallS3
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # a client that was killed
            super().handle()

    def _target(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return unquote(parts.path).lstrip("/").removeprefix(BUCKET).lstrip("/"), query

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _metadata(self) -> dict[str, str]:
        found = {name.lower(): value for name, value in self.headers.items()}
        return {name: value for name, value in found.items() if name.startswith(_METADATA)}

    def do_PUT(self) -> None:
        name, query = self._target()
        body = self._body()
        if len(body) != int(self.headers.get("Content-Length") or 0):
            return  # the client has gone
        if "uploadId" in query:
            self.store.uploads[query["uploadId"]][2][int(query["partNumber"])] = body
            self._answer(200, headers={"ETag": f'"{_digest(body)}"'})
            return
        self.store.requests.append(("PUT", name))
        self.store.hold(name, body, metadata=self._metadata())
        self._answer(200, headers={"ETag": f'"{self.store.objects[name].tag}"'})

    def do_POST(self) -> None:
        name, query = self._target()
        self._body()
        if "uploads" in query:
            number = uuid.uuid4().hex
            self.store.uploads[number] = name, self._metadata(), {}
            text = f"<UploadId>{number}</UploadId>"
            self._answer(200, f"<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>".encode())
            return
        name, metadata, parts = self.store.uploads.pop(query["uploadId"])
        content = b"".join(parts[number] for number in sorted(parts))
        self.store.requests.append(("PUT", name))
        self.store.hold(name, content, f"{_digest(content[::-1])}-{len(parts)}", metadata)
        tag = f"<ETag>{self.store.objects[name].tag}</ETag>"
        self._answer(200, f"<CompleteMultipartUploadResult>{tag}</CompleteMultipartUploadResult>".encode())

    def do_DELETE(self) -> None:
        _, query = self._target()
        self.store.uploads.pop(query.get("uploadId", ""), None)
        self._answer(204)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        name, query = self._target()
        if "list-type" in query:
            answer = self.store.listing or self._listing
            self._answer(200, answer(query.get("continuation-token", "")).encode(), {"Content-Type": "application/xml"})
            return
        self.store.requests.append((self.command, name))
        held = self.store.objects.get(name)
        if held is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        headers = {"ETag": f'"{held.tag}"', "Last-Modified": _MODIFIED, **held.metadata}
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, held.content, headers)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(held.content) - 1), len(held.content) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(held.content)}"
        self._answer(206, held.content[start : end + 1], headers)

    def _listing(self, token: str) -> str:
        _, query = self._target()
        names = sorted(name for name in list(self.store.objects) if name.startswith(query.get("prefix", "")))
        start = int(token or 0)
        shown = {name: self.store.objects[name] for name in names[start : start + self.store.page]}
        rows = [(name, len(held.content), held.tag) for name, held in shown.items()]
        return listing(rows, str(start + len(rows)) if start + len(rows) < len(names) else "")


def listing(rows: list[tuple[str, int, str]], next_token: str = "") -> str:
    """A page of a listing, of (name, size, tag)."""
    entries = "".join(
        f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><ETag>&quot;{tag}&quot;</ETag>"
        "<LastModified>2026-11-26T05:00:00.000Z</LastModified></Contents>"
        for name, size, tag in rows
    )
    more = (
        f"<IsTruncated>true</IsTruncated><NextContinuationToken>{next_token}</NextContinuationToken>"
        if next_token
        else ""
    )
    return f"<ListBucketResult>{entries}{more}</ListBucketResult>"


def silent_server() -> socket.socket:
    """A socket at 127.0.0.1 that takes connections and never answers."""
    return socket.create_server(("127.0.0.1", 0), backlog=64)
