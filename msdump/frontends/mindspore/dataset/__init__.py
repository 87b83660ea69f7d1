"""`mindspore.dataset`: real data into a training loop, with MindSpore's names."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.frontends.mindspore.dataset import config, mapping, steps, transforms, vision
from msdump.frontends.mindspore.dataset.image_files import Cifar10Dataset, ImageFolderDataset, MnistDataset
from msdump.frontends.mindspore.dataset.pipeline import Dataset
from msdump.frontends.mindspore.dataset.samplers import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
)
from msdump.frontends.mindspore.dataset.sources import GeneratorDataset, NumpySlicesDataset
from msdump.frontends.mindspore.names import explain_missing, publish_all


def zip(datasets: Sequence[Dataset]) -> Dataset:
    """Columns of several datasets side by side, until the shortest ends."""
    return steps.ZipDataset(datasets)


publish_all(__name__, "config", "transforms", "vision")

__getattr__ = explain_missing(__name__)
