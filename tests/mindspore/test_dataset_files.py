"""Sources of files: texts, annotations, folders. The expected rows are those of MindSpore 2.7 on the same files."""

from __future__ import annotations

import io
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
