"""The server's answers: those of the index, and parts of tensors; nothing in an address is a path."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette")

from msdump.analysis.compare.mapping import read_mapping
from msdump.viewing import server
from msdump.viewing.filling import Wanted, fill
from msdump.viewing.index import Index, Progress
from msdump.viewing.server import Actions, application
from tests.analysis.small_dump import floats, write_dump
from tests.viewing.asgi import Client

IN, OUT = ("input", 0), ("output", 0)
MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("served")
    dump = write_dump(folder / "dump", [("Net/Log-op0", {IN: MATRIX, OUT: floats(np.nan, 0)})])
    golden = write_dump(folder / "golden", [("Net/Log-op0", {IN: MATRIX + 1, OUT: floats(1, 2)})])
    fill(Wanted(str(dump), str(golden)), folder / "x.sqlite")
    with Index(folder / "x.sqlite") as index:
        yield Client(application(index, "<script>alert(1)</script>"))


def test_the_page_and_its_parts(client: Client) -> None:
    page = client.get("/").text
    assert "&lt;script&gt;" in page and "<script>alert" not in page and 'src="assets/app.js"' in page
    assert client.get("/assets/app.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/assets/app.css").status == client.get("/assets/THIRD_PARTY.txt").status == 200


@pytest.mark.parametrize(
    "path", ["/assets/pages.py", "/assets/..%2fpages.py", "/etc/passwd", "/assets/../../x", "/api"]
)
def test_there_are_no_other_files(client: Client, path: str) -> None:
    assert client.get(path).status == 404


def test_answers_are_packed_where_that_is_understood(client: Client) -> None:
    packed = client.get("/api/overview", **{"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.body)) == client.get("/api/overview").json()
    assert client.get("/api/progress").json()["stage"] == "ready"


def test_what_is_not_there(client: Client) -> None:
    answer = client.get("/api/step/9/9/9")
    assert answer.status == 404 and "expected a page of this dump" in answer.json()["error"]
    assert client.get("/api/text/0/0/0/99").status == 400 and client.get("/api/text/0/0/0/x").status == 404


def test_before_there_is_an_answer(tmp_path: Path) -> None:
    with Index(tmp_path / "x.sqlite") as index:
        early = Client(application(index, "dump"))
        assert early.get("/api/overview").status == 503
        index.progress = Progress(stage="failed", message="no dump")
        assert early.get("/api/overview").json() == {"error": "no dump"}


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("", MATRIX),
        ("&what=golden", MATRIX + 1),
        ("&what=difference", MATRIX * 0 - 1),
        ("&what=relative", 1 / (np.float64(MATRIX) + 1)),
    ],
)
def test_sides(client: Client, what: str, expected: np.ndarray) -> None:
    data = client.get(f"/api/npy/0/0/0/0?index={quote('1:, ::2')}{what}").body
    np.testing.assert_array_equal(np.load(io.BytesIO(data)), expected[1:, ::2])


def test_histograms(client: Client) -> None:
    whole = client.get("/api/histogram/0/0/0/0").json()
    assert (whole["what"], whole["count"], sum(whole["counts"]), whole["edges"][-1]) == ("mine", 12, 12, 11)
    part = client.get("/api/histogram/0/0/0/0?index=0").json()
    assert (part["count"], part["edges"][-1]) == (4, 3)
    apart = client.get("/api/histogram/0/0/0/0?what=difference").json()
    assert apart["is_log"] and apart["counts"] == [12]
    assert client.get("/api/histogram/0/0/0/1").json()["nan"] == 1
    assert client.get("/api/histogram/0/0/0/9").status == 400


def test_pictures_and_text(client: Client) -> None:
    assert client.get("/api/text/0/0/0/1").json()["text"] == [["nan", "0.0"]]
    picture = client.get("/api/picture/0/0/0/0?index=2")
    assert picture.headers["content-type"] == "application/octet-stream" and b'"index":"2, :"' in picture.body


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("/api/text/0/0/0/0?what=other", "mine, golden, difference, relative or ulp"),
        ("/api/text/0/0/0/0?index=7", "below 3"),
        ("/api/text/golden/0/0/0/7", "got none"),
    ],
)
def test_refusals_say_why(client: Client, target: str, message: str) -> None:
    answer = client.get(target)
    assert answer.status == 400 and message in answer.json()["error"]


def test_a_file_that_went_away(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump", [("Net/Log-op0", {IN: MATRIX})])
    fill(Wanted(str(dump)), tmp_path / "x.sqlite")
    with Index(tmp_path / "x.sqlite") as index:
        client = Client(application(index, "dump"))
        (file,) = dump.rglob("*.npy")
        file.unlink()
        assert client.get("/api/text/0/0/0/0").status == 400
        file.symlink_to("/etc/hostname")
        assert client.get("/api/text/0/0/0/0").status == 400


@given(path=st.text(max_size=30), query=st.text(max_size=30))
def test_any_address_has_an_answer(client: Client, path: str, query: str) -> None:
    for start in ("/api/", "/api/text/0/0/0/", "/api/picture/", "/api/histogram/", "/assets/", "/"):
        target = start + quote(path.encode("utf-8", "replace"), safe="/")
        assert client.get(f"{target}?index={quote(query.encode('utf-8', 'replace'))}").status in (200, 400, 404)


@pytest.fixture
def acting(tmp_path: Path) -> Iterator[Client]:
    with Index(tmp_path / "x.sqlite") as index:
        yield Client(application(index, "dump", Actions(str(tmp_path / "m.json"), "a-token")))


def test_pairs_are_added_to_the_mapping(acting: Client, tmp_path: Path) -> None:
    client = acting
    assert '<meta name="msdump-token" content="a-token">' in client.get("/").text
    for names in (("Default/Mul-op1", "x"), ("Add", "y"), ("Default/Mul-op1", "z")):
        answer = client.post("/api/pairs", json.dumps(dict(zip(("mine", "golden"), names, strict=True))).encode())
        assert (answer.status, answer.json()) == (200, {"mapping": str(tmp_path / "m.json")})
    assert read_mapping(tmp_path / "m.json").operators == {"Default/Mul-op1": ("z",), "Add": ("y",)}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "expected json"),
        (b"[]", 'expected {"mine": name'),
        (b'{"mine": 1, "golden": "a"}', 'expected {"mine": name'),
        (b'{"mine": "", "golden": "a"}', "expected two names"),
        (b"[" * 60_000, "expected json"),
        (b" " * 70_000, "expected at most 65536 bytes"),
        (b'{"mine": "\\ud800", "golden": "a"}', "half a character"),
        (b'{"mine": "a", "golden": "\\udfff"}', "half a character"),
    ],
)
def test_pairs_that_are_none(acting: Client, body: bytes, message: str, tmp_path: Path) -> None:
    answer = acting.post("/api/pairs", body)
    assert answer.status == 400 and message in answer.json()["error"]
    assert not (tmp_path / "m.json").exists()


def test_a_mapping_that_is_no_plain_file_is_refused(acting: Client, tmp_path: Path, alarm: None) -> None:
    os.mkfifo(tmp_path / "m.json")
    answer = acting.post("/api/pairs", b'{"mine": "a", "golden": "b"}')
    assert answer.status == 400 and "expected a plain file, got a pipe" in answer.json()["error"]


def test_a_body_that_does_not_come_is_not_waited_for(
    acting: Client, monkeypatch: pytest.MonkeyPatch, alarm: None
) -> None:
    monkeypatch.setattr(server, "_BODY_SECONDS", 0.01)
    answer = acting.request("POST", "/api/pairs", {}, b'{"mine"', is_whole=False)
    assert answer.status == 408


def test_a_page_that_only_reads_takes_no_pairs(client: Client) -> None:
    assert "msdump-token" not in client.get("/").text
    answer = client.post("/api/pairs", b'{"mine": "a", "golden": "b"}')
    assert answer.status == 405 and "--allow-actions" in answer.json()["error"]
