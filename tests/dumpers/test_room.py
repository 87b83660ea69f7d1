"""What a run would find on the disk, and whether its folder can be made."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msdump.dumpers.room import room_below, room_rows, why_not_writable
from msdump.errors import ConfigError


@example(free=0, budget=None, floor=0)
@given(
    free=st.integers(0, 2**40),
    budget=st.none() | st.integers(1, 2**40),
    floor=st.none() | st.integers(0, 2**40),
)
def test_room_is_what_the_limits_leave(free: int, budget: int | None, floor: int | None) -> None:
    environ = {"MSDUMP_DISK_BUDGET": str(budget or ""), "MSDUMP_DISK_FLOOR": "" if floor is None else str(floor)}
    folder = Path(tempfile.gettempdir())
    room = room_below(folder, False, environ, lambda _: SimpleNamespace(free=free, total=2**41))
    left = max(0, free - (64 << 20 if floor is None else floor))
    assert room.room_bytes == (left if budget is None else min(left, budget))
    assert room.buffer_bytes is None and len(room_rows(room)) == 2
    assert ("expected room for files" in room.problem) == (room.room_bytes == 0)


def test_every_limit_is_told_with_its_variable() -> None:
    def limits(**environ: str) -> str:
        return room_rows(room_below(Path("/"), False, environ, lambda _: SimpleNamespace(free=9, total=9)))[0][1]

    assert limits(MSDUMP_DISK_FLOOR="0", MSDUMP_KEEP_ITERATIONS="2") == (
        "no budget (MSDUMP_DISK_BUDGET); the disk may fill up (MSDUMP_DISK_FLOOR); "
        "the last 2 iterations are kept (MSDUMP_KEEP_ITERATIONS)"
    )
    assert limits(MSDUMP_DISK_FLOOR="1M", MSDUMP_DISK_BUDGET="1K", MSDUMP_KEEP_ITERATIONS="1") == (
        "at most 1 KiB in all (MSDUMP_DISK_BUDGET); 1 MiB of the disk stay free (MSDUMP_DISK_FLOOR); "
        "the last iteration is kept (MSDUMP_KEEP_ITERATIONS)"
    )


def test_the_asynchronous_engine_has_a_buffer_as_well() -> None:
    room = room_below(Path("/"), True, {"MSDUMP_ASYNC_BUFFER": "3M"})
    assert room_rows(room)[-1] == ("buffer", "3 MiB of memory for what waits (MSDUMP_ASYNC_BUFFER)")
    with pytest.raises(ConfigError, match="MSDUMP_ASYNC_BUFFER"):
        room_below(Path("/"), True, {"MSDUMP_ASYNC_BUFFER": "much"})


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    assert why_not_writable(tmp_path) == why_not_writable(tmp_path / "new" / "folder") == ""
    (tmp_path / "file").write_text("")
    assert "it is a file" in why_not_writable(tmp_path / "file")
    assert f"{tmp_path}/file above it is a file" in why_not_writable(tmp_path / "file" / "below")
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    assert why_not_writable(tmp_path / ("x" * longest)) == ""
    assert "expected names of at most" in why_not_writable(tmp_path / ("x" * (longest + 1)))
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "is not writable" in why_not_writable(tmp_path / "new")
    tmp_path.chmod(0o700)
