"""A viewer's server as one connection sees it: bytes in, bytes out, without a socket."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from msdump.viewing.filling import Wanted, fill
from msdump.viewing.guard import Guard, Tokens
from msdump.viewing.index import Index
from msdump.viewing.server import Actions, application
from tests.analysis.small_dump import floats, write_dump

# Those of the requests in the corpus.
TOKENS = Tokens("printed-token", "once-token", "session-token", "action-token")
_COOKIE = "msdump-4000"


class _Transport(asyncio.Transport):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self._is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self._is_closed = True

    def is_closing(self) -> bool:
        return self._is_closed

    def pause_reading(self) -> None:
        """Nothing more comes anyway."""

    def resume_reading(self) -> None:
        """Nothing more comes anyway."""


@functools.cache
def _place() -> tuple[tempfile.TemporaryDirectory[str], Index, Path]:
    folder = tempfile.TemporaryDirectory(prefix="msdump-hostile-")
    home = Path(folder.name)
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensors = {("input", 0): values, ("output", 0): floats(np.nan, 0)}
    dumps = [str(write_dump(home / name, [("Net/Log-op0", tensors)])) for name in ("dump", "golden")]
    fill(Wanted(*dumps), home / "index.sqlite")
    return folder, Index(home / "index.sqlite"), home / "pairs.json"


def answer_to(data: bytes) -> bytes:
    """What comes back until the client hangs up behind these bytes.   Raises: what the application does not catch."""
    _, index, mapping = _place()
    app = application(index, "dump", Actions(str(mapping), TOKENS.action))
    guard = Guard(app, TOKENS, cookie=_COOKIE, has_actions=True)
    try:
        return asyncio.run(_answer(guard, data))
    finally:
        mapping.unlink(missing_ok=True)


async def _answer(guard: Guard, data: bytes) -> bytes:
    import uvicorn
    from uvicorn.server import ServerState

    from msdump.viewing.server import TimedProtocol

    errors: list[Exception] = []

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        try:
            await guard(scope, receive, send)
        except Exception as error:
            errors.append(error)
            raise

    config = uvicorn.Config(
        watched, http=TimedProtocol, ws="none", lifespan="off", log_config=None, access_log=False, log_level=50
    )
    config.load()
    state = ServerState()
    protocol = TimedProtocol(config, state, {}, asyncio.get_running_loop())
    transport = _Transport()
    protocol.connection_made(transport)
    if data:  # no bytes stand for the end of a connection
        protocol.data_received(data)
    while _is_at_work(protocol):
        await asyncio.sleep(0.0005)
    protocol.connection_lost(None)
    while state.tasks:
        await asyncio.wait(state.tasks)
    if errors:
        raise errors[0]
    return transport.sent


def _is_at_work(protocol: Any) -> bool:
    """Whether a request is whole and its answer is not."""
    cycle = protocol.cycle
    return cycle is not None and not cycle.response_complete and not cycle.more_body
