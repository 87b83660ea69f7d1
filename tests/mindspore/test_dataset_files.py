"""Sources of files: texts, annotations, folders. The expected rows are those of MindSpore 2.7 on the same files."""

from __future__ import annotations

import json
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.mindspore import dataset as ds
from msdump.mindspore.dataset import vision
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
    pytest.importorskip("PIL")
    return bytes(vision.encode_png(np.full((4, width, 3), width, np.uint8)))


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
    folder = write(tmp_path, {"a.csv": '1,2.5,abc\n3,4.5,"d,e"\n', "h.csv": "x,y,z\n5,6.5,f\n"})
    typed = ds.CSVDataset(f"{folder}/a.csv", ",", [1, 2.0, ""], ["x", "y", "z"], shuffle=False)
    assert rows_of(typed) == [[1, 2.5, "abc"], [3, 4.5, "d,e"]]
    assert [dtype.kind + str(dtype.itemsize) for dtype in typed.output_types()[:2]] == ["i4", "f4"]
    headed = ds.CSVDataset(f"{folder}/h.csv", shuffle=False)
    assert (headed.get_col_names(), rows_of(headed)) == (["x", "y", "z"], [["5", "6.5", "f"]])
    with pytest.raises(ValueError, match="line 1: expected 2 fields, got 3"):
        rows_of(ds.CSVDataset(f"{folder}/a.csv", column_names=["x", "y"]))
    with pytest.raises(ValueError, match=r"line 1: expected int, got '2\.5'"):
        rows_of(ds.CSVDataset(f"{folder}/a.csv", ",", [1, 2, ""], ["x", "y", "z"]))


SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "ctx",
                    "qas": [
                        {"question": "q1", "answers": [{"text": "a", "answer_start": 3}]},
                        {"question": "q2", "answers": []},
                    ],
                }
            ]
        }
    ]
}
# class, files, arguments, rows
TEXTS: list[tuple[Callable[..., Dataset], dict[str, str], dict[str, Any], list[Any]]] = [
    (ds.AGNewsDataset, {"train.csv": '"3","t, i","c ""q"""\n'}, {"usage": "train"}, [["3", "t, i", 'c "q"']]),
    (ds.YelpReviewDataset, {"test.csv": '"1","te, xt"\n'}, {"usage": "test"}, [["1", "te, xt"]]),
    (ds.PennTreebankDataset, {"ptb.valid.txt": " a \n\n b \n"}, {"usage": "valid"}, [[" a "], [" b "]]),
    (ds.WikiTextDataset, {"wiki.test.tokens": " = a = \n \n"}, {"usage": "test"}, [[" = a = "], [" "]]),
    (ds.EnWik9Dataset, {"enwik9": "one\n\ntwo"}, {}, [["one"], [""], ["two"]]),
    (
        ds.UDPOSDataset,
        {"en-ud-tag.v2.dev.txt": "a\tX\tx\nb\tY\ty\n\n"},
        {"usage": "valid"},
        [[["a", "b"], ["X", "Y"], ["x", "y"]]],
    ),
    (ds.CoNLL2000Dataset, {"test.txt": "d X x1\n\n"}, {"usage": "test"}, [[["d"], ["X"], ["x1"]]]),
    (ds.SST2Dataset, {"train.tsv": "sentence\tlabel\ngood \t1\n"}, {}, [["good ", "1"]]),
    (ds.SST2Dataset, {"test.tsv": "index\tsentence\n0\tbad\n"}, {"usage": "test"}, [["bad"]]),
    (
        ds.SQuADDataset,
        {"dev-v1.1.json": json.dumps(SQUAD)},
        {"usage": "dev"},
        [["ctx", "q1", ["a"], [3]], ["ctx", "q2", [""], [2**32 - 1]]],
    ),
    (
        ds.Multi30kDataset,
        {"training/train.de": "d1\nd2\n", "training/train.en": "e1\ne2\n"},
        {"usage": "train"},
        [["e1", "d1"], ["e2", "d2"]],
    ),
    (
        ds.IMDBDataset,
        {"test/pos/1_7.txt": "fine\n", "test/neg/0_3.txt": "dull"},
        {"usage": "test"},
        [["fine", 1], ["dull", 0]],
    ),
]


