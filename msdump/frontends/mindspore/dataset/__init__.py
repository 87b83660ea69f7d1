"""`mindspore.dataset`: real data into a training loop, with MindSpore's names."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.frontends.mindspore.dataset import config, mapping, transforms, vision  # noqa: F401  (a step)
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
from msdump.frontends.mindspore.dataset.steps import ZipDataset
from msdump.frontends.mindspore.missing import explain_missing

__all__ = [
    "Cifar10Dataset",
    "Dataset",
    "DistributedSampler",
    "GeneratorDataset",
    "ImageFolderDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "SubsetSampler",
    "config",
    "transforms",
    "vision",
    "zip",
]


def zip(datasets: Sequence[Dataset]) -> Dataset:
    """Columns of several datasets side by side, until the shortest ends."""
    return ZipDataset(datasets)


__getattr__ = explain_missing(__name__)
