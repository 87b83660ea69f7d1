"""Image transforms. The expected sums are those of MindSpore 2.7 on the same images."""

from __future__ import annotations

import io
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
from msdump.mindspore.dataset.vision.policies import _OPERATIONS, sub_policies
from msdump.mindspore.dataset.vision.utils import AutoAugmentPolicy, ConvertMode, Inter, SliceMode
from msdump.tensors.arrays import Array

quick = settings(max_examples=20, deadline=None)
colors = arrays.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)))


def picture() -> Array:
    return np.random.default_rng(3).integers(0, 256, (9, 11, 3), dtype=np.uint8)


def png(image: Array) -> bytes:
    file = io.BytesIO()
    pytest.importorskip("PIL.Image").fromarray(image).save(file, "png")
    return file.getvalue()


# transform -> sum of its bytes for `picture()`, and for a Pillow image of it where that differs
EXPECTED: list[tuple[Callable[[Any], Any], float, float | None]] = [
    (V.AdjustBrightness(0.5), 17773, 17706),
    (V.AdjustBrightness(1.7), 51020, 50937),
    (V.AdjustContrast(0.5), 35593, 35526),
    (V.AdjustContrast(1.7), 35849, 35780),
    (V.AdjustSaturation(0.5), 35601, 35531),
    (V.AdjustSaturation(1.7), 35800, 35707),
    (V.AdjustSharpness(0.5), 35609, None),
    (V.AutoContrast(), 35643, None),
    (V.AutoContrast(10.0, [10, 20]), 35646, 35642),
    (V.ConvertColor(ConvertMode.COLOR_RGB2GRAY), 11882, None),
    (V.ConvertColor(ConvertMode.COLOR_BGR2GRAY), 12036, None),
    (V.ConvertColor(ConvertMode.COLOR_RGB2RGBA), 60813, None),
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
    (V.Resize((4, 5)), 6895, 7164),
    (V.Resize(4), 6078, 5737),
    (V.CenterCrop((3, 4)), 4305, 4776),
    (V.CenterCrop((12, 4)), 12795, 13467),
    (V.RandomPosterize((3, 3)), 31136, None),
    (V.RandomSolarize((100, 100)), 19641, None),
    (V.RandomColor((0.5, 0.5)), 35601, 35531),
    (V.RandomSharpness((0.5, 0.5)), 35609, 35558),
    (V.RandomRotation((30, 30)), 30681, None),
    (V.RandomAffine((15, 15)), 31877, 31367),
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
    assert [part.shape for part in V.SlicePatches(2, 2)(picture())] == [(5, 6, 3)] * 4
    dropped = V.SlicePatches(2, 2, SliceMode.DROP)(picture())
    assert [int(part.astype(int).sum()) for part in dropped[:3]] == [6589, 7878, 6869]


@quick
@given(image=colors)
def test_colors_there_and_back(image: Array) -> None:
    np.testing.assert_array_equal(V.Invert()(V.Invert()(image)), image)
    np.testing.assert_array_equal(V.AdjustBrightness(1.0)(image), image)
    np.testing.assert_array_equal(V.AdjustSaturation(1.0)(image), image)
    np.testing.assert_array_equal(V.Rotate(0.0, Inter.BILINEAR)(image), image)
    np.testing.assert_array_equal(V.Rotate(180.0)(image), image[::-1, ::-1])
    np.testing.assert_array_equal(V.Affine(0.0, [0.0, 0.0], 1.0, 0.0)(image), image)
    rgba = V.ConvertColor(ConvertMode.COLOR_RGB2BGRA)(image)
    np.testing.assert_array_equal(V.ConvertColor(ConvertMode.COLOR_BGRA2RGB)(rgba), image)
    assert rgba[..., 3].min() == 255 and (rgba[..., 0] == image[..., 2]).all()
    gray = V.ConvertColor(ConvertMode.COLOR_RGB2GRAY)(image)
    np.testing.assert_array_equal(V.ConvertColor(ConvertMode.COLOR_GRAY2BGR)(gray), np.stack([gray] * 3, axis=2))


@quick
@given(image=colors, seed=st.integers(0, 99), data=st.data())
def test_policies_keep_size_and_follow_the_seed(image: Array, seed: int, data: st.DataObject) -> None:
    policy = data.draw(
        st.sampled_from(
            [
                V.RandomSelectSubpolicy([[(V.RandomRotation((45, 45)), 1.0)], [(V.Invert(), 0.5)]]),
                V.RandomColorAdjust(0.4, 0.4, 0.4, 0.1),
                V.AutoAugment(data.draw(st.sampled_from(AutoAugmentPolicy)), Inter.BILINEAR, (1, 2, 3)),
            ]
        )
    )
    first, second = (policy.draw(np.random.default_rng(seed), image) for _ in range(2))
    assert (first.shape, first.dtype) == (image.shape, np.uint8)
    np.testing.assert_array_equal(first, second)


def test_each_policy_has_25_pairs() -> None:
    assert [len(sub_policies(policy)) for policy in AutoAugmentPolicy] == [25, 25, 25]
    for policy in AutoAugmentPolicy:  # each operation of each pair runs
        augment = V.AutoAugment(policy)
        drawn = [augment.draw(np.random.default_rng(seed), picture()) for seed in range(60)]
        assert {(each.shape, each.dtype) for each in drawn} == {((9, 11, 3), np.dtype(np.uint8))}
        assert len({each.tobytes() for each in drawn}) > 10


def test_files_of_images(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(picture()))
    np.testing.assert_array_equal(V.read_image(str(tmp_path / "a.png")), picture())
    gray = V.read_image(str(tmp_path / "a.png"), V.ImageReadMode.GRAYSCALE)
    assert gray.shape == (9, 11, 1)
    assert bytes(V.read_file(str(tmp_path / "a.png"))[:4]) == b"\x89PNG"
    (tmp_path / "cut.png").write_bytes((tmp_path / "a.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"cut\.png: expected an image that Pillow can read"):
        V.read_image(str(tmp_path / "cut.png"))


def test_in_a_pipeline_of_a_tutorial() -> None:
    data = [np.frombuffer(png(picture()), np.uint8) for _ in range(3)]
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
        (lambda: V.AutoAugment("imagenet"), TypeError),
        (lambda: V.ConvertColor(0), TypeError),
        (lambda: V.ConvertColor(ConvertMode.COLOR_RGBA2GRAY)(picture()), RuntimeError),
        (lambda: V.GaussianBlur(4), ValueError),
        (lambda: V.Posterize(9), ValueError),
        (lambda: V.RandomRotation((30, -30)), ValueError),
        (lambda: V.Invert()(picture()[:, :, 0]), RuntimeError),
    ],
)
def test_wrong_arguments_are_refused_as_mindspore_does(build: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"expected .*, got |expected at most|expected a part"):
        build()


@quick
@given(seed=st.integers(0, 99), is_hwc=st.booleans())
def test_mixed_labels_add_up_to_one(seed: int, is_hwc: bool) -> None:
    images = np.random.default_rng(seed).integers(0, 256, (3, 4, 5, 3) if is_hwc else (3, 3, 4, 5), dtype=np.uint8)
    mixed, shares = V.MixUpBatch().draw(np.random.default_rng(seed), images, np.eye(3, dtype=np.int32))
    assert (mixed.dtype, mixed.shape, shares.dtype) == (np.uint8, images.shape, np.float32)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-6)
    assert V.get_image_size(images[0]) == list(images.shape[1:3])
    with pytest.raises(RuntimeError, match="Use OneHot and batch"):
        V.MixUpBatch()(images, np.arange(3))


