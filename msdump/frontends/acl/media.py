"""acl.media: of the image units of a device (DVPP), what has the same bits on a host.

A PNG holds its pixels without loss, and a part of a picture is a copy of its rows. Everything else - JPEG, scaling,
conversion of colours - a device computes with rules of its own that no library on a host has: numbers that look like
those of a device and are not would reach the dump. A script does that itself, with Pillow for example.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import (
    CallError,
    as_int,
    bad_argument,
    report,
    returns_code,
    returns_plain,
    returns_value,
)
from msdump.frontends.acl.memory import DEVICE
from msdump.frontends.acl.process import process
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    import PIL.Image

YUV_SEMIPLANAR_420, YVU_SEMIPLANAR_420, RGB_888, RGBA_8888, UNKNOWN = 1, 2, 12, 16, 10000
_PNG_MAGIC, _PNG_HEAD_BYTES = b"\x89PNG\r\n\x1a\n", 30
# Colour type of a PNG -> its channels. Those with a palette (3) are refused by DVPP as well.
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
_RGB = 2
_SMALLEST, _LARGEST = 32, 4096


@dataclass(slots=True)
class DvppChannel:
    """`is_open` between `dvpp_create_channel` and `dvpp_destroy_channel`."""

    is_open: bool = False


@dataclass(slots=True)
class PictureDesc:
    """A picture in memory. Sizes in pixels, strides in bytes of a row and in rows; 0: not set."""

    data: int = 0
    size: int = 0
    format: int = 0
    width: int = 0
    height: int = 0
    width_stride: int = 0
    height_stride: int = 0
    ret_code: int = 0

    def rows(self, name: str, is_written: bool = False) -> Array:
        """All rows, as (rows, bytes of a row).   Raises: CallError 100000 when they are not in the memory."""
        count = self.height_stride * (3 if self.format in _SEMIPLANAR else 2) // 2
        needed = count * self.width_stride
        if self.size < needed:
            raise bad_argument(f"{name}: expected at least {needed} bytes for its strides, got size {self.size}")
        memory = process.memory.array(self.data, needed, f"{name}.data", is_written)
        return memory.reshape(count, self.width_stride)


_SEMIPLANAR = (YUV_SEMIPLANAR_420, YVU_SEMIPLANAR_420)


@dataclass(frozen=True, slots=True)
class PixelRegion:
    """Pixels from `left` to `right` and from `top` to `bottom`, both included."""

    left: int
    right: int
    top: int
    bottom: int

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.right - self.left + 1, self.bottom - self.top + 1


# -- memory and channels ------------------------------------------------------------------------------


@returns_value("acldvppMalloc", 0)
def dvpp_malloc(size: int) -> int:
    """`ptr, ret = acl.media.dvpp_malloc(size)`: memory of the device, as that of `acl.rt.malloc`."""
    return process.memory.allocate(as_int(size, "size"), DEVICE)


@returns_code("acldvppFree")
def dvpp_free(dev_ptr: int) -> None:
    """Free memory of `dvpp_malloc`."""
    process.memory.free(as_int(dev_ptr, "dev_ptr"), DEVICE)


@returns_plain("acldvppCreateChannelDesc", 0)
def dvpp_create_channel_desc() -> int:
    """`channel_desc = acl.media.dvpp_create_channel_desc()`."""
    return process.handles.add(DvppChannel())


@returns_code("acldvppDestroyChannelDesc")
def dvpp_destroy_channel_desc(channel_desc: int) -> None:
    process.handles.remove(as_int(channel_desc, "channel_desc"), DvppChannel, "channel_desc")


@returns_code("acldvppCreateChannel")
def dvpp_create_channel(channel_desc: int) -> None:
    """Open the channel that a description stands for."""
    process.handles.find(as_int(channel_desc, "channel_desc"), DvppChannel, "channel_desc").is_open = True


@returns_code("acldvppDestroyChannel")
def dvpp_destroy_channel(channel_desc: int) -> None:
    """Close it; the description stays."""
    _channel(channel_desc).is_open = False


# -- descriptions -------------------------------------------------------------------------------------


@returns_plain("acldvppCreatePicDesc", 0)
def dvpp_create_pic_desc() -> int:
    """`pic_desc = acl.media.dvpp_create_pic_desc()`: a picture whose settings are all 0."""
    return process.handles.add(PictureDesc())


@returns_code("acldvppDestroyPicDesc")
def dvpp_destroy_pic_desc(pic_desc: int) -> None:
    process.handles.remove(as_int(pic_desc, "pic_desc"), PictureDesc, "pic_desc")


def _setter(setting: str) -> Callable[[int, int], int]:
    @returns_code(f"acldvppSetPicDesc{setting.title().replace('_', '')}")
    def call(pic_desc: int, value: int) -> None:
        number = as_int(value, setting)
        if number < 0:
            raise bad_argument(f"{setting}: expected a number from 0 on, got {number}")
        setattr(_picture(pic_desc, "pic_desc"), setting, number)

    call.__doc__ = f"`ret = acl.media.dvpp_set_pic_desc_{setting}(pic_desc, {setting})`."
    return call


def _getter(setting: str) -> Callable[[int], int]:
    @returns_plain(f"acldvppGetPicDesc{setting.title().replace('_', '')}", 0)
    def call(pic_desc: int) -> int:
        return int(getattr(_picture(pic_desc, "pic_desc"), setting))

    call.__doc__ = f"`{setting} = acl.media.dvpp_get_pic_desc_{setting}(pic_desc)`."
    return call


dvpp_set_pic_desc_data, dvpp_get_pic_desc_data = _setter("data"), _getter("data")
dvpp_set_pic_desc_size, dvpp_get_pic_desc_size = _setter("size"), _getter("size")
dvpp_set_pic_desc_format, dvpp_get_pic_desc_format = _setter("format"), _getter("format")
dvpp_set_pic_desc_width, dvpp_get_pic_desc_width = _setter("width"), _getter("width")
dvpp_set_pic_desc_height, dvpp_get_pic_desc_height = _setter("height"), _getter("height")
dvpp_set_pic_desc_width_stride, dvpp_get_pic_desc_width_stride = _setter("width_stride"), _getter("width_stride")
dvpp_set_pic_desc_height_stride, dvpp_get_pic_desc_height_stride = _setter("height_stride"), _getter("height_stride")
dvpp_get_pic_desc_ret_code = _getter("ret_code")


@returns_plain("acldvppCreateRoiConfig", 0)
def dvpp_create_roi_config(left: int, right: int, top: int, bottom: int) -> int:
    """`roi = acl.media.dvpp_create_roi_config(left, right, top, bottom)`: a part of a picture, with its last pixels."""
    sides = (as_int(left, "left"), as_int(right, "right"), as_int(top, "top"), as_int(bottom, "bottom"))
    if not (0 <= sides[0] <= sides[1] and 0 <= sides[2] <= sides[3]):
        raise bad_argument(f"left, right, top, bottom: expected 0 <= left <= right and 0 <= top <= bottom, got {sides}")
    return process.handles.add(PixelRegion(*sides))


@returns_code("acldvppDestroyRoiConfig")
def dvpp_destroy_roi_config(roi_config: int) -> None:
    process.handles.remove(as_int(roi_config, "roi_config"), PixelRegion, "roi_config")


# -- pictures in files --------------------------------------------------------------------------------


def dvpp_png_get_image_info(data: int, size: int) -> tuple[int, int, int, int]:
    """`width, height, components, ret = acl.media.dvpp_png_get_image_info(data, size)`: from the head of a PNG."""
    try:
        width, height, _, kind = _png_head(_encoded(data, size))
    except CallError as error:
        return 0, 0, 0, report("acldvppPngGetImageInfo", error)
    return width, height, _CHANNELS[kind], codes.SUCCESS


@returns_value("acldvppPngPredictDecSize", 0)
def dvpp_png_predict_dec_size(data: int, data_size: int, output_pixel_format: int) -> int:
    """`dec_size, ret = acl.media.dvpp_png_predict_dec_size(data, data_size, output_pixel_format)`.

    Bytes of the pixels with rows of a multiple of 128 pixels, and a multiple of 16 rows.
    Source: CANN, `acldvppPngPredictDecSize`.
    """
    width, height, depth, _ = _png_head(_encoded(data, data_size))
    chosen = as_int(output_pixel_format, "output_pixel_format")
    if chosen not in (RGB_888, RGBA_8888, UNKNOWN):
        raise bad_argument(f"output_pixel_format: expected {RGB_888}, {RGBA_8888} or {UNKNOWN}, got {chosen}")
    _check_png_size(width, height)
    channels = 3 if chosen == RGB_888 else 4
    return (_aligned(width, 128) * depth * channels + 7) // 8 * _aligned(height, 16)


@returns_code("acldvppPngDecodeAsync")
def dvpp_png_decode_async(channel_desc: int, data: int, size: int, output_desc: int, stream: int) -> None:
    """Let a stream decode a PNG of three channels with 8 bits into RGB_888; bit for bit what a device gives.

    The strides of `output_desc` that are 0 become those of `dvpp_png_predict_dec_size`.
    """
    _check_open(channel_desc)
    encoded, output = _encoded(data, size), _picture(output_desc, "output_desc")
    width, height, depth, kind = _png_head(encoded)
    _check_png_size(width, height)
    if output.format != RGB_888 or kind != _RGB or depth != 8:
        raise CallError(
            codes.FEATURE_UNSUPPORTED,
            "output_desc.format, data: expected PIXEL_FORMAT_RGB_888 and a PNG of three channels with 8 bits, got "
            f"format {output.format} and colour type {kind} with {depth} bits. {_DO_IT_YOURSELF}",
        )
    output.width, output.height = width, height
    output.width_stride = output.width_stride or _aligned(width, 128) * 3
    output.height_stride = output.height_stride or _aligned(height, 16)
    if output.width_stride < 3 * width or output.height_stride < height:
        raise bad_argument("output_desc: expected strides that hold the picture, got smaller ones")
    rows = output.rows("output_desc", is_written=True)[:height, : 3 * width]

    def work() -> None:
        rows[...] = _pixels(encoded).reshape(height, 3 * width)

    process.stream(as_int(stream, "stream")).submit(work)


def dvpp_jpeg_get_image_info(data: int, size: int) -> tuple[int, int, int, int]:
    """`width, height, components, ret = acl.media.dvpp_jpeg_get_image_info(data, size)`: from the head of a JPEG."""
    try:
        encoded = _encoded(data, size)
        with _opened(encoded, "JPEG") as image:
            width, height = image.size
            channels = len(image.getbands())
    except CallError as error:
        return 0, 0, 0, report("acldvppJpegGetImageInfo", error)
    return width, height, channels, codes.SUCCESS


# -- parts of pictures --------------------------------------------------------------------------------


@returns_code("acldvppVpcCropAsync")
def dvpp_vpc_crop_async(channel_desc: int, input_desc: int, output_desc: int, crop_area: int, stream: int) -> None:
    """Let a stream copy a part of a picture in YUV420SP to another of the same format and of the size of the part.

    A part that would have to be scaled, or another format, is refused. The part begins at even pixels and ends at odd
    ones, as DVPP demands.
    """
    _check_open(channel_desc)
    source, target = _picture(input_desc, "input_desc"), _picture(output_desc, "output_desc")
    area = process.handles.find(as_int(crop_area, "crop_area"), PixelRegion, "crop_area")
    if area.left % 2 or area.top % 2 or not (area.right % 2 and area.bottom % 2):
        raise bad_argument(f"crop_area: expected even left and top, odd right and bottom, got {area}")
    if area.right >= source.width or area.bottom >= source.height:
        raise bad_argument(f"crop_area: expected a part of {source.width}x{source.height} pixels, got {area}")
    formats = source.format, target.format
    if formats[0] != formats[1] or formats[0] not in _SEMIPLANAR or (target.width, target.height) != area.size:
        raise CallError(
            codes.FEATURE_UNSUPPORTED,
            f"output_desc: expected {area.size[0]}x{area.size[1]} pixels in the format of input_desc, YUV420SP, got "
            f"{target.width}x{target.height} in format {formats[1]} from {formats[0]}. {_DO_IT_YOURSELF}",
        )
    parts = [
        (_plane(target, is_chroma, "output_desc", True), _plane(source, is_chroma, "input_desc"))
        for is_chroma in (False, True)
    ]

    def work() -> None:
        for is_chroma, (new, old) in enumerate(parts):
            first, count = area.top >> is_chroma, area.size[1] >> is_chroma
            new[:count, : area.size[0]] = old[first : first + count, area.left : area.right + 1]

    process.stream(as_int(stream, "stream")).submit(work)


# -- parts --------------------------------------------------------------------------------------------

_DO_IT_YOURSELF = (
    "A device computes anything else with rules that no library of a host has. Do it in the script, with Pillow for "
    "example, and copy the result to the input of the model"
)


def _channel(handle: int) -> DvppChannel:
    return process.handles.find(as_int(handle, "channel_desc"), DvppChannel, "channel_desc")


def _check_open(handle: int) -> None:
    if not _channel(handle).is_open:
        raise bad_argument("channel_desc: expected a channel that dvpp_create_channel has opened, got a closed one")


def _picture(handle: int, name: str) -> PictureDesc:
    return process.handles.find(as_int(handle, name), PictureDesc, name)


def _encoded(data: int, size: int) -> bytes:
    return process.memory.array(as_int(data, "data"), as_int(size, "size"), "data").tobytes()


def _png_head(encoded: bytes) -> tuple[int, int, int, int]:
    """(width, height, bits of a channel, colour type).   Raises: CallError 100000."""
    if len(encoded) < _PNG_HEAD_BYTES or not encoded.startswith(_PNG_MAGIC):
        raise bad_argument(f"data: expected a PNG of at least {_PNG_HEAD_BYTES} bytes, got none")
    width, height = (int.from_bytes(encoded[first : first + 4], "big") for first in (16, 20))
    if encoded[25] not in _CHANNELS:
        raise bad_argument(f"data: expected a PNG of colour type 0, 2, 4 or 6, got {encoded[25]}")
    return width, height, encoded[24], encoded[25]


def _check_png_size(width: int, height: int) -> None:
    if not (_SMALLEST <= width <= _LARGEST and _SMALLEST <= height <= _LARGEST):
        raise bad_argument(f"data: expected {_SMALLEST} to {_LARGEST} pixels a side, got {width}x{height}")


def _opened(encoded: bytes, kind: str) -> PIL.Image.Image:
    """A picture whose head is read.   Raises: CallError 100000; ImportError that says how to install Pillow."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("acl.media: decoding needs Pillow. Install it: pip install 'msdump[images]'") from error

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large pictures
            return Image.open(io.BytesIO(encoded), formats=[kind])
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise bad_argument(f"data: expected a {kind}, got {error}") from error


def _pixels(encoded: bytes) -> Array:
    """(height, width, 3).   Raises: CallError 100000 for a damaged PNG."""
    with _opened(encoded, "PNG") as image:
        try:
            return np.asarray(image)
        except (OSError, ValueError, SyntaxError) as error:
            raise bad_argument(f"data: expected a whole PNG, got {error}") from error


def _plane(picture: PictureDesc, is_chroma: bool, name: str, is_written: bool = False) -> Array:
    """Rows of the brightness, or of the colours behind it."""
    if picture.width_stride < picture.width or picture.height_stride < picture.height:
        raise bad_argument(f"{name}: expected strides that hold the picture, got smaller ones")
    rows = picture.rows(name, is_written)
    return rows[picture.height_stride :] if is_chroma else rows[: picture.height_stride]


def _aligned(value: int, step: int) -> int:
    return -(-value // step) * step


__all__ = sorted(name for name in globals() if name.startswith("dvpp_"))


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"acl.media.{name}: expected a call of DVPP that decodes a PNG or copies a part of a picture, got one of the "
        "image units whose bits no library of a host gives. Decode, scale and convert the image in the script, with "
        "Pillow for example, and copy the result to the input of the model."
    )
