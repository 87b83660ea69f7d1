from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import ConfigError, ExecutionError, FormatError, TruncatedFileError, WriteError
from msdump.mindspore import dataset as ds
from msdump.mindspore.common import dtype as mstype
from msdump.mindspore.dataset import digits
from msdump.mindspore.dataset.image_files import read_idx
from msdump.tensors.arrays import Array


def cifar_records(count: int, first_label: int = 0) -> tuple[Array, Array, bytes]:
    """Images (N, 32, 32, 3), labels and the bytes that hold them, built plane by plane."""
    generator = np.random.default_rng(count)
    images = generator.integers(0, 256, (count, 32, 32, 3), np.uint8)
    labels = (np.arange(count) + first_label) % 10
    data = b"".join(
        bytes([label]) + b"".join(image[:, :, channel].tobytes() for channel in range(3))
        for image, label in zip(images, labels, strict=True)
    )
    return images, labels, data


def rows_of(dataset: ds.Dataset) -> list[list[Array]]:
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


def test_cifar_files_are_read_by_usage(tmp_path: Path) -> None:
    parts = {
        name: cifar_records(count, count)
        for name, count in [("data_batch_1", 3), ("data_batch_2", 4), ("test_batch", 2), ("zz", 1)]
    }
    for name, (_, _, data) in parts.items():
        (tmp_path / f"{name}.bin").write_bytes(data)
    (tmp_path / "batches.meta.txt").write_text("airplane\n")
    wanted = {"train": ["data_batch_1", "data_batch_2"], "test": ["test_batch"], "all": list(parts), None: list(parts)}
    for usage, names in wanted.items():
        dataset = ds.Cifar10Dataset(str(tmp_path), usage=usage, shuffle=False)
        rows = rows_of(dataset)
        np.testing.assert_array_equal([image for image, _ in rows], np.concatenate([parts[name][0] for name in names]))
        assert [int(label) for _, label in rows] == [int(label) for name in names for label in parts[name][1]]
        assert rows[0][1].dtype == np.uint32
        assert dataset.num_classes() == 10
    assert dataset.get_col_names() == ["image", "label"]
    assert ds.Cifar10Dataset(tmp_path, num_samples=4).get_dataset_size() == 4
    assert len(rows_of(ds.Cifar10Dataset(tmp_path, sampler=ds.SubsetSampler([5, 5, 0])))) == 3


def test_cifar_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"Cifar10Dataset\(dataset_dir\): expected a folder, got nothing there: 'nowhere'"
    ):
        ds.Cifar10Dataset("nowhere")
    (tmp_path / "readme").write_text("x")
    with pytest.raises(ConfigError, match="got a file"):
        ds.Cifar10Dataset(tmp_path / "readme")
    with pytest.raises(ConfigError, match=r"expected files data_batch\*\.bin .*got \['readme'\]"):
        ds.Cifar10Dataset(tmp_path, usage="train")
    with pytest.raises(ConfigError, match=r'usage.*got \'trian\'. Did you mean "train"'):
        ds.Cifar10Dataset(tmp_path, usage="trian")
    with pytest.raises(TypeError, match="expected a path"):
        ds.Cifar10Dataset(3)  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(1, 2 * 3073 - 1))
def test_cut_cifar_files_are_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (folder / "data_batch_1.bin").write_bytes(cifar_records(2)[2][: 2 * 3073 - cut])
    if cut == 3073:
        assert ds.Cifar10Dataset(folder).get_dataset_size() == 1
        return
    with pytest.raises(
        TruncatedFileError, match=r"data_batch_1\.bin: expected a CIFAR-10 batch, a multiple of 3073 bytes"
    ):
        ds.Cifar10Dataset(folder)


def test_labels_above_nine_are_refused(tmp_path: Path) -> None:
    data = bytearray(cifar_records(3)[2])
    data[3073] = 10
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(FormatError, match=r"a\.bin: record 1: expected a label in \[0, 9\], got 10"):
        ds.Cifar10Dataset(tmp_path)


