from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore import dataset as ds
from msdump.mindspore.common import generator as general_seed
from msdump.mindspore.dataset import transforms, vision
from msdump.mindspore.dataset.pipeline import Dataset
from msdump.tensors.arrays import Array

quick = settings(max_examples=30, deadline=None)


# Settings that tests change -> what they are before.
_SETTINGS = {
    "seed": ds.config.UNSET_SEED, "num_parallel_workers": 8, "prefetch_size": 16, "monitor_sampling_interval": 1000,
    "callback_timeout": 60, "enable_shared_mem": True, "enable_autotune": False, "sending_batches": 0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def fresh_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _SETTINGS.items():
        getattr(ds.config, f"set_{name}")(value)
    monkeypatch.setattr(general_seed, "_seed", None)


def numbers(count: int, shuffle: bool | None = False, **more: object) -> Dataset:
    return ds.NumpySlicesDataset(np.arange(count), "n", shuffle=shuffle, **more)  # type: ignore[arg-type]


def walked(dataset: Dataset) -> list[int]:
    return [
        int(value)
        for (row,) in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1)
        for value in row.reshape(-1)
    ]


@quick
@given(count=st.integers(0, 60), buffer_size=st.integers(2, 70))
def test_shuffle_keeps_all_rows_and_moves_none_far_forward(count: int, buffer_size: int) -> None:
    seen = walked(numbers(count).shuffle(buffer_size))
    assert sorted(seen) == list(range(count))
    # A row can only leave after it entered the buffer.
    assert all(value < place + buffer_size for place, value in enumerate(seen))


@quick
@given(count=st.integers(0, 40), size=st.integers(1, 12), drop=st.booleans())
def test_batch_cuts_rows_in_order(count: int, size: int, drop: bool) -> None:
    dataset = numbers(count).batch(size, drop_remainder=drop)
    groups = [row[0] for row in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1)]
    kept = count - count % size if drop else count
    assert [int(value) for group in groups for value in group] == list(range(kept))
    assert all(len(group) == size for group in groups[:-1])
    assert dataset.get_dataset_size() == len(groups)
    assert dataset.get_batch_size() == size


@st.composite
def pipelines(draw: st.DrawFn) -> Dataset:
    dataset = numbers(draw(st.integers(0, 20)), shuffle=draw(st.sampled_from([None, False, True])))
    for step in draw(st.lists(st.sampled_from(["take", "skip", "repeat", "batch", "shuffle", "map"]), max_size=4)):
        argument = draw(st.integers(2, 5))
        if step == "map":
            dataset = dataset.map(lambda n: n, "n")
        elif step == "batch":
            if dataset.get_batch_size() == 1:
                dataset = dataset.batch(argument, drop_remainder=True)
        else:
            dataset = getattr(dataset, step)(argument)
    return dataset


@quick
@given(dataset=pipelines())
def test_promised_size_is_the_number_of_rows(dataset: Dataset) -> None:
    assert sum(1 for _ in dataset) == dataset.get_dataset_size() == len(dataset)


@quick
@given(dataset=pipelines(), seed=st.integers(0, 2**32 - 1))
def test_a_seed_repeats_the_order(dataset: Dataset, seed: int) -> None:
    ds.config.set_seed(seed)
    if seed != ds.config.UNSET_SEED:
        assert walked(dataset) == walked(dataset)
    ds.config.set_seed(ds.config.UNSET_SEED)


@quick
@given(count=st.integers(1, 40), shards=st.integers(1, 6), shuffle=st.booleans())
def test_shards_share_the_data_and_are_equally_long(count: int, shards: int, shuffle: bool) -> None:
    parts = [walked(numbers(count, shuffle, num_shards=shards, shard_id=shard)) for shard in range(shards)]
    assert len({len(part) for part in parts}) == 1
    everything = list(itertools.chain(*parts))
    assert set(everything) == set(range(count))
    assert len(everything) - count < shards


@quick
@given(count=st.integers(3, 40), first=st.integers(1, 20), randomize=st.booleans())
def test_split_parts_are_disjoint_in_every_walk(count: int, first: int, randomize: bool) -> None:
    first = min(first, count - 1)
    left, right = numbers(count, shuffle=None).split([first, count - first], randomize=randomize)
    for _ in range(2):
        assert sorted(walked(left) + walked(right)) == list(range(count))
    assert left.get_dataset_size() == first


