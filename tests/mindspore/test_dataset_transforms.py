from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.common import dtype as mstype
from msdump.mindspore.dataset import config, transforms, vision
from msdump.mindspore.dataset.vision import Border, Inter
from msdump.tensors.arrays import Array

quick = settings(max_examples=40, deadline=None)
METHODS = list(Inter)


def images(dtype: Any = np.uint8, channels: tuple[int, ...] = (1, 3)) -> st.SearchStrategy[Array]:
    elements = st.floats(-100, 100, width=32) if np.dtype(dtype).kind == "f" else None
    shape = st.tuples(st.integers(1, 12), st.integers(1, 12), st.sampled_from(channels))
    return shape.flatmap(lambda sides: hnp.arrays(dtype, sides, elements=elements))


sides = st.integers(1, 20)


@quick
@given(image=images(), height=sides, width=sides, method=st.sampled_from(METHODS))
def test_resize_shape_dtype_and_planes(image: Array, height: int, width: int, method: Inter) -> None:
    resized = vision.Resize((height, width), method)(image)
    assert (resized.shape, resized.dtype) == ((height, width, image.shape[2]), np.uint8)
    # Each channel is resized alone, and a 2-d image is a channel.
    for channel in range(image.shape[2]):
        alone = vision.Resize((height, width), method)(image[:, :, channel])
        np.testing.assert_array_equal(resized[:, :, channel], alone)


@quick
@given(
    value=st.floats(-100, 100, width=32),
    size=st.tuples(sides, sides),
    new=st.tuples(sides, sides),
    method=st.sampled_from(METHODS),
)
def test_resize_keeps_a_flat_image_flat(
    value: float, size: tuple[int, int], new: tuple[int, int], method: Inter
) -> None:
    resized = vision.Resize(new, method)(np.full((*size, 1), value, np.float32))
    np.testing.assert_allclose(resized, value, rtol=1e-5, atol=1e-5)


@quick
@given(image=images(np.float32), new=st.tuples(sides, sides))
def test_linear_resize_stays_between_the_extremes(image: Array, new: tuple[int, int]) -> None:
    resized = vision.Resize(new)(image)
    assert image.min() - 1e-4 <= resized.min() <= resized.max() <= image.max() + 1e-4


@quick
@given(image=images(np.float32), factor=st.integers(1, 4))
def test_area_of_whole_blocks_is_their_mean(image: Array, factor: int) -> None:
    large = image.repeat(factor, 0).repeat(factor, 1)
    np.testing.assert_allclose(vision.Resize(image.shape[:2], Inter.AREA)(large), image, rtol=1e-5, atol=1e-4)


@quick
@given(
    image=images(np.float32, channels=(1,)),
    new=st.tuples(sides, sides),
    method=st.sampled_from([Inter.ANTIALIAS, Inter.PILCUBIC]),
)
def test_filtered_resize_agrees_with_pillow(image: Array, new: tuple[int, int], method: Inter) -> None:
    pillow = pytest.importorskip("PIL.Image")
    resample = {Inter.ANTIALIAS: pillow.Resampling.LANCZOS, Inter.PILCUBIC: pillow.Resampling.BICUBIC}[method]
    # Floats: with uint8 Pillow rounds and clips between the two axes as well.
    expected = np.asarray(pillow.fromarray(image[:, :, 0]).resize((new[1], new[0]), resample))
    np.testing.assert_allclose(vision.Resize(new, method)(image)[:, :, 0], expected, rtol=1e-4, atol=1e-3)


