"""No command passes on the credentials of an address: on its streams, in files that it writes, in its errors."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import sqlite3
from base64 import b64decode
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.cli.main import main
from msdump.errors import MsdumpError
from msdump.formats.pack_tree import pack_tree
from msdump.storage.uploading import upload_tree
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
SECRETS = ("KEYID", "SECRETPW")

COMMANDS = {
    "ls": ["ls", "{url}"],
    "ls_json": ["ls", "{url}", "--json", "{out}/x.json"],
    "show": ["show", "{url}", "Log-op0"],
    "show_not": ["show", "{url}", "Nothing-op9"],
    "show_json": ["show", "{url}", "Log-op0", "--json", "-"],
    "where": ["where", "{url}", "x.py:3"],
    "nan": ["nan", "{url}", "--all"],
    "nan_json": ["nan", "{url}", "--json", "-"],
    "stat": ["stat", "{url}"],
    "stat_csv": ["stat", "{url}", "--csv", "{out}/x.csv"],
    "compare": ["compare", "{url}", "{golden}", "--all"],
    "compare_files": ["compare", "{url}", "{golden}", "--csv", "{out}/x.csv", "--json", "{out}/x.json"],
    "compare_nothing": ["compare", "{url}", "{url}/nothing"],
    "convert": ["convert", "{url}", "-o", "{out}/c", "-t", "bin"],
    "replay": ["replay", "{url}", "Log-op0"],
    "repro": ["repro", "{url}", "Log-op0", "-o", "{out}/r"],
    "repro_default": ["repro", "{url}", "Log-op0"],
    "zoom": ["zoom", "{url}", "Log-op0"],
    "plot": ["plot", "{url}"],
    "ranks": ["ranks", "{url}"],
    "query": ["query", "{url}", "outliers"],
    "tables": ["stat", "{url}", "--tables", "{out}/t"],
    "report": ["report", "{url}", "{golden}", "-o", "{out}/r.html", "--md", "{out}/r.md"],
    "report_redacted": ["report", "{url}", "{golden}", "-o", "{out}/r.html", "--md", "-", "--redact"],
    "report_nothing": ["report", "{url}/nothing", "-o", "{out}/r.html"],
    "view_nothing": ["view", "{url}/nothing"],
    "unpack": ["unpack", "{url}"],
    "pack": ["pack", "{url}"],
    "recover": ["recover", "{url}"],
    "recorder": ["recorder", "{url}"],
    "upload": ["upload", "{dump}", "{url}"],
    "upload_no_scheme": ["upload", "{dump}", "KEYID:SECRETPW@bucket/job"],
    "upload_nowhere": ["upload", "{dump}", "nosuch://KEYID:SECRETPW@bucket/job"],
    "doctor": ["doctor", "{url}"],
    "msaccucmp": ["msaccucmp", "convert", "-d", "{url}", "-out", "{out}/m"],
    **{
        f"export_{form}": ["export", "{url}", "--to", form, "-o", f"{{out}}/{name}"]
        for form, name in (
            ("csv", "x.csv"),
            ("sqlite", "x.db"),
            ("perfetto", "x.pftrace.json"),
            ("model-explorer", "x.json"),
            ("sarif", "x.sarif"),
            ("github", "x.txt"),
            ("msprobe", "msprobe"),
        )
    },
}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """A dump here, the same in a store whose address holds a key, and another under an address with a signature."""
    pytest.importorskip("fsspec")
    dump = write_dump(
        tmp_path / "dump",
        [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(np.nan, 0)}), ("Net/Exp-op1", {IN: floats(1)})],
    )
    golden = write_dump(tmp_path / "golden", [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(5, 0)})])
    list(pack_tree(golden))
    (tmp_path / "out").mkdir()
    number = os.urandom(4).hex()
    found = {
        "url": f"memory://KEYID:SECRETPW@bucket{number}/job",
        "golden": f"memory://bucket{number}/golden?X-Amz-Signature=SECRETPW",
    }
    upload_tree(dump, found["url"])
    upload_tree(golden, found["golden"])
    broken = tmp_path / "broken" / "rank_0/Net/0/0"
    broken.mkdir(parents=True)
    (broken / "Log.Log-op7.0.0.1700000000000009.output.0.DefaultFormat.npy").write_bytes(b"no tensor")
    upload_tree(tmp_path / "broken", found["url"])
    return {**found, "dump": str(dump), "out": str(tmp_path / "out")}


def _texts(folder: Path) -> list[str]:
    """Names and contents of files, also what they hold compressed or as tables."""
    found = []
    for path in folder.rglob("*"):
        found.append(str(path))
        if not path.is_file():
            continue
        data = path.read_bytes()
        found.append(data.decode("utf-8", "replace"))
        packed = re.search(rb'id="answers">([^<]*)<', data)
        if packed is not None:
            found.append(gzip.decompress(b64decode(packed[1])).decode())
        if data.startswith(b"SQLite"):
            with contextlib.closing(sqlite3.connect(path)) as database:
                found += database.iterdump()
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_passes_a_secret_on(
    command: str, places: dict[str, str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places["out"])
    with contextlib.suppress(SystemExit):
        main([part.format(**places) for part in COMMANDS[command]])
    out, err = capfd.readouterr()
    assert out + err
    assert "Traceback" not in err
    texts = [out, err, *_texts(Path(places["out"]))]
    for secret in SECRETS:
        assert not [text[max(0, text.find(secret) - 200) :][:400] for text in texts if secret in text]


def test_values_and_errors_of_python_hold_none(places: dict[str, str]) -> None:
    dump: Any = msdump.open(places["url"])
    texts = [dump._repr_html_(), str(dump.to_arrow().to_pylist()) if find_spec("pyarrow") else ""]
    for call in (lambda: msdump.open(places["url"] + "/no"), lambda: msdump.compare(dump, places["golden"] + "/no")):
        with pytest.raises(MsdumpError) as caught:
            call()
        texts += [str(caught.value), repr(caught.value)]
    assert not [text for text in texts if any(secret in text for secret in SECRETS)]