@pytest.mark.parametrize(("source", "files", "arguments", "rows"), TEXTS)
def test_collections_of_texts(
    tmp_path: Path, source: Callable[..., Dataset], files: dict[str, str], arguments: dict[str, Any], rows: list[Any]
) -> None:
    folder = write(tmp_path, dict(files))
    assert rows_of(source(folder, shuffle=False, **arguments)) == rows
    with pytest.raises(ValueError, match=r"expected one of|expected both"):
        source(folder, usage="zz") if arguments else source(folder, num_shards=2)
    for name in files:
        (tmp_path / name).unlink()
    with pytest.raises(RuntimeError, match=r"expected .*, got"):
        source(folder, shuffle=False, **arguments)


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


def test_faces_by_part(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{number}.jpg": picture(number + 4) for number in range(3)}
    files["list_attr_celeba.txt"] = "3\nA B\n0.jpg  1 -1\n1.jpg -1 -1\n2.jpg  1  1\n"
    files["list_eval_partition.txt"] = "0.jpg 0\n1.jpg 1\n2.jpg 2\n"
    folder = write(tmp_path, files)
    assert [row[1] for row in rows_of(ds.CelebADataset(folder, shuffle=False))] == [[1, 0], [0, 0], [1, 1]]
    assert [row[1] for row in rows_of(ds.CelebADataset(folder, usage="valid"))] == [[0, 0]]


def test_folders_of_images(tmp_path: Path) -> None:
    folders = ("002.flag", "001.ak47")
    folder = write(tmp_path, {f"{name}/{number}.jpg": picture(number) for name in folders for number in (2, 1)})
    classes = ds.Caltech256Dataset(folder, decode=True, shuffle=False)
    assert [(row[0].shape[1], int(row[1])) for row in classes] == [(1, 0), (2, 0), (1, 1), (2, 1)]
    chosen = ds.ImageFolderDataset(folder, sampler=ds.PKSampler(3))
    assert [row[1] for row in rows_of(chosen)] == [0, 0, 0, 1, 1, 1]
    lists = write(
        tmp_path / "food",
        {"images/pie/1.jpg": picture(4), "meta/train.txt": "pie/1\n", "meta/test.txt": "pie/2\n"},
    )
    assert [row[1] for row in rows_of(ds.Food101Dataset(lists, "train"))] == ["pie"]
    with pytest.raises(RuntimeError, match="expected the file"):
        ds.Food101Dataset(lists, "test")
    with pytest.raises(TypeError, match="Its arguments: dataset_dir"):
        ds.Food101Dataset(lists, useage="train")


def test_binary_and_text_digits(tmp_path: Path) -> None:
    record = bytes([1, 20]) + bytes(range(256)) * 12
    assert [row[1:] for row in rows_of(ds.Cifar100Dataset(write(tmp_path, {"train.bin": record}), "train"))] == [
        [1, 20]
    ]
    (tmp_path / "train.bin").write_bytes(record[:-1])
    with pytest.raises(ValueError, match="multiple of 3074 bytes, got 3073"):
        ds.Cifar100Dataset(str(tmp_path), "train")
    pixels = " ".join(["1.0000", "0.0000"] * 128)
    digits = write(tmp_path / "s", {"semeion.data": f"{pixels} 0 0 0 1 0 0 0 0 0 0 \n"})
    image, label = rows_of(ds.SemeionDataset(digits))[0]
    assert (np.sum(image), label) == (128, 3)


def test_waves(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "1_1_0_0_1_1_0_0.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.array([0, 1000, -32768, 32767], "<i2").tobytes())
    samples, rate, label = rows_of(ds.YesNoDataset(str(tmp_path)))[0]
    np.testing.assert_allclose(samples, [[0.0, 0.030518509, -1.0000305, 1.0]], rtol=1e-6)
    assert (rate, label) == (8000, [1, 1, 0, 0, 1, 1, 0, 0])
    (tmp_path / "1_1_0_0_1_1_0_0.wav").write_bytes(b"RIFF")
    with pytest.raises(ValueError, match="expected a WAV file"):
        rows_of(ds.YesNoDataset(str(tmp_path)))


def test_noise_is_the_same_in_each_walk() -> None:
    fake = ds.FakeImageDataset(3, (4, 5, 3), 5, 7, shuffle=False)
    assert rows_of(fake) == rows_of(fake)
    assert [row[0].shape for row in fake] == [(4, 5, 3)] * 3
    schema = ds.Schema()
    schema.add_column("a", "int32", [2])
    schema.add_column("b", "float32", [])
    noise = ds.RandomDataset(2, schema)
    assert rows_of(noise) == rows_of(noise)
    assert (noise.output_shapes(), noise.output_types()) == ([[2], []], [np.int32, np.float32])