def write_idx(path: Path, array: Array) -> None:
    data = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def test_mnist_plain_and_gzipped(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 28, 28), np.uint8)
    labels = np.arange(5, dtype=np.uint8)
    write_idx(tmp_path / "train-images-idx3-ubyte", images[:3])
    write_idx(tmp_path / "train-labels-idx1-ubyte", labels[:3])
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", images[3:])
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", labels[3:])
    for usage, part in [("train", [0, 1, 2]), ("test", [3, 4]), (None, [3, 4, 0, 1, 2])]:
        rows = rows_of(ds.MnistDataset(tmp_path, usage=usage, shuffle=False))
        np.testing.assert_array_equal([image for image, _ in rows], images[part][:, :, :, None])
        np.testing.assert_array_equal([label for _, label in rows], labels[part])
    with pytest.raises(ConfigError, match="train-images-idx3-ubyte"):
        ds.MnistDataset(tmp_path.parent)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(ConfigError, match="images and labels together"):
        ds.MnistDataset(tmp_path)


@settings(max_examples=30, deadline=None)
@given(cut=st.integers(0, 23), zipped=st.booleans())
def test_any_prefix_of_an_idx_file_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: int, zipped: bool) -> None:
    path = tmp_path_factory.mktemp("idx") / ("x.gz" if zipped else "x")
    write_idx(path, np.arange(12, dtype=np.uint8).reshape(3, 4))
    np.testing.assert_array_equal(read_idx(path), np.arange(12).reshape(3, 4))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FormatError, match=str(path)):
        read_idx(path)


