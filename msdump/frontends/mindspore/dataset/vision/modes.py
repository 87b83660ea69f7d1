"""Names for ways to resize and ways to pad."""

from __future__ import annotations

from enum import Enum, IntEnum


class Inter(IntEnum):
    """How `Resize` computes a pixel between pixels."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, Enum):
    """What pads an image: one value, its edge, or its mirror image without or with the edge itself."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"
