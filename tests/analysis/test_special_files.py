"""Commands on a dump in which somebody put pipes, devices and links that lead out in the place of files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import msdump
from msdump.cli.main import main
from msdump.formats.dump_dir import DumpDir

SECRET = "text of a file that belongs to no dump"
OPERATOR = "Conv2D-op3"
COMMANDS = {
    "show": ["show", "{dump}", OPERATOR],
    "where": ["where", "{dump}", "x = self.relu(self.fc1(x))"],
    "nan": ["nan", "{dump}"],
    "stat": ["stat", "{dump}"],
    "stat_two": ["stat", "{dump}", "--diff", "{good}"],
    "replay": ["replay", "{dump}", OPERATOR],
    "repro": ["repro", "{dump}", OPERATOR, "-o", "{out}"],
    "compare": ["compare", "{dump}", "{good}"],
    "compare_back": ["compare", "{good}", "{dump}"],
    "convert": ["convert", "{dump}", "-o", "{out}"],
    "plan": ["plan", "{config}", "--graph", "{dump}/rank_0/graphs/ms_output_trace_code_graph_0.pb"],
    "overflow": ["msaccucmp", "overflow", "-d", "{dump}", "-out", "{out}"],
}


@pytest.fixture
def tmp_path(plain_path: Path) -> Path:
    """msaccucmp takes no other paths."""
    return plain_path


@pytest.fixture(params=["pipe", "device", "link out", "linked folder"])
def hostile_dump(request: pytest.FixtureRequest, own_dump: Path, tmp_path: Path) -> Path:
    """One file of each kind is something else; the rest of the dump is as it was."""
    dump = tmp_path / "dump"
    shutil.copytree(own_dump, dump)
    data = dump / "rank_0/LeNet/0/0"
    outside = tmp_path / "outside"
    outside.mkdir()
    if request.param == "linked folder":
        for name in ("graphs", "execution_order", ".dump_metadata"):
            (dump / "rank_0" / name).rename(outside / name)
            (dump / "rank_0" / name).symlink_to(outside / name)
        return dump
    graph = "ms_output_trace_code_graph_0"
    names = [dump / "rank_0" / "graphs" / f"{graph}.{suffix}" for suffix in ("pb", "ir")]
    names += sorted((dump / "rank_0/execution_order").iterdir()) + sorted((dump / "rank_0/.dump_metadata").iterdir())
    names += [data / "mapping.csv", data / "statistic.csv", *sorted(data.glob(f"Conv2D.{OPERATOR}.*"))]
    names += [data / "Add.a.1.0.1700000000000000.csv", data / "Opdebug.Node_OpDebug.1.0.1700000000000000.output.0.json"]
    for number, path in enumerate(names):
        path.unlink(missing_ok=True)
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "device":
            path.symlink_to("/dev/zero")
        else:
            (outside / str(number)).write_text(SECRET)
            path.symlink_to(outside / str(number))
    return dump


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_and_tells_nothing_of_other_files(
    command: str, hostile_dump: Path, own_dump: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], alarm: None
) -> None:
    config = own_dump.parent / "dump.json"
    places = {"dump": hostile_dump, "good": own_dump, "out": tmp_path / "out", "config": config}
    status = main([part.format(**places) for part in COMMANDS[command]])
    out, err = capfd.readouterr()
    assert status in range(5)
    assert "Traceback" not in out + err and SECRET not in out + err
    if (tmp_path / "out").exists():
        assert not any(SECRET.encode() in path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())


def test_what_was_left_out_is_named(hostile_dump: Path) -> None:
    dump: DumpDir = msdump.open(hostile_dump)
    list(dump.tensors())
    dump.graph_files("pb")
    names = {os.path.basename(path) for path in dump.foreign}
    assert names & {"ms_output_trace_code_graph_0.pb", "graphs"}
    assert names & {"ms_execution_order_graph_0.csv", "execution_order"}


def test_each_reads_one_file_that_is_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str], alarm: None) -> None:
    path = tmp_path / "Add.Add-op1.0.0.1.output.0.DefaultFormat.npy"
    os.mkfifo(path)
    assert main(["stat", str(path)]) != 0
    assert "expected a plain file, got a pipe" in capsys.readouterr().err
