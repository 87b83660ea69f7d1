"""The server answers those who call it by its name, come from its own page and hold its token."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.viewing.guard import ACTION_HEADER, ONCE_SECONDS, POLICY, Guard, Tokens
from tests.viewing.asgi import Client

TOKENS = Tokens("printed-token", "token-for-once", "session-token", "action-token")
TOKEN = TOKENS.printed


def client(**options: Any) -> Client:
    async def secret(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"secret"})

    return Client(Guard(secret, TOKENS, cookie="msdump-4000", **options))


@pytest.fixture
def known() -> Client:
    made = client()
    assert made.get(f"/?token={TOKEN}&page=2").status == 303
    return made


def test_the_token_is_exchanged_once_for_a_cookie(known: Client) -> None:
    answer = client().get(f"/?token={TOKEN}&page=2")
    assert answer.headers["location"] == "./?page=2" and TOKEN not in answer.headers["location"]
    assert answer.headers["set-cookie"] == f"msdump-4000={TOKENS.session}; HttpOnly; SameSite=Strict"
    assert known.get("/api/overview").text == "secret"


def test_tokens_differ() -> None:
    tokens = Tokens()
    assert len({tokens.printed, tokens.once, tokens.session, tokens.action}) == 4 and tokens != Tokens()


def test_what_a_browser_is_started_with_holds_once() -> None:
    """Every user of the machine reads it; what reads and what writes afterwards stands in no address."""
    made = client(has_actions=True)
    first = made.get(f"/?token={TOKENS.once}&page=2")
    assert first.status == 303 and first.headers["location"] == "./?page=2"
    assert made.get("/api/overview").text == "secret"
    cookie, made.cookie = made.cookie, ""
    again = made.get(f"/?token={TOKENS.once}")
    assert again.status == 403 and "set-cookie" not in again.headers and "printed" in again.text
    for value in (TOKENS.once, TOKENS.printed, TOKENS.action):
        assert made.get("/", cookie=f"msdump-4000={value}").status == 403
    for value in (TOKENS.once, TOKENS.printed, TOKENS.session):
        assert made.request("POST", "/api/pairs", {ACTION_HEADER: value, "cookie": cookie}).status == 403
    # The printed address is for the user's eyes alone, and opens a second browser.
    assert made.get(f"/?token={TOKENS.printed}").status == made.get(f"/?token={TOKENS.printed}").status == 303


def test_what_a_browser_is_started_with_holds_for_five_minutes() -> None:
    now = 7.0
    made = client(clock=lambda: now)
    now += ONCE_SECONDS
    assert made.get(f"/?token={TOKENS.once}").status == 403
    made = client(clock=lambda: now)
    now += ONCE_SECONDS - 1
    assert made.get(f"/?token={TOKENS.once}").status == 303


@pytest.mark.parametrize("query", ["&".join(f"q{n}=1" for n in range(30)), "a&" * 20_000, "%ed%a0%80=%ff&\xff"])
def test_any_query_is_passed_on(known: Client, query: str) -> None:
    assert known.get(f"/?{query}").text == "secret"
    answer = client().get(f"/?{query}&token={TOKEN}")
    assert answer.status == 303 and answer.headers["location"].isascii()


@pytest.mark.parametrize("path", ["/", "/api/overview", "/assets/app.js", "/?token=", "/?token=wrong", "//evil/"])
def test_without_the_token_there_is_nothing(path: str) -> None:
    answer = client().get(path)
    assert answer.status == 403 and "secret" not in answer.text
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:4000",
        "127.0.0.1.evil.example",
        "",
        "localhost.evil:80",
        "[::2]:4000",
        "@localhost",
        "[::1].evil.com",
        "[::1].evil.com:4000",
        "[::1]:4000.evil.com",
        "localhost:4000:80",
        "localhost:",
        "localhost:x",
        "localhost 127.0.0.1",
        "[::1",
        "::1",
    ],
)
def test_a_page_that_calls_it_otherwise_learns_nothing(known: Client, host: str) -> None:
    """DNS rebinding: the name is another site's, the address is this machine's."""
    for path in ("/", "/api/overview", "/x/../api/overview", f"/?token={TOKEN}"):
        answer = known.get(path, host=host)
        assert answer.status == 421 and "secret" not in answer.text and "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", ["127.0.0.1:4000", "localhost", "LOCALHOST:4000", "[::1]:4000"])
def test_names_of_this_machine(known: Client, host: str) -> None:
    assert known.get("/", host=host).text == "secret"


def test_another_name_is_allowed_by_name_only() -> None:
    made = client(hosts=("lab",))
    assert made.get(f"/?token={TOKEN}", host="lab:80").status == 303
    assert made.get(f"/?token={TOKEN}", host="127.0.0.1").status == 421


def test_other_sites_are_refused(known: Client) -> None:
    assert known.get("/api/overview", **{"sec-fetch-site": "cross-site"}).status == 403
    assert known.get("/api/overview", **{"sec-fetch-site": "same-origin"}).text == "secret"


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "OPTIONS", "PATCH", "TRACE"])
def test_nothing_writes(known: Client, method: str) -> None:
    assert known.request(method, "/api/mapping").status == 405


def test_an_action_needs_the_token_in_a_header() -> None:
    made = client(has_actions=True)
    made.get(f"/?token={TOKEN}")
    assert made.request("POST", "/api/mapping").status == 403
    assert made.request("POST", "/api/mapping", {ACTION_HEADER: TOKENS.action}).text == "secret"
    assert made.request("DELETE", "/api/mapping", {ACTION_HEADER: TOKENS.action}).status == 405


def test_headers_of_each_answer(known: Client) -> None:
    headers = known.get("/").headers
    assert headers["content-security-policy"] == POLICY and "unsafe" not in POLICY and "*" not in POLICY
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert (headers["cross-origin-resource-policy"], headers["cache-control"]) == ("same-origin", "no-store")


@given(token=st.text(max_size=30), cookie=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_what_is_not_the_token_is_refused(token: str, cookie: str) -> None:
    if token in (TOKENS.printed, TOKENS.once) or TOKENS.session in cookie:
        return
    made = client()
    assert made.get(f"/?{urlencode({'token': token})}").status == 403
    assert made.get("/", cookie=cookie).status == 403
