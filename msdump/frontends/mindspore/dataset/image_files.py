"""Sources of pictures on disk: CIFAR in its binary form, folders of image files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.errors import ConfigError, FormatError, TruncatedFileError, did_you_mean
from msdump.frontends.mindspore.dataset import checks
from msdump.frontends.mindspore.dataset.file_lists import Entry, FileList, chosen_parts, existing_file, parameters
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
        checks.one_of("Cifar10Dataset(usage)", usage, ["train", "test", "all"])
        folder = checks.existing_folder("Cifar10Dataset", dataset_dir)
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

    def labels(self) -> list[int]:
        return [int(label) for label in self._records[:, 0]]

    def num_classes(self) -> int | None:
        return CIFAR_CLASSES


class Cifar100Dataset(FileList):
    """Pictures and both labels of train.bin and test.bin of the CIFAR-100 binary version.

    Shapes: image (32, 32, 3) uint8, coarse_label and fine_label () uint32
    """

    PARAMETERS = parameters(
        "dataset_dir usage num_samples num_parallel_workers shuffle sampler num_shards shard_id cache", usage=None
    )
    COLUMNS = ("image", "coarse_label", "fine_label")

    def entries(self, **given: Any) -> Iterable[Entry]:
        folder = checks.existing_folder("Cifar100Dataset", given["dataset_dir"])
        for part in chosen_parts("Cifar100Dataset", given["usage"], {"test": 0, "train": 0}):
            path = existing_file("Cifar100Dataset", folder / f"{part}.bin")
            data = np.fromfile(path, np.uint8)
            if data.size == 0 or data.size % (CIFAR_RECORD_BYTES + 1):
                raise TruncatedFileError(
                    f"{path}: expected a multiple of {CIFAR_RECORD_BYTES + 1} bytes, got {data.size}. Is it cut short?"
                )
            for record in data.reshape(-1, CIFAR_RECORD_BYTES + 1):
                planes = record[2:].reshape(CIFAR_CHANNELS, CIFAR_SIDE, CIFAR_SIDE)
                yield np.ascontiguousarray(planes.transpose(1, 2, 0)), np.uint32(record[0]), np.uint32(record[1])

    def labels(self) -> list[int]:
        return [int(entry[2]) for entry in self._entries]


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
        decrypt: Any = None,
    ) -> None:
        if decrypt is not None:
            raise ConfigError("ImageFolderDataset(decrypt): expected None, got a function: msdump decrypts no images.")
        folder = checks.existing_folder("ImageFolderDataset", dataset_dir)
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

    def labels(self) -> list[int]:
        return [label for _, label in self._files]

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
