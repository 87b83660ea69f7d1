"""`mindspore.dataset.vision`: transforms of images."""

from __future__ import annotations

from msdump.frontends.mindspore.dataset.vision.geometry import (
    CenterCrop,
    Crop,
    HorizontalFlip,
    Pad,
    RandomCrop,
    RandomCropDecodeResize,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    VerticalFlip,
)
from msdump.frontends.mindspore.dataset.vision.modes import Border, Inter
from msdump.frontends.mindspore.dataset.vision.pixels import (
    HWC2CHW,
    Decode,
    Grayscale,
    Invert,
    Normalize,
    Rescale,
    ToNumpy,
    ToPIL,
    ToTensor,
    ToType,
)
from msdump.frontends.mindspore.missing import explain_missing

__all__ = [
    "HWC2CHW",
    "Border",
    "CenterCrop",
    "Crop",
    "Decode",
    "Grayscale",
    "HorizontalFlip",
    "Inter",
    "Invert",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomCropDecodeResize",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Rescale",
    "Resize",
    "ToNumpy",
    "ToPIL",
    "ToTensor",
    "ToType",
    "VerticalFlip",
]
__getattr__ = explain_missing(__name__)
