"""`mindspore.dataset`: real data into a training loop, with MindSpore's names."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.frontends.mindspore.dataset import config, transforms, vision
from msdump.frontends.mindspore.dataset.batching import (
    BatchDataset,
    BatchInfo,
    BucketBatchByLengthDataset,
    PaddedBatchDataset,
)
from msdump.frontends.mindspore.dataset.callbacks import DSCallback
from msdump.frontends.mindspore.dataset.config import (
    get_num_parallel_workers,
    get_seed,
    set_seed,
)
from msdump.frontends.mindspore.dataset.generator import GeneratorDataset
from msdump.frontends.mindspore.dataset.image_files import Cifar10Dataset, ImageFolderDataset, MnistDataset
from msdump.frontends.mindspore.dataset.iterators import DictIterator, TupleIterator
from msdump.frontends.mindspore.dataset.mapping import MapDataset
from msdump.frontends.mindspore.dataset.pipeline import Dataset
from msdump.frontends.mindspore.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    IterSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
    select_sampler,
)
from msdump.frontends.mindspore.dataset.schema import Schema
from msdump.frontends.mindspore.dataset.sources import (
    MappableDataset,
    NumpySlicesDataset,
    PaddedDataset,
    SourceDataset,
)
from msdump.frontends.mindspore.dataset.steps import (
    ConcatDataset,
    FilterDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)
from msdump.frontends.mindspore.names import explain_missing, publish_all


def zip(datasets: Sequence[Dataset]) -> Dataset:
    """Columns of several datasets side by side, until the shortest ends."""
    if not isinstance(datasets, (tuple, list)) or not datasets:
        raise TypeError(f"zip(datasets): expected a tuple of datasets, got {type(datasets).__name__}.")
    return ZipDataset(datasets)


publish_all(__name__, "config", "transforms", "vision")

__getattr__ = explain_missing(__name__)
