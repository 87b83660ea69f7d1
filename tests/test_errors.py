"""Addresses in texts: no credential is left, and the rest is as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import ConfigError, FormatError, WriteError, shown_argument, value_without_secrets, without_secrets

_WORDS = st.text("abcXYZ019_-", min_size=1)
_SECRETS = st.text("abcXYZ019+=~!$%.", min_size=4).map(lambda text: f"SECRET{text}")
_SCHEMES = st.sampled_from(["s3", "s3a", "gs", "az", "https", "http", "ftp", "sftp", "memory", "webdav+https"])


@st.composite
def _addresses(draw: st.DrawFn) -> tuple[str, list[str]]:
    """(address, its secrets)"""
    secrets = [draw(_SECRETS), f"{draw(_SECRETS)}{draw(st.sampled_from(['', '/', '/x/']))}{draw(_SECRETS)}"]
    user = f"{secrets[0]}:{secrets[1]}@" if draw(st.booleans()) else ""
    path = "/".join(draw(st.lists(_WORDS, max_size=4)))
    query = ""
    if draw(st.booleans()):
        names, values = draw(st.lists(_WORDS, min_size=1, max_size=3)), draw(_SECRETS)
        secrets.append(values)
        query = draw(st.sampled_from("?#")) + "&".join(f"{name}={values}" for name in names)
    slash = "/" if path or query else ""
    return f"{draw(_SCHEMES)}:{draw(st.sampled_from(['//', '/']))}{user}host.x{slash}{path}{query}", secrets


@given(_addresses(), st.text("ab :,'\n"), st.text(" :,'\n)", max_size=3))
def test_no_secret_is_left(address: tuple[str, list[str]], before: str, after: str) -> None:
    text, _ = address
    shown = without_secrets(f"{before} {text}{after} expected")
    assert "SECRET" not in shown
    assert "host.x" in shown and shown.startswith(before) and shown.endswith(" expected")
    assert without_secrets(shown) == shown
    for error in (FormatError(f"{text}: expected x"), ConfigError(text), WriteError(f"{text}\nwhy", 3)):
        assert "SECRET" not in str(error) + repr(error)
    assert "SECRET" not in repr(value_without_secrets({"a": [text, (text, 1)], "b": None}))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://KEY:a/b+c=@bucket/job", "s3://***@bucket/job"),
        ("https://ghp_token@host/x", "https://***@host/x"),
        ("https://user:PW@host:9000/x?X-Amz-Signature=a&v=1", "https://***@host:9000/x?X-Amz-Signature=***&v=***"),
        ("https://host/x?token", "https://host/x?***"),
        ("https://host/x?sig=a&mail=b@c", "https://host/x?sig=***&mail=***"),
        ("https://host?mail=b@c&sig=a", "https://***"),
        ("az://c/x?sv=1&sig=a#t", "az://c/x?sv=***&sig=***#***"),
        ("msdump show 's3://K:S@b/my job' Add", "msdump show 's3://***@b/my job' Add"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/job@v2/x",
        "http://host:9000/job@v2",
        "http://[::1]:9000/job",
        "abfss://container@account.dfs.core.windows.net/x",
        "C:/Users/a@b/x",
        "train.py:/home/a@b/x",
        "Default/Add-op1: expected (2, 3)",
        "",
    ],
)
def test_what_holds_no_secret_stays(text: str) -> None:
    assert without_secrets(text) is text or without_secrets(text) == text


def test_an_address_without_its_scheme() -> None:
    assert shown_argument("KEY:SECRET@bucket/job") == "***@bucket/job"
    assert shown_argument("s3://KEY:SECRET@bucket/job") == "s3://***@bucket/job"
    assert shown_argument("bucket/job") == "bucket/job"


def test_long_texts_take_linear_time() -> None:
    """A dump of a stranger names its operators."""
    for part in ("a", "?", "@", "s3://", "a:/", "?@/", "&", "s3:/:@"):
        without_secrets("s3://" + part * 300_000 + "@")
