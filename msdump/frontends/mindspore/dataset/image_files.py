"""Sources of pictures on disk: CIFAR-10 in its binary form, MNIST, folders of image files."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.errors import ConfigError, FormatError, TruncatedFileError, did_you_mean
from msdump.frontends.mindspore.dataset.rows import Row, constant
from msdump.frontends.mindspore.dataset.samplers import sampler_of
from msdump.frontends.mindspore.dataset.sources import MappableDataset
from msdump.frontends.mindspore.dataset.vision.pixels import Decode

# A CIFAR-10 record: one byte of label, then the red, green and blue planes of 32 x 32 pixels.
CIFAR_SIDE, CIFAR_CHANNELS, CIFAR_CLASSES = 32, 3, 10
CIFAR_RECORD_BYTES = 1 + CIFAR_CHANNELS * CIFAR_SIDE * CIFAR_SIDE
IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

PathLike = str | os.PathLike[str]


class Cifar10Dataset(MappableDataset):
    """Pictures and labels of the CIFAR-10 binary files in one folder.

    usage   "train": `data_batch*.bin`, "test": `test_batch*.bin`, "all" or None: every `*.bin`
    Shapes: image (32, 32, 3) uint8, label () uint32
    Raises: ConfigError (no folder, no file), FormatError (a file that is no CIFAR-10 batch).
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        _check_usage("Cifar10Dataset", usage)
        folder = _checked_folder("Cifar10Dataset", dataset_dir)
        prefix = {"train": "data_batch", "test": "test_batch"}.get(usage or "all", "")
        files = sorted(path for path in folder.glob(f"{prefix}*.bin") if path.is_file())
        if not files:
            names = sorted(entry.name for entry in folder.iterdir())[:5]
            raise ConfigError(
                f"Cifar10Dataset({os.fspath(dataset_dir)!r}): expected files {prefix}*.bin of the CIFAR-10 binary "
                f"version, got {names or 'an empty folder'}. Give the folder that holds the .bin files."
            )
        self._records = np.concatenate([_read_cifar_file(path) for path in files])
        self._sampler = sampler_of(sampler, shuffle, num_samples, num_shards, shard_id)

    def source_size(self) -> int:
        return len(self._records)

    def row_at(self, place: int) -> Row:
        record = self._records[place]
        planes = record[1:].reshape(CIFAR_CHANNELS, CIFAR_SIDE, CIFAR_SIDE)
        return constant([np.ascontiguousarray(planes.transpose(1, 2, 0)), np.uint32(record[0])])

    def get_col_names(self) -> list[str]:
        return ["image", "label"]

    def num_classes(self) -> int | None:
        return CIFAR_CLASSES