def test_each_epoch_has_its_own_order_and_the_seed_repeats_them_all() -> None:
    ds.config.set_seed(7)
    runs = []
    for _ in range(2):
        rows = numbers(50, shuffle=None).batch(50).create_tuple_iterator(num_epochs=2, output_numpy=True)
        runs.append([[group.tolist() for (group,) in rows] for _ in range(2)])
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[0][1]
    repeated = walked(numbers(50, shuffle=None).repeat(2))
    assert [repeated[:50], repeated[50:]] == [runs[0][0][0], runs[0][1][0]]


def test_general_seed_reaches_datasets_unless_they_have_their_own() -> None:
    general_seed.set_seed(3)
    assert walked(numbers(99, None)) == walked(numbers(99, None))
    general = walked(numbers(99, None))
    ds.config.set_seed(4)
    assert walked(numbers(99, None)) != general


def test_without_a_seed_two_walks_differ() -> None:
    assert walked(numbers(200, None)) != walked(numbers(200, None))


def test_random_transforms_do_not_depend_on_what_else_is_drawn() -> None:
    ds.config.set_seed(1)
    images = np.arange(8 * 6 * 6, dtype=np.uint8).reshape(8, 6, 6, 1)
    source = ds.NumpySlicesDataset(images, "image", shuffle=False).map(vision.RandomCrop(4))
    alone = [row[0] for row in source.create_tuple_iterator(output_numpy=True)]
    batches = [row[0] for row in source.batch(8).create_tuple_iterator(output_numpy=True)]
    np.testing.assert_array_equal(np.stack(alone), batches[0])
    assert len({image.tobytes() for image in alone}) == 8
    # drawn afresh in the next epoch
    again = next(iter(source.repeat(2).skip(8).batch(8).create_tuple_iterator(output_numpy=True)))[0]
    assert not np.array_equal(again, batches[0])


def test_map_columns() -> None:
    data = {"a": np.arange(3), "b": np.arange(3) * 10, "c": np.arange(3) * 100}
    source = ds.NumpySlicesDataset(data, shuffle=False)
    in_place = source.map(lambda b: b + 1, "b", "bb")
    assert in_place.get_col_names() == ["a", "bb", "c"]
    joined = source.map([lambda a, b: (a + b, a, b), lambda x, y, z: (x, z)], ["a", "b"], ["sum", "b"])
    assert joined.get_col_names() == ["sum", "b", "c"]
    assert [int(value) for value in list(joined.create_tuple_iterator(output_numpy=True))[2]] == [22, 20, 200]
    fewer = source.map(lambda a, b: a + b, ["a", "b"], ["sum"])
    assert fewer.get_col_names() == ["sum", "c"]
    assert [row["c"].item() for row in fewer.create_dict_iterator(output_numpy=True)] == [0, 100, 200]
    first_column = source.map(lambda a: a * 2)
    assert [row["a"].item() for row in first_column.create_dict_iterator(output_numpy=True)] == [0, 2, 4]
    ordered = source.map(lambda a: a, "a", column_order=["c", "a"])
    assert ordered.get_col_names() == ["c", "a"]
    duplicated = source.project("a").map(transforms.Duplicate(), "a", ["x", "y"])
    assert [int(value) for value in list(duplicated.create_tuple_iterator(output_numpy=True))[1]] == [1, 1]


def test_project_rename_zip_concat_filter_apply() -> None:
    left, right = numbers(5), ds.NumpySlicesDataset(np.arange(9) * 2, "m", shuffle=False)
    both = ds.zip((left, right))
    assert both.get_col_names() == ["n", "m"]
    assert both.get_dataset_size() == 5
    swapped = both.project(["m", "n"]).rename(["m"], ["twice"])
    assert [[int(m), int(n)] for m, n in swapped.create_tuple_iterator(output_numpy=True)] == [
        [2 * n, n] for n in range(5)
    ]
    assert walked(left + numbers(2)) == [0, 1, 2, 3, 4, 0, 1]
    assert walked(numbers(9).filter(lambda n: n % 3 == 0)) == [0, 3, 6]
    assert numbers(9).filter(lambda n: n % 3 == 0).get_dataset_size() == 3
    assert walked(numbers(4).apply(lambda dataset: dataset.repeat(2))) == [0, 1, 2, 3] * 2
    assert left.zip(right).get_col_names() == ["n", "m"]


