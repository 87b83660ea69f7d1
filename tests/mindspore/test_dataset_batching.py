"""Steps that make one row of several. The expected rows are those of MindSpore 2.7."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore import Tensor
from msdump.mindspore import dataset as ds
from msdump.mindspore.dataset.pipeline import Dataset
from msdump.mindspore.dataset.rows import Pass


def rows_of(dataset: Dataset, epoch: int = 0) -> list[list[Any]]:
    return [[value.tolist() for value in row()] for row in dataset.rows(Pass(1).at_epoch(epoch))]


def numbers(count: int) -> Dataset:
    return ds.NumpySlicesDataset(np.arange(count), "n", shuffle=False)


def growing() -> Dataset:
    rows = [(np.arange(n + 1), np.full((1, n + 1), n, np.float32)) for n in range(4)]
    return ds.GeneratorDataset(rows, ["a", "b"], shuffle=False)


def test_batch_size_of_a_function() -> None:
    dataset = numbers(7).batch(lambda info: info.get_batch_num() + 1)
    assert rows_of(dataset) == [[[0]], [[1, 2]], [[3, 4, 5]], [[6]]]
    assert dataset.get_dataset_size() == 4


@pytest.mark.parametrize(
    ("function", "names", "expected"),
    [
        (lambda n, info: ([x * 10 + info.get_batch_num() for x in n],), None, [[[0, 10, 20, 30]], [[41, 51]]]),
        (lambda n, info: [x * 10 for x in n], None, [[[0, 10, 20, 30]], [[40, 50]]]),
        (lambda n, info: (np.stack(n) * 2,), None, [[[0, 2, 4, 6]], [[8, 10]]]),
        (lambda n, info: (n, n), ["p", "q"], [[[0, 1, 2, 3]] * 2, [[4, 5]] * 2]),
        (lambda n, info: ([info.get_epoch_num()],), None, [[[2]], [[2]]]),
    ],
)
def test_per_batch_map(function: Callable[..., Any], names: list[str] | None, expected: list[Any]) -> None:
    dataset = numbers(6).batch(4, per_batch_map=function, input_columns=["n"], output_columns=names)
    assert rows_of(dataset, epoch=2) == expected
    assert dataset.get_col_names() == (names or ["n"])


def test_columns_of_a_batch_function_stand_where_they_did() -> None:
    three = ds.NumpySlicesDataset(([1, 2], [3, 4], [5, 6]), ["a", "b", "c"], shuffle=False)
    swapped = three.batch(2, per_batch_map=lambda c, b, _: (c, b), input_columns=["c", "b"], output_columns=["p", "q"])
    assert (swapped.get_col_names(), rows_of(swapped)) == (["a", "q", "p"], [[[1, 2], [3, 4], [5, 6]]])
    with pytest.raises(ExecutionError, match="expected 2 columns from the function, got 1"):
        rows_of(three.batch(2, per_batch_map=lambda c, b, _: (c,), input_columns=["c", "b"]))


def test_padded_batch() -> None:
    padded = rows_of(growing().padded_batch(2, pad_info={"a": ([5], -1), "b": ([1, None], 0.5)}))
    assert padded[0] == [[[0, -1, -1, -1, -1], [0, 1, -1, -1, -1]], [[[0.0, 0.5]], [[1.0, 1.0]]]]
    assert rows_of(growing().padded_batch(2, pad_info={}))[0] == [[[0, 0], [0, 1]], [[[0, 0]], [[1, 1]]]]
    words = ds.GeneratorDataset([np.array(["a"]), np.array(["bb", "c"])], ["w"], shuffle=False)
    assert rows_of(words.padded_batch(2, pad_info={"w": ([3], "<p>")})) == [[[["a", "<p>", "<p>"], ["bb", "c", "<p>"]]]]
    cut = rows_of(growing().project("a").padded_batch(4, pad_info={"a": ([2], 7)}))
    assert cut == [[[[0, 7], [0, 1], [0, 1], [0, 1]]]]
    for info in (None, {"a": ([2], 0)}, {"a": ([2, 2], 0)}, {"a": (None, "x")}):
        with pytest.raises(RuntimeError, match=r"batch: column|pad_info\['a'\]"):
            rows_of(growing().padded_batch(2, pad_info=info))


def test_buckets_come_when_full_and_the_rest_in_order() -> None:
    buckets = growing().bucket_batch_by_length(["a"], [2, 4], [2, 2, 1], len, {})
    assert [row[0] for row in rows_of(buckets)] == [[[0, 1, 0], [0, 1, 2]], [[0, 1, 2, 3]], [[0]]]
    assert buckets.get_dataset_size() == 3
    pads = {"a": ([None], 9), "b": ([1, None], 7)}
    to_edge = growing().bucket_batch_by_length(["a"], [3, 5], [2, 2, 1], len, pads, pad_to_bucket_boundary=True)
    assert [row[0] for row in rows_of(to_edge)] == [[[0, 9], [0, 1]], [[0, 1, 2, 9], [0, 1, 2, 3]]]
    with pytest.raises(RuntimeError, match="below the last boundary 3, got 3"):
        rows_of(growing().bucket_batch_by_length("a", [3], [2, 2], len, pads, pad_to_bucket_boundary=True))


@settings(max_examples=20, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9), max_size=20),
    edges=st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True),
    drop=st.booleans(),
)
def test_each_row_is_in_one_bucket_of_its_length(lengths: list[int], edges: list[int], drop: bool) -> None:
    edges.sort()
    source = ds.GeneratorDataset([np.full(size, n + 1) for n, size in enumerate(lengths)], ["a"], shuffle=False)
    sizes = [2] * (len(edges) + 1)
    batches = [
        np.asarray(row[0]) for row in rows_of(source.bucket_batch_by_length("a", edges, sizes, drop_remainder=drop))
    ]
    found = [(int(np.count_nonzero(line)), int(line.max(initial=0))) for batch in batches for line in batch]
    expected = [(size, n + 1 if size else 0) for n, size in enumerate(lengths)]
    assert set(found) <= set(expected)
    assert drop or sorted(found) == sorted(expected)
    assert all(
        len({sum(size >= edge for edge in edges) for size in map(np.count_nonzero, batch)}) == 1 for batch in batches
    )


def test_flat_map_callbacks_and_a_sampler_of_joined_datasets() -> None:
    assert rows_of(numbers(2).flat_map(lambda n: numbers(int(n) + 1))) == [[0], [0], [1]]
    with pytest.raises(ConfigError, match=r"map\(callbacks\): expected None"):
        numbers(4).map(lambda n: n, callbacks=[print])
    joined = numbers(3) + ds.NumpySlicesDataset({"n": [-1]}, shuffle=False)
    joined.use_sampler(ds.DistributedSampler(2, 1, shuffle=False))
    assert rows_of(joined) == [[1], [-1]]


def test_samplers_choose_among_each_other() -> None:
    for offset, shares in ((-1, [[0, 3], [1, 4], [2, 0]]), (1, [[2], [0, 3], [1, 4]]), (2, [[1, 4], [2], [0, 3]])):
        for shard, share in enumerate(shares):
            sampler = ds.DistributedSampler(3, shard, shuffle=False, offset=offset)
            dataset = ds.NumpySlicesDataset(np.arange(5), sampler=sampler)
            assert [row[0] for row in rows_of(dataset)] == share
            assert dataset.get_dataset_size() == len(share)

    class EverySecond(ds.Sampler):
        def __iter__(self) -> Any:
            return iter(range(0, self.dataset_size, 2))

    class Listed:
        def __getitem__(self, index: int) -> int:
            return [3, 3, 0, 4][index]

        def __len__(self) -> int:
            return 3

    outer = ds.SequentialSampler(1, 4)
    outer.add_child(ds.SubsetSampler([4, 3, 2, 1, 0]))
    weighted = ds.WeightedRandomSampler([0.0, 1.0, 0.0, 2.0, 0.0], 2, replacement=False)
    samplers = [
        (outer, [3, 2, 1, 0]),
        (EverySecond(), [0, 2, 4]),
        (Listed(), [3, 3, 0]),
        (ds.IterSampler([4, 2], 1), [4]),
    ]
    for sampler, chosen in samplers:
        assert [row[0] for row in rows_of(ds.NumpySlicesDataset(np.arange(5), sampler=sampler))] == chosen
    assert sorted(row[0] for row in rows_of(ds.NumpySlicesDataset(np.arange(5), sampler=weighted))) == [1, 3]


def test_strings_are_tensors_that_can_be_looked_at() -> None:
    row = next(iter(ds.NumpySlicesDataset(["ab", "c"], shuffle=False).create_dict_iterator(num_epochs=1)))
    text = row["column_0"]
    assert (str(text), repr(text), text.shape) == ("ab", "Tensor(shape=[], dtype=String, value= 'ab')", ())
    assert text.asnumpy() == np.array("ab")


def test_columns_are_named_and_typed_without_a_schema() -> None:
    source = [(np.array([1, 2]), 0.5)]
    named = ds.GeneratorDataset(source, ["a", "b"], ["int64", "float64"], shuffle=False)
    assert rows_of(named) == [[[1, 2], 0.5]]
    with pytest.raises(ConfigError, match="expected a small JSON file, got none"):
        ds.GeneratorDataset(source, ["a", "b"], schema="schema.json")


def test_a_schema_names_and_types_the_columns(tmp_path: Path) -> None:
    schema = ds.Schema()
    schema.add_column("a", "int64", [2])
    schema.add_column("b", "float64", [])
    source = [(np.array([1, 2]), 0.5)]
    assert rows_of(ds.GeneratorDataset(source, schema=schema, shuffle=False)) == [[[1, 2], 0.5]]
    with pytest.raises(RuntimeError, match="expected int64 as column_types"):
        rows_of(ds.GeneratorDataset([(np.ones(2), 0.5)], schema=schema, shuffle=False))
    (tmp_path / "schema.json").write_text(json.dumps({**json.loads(str(schema)), "numRows": 7}))
    again = ds.Schema(str(tmp_path / "schema.json"))
    assert (again.columns, again.get_num_rows(), schema.get_num_rows()) == (schema.columns, 7, 0)
    assert json.loads(again.to_json())["columns"]["a"] == {"type": "int64", "rank": 1, "shape": [2]}
    with pytest.raises(ValueError, match="expected a type for column 'a'"):
        again.parse_columns([{"name": "a"}])
    (tmp_path / "schema.json").write_text("{")
    with pytest.raises(ValueError, match="expected a schema in JSON"):
        ds.Schema(str(tmp_path / "schema.json"))


def test_dicts_are_values_of_columns() -> None:
    def source() -> Any:
        for n in range(4):
            yield {"n": n, "inner": {"pair": [n, "a"]}}, n

    dataset = ds.GeneratorDataset(source, ["col", "n"])
    col, n = next(iter(dataset.create_tuple_iterator(output_numpy=True)))
    assert isinstance(col["n"], np.ndarray) and col["inner"]["pair"][1].item() == "a" and n == 0
    assert isinstance(next(iter(dataset))[0]["inner"]["pair"][0], Tensor)
    mapped = dataset.map(lambda col: {"twice": np.array([col["n"], 2 * col["n"]])}, ["col"])
    batch = next(iter(mapped.batch(3).create_tuple_iterator(output_numpy=True)))[0]
    assert batch["twice"].tolist() == [[0, 0], [1, 2], [2, 4]]
    lists = mapped.batch(2, per_batch_map=lambda col, n, _: ({"all": col}, n))
    both = next(iter(lists.create_tuple_iterator(output_numpy=True)))[0]
    assert [item["twice"].tolist() for item in both["all"]] == [[0, 0], [1, 2]]


def test_dicts_of_a_batch_have_the_same_keys() -> None:
    with pytest.raises(ExecutionError, match=r"row 1: expected a dict with the keys \['a'\]"):
        rows_of(ds.GeneratorDataset([{"a": 1}, {"b": 1}], ["col"], shuffle=False).batch(2))
    with pytest.raises(ExecutionError, match="key 'a': expected numbers or strings"):
        rows_of(ds.GeneratorDataset([{"a": object()}] * 2, ["col"], shuffle=False).batch(2))
