"""acl.media: pictures whose bits are the same on a device and on a host."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from msdump.frontends import acl
from msdump.frontends.acl.media import RGB_888, RGBA_8888, UNKNOWN, YUV_SEMIPLANAR_420, YVU_SEMIPLANAR_420
from tests.frontends.acl.calls import ok

INVALID, UNSUPPORTED = 100000, 200006
media: Any = acl.media


def encoded(array: Any, kind: str = "PNG") -> tuple[int, int, bytes]:
    """Address and size of a picture in a file; the bytes must stay alive."""
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind)
    content = file.getvalue()
    return acl.util.bytes_to_ptr(content), len(content), content


def open_channel() -> int:
    channel = media.dvpp_create_channel_desc()
    ok(media.dvpp_create_channel(channel))
    return int(channel)


def described(**values: int) -> int:
    desc = int(media.dvpp_create_pic_desc())
    for name, value in values.items():
        ok(getattr(media, f"dvpp_set_pic_desc_{name}")(desc, value))
        assert getattr(media, f"dvpp_get_pic_desc_{name}")(desc) == value
    return desc


sizes = st.integers(32, 200)


@given(width=sizes, height=sizes, stride=st.none() | st.integers(0, 64), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_a_png_is_decoded_into_its_strides(width: int, height: int, stride: int | None, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    data, size, _content = encoded(pixels)
    assert media.dvpp_png_get_image_info(data, size) == (width, height, 3, 0)
    needed = ok(media.dvpp_png_predict_dec_size(data, size, RGB_888))
    assert needed == -(-width // 128) * 128 * 3 * (-(-height // 16) * 16)
    own = {} if stride is None else {"width_stride": 3 * width + stride, "height_stride": height}
    area = needed if stride is None else (3 * width + stride) * height
    address, channel = ok(media.dvpp_malloc(area)), open_channel()
    desc = described(data=address, size=area, format=RGB_888, **own)
    ok(media.dvpp_png_decode_async(channel, data, size, desc, 0))
    ok(acl.rt.synchronize_stream(0))
    row = media.dvpp_get_pic_desc_width_stride(desc)
    rows = acl.util.ptr_to_numpy(address, (area,), 2).view(np.uint8).reshape(-1, row)
    assert np.array_equal(rows[:height, : 3 * width].reshape(height, width, 3), pixels)
    assert not rows[height:].any() and not rows[:, 3 * width :].any()
    assert (media.dvpp_get_pic_desc_width(desc), media.dvpp_get_pic_desc_height(desc)) == (width, height)
    for result in (
        media.dvpp_destroy_pic_desc(desc),
        media.dvpp_destroy_channel(channel),
        media.dvpp_destroy_channel_desc(channel),
        media.dvpp_free(address),
    ):
        ok(result)


@pytest.mark.parametrize(
    ("shape", "format_", "code"),
    [
        ((40, 40, 4), RGB_888, UNSUPPORTED),
        ((40, 40), RGB_888, UNSUPPORTED),
        ((40, 40, 3), RGBA_8888, UNSUPPORTED),
        ((40, 40, 3), UNKNOWN, UNSUPPORTED),
        ((31, 40, 3), RGB_888, INVALID),
    ],
)
def test_what_a_device_decodes_otherwise_is_refused(shape: tuple[int, ...], format_: int, code: int) -> None:
    data, size, _content = encoded(np.zeros(shape, np.uint8))
    address, channel = ok(media.dvpp_malloc(2**20)), open_channel()
    desc = described(data=address, size=2**20, format=format_)
    assert media.dvpp_png_decode_async(channel, data, size, desc, 0) == code
    assert "expected" in acl.get_recent_err_msg()
    ok(media.dvpp_free(address))


def test_files_that_are_damaged() -> None:
    data, size, content = encoded(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    address, channel = ok(media.dvpp_malloc(2**20)), open_channel()
    desc = described(data=address, size=2**20, format=RGB_888)
    ok(media.dvpp_png_decode_async(channel, data, size // 2, desc, 0))
    assert acl.rt.synchronize_stream(0) == INVALID
    assert media.dvpp_png_get_image_info(data, 20) == (0, 0, 0, INVALID)
    assert media.dvpp_jpeg_get_image_info(data, size) == (0, 0, 0, INVALID)
    assert media.dvpp_png_decode_async(channel, data, size, described(size=8, data=address, format=RGB_888), 0)
    ok(media.dvpp_destroy_channel(channel))
    assert media.dvpp_png_decode_async(channel, data, size, desc, 0) == INVALID
    ok(media.dvpp_free(address))
    assert content


@pytest.mark.parametrize(("shape", "channels"), [((48, 56, 3), 3), ((48, 56), 1)])
def test_the_head_of_a_jpeg(shape: tuple[int, ...], channels: int) -> None:
    data, size, _content = encoded(np.zeros(shape, np.uint8), "JPEG")
    assert media.dvpp_jpeg_get_image_info(data, size) == (56, 48, channels, 0)
    with pytest.raises(AttributeError, match="Pillow"):
        _ = media.dvpp_jpeg_decode_async


def yuv(width: int, height: int, rows: Any = None) -> tuple[int, Any, dict[str, int]]:
    """Memory of a picture in YUV420SP, its rows, and its settings."""
    stride, high = -(-width // 16) * 16, -(-height // 2) * 2
    size = stride * high * 3 // 2
    address = ok(media.dvpp_malloc(size))
    view = acl.util.ptr_to_numpy(address, (size,), 2).view(np.uint8).reshape(-1, stride)
    keys = {"data": address, "size": size, "width": width, "height": height}
    return address, view, {**keys, "width_stride": stride, "height_stride": high, "format": YUV_SEMIPLANAR_420}


@given(st.data())
@settings(max_examples=20)
def test_a_part_is_a_copy(data: st.DataObject) -> None:
    width, height = (2 * data.draw(st.integers(5, 40)) for _ in "wh")
    left, top = (2 * data.draw(st.integers(0, size // 2 - 1)) for size in (width, height))
    right = left + 2 * data.draw(st.integers(1, (width - left) // 2)) - 1
    bottom = top + 2 * data.draw(st.integers(1, (height - top) // 2)) - 1
    source, old, settings_of_source = yuv(width, height)
    target, new, settings_of_target = yuv(right - left + 1, bottom - top + 1)
    old[...] = np.random.default_rng(0).integers(1, 256, old.shape, np.uint8)
    channel, region = open_channel(), media.dvpp_create_roi_config(left, right, top, bottom)
    descs = described(**settings_of_source), described(**settings_of_target)
    ok(media.dvpp_vpc_crop_async(channel, *descs, region, 0))
    ok(acl.rt.synchronize_stream(0))
    wide, high = right - left + 1, bottom - top + 1
    assert np.array_equal(new[:high, :wide], old[top : bottom + 1, left : right + 1])
    colours = old[height + top // 2 : height + (bottom + 1) // 2, left : right + 1]
    assert np.array_equal(new[high : high + high // 2, :wide], colours)
    assert not new[:, wide:].any()
    for address in (source, target):
        ok(media.dvpp_free(address))
    ok(media.dvpp_destroy_roi_config(region))


@pytest.mark.parametrize(
    ("area", "changes", "code"),
    [
        ((0, 15, 0, 15), {"width": 32}, UNSUPPORTED),
        ((0, 15, 0, 15), {"format": YVU_SEMIPLANAR_420}, UNSUPPORTED),
        ((1, 16, 0, 15), {}, INVALID),
        ((0, 15, 0, 14), {}, INVALID),
        ((48, 63, 0, 15), {}, INVALID),
        ((0, 15, 0, 15), {"size": 100}, INVALID),
        ((0, 15, 0, 15), {"width_stride": 8}, INVALID),
    ],
)
def test_parts_that_a_device_would_compute_are_refused(
    area: tuple[int, ...], changes: dict[str, int], code: int
) -> None:
    source, _, settings_of_source = yuv(48, 48)
    target, _, settings_of_target = yuv(16, 16)
    descs = described(**settings_of_source), described(**{**settings_of_target, **changes})
    region = media.dvpp_create_roi_config(*area)
    assert media.dvpp_vpc_crop_async(open_channel(), *descs, region, 0) == code
    for address in (source, target):
        ok(media.dvpp_free(address))


def test_wrong_settings() -> None:
    assert media.dvpp_create_roi_config(5, 4, 0, 1) == 0
    desc = media.dvpp_create_pic_desc()
    assert media.dvpp_set_pic_desc_width(desc, -1) == INVALID
    assert media.dvpp_set_pic_desc_width(0, 1) == INVALID
    assert media.dvpp_get_pic_desc_width(0) == 0 and media.dvpp_get_pic_desc_ret_code(desc) == 0
