"""Packs through every way into a dump: the same tensors and rows as without, in one archive for each iteration."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from msdump.cli.main import main
from msdump.formats.dump_dir import DumpDir
from msdump.formats.pack_tree import unpack_tree
from tests.faults.runs import tensors_on_disk
from tests.faults.scripts import ENTRIES, Entry


def _run(entry: Entry, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    entry.prepare(folder)
    (folder / "script.py").write_text(entry.script)
    command = [sys.executable, "-m", "msdump", "run", *entry.options, "script.py"]
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def _needs(entry: Entry) -> None:
    pytest.importorskip({"torch": "torch", "acl": "onnxruntime"}.get(entry.family, "numpy"))


def _results(run: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in run.stdout.splitlines() if line.startswith("result")]


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_a_pack_holds_what_a_folder_holds(entry: Entry, tmp_path: Path) -> None:
    _needs(entry)
    plain = _run(entry, tmp_path / "plain")
    packed = _run(entry, tmp_path / "packed", MSDUMP_CONTAINER="pack")
    for run in (plain, packed):
        assert run.returncode == 0, run.stderr
    assert _results(plain) == _results(packed)
    dump = tmp_path / "packed" / "dump"
    packs = list(dump.rglob("*.tar"))
    assert packs and not list(dump.rglob("*.part"))
    # Constants belong to the graph, not to an iteration: docs/formats/pack.md.
    assert not [path for path in dump.rglob("*.output.*") if path.parent.name != "constants"]
    read = [DumpDir.open(tmp_path / name / "dump", strict=True) for name in ("plain", "packed")]
    assert _told(read[0]) == _told(read[1])
    # What is in the packs, byte for byte, and where it belongs.
    list(unpack_tree(dump))
    assert tensors_on_disk(dump) == tensors_on_disk(tmp_path / "plain" / "dump")


def _told(dump: DumpDir) -> Counter[tuple[object, ...]]:
    """What a reader is told, but time stamps and paths."""
    told = Counter(
        (one.rank_id, one.graph_id, one.iteration, one.model, one.op_type, one.op_name, one.full_name, one.io, one.slot,
         one.dtype, one.shape, one.load().tobytes())
        for one in dump.tensors()
    )  # fmt: skip
    assert not dump.damaged and not dump.foreign
    return told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sync", "async-npy", "acl", "torchair"])
def test_old_packs_are_removed(name: str, tmp_path: Path) -> None:
    entry = next(entry for entry in ENTRIES if entry.name == name)
    _needs(entry)
    run = _run(entry, tmp_path / "run", MSDUMP_CONTAINER="pack", MSDUMP_KEEP_ITERATIONS="1")
    assert run.returncode == 0, run.stderr
    assert len(list((tmp_path / "run" / "dump").rglob("*.tar"))) == 1


@pytest.mark.usefixtures("needs_mindspore")
def test_a_wrong_container_is_refused_before_the_first_step(tmp_path: Path) -> None:
    run = _run(ENTRIES[0], tmp_path / "run", MSDUMP_CONTAINER="zip")
    assert run.returncode != 0
    assert not _results(run)
    assert 'MSDUMP_CONTAINER: expected files or pack, got "zip"' in run.stderr


@pytest.mark.usefixtures("needs_mindspore")
def test_the_key_of_the_json_comes_before_the_variable(tmp_path: Path) -> None:
    import json

    def prepare(folder: Path) -> None:
        ENTRIES[0].prepare(folder)
        path = folder / "dump.json"
        content = json.loads(path.read_text())
        content["common_dump_settings"]["container"] = "files"
        path.write_text(json.dumps(content))

    entry = Entry("key", "mindspore", ENTRIES[0].script, prepare, ENTRIES[0].options)
    assert _run(entry, tmp_path / "run", MSDUMP_CONTAINER="pack").returncode == 0
    assert not list((tmp_path / "run" / "dump").rglob("*.tar"))
    assert list((tmp_path / "run" / "dump").rglob("*.output.*.npy"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sync", "statistic", "async-bin", "pynative", "torch", "acl"])
@pytest.mark.parametrize("container", ["files", "pack"])
def test_a_run_writes_its_tables(name: str, container: str, tmp_path: Path) -> None:
    """The same rows as `msdump stat --tables` has of its dump."""
    duckdb = pytest.importorskip("duckdb")

    from msdump.analysis.ranks.job import write_tables

    entry = next(entry for entry in ENTRIES if entry.name == name)
    _needs(entry)
    entry = replace(entry, options=(*entry.options, "--tables", "tables"))
    run = _run(entry, tmp_path / "run", MSDUMP_CONTAINER=container)
    assert run.returncode == 0, run.stderr
    write_tables([tmp_path / "run" / "dump"], tmp_path / "later", jobs=1)

    def rows(folder: Path) -> list[str]:
        return sorted(map(repr, duckdb.sql(f"select * from '{folder}/*.parquet'").fetchall()))

    assert rows(tmp_path / "run" / "tables") == rows(tmp_path / "later")
    assert len(rows(tmp_path / "later")) > 5


# -- commands beside a running dump ------------------------------------------------------------------------------------

_PAUSE = """
    import pathlib, time
    pathlib.Path(f"step{number}").touch()
    while number == 1 and not pathlib.Path("go").exists():
        time.sleep(0.02)
"""


@pytest.mark.slow
@pytest.mark.parametrize("container", ["files", "pack"])
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_no_command_changes_what_a_process_dumps(
    entry: Entry, container: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kind of writer, in the middle of a run: what it leaves is what it leaves alone."""
    _needs(entry)
    script = entry.script.replace("for number in range(2):", f"for number in range(2):{_PAUSE}")
    assert script != entry.script
    paused = replace(entry, script=script)
    dump = tmp_path / "run" / "dump"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(_run, paused, tmp_path / "run", MSDUMP_CONTAINER=container)
        try:
            while not (tmp_path / "run" / "step1").exists():
                assert not running.done(), running.result().stderr
                time.sleep(0.02)
            command = "pack" if container == "files" else "unpack"
            while (status := main([command, str(dump)])) == 3:
                assert not running.done(), running.result().stderr
                time.sleep(0.1)  # its threads have written nothing yet
            assert status == 4
            statuses = {command: main([command, str(dump)]) for command in ("pack", "unpack", "recover")}
            deep = {command: main([command, str(path)]) for command, path in _inner(dump)}
        finally:
            (tmp_path / "run" / "go").touch()
        run = running.result()
    assert run.returncode == 0, run.stderr
    assert 0 not in {*statuses.values(), *deep.values()}
    assert "another process writes" in capsys.readouterr().err
    alone = _run(entry, tmp_path / "alone", MSDUMP_CONTAINER=container)
    assert _results(run) == _results(alone)
    for folder in (dump, tmp_path / "alone" / "dump"):
        # And when it has ended, they may.
        assert main([command, str(folder)]) == 0
        assert main(["unpack", str(folder)]) == (3 if container == "pack" else 0)
    assert tensors_on_disk(dump) == tensors_on_disk(tmp_path / "alone" / "dump")


def _inner(dump: Path) -> list[tuple[str, Path]]:
    """Packs one by one, and the folders around files."""
    packs = [("unpack", path) for path in dump.rglob("*.tar*")]
    return [*packs, *(("pack", path.parent) for path in dump.rglob("*.output.*"))]
