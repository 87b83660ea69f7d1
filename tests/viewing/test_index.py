"""An index gives back what was put in, survives its process, and is made again when it is damaged."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msdump.analysis.measurements import Measurement
from msdump.errors import WriteError
from msdump.statistics.exponents import ExponentHistogram
from msdump.statistics.stats import Statistics
from msdump.viewing.index import Index, Progress, TensorPlace, index_path, remove_old

_NUMBERS = st.one_of(st.none(), st.integers(-(1 << 70), 1 << 70), st.floats())
_COUNTS = st.integers(0, 1 << 62)
MEASUREMENTS = st.builds(
    Measurement,
    st.builds(Statistics, _NUMBERS, _NUMBERS, st.one_of(st.none(), st.floats()), st.floats(), *[_COUNTS] * 8),
    st.lists(_COUNTS, max_size=4).map(tuple),
    st.one_of(
        st.none(),
        st.lists(st.tuples(_COUNTS, _COUNTS), max_size=5).map(
            lambda pairs: ExponentHistogram(-3, tuple(one for one, _ in pairs), tuple(other for _, other in pairs))
        ),
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(measurement=MEASUREMENTS, place=st.text(st.characters(exclude_categories=["Cs"]), max_size=9))
def test_measurements_come_back(measurement: Measurement, place: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("index") / "x.sqlite"
    key = (1, 1 << 62, -1, place, 5, 1_700_000_000_000_000_000)
    with Index(path) as index:
        index.put(key, measurement)
    with Index(path) as index:
        assert repr(index.get(key)) == repr(measurement)
        assert index.get((2, *key[1:])) is None and index.get((*key[:5], 6)) is None


def test_an_inode_beyond_sqlite_is_measured_each_time(tmp_path: Path) -> None:
    measurement = Measurement(Statistics(1, 1, 1.0, 1.0, 1, 0, 1, 0, 0, 0, 0, 4), (1,), None)
    with Index(tmp_path / "x.sqlite") as index:
        index.put((1, 1 << 63, 0, "", 4, 0), measurement)
        assert index.get((1, 1 << 63, 0, "", 4, 0)) is None


def test_answers_are_replaced_as_a_whole(tmp_path: Path) -> None:
    place = TensorPlace(os.fsdecode(b"/d/\xff.npy"), "input", 0, None, "key", 128)
    with Index(tmp_path / "x.sqlite") as index, Index(tmp_path / "x.sqlite") as reader:
        assert reader.progress == Progress() and reader.answer("overview") is None
        index.replace([("overview", b"1"), ("nan", b"2")], [("0/0/0", 3, place)], Progress(1, "a", "measuring", 1, 2))
        assert reader.answer("overview") == b"1" and reader.tensor("0/0/0", 3) == place
        assert reader.progress.stage == "measuring" and sorted(reader.paths()) == ["nan", "overview"]
        index.replace([("overview", b"3")], [], Progress(2))
        assert reader.answer("nan") is None and reader.answer("overview") == b"3"
        assert reader.tensor("0/0/0", 3) is None and reader.tensor("0/0/0", 1 << 70) is None


def test_answers_of_another_program_go_and_measurements_stay(tmp_path: Path) -> None:
    measurement = Measurement(Statistics(1, 1, 1.0, 1.0, 1, 0, 1, 0, 0, 0, 0, 4), (1,), None)
    with Index(tmp_path / "x.sqlite") as index:
        index.require("one")
        index.put((1, 2, 3, "", 4, 5), measurement)
        index.replace([("overview", b"1")], [], Progress(4))
        index.require("one")
        assert index.answer("overview") == b"1"
        index.require("other")
        assert index.answer("overview") is None and index.progress == Progress()
        index.flush()
        assert index.get((1, 2, 3, "", 4, 5)) == measurement


def test_a_damaged_index_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with Index(path) as index:
        index.progress = Progress(7)
    with Index(path) as index:
        assert index.progress.version == 7


def test_files_are_private_and_links_are_not_followed(tmp_path: Path) -> None:
    Index(tmp_path / "new" / "x.sqlite").close()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new" / "x.sqlite").stat().st_mode) == 0o600
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "target")
    with pytest.raises(WriteError, match="--no-index"):
        Index(tmp_path / "link.sqlite")
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="place for the index"):
        Index(tmp_path / "file" / "x.sqlite")


def test_the_place_depends_on_all_that_answers_depend_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    places = {index_path("a", None), index_path("b", None), index_path("a", "b"), index_path("a", None, "mapping.json")}
    assert len(places) == 4 and index_path("a", None) == index_path(os.path.abspath("a"), None)
    assert {path.parent for path in places} == {tmp_path / "msdump" / "index"}


def test_old_ones_go(tmp_path: Path) -> None:
    for name in ("old.sqlite", "new.sqlite", "other.txt"):
        (tmp_path / name).write_text("")
    os.utime(tmp_path / "old.sqlite", (0, 0))
    os.utime(tmp_path / "other.txt", (0, 0))
    remove_old(tmp_path, time.time())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.sqlite", "other.txt"]
    remove_old(tmp_path / "nowhere", 0)
