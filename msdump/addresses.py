"""Addresses in texts, as they may be shown: without the credentials in them.

An address of a store may carry a key, a password or a signature, and every message, page and table that names the dump
would repeat it. All of them go through `without_secrets`.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN_SECRET = "***"
# A scheme has two letters at least: one is a drive. Paths of the standard library's have one slash less.
_ADDRESS = re.compile(r"(?<![\w+.-])([A-Za-z][A-Za-z0-9+.-]+:)(/{1,2})([^\s\"'<>|`]+)")
_QUERY = re.compile("[?#]")
_PORT = re.compile(r"\d{1,5}")
# Azure: the container and the account, not a user.
_CONTAINER_SCHEMES = ("abfs:", "abfss:", "wasb:", "wasbs:")
_WEB_SCHEMES = ("http:", "https:")


def without_secrets(text: str) -> str:
    """The text with *** for the user and password of each address in it, and for each value of its query and fragment.

    Example: `https://user:PW@host/x?sig=abc` is `https://***@host/x?sig=***`.
    Edges:   a password may hold slashes, as keys of S3 do. A text without an address is the same object.
    """
    return text if ":/" not in text else _ADDRESS.sub(_shown, text)


def shown_argument(text: str) -> str:
    """A text that should be an address and may lack its scheme, as `without_secrets`."""
    shown = without_secrets(text)
    return (
        f"{HIDDEN_SECRET}@{text.rpartition('@')[2]}" if shown == text and "://" not in text and "@" in text else shown
    )


def value_without_secrets(value: Any) -> Any:
    """A value for JSON, whose texts are as `without_secrets` has them; keys stay."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: value_without_secrets(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [value_without_secrets(part) for part in value]
    return value


def _shown(match: re.Match[str]) -> str:
    scheme, slashes, rest = match[1], match[2], match[3]
    begin = _QUERY.search(rest)
    place, query = (rest, "") if begin is None else (rest[: begin.start()], rest[begin.start() :])
    if query and "/" not in place and "@" in query:
        return f"{scheme}{slashes}{HIDDEN_SECRET}"  # a password with a mark in it, or a query with an @: all of it
    end = _credentials_end(scheme.lower(), slashes, place)
    shown = f"{HIDDEN_SECRET}@{place[end:]}" if end else place
    return f"{scheme}{slashes}{shown}{query[:1]}{_shown_query(query[1:])}"


def _credentials_end(scheme: str, slashes: str, place: str) -> int:
    """Where the host begins behind a user and password; 0 where there is none."""
    authority = place.partition("/")[0]
    if "@" in authority:
        user = authority.rpartition("@")[0]
        # A path with an @ is likelier behind one slash.
        is_user = ":" in user or (slashes == "//" and scheme not in _CONTAINER_SCHEMES)
        return len(user) + 1 if is_user else 0
    _, colon, port = authority.rpartition(":")
    if colon and "@" in place and not (scheme in _WEB_SCHEMES and _PORT.fullmatch(port)):
        return place.rindex("@") + 1
    return 0


def _shown_query(query: str) -> str:
    """Names of parameters, without their values; a value without a name may be a token."""
    parts = re.split("([&;#])", query)
    return "".join(part if number % 2 else _shown_parameter(part) for number, part in enumerate(parts))


def _shown_parameter(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals:
        return HIDDEN_SECRET if name else ""
    return f"{name}={HIDDEN_SECRET}" if value else text