@quick
@given(image=images(channels=(3,)), grow=st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_enlarging_linearly_agrees_with_pillow(image: Array, grow: tuple[int, int]) -> None:
    pillow = pytest.importorskip("PIL.Image")
    new = (image.shape[0] + grow[0], image.shape[1] + grow[1])
    expected = np.asarray(pillow.fromarray(image).resize((new[1], new[0]), pillow.Resampling.BILINEAR)).astype(int)
    assert np.abs(vision.Resize(new)(image).astype(int) - expected).max() <= 1


def test_resize_examples() -> None:
    row = np.array([[[0.0], [10.0]]], np.float32)
    np.testing.assert_allclose(vision.Resize((1, 4))(row).ravel(), [0, 2.5, 7.5, 10])
    np.testing.assert_array_equal(vision.Resize((1, 4), Inter.NEAREST)(row).ravel(), [0, 0, 10, 10])
    # Without a filter: pixels 1 and 5 of a row of 8 are halfway between two pixels.
    line = np.arange(8, dtype=np.float32).reshape(1, 8, 1)
    np.testing.assert_allclose(vision.Resize((1, 2))(line).ravel(), [1.5, 5.5])
    assert vision.Resize(6)(np.zeros((12, 24, 3), np.uint8)).shape == (6, 12, 3)
    assert Inter.LINEAR is Inter.BILINEAR
    poisoned = np.zeros((2, 2), np.float32)
    poisoned[0, 0] = np.nan
    assert np.isnan(vision.Resize((4, 4))(poisoned)).sum() == 9


@quick
@given(image=images(), data=st.data())
def test_random_crop_is_a_window_of_the_padded_image(image: Array, data: st.DataObject) -> None:
    pad = data.draw(st.tuples(*[st.integers(0, 4)] * 4))
    height = data.draw(st.integers(1, image.shape[0] + pad[1] + pad[3]))
    width = data.draw(st.integers(1, image.shape[1] + pad[0] + pad[2]))
    crop = vision.RandomCrop([height, width], list(pad), fill_value=7)
    drawn = crop.draw(np.random.default_rng(data.draw(st.integers(0, 99))), image)
    padded = vision.Pad(list(pad), 7)(image)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(0, 1))  # type: ignore[call-overload]
    assert (windows == drawn.transpose(2, 0, 1)).all(axis=(2, 3, 4)).any()


@quick
@given(image=images(), pad=st.tuples(*[st.integers(0, 3)] * 4), mode=st.sampled_from(list(Border)))
def test_pad_surrounds_the_image(image: Array, pad: tuple[int, int, int, int], mode: Border) -> None:
    padded = vision.Pad(pad, 9, mode)(image)
    left, top, right, bottom = pad
    assert padded.shape == (image.shape[0] + top + bottom, image.shape[1] + left + right, image.shape[2])
    np.testing.assert_array_equal(padded[top : top + image.shape[0], left : left + image.shape[1]], image)
    if mode is Border.CONSTANT and top:
        assert (padded[:top] == 9).all()
    if mode is Border.EDGE and left:
        np.testing.assert_array_equal(padded[top, :left], np.repeat(image[:1, 0], left, 0))


@quick
@given(image=images())
def test_flips_undo_themselves(image: Array) -> None:
    for flip in (vision.HorizontalFlip(), vision.VerticalFlip()):
        np.testing.assert_array_equal(flip(flip(image)), image)
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(vision.RandomHorizontalFlip(1.0).draw(generator, image), image[:, ::-1])
    np.testing.assert_array_equal(vision.RandomVerticalFlip(1.0).draw(generator, image), image[::-1])
    assert vision.RandomHorizontalFlip(0.0).draw(generator, image) is image


@quick
@given(image=images(), size=st.tuples(sides, sides))
def test_center_crop(image: Array, size: tuple[int, int]) -> None:
    cropped = vision.CenterCrop(size)(image)
    assert cropped.shape == (*size, image.shape[2])
    if size[0] <= image.shape[0] and size[1] <= image.shape[1]:
        row, column = (image.shape[0] - size[0]) // 2, (image.shape[1] - size[1]) // 2
        np.testing.assert_array_equal(cropped, image[row : row + size[0], column : column + size[1]])
        np.testing.assert_array_equal(cropped, vision.Crop((row, column), size)(image))


