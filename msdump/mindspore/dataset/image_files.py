"""Sources of pictures on disk: CIFAR in its binary form, folders of image files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import ConfigError, FormatError, TruncatedFileError, did_you_mean
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.file_lists import Entry, FileList, chosen_parts, existing_file, parameters
from msdump.mindspore.dataset.rows import Row, constant
from msdump.tensors.arrays import Array

# A CIFAR-10 record: one byte of label, then the red, green and blue planes of 32 x 32 pixels.
CIFAR_SIDE, CIFAR_CHANNELS, CIFAR_CLASSES = 32, 3, 10
CIFAR_RECORD_BYTES = 1 + CIFAR_CHANNELS * CIFAR_SIDE * CIFAR_SIDE
IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

_TAIL = "num_samples num_parallel_workers shuffle sampler num_shards shard_id cache"


class Cifar10Dataset(FileList):
    """Pictures and labels of the CIFAR-10 binary files in one folder.

    usage   "train": `data_batch*.bin`, "test": `test_batch*.bin`, "all" or None: every `*.bin`
    Shapes: image (32, 32, 3) uint8, label () uint32
    Raises: ConfigError (no folder, no file), FormatError (a file that is no CIFAR-10 batch).
    """

    PARAMETERS = parameters(f"dataset_dir usage {_TAIL}", usage=None)

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        """Records, which are taken apart when they are read."""
        checks.one_of(f"{where}(usage)", given["usage"], ["train", "test", "all"])
        prefix = {"train": "data_batch", "test": "test_batch"}.get(given["usage"] or "all", "")
        files = sorted(path for path in folder.glob(f"{prefix}*.bin") if path.is_file())
        if not files:
            names = sorted(entry.name for entry in folder.iterdir())[:5]
            raise ConfigError(
                f"{where}({os.fspath(given['dataset_dir'])!r}): expected files {prefix}*.bin of the CIFAR-10 binary "
                f"version, got {names or 'an empty folder'}. Give the folder that holds the .bin files."
            )
        return ((record,) for path in files for record in _read_cifar_file(path))

    def row_at(self, place: int) -> Row:
        (record,) = self._entries[place]
        return constant([_picture(record[1:]), np.uint32(record[0])])

    def labels(self) -> list[int]:
        return [int(record[0]) for (record,) in self._entries]

    def num_classes(self) -> int | None:
        return CIFAR_CLASSES


def _picture(planes: Array) -> Array:
    return np.ascontiguousarray(planes.reshape(CIFAR_CHANNELS, CIFAR_SIDE, CIFAR_SIDE).transpose(1, 2, 0))


class Cifar100Dataset(FileList):
    """Pictures and both labels of train.bin and test.bin of the CIFAR-100 binary version.

    Shapes: image (32, 32, 3) uint8, coarse_label and fine_label () uint32
    """

    PARAMETERS = parameters(f"dataset_dir usage {_TAIL}", usage=None)
    COLUMNS = ("image", "coarse_label", "fine_label")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        for part in chosen_parts(where, given["usage"], {"test": 0, "train": 0}):
            path = existing_file(where, folder / f"{part}.bin")
            data = np.fromfile(path, np.uint8)
            if data.size == 0 or data.size % (CIFAR_RECORD_BYTES + 1):
                raise TruncatedFileError(
                    f"{path}: expected a multiple of {CIFAR_RECORD_BYTES + 1} bytes, got {data.size}. Is it cut short?"
                )
            for record in data.reshape(-1, CIFAR_RECORD_BYTES + 1):
                yield _picture(record[2:]), np.uint32(record[0]), np.uint32(record[1])

    def labels(self) -> list[int]:
        return [int(entry[2]) for entry in self._entries]


class ImageFolderDataset(FileList):
    """Image files in folders named after their class.

    Shapes: image (bytes,) uint8 as on disk, or (H, W, 3) uint8 with `decode`; label () int32
    Edges:  labels count the classes in sorted order, unless `class_indexing` gives them.
    """

    PARAMETERS = parameters(
        "dataset_dir num_samples num_parallel_workers shuffle sampler extensions class_indexing decode num_shards "
        "shard_id cache decrypt",
        extensions=None,
        class_indexing=None,
        decode=False,
        decrypt=None,
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        if given["decrypt"] is not None:
            raise ConfigError(f"{where}(decrypt): expected None, got a function: msdump decrypts no images.")
        shown = repr(os.fspath(given["dataset_dir"]))
        classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
        self._classes = dict(given["class_indexing"] or {name: label for label, name in enumerate(classes)})
        for name in self._classes:
            if name not in classes:
                raise ConfigError(
                    f"{where}(class_indexing): expected names of folders in {shown}, got "
                    f"{name!r}. {did_you_mean(name, classes)}".rstrip()
                )
        endings = tuple(ending.lower() for ending in (given["extensions"] or IMAGE_EXTENSIONS))
        files = [
            (path, np.int32(label))
            for name, label in self._classes.items()
            for path in sorted((folder / name).rglob("*"))
            if path.suffix.lower() in endings and path.is_file()
        ]
        if not files:
            raise ConfigError(
                f"{where}({shown}): expected one folder per class with files {', '.join(endings)}, got none."
            )
        return files


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