@quick
@given(seed=st.integers(0, 99), is_hwc=st.booleans())
def test_cut_out_parts_change_labels_by_their_area(seed: int, is_hwc: bool) -> None:
    shape = (3, 6, 5, 2) if is_hwc else (3, 2, 6, 5)
    images = np.repeat(np.arange(3, dtype=np.uint8), 60).reshape(shape)  # image i is full of i
    order = V.ImageBatchFormat.NHWC if is_hwc else V.ImageBatchFormat.NCHW
    cut, labels = V.CutMixBatch(order).draw(np.random.default_rng(seed), images, np.eye(3, dtype=np.int32))
    assert (cut.dtype, cut.shape, labels.dtype) == (np.uint8, shape, np.float32)
    for place in range(3):
        shares = np.bincount(cut[place].reshape(-1), minlength=3) / 60
        np.testing.assert_allclose(labels[place], shares, atol=1e-6)
    kept, same = V.CutMixBatch(order, prob=0.0).draw(np.random.default_rng(seed), images, np.eye(3))
    np.testing.assert_array_equal(kept, images)
    np.testing.assert_array_equal(same, np.eye(3))


def test_gray_pictures_are_those_of_pillow() -> None:
    image = picture()
    gray = np.asarray(pytest.importorskip("PIL.Image").fromarray(image).convert("L"))
    np.testing.assert_array_equal(V.Grayscale()(image), gray)
    np.testing.assert_array_equal(V.RandomGrayscale(1.0)(image), np.repeat(gray[:, :, None], 3, 2))
    np.testing.assert_array_equal(V.RandomGrayscale(0.0)(image), image)
    with pytest.raises(ValueError, match="expected 1 or 3"):
        V.Grayscale(2)


