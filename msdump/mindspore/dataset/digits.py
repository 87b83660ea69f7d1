"""Handwritten digits that ship with scikit-learn, as a CIFAR-10 binary folder: real data where there is no network."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from msdump.errors import ConfigError, WriteError
from msdump.formats.atomic import scratch_folder
from msdump.mindspore.dataset.image_files import CIFAR_CHANNELS, CIFAR_RECORD_BYTES, CIFAR_SIDE
from msdump.tensors.arrays import Array

TRAIN_FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_FILE, META_FILE = "test_batch.bin", "batches.meta.txt"
TEST_SHARE = 6  # one picture of six is for testing, as in CIFAR-10
_LARGEST_GRAY = 16  # scikit-learn's digits are counts of 0 to 16 ink pixels


def write_digits_as_cifar10(folder: str | os.PathLike[str]) -> Path:
    """Write the 1797 digits once as `data_batch_1..5.bin`, `test_batch.bin` and `batches.meta.txt`.

    Edges:  a folder that already holds all files is left alone. The folder appears whole or not at all.
    Raises: ConfigError (no scikit-learn; something else has that name), WriteError (disk).
    """
    target = Path(folder).absolute()
    if all((target / name).is_file() for name in (*TRAIN_FILES, TEST_FILE, META_FILE)):
        return target
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(
            f"{target}: expected a new or empty folder for the digits, got something else with that name. "
            "Choose another folder, or remove it."
        )
    records = digit_records()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(target.parent) as scratch:
            temporary = scratch / target.name
            temporary.mkdir()
            write_files(temporary, records)
            temporary.chmod(0o755)
            _publish(temporary, target)
    except OSError as error:
        raise WriteError(
            f"{target}: expected to write the digits there, got {error.strerror}. Is there room?"
        ) from error
    return target


def _publish(temporary: Path, target: Path) -> None:
    try:
        temporary.rename(target)
    except OSError:
        # Another process may have been faster; then its files are as good as these.
        if not (target / META_FILE).is_file():
            raise


def write_files(folder: Path, records: Array) -> None:
    """The records as files of CIFAR-10: five of training, one of the test."""
    is_test = np.arange(len(records)) % TEST_SHARE == TEST_SHARE - 1
    for name, part in zip(TRAIN_FILES, np.array_split(records[~is_test], len(TRAIN_FILES)), strict=True):
        (folder / name).write_bytes(part.tobytes())
    (folder / TEST_FILE).write_bytes(records[is_test].tobytes())
    (folder / META_FILE).write_text("".join(f"{digit}\n" for digit in range(10)), encoding="ascii")


def digit_records() -> Array:
    """All digits as CIFAR-10 records.   Shapes: -> (N, 3073) uint8"""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ConfigError(
            "digits: expected scikit-learn, which holds the pictures, got no such package. "
            "Install it with: pip install scikit-learn"
        ) from error
    digits = load_digits()
    gray = np.rint(digits.images * (255.0 / _LARGEST_GRAY)).astype(np.uint8)
    scale = CIFAR_SIDE // gray.shape[1]
    large = gray.repeat(scale, axis=1).repeat(scale, axis=2)
    records = np.empty((len(gray), CIFAR_RECORD_BYTES), np.uint8)
    records[:, 0] = digits.target
    records[:, 1:] = np.repeat(large[:, None], CIFAR_CHANNELS, axis=1).reshape(len(gray), -1)
    return records
