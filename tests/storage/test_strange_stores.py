"""Stores that refuse, keep silent, list without end, or raise errors of their own: a message, after a bounded time."""

from __future__ import annotations

import ftplib
import logging
import os
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from msdump.cli.main import main
from msdump.errors import FormatError
from msdump.storage import remote
from msdump.storage.remote import RemoteSource, find_object, objects_below
from msdump.storage.uploading import upload_tree
from tests.storage.small_s3 import SmallS3, listing, silent_server


@pytest.fixture(autouse=True)
def no_store_is_open() -> None:
    remote.forget()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallS3]:
    pytest.importorskip("obstore")
    with SmallS3() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.mark.parametrize("command", ["ls", "nan", "report", "view"])
def test_an_ftp_server_that_is_not_there(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fsspec")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert main([command, f"ftp://user:SECRETPW@127.0.0.1:{port}/job"]) in (1, 2)
    told = capsys.readouterr().err
    assert f"ftp://***@127.0.0.1:{port}: expected a store that answers, got: Connection refused." in told
    assert "Traceback" not in told


@pytest.mark.parametrize("address", ["s3://dump/job", "http://{host}/job"])
def test_a_silent_server_is_reported_and_left(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("obstore")
    for name, seconds in (("_QUIET_SECONDS", 0.2), ("_READ_SECONDS", 1), ("_RETRY_SECONDS", 1), ("_LIST_SECONDS", 1)):
        monkeypatch.setattr(remote, name, seconds)
    with silent_server() as server:
        host = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "x")
        with caplog.at_level(logging.WARNING, "msdump"), pytest.raises(FormatError, match="expected to list it, got"):
            objects_below(address.format(host=host))
    assert f"{address.format(host=host)}: the store takes more than 0.2 seconds." in caplog.text


def test_the_same_page_for_ever(s3: SmallS3) -> None:
    s3.listing = lambda token: listing([("job/a", 1, "x")], "again")
    with pytest.raises(FormatError, match="names job/a twice"):
        objects_below("s3://dump/job")


def test_other_names_for_ever(s3: SmallS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_MOST_OBJECTS", 1000)
    numbers = count()
    s3.listing = lambda token: listing([(f"job/{next(numbers):09}", 1, "x") for _ in range(100)], "more")
    with pytest.raises(FormatError, match="more than 1000 objects"):
        objects_below("s3://dump/job")
    assert next(numbers) < 10_000


def test_keys_of_an_address_are_used(s3: SmallS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    (tmp_path / "x").write_bytes(b"x")
    assert upload_tree(tmp_path, "s3://KEY:SEC%2FRET@dump/job").files == 1
    assert list(s3.objects) == ["job/x"]


class _StrangeError(Exception):
    """As those of the packages below fsspec, which are no OSError."""


@pytest.fixture
def strange(request: pytest.FixtureRequest) -> str:
    """A store all of whose answers are errors of its own package."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.get_filesystem_class("memory")

    class Strange(memory):  # type: ignore[misc, valid-type]
        protocol = "strange"
        cachable = False

        def _refuse(self, *_: Any, **__: Any) -> Any:
            raise request.param

        ls = info = cat_ranges = put_file = _refuse

    fsspec.register_implementation("strange", Strange, clobber=True)
    return "strange://bucket/job"


@pytest.mark.parametrize(
    "strange", [_StrangeError("gone"), _StrangeError(), ftplib.error_perm("550 gone"), EOFError()], indirect=True
)
def test_errors_of_the_packages_below_are_errors_of_the_store(strange: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=f"{strange}: expected to list it, got: the store refuses job"):
        objects_below(strange)
    with pytest.raises(OSError, match="the store refuses job/x"):
        find_object(f"{strange}/x")
    with pytest.raises(OSError, match="the store refuses job/x"):
        RemoteSource(remote.RemoteObject(f"{strange}/x", 10, "tag")).read(0, 10)
    (tmp_path / "x").write_bytes(b"x")
    with pytest.raises(OSError, match="the store refuses job/x"):
        remote.put_file(f"{strange}/x", os.fspath(tmp_path / "x"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_of_a_store_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job/closed").mkdir(parents=True)
    (tmp_path / "job/closed").chmod(0)
    with pytest.raises(FormatError, match="expected to list it"):
        objects_below("local://job")