@quick
@given(seed=st.integers(0, 99), is_hwc=st.booleans())
def test_squares_are_cut_out(seed: int, is_hwc: bool) -> None:
    image = np.full((9, 11, 3) if is_hwc else (3, 9, 11), 7, np.uint8)
    cut = V.CutOut(4, 1, is_hwc).draw(np.random.default_rng(seed), image)
    empty = (cut == 0).all(axis=2 if is_hwc else 0)
    rows, columns = np.flatnonzero(empty.any(axis=1)), np.flatnonzero(empty.any(axis=0))
    assert empty.sum() == 16 and np.ptp(rows) == np.ptp(columns) == 3 and (cut[cut != 0] == 7).all()
    assert (image == 7).all() and not V.CutOut(20, is_hwc=is_hwc)(image).any()
    assert 16 <= (V.CutOut(4, 3, is_hwc).draw(np.random.default_rng(seed), image) == 0).sum() / 3 <= 48


def test_batches_are_mixed_with_the_next_image_or_the_batch_before() -> None:
    images, labels = np.arange(12.0).reshape(3, 2, 2, 1), np.eye(3)
    mixed, shares = V.MixUp(3, 0.4).draw(np.random.default_rng(1), images, labels)
    own = np.diag(shares)
    np.testing.assert_allclose(shares, own[:, None] * labels + (1 - own)[:, None] * labels[[1, 2, 0]])
    sides = own.reshape(3, 1, 1, 1)
    np.testing.assert_allclose(mixed, sides * images + (1 - sides) * images[[1, 2, 0]])
    chain, draws = V.MixUp(3, 0.4, is_single=False), np.random.default_rng(2)
    first = chain.draw(draws, images, labels)
    np.testing.assert_allclose(first[0], images)
    second = chain.draw(draws, images + 100, labels[[1, 2, 0]])
    own = second[1][np.arange(3), [1, 2, 0]].reshape(3, 1, 1, 1)
    np.testing.assert_allclose(second[0], own * (images + 100) + (1 - own) * images)
    with pytest.raises(RuntimeError, match="expected 2 images"):
        V.MixUp(2, 0.4)(images, labels)


def test_any_operations_at_one_strength() -> None:
    draws = [V.RandAugment(2, 5).draw(np.random.default_rng(seed), picture()) for seed in range(60)]
    assert {(each.shape, each.dtype) for each in draws} == {((9, 11, 3), np.dtype(np.uint8))}
    assert len({each.tobytes() for each in draws}) > 30
    steps = V.RandAugment(500, 15).steps(np.random.default_rng(0))
    assert {name for name, *_ in steps} == set(_OPERATIONS) and {level for *_, level in steps} == {4.5}
    assert {share for name, share, _ in steps if name == "Invert"} == {0.0}