def test_plain_iteration_gives_lists_of_tensors() -> None:
    rows = list(ds.NumpySlicesDataset({"x": np.ones((2, 3), np.float32), "y": np.arange(2)}, shuffle=False).batch(2))
    assert [type(value).__name__ for value in rows[0]] == ["Tensor", "Tensor"]
    assert rows[0][0].asnumpy().shape == (2, 3)
    assert rows[0][1].asnumpy().tolist() == [0, 1]
    columns = numbers(1).create_dict_iterator()
    assert next(columns)["n"].asnumpy() == 0


def test_iterator_continues_with_the_next_epoch_and_ends_with_the_last() -> None:
    rows = numbers(3).create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [len(list(rows)) for _ in range(2)] == [3, 3]
    with pytest.raises(ConfigError, match="num_epochs=2"):
        next(rows)
    endless = numbers(2).repeat().create_tuple_iterator(output_numpy=True)
    assert [int(row[0]) for row in itertools.islice(endless, 5)] == [0, 1, 0, 1, 0]
    assert numbers(2).repeat().get_dataset_size() == -1
    assert numbers(2).repeat(4).get_repeat_count() == 4


def test_shapes_and_types_come_from_the_first_row() -> None:
    dataset = ds.NumpySlicesDataset((np.zeros((4, 2, 3), np.float32), np.zeros(4, np.int32))).batch(2)
    assert dataset.get_col_names() == ["column_0", "column_1"]
    assert dataset.output_shapes() == [[2, 2, 3], [2]]
    assert dataset.output_types() == [np.float32, np.int32]


def test_rows_that_nobody_takes_are_not_computed() -> None:
    computed: list[int] = []

    def note(n: Array) -> Array:
        computed.append(int(n))
        return n

    assert len(walked(numbers(100).map(note, "n").shuffle(50).take(3))) == 3
    assert len(computed) == 3


def test_a_failing_function_stops_the_loop_after_the_good_rows() -> None:
    def picky(n: Array) -> Array:
        if n == 2:
            raise KeyError("two")
        return n

    rows = numbers(5).map(picky, "n").create_tuple_iterator(output_numpy=True)
    assert [int(next(rows)[0]), int(next(rows)[0])] == [0, 1]
    with pytest.raises(ExecutionError, match=r"picky.*'n'.*row 2.*KeyError") as caught:
        next(rows)
    assert isinstance(caught.value.__cause__, KeyError)


def loaders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "msdump-dataset"]


def test_thread_ends_when_the_iterator_is_dropped() -> None:
    def endless() -> Iterator[int]:
        yield from itertools.count()

    already = set(loaders())
    rows = ds.GeneratorDataset(endless, ["n"]).create_tuple_iterator(output_numpy=True)
    assert int(next(rows)[0]) == 0
    (thread,) = set(loaders()) - already
    del rows
    gc.collect()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_next_batch_is_made_while_the_loop_works() -> None:
    made = threading.Semaphore(0)

    def count(n: Array) -> Array:
        made.release()
        return n

    rows = numbers(4).map(count, "n").create_tuple_iterator(output_numpy=True)
    next(rows)
    # Row 1 is not requested, and still it is computed.
    assert made.acquire(timeout=10)
    assert made.acquire(timeout=10)


