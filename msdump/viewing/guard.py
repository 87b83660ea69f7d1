"""Who may ask a viewer's server: those who name it rightly, come from its own page and hold its token.

A server that listens on this machine alone is reached by every page that the user's browser opens (DNS rebinding), and
by every other user of the machine; hence three checks before any route is looked at.

Every user of the machine reads the arguments of all processes, those of a browser included. So the address that a
browser is started with holds once and soon; the cookie that it is exchanged for, and the token that actions need, are
in no address.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
ACTION_HEADER = "x-msdump-token"
ONCE_SECONDS = 300.0
_HOST = re.compile(r"(\[[0-9a-z:.%]+\]|[^][:/@\s]+)(?::[0-9]{1,5})?", re.ASCII)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def new_token() -> str:
    """128 random bits."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True, slots=True)
class Tokens:
    """What requests show, each for one purpose.

    printed  of the address that the command prints
    once     of the address that a browser is started with: for one request, within five minutes
    session  value of the cookie that either is exchanged for
    action   that the page sends along with what writes
    """

    printed: str = field(default_factory=new_token)
    once: str = field(default_factory=new_token)
    session: str = field(default_factory=new_token)
    action: str = field(default_factory=new_token)


class Guard:
    """The checks around an application.

    cookie       its name: cookies of one machine are shared by all ports
    hosts        names that the server may be called by, without port
    has_actions  whether POST is passed on, which needs the token of actions in a header, too
    clock        seconds, injected by tests
    """

    def __init__(
        self,
        app: App,
        tokens: Tokens,
        *,
        cookie: str,
        hosts: Collection[str] = LOCAL_NAMES,
        has_actions: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._cookie = cookie
        self._hosts = frozenset(name.lower() for name in hosts)
        self._has_actions = has_actions
        self._clock = clock
        self._once_until = clock() + ONCE_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
        elif "token" in _query(scope):
            await self._exchange(scope, send)
        elif not self._is_known(headers):
            text = "Open the address that msdump view has printed, with its token.\n"
            await _answer(send, 403, text)
        else:
            await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if _name_of(headers.get("host", "")) not in self._hosts:
            return 421, "This server is not called so. Use the address that was printed, or --allowed-host.\n"
        if headers.get("sec-fetch-site", "none") == "cross-site":
            return 403, "Another site must not ask this server.\n"
        if scope["method"] in ("GET", "HEAD"):
            return None
        if scope["method"] != "POST" or not self._has_actions:
            return 405, "Only GET and HEAD; --allow-actions adds what writes.\n"
        if not _is_equal(headers.get(ACTION_HEADER, ""), self._tokens.action):
            return 403, f"An action needs the token in the header {ACTION_HEADER}.\n"
        return None

    def _is_known(self, headers: dict[str, str]) -> bool:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return self._cookie in cookies and _is_equal(cookies[self._cookie].value, self._tokens.session)

    async def _exchange(self, scope: Scope, send: Send) -> None:
        """The token for a cookie, so that it stands neither in the history nor in a referrer."""
        query = _query(scope)
        refusal = self._taken(query.pop("token")[-1])
        if refusal is not None:
            await _answer(send, 403, refusal)
            return
        rest = urlencode(query, doseq=True)
        cookie = f"{self._cookie}={self._tokens.session}; HttpOnly; SameSite=Strict"
        target = f"./{'?' + rest if rest else ''}"
        await _answer(send, 303, "", {"location": target, "set-cookie": cookie})

    def _taken(self, token: str) -> str | None:
        """Why a token of an address does not hold; None where it does, and then the one for one request is used up."""
        if _is_equal(token, self._tokens.printed):
            return None
        if not _is_equal(token, self._tokens.once):
            return "This token is of another server. Open the address that was printed last.\n"
        if self._clock() >= self._once_until:
            return "This address was opened already, or too late. Open the one that msdump view has printed.\n"
        self._once_until = 0.0
        return None


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _name_of(host: str) -> str:
    """A host without its port; "" for what is no host."""
    match = _HOST.fullmatch(host.lower())
    return "" if match is None else match[1]


def _is_equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        await send(message)

    return sent


async def _answer(send: Send, status: int, text: str, headers: dict[str, str] | None = None) -> None:
    body = text.encode()
    told = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **(headers or {})}
    rows = [(name.encode(), value.encode()) for name, value in told.items()]
    send = _with_headers(send)
    await send({"type": "http.response.start", "status": status, "headers": rows})
    await send({"type": "http.response.body", "body": body})
