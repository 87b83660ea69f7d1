"""`Dataset`: what every source and every step of a pipeline can do. The steps are in steps.py and mapping.py."""

from __future__ import annotations

import importlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.common.declared import Declared
from msdump.mindspore.dataset import checks, config
from msdump.mindspore.dataset.iterators import DictIterator, TupleIterator
from msdump.mindspore.dataset.rows import Pass, Row, Values
from msdump.mindspore.located import located_class

ColumnNames = str | Sequence[str]
Operations = Callable[..., Any] | Sequence[Callable[..., Any]]
DatasetType = TypeVar("DatasetType", bound="Dataset")


# By name of their class. The steps are datasets themselves, so they put themselves here.
_STEPS: dict[str, Callable[..., Dataset]] = {}


def step(dataset: type[DatasetType]) -> type[DatasetType]:
    """Decorator of a class that a method of `Dataset` returns."""
    _STEPS[dataset.__name__] = dataset
    return dataset


@located_class
class Dataset(Declared, ABC):
    """A pipeline, seen from its last step. Datasets never change: every method returns a new one."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        located_class(cls)

    @abstractmethod
    def rows(self, walk: Pass) -> Iterator[Row]:
        """Rows of one walk, in order."""

    @abstractmethod
    def get_col_names(self) -> list[str]:
        """Column names, in the order of the values of a row."""

    @abstractmethod
    def children(self) -> tuple[Dataset, ...]:
        """Datasets that this one reads; none for a source."""

    @abstractmethod
    def known_size(self) -> int | None:
        """Rows of one walk; None when only a walk can tell; -1 when it never ends."""

    def height(self) -> int:
        """Steps between the source and this dataset; 0 for a source."""
        return max((child.height() + 1 for child in self.children()), default=0)

    # --- what it looks like

    def get_dataset_size(self) -> int:
        """Rows of one walk (batches, after `batch`); -1 when it never ends.

        Edges: a generator without a length is walked once to count its rows.
        """
        size = self.known_size()
        return sum(1 for _ in self.rows(Pass(config.iterator_seed()))) if size is None else size

    def __len__(self) -> int:
        return self.get_dataset_size()

    def get_batch_size(self) -> int:
        """Rows in one batch; 1 before any `batch`."""
        children = self.children()
        return children[0].get_batch_size() if children else 1

    def get_repeat_count(self) -> int:
        """Times that `repeat` walks the data; 1 without it, -1 without end."""
        children = self.children()
        return children[0].get_repeat_count() if children else 1

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """Shape of each column, taken from the first row; with `estimate` None where the rows differ (a whole walk)."""
        if not estimate:
            return [list(value.shape) for value in self._first_values()]
        shapes: list[list[int | None]] = []
        for row in self.rows(Pass(config.iterator_seed())):
            shapes = _common_shapes(shapes, [list(value.shape) for value in row()])
        return shapes

    def output_types(self) -> list[np.dtype[Any]]:
        """numpy dtype of each column, taken from the first row."""
        return [value.dtype for value in self._first_values()]

    def num_classes(self) -> int | None:
        """Number of labels where the source knows it, else None."""
        children = self.children()
        return children[0].num_classes() if children else None

    def get_class_indexing(self) -> dict[str, int]:
        """Class name -> label where the source knows it, else empty."""
        children = self.children()
        return children[0].get_class_indexing() if children else {}

    def _first_values(self) -> Values:
        for row in self.rows(Pass(config.iterator_seed())):
            return row()
        raise ConfigError("dataset: expected at least one row, got none. Is batch_size larger than the data?")

    # --- walking

    def __iter__(self) -> TupleIterator:
        return self.create_tuple_iterator(num_epochs=1)

    def create_tuple_iterator(
        self, columns: ColumnNames | None = None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = True
    ) -> TupleIterator:
        """Rows as lists, one `for` over the iterator for each epoch. `do_copy` changes nothing: rows are own copies."""
        chosen = checks.column_names("create_tuple_iterator", columns)
        return TupleIterator(self.rows, self.get_col_names(), chosen, num_epochs, output_numpy)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = True
    ) -> DictIterator:
        """Rows as dictionaries, one `for` over the iterator for each epoch."""
        return DictIterator(self.rows, self.get_col_names(), num_epochs, output_numpy)

    # --- steps

    def map(
        self, operations: Operations, input_columns: ColumnNames | None = None,
        output_columns: ColumnNames | None = None, column_order: ColumnNames | None = None,
        num_parallel_workers: int | None = None, **more: Any,
    ) -> Dataset:  # fmt: skip
        """Apply transforms or functions, one after the other, to some columns of each row.

        Edges: without `input_columns` the first column is taken. As many outputs as inputs keep their places;
               otherwise the outputs come first. `column_order` picks and orders the columns at the end.
        """
        mapped = _STEPS["MapDataset"](self, operations, input_columns, output_columns, num_parallel_workers, **more)
        return mapped if column_order is None else mapped.project(column_order)

    def batch(
        self, batch_size: int | Callable[..., int], drop_remainder: bool = False,
        num_parallel_workers: int | None = None, **more: Any,
    ) -> Dataset:  # fmt: skip
        """Stack `batch_size` rows into one. The last, smaller batch is kept unless `drop_remainder`.

        batch_size   an int, or a function of a BatchInfo
        more         per_batch_map(list of values for each of input_columns ..., BatchInfo) -> lists for
                     output_columns; python_multiprocessing and max_rowsize change nothing
        """
        return _STEPS["BatchDataset"](self, batch_size, drop_remainder, num_parallel_workers, **more)

    def padded_batch(
        self, batch_size: int, drop_remainder: bool = False, num_parallel_workers: int | None = None,
        pad_info: Mapping[str, Any] | None = None,
    ) -> Dataset:  # fmt: skip
        """`batch` after padding. pad_info: column -> (shape with None for "the largest of the batch", value)."""
        return _STEPS["PaddedBatchDataset"](self, batch_size, drop_remainder, num_parallel_workers, pad_info)

    def bucket_batch_by_length(
        self, column_names: ColumnNames, bucket_boundaries: Sequence[int], bucket_batch_sizes: Sequence[int],
        element_length_function: Callable[..., int] | None = None, pad_info: Mapping[str, Any] | None = None,
        pad_to_bucket_boundary: bool = False, drop_remainder: bool = False,
    ) -> Dataset:  # fmt: skip
        """Batches of rows of similar length, padded. One batch size more than boundaries: the last bucket is open."""
        return _STEPS["BucketBatchByLengthDataset"](
            self,
            column_names,
            bucket_boundaries,
            bucket_batch_sizes,
            element_length_function,
            pad_info,
            pad_to_bucket_boundary,
            drop_remainder,
        )

    def shuffle(self, buffer_size: int) -> Dataset:
        """Draw rows at random from a buffer of the next `buffer_size` rows."""
        return _STEPS["ShuffleDataset"](self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Walk the data `count` times; None or -1: without end."""
        return _STEPS["RepeatDataset"](self, count)

    def take(self, count: int = -1) -> Dataset:
        """The first `count` rows; -1: all."""
        return _STEPS["TakeDataset"](self, count)

    def skip(self, count: int) -> Dataset:
        """All but the first `count` rows."""
        return _STEPS["SkipDataset"](self, count)

    def project(self, columns: ColumnNames) -> Dataset:
        """Only these columns, in this order."""
        return _STEPS["ProjectDataset"](self, columns)

    def rename(self, input_columns: ColumnNames, output_columns: ColumnNames) -> Dataset:
        """Other names for some columns."""
        return _STEPS["RenameDataset"](self, input_columns, output_columns)

    def filter(
        self, predicate: Callable[..., Any], input_columns: ColumnNames | None = None,
        num_parallel_workers: int | None = None,
    ) -> Dataset:  # fmt: skip
        """Rows for which `predicate` of the columns is true. Without `input_columns` it sees all of them."""
        return _STEPS["FilterDataset"](self, predicate, input_columns)

    def zip(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """Columns of several datasets side by side, until the shortest ends."""
        others = (datasets,) if isinstance(datasets, Dataset) else tuple(datasets)
        return _STEPS["ZipDataset"]((self, *others))

    def concat(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """Rows of several datasets, one dataset after the other."""
        others = (datasets,) if isinstance(datasets, Dataset) else tuple(datasets)
        return _STEPS["ConcatDataset"]((self, *others))

    def __add__(self, other: Dataset) -> Dataset:
        return self.concat(other)

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """Rows of the datasets that `func` makes of the columns of each row, one after the other; walks at once."""
        if not callable(func):
            raise TypeError(f"flat_map: expected a function, got {type(func).__name__}.")
        parts = [func(*row()) for row in self.rows(Pass(config.iterator_seed()))]
        for part in parts:
            if not isinstance(part, Dataset):
                raise TypeError(f"flat_map: expected a function that returns a dataset, got {type(part).__name__}.")
        if not parts:
            raise TypeError("flat_map: expected a dataset with rows, got none.")
        return parts[0].concat(parts[1:]) if len(parts) > 1 else parts[0]

    def reset(self) -> None:
        """Nothing to do: each iterator starts anew."""

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What `apply_func` makes of this dataset."""
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"apply: expected a function that returns a dataset, got {type(result).__name__} from it.")
        return result

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Write the rows of one walk into `num_files` MindRecord files."""
        importlib.import_module(f"{__package__}.mind_files").save(self, file_name, num_files, file_type)

    def split(self, sizes: Sequence[int] | Sequence[float], randomize: bool = True) -> list[Dataset]:
        """Disjoint parts of the data: ints that add up to its size, or fractions that add up to 1.

        Edges: the parts are disjoint in every walk, so what shuffles or draws below `split` does it once and for all.
        """
        total = self.get_dataset_size()
        counts = _part_sizes(sizes, total)
        seed = config.iterator_seed()
        order = [int(place) for place in np.random.default_rng(seed).permutation(total)] if randomize else range(total)
        ends = list(itertools.accumulate(counts))
        return [
            _STEPS["PartDataset"](self, order[end - count : end], seed) for end, count in zip(ends, counts, strict=True)
        ]


def _common_shapes(shapes: list[list[int | None]], new: Sequence[Sequence[int]]) -> list[list[int | None]]:
    if not shapes:
        return [list(shape) for shape in new]
    return [
        [size if size == other else None for size, other in zip(old, shape, strict=True)]
        for old, shape in zip(shapes, new, strict=True)
    ]


def _part_sizes(sizes: Sequence[int] | Sequence[float], total: int) -> list[int]:
    if total < 1:
        raise ConfigError(f"split: expected a dataset of known, finite size, got {total} rows. Add take(count).")
    if all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
        counts = [int(size) for size in sizes]
    elif all(isinstance(size, float) for size in sizes) and abs(sum(sizes) - 1.0) < 1e-9:
        counts = [int(np.floor(size * total + 0.5)) for size in sizes]
        counts[0] += total - sum(counts)
    else:
        raise ConfigError(f"split(sizes): expected ints, or floats with the sum 1, got {list(sizes)}.")
    if any(count < 1 for count in counts) or sum(counts) != total:
        raise ConfigError(f"split(sizes): expected positive parts with the sum {total}, got {counts}.")
    return counts
