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
from msdump.frontends.mindspore.dataset.vision.utils import Border, Inter
from msdump.frontends.mindspore.names import explain_missing, publish_all

publish_all(__name__)

__getattr__ = explain_missing(__name__)
