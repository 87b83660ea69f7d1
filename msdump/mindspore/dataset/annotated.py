"""Collections of images with annotations: VOC, COCO, CelebA."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.file_lists import Entry, FileList, existing_file, images_in, parameters
from msdump.mindspore.dataset.text_files import lines_of
from msdump.tensors.arrays import Array

_LARGEST_XML = 2**20  # bytes; a description of one picture
_CELEBA_PARTS = {"train": "0", "valid": "1", "test": "2"}


class _WithNames(FileList):
    """Adds the column "_meta-filename" with `extra_metadata`."""

    _columns: list[str]

    def get_col_names(self) -> list[str]:
        return list(self._columns)

    def _named(self, columns: list[str], entries: Iterable[Entry], extra_metadata: bool) -> list[Entry]:
        self._columns = [*columns, "_meta-filename"] if extra_metadata else columns
        return [(*entry, str(entry[0])) if extra_metadata else entry for entry in entries]


class VOCDataset(_WithNames):
    """Pictures of Pascal VOC.

    task    "Segmentation": image, target; "Detection": image, bbox (N, 4) float32 of x, y, width, height, then label,
            difficult and truncate, each (N, 1) uint32
    Edges:  labels count the names of classes in sorted order, unless `class_indexing` gives them.
    """

    PARAMETERS = parameters(
        "dataset_dir task usage class_indexing num_samples num_parallel_workers shuffle decode sampler num_shards "
        "shard_id cache extra_metadata decrypt",
        task="Segmentation",
        usage="train",
        class_indexing=None,
        decode=False,
        extra_metadata=False,
        decrypt=None,
    )

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        task = given["task"]
        checks.one_of(f"{where}(task)", task, ["Segmentation", "Detection"])
        if given["decrypt"] is not None:
            raise ConfigError(f"{where}(decrypt): expected None, got a function: msdump reads no encrypted images.")
        part = "Segmentation" if task == "Segmentation" else "Main"
        usage = checks.path_like(f"{where}(usage)", given["usage"])
        listing = existing_file(where, folder / "ImageSets" / part / f"{usage}.txt")
        names = [line.split()[0] for line in lines_of(str(listing)) if line.strip()]
        images = [existing_file(where, folder / "JPEGImages" / f"{name}.jpg") for name in names]
        if task == "Segmentation":
            targets = [existing_file(where, folder / "SegmentationClass" / f"{name}.png") for name in names]
            pairs: Iterable[Entry] = zip(images, targets, strict=True)
            return self._named(["image", "target"], pairs, given["extra_metadata"])
        boxes = [_voc_objects(existing_file(where, folder / "Annotations" / f"{name}.xml")) for name in names]
        indexing = given["class_indexing"]
        classes = sorted({box[0] for objects in boxes for box in objects})
        self._classes = dict(indexing) if indexing else {name: label for label, name in enumerate(classes)}
        rows = (
            (image, *_voc_columns([box for box in objects if box[0] in self._classes], self._classes))
            for image, objects in zip(images, boxes, strict=True)
        )
        columns = ["image", "bbox", "label", "difficult", "truncate"]
        return self._named(columns, rows, given["extra_metadata"])


VocObject = tuple[str, tuple[float, float, float, float], int, int]


def _voc_objects(path: Path) -> list[VocObject]:
    """Objects of one annotation: name, box, difficult, truncated.   Raises: FormatError."""
    data = path.read_bytes()
    # A document type can define entities that grow without end; annotations have none.
    if len(data) > _LARGEST_XML or b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise FormatError(f"{path}: expected a plain annotation of at most {_LARGEST_XML} bytes, got another XML file.")
    try:
        root = ElementTree.fromstring(data)
        return [_voc_object(element) for element in root.iter("object")]
    except (ElementTree.ParseError, ValueError) as error:
        raise FormatError(f"{path}: expected an annotation of VOC, got: {error}") from error


def _voc_object(element: Any) -> VocObject:
    def text(name: str, default: str | None = None) -> str:
        value = element.findtext(name, default)
        if value is None:
            raise ValueError(f"no <{name}> in an <object>")
        return str(value).strip()

    left, top, right, bottom = (float(text(f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax"))
    if right < left or bottom < top:
        raise ValueError(f"a box from {(left, top)} to {(right, bottom)}")
    box = (left, top, right - left, bottom - top)
    return text("name"), box, int(text("difficult", "0")), int(text("truncated", "0"))


def _voc_columns(objects: list[VocObject], classes: Mapping[str, int]) -> tuple[Array, ...]:
    columns = list(zip(*objects, strict=True)) or [(), (), (), ()]
    boxes = np.array(columns[1], np.float32).reshape(-1, 4)
    labels = [classes[name] for name in columns[0]]
    return boxes, *(np.array(values, np.uint32).reshape(-1, 1) for values in (labels, columns[2], columns[3]))


class CocoDataset(_WithNames):
    """Pictures that an annotation file of COCO describes; those without an annotation are left out.

    task    "Detection": bbox (N, 4) float32, category_id and iscrowd (N, 1) uint32; "Keypoint": keypoints and
            num_keypoints; "Captioning": captions (N, 1) str. "Stuff" and "Panoptic" are not supported.
    """

    PARAMETERS = parameters(
        "dataset_dir annotation_file task num_samples num_parallel_workers shuffle decode sampler num_shards shard_id "
        "cache extra_metadata decrypt",
        task="Detection",
        decode=False,
        extra_metadata=False,
        decrypt=None,
    )
    _FIELDS: ClassVar[Mapping[str, tuple[tuple[str, str, type], ...]]] = {
        "Detection": (
            ("bbox", "bbox", np.float32),
            ("category_id", "category_id", np.uint32),
            ("iscrowd", "iscrowd", np.uint32),
        ),
        "Keypoint": (("keypoints", "keypoints", np.float32), ("num_keypoints", "num_keypoints", np.uint32)),
        "Captioning": (("captions", "caption", np.str_),),
    }

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        task = given["task"]
        file = checks.path_like(f"{where}(annotation_file)", given["annotation_file"])
        checks.one_of(f"{where}(task)", task, [*self._FIELDS, "Stuff", "Panoptic"])
        if task not in self._FIELDS or given["decrypt"] is not None:
            raise ConfigError(f"{where}: expected a task of {list(self._FIELDS)} and no decrypt, got {task!r}.")
        if not os.path.isfile(file):
            raise ConfigError(f"{where}(annotation_file): expected a file, got none at {file!r}.")
        try:
            with open(file, encoding="utf-8") as source:
                content = json.load(source)
            names = {image["id"]: image["file_name"] for image in content["images"]}
            self._classes = {kind["name"]: [int(kind["id"])] for kind in content.get("categories", [])}
            grouped: dict[int, list[Any]] = {key: [] for key in names}
            for note in content["annotations"]:
                grouped[note["image_id"]].append(note)
            rows = [
                (
                    _coco_image(where, folder, names[key]),
                    *(_column(notes, name, kind) for _, name, kind in self._FIELDS[task]),
                )
                for key, notes in grouped.items()
                if notes
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, ConfigError):
                raise
            raise FormatError(f"{file}: expected annotations of COCO for {task}, got {error!r}.") from error
        columns = ["image", *(column for column, _, _ in self._FIELDS[task])]
        return self._named(columns, rows, given["extra_metadata"])


def _coco_image(where: str, folder: Path, name: str) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{where}: expected names of files inside of {str(folder)!r}, got {name!r}.")
    return existing_file(where, path)


def _column(notes: list[Any], name: str, kind: type) -> Array:
    return np.array([note[name] for note in notes], kind).reshape(len(notes), -1)


class CelebADataset(FileList):
    """Faces with attributes: list_attr_celeba.txt beside the images; `attr` uint32, 1 where an attribute holds."""

    PARAMETERS = parameters(
        "dataset_dir num_parallel_workers shuffle usage sampler decode extensions num_samples num_shards shard_id "
        "cache decrypt",
        usage="all",
        decode=False,
        extensions=None,
        decrypt=None,
    )
    COLUMNS = ("image", "attr")

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        checks.one_of(f"{where}(usage)", given["usage"], [*_CELEBA_PARTS, "all"])
        if given["decrypt"] is not None:
            raise ConfigError(f"{where}(decrypt): expected None, got a function: msdump reads no encrypted images.")
        listing = existing_file(where, folder / "list_attr_celeba.txt")
        lines = [line.split() for line in lines_of(str(listing))]
        if len(lines) < 2 or len(lines[0]) != 1:
            raise FormatError(f"{listing}: expected a number, then names of attributes, then rows.")
        chosen = self._chosen(folder, given["usage"])
        endings = tuple(given["extensions"] or (".jpg", ".jpeg", ".png", ".bmp"))
        present = {path.name for path in images_in(folder)}
        for number, words in enumerate(lines[2:]):
            if not words:
                continue
            if len(words) != len(lines[1]) + 1 or any(word not in ("1", "-1") for word in words[1:]):
                raise FormatError(f"{listing}, line {number + 3}: expected a file and {len(lines[1])} of 1 and -1.")
            if words[0] in present and words[0].endswith(endings) and (chosen is None or words[0] in chosen):
                yield folder / words[0], np.array([word == "1" for word in words[1:]], np.uint32)

    def _chosen(self, folder: Path, usage: str) -> set[str] | None:
        if usage == "all":
            return None
        listing = existing_file("CelebADataset", folder / "list_eval_partition.txt")
        pairs = (line.split() for line in lines_of(str(listing)) if line.strip())
        return {pair[0] for pair in pairs if pair[1:] == [_CELEBA_PARTS[usage]]}
