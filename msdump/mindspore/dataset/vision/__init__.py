"""`mindspore.dataset.vision`: transforms of images."""

from __future__ import annotations

from msdump.mindspore.dataset.transforms import not_random
from msdump.mindspore.dataset.vision.boxes import (
    BoundingBoxAugment,
    RandomCropWithBBox,
    RandomHorizontalFlipWithBBox,
    RandomResizedCropWithBBox,
    RandomResizeWithBBox,
    RandomVerticalFlipWithBBox,
    ResizeWithBBox,
)
from msdump.mindspore.dataset.vision.channels import ConvertColor, Grayscale, RandomGrayscale
from msdump.mindspore.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustGamma,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    HsvToRgb,
    Invert,
    Posterize,
    RgbToHsv,
    Solarize,
)
from msdump.mindspore.dataset.vision.files import (
    encode_jpeg,
    encode_png,
    get_image_num_channels,
    get_image_size,
    read_file,
    read_image,
    write_file,
    write_jpeg,
    write_png,
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
from msdump.mindspore.dataset.vision.normal import LinearTransformation, NormalizePad
from msdump.mindspore.dataset.vision.patches import (
    CutOut,
    Erase,
    FiveCrop,
    GaussianBlur,
    PadToSize,
    RandomErasing,
    RandomResize,
    ResizedCrop,
    SlicePatches,
    TenCrop,
)
from msdump.mindspore.dataset.vision.pixels import (
    HWC2CHW,
    Decode,
    Normalize,
    Rescale,
    ToNumpy,
    ToPIL,
    ToTensor,
    ToType,
)
from msdump.mindspore.dataset.vision.policies import (
    AutoAugment,
    RandAugment,
    RandomSelectSubpolicy,
    TrivialAugmentWide,
    UniformAugment,
)
from msdump.mindspore.dataset.vision.randoms import (
    RandomAdjustSharpness,
    RandomAutoContrast,
    RandomColor,
    RandomColorAdjust,
    RandomEqualize,
    RandomInvert,
    RandomLighting,
    RandomPosterize,
    RandomSharpness,
    RandomSolarize,
)
from msdump.mindspore.dataset.vision.utils import (
    AutoAugmentPolicy,
    Border,
    ConvertMode,
    ImageBatchFormat,
    ImageReadMode,
    Inter,
    SliceMode,
)
from msdump.mindspore.dataset.vision.warp import (
    Affine,
    Perspective,
    RandomAffine,
    RandomPerspective,
    RandomRotation,
    Rotate,
)
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__)

__getattr__ = explain_missing(__name__)