@quick
@given(image=images(channels=(3,)))
def test_pixel_arithmetic(image: Array) -> None:
    mean, std = np.array([0.4, 0.5, 0.6]), np.array([0.2, 0.25, 0.5])
    scaled = vision.Rescale(1 / 255, 0.5)(image)
    np.testing.assert_allclose(scaled, image / 255 + 0.5, rtol=1e-6)
    normal = vision.Normalize(list(mean), list(std))(scaled)
    np.testing.assert_allclose(normal, (scaled - mean) / std, rtol=1e-5, atol=1e-5)
    planes = vision.Normalize(tuple(mean), tuple(std), is_hwc=False)(vision.HWC2CHW()(scaled))
    np.testing.assert_array_equal(planes, normal.transpose(2, 0, 1))
    assert (scaled.dtype, normal.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(vision.ToTensor()(image), image.transpose(2, 0, 1) / 255, rtol=1e-6)
    assert vision.ToTensor(np.float16)(image[:, :, 0]).shape == (1, *image.shape[:2])
    np.testing.assert_array_equal(vision.Invert()(image), 255 - image)
    assert vision.ToType(mstype.float64)(image).dtype == np.float64


def test_one_mean_counts_for_all_channels() -> None:
    """Also for channels that stand where others are expected: ToTensor, then Normalize."""
    planes = vision.ToTensor()(np.arange(32, dtype=np.uint8).reshape(4, 8))
    np.testing.assert_allclose(vision.Normalize([0.5], [0.25])(planes), (planes - 0.5) / 0.25, rtol=1e-6)
    picture = np.ones((3, 2, 2), np.float32)
    np.testing.assert_array_equal(vision.Normalize([0.5], [0.5], is_hwc=False)(picture), picture)


@quick
@given(image=images(channels=(3,)))
def test_pillow_images_pass_through(image: Array) -> None:
    pillow = pytest.importorskip("PIL.Image")
    picture = vision.ToPIL()(image)
    assert isinstance(picture, pillow.Image)
    np.testing.assert_array_equal(vision.ToNumpy()(picture), image)
    assert vision.Resize((4, 4))(picture).size == (4, 4)


def encoded(image: Array) -> Array:
    import io

    buffer = io.BytesIO()
    vision.ToPIL()(image).save(buffer, format="png")
    return np.frombuffer(buffer.getvalue(), np.uint8)


def test_decode() -> None:
    pytest.importorskip("PIL.Image")
    image = np.random.default_rng(0).integers(0, 256, (9, 5, 3), np.uint8)
    np.testing.assert_array_equal(vision.Decode()(encoded(image)), image)
    np.testing.assert_array_equal(vision.Decode()(encoded(image).tobytes()), image)
    assert vision.Decode(to_pil=True)(encoded(image)).size == (5, 9)
    generator = np.random.default_rng(0)
    assert vision.RandomCropDecodeResize((4, 6)).draw(generator, encoded(image)).shape == (4, 6, 3)
    with pytest.raises(FormatError, match="expected an image that Pillow can read"):
        vision.Decode()(encoded(image)[:20])
    with pytest.raises(ConfigError, match="1-d uint8"):
        vision.Decode()(image)


@quick
@given(image=images(), seed=st.integers(0, 50))
def test_random_resized_crop_fills_its_size(image: Array, seed: int) -> None:
    crop = vision.RandomResizedCrop((3, 5))
    first = crop.draw(np.random.default_rng(seed), image)
    assert first.shape == (3, 5, image.shape[2])
    np.testing.assert_array_equal(first, crop.draw(np.random.default_rng(seed), image))


@quick
@given(labels=hnp.arrays(np.int32, st.integers(1, 8), elements=st.integers(0, 4)), rate=st.floats(0, 0.9))
def test_one_hot(labels: Array, rate: float) -> None:
    hot = transforms.OneHot(5, rate)(labels)
    rows = hot.reshape(len(labels), 5)
    np.testing.assert_array_equal(rows.argmax(axis=1), labels)
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-6)
    assert hot.dtype == (np.float64 if rate else np.int32)
    assert transforms.OneHot(5)(labels[0]).shape == (5,)


def test_generic_transforms() -> None:
    assert transforms.TypeCast(mstype.int32)(np.array([1.7, -1.7])).tolist() == [1, -1]
    assert transforms.TypeCast("float16")(1).dtype == np.float16
    assert transforms.Fill(3)(np.zeros((2, 2), np.int8)).tolist() == [[3, 3], [3, 3]]
    double: Callable[[Any], Any] = lambda x: x * 2  # noqa: E731
    increment: Callable[[Any], Any] = lambda x: x + 1  # noqa: E731
    assert transforms.Compose([double, increment])(5) == 11
    assert transforms.Compose([transforms.Duplicate(), lambda a, b: a + b])(np.array(4)) == 8
    generator = np.random.default_rng(0)
    choices = {transforms.RandomChoice([double, increment]).draw(generator, 5) for _ in range(30)}
    applied = {transforms.RandomApply([double, increment]).draw(generator, 5) for _ in range(30)}
    assert (choices, applied) == ({10, 6}, {5, 11})


