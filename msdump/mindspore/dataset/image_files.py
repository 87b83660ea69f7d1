"""Sources of pictures on disk: CIFAR in its binary form, MNIST and its kin in IDX form, folders of image files."""

from __future__ import annotations

import gzip
import math
import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from msdump.errors import ConfigError, FormatError, TruncatedFileError, did_you_mean
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import Row, constant
from msdump.mindspore.dataset.samplers import sampler_of
from msdump.mindspore.dataset.sources import CHOICE, MappableDataset
from msdump.mindspore.dataset.vision.pixels import Decode
from msdump.tensors.arrays import Array

# One row: a Path stands for the image in that file, anything else for itself.
Entry = tuple[Any, ...]
_COMMON = ("num_samples", "num_parallel_workers", "shuffle", "sampler", "num_shards", "shard_id", "cache")


class TabledSource(MappableDataset):
    """A source whose settings are those that all sources have, and own ones."""

    def _set_up(self, **given: Any) -> None:
        self._open(type(self).__name__, {name: given.pop(name, None) for name in _COMMON}, given)

    @abstractmethod
    def _open(self, where: str, common: Mapping[str, Any], given: dict[str, Any]) -> None:
        """Take the arguments: those that are common to all sources, and the own ones."""


class FileList(TabledSource):
    """A source whose subclasses are rows of a table.   COLUMNS: columns of a row"""

    COLUMNS: Sequence[str] = ("image", "label")

    def _open(self, where: str, common: Mapping[str, Any], given: dict[str, Any]) -> None:
        self._decode = Decode() if given.pop("decode", False) else None
        self._classes: dict[str, Any] = {}
        folder = checks.existing_folder(where, given["dataset_dir"]) if "dataset_dir" in given else Path()
        self._entries = list(self.entries(where, folder, **given))
        if not self._entries:
            raise ConfigError(f"{where}: expected files of {where}, got none for {given}. Check the folder.")
        self._sampler = sampler_of(*(common[name] for name in CHOICE))

    @abstractmethod
    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        """Rows of the source, for the arguments that are not common to all.   Raises: TypeError, ConfigError.

        where    name of the source
        folder   its `dataset_dir`, which exists
        """

    def get_col_names(self) -> list[str]:
        return list(self.COLUMNS)

    def source_size(self) -> int:
        return len(self._entries)

    def row_at(self, place: int) -> Row:
        return lambda: tuple(self._value(value) for value in self._entries[place])

    def labels(self) -> Sequence[int]:
        if "label" not in self.COLUMNS:
            return super().labels()
        column = list(self.COLUMNS).index("label")
        return [int(entry[column]) for entry in self._entries]

    def num_classes(self) -> int | None:
        return len(self._classes) or None

    def get_class_indexing(self) -> dict[str, Any]:
        return dict(self._classes)

    def _value(self, value: Any) -> Array:
        if not isinstance(value, Path):
            return np.asarray(value)
        data = np.fromfile(value, np.uint8)
        return data if self._decode is None else np.asarray(self._decode(data))


def existing_file(where: str, path: Path) -> Path:
    """`path`.   Raises: ConfigError when there is no such file."""
    if not path.is_file():
        raise ConfigError(f"{where}: expected the file {str(path)!r}, got none. Check the folder.")
    return path


def chosen_parts(where: str, usage: str | None, parts: Mapping[str, Any], name: str = "usage") -> list[str]:
    """Parts of a usage: all of them for None and "all".   Raises: ConfigError."""
    checks.one_of(f"{where}({name})", usage, [*parts, "all"])
    return list(parts) if usage in (None, "all") else [str(usage)]


# A CIFAR-10 record: one byte of label, then the red, green and blue planes of 32 x 32 pixels.
CIFAR_SIDE, CIFAR_CHANNELS, CIFAR_CLASSES = 32, 3, 10
CIFAR_RECORD_BYTES = 1 + CIFAR_CHANNELS * CIFAR_SIDE * CIFAR_SIDE
IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

_TAIL = " ".join(f"{name}=None" for name in _COMMON)


class Cifar10Dataset(FileList, takes=f"dataset_dir usage=None {_TAIL}"):
    """Pictures and labels of the CIFAR-10 binary files in one folder.

    usage   "train": `data_batch*.bin`, "test": `test_batch*.bin`, "all" or None: every `*.bin`
    Shapes: image (32, 32, 3) uint8, label () uint32
    Raises: ConfigError (no folder, no file), FormatError (a file that is no CIFAR-10 batch).
    """

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


class Cifar100Dataset(FileList, takes=f"dataset_dir usage=None {_TAIL}"):
    """Pictures and both labels of train.bin and test.bin of the CIFAR-100 binary version.

    Shapes: image (32, 32, 3) uint8, coarse_label and fine_label () uint32
    """

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


class ImageFolderDataset(
    FileList,
    takes="dataset_dir num_samples=None num_parallel_workers=None shuffle=None sampler=None extensions=None "
    "class_indexing=None decode=False num_shards=None shard_id=None cache=None decrypt=None",
):
    """Image files in folders named after their class.

    Shapes: image (bytes,) uint8 as on disk, or (H, W, 3) uint8 with `decode`; label () int32
    Edges:  labels count the classes in sorted order, unless `class_indexing` gives them.
    """

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


_IDX_TYPES: dict[bytes, np.dtype[Any]] = {b"\x00\x00\x08": np.dtype(np.uint8), b"\x00\x00\x0c": np.dtype(">i4")}
_BYTES = ("images-idx3-ubyte", "labels-idx1-ubyte")


class MnistDataset(FileList, takes=f"dataset_dir usage=None {_TAIL}"):
    """Pictures and labels of the MNIST idx files in one folder.

    usage   "train": `train-*`, "test": `t10k-*`, "all" or None: both, the test files first as in MindSpore
    Shapes: image (28, 28, 1) uint8, label () uint32
    Raises: ConfigError (no folder, no file), FormatError (a file that is no idx file).
    """

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
