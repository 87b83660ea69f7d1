"""A viewer's server as a whole: the index, the process that fills it, the socket, and the address to open.

with Viewing(Wanted("dump")) as viewing:
    print(viewing.url)
    viewing.serve()  # until Ctrl-C
"""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Generator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from msdump.errors import ConfigError, FormatError, without_secrets
from msdump.formats.atomic import write_file
from msdump.storage import files as storage
from msdump.viewing.filling import Wanted, fill, program
from msdump.viewing.guard import LOCAL_NAMES, App, Guard, Tokens
from msdump.viewing.index import Index, index_path, remove_old

if TYPE_CHECKING:
    import uvicorn

_MAPPING_MODE = 0o600
_PATIENCE_SECONDS = 5.0
_NEEDED = "pip install 'msdump[view]'"
# Addresses to listen at that are no addresses to go to, and where this machine answers for them.
_ALL_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def require_dumps(wanted: Wanted) -> None:
    """Raises: FormatError when there is nothing at the path of a dump."""
    for root in (wanted.dump, wanted.golden):
        if root is not None and not storage.exists(root):
            raise FormatError(f"{root}: expected a folder or file of a dump, got nothing. Is it mounted?")


class FilledIndex:
    """The index of a dump and the process that fills it; `close` ends both.

    has_index  False: the index lies in a folder that goes with this
    Raises: FormatError when there is nothing at the path; WriteError where the index cannot be made.
    """

    def __init__(self, wanted: Wanted, has_index: bool = True) -> None:
        require_dumps(wanted)
        self.title = Path(without_secrets(str(wanted.dump))).absolute().name
        self._temporary = None if has_index else Path(tempfile.mkdtemp(prefix="msdump-view-"))
        if self._temporary is None:
            path = index_path(wanted.dump, wanted.golden, wanted.mapping, wanted.selection)
            remove_old(path.parent, time.time())
        else:
            path = self._temporary / "index.sqlite"
        self.index = Index(path)
        self.index.require(program())
        # A fresh interpreter: a copy of this one would hold its threads' locks.
        context = multiprocessing.get_context("spawn")
        self._filling = context.Process(target=fill, args=(wanted, path, os.getpid()), daemon=True)
        with _without_interrupts():
            self._filling.start()

    def close(self) -> None:
        """End the filling and the index; what was measured is kept."""
        self._filling.terminate()
        self._filling.join(_PATIENCE_SECONDS)
        if self._filling.is_alive():
            self._filling.kill()
            self._filling.join(_PATIENCE_SECONDS)
        self.index.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


@contextlib.contextmanager
def _without_interrupts() -> Generator[None, None, None]:
    """A process that starts inside never gets a Ctrl-C, which would have it print a traceback: its parent ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Viewing:
    """A server that listens and whose index is being filled; `close` ends both.

    url          address to print, which holds as long as the server
    browser_url  address to start a browser with, for one request: others may read the browser's arguments

    host           name or address to listen at
    port           0 takes a free one
    allowed_hosts  more names that the server may be called by, as behind a proxy
    has_index      False: the index lies in a folder that goes with the server
    has_actions    whether the page may add pairs of operators to the mapping, a json file that is made when it is not
                   there; the comparison is made again after that
    Raises: ConfigError for a host or a port that cannot be taken, and without the packages of the extra `view`;
            FormatError when there is nothing at the path; WriteError where the index cannot be made.
    """

    def __init__(
        self,
        wanted: Wanted,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        allowed_hosts: Collection[str] = (),
        has_index: bool = True,
        has_actions: bool = False,
    ) -> None:
        require_dumps(wanted)  # before a mapping file is made for them
        if has_actions:
            wanted = _with_mapping(wanted)
        make_application = application_maker()
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        tokens = Tokens()
        shown = _ALL_ADDRESSES.get(host, host)
        shown = f"[{shown}]" if ":" in shown else shown
        self.url, self.browser_url = (
            f"http://{shown}:{self.port}/?token={token}" for token in (tokens.printed, tokens.once)
        )
        try:
            self._filled = FilledIndex(wanted, has_index)
        except BaseException:
            self._socket.close()
            raise
        self.index = self._filled.index
        mapping = wanted.mapping if has_actions else None
        guard = Guard(
            make_application(self.index, self._filled.title, mapping, tokens.action),
            tokens,
            cookie=f"msdump-{self.port}",
            hosts={*LOCAL_NAMES, shown, *allowed_hosts},
            has_actions=has_actions,
        )
        self._server = self._new_server(guard)

    def _new_server(self, guard: Guard) -> uvicorn.Server:
        import uvicorn

        from msdump.viewing.server import TimedProtocol

        config = uvicorn.Config(
            guard,
            http=TimedProtocol,
            ws="none",
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )

        class Server(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Generator[None, None, None]:
                """Leave signals to `serve`: uvicorn raises them again before this program has tidied up."""
                yield

        return Server(config)

    def __enter__(self) -> Viewing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def serve(self) -> None:
        """Answer until `stop`, or in the main thread until Ctrl-C or SIGTERM."""
        is_main = threading.current_thread() is threading.main_thread()
        ends = (signal.SIGINT, signal.SIGTERM) if is_main else ()
        before = {number: signal.signal(number, lambda *_: self.stop()) for number in ends}
        try:
            self._server.run(sockets=[self._socket])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Let `serve` return, from another thread."""
        self._server.should_exit = True

    def close(self) -> None:
        """End the filling and the index; what was measured is kept."""
        self._socket.close()
        self._filled.close()


def _with_mapping(wanted: Wanted) -> Wanted:
    """The same with a mapping file that is there, followed: a pair that was added changes the comparison."""
    if wanted.golden is None or wanted.mapping is None:
        raise ConfigError("--allow-actions: expected two dumps and --mapping FILE.json, which takes the pairs.")
    if not wanted.mapping.lower().endswith(".json"):
        raise ConfigError(
            f"--mapping: expected a file that ends in .json with --allow-actions, got {wanted.mapping!r}."
        )
    if not os.path.lexists(wanted.mapping):
        write_file(wanted.mapping, [b"{}\n"], _MAPPING_MODE)
    return replace(wanted, is_followed=True)


def application_maker() -> Callable[[Index, str, str | None, str], App]:
    """What makes the routes of an index, its title, a mapping file and a token.

    Raises: ConfigError without the packages of the extra `view`.
    """
    try:
        import uvicorn  # noqa: F401

        from msdump.viewing.server import Actions, application
    except ImportError as error:
        text = f"view: expected the package {error.name}, got none. {_NEEDED}; msdump report needs no package."
        raise ConfigError(text) from error

    def make(index: Index, title: str, mapping: str | None, token: str) -> App:
        return application(index, title, None if mapping is None else Actions(mapping, token))

    return make


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"--host: expected a name or an address of this machine, got {host!r}: {error}.") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(64)  # who asks before the server begins waits
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            text = (
                f"--port: expected a free port, got {port}, which another program has. Leave it out to take a free one."
            )
            raise ConfigError(text) from error
        raise ConfigError(f"--host, --port: expected a place to listen at, got {host}:{port}: {error}.") from error
    return listening
