"""What exports read of a dump."""

from __future__ import annotations

from pathlib import Path

from msdump.analysis.overview.contents import has_tensors
from msdump.analysis.steps import opened
from tests.analysis.small_dump import floats, write_dump


def test_constants_are_no_tensors_of_a_step(tmp_path: Path) -> None:
    """A dump of statistics has them as files; two of these were compared as if they had tensors, which failed."""
    write_dump(tmp_path, [("Net/Exp-op0", {("output", 0): floats(1, 2)})])
    assert has_tensors(opened(tmp_path))
    (tmp_path / "rank_0/Net/0/0").rename(tmp_path / "rank_0/Net/0/constants")
    assert len(list(opened(tmp_path).files())) == 1 and not has_tensors(opened(tmp_path))
