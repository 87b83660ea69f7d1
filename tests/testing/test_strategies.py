"""The public strategies: what they promise to cover, and comparisons that see every difference."""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from msdump.formats.paths.sync import SyncPaths, parse_data_file_name
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import TensorKey, TensorRecord
from msdump.testing import (
    DTYPES,
    DumpTree,
    assert_same_array,
    assert_same_dump,
    dump_trees,
    op_names,
    operands_like,
    parameter_names,
    records,
    tensors,
    write_dump,
)
from tests.contracts.writer_contract import record

quick = settings(max_examples=30, deadline=None)
search = settings(max_examples=2000, deadline=None, database=None, phases=[Phase.generate])


@pytest.mark.parametrize("name", DTYPES)
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_tensors_have_the_dtype_asked_for(name: str, data: st.DataObject) -> None:
    array = data.draw(tensors(dtypes=[name]))
    assert dtypes.dtype_from_numpy(array.dtype).name == ("uint8" if name == "uint1" else name)


WANTED: dict[str, Callable[[Array], bool]] = {
    "0-d": lambda array: array.ndim == 0,
    "empty": lambda array: array.size == 0,
    "not contiguous": lambda array: not array.flags.c_contiguous and not array.flags.f_contiguous,
    "Fortran order": lambda array: array.flags.f_contiguous and not array.flags.c_contiguous,
    "big-endian": lambda array: not array.dtype.isnative,
    "read-only": lambda array: not array.flags.writeable,
    "shared elements": lambda array: array.size > 1 and 0 in array.strides,
    "negative zero": lambda array: bool(((array == 0) & np.signbit(array)).any()),
    "infinity": lambda array: bool(np.isinf(array).any()),
    "two kinds of NaN": lambda array: len({bytes(item) for item in array.reshape(-1) if np.isnan(item)}) > 1,
    "subnormal": lambda array: bool(((array != 0) & (np.abs(array) < np.finfo(np.float32).tiny)).any()),
}


@pytest.mark.parametrize("what", WANTED)
def test_tensors_cover(what: str) -> None:
    with np.errstate(all="ignore"):
        find(tensors(dtypes=["float32"]), WANTED[what], settings=search)


@pytest.mark.parametrize("piece", ["/", "\0", "\n", ","])
@pytest.mark.parametrize("strategy", [op_names(), parameter_names()])
def test_names_cover(strategy: st.SearchStrategy[str], piece: str) -> None:
    assert piece in find(strategy, lambda name: piece in name, settings=search)
    assert find(strategy, lambda name: len(name.encode(errors="replace")) > 255, settings=search)


@quick
@given(records())
def test_equal_keys_mean_equal_bytes_and_stamps_increase(made: list[TensorRecord]) -> None:
    held: dict[TensorKey, bytes] = {}
    for item in made:
        if item.key is not None:
            assert held.setdefault(item.key, item.data.tobytes()) == item.data.tobytes()
    stamps = [item.timestamp_us for item in made]
    assert stamps == sorted(set(stamps))


@quick
@given(dump_trees(is_hostile=True))
def test_a_tree_on_disk_holds_every_record(tree: DumpTree) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = write_dump(tree, folder)
        paths = SyncPaths(root, 0, tree.net_name)
        for iteration, step in tree.records_by_iteration.items():
            if step:
                assert len(read_statistic_csv(paths.statistic_file(0, iteration))) == len(step)
                assert len(list(paths.data_dir(0, iteration).glob("*.npy"))) == len(step)


def later(tree: DumpTree) -> DumpTree:
    """The same run at another time."""
    return DumpTree(
        tree.net_name,
        {
            iteration: [replace(item, timestamp_us=item.timestamp_us * 3) for item in step]
            for iteration, step in tree.records_by_iteration.items()
        },
        tree.full_names,
    )


@quick
@given(dump_trees(is_hostile=True))
def test_time_stamps_do_not_count(tree: DumpTree) -> None:
    with tempfile.TemporaryDirectory() as left, tempfile.TemporaryDirectory() as right:
        assert_same_dump(write_dump(tree, left), write_dump(later(tree), right))


def change_byte(root: Path) -> None:
    path = next(root.rglob("*.npy"))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    path.chmod(0o400)