def test_transforms_of_any_data_give_what_mindspore_gives() -> None:
    values = np.array([1, 2, 2, 5, 3])
    cases: list[tuple[Callable[[Any], Any], Any, list[Any]]] = [
        (transforms.Concatenate(0, np.array([9]), np.array([8])), values, [9, 1, 2, 2, 5, 3, 8]),
        (transforms.Concatenate(0, np.array(["a"]), np.array(["bcd"])), np.array(["x"]), ["a", "x", "bcd"]),
        (transforms.Mask(transforms.Relational.EQ, 2), values, [False, True, True, False, False]),
        (transforms.Mask(transforms.Relational.GE, 3, mstype.int32), values, [0, 0, 0, 1, 1]),
        (transforms.PadEnd([7], -1), values, [1, 2, 2, 5, 3, -1, -1]),
        (transforms.PadEnd([3]), values, [1, 2, 2]),
        (transforms.PadEnd([3], "x"), np.array(["a", "b"]), ["a", "b", "x"]),
        (transforms.Slice(slice(0, 5, 2)), values, [1, 2, 3]),
        (transforms.Slice([0, 2]), values, [1, 2]),
        (transforms.Slice(-1), values, [3]),
        (transforms.Slice(slice(0, 1), [1, 0]), np.arange(6).reshape(2, 3), [[1, 0]]),
        (transforms.Fill("x"), np.array(["a", "b"]), ["x", "x"]),
    ]
    for transform, data, expected in cases:
        assert transform(data).tolist() == expected
    unique = transforms.Unique()(np.array([[5, 2], [2, 1]]))
    assert [part.tolist() for part in unique] == [[5, 2, 1], [0, 1, 1, 2], [1, 2, 1]]
    for transform, data in (
        (transforms.Concatenate(0, np.array([9.5])), values),
        (transforms.PadEnd([3], "x"), values),
        (transforms.PadEnd([3, 3]), values),
        (transforms.Slice([9]), values),
        (transforms.Unique(), values),
        (transforms.Fill("x"), values),
        (transforms.TypeCast(mstype.int32), np.array(["1"])),
    ):
        with pytest.raises(RuntimeError, match="expected"):
            transform(data)


def test_calling_by_hand_follows_the_seed() -> None:
    image = np.random.default_rng(0).integers(0, 256, (30, 30, 1), np.uint8)

    def draws() -> list[bytes]:
        config.set_seed(5)
        return [vision.RandomCrop(3)(image).tobytes() for _ in range(4)]

    first = draws()
    assert first == draws()
    assert len(set(first)) > 1
    config.set_seed(config.UNSET_SEED)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: vision.Resize((0, 3)), r"Resize\(size\): expected an int of at least 1, got 0"),
        (lambda: vision.Resize((1, 2, 3)), r"expected an int or \(height, width\), got \(1, 2, 3\)"),
        (lambda: vision.Resize(3)(np.zeros(9, np.uint8)), r"Is Decode\(\) missing"),
        (lambda: vision.Resize(3)(np.zeros((0, 2), np.uint8)), "with pixels"),
        (lambda: vision.RandomCrop(5)(np.zeros((3, 9), np.uint8)), "at least 5 x"),
        (lambda: vision.RandomCrop(5, padding=(1, 2, 3)), "2 or 4 ints"),
        (lambda: vision.Pad(1, padding_mode="mirror"), "expected one of"),
        (lambda: vision.Pad(1, fill_value=(1, 2))(np.zeros((3, 3, 3), np.uint8)), "1 or 3 values"),
        (lambda: vision.Pad(1, fill_value=256), r"numbers in \[0, 255\]"),
        (lambda: vision.Normalize([0.5], [0.0]), "positive"),
        (lambda: vision.Normalize([0.5], [0.1, 0.1]), "as many means as stds"),
        (lambda: vision.Normalize([0.5, 0.5], [0.1, 0.1])(np.zeros((2, 2, 3))), "expected 2 channels"),
        (lambda: vision.RandomHorizontalFlip(1.5), r"number in \[0, 1\]"),
        (lambda: vision.RandomResizedCrop(3, scale=(0, 1)), "low <= high"),
        (lambda: transforms.OneHot(3)(3), r"labels in \[0, 2\]"),
        (lambda: transforms.Compose([]), "at least one transform"),
    ],
)
def test_wrong_values(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: vision.Resize("big"), "expected an int, got str 'big'"),
        (lambda: vision.Resize(3, "bilinear"), r"expected one of Inter\.NEAREST"),  # type: ignore[arg-type]
        (lambda: vision.Rescale("x", 0), "expected a number"),  # type: ignore[arg-type]
        (lambda: vision.HWC2CHW()("picture"), "expected an image, got str"),
        (lambda: transforms.OneHot(3)(1.0), "integer labels"),
        (lambda: transforms.TypeCast(object), "dtype"),
        (lambda: transforms.Compose([vision.HWC2CHW]), "expected transforms or functions"),
    ],
)
def test_wrong_types(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()
