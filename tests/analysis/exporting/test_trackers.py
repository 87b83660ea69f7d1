"""Runs of W&B and MLflow, sent by the real clients to this disk and read back; their numbers are those of the dump."""

from __future__ import annotations

import contextlib
import math
import os
import posixpath
import re
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.exporting import export, trackers
from msdump.analysis.exporting.trackers import Curve, chosen, curves, metric_name
from msdump.analysis.overview.contents import Contents
from msdump.errors import ConfigError
from tests.package import PACKAGE

_BLOCK = 32768  # bytes, of a file of W&B, whose records are cut at its ends


def send(to: str, dump: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: the clients start threads and processes, and warn while imported."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "HOME": str(folder), **variables}
    command = [sys.executable, "-m", "msdump", "export", str(dump), "--to", to, "-o", str(folder / "runs")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def wandb_records(folder: Path) -> Iterator[Any]:
    """Records of an offline run: head of 7 bytes, then checksum (4), length (2), kind (1), bytes."""
    from wandb.proto import wandb_internal_pb2

    (file,) = folder.rglob("*.wandb")
    data, at, record = file.read_bytes(), 7, b""
    while at < len(data):
        left = _BLOCK - at % _BLOCK
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or its last part
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


def expected(dump: Path) -> dict[tuple[str, int], float]:
    named, _ = chosen(curves(Contents(dump)))
    return {(curve.name, iteration): value for curve in named for iteration, value in curve.values.items()}


def number(text: str) -> float:
    return float(text.strip('"'))


def test_a_run_of_wandb_has_the_curves_and_the_report(nan_dump: Path, tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    done = send("wandb", nan_dump, tmp_path, WANDB_MODE="offline", WANDB_DATA_DIR=str(tmp_path / "data"))
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).name.startswith("offline-run-") and done.stderr == ""
    records = list(wandb_records(tmp_path / "runs"))
    found: dict[tuple[str, int], float] = {}
    for record in records:
        if record.WhichOneof("record_type") == "history":
            values = {item.key or "/".join(item.nested_key): number(item.value_json) for item in record.history.item}
            found |= {(name, int(values["_step"])): value for name, value in values.items() if name[0] != "_"}
    assert found == pytest.approx(expected(nan_dump), nan_ok=True)
    assert found["not_finite", 0] > 0 and ("loss", 0) in found
    (artifact,) = (record.artifact for record in records if record.WhichOneof("record_type") == "artifact")
    assert artifact.type == "report" and [entry.path for entry in artifact.manifest.contents] == [trackers.REPORT]
    (stored,) = {entry.size for entry in artifact.manifest.contents}
    assert stored > 10_000
    assert any("first NaN" in str(record.summary) for record in records)


def test_a_run_of_mlflow_has_the_curves_and_the_report(nan_dump: Path, tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    for count in (1, 2):  # the second one is a run of the same experiment
        done = send("mlflow", nan_dump, tmp_path)
        assert done.returncode == 0, done.stderr
        with contextlib.closing(sqlite3.connect(tmp_path / "runs/mlflow.db")) as database:
            runs = database.execute("select run_uuid, status, artifact_uri from runs").fetchall()
            assert len(runs) == count and {status for _, status, _ in runs} == {"FINISHED"}
    run, _, place = next(row for row in runs if row[0] in done.stdout)
    with contextlib.closing(sqlite3.connect(tmp_path / "runs/mlflow.db")) as database:
        rows = database.execute("select key, step, value, is_nan from metrics where run_uuid = ?", (run,)).fetchall()
        tags = dict(database.execute("select key, value from tags where run_uuid = ?", (run,)).fetchall())
    found = {(name, step): math.nan if is_nan else value for name, step, value, is_nan in rows}
    # MLflow's databases have no Inf.
    wanted = {key: min(value, sys.float_info.max) for key, value in expected(nan_dump).items()}
    assert found == pytest.approx(wanted, nan_ok=True)
    assert "first NaN" in tags["findings"] and tags["dump"] == nan_dump.name
    page = Path(place.removeprefix("file://")) / trackers.REPORT
    assert b"<!doctype html>" in page.read_bytes()[:200].lower()


@pytest.mark.parametrize("to", ["wandb", "mlflow"])
def test_names_of_a_hostile_dump_stay_names(to: str, hostile_dump: Path, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy" if to == "mlflow" else to)
    done = send(to, hostile_dump, tmp_path, WANDB_MODE="offline", WANDB_DATA_DIR=str(tmp_path / "data"))
    assert done.returncode == 0, done.stderr
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f<>]", done.stdout)


def test_curves_are_those_of_the_statistics(nan_dump: Path) -> None:
    contents = Contents(nan_dump)
    found = {curve.name: curve.values for curve in curves(contents)}
    outputs = [row for one in contents.operators for row in one.tensors if row.tensor.io == "output"]
    for iteration in (0, 1):
        mine = [row.numbers for row in outputs if (row.step.iteration or 0) == iteration]
        bad = sum((one.nan or 0) + (one.positive_inf or 0) + (one.negative_inf or 0) for one in mine)
        assert found["not_finite"][iteration] == bad > 0
        by_layer = [values[iteration] for name, values in found.items() if name.endswith("/not_finite")]
        assert sum(by_layer) == bad
    assert set(found) >= {"loss", "largest", "forward/fc1/l2norm", "backward/fc1/not_finite"}


def test_the_worst_have_room_first(nan_dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "MOST_CURVES", 7)
    every = curves(Contents(nan_dump))
    kept, notes = chosen(every)
    assert len(kept) == 7 and f"{len(every) - 7} of {len(every)} curves" in notes[0]
    names = [curve.name for curve in kept]
    assert names[:2] == ["loss", "largest"] or "loss" in names
    assert max(curve.rank for curve in kept) <= sorted(curve.rank for curve in every)[7]


@given(st.text(max_size=400))
def test_a_name_is_one_that_both_tools_take(text: str) -> None:
    name = metric_name(text)
    assert re.fullmatch(r"[\w.\- /]{1,250}", name, re.ASCII)
    # MLflow: no path that is another one when it is followed.
    assert posixpath.normpath(name) == name and name != "." and not name.startswith(("..", "/"))
    assert metric_name(name) == name


@given(st.lists(st.text("ab/._ é", max_size=6), max_size=12))
def test_names_of_two_curves_are_two(texts: list[str]) -> None:
    named, _ = chosen([Curve(text, {0: 1.0}, 0) for text in texts])
    assert len({curve.name for curve in named}) == len(texts)


def test_without_the_client(nan_dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for to in ("wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, to, None)
        with pytest.raises(ConfigError, match=rf"export --to {to}: expected the package {to}, got none\. Install it"):
            export(nan_dump, to, tmp_path / "x")
        with pytest.raises(ConfigError, match="expected a folder, or no -o at all, got standard output"):
            export(nan_dump, to, "-")


def test_what_a_client_says_is_one_line(nan_dump: Path, tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/mlflow.db").write_text("no database")
    done = send("mlflow", nan_dump, tmp_path, MLFLOW_TRACKING_URI="no-such-scheme://x")
    assert done.returncode == 2 and "export --to mlflow: expected mlflow to take a run, got: " in done.stderr