def test_waiting_rows_are_bounded() -> None:
    ds.config.set_prefetch_size(3)
    made: list[int] = []

    def count(n: Array) -> Array:
        made.append(int(n))
        return n

    rows = numbers(100).map(count, "n").create_tuple_iterator(output_numpy=True)
    next(rows)
    deadline = time.monotonic() + 10
    while len(made) < 5 and time.monotonic() < deadline:
        threading.Event().wait(0.005)
    # One was taken, three wait, one more is in the thread's hand.
    threading.Event().wait(0.05)
    assert len(made) == 5


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: numbers(3).batch(0), r"batch\(batch_size\): expected an int of at least 1, got 0"),
        (lambda: numbers(3).shuffle(1), r"shuffle\(buffer_size\): expected an int of at least 2, got 1"),
        (lambda: numbers(3).repeat(0), r"repeat\(count\)"),
        (lambda: numbers(3).take(0), r"take\(count\)"),
        (lambda: numbers(3).skip(-1), r"skip\(count\)"),
        (lambda: numbers(3).project("m"), r"project\(columns\): expected columns of \['n'\], got 'm'"),
        (lambda: numbers(3).map(lambda n: n, "nn"), r"map\(input_columns\).*Did you mean \"n\""),
        (lambda: numbers(3).map([], "n"), "at least one operation"),
        (lambda: numbers(3).rename(["n"], ["a", "b"]), "as many new names"),
        (lambda: ds.zip((numbers(3), numbers(3))), "each column once"),
        (lambda: numbers(3).split([1, 1]), "sum 3"),
        (lambda: numbers(3).split([0.5, 0.1]), "sum 1"),
        (lambda: numbers(3, num_shards=2), "both or none"),
        (lambda: numbers(3, num_shards=2, shard_id=2), "below num_shards=2"),
        (lambda: numbers(3).create_tuple_iterator(num_epochs=0), "num_epochs"),
        (lambda: numbers(3).create_tuple_iterator(columns=["x"]), r"create_tuple_iterator\(columns\)"),
        (lambda: ds.NumpySlicesDataset((np.zeros(3), np.zeros(4))), "one length"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(build: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build()  # type: ignore[operator]


def test_wrong_types_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"Write HWC2CHW\(\)"):
        numbers(3).map(vision.HWC2CHW, "n")
    with pytest.raises(TypeError, match="per_batch_map"):
        numbers(3).batch(2, per_batch_map=3)
    with pytest.raises(TypeError, match="batch_size"):
        numbers(3).batch(2.5)  # type: ignore[arg-type]


def test_unequal_shapes_in_a_batch() -> None:
    ragged = numbers(4).map(lambda n: np.zeros(2 + (n == 3)), "n").batch(4)
    with pytest.raises(ExecutionError, match=r"batch: column 'n', row 3: expected float64 \(2,\).*got float64 \(3,\)"):
        list(ragged)
    mixed = numbers(3).map(lambda n: n.astype(np.int32 if n == 2 else np.int64), "n").batch(3)
    with pytest.raises(ExecutionError, match="int32"):
        list(mixed)


def test_number_of_outputs_must_fit_the_columns() -> None:
    with pytest.raises(ExecutionError, match="expected 1 values from the operations, got 2"):
        list(numbers(1).map(lambda n: (n, n), "n"))


@pytest.mark.parametrize(
    ("module", "name", "nearest"),
    [
        (vision, "RandomHorizontalFlp", "RandomHorizontalFlip"),
        (transforms, "TypeCst", "TypeCast"),
        (ds, "Cifar1000Dataset", "Cifar100Dataset"),
    ],
)
def test_unknown_names_offer_the_nearest(module: object, name: str, nearest: str) -> None:
    with pytest.raises(AttributeError, match=nearest):
        getattr(module, name)


def test_old_names_of_the_modules() -> None:
    from msdump.mindspore.dataset.transforms import c_transforms, py_transforms
    from msdump.mindspore.dataset.vision import c_transforms as cv
    from msdump.mindspore.dataset.vision import py_transforms as pv
    from msdump.mindspore.dataset.vision import utils

    assert c_transforms.TypeCast is py_transforms.TypeCast is transforms.TypeCast
    assert cv.Resize is pv.Resize is vision.Resize
    assert utils.Inter is vision.Inter
    from msdump.mindspore.dataset import engine, text
    from msdump.mindspore.dataset.text import c_transforms as ct

    assert engine.GeneratorDataset is ds.GeneratorDataset
    assert ct.Lookup is text.Lookup


def test_settings() -> None:
    ds.config.set_num_parallel_workers(3)
    ds.config.set_prefetch_size(9)
    ds.config.set_monitor_sampling_interval(5)
    assert (ds.config.get_num_parallel_workers(), ds.config.get_prefetch_size()) == (3, 9)
    assert ds.config.get_monitor_sampling_interval() == 5
    assert ds.config.get_seed() == 5489
    with pytest.raises(ConfigError, match="set_seed"):
        ds.config.set_seed(-1)
    with pytest.raises(TypeError, match="set_seed"):
        ds.config.set_seed(1.5)  # type: ignore[arg-type]


def test_settings_that_change_nothing_are_kept() -> None:
    assert (ds.config.get_callback_timeout(), ds.config.get_enable_shared_mem(), ds.get_debug_mode()) == (
        60,
        True,
        False,
    )
    ds.config.set_callback_timeout(10)
    ds.config.set_enable_shared_mem(False)
    ds.config.set_enable_autotune(True, "/nowhere/autotune")
    ds.config.set_sending_batches(-1)
    assert (ds.get_callback_timeout(), ds.get_enable_shared_mem(), ds.config.get_enable_autotune()) == (10, False, True)
    with pytest.raises(TypeError, match="set_debug_mode: expected a bool, got int"):
        ds.config.set_debug_mode(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"set_callback_timeout: expected a number in \[1, 2147483647\], got 0"):
        ds.config.set_callback_timeout(0)
