"""One bit of a dumped tensor that is another one, and scripts run as they are printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msdump
from msdump.analysis.find.look_up import find_operator
from msdump.formats.selection import StepSelection
from tests.analysis.conftest import ROOT


def with_flipped_bit(dump: Path, copy: Path, operator: str, output: int = 0, iteration: int | None = 0) -> Path:
    """A copy of a dump in which one bit of the first element of an output differs: of a float one of the upper bits of
    the mantissa, of bfloat16, which has few of these, one of the exponent, of any other dtype the lowest."""
    shutil.copytree(dump, copy)
    found = find_operator(msdump.open(copy), operator, StepSelection(None, None, iteration))
    tensor = list(found.operator.outputs.values())[output]
    assert tensor.size_bytes
    path = Path(tensor.path)
    data = bytearray(path.read_bytes())
    places = {"float32": (2, 6), "float64": (6, 3), "float16": (1, 1), "bfloat16": (1, 0)}
    byte, bit = places.get(tensor.dtype, (0, 0))
    if tensor.true_dtype == "bfloat16" and tensor.dtype == "float32":
        byte, bit = 3, 0
    data[tensor.offset + byte] ^= 1 << bit
    path.chmod(0o600)
    path.write_bytes(data)
    return copy


def run_script(script: Path, *, has_msdump: bool = False) -> tuple[int, str]:
    """Exit status and what it says, in a process without msdump on its path."""
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", str(script)],
        cwd="/", capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT) if has_msdump else ""},
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout
