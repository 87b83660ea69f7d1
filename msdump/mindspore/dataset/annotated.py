"""Collections of images with annotations: VOC and COCO."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.image_files import Entry, FileList, existing_file
from msdump.mindspore.dataset.text_files import lines_of

_LARGEST_XML = 2**20  # bytes; a description of one picture
_OPTIONS = """num_samples=None num_parallel_workers=None shuffle=None decode=False sampler=None num_shards=None
    shard_id=None cache=None extra_metadata=False decrypt=None"""


class _Annotated(FileList):
    """Adds the column "_meta-filename" with `extra_metadata`."""

    _columns: list[str]

    def get_col_names(self) -> list[str]:
        return list(self._columns)

    def _named(self, where: str, columns: str, entries: Iterable[Entry], given: dict[str, Any]) -> list[Entry]:
        if given["decrypt"] is not None:
            raise ConfigError(f"{where}(decrypt): expected None, got a function: msdump reads no encrypted images.")
        has_names = bool(given["extra_metadata"])
        self._columns = [*columns.split(), *["_meta-filename"] * has_names]
        return [(*entry, *[str(entry[0])] * has_names) for entry in entries]


class VOCDataset(_Annotated, takes=f"dataset_dir task='Segmentation' usage='train' class_indexing=None {_OPTIONS}"):
    """Pictures of Pascal VOC.

    task    "Segmentation": image, target; "Detection": image, bbox (N, 4) float32 of x, y, width, height, then label,
            difficult and truncate, each (N, 1) uint32
    Edges:  labels count the names of classes in sorted order, unless `class_indexing` gives them.
    """

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        checks.one_of(f"{where}(task)", given["task"], ["Segmentation", "Detection"])
        part = "Segmentation" if given["task"] == "Segmentation" else "Main"
        usage = checks.path_like(f"{where}(usage)", given["usage"])
        listing = existing_file(where, folder / "ImageSets" / part / f"{usage}.txt")
        names = [line.split()[0] for line in lines_of(str(listing)) if line.strip()]
        images = [existing_file(where, folder / "JPEGImages" / f"{name}.jpg") for name in names]
        if part == "Segmentation":
            targets = [existing_file(where, folder / "SegmentationClass" / f"{name}.png") for name in names]
            return self._named(where, "image target", zip(images, targets, strict=True), given)
        boxes = [_voc_objects(existing_file(where, folder / "Annotations" / f"{name}.xml")) for name in names]
        found = sorted({box[0] for objects in boxes for box in objects})
        self._classes = classes = given["class_indexing"] or {name: label for label, name in enumerate(found)}
        rows = []
        for image, objects in zip(images, boxes, strict=True):
            kept = [(box, [classes[name], *flags]) for name, box, *flags in objects if name in classes]
            notes = np.array([note for _, note in kept], np.uint32).reshape(-1, 3)
            rows.append((image, np.array([box for box, _ in kept], np.float32).reshape(-1, 4), *notes.T[:, :, None]))
        return self._named(where, "image bbox label difficult truncate", rows, given)


def _voc_objects(path: Path) -> list[tuple[Any, ...]]:
    """Objects of one annotation: name, box, difficult, truncated.   Raises: FormatError."""
    data = path.read_bytes()
    # A document type can define entities that grow without end; annotations have none.
    if len(data) > _LARGEST_XML or b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise FormatError(f"{path}: expected a plain annotation of at most {_LARGEST_XML} bytes, got another XML file.")
    objects = []
    try:
        for each in ElementTree.fromstring(data).iter("object"):
            sides = ("xmin", "ymin", "xmax", "ymax")
            left, top, right, bottom = (float(each.findtext(f"bndbox/{side}") or "") for side in sides)
            if right < left or bottom < top:
                raise ValueError(f"a box from {(left, top)} to {(right, bottom)}")
            flags = [int(each.findtext(flag, "0")) for flag in ("difficult", "truncated")]
            objects.append(((each.findtext("name") or "").strip(), (left, top, right - left, bottom - top), *flags))
    except (ElementTree.ParseError, ValueError) as error:
        raise FormatError(f"{path}: expected an annotation of VOC, got: {error}") from error
    return objects


# Task -> fields of its annotations, and their types; columns have the same names, "captions" for "caption".
_FIELDS: dict[str, dict[str, Any]] = {
    "Detection": {"bbox": np.float32, "category_id": np.uint32, "iscrowd": np.uint32},
    "Keypoint": {"keypoints": np.float32, "num_keypoints": np.uint32},
    "Captioning": {"caption": np.str_},
}


class CocoDataset(_Annotated, takes=f"dataset_dir annotation_file task='Detection' {_OPTIONS}"):
    """Pictures that an annotation file of COCO describes; those without an annotation are left out.

    task    "Detection": bbox (N, 4) float32, category_id and iscrowd (N, 1) uint32; "Keypoint": keypoints and
            num_keypoints; "Captioning": captions (N, 1) str. "Stuff" and "Panoptic" are not supported.
    """

    def entries(self, where: str, folder: Path, **given: Any) -> Iterable[Entry]:
        task, path = given["task"], Path(checks.path_like(f"{where}(annotation_file)", given["annotation_file"]))
        if task not in _FIELDS:
            raise ConfigError(f"{where}(task): expected one of {list(_FIELDS)}, got {task!r}.")
        try:
            content = json.loads(existing_file(where, path).read_text(encoding="utf-8"))
            names = {image["id"]: image["file_name"] for image in content["images"]}
            self._classes = {kind["name"]: [int(kind["id"])] for kind in content.get("categories", [])}
            grouped: dict[int, list[Any]] = {key: [] for key in names}
            for note in content["annotations"]:
                grouped[note["image_id"]].append(note)
            rows = [
                (names[key], *(np.array([note[name] for note in notes], kind).reshape(len(notes), -1)
                               for name, kind in _FIELDS[task].items()))
                for key, notes in grouped.items() if notes
            ]  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"{path}: expected annotations of COCO for {task}, got {error!r}.") from error
        for name, *_ in rows:
            if not (folder / name).resolve().is_relative_to(folder.resolve()):
                raise ConfigError(f"{where}: expected names of files inside of {str(folder)!r}, got {name!r}.")
        columns = " ".join(["image", *_FIELDS[task]]).replace("caption", "captions")
        entries = [(existing_file(where, folder / name), *values) for name, *values in rows]
        return self._named(where, columns, entries, given)
