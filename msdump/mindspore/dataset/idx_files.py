"""MNIST and the collections that have its form: idx files of images and labels, as they are or gzipped."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from msdump.errors import ConfigError, FormatError, TruncatedFileError
from msdump.mindspore.dataset.file_lists import Entry, FileList, chosen_parts, parameters
from msdump.tensors.arrays import Array

_TAIL = "num_samples num_parallel_workers shuffle sampler num_shards shard_id cache"
_IDX_TYPES: dict[bytes, np.dtype[Any]] = {b"\x00\x00\x08": np.dtype(np.uint8), b"\x00\x00\x0c": np.dtype(">i4")}
_BYTES = ("images-idx3-ubyte", "labels-idx1-ubyte")


class MnistDataset(FileList):
    """Pictures and labels of the MNIST idx files in one folder.

    usage   "train": `train-*`, "test": `t10k-*`, "all" or None: both, the test files first as in MindSpore
    Shapes: image (28, 28, 1) uint8, label () uint32
    Raises: ConfigError (no folder, no file), FormatError (a file that is no idx file).
    """

    PARAMETERS = parameters(f"dataset_dir usage {_TAIL}", usage=None)
    PREFIXES: ClassVar[Mapping[str, str]] = {"test": "t10k-", "train": "train-"}

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        usage = given["usage"]
        prefixes = [self.PREFIXES[part] for part in chosen_parts(where, usage, self.PREFIXES)]
        return _entries(where, folder, [tuple(prefix + ending for ending in _BYTES) for prefix in prefixes])

    def num_classes(self) -> int | None:
        return 10


class FashionMnistDataset(MnistDataset):
    """Clothes, in the form of MNIST."""


class KMnistDataset(MnistDataset):
    """Cursive Japanese characters, in the form of MNIST."""


def _entries(where: str, folder: Path, files: Iterable[tuple[str, ...]]) -> Iterable[Entry]:
    wanted = list(files)
    pairs = [pair for images, labels in wanted if (pair := _pair(where, folder, images, labels)) is not None]
    if not pairs:
        names = " and ".join(images for images, _ in wanted)
        raise ConfigError(
            f"{where}({os.fspath(folder)!r}): expected {names} (or .gz) with their labels, got none. "
            "Give the folder that holds the idx files."
        )
    for images, labels in pairs:
        numbers = labels.astype(np.uint32)
        yield from ((image[:, :, None], number) for image, number in zip(images, numbers, strict=True))


def _pair(where: str, folder: Path, images_name: str, labels_name: str) -> tuple[Array, Array] | None:
    image_file, label_file = _idx_file(folder, images_name), _idx_file(folder, labels_name)
    if image_file is None and label_file is None:
        return None
    if image_file is None or label_file is None:
        have = image_file or label_file
        raise ConfigError(f"{where}: expected images and labels together, got only {have}.")
    images, labels = read_idx(image_file), read_idx(label_file)
    if images.ndim != 3 or labels.ndim not in (1, 2) or len(images) != len(labels):
        raise FormatError(
            f"{image_file}: expected (N, H, W) images for the {labels.shape} labels of {label_file.name}, "
            f"got {images.shape}."
        )
    return images, labels


def _idx_file(folder: Path, name: str) -> Path | None:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    return None


def read_idx(path: Path) -> Array:
    """Array of an idx file of unsigned bytes or of 32-bit ints, gzipped when its name ends with .gz.

    Source: http://yann.lecun.com/exdb/mnist: magic 00 00, type (08: bytes, 0c: ints), rank, then
    big-endian sizes, then the data.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile) as error:
        raise TruncatedFileError(f"{path}: expected a gzip file, got {error}. Is it cut short?") from error
    dtype = _IDX_TYPES.get(data[:3])
    if len(data) < 4 or dtype is None:
        raise FormatError(f"{path}: expected the magic bytes 00 00 08 of an idx file, got {data[:4].hex(' ')}.")
    header_bytes = 4 + 4 * data[3]
    if len(data) < header_bytes:
        raise TruncatedFileError(f"{path}: expected a header of {header_bytes} bytes, got {len(data)} bytes.")
    shape = tuple(int(side) for side in np.frombuffer(data, ">u4", data[3], 4))
    size = math.prod(shape) * dtype.itemsize
    if len(data) - header_bytes != size:
        raise TruncatedFileError(f"{path}: expected {size} data bytes for {shape}, got {len(data) - header_bytes}.")
    return np.frombuffer(data, dtype, offset=header_bytes).reshape(shape)
