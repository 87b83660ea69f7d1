"""Dumps below a folder are found by names alone, whatever their form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msdump.analysis.overview.dumps import dumps_below
from msdump.cli.main import main
from msdump.errors import FormatError
from tests.analysis.small_dump import floats, write_dump

OPERATORS = [("Net/Log-op0", {("output", 0): floats(1)})]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4, unique=True))
def test_each_dump_has_its_numbers(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]) -> None:
    root = tmp_path_factory.mktemp("runs")
    for name in ("a", "b/c"):
        for rank, iteration in steps:
            write_dump(root / name, OPERATORS, rank=rank, iteration=iteration, has_order=False)
    (root / "notes.txt").write_text("no dump")
    found = dumps_below(root)
    assert [Path(dump.path).relative_to(root).as_posix() for dump in found] == ["a", "b/c"]
    assert found[0].ranks == tuple(sorted({rank for rank, _ in steps}))
    assert found[1].iterations == tuple(sorted({iteration for _, iteration in steps}))
    assert found[0].file_count == len(steps)
    assert [dump.path for dump in dumps_below(root / "a")] == [str(root / "a")]
    rank = f"rank_{steps[0][0]}"
    assert [dump.path for dump in dumps_below(root / "a" / rank)] == [str(root / "a" / rank)]


@pytest.mark.parametrize(
    ("folders", "ranks"),
    [
        ("20240101000000/0/net/1/0", (0,)),
        ("step3/rank1/dump_tensor_data", (1,)),
        ("step3/proc77/dump_tensor_data", ()),
        ("worldsize8_global_rank5/20240102030405/2/Net/5/6", (5,)),
        ("worldsize2_global_rank1/graph_2/3", (1,)),
    ],
)
def test_other_forms(tmp_path: Path, folders: str, ranks: tuple[int, ...]) -> None:
    folder = tmp_path / "run" / folders
    folder.mkdir(parents=True)
    np.save(folder / "x.npy", floats(1))
    (found,) = dumps_below(tmp_path)
    assert found.ranks == ranks and found.path == str(tmp_path / "run")


def test_nothing_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dumps_below(tmp_path) == []
    with pytest.raises(FormatError, match="got nothing"):
        dumps_below(tmp_path / "nowhere")
    assert main(["ls", str(tmp_path), "--dumps"]) == 3
    assert "expected a dump in this folder or below it, got none" in capsys.readouterr().err


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("mine", "golden"):
        write_dump(tmp_path / name, OPERATORS)
    assert main(["ls", str(tmp_path), "--dumps"]) == 0
    out = capsys.readouterr().out
    assert "mine    0      0       0" in out and f"msdump compare {tmp_path}/golden {tmp_path}/mine" in out
    assert main(["ls", str(tmp_path), "--dumps", "--json", "-"]) == 0
    assert [dump["ranks"] for dump in json.loads(capsys.readouterr().out)["dumps"]] == [[0], [0]]


def test_a_folder_of_several_dumps_is_told_from_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("mine", "golden"):
        write_dump(tmp_path / name, OPERATORS)
    assert main(["ls", str(tmp_path)]) == 0
    assert f"msdump ls {tmp_path} --dumps  # the 2 dumps that are listed here as one" in capsys.readouterr().out
    assert main(["ls", str(tmp_path / "mine")]) == 0
    assert "--dumps" not in capsys.readouterr().out


def test_packs(tmp_path: Path) -> None:
    for iteration in (0, 1):
        write_dump(tmp_path / "dump", OPERATORS, iteration=iteration)
    before = dumps_below(tmp_path)
    assert main(["pack", str(tmp_path / "dump")]) == 0
    (packed,) = dumps_below(tmp_path)
    assert packed.path == before[0].path and packed.iterations == (0, 1) and packed.ranks == (0,)
