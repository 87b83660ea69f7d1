"""`mindspore.dataset`: real data into a training loop, with MindSpore's names."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.mindspore.dataset import config, text, transforms, vision
from msdump.mindspore.dataset.annotated import CocoDataset, VOCDataset
from msdump.mindspore.dataset.batching import BatchDataset, BatchInfo, BucketBatchByLengthDataset, PaddedBatchDataset
from msdump.mindspore.dataset.config import (
    get_callback_timeout,
    get_debug_mode,
    get_enable_shared_mem,
    get_enable_watchdog,
    get_multiprocessing_timeout_interval,
    get_num_parallel_workers,
    get_seed,
    set_seed,
)
from msdump.mindspore.dataset.generator import GeneratorDataset
from msdump.mindspore.dataset.image_files import (
    Cifar10Dataset,
    Cifar100Dataset,
    FashionMnistDataset,
    ImageFolderDataset,
    KMnistDataset,
    MnistDataset,
)
from msdump.mindspore.dataset.iterators import DictIterator, TupleIterator
from msdump.mindspore.dataset.mind_files import MindDataset
from msdump.mindspore.dataset.pipeline import Dataset
from msdump.mindspore.dataset.samplers import (
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
from msdump.mindspore.dataset.schema import Schema
from msdump.mindspore.dataset.sources import MappableDataset, NumpySlicesDataset, PaddedDataset, SourceDataset
from msdump.mindspore.dataset.steps import (
    ConcatDataset,
    FilterDataset,
    MapDataset,
    ProjectDataset,
    RenameDataset,
    RepeatDataset,
    ShuffleDataset,
    SkipDataset,
    TakeDataset,
    ZipDataset,
)
from msdump.mindspore.dataset.text_files import CSVDataset, Shuffle, TextFileDataset
from msdump.mindspore.dataset.vision.pixels import ToNumpy
from msdump.mindspore.names import explain_missing, publish_all


def zip(datasets: Sequence[Dataset]) -> Dataset:
    """Columns of several datasets side by side, until the shortest ends."""
    if not isinstance(datasets, (tuple, list)) or not datasets:
        raise TypeError(f"zip(datasets): expected a tuple of datasets, got {type(datasets).__name__}.")
    return ZipDataset(datasets)


publish_all(__name__, "config", "text", "transforms", "vision")

__getattr__ = explain_missing(__name__)
