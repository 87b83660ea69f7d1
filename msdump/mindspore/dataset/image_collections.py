"""Collections of images of MindSpore's documentation that are folders of image files, or one file of numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import ConfigError, FormatError, TruncatedFileError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.file_lists import (
    Entry,
    FileList,
    chosen_parts,
    class_folders,
    existing_file,
    images_in,
    parameters,
)
from msdump.mindspore.dataset.text_files import lines_of
from msdump.tensors.arrays import Array

_TAIL = "sampler num_shards shard_id cache"
_STL_SIDE = 96
_DIGIT_SIDE = 16


class Caltech256Dataset(FileList):
    """Image files in numbered folders of classes; labels int32 from 0 in the order of the folders."""

    PARAMETERS = parameters(f"dataset_dir num_samples num_parallel_workers shuffle decode {_TAIL}", decode=False)

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        folders = class_folders(where, folder)
        for label, folder in enumerate(folders):
            yield from ((path, np.int32(label)) for path in images_in(folder))


class Food101Dataset(FileList):
    """Image files that meta/train.txt and meta/test.txt list; labels are the names of the classes."""

    PARAMETERS = parameters(
        f"dataset_dir usage num_samples num_parallel_workers shuffle decode {_TAIL}", usage=None, decode=False
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        for part in chosen_parts(where, given["usage"], {"train": 0, "test": 0}):
            for line in lines_of(str(existing_file(where, folder / "meta" / f"{part}.txt"))):
                if line.strip():
                    name = line.strip()
                    yield existing_file(where, folder / "images" / f"{name}.jpg"), name.partition("/")[0]

    def labels(self) -> list[int]:
        names = sorted({entry[1] for entry in self._entries})
        return [names.index(entry[1]) for entry in self._entries]


class OmniglotDataset(FileList):
    """Characters: images_background, or images_evaluation with `background=False`; a class for each character."""

    PARAMETERS = parameters(
        f"dataset_dir background num_samples num_parallel_workers shuffle decode {_TAIL}", background=None, decode=False
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        part = "images_evaluation" if given["background"] is False else "images_background"
        checks.existing_folder(where, folder / part)
        characters = [
            character
            for alphabet in class_folders(where, folder / part)
            for character in class_folders(where, alphabet)
        ]
        for label, character in enumerate(characters):
            yield from ((path, np.int32(label)) for path in images_in(character))


class RenderedSST2Dataset(FileList):
    """Pictures of sentences; label uint32: 1 for positive, 0 for negative."""

    PARAMETERS = parameters(
        f"dataset_dir usage num_samples num_parallel_workers shuffle decode {_TAIL}", usage=None, decode=False
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        for part in chosen_parts(where, given["usage"], {"test": 0, "train": 0, "val": 0}):
            for label, name in enumerate(("negative", "positive")):
                place = folder / ("valid" if part == "val" else part) / name
                checks.existing_folder(where, place)
                yield from ((path, np.uint32(label)) for path in images_in(place))


class DIV2KDataset(FileList):
    """Pictures in high and in low resolution. `scale`: 2, 3, 4 or 8; `downgrade`: "bicubic", "unknown", ..."""

    PARAMETERS = parameters(
        f"dataset_dir usage downgrade scale num_samples num_parallel_workers shuffle decode {_TAIL}",
        usage="train",
        downgrade="bicubic",
        scale=2,
        decode=None,
    )
    COLUMNS = ("hr_image", "lr_image")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        scale, downgrade = given["scale"], given["downgrade"]
        kinds = ["bicubic", "unknown", "mild", "difficult", "wild"]
        checks.one_of(f"{where}(downgrade)", downgrade, kinds)
        allowed = {"bicubic": (2, 3, 4, 8), "unknown": (2, 3, 4)}.get(downgrade, (4,))
        if scale not in allowed:
            raise ConfigError(f"{where}(scale): expected one of {allowed} for {downgrade!r}, got {scale!r}.")
        is_old = scale == 8 or downgrade in kinds[2:]
        kind, mark = ("x8" if scale == 8 else downgrade, f"x{scale}")
        for part in chosen_parts(where, given["usage"], {"train": 0, "valid": 0}):
            small = folder / f"DIV2K_{part}_LR_{kind}"
            small = small if is_old else small / f"X{scale}"
            large = folder / f"DIV2K_{part}_HR"
            checks.existing_folder(where, large)
            for path in images_in(large):
                yield path, existing_file(where, small / f"{path.stem}{mark}{path.suffix}")


class Places365Dataset(FileList):
    """Pictures of places that the text files beside them list; label uint32."""

    PARAMETERS = parameters(
        f"dataset_dir usage small decode num_samples num_parallel_workers shuffle {_TAIL}",
        usage=None,
        small=True,
        decode=False,
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        usage = given["usage"] or "train-standard"
        checks.one_of(f"{where}(usage)", usage, ["train-standard", "train-challenge", "val"])
        size = "256" if given["small"] else "large"
        kind = usage.removeprefix("train-")
        images = folder / (f"val_{size}" if usage == "val" else f"data_{size}_{kind}")
        name = "places365_val.txt" if usage == "val" else f"places365_train_{kind}.txt"
        for number, line in enumerate(lines_of(str(existing_file(where, folder / name)))):
            words = line.split()
            if len(words) != 2 or not words[1].isdigit():
                raise FormatError(f"{folder / name}, line {number + 1}: expected a file and a label, got {line!r}.")
            yield existing_file(where, _inside(images, words[0].lstrip("/"))), np.uint32(words[1])


class LSUNDataset(FileList):
    """Pictures of scenes in folders <class>_train and <class>_val; label uint32, the place of the folder."""

    PARAMETERS = parameters(
        f"dataset_dir usage classes num_samples num_parallel_workers shuffle decode {_TAIL}",
        usage=None,
        classes=None,
        decode=False,
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        usage = given["usage"] or "all"
        checks.one_of(f"{where}(usage)", usage, ["train", "test", "valid", "all"])
        endings = {"train": ("_train",), "valid": ("_val",), "all": ("_train", "_val")}.get(usage, ())
        folders = [path for path in class_folders(where, folder) if path.name.endswith(endings or "\0")]
        if usage == "test":
            folders = [folder / "test"]
        for name in given["classes"] or []:
            if not any(path.name.rpartition("_")[0] == name for path in folders):
                raise ConfigError(f"{where}(classes): expected a class of {str(folder)!r}, got {name!r}.")
        if given["classes"]:
            folders = [path for path in folders if path.name.rpartition("_")[0] in given["classes"]]
        for label, path in enumerate(folders):
            checks.existing_folder(where, path)
            yield from ((image, np.uint32(label)) for image in images_in(path))


class FlickrDataset(FileList):
    """Pictures, each with all its captions, as `annotation_file` lists them: `name#number<tab>caption`."""

    PARAMETERS = parameters(
        f"dataset_dir annotation_file num_samples num_parallel_workers shuffle decode {_TAIL}", decode=None
    )
    COLUMNS = ("image", "annotation")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        file = checks.path_like(f"{where}(annotation_file)", given["annotation_file"])
        if not os.path.isfile(file):
            raise ConfigError(f"{where}(annotation_file): expected a file, got none at {file!r}.")
        captions: dict[str, list[str]] = {}
        for number, line in enumerate(lines_of(file)):
            name, mark, caption = line.partition("\t")
            if not mark:
                raise FormatError(f"{file}, line {number + 1}: expected name#number, a tab, a caption, got {line!r}.")
            captions.setdefault(name.rpartition("#")[0], []).append(caption)
        for name in sorted(captions):
            yield existing_file(where, _inside(folder, name)), np.array(captions[name])


class ManifestDataset(FileList):
    """Pictures that a file of JSON lines names: {"source", "usage", "annotation": [{"name"}]}; label int32."""

    PARAMETERS = parameters(
        "dataset_file usage num_samples num_parallel_workers shuffle sampler class_indexing decode "
        "num_shards shard_id cache",
        usage="train",
        class_indexing=None,
        decode=False,
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        file = checks.path_like(f"{where}(dataset_file)", given["dataset_file"])
        checks.one_of(f"{where}(usage)", given["usage"], ["train", "eval", "inference"])
        if not os.path.isfile(file):
            raise ConfigError(f"{where}(dataset_file): expected a file, got none at {file!r}.")
        rows: list[tuple[str, str]] = []
        for number, line in enumerate(lines_of(file)):
            try:
                row = json.loads(line)
                if row.get("usage") == given["usage"]:
                    rows += [(row["source"], label["name"]) for label in row.get("annotation", [])]
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise FormatError(f"{file}, line {number + 1}: expected a row of JSON, got {error!r}.") from error
        names = sorted({name for _, name in rows})
        self._classes = dict(given["class_indexing"] or {name: label for label, name in enumerate(names)})
        for source, name in rows:
            if name in self._classes:
                yield existing_file(where, Path(source)), np.int32(self._classes[name])


class STL10Dataset(FileList):
    """96 x 96 pictures in binary files; label int32, -1 for those without one."""

    PARAMETERS = parameters(f"dataset_dir usage num_samples num_parallel_workers shuffle {_TAIL}", usage=None)

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        parts = {"test": 0, "train": 0, "unlabeled": 0}
        names = (
            ["train", "unlabeled"]
            if given["usage"] == "train+unlabeled"
            else chosen_parts(where, given["usage"], parts)
        )
        record = 3 * _STL_SIDE * _STL_SIDE
        for name in names:
            path = existing_file(where, folder / f"{name}_X.bin")
            data = np.fromfile(path, np.uint8)
            if data.size % record:
                raise TruncatedFileError(f"{path}: expected a multiple of {record} bytes, got {data.size}.")
            # Columns come first in these files.
            images = data.reshape(-1, 3, _STL_SIDE, _STL_SIDE).transpose(0, 3, 2, 1)
            labels: Array = np.full(len(images), -1, np.int32)
            if name != "unlabeled":
                file = existing_file(where, folder / f"{name}_y.bin")
                labels = np.fromfile(file, np.uint8).astype(np.int32) - np.int32(1)
                if len(labels) != len(images):
                    raise TruncatedFileError(f"{file}: expected {len(images)} labels, got {len(labels)}.")
            yield from ((np.ascontiguousarray(image), label) for image, label in zip(images, labels, strict=True))


class SemeionDataset(FileList):
    """16 x 16 digits of zeros and ones, as text; label uint32."""

    PARAMETERS = parameters(f"dataset_dir num_samples num_parallel_workers shuffle {_TAIL}")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        path = folder / "semeion.data"
        pixels = _DIGIT_SIDE * _DIGIT_SIDE
        for number, line in enumerate(lines_of(str(existing_file(where, path)))):
            values = _numbers(f"{path}, line {number + 1}", line.split())
            if values.size == 0:
                continue
            if values.size != pixels + 10 or values[pixels:].sum() != 1:
                raise FormatError(f"{path}, line {number + 1}: expected {pixels} pixels and 10 labels, one of them 1.")
            image = values[:pixels].reshape(_DIGIT_SIDE, _DIGIT_SIDE).astype(np.uint8)
            yield image, np.uint32(values[pixels:].argmax())


class USPSDataset(FileList):
    """16 x 16 digits, as text: label and place:value; label uint32 from 0."""

    PARAMETERS = parameters(
        "dataset_dir usage num_samples num_parallel_workers shuffle num_shards shard_id cache", usage=None
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        names = {"train": "usps", "test": "usps.t"}
        for part in chosen_parts(where, given["usage"], names):
            path = existing_file(where, folder / names[part])
            for number, line in enumerate(lines_of(str(path))):
                words = line.split()
                if not words:
                    continue
                where = f"{path}, line {number + 1}"
                values = _numbers(where, [words[0], *(word.partition(":")[2] for word in words[1:])])
                if values.size != 1 + _DIGIT_SIDE * _DIGIT_SIDE:
                    raise FormatError(f"{where}: expected a label and 256 values, got {values.size} numbers.")
                pixels = ((values[1:].astype(np.float32).astype(np.float64) + 1) / 2 * 255).astype(np.uint8)
                yield pixels.reshape(_DIGIT_SIDE, _DIGIT_SIDE, 1), np.uint32(values[0] - 1)


class FakeImageDataset(FileList):
    """Noise with labels, the same for each `base_seed`; not the numbers that MindSpore draws."""

    PARAMETERS = parameters(
        f"num_images image_size num_classes base_seed num_samples num_parallel_workers shuffle {_TAIL}",
        num_images=1000,
        image_size=(224, 224, 3),
        num_classes=10,
        base_seed=0,
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        count = checks.whole_number(f"{where}(num_images)", given["num_images"])
        size = [checks.whole_number(f"{where}(image_size)", side) for side in given["image_size"]]
        if len(size) != 3:
            raise ConfigError(f"{where}(image_size): expected (height, width, channels), got {given['image_size']!r}.")
        classes = checks.whole_number(f"{where}(num_classes)", given["num_classes"])
        self._seed = checks.whole_number(f"{where}(base_seed)", given["base_seed"], 0)
        for number in range(count):
            label = np.random.default_rng([self._seed, number, 1]).integers(classes)
            yield _Noise(tuple(size), self._seed, number), np.uint32(label)

    def _value(self, value: Any) -> Array:
        return value.drawn() if isinstance(value, _Noise) else super()._value(value)


class _Noise:
    """An image that is drawn when it is read."""

    def __init__(self, shape: tuple[int, ...], seed: int, number: int) -> None:
        self._shape, self._seed, self._number = shape, seed, number

    def drawn(self) -> Array:
        """Shapes: -> (H, W, C) uint8"""
        generator = np.random.default_rng([self._seed, self._number, 0])
        return generator.integers(0, 256, self._shape, np.uint8)


def _numbers(where: str, words: list[str]) -> Array:
    try:
        return np.array([float(word) for word in words])
    except ValueError as error:
        raise FormatError(f"{where}: expected numbers, got: {error}") from error


def _inside(folder: Any, name: str) -> Any:
    """A file that a list names; it must be inside of the folder."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise FormatError(f"{str(folder)!r}: expected names of files inside of it, got {name!r}.")
    return path
