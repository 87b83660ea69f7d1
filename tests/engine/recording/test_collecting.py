"""Rings that dead processes left: what is kept of them, whatever state they are in, and what the commands say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.cli.main import main
from msdump.engine.recording.collecting import collect, survey, write_pointer
from msdump.engine.recording.incidents import CONTROL, Incident, IncidentLog, incidents_below
from msdump.engine.recording.ring import RankRing, ring_home, take_home


def ring_of(folder: Path, path: Path, rank: int, steps: range, whole: range, home: Path | None = None) -> RankRing:
    """A ring as a killed process leaves it: nobody holds it."""
    ring = RankRing(home or ring_home(folder, path), rank)
    ring.take()
    ring.begin(write_pointer(path, ring, 0, 3))
    for step in steps:
        place = ring.tree / "Net" / "0" / str(step)
        place.mkdir(parents=True)
        (place / "Add.Add-op0.0.0.1.output.0.DefaultFormat.npy").write_text(f"{rank} {step}")
    for step in whole:
        ring.note_whole(step)
    ring.leave_to_parent()  # lets go of it without a word
    assert ring._hold is not None
    ring._hold.release()
    return ring


def kept_of(path: Path) -> dict[str, set[int]]:
    """Folder of a rank -> numbers of its steps, over all incidents."""
    kept: dict[str, set[int]] = {}
    for file in path.glob("incident_*/rank_*/Net/0/*/*.npy"):
        rank, step = file.parents[3].name, int(file.parent.name)
        assert file.read_text() == f"{rank.removeprefix('rank_')} {step}"
        kept.setdefault(rank, set()).add(step)
    return kept


def test_the_last_steps_that_all_dead_ranks_have(tmp_path: Path) -> None:
    """Ranks that were killed in different steps; the last step of each is not whole."""
    path, folder = tmp_path / "kept", tmp_path / "ring"
    for rank, last in enumerate((8, 7, 8)):
        ring_of(folder, path, rank, range(2, last + 1), range(last))
    assert survey(path).dead == (0, 1, 2)
    found = collect(path)
    assert [each.rank for each in found.collected] == [0, 1, 2]
    kept = kept_of(path)
    assert set.intersection(*kept.values()) >= {4, 5, 6}
    assert not list(folder.iterdir())
    assert survey(path) == collect(path).__class__()


def test_what_another_rank_has_declared_is_kept(tmp_path: Path) -> None:
    path, folder = tmp_path / "kept", tmp_path / "ring"
    ring_of(folder, path, 1, range(2, 9), range(9))
    IncidentLog(path).declare(Incident("nonfinite", "", 0, 6, 3, 8), lambda other: False)
    collect(path)
    assert kept_of(path) == {"rank_1": set(range(3, 9))}
    assert [incident.why for incident in incidents_below(path)] == ["nonfinite"]


def test_rings_that_are_gone_or_elsewhere_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept"
    (path / CONTROL).mkdir(parents=True)
    home = ring_home(tmp_path / "ring", path)
    facts = {"rank": 3, "host": os.uname().nodename, "home": str(home)}
    (path / CONTROL / "rank_3.json").write_text(json.dumps(facts))
    (path / CONTROL / "rank_4.json").write_text(json.dumps({**facts, "rank": 4, "host": "other\x1b[31m"}))
    assert main(["recorder", "list", str(path)]) == 3
    said = capsys.readouterr()
    assert "lost rings, with their content: rank 3" in said.out
    assert "rank 4 records on other" in said.out and "\x1b" not in said.out
    assert "holds no incident" in said.err
    assert main(["trigger", str(path)]) == 0  # the rank on the other machine may see it
    assert f"  msdump recorder list {path}" in capsys.readouterr().out
    assert json.loads((path / CONTROL / "trigger.json").read_text()) == {"why": "msdump trigger", "step": 0}


def test_a_ring_under_another_name_is_found_by_its_pointer(tmp_path: Path) -> None:
    path, folder = tmp_path / "kept", tmp_path / "ring"
    folder.mkdir()
    ring_home(folder, path).symlink_to(tmp_path)
    home = take_home(folder, path, 0)
    ring_of(folder, path, 0, range(2, 6), range(6), home)
    assert home != ring_home(folder, path) and survey(path).dead == (0,)
    collect(path)
    assert kept_of(path) == {"rank_0": {3, 4, 5}}
    assert list(folder.iterdir()) == [ring_home(folder, path)]


def test_a_pointer_to_a_folder_that_is_no_ring_is_not_followed(tmp_path: Path) -> None:
    """Its name is made of the path, so that nobody can have other folders emptied."""
    path, victim = tmp_path / "kept", tmp_path / "victim"
    (path / CONTROL).mkdir(parents=True)
    (victim / "state_0").mkdir(parents=True)
    (victim / "rank_0").mkdir()
    (victim / "rank_0" / "precious").touch()
    facts = {"rank": 0, "host": os.uname().nodename, "home": str(victim)}
    (path / CONTROL / "rank_0.json").write_text(json.dumps(facts))
    assert collect(path).collected == ()
    assert (victim / "rank_0" / "precious").exists()


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from(["recorder.json", "steps", "incident_0001/steps.json"]), st.binary(max_size=30)))
def test_damaged_rings_still_give_their_files(
    tmp_path_factory: pytest.TempPathFactory, damage: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("ring")
    path = tmp_path_factory.mktemp("kept")
    ring = ring_of(folder, path, 0, range(2, 6), range(5))
    for name, content in damage.items():
        (ring.state / name).parent.mkdir(exist_ok=True)
        (ring.state / name).write_bytes(content)
    collect(path)
    assert kept_of(path)["rank_0"] >= {4, 5} - ({5} if "steps" not in damage else set())
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["recorder", "list", "nowhere"], 2, "expected the folder of a flight recorder"),
        (["trigger", "nowhere"], 3, "without a running recorder"),
    ],
)
def test_wrong_folders(arguments: list[str], status: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == status
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["recorder", "drop", "x"], ["trigger", "x", "--in", "-1"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "expected" in capsys.readouterr().err
