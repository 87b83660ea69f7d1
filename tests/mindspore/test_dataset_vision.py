"""Image transforms. The expected sums are those of MindSpore 2.7 on the same images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msdump.mindspore import dataset as ds
from msdump.mindspore.dataset import vision as V
from msdump.mindspore.dataset.vision.policies import sub_policies
from msdump.mindspore.dataset.vision.utils import AutoAugmentPolicy, ConvertMode, Inter, SliceMode
from msdump.tensors.arrays import Array

quick = settings(max_examples=20, deadline=None)
colors = arrays.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)))
SQUARE = [[0, 0], [10, 0], [10, 8], [0, 8]]
MOVED = [[1, 1], [9, 0], [10, 7], [0, 8]]


def picture() -> Array:
    return np.random.default_rng(3).integers(0, 256, (9, 11, 3), dtype=np.uint8)


# transform -> sum of its bytes for `picture()`, and for a Pillow image of it where that differs
EXPECTED: list[tuple[Callable[[Any], Any], float, float | None]] = [
    (V.AdjustBrightness(0.5), 17773, 17706),
    (V.AdjustBrightness(1.7), 51020, 50937),
    (V.AdjustContrast(0.5), 35593, 35526),
    (V.AdjustContrast(1.7), 35849, 35780),
    (V.AdjustSaturation(0.5), 35601, 35531),
    (V.AdjustSaturation(1.7), 35800, 35707),
    (V.AdjustSharpness(0.5), 35609, None),
    (V.AdjustGamma(0.5), 48612, None),
    (V.AdjustGamma(0.5, 1.2), 56297, None),
    (V.AutoContrast(), 35643, None),
    (V.AutoContrast(10.0, [10, 20]), 35646, 35642),
    (V.Equalize(), 38003, 35568),
    (V.Invert(), 40167, None),
    (V.Posterize(3), 31136, None),
    (V.Solarize(100), 19641, None),
    (V.Solarize((50, 150)), 42858, None),
    (V.GaussianBlur(3), 35368, None),
    (V.GaussianBlur((3, 5), (1.0, 2.0)), 35341, None),
    (V.Rotate(30), 30681, None),
    (V.Rotate(90), 29702, None),
    (V.Rotate(30, Inter.BILINEAR), 30295, None),
    (V.Rotate(30, Inter.NEAREST, True, None, 7), 38822, None),
    (V.Rotate(30, Inter.BILINEAR, False, (2, 3), (1, 2, 3)), 28069, None),
    (V.Affine(15, [0.1, -0.1], 1.1, [5.0, 3.0]), 33056, None),
    (V.Affine(15, [0.1, -0.1], 1.1, 2.0, Inter.BILINEAR, 9), 32461, None),
    (V.Perspective(SQUARE, MOVED), 28562, 29234),
    (V.Perspective(SQUARE, MOVED, Inter.NEAREST), 28490, 29417),
    (V.Erase(1, 2, 3, 4, 5), 31829, None),
    (V.PadToSize((12, 14), (1, 2), (1, 2, 3)), 35982, None),
    (V.ResizedCrop(1, 2, 5, 6, (4, 3)), 4253, None),
    (V.Resize((4, 5)), 6895, 7164),
    (V.Resize(4), 6078, 5737),
    (V.CenterCrop((3, 4)), 4305, 4776),
    (V.CenterCrop((12, 4)), 12795, 13467),
    (V.ConvertColor(ConvertMode.COLOR_RGB2GRAY), 11882, None),
    (V.ConvertColor(ConvertMode.COLOR_BGR2GRAY), 12036, None),
    (V.ConvertColor(ConvertMode.COLOR_RGB2RGBA), 60813, None),
    (V.RandomEqualize(1.0), 38003, None),
    (V.RandomAutoContrast(prob=1.0), 35643, None),
    (V.RandomPosterize((3, 3)), 31136, None),
    (V.RandomSolarize((100, 100)), 19641, None),
    (V.RandomColor((0.5, 0.5)), 35601, 35531),
    (V.RandomSharpness((0.5, 0.5)), 35609, 35558),
    (V.RandomRotation((30, 30)), 30681, None),
    (V.RandomAffine((15, 15)), 31877, 31367),
    (V.RandomLighting(0.0), 35568, None),
    (V.RandomInvert(0.0), 35568, None),
]


@pytest.mark.parametrize(("transform", "of_array", "of_pillow"), EXPECTED, ids=lambda value: type(value).__name__)
def test_values_are_those_of_mindspore(
    transform: Callable[[Any], Any], of_array: float, of_pillow: float | None
) -> None:
    image = pytest.importorskip("PIL.Image").fromarray(picture())
    assert int(np.asarray(transform(picture())).astype(np.int64).sum()) == of_array
    assert int(np.asarray(transform(image)).astype(np.int64).sum()) == (of_array if of_pillow is None else of_pillow)


def test_hue_is_near_that_of_mindspore() -> None:
    # OpenCV rounds saturation and value on its way; one step of one color remains.
    for factor, total in ((0.2, 36327), (-0.3, 35892), (0.0, 35588)):
        assert abs(int(V.AdjustHue(factor)(picture()).astype(np.int64).sum()) - total) <= 3


def test_patches_and_crops() -> None:
    image = pytest.importorskip("PIL.Image").fromarray(picture())
    parts = V.TenCrop(4)(image)
    assert [int(np.asarray(part).astype(int).sum()) for part in parts[:3]] == [5201, 5814, 5584]
    assert len(parts) == 10
    assert [part.shape for part in V.SlicePatches(2, 2)(picture())] == [(5, 6, 3)] * 4
    dropped = V.SlicePatches(2, 2, SliceMode.DROP)(picture())
    assert [int(part.astype(int).sum()) for part in dropped[:3]] == [6589, 7878, 6869]
    with pytest.raises(TypeError, match=r"expected a Pillow image, got ndarray. Use ToPIL\(\)"):
        V.FiveCrop(4)(picture())


@quick
@given(image=colors)
def test_colors_there_and_back(image: Array) -> None:
    floats = (image / 255.0).astype(np.float32)
    np.testing.assert_allclose(V.HsvToRgb(True)(V.RgbToHsv(True)(floats)), floats, atol=1e-6)
    planes = np.ascontiguousarray(floats.transpose(2, 0, 1))
    np.testing.assert_array_equal(V.RgbToHsv()(planes), V.RgbToHsv(True)(floats).transpose(2, 0, 1))
    np.testing.assert_array_equal(V.Invert()(V.Invert()(image)), image)
    np.testing.assert_array_equal(V.AdjustBrightness(1.0)(image), image)
    np.testing.assert_array_equal(V.AdjustSaturation(1.0)(image), image)
    np.testing.assert_array_equal(V.Rotate(0.0, Inter.BILINEAR)(image), image)
    np.testing.assert_array_equal(V.Rotate(180.0)(image), image[::-1, ::-1])
    np.testing.assert_array_equal(V.Affine(0.0, [0.0, 0.0], 1.0, 0.0)(image), image)
    rgba = V.ConvertColor(ConvertMode.COLOR_RGB2BGRA)(image)
    np.testing.assert_array_equal(V.ConvertColor(ConvertMode.COLOR_BGRA2RGB)(rgba), image)


@quick
@given(image=colors, seed=st.integers(0, 99), data=st.data())
def test_policies_keep_size_and_follow_the_seed(image: Array, seed: int, data: st.DataObject) -> None:
    policy = data.draw(
        st.sampled_from(
            [
                V.AutoAugment(data.draw(st.sampled_from(AutoAugmentPolicy))),
                V.RandAugment(3),
                V.TrivialAugmentWide(),
                V.UniformAugment([V.RandomHorizontalFlip(1.0), V.RandomRotation(20)], 2),
                V.RandomSelectSubpolicy([[(V.RandomRotation((45, 45)), 1.0)], [(V.Invert(), 0.5)]]),
                V.RandomColorAdjust(0.4, 0.4, 0.4, 0.1),
                V.RandomErasing(1.0) if image.shape[0] > 3 else V.RandomLighting(0.1),
            ]
        )
    )
    first, second = (policy.draw(np.random.default_rng(seed), image) for _ in range(2))
    assert (first.shape, first.dtype) == (image.shape, np.uint8)
    np.testing.assert_array_equal(first, second)


def test_each_policy_has_25_pairs() -> None:
    assert [len(sub_policies(policy)) for policy in AutoAugmentPolicy] == [25, 25, 25]


@quick
@given(image=colors, seed=st.integers(0, 99))
def test_boxes_move_with_the_image(image: Array, seed: int) -> None:
    height, width = image.shape[:2]
    boxes = np.array([[0, 0, width, height], [width // 2, height // 2, 1, 1]], np.float32)
    flipped, moved = V.RandomHorizontalFlipWithBBox(1.0)(image, boxes)
    x, y = (int(value) for value in moved[1, :2])
    np.testing.assert_array_equal(flipped[y, x], image[height // 2, width // 2])
    assert moved[0].tolist() == [0, 0, width, height]
    assert boxes[1].tolist() == [width // 2, height // 2, 1, 1]
    large, scaled = V.ResizeWithBBox((2 * height, 2 * width))(image, boxes)
    assert (large.shape[:2], scaled[0].tolist()) == ((2 * height, 2 * width), [0, 0, 2 * width, 2 * height])
    for transform in (V.RandomCropWithBBox(1), V.RandomResizedCropWithBBox((3, 4)), V.RandomCropWithBBox(9, 9)):
        new, inside = transform.draw(np.random.default_rng(seed), image, boxes)
        assert (inside[:, :4] >= 0).all()
        assert (inside[:, :2] + inside[:, 2:4] <= np.array(new.shape[1::-1]) + 1e-4).all()
    with pytest.raises(RuntimeError, match="boxes inside of the image"):
        V.RandomVerticalFlipWithBBox(1.0)(image, boxes + width)


@quick
@given(seed=st.integers(0, 99), is_hwc=st.booleans())
def test_mixed_labels_add_up_to_one(seed: int, is_hwc: bool) -> None:
    images = np.random.default_rng(seed).integers(0, 256, (3, 4, 5, 3) if is_hwc else (3, 3, 4, 5), dtype=np.uint8)
    labels = np.eye(3, dtype=np.int32)
    form = V.ImageBatchFormat.NHWC if is_hwc else V.ImageBatchFormat.NCHW
    for transform in (V.MixUpBatch(), V.CutMixBatch(form)):
        mixed, shares = transform.draw(np.random.default_rng(seed), images, labels)
        assert (mixed.dtype, mixed.shape, shares.dtype) == (np.uint8, images.shape, np.float32)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)
    same, kept = V.CutMixBatch(form, 1.0, 0.0)(images, labels)
    np.testing.assert_array_equal(same, images)
    np.testing.assert_array_equal(kept, labels)
    floats, soft = V.MixUp(3, 1.0)(images, labels)
    assert (floats.shape, soft.shape) == (images.shape, labels.shape)


def test_files_of_images(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    V.write_png(str(tmp_path / "a.png"), picture())
    np.testing.assert_array_equal(V.read_image(str(tmp_path / "a.png")), picture())
    gray = V.read_image(str(tmp_path / "a.png"), V.ImageReadMode.GRAYSCALE)
    assert (gray.shape, V.get_image_size(gray), V.get_image_num_channels(gray)) == ((9, 11, 1), [9, 11], 1)
    assert bytes(V.read_file(str(tmp_path / "a.png"))[:4]) == b"\x89PNG"
    assert V.Decode()(V.encode_jpeg(picture())).shape == (9, 11, 3)
    (tmp_path / "cut.png").write_bytes((tmp_path / "a.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"cut\.png: expected an image that Pillow can read"):
        V.read_image(str(tmp_path / "cut.png"))


def test_in_a_pipeline_of_a_tutorial() -> None:
    pytest.importorskip("PIL")
    data = [V.encode_png(picture()) for _ in range(3)]
    dataset = ds.GeneratorDataset(data, ["image"], shuffle=False).map(
        [
            V.Decode(to_pil=True),
            V.RandomResizedCrop(8),
            V.RandomColorAdjust(0.4, 0.4, 0.4),
            V.ToTensor(),
            V.RandomErasing(),
        ]
    )
    assert [row[0].shape for row in dataset.batch(3)] == [(3, 3, 8, 8)]


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (lambda: V.AdjustHue(0.6), ValueError),
        (lambda: V.AdjustBrightness("1"), TypeError),
        (lambda: V.GaussianBlur(4), ValueError),
        (lambda: V.Posterize(9), ValueError),
        (lambda: V.AutoAugment("imagenet"), TypeError),
        (lambda: V.RandomRotation((30, -30)), ValueError),
        (lambda: V.UniformAugment([V.Invert()], 2), ValueError),
        (lambda: V.Invert()(picture()[:, :, 0]), RuntimeError),
        (lambda: V.Erase(1, 2, 30, 4)(picture()), RuntimeError),
        (lambda: V.CutOut(1000)(picture()), RuntimeError),
        (lambda: V.MixUpBatch()(picture()[None], np.array([1])), RuntimeError),
        (lambda: V.LinearTransformation(np.eye(4), np.ones(3)), ValueError),
    ],
)
def test_wrong_arguments_are_refused_as_mindspore_does(build: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"expected .*, got |expected at most|expected a part"):
        build()
