"""`mindspore.dataset.vision`: transforms of images."""

from __future__ import annotations

from msdump.mindspore.dataset.transforms import not_random
from msdump.mindspore.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    ConvertColor,
    Equalize,
    Grayscale,
    Invert,
    Posterize,
    RandomGrayscale,
    Solarize,
)
from msdump.mindspore.dataset.vision.geometry import (
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
from msdump.mindspore.dataset.vision.mixing import CutMixBatch, MixUp, MixUpBatch
from msdump.mindspore.dataset.vision.patches import CutOut, GaussianBlur, RandomErasing, RandomResize, SlicePatches
from msdump.mindspore.dataset.vision.pixels import *
from msdump.mindspore.dataset.vision.policies import AutoAugment, RandAugment
from msdump.mindspore.dataset.vision.randoms import (
    RandomColor,
    RandomColorAdjust,
    RandomPosterize,
    RandomSelectSubpolicy,
    RandomSharpness,
    RandomSolarize,
)
from msdump.mindspore.dataset.vision.utils import *
from msdump.mindspore.dataset.vision.warp import Affine, RandomAffine, RandomRotation, Rotate
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__)

__getattr__ = explain_missing(__name__)
