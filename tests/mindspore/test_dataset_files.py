"""Sources of files: texts, annotations, folders. The expected rows are those of MindSpore 2.7 on the same files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.mindspore import dataset as ds
from msdump.mindspore.dataset.pipeline import Dataset


def rows_of(dataset: Dataset) -> list[list[Any]]:
    rows = list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert dataset.get_dataset_size() == len(rows)
    return [[value.tolist() for value in row] for row in rows]


def write(folder: Path, files: dict[str, str | bytes]) -> str:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(folder)


def picture(width: int) -> bytes:
    file = io.BytesIO()
    pytest.importorskip("PIL.Image").fromarray(np.full((4, width, 3), width, np.uint8)).save(file, "png")
    return file.getvalue()


def test_lines_of_text_files(tmp_path: Path) -> None:
    folder = write(tmp_path, {"b.txt": "b1\nb2\n\nb3\n", "a.txt": "a1\r\n a2 \n", "n": "0\n1\n2\n3\n4\n5\n6\n"})
    lines = ds.TextFileDataset([f"{folder}/b.txt", f"{folder}/a.txt"], shuffle=False)
    assert rows_of(lines) == [["a1\r"], ["b1"], [" a2 "], ["b2"], ["b3"]]
    one_reader = ds.TextFileDataset(f"{folder}/*.txt", num_parallel_workers=1, shuffle=False)
    assert [row[0] for row in rows_of(one_reader)] == ["a1\r", " a2 ", "b1", "b2", "b3"]
    shards = [ds.TextFileDataset(f"{folder}/n", num_shards=3, shard_id=shard, shuffle=False) for shard in range(3)]
    assert ["".join(row[0] for row in rows_of(shard)) for shard in shards] == ["012", "345", "601"]
    assert sorted(row[0] for row in rows_of(ds.TextFileDataset(f"{folder}/n"))) == list("0123456")
    with pytest.raises(ValueError, match="none that match"):
        ds.TextFileDataset(f"{folder}/z*")
    with pytest.raises(TypeError, match=r"Shuffle\.GLOBAL"):
        ds.TextFileDataset(f"{folder}/n", shuffle="x")  # type: ignore[arg-type]


def test_csv_files(tmp_path: Path) -> None:
    folder = write(tmp_path, {"a.csv": '1,2.5,abc\n\n3,,"d,e"\n', "h.csv": "x,y,z\n5,6.5,f\n"})
    typed = ds.CSVDataset(f"{folder}/a.csv", ",", [1, 4.5, ""], ["x", "y", "z"], shuffle=False)
    assert rows_of(typed) == [[1, 2.5, "abc"], [3, 4.5, "d,e"]]
    assert [dtype.kind + str(dtype.itemsize) for dtype in typed.output_types()[:2]] == ["i4", "f4"]
    headed = ds.CSVDataset(f"{folder}/h.csv", shuffle=False)
    assert (headed.get_col_names(), rows_of(headed)) == (["x", "y", "z"], [["5", "6.5", "f"]])
    with pytest.raises(ValueError, match="line 1: expected 2 fields, got 3"):
        rows_of(ds.CSVDataset(f"{folder}/a.csv", column_names=["x", "y"]))
    with pytest.raises(ValueError, match=r"line 1: expected int, got '2\.5'"):
        rows_of(ds.CSVDataset(f"{folder}/a.csv", ",", [1, 2, ""], ["x", "y", "z"]))
    with pytest.raises(ValueError, match="expected one character"):
        ds.CSVDataset(f"{folder}/a.csv", ";;")


def test_folders_of_images(tmp_path: Path) -> None:
    folders = ("002.flag", "001.ak47")
    folder = write(tmp_path, {f"{name}/{number}.jpg": picture(number) for name in folders for number in (2, 1)})
    classes = ds.ImageFolderDataset(folder, decode=True, shuffle=False)
    assert [(row[0].shape[1], int(row[1])) for row in classes] == [(1, 0), (2, 0), (1, 1), (2, 1)]
    chosen = ds.ImageFolderDataset(folder, sampler=ds.PKSampler(3))
    assert [row[1] for row in rows_of(chosen)] == [0, 0, 0, 1, 1, 1]


def test_two_labels_of_a_picture(tmp_path: Path) -> None:
    record = bytes([1, 20]) + bytes(range(256)) * 12
    assert [row[1:] for row in rows_of(ds.Cifar100Dataset(write(tmp_path, {"train.bin": record}), "train"))] == [
        [1, 20]
    ]
    (tmp_path / "train.bin").write_bytes(record[:-1])
    with pytest.raises(ValueError, match="multiple of 3074 bytes, got 3073"):
        ds.Cifar100Dataset(str(tmp_path), "train")


VOC = """<annotation><object><name>dog</name><difficult>1</difficult><truncated>0</truncated><bndbox><xmin>1</xmin>
<ymin>2</ymin><xmax>4</xmax><ymax>6</ymax></bndbox></object><object><name>cat</name><difficult>0</difficult>
<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>3</ymax></bndbox></object></annotation>"""


def test_voc(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"ImageSets/Segmentation/train.txt": "b\na\n", "ImageSets/Main/train.txt": "b\na\n"}
    for width, name in enumerate("ab", 5):
        files |= {f"JPEGImages/{name}.jpg": picture(width), f"Annotations/{name}.xml": VOC}
        files |= {f"SegmentationClass/{name}.png": picture(width)}
    folder = write(tmp_path, files)
    pairs = ds.VOCDataset(folder, decode=True, shuffle=False)
    shapes = [[value.shape for value in row] for row in pairs.create_tuple_iterator(num_epochs=1)]
    assert shapes == [[(4, 6, 3), (4, 6, 3)], [(4, 5, 3), (4, 5, 3)]]
    found = ds.VOCDataset(folder, "Detection", shuffle=False)
    assert rows_of(found)[0][1:] == [[[1, 2, 3, 4], [1, 1, 1, 2]], [[1], [0]], [[1], [0]], [[0], [0]]]
    assert found.get_class_indexing() == {"cat": 0, "dog": 1}
    named = ds.VOCDataset(folder, "Detection", extra_metadata=True, shuffle=False)
    assert named.get_col_names()[-1] == "_meta-filename"
    assert "_meta-filename" not in next(named.create_dict_iterator())
    assert str(next(named.rename("_meta-filename", "name").create_dict_iterator())["name"]).endswith("b.jpg")
    (tmp_path / "Annotations/a.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]><annotation/>')
    with pytest.raises(ValueError, match=r"a\.xml: expected a plain annotation"):
        ds.VOCDataset(folder, "Detection")


def test_coco(tmp_path: Path) -> None:
    notes = [
        {"image_id": 2, "category_id": 7, "bbox": [1, 2, 3, 1.5], "iscrowd": 0, "caption": "two"},
        {"image_id": 1, "category_id": 9, "bbox": [0, 0, 1, 1], "iscrowd": 1, "caption": "one"},
        {"image_id": 2, "category_id": 9, "bbox": [0, 0, 2, 1], "iscrowd": 0, "caption": "zwei"},
    ]
    content: dict[str, Any] = {
        "images": [{"id": number, "file_name": f"{number}.png"} for number in (2, 1, 3)],
        "annotations": notes,
        "categories": [{"id": 7, "name": "dog"}, {"id": 9, "name": "cat"}],
    }
    files: dict[str, str | bytes] = {f"images/{number}.png": picture(number + 3) for number in (1, 2, 3)}
    folder = write(tmp_path, {**files, "a.json": json.dumps(content)})
    boxes = ds.CocoDataset(f"{folder}/images", f"{folder}/a.json", shuffle=False)
    assert [row[1:] for row in rows_of(boxes)] == [
        [[[1, 2, 3, 1.5], [0, 0, 2, 1]], [[7], [9]], [[0], [0]]],
        [[[0, 0, 1, 1]], [[9]], [[1]]],
    ]
    assert boxes.get_class_indexing() == {"dog": [7], "cat": [9]}
    captions = ds.CocoDataset(f"{folder}/images", f"{folder}/a.json", "Captioning", shuffle=False)
    assert [row[1] for row in rows_of(captions)] == [[["two"], ["zwei"]], [["one"]]]
    content["images"][0]["file_name"] = "../a.json"
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(RuntimeError, match="names of files inside of"):
        ds.CocoDataset(f"{folder}/images", f"{folder}/a.json")
    (tmp_path / "a.json").write_text('{"images": [')
    with pytest.raises(ValueError, match=r"a\.json: expected annotations of COCO"):
        ds.CocoDataset(f"{folder}/images", f"{folder}/a.json")
    with pytest.raises(ValueError, match="Stuff"):
        ds.CocoDataset(f"{folder}/images", f"{folder}/a.json", "Stuff")
    with pytest.raises(ValueError, match="encrypted"):
        ds.VOCDataset(write(tmp_path, {"ImageSets/Main/train.txt": ""}), "Detection", decrypt=len)