def drop_byte(root: Path) -> None:
    path = next(root.rglob("*.npy"))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    path.chmod(0o400)


def change_number(root: Path) -> None:
    path = next(root.rglob("statistic.csv"))
    path.chmod(0o600)
    path.write_text(path.read_text().replace(",5,0,", ",4,0,"))
    path.chmod(0o400)


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a byte": (
        change_byte,
        r"ReLU-op0\.0\.0\.\*\.output\.0\.DefaultFormat\.npy: expected equal bytes, got .* at offset 151",
    ),
    "a length": (drop_byte, "expected equal sizes, got 152 and 151 bytes"),
    "a statistic": (change_number, r"statistic\.csv, line 2: expected equal rows"),
    "a mode": (lambda root: next(root.rglob("*.npy")).chmod(stat.S_IRUSR | stat.S_IWUSR), "got 0400 and 0600"),
    "a file": (lambda root: next(root.rglob("*.npy")).unlink(), "expected in both dumps, got only .*left"),
    "a folder": (lambda root: (root / "rank_1").mkdir(), "expected in both dumps, got only .*right"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_difference_is_named(what: str, tmp_path: Path) -> None:
    tree = DumpTree("Net", {0: [record()]}, ("Default/ReLU-op0",))
    left = write_dump(tree, tmp_path / "left")
    shutil.copytree(left, tmp_path / "right")
    assert_same_dump(left, tmp_path / "right")
    change, message = CHANGES[what]
    change(tmp_path / "right")
    with pytest.raises(AssertionError, match=message):
        assert_same_dump(left, tmp_path / "right")


def test_shortened_names_are_compared_by_what_they_stand_for(tmp_path: Path) -> None:
    item = record(op_name="x" * 300, is_parameter=True)
    tree = DumpTree("Net", {0: [item]}, ())
    left, right = write_dump(tree, tmp_path / "left"), write_dump(later(tree), tmp_path / "right")
    names = [next(root.rglob("*.npy")).name for root in (left, right)]
    assert names[0] != names[1]
    assert parse_data_file_name(names[0]) is None
    assert_same_dump(left, right)


def test_arrays_differ_where_the_message_says() -> None:
    left, right = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    right[1, 2] = -0.0
    with pytest.raises(AssertionError, match=r"element \(1, 2\)"):
        assert_same_array(left, right)
    with pytest.raises(AssertionError, match="shape"):
        assert_same_array(left, right.T)
    with pytest.raises(AssertionError, match="dtype"):
        assert_same_array(left, right.astype(np.float64))
    assert_same_array(np.array([np.nan]), -np.array([np.nan]))


ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([2, 0], np.int32), np.ones((), np.float32)]


def test_it_shrinks_to_the_call_itself() -> None:
    drawn = find(operands_like(ARRAYS), lambda arrays: len(arrays) == 3)
    assert all(np.array_equal(one, other) for one, other in zip(drawn, ARRAYS, strict=True))
    assert find(operands_like([]), lambda arrays: True) == []


@pytest.mark.parametrize(
    "name",
    ["float16", "another order", "empty", "a leading axis"],
)
def test_what_it_reaches(name: str) -> None:
    conditions = {
        "float16": lambda arrays: [str(each.dtype) for each in arrays] == ["float16", "int32", "float16"],
        "another order": lambda arrays: arrays[1].tolist() == [0, 2],
        "empty": lambda arrays: arrays[0].shape == (0, 3) and arrays[1].shape == (0,),
        "a leading axis": lambda arrays: arrays[0].ndim == 3 and arrays[1].ndim == 1,
    }
    find(operands_like(ARRAYS), conditions[name], settings=settings(max_examples=2000))


@settings(max_examples=20)
@given(operands_like(ARRAYS, ["float64"], is_special=True, has_other_shapes=False))
def test_what_stays(arrays: list[Array]) -> None:
    assert [array.shape for array in arrays] == [array.shape for array in ARRAYS]
    assert sorted(arrays[1].tolist()) == [0, 2]
    assert [dtypes.dtype_from_numpy(array.dtype).name for array in arrays] == ["float64", "int32", "float64"]
