"""Health of tensors that are all alike: the operator that made them so is suspicious, not those that read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from msdump.analysis.overview.contents import Contents
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


def test_what_reads_only_constants_makes_constants(tmp_path: Path) -> None:
    alike, mixed = floats(*[0.5] * 4), floats(1, 2, 3, 4)
    dump = write_dump(
        tmp_path / "dump",
        [
            ("D/ReLU-op0", {IN: mixed, OUT: alike}),
            ("D/Div-op1", {IN: alike, OUT: floats(*[0.25] * 4)}),
            ("D/Expand-op2", {IN: np.float32(0.25).reshape(()), OUT: floats(*[0.25] * 4)}),
            ("D/Neg-op3", {IN: mixed, OUT: floats(*[0.0] * 4)}),
            ("D/Mul-op4", {OUT: floats(*[0.0] * 4)}),
        ],
    )
    healths = {one.operator.op_name: one.health.value for one in Contents(dump).operators}
    assert healths == {
        "ReLU-op0": "suspicious", "Div-op1": "ok", "Expand-op2": "ok", "Neg-op3": "suspicious", "Mul-op4": "suspicious",
    }  # fmt: skip
