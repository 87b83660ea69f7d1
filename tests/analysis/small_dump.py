"""A synchronous dump written by hand: operators by name, tensors by io and slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.formats.npy import npy_array, npy_header
from msdump.formats.sidecars import ORDER_TITLE

Array = np.ndarray[Any, np.dtype[Any]]
Tensors = Mapping[tuple[str, int], Any]


def write_dump(
    root: Path,
    operators: Sequence[tuple[str, Tensors]],
    iteration: int = 0,
    graph: int = 0,
    rank: int = 0,
    has_order: bool = True,
) -> Path:
    """Write operators (full name, tensors) in their order; the root of the dump.

    The type of an operator is the last part of its name up to `-op`; "Parameter.x" stands for a parameter.
    """
    folder = root / f"rank_{rank}/Net/{graph}/{iteration}"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = 1_700_000_000_000_000 + 1000 * iteration
    for full_name, tensors in operators:
        for (io, slot), value in tensors.items():
            array = np.ascontiguousarray(value)
            stamp += 1
            last = full_name.rsplit("/", 1)[-1]
            name = last if full_name.startswith("Parameter.") else f"{last.rsplit('-op', 1)[0]}.{last}"
            header, data = npy_header(array.dtype.name, np.asarray(value).shape), npy_array(array, array.dtype.name)
            (folder / f"{name}.0.0.{stamp}.{io}.{slot}.DefaultFormat.npy").write_bytes(header + data.tobytes())
    if has_order:
        order = root / f"rank_{rank}/execution_order/ms_execution_order_graph_{graph}.csv"
        order.parent.mkdir(parents=True, exist_ok=True)
        names = [name for name, _ in operators if not name.startswith("Parameter.")]
        order.write_text("\n".join([ORDER_TITLE, *names]) + "\n")
    return root


def floats(*values: float) -> Array:
    return np.array(values, np.float32)