class MnistDataset(MappableDataset):
    """Pictures and labels of the MNIST idx files in one folder, as they are or gzipped.

    usage   "train": `train-*`, "test": `t10k-*`, "all" or None: both
    Shapes: image (28, 28, 1) uint8, label () uint32
    Raises: ConfigError (no folder, no file), FormatError (a file that is no idx file).
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        _check_usage("MnistDataset", usage)
        folder = _checked_folder("MnistDataset", dataset_dir)
        parts = {"train": ["train"], "test": ["t10k"]}.get(usage or "all", ["train", "t10k"])
        pairs = [pair for pair in (_mnist_pair(folder, part) for part in parts) if pair is not None]
        if not pairs:
            names = " and ".join(f"{part}-images-idx3-ubyte" for part in parts)
            raise ConfigError(
                f"MnistDataset({os.fspath(dataset_dir)!r}): expected {names} (or .gz) with their labels, got none. "
                "Give the folder that holds the idx files."
            )
        self._images = np.concatenate([images for images, _ in pairs])
        self._labels = np.concatenate([labels for _, labels in pairs])
        self._sampler = sampler_of(sampler, shuffle, num_samples, num_shards, shard_id)

    def source_size(self) -> int:
        return len(self._labels)

    def row_at(self, place: int) -> Row:
        return constant([self._images[place][:, :, None], np.uint32(self._labels[place])])

    def get_col_names(self) -> list[str]:
        return ["image", "label"]

    def num_classes(self) -> int | None:
        return 10


class ImageFolderDataset(MappableDataset):
    """Image files in folders named after their class.

    Shapes: image (bytes,) uint8 as on disk, or (H, W, 3) uint8 with `decode`; label () int32
    Edges:  labels count the classes in sorted order, unless `class_indexing` gives them.
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        extensions: Sequence[str] | None = None,
        class_indexing: Mapping[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        folder = _checked_folder("ImageFolderDataset", dataset_dir)
        classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
        self._labels = dict(class_indexing or {name: label for label, name in enumerate(classes)})
        for name in self._labels:
            if name not in classes:
                raise ConfigError(
                    f"ImageFolderDataset(class_indexing): expected names of folders in {os.fspath(dataset_dir)!r}, got "
                    f"{name!r}. {did_you_mean(name, classes)}".rstrip()
                )
        endings = tuple(ending.lower() for ending in (extensions or IMAGE_EXTENSIONS))
        self._files = [
            (path, label)
            for name, label in self._labels.items()
            for path in sorted((folder / name).rglob("*"))
            if path.suffix.lower() in endings and path.is_file()
        ]
        if not self._files:
            raise ConfigError(
                f"ImageFolderDataset({os.fspath(dataset_dir)!r}): expected one folder per class with files "
                f"{', '.join(endings)}, got none."
            )
        self._decode = Decode() if decode else None
        self._sampler = sampler_of(sampler, shuffle, num_samples, num_shards, shard_id)

    def source_size(self) -> int:
        return len(self._files)

    def row_at(self, place: int) -> Row:
        path, label = self._files[place]

        def read() -> tuple[Array, ...]:
            image = np.fromfile(path, np.uint8)
            return (image if self._decode is None else self._decode(image)), np.asarray(np.int32(label))

        return read

    def get_col_names(self) -> list[str]:
        return ["image", "label"]

    def num_classes(self) -> int | None:
        return len(self._labels)

    def get_class_indexing(self) -> dict[str, int]:
        return dict(self._labels)


def _read_cifar_file(path: Path) -> Array:
    """Records of one batch file.   Shapes: -> (N, 3073) uint8"""
    data = np.fromfile(path, np.uint8)
    if data.size == 0 or data.size % CIFAR_RECORD_BYTES:
        raise TruncatedFileError(
            f"{path}: expected a CIFAR-10 batch, a multiple of {CIFAR_RECORD_BYTES} bytes, got {data.size} bytes. "
            "Is the file cut short, or not the binary version?"
        )
    records = data.reshape(-1, CIFAR_RECORD_BYTES)
    worst = int(records[:, 0].max())
    if worst >= CIFAR_CLASSES:
        record = int(records[:, 0].argmax())
        raise FormatError(
            f"{path}: record {record}: expected a label in [0, {CIFAR_CLASSES - 1}], got {worst}. Is this CIFAR-100?"
        )
    return records


def _mnist_pair(folder: Path, part: str) -> tuple[Array, Array] | None:
    image_file = _idx_file(folder, f"{part}-images-idx3-ubyte")
    label_file = _idx_file(folder, f"{part}-labels-idx1-ubyte")
    if image_file is None and label_file is None:
        return None
    if image_file is None or label_file is None:
        have = image_file or label_file
        raise ConfigError(f"MnistDataset: expected images and labels together, got only {have}.")
    images, labels = read_idx(image_file), read_idx(label_file)
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
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
    """Array of an idx file of unsigned bytes, gzipped when its name ends with .gz.

    Source: http://yann.lecun.com/exdb/mnist: magic 00 00 08 ndim, then big-endian sizes, then the bytes.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile) as error:
        raise TruncatedFileError(f"{path}: expected a gzip file, got {error}. Is it cut short?") from error
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise FormatError(f"{path}: expected the magic bytes 00 00 08 of an idx file, got {data[:4].hex(' ')}.")
    header_bytes = 4 + 4 * data[3]
    if len(data) < header_bytes:
        raise TruncatedFileError(f"{path}: expected a header of {header_bytes} bytes, got {len(data)} bytes.")
    shape = tuple(int(side) for side in np.frombuffer(data, ">u4", data[3], 4))
    if len(data) - header_bytes != math.prod(shape):
        raise TruncatedFileError(
            f"{path}: expected {math.prod(shape)} data bytes for {shape}, got {len(data) - header_bytes}."
        )
    return np.frombuffer(data, np.uint8, offset=header_bytes).reshape(shape)


def _checked_folder(where: str, folder: PathLike) -> Path:
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"{where}(dataset_dir): expected a path, got {type(folder).__name__} {folder!r}.")
    path = Path(folder)
    if not path.is_dir():
        what = "a file" if path.exists() else "nothing there"
        raise ConfigError(
            f"{where}(dataset_dir): expected a folder, got {what}: {os.fspath(folder)!r} "
            f"(in {os.getcwd()}). Check the path."
        )
    return path


def _check_usage(where: str, usage: str | None) -> None:
    usages = ["train", "test", "all"]
    if usage is not None and usage not in usages:
        hint = did_you_mean(str(usage), usages)
        raise ConfigError(f"{where}(usage): expected one of {usages}, got {usage!r}. {hint}".rstrip())