def test_image_folders(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    pictures = np.random.default_rng(1).integers(0, 256, (3, 5, 7, 3), np.uint8)
    for name, picture in zip(["dog/b.png", "cat/a.png", "dog/a.PNG"], pictures, strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        image_module.fromarray(picture).save(tmp_path / name, format="png")
    (tmp_path / "cat/notes.txt").write_text("no image")
    dataset = ds.ImageFolderDataset(tmp_path, decode=True, shuffle=False)
    rows = rows_of(dataset)
    np.testing.assert_array_equal([image for image, _ in rows], pictures[[1, 2, 0]])
    assert [int(label) for _, label in rows] == [0, 1, 1]
    assert (dataset.num_classes(), dataset.get_class_indexing()) == (2, {"cat": 0, "dog": 1})
    encoded = rows_of(ds.ImageFolderDataset(tmp_path, shuffle=False))[0][0]
    np.testing.assert_array_equal(ds.vision.Decode()(encoded), pictures[1])
    only = ds.ImageFolderDataset(tmp_path, class_indexing={"dog": 7}, shuffle=False)
    assert [int(label) for _, label in rows_of(only)] == [7, 7]
    with pytest.raises(ConfigError, match=r"got 'dgo'\. Did you mean"):
        ds.ImageFolderDataset(tmp_path, class_indexing={"dgo": 0})
    with pytest.raises(ConfigError, match="one folder per class"):
        ds.ImageFolderDataset(tmp_path / "dog")


class Squares:
    """A source with `[i]` and `len`."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, place: int) -> tuple[int, float]:
        return place, place**2.0


def test_generator_of_an_indexed_object() -> None:
    dataset = ds.GeneratorDataset(Squares(), ["n", "square"], shuffle=False)
    assert [(int(n), float(square)) for n, square in rows_of(dataset)] == [(n, n**2.0) for n in range(6)]
    assert dataset.get_dataset_size() == 6
    rows = rows_of(ds.GeneratorDataset(Squares(), ["n", "square"], [mstype.int64, mstype.float64], sampler=[3, 1]))
    assert [int(n) for n, _ in rows] == [3, 1]
    with pytest.raises(ExecutionError, match="row 0, column 'n': expected int32 as column_types says, got int64"):
        rows_of(ds.GeneratorDataset(Squares(), ["n", "square"], [mstype.int32, mstype.float64], shuffle=False))


def count_to_four() -> Iterator[Array]:
    for n in range(4):
        yield np.full(2, n)


@pytest.mark.parametrize("source", [count_to_four, [np.full(2, n) for n in range(4)]])
def test_generator_of_functions_and_lists(source: object) -> None:
    dataset = ds.GeneratorDataset(source, "n", shuffle=False)
    for _ in range(2):
        assert [row[0].tolist() for row in rows_of(dataset)] == [[n, n] for n in range(4)]
    assert dataset.get_dataset_size() == 4
    assert ds.GeneratorDataset(source, "n", num_samples=3).get_dataset_size() == 3


def test_generators_that_are_wrong() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise OSError("disk gone")

    with pytest.raises(ExecutionError, match=r"GeneratorDataset\(failing\), row 1: OSError: disk gone"):
        rows_of(ds.GeneratorDataset(failing, ["n"]))
    with pytest.raises(ExecutionError, match="expected 2 values for columns"):
        rows_of(ds.GeneratorDataset(count_to_four, ["a", "b"]))
    with pytest.raises(ExecutionError, match="got objects"):
        rows_of(ds.GeneratorDataset(lambda: iter([None]), ["a"]))
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: ds.GeneratorDataset(count_to_four, ["n"], sampler=[1]), "__getitem__ and __len__"),
        (lambda: ds.GeneratorDataset(count_to_four), "expected column_names, got none"),
        (lambda: ds.GeneratorDataset(Squares(), ["n"], sampler=[1], shuffle=True), "no shuffle"),
        (lambda: rows_of(ds.GeneratorDataset(Squares(), ["n", "s"], sampler=[9])), r"row numbers in \[0, 5\]"),
    ]
    for build, words in cases:
        with pytest.raises(ConfigError, match=words):
            build()
    with pytest.raises(TypeError, match="function that makes an iterator"):
        ds.GeneratorDataset(3, ["n"])


def test_samplers() -> None:
    source = np.arange(10)

    def taken(sampler: object) -> list[int]:
        return [int(n) for (n,) in rows_of(ds.NumpySlicesDataset(source, sampler=sampler))]

    assert taken(ds.SequentialSampler(3, 4)) == [3, 4, 5, 6]
    assert sorted(taken(ds.RandomSampler())) == list(range(10))
    assert len(taken(ds.RandomSampler(replacement=True, num_samples=5))) == 5
    assert sorted(taken(ds.SubsetRandomSampler([1, 4, 8]))) == [1, 4, 8]
    assert taken(ds.DistributedSampler(3, 1, shuffle=False)) == [1, 4, 7, 0]


def test_digits_are_written_once_and_read_as_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sklearn = pytest.importorskip("sklearn.datasets")
    folder = digits.write_digits_as_cifar10(tmp_path / "new" / "digits")
    original = sklearn.load_digits()
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["batches.meta.txt", *(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"]
    train, test = (rows_of(ds.Cifar10Dataset(folder, usage, shuffle=False)) for usage in ("train", "test"))
    assert (len(train), len(test)) == (1498, 299)
    assert [int(label) for _, label in train[:5]] == [int(original.target[n]) for n in range(5)]
    np.testing.assert_array_equal(train[0][0][::4, ::4, 1], np.rint(original.images[0] / 16 * 255))
    assert max(int(image.max()) for image, _ in test) == 255
    assert [path.name for path in folder.parent.iterdir()] == ["digits"]
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    monkeypatch.setattr(digits, "digit_records", lambda: pytest.fail("written twice"))
    assert digits.write_digits_as_cifar10(folder) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_digits_leave_other_things_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text("x")
    for target in (tmp_path, tmp_path / "mine"):
        with pytest.raises(ConfigError, match="Choose another folder"):
            digits.write_digits_as_cifar10(target)
    monkeypatch.setattr(digits, "digit_records", lambda: np.zeros((12, 3073), np.uint8))
    with pytest.raises(WriteError, match="expected to write the digits there"):
        digits.write_digits_as_cifar10(tmp_path / "mine" / "below")

    def full(folder: Path, records: Array) -> None:
        (folder / "data_batch_1.bin").write_bytes(b"part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(digits, "write_files", full)
    with pytest.raises(WriteError, match="No space left"):
        digits.write_digits_as_cifar10(tmp_path / "digits")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_digits_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ConfigError, match="pip install scikit-learn"):
        digits.write_digits_as_cifar10(tmp_path / "digits")
    assert not (tmp_path / "digits").exists()


def test_rows_that_fill_up_are_added_to_a_dataset() -> None:
    joined = ds.NumpySlicesDataset([0, 1, 2], "n", shuffle=False) + ds.PaddedDataset([{"n": np.array(-1)}])
    assert [int(row[0]) for row in joined.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [0, 1, 2, -1]
    assert ds.PaddedDataset([{"n": 1}, {"n": 2}]).get_col_names() == ["n"]
    for rows, error in (([], TypeError), ([{"a": 1}, {"b": 1}], RuntimeError)):
        with pytest.raises(error):
            ds.PaddedDataset(rows)
