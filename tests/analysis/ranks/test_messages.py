"""Messages between ranks: which of the two is named when something else arrives than was sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("duckdb")

from msdump.analysis.ranks.job import job_report, write_tables
from msdump.analysis.ranks.questions import Tables
from msdump.cli.main import main
from msdump.formats.sharding_json import Message, MessageOperand, RankSharding, write_sharding
from tests.analysis.small_dump import Array, write_dump

IN, OUT = ("input", 0), ("output", 0)
SEND, RECEIVE, LATER = "Net/Send-op0", "Net/Receive-op0", "Net/Mul-op1"


def array(number: float) -> Array:
    return np.full(4, number, np.float32)


def write_pair(root: Path, arrived: float, misuse: str = "", misuse_at: int = 0) -> None:
    """Rank 0 sends 1 and computes 2 later; the buffer of rank 1 holds 3 before `arrived` comes."""
    write_dump(root, [(SEND, {IN: array(1)}), (LATER, {OUT: array(2)})], rank=0)
    write_dump(root, [(RECEIVE, {IN: array(3), OUT: array(arrived)})], rank=1)
    message = Message("0", 0, 1, 0, 0)
    for rank, (name, io) in enumerate(((SEND, "input"), (RECEIVE, "output"))):
        operand = MessageOperand(0, name, io, 0, 0, message, misuse if misuse_at == rank else "")
        write_sharding(root / f"rank_{rank}/.dump_metadata", RankSharding(rank, 2, f"node{rank}", messages=(operand,)))


@pytest.mark.parametrize(
    ("arrived", "misuse", "suspects", "cause"),
    [
        (2, ("", 0), [0], f"what the sender computed later in {LATER}"),
        (3, ("", 0), [1], "what the buffer of the receive held before"),
        (9, ("", 0), [0, 1], None),
        (9, ("overwritten by X", 0), [0], "overwritten by X"),
        (2, ("used by Y", 1), [1], "used by Y"),
    ],
)
def test_who_is_named(
    arrived: float, misuse: tuple[str, int], suspects: list[int], cause: str | None, tmp_path: Path
) -> None:
    write_pair(tmp_path / "job", arrived, *misuse)
    write_tables([tmp_path / "job"], tmp_path / "t", jobs=1)
    report = job_report(Tables(tmp_path / "t"), [tmp_path / "job"])
    (row,) = (dict[str, Any](zip(report.messages.titles, row, strict=True)) for row in report.messages.rows)
    assert (row["suspects"], row["hosts"]) == (suspects, [f"node{rank}" for rank in suspects])
    assert (row["send"], row["receive"], row["cause"]) == (SEND, RECEIVE, cause)
    assert report.suspects == ({suspects[0]: 1} if len(suspects) == 1 else {})


def test_the_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pair(tmp_path / "job", 2)
    assert main(["ranks", str(tmp_path / "job"), "--jobs", "1", "--tables", str(tmp_path / "t")]) == 1
    out = capsys.readouterr().out
    assert "messages that arrived as something else than was sent" in out and LATER in out and "node0" in out
    assert main(["query", str(tmp_path / "t"), "--ask", "messages"]) == 1
    assert "rank 0 to rank 1, group 0, tag 0, number 0" in capsys.readouterr().out
    write_pair(tmp_path / "good", 1)
    assert main(["ranks", str(tmp_path / "good"), "--jobs", "1"]) == 0
    assert "2 ranks on 2 machines, 1 tensor that must be equal\nall of them are equal" in capsys.readouterr().out
