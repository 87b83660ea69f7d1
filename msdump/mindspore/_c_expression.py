"""What tools import from MindSpore's own extension module: the steps in which `TensorDump` writes files."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.mindspore.ops.tensor_dump import dumped_files


def _tensordump_set_step(steps: Sequence[int]) -> None:
    """Steps in which `TensorDump` writes, all for none.   Raises: TypeError for anything but numbers from 0 on."""
    if not isinstance(steps, list | tuple) or not all(type(step) is int and step >= 0 for step in steps):
        raise TypeError(f"_tensordump_set_step: expected a list of numbers from 0 on, got {steps!r}.")
    dumped_files.steps = frozenset(steps)


def _tensordump_process_file(file: str, dtype: str) -> str:
    """Path of the next file of `TensorDump`, whose folder is made; "" where it writes none."""
    return dumped_files.path(file, dtype.lower())
