"""What a console shows of a result: one line, whatever is in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import msdump
from tests.analysis.small_dump import floats, write_dump


def test_a_result_is_one_line(tmp_path: Path) -> None:
    operators = [("Log-op0", {("input", 0): floats(1, 2), ("output", 0): floats(np.nan, 3)})]
    mine = write_dump(tmp_path / "mine", operators)
    golden = write_dump(tmp_path / "golden", [("Log-op0", {("input", 0): floats(1, 2), ("output", 0): floats(4, 3)})])
    dump = msdump.open(mine)
    assert repr(dump) == f"<Dump {mine}>"
    assert [repr(tensor) for tensor in dump.tensors()] == [
        "<DumpedTensor Log-op0 input 0: float32 [2]>",
        "<DumpedTensor Log-op0 output 0: float32 [2]>",
    ]
    assert repr(msdump.stat(mine)) == "<StatisticReport: 2 tensors, 0 damaged files>"
    shown = repr(msdump.find_nan(mine))
    assert shown.startswith("<NonFiniteReport: 1 of 1 iterations") and "first NaN: Log-op0" in shown
    assert repr(msdump.compare(mine, golden)).endswith("1 tensors differ in 1 pairs of operators>")
