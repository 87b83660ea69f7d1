"""Dumps that rows about files read, written without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np


def spread_sizes(count: int, largest: int) -> list[int]:
    """Sizes in bytes, spread evenly over the powers of two from 1 KiB on."""
    rng = np.random.default_rng(0)
    return [int(size) // 4 * 4 for size in np.exp(rng.uniform(np.log(1024), np.log(largest), count))]


def write_npy_dump(
    folder: Path,
    sizes: Sequence[int],
    noise: float = 0.0,
    shape: tuple[int, ...] | None = None,
    iteration: int = 0,
) -> int:
    """An iteration of a synchronous dump of one float32 output per operator; its bytes.

    noise  how much it differs from the dump with noise 0
    """
    from msdump.formats.npy import npy_header

    rng, other = np.random.default_rng(0), np.random.default_rng(1)
    values = rng.standard_normal(max(sizes) // 4).astype(np.float32)
    values += np.float32(noise) * other.standard_normal(values.size).astype(np.float32)
    data = folder / f"rank_0/Net/0/{iteration}"
    data.mkdir(parents=True)
    total = 0
    for number, size in enumerate(sizes):
        array = values[: size // 4]
        array = array if shape is None else array.reshape(shape)
        path = data / f"Add.Add-op{number}.{number}.0.{1_700_000_000_000_000 + number}.output.0.DefaultFormat.npy"
        with path.open("wb") as file:
            total += file.write(npy_header("float32", array.shape)) + file.write(array.data)
    return total


def write_bin_dump(folder: Path, sizes: Sequence[int]) -> int:
    """Dump files of one float32 output each; all bytes."""
    from msdump.formats.bin import bin_chunks
    from msdump.tensors.records import TensorRecord

    values = np.random.default_rng(0).standard_normal(max(sizes) // 4).astype(np.float32)
    folder.mkdir()
    total = 0
    for number, size in enumerate(sizes):
        name, stamp = f"Default/Add-op{number}", 1_700_000_000_000_000 + number
        record = TensorRecord("Add", name, number, 0, stamp, "output", 0, "float32", values[: size // 4])
        path = folder / f"Add.Default_Add-op{number}.{number}.0.{stamp}"
        with path.open("wb") as file:
            for chunk in bin_chunks([record]):
                total += file.write(chunk)
    return total
