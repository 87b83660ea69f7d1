"""Transforms that move pixels along a plane: rotate, shear, scale, perspective. Arrays are sampled as by OpenCV."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset.vision.geometry import from_float
from msdump.mindspore.dataset.vision.utils import (
    ImageTransform,
    Inter,
    RandomImageTransform,
    height_and_width,
    is_pillow,
    number,
    number_range,
    pillow,
    pillow_filter,
    symmetric_range,
)
from msdump.tensors.arrays import Array

# Source: OpenCV, imgwarp.cpp: coordinates in steps of 1/1024, interpolation in steps of 1/32 of a pixel.
_COORDINATE_BITS, _STEP_BITS = 10, 5


def warp(image: Array, backward: Array, shape: tuple[int, int], inter: Inter, fill: Sequence[float]) -> Array:
    """Image of `shape` (height, width) whose pixel (x, y) is taken from `backward @ (x, y, 1)`.

    backward   (2, 3) for an affine map, (3, 3) for a projective one
    Edges: outside of the image there is `fill`.
    """
    columns, rows = np.meshgrid(np.arange(shape[1]), np.arange(shape[0]))
    is_nearest = inter is Inter.NEAREST
    if len(backward) == 2:
        one, half = 1 << _COORDINATE_BITS, 1 << (_COORDINATE_BITS - (1 if is_nearest else _STEP_BITS + 1))
        sums = [
            np.rint(backward[axis, 0] * columns * one).astype(np.int64)
            + np.rint((backward[axis, 1] * rows + backward[axis, 2]) * one).astype(np.int64)
            + half
            for axis in range(2)
        ]
        steps_x, steps_y = (total >> (_COORDINATE_BITS - (0 if is_nearest else _STEP_BITS)) for total in sums)
    else:
        point = np.tensordot(backward, np.stack([columns, rows, np.ones_like(rows)]), axes=1)
        depth = np.where(point[2] == 0, np.inf, point[2])
        scale = 1 if is_nearest else 1 << _STEP_BITS
        steps_x, steps_y = (np.rint(point[axis] / depth * scale).astype(np.int64) for axis in range(2))
    if is_nearest:
        return _taken(image, steps_y, steps_x, fill)
    return _interpolated(image, steps_x, steps_y, inter, fill)


def _interpolated(image: Array, steps_x: Array, steps_y: Array, inter: Inter, fill: Sequence[float]) -> Array:
    reach, kernel = (2, _cubic_weights) if inter is Inter.BICUBIC else (1, _linear_weights)
    mask = (1 << _STEP_BITS) - 1
    weights_x, weights_y = (kernel((steps & mask) / (mask + 1.0)) for steps in (steps_x, steps_y))
    first_x, first_y = (steps_x >> _STEP_BITS) - reach + 1, (steps_y >> _STEP_BITS) - reach + 1
    total: Any = 0.0
    for row in range(2 * reach):
        for column in range(2 * reach):
            weight = weights_y[row] * weights_x[column]
            values = _taken(image, first_y + row, first_x + column, fill).astype(np.float64)
            total = total + values * (weight[..., None] if image.ndim == 3 else weight)
    # OpenCV adds one half and cuts, which differs from rounding half to even only at exact halves.
    return from_float(np.floor(total + 0.5) if image.dtype.kind in "iu" else total, image.dtype)


def _linear_weights(part: Array) -> list[Array]:
    return [1.0 - part, part]


def _cubic_weights(part: Array) -> list[Array]:
    a = -0.75
    near = ((a + 2) * part - (a + 3)) * part * part + 1
    far = ((a * (part + 1) - 5 * a) * (part + 1) + 8 * a) * (part + 1) - 4 * a
    rest = 1 - part
    next_near = ((a + 2) * rest - (a + 3)) * rest * rest + 1
    return [far, near, next_near, 1 - far - near - next_near]


def _taken(image: Array, rows: Array, columns: Array, fill: Sequence[float]) -> Array:
    height, width = image.shape[:2]
    is_inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    values = image[np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)]
    # MindSpore hands (r, g, b) to OpenCV as (b, g, r).
    border = np.asarray(fill if len(fill) == 1 else fill[::-1], np.float64)
    if image.ndim == 3:
        border = np.resize(border, image.shape[2]) if len(border) == 1 else border[: image.shape[2]]
        return np.asarray(np.where(is_inside[..., None], values, border.astype(image.dtype)))
    return np.asarray(np.where(is_inside, values, border[0].astype(image.dtype)))


class Rotate(
    ImageTransform,
    takes="degrees:real resample:Inter=Inter.NEAREST expand:bool=False center=None fill_value:fill=0",
):
    """The image turned counter-clockwise by `degrees`, around its middle or `center` (x, y).

    expand   make the image large enough for all of it; not together with `center`
    """

    def _set_up(self, center: Sequence[float] | None) -> None:
        if center is not None and len(center) != 2:
            raise ConfigError(f"Rotate(center): expected (x, y), got {tuple(center)}.")
        self.center = center

    def of_array(self, image: Array) -> Array:
        height, width = image.shape[:2]
        x, y = self.center or ((width - 1) / 2.0, (height - 1) / 2.0)
        turn = math.radians(self.degrees)
        cosine, sine = math.cos(turn), math.sin(turn)
        forward = np.array(
            [[cosine, sine, (1 - cosine) * x - sine * y], [-sine, cosine, sine * x + (1 - cosine) * y], [0.0, 0.0, 1.0]]
        )
        shape = (height, width)
        if self.expand:
            across, down = (width * abs(cosine) + height * abs(sine), width * abs(sine) + height * abs(cosine))
            forward[0, 2] += across / 2.0 - width / 2.0
            forward[1, 2] += down / 2.0 - height / 2.0
            shape = (int(down), int(across))
        return warp(image, np.linalg.inv(forward)[:2], shape, self.resample, self.fill_value)

    def rotated_pillow(self, image: Any) -> Any:
        """A Pillow image turned by Pillow, for RandomRotation."""
        inter, fill = pillow_filter("Rotate", self.resample), pillow_fill(self.fill_value, image.mode)
        return image.rotate(self.degrees, inter, self.expand, self.center, fillcolor=fill)


class RandomRotation(
    RandomImageTransform,
    takes="degrees:symmetric_range resample=Inter.NEAREST expand=False center=None fill_value=0",
):
    """`Rotate` by an angle drawn from `degrees`: (low, high), or one number for (-number, number)."""

    def _set_up(self, degrees: tuple[float, float], **arguments: Any) -> None:
        self.degrees, self._arguments = degrees, arguments
        Rotate(0, **arguments)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        rotate = Rotate(generator.uniform(*self.degrees), **self._arguments)
        return rotate.rotated_pillow if is_pillow(image) else rotate


class Affine(
    ImageTransform, takes="degrees:real translate scale:real shear resample:Inter=Inter.NEAREST fill_value:fill=0"
):
    """Rotation by `degrees` (clockwise), shift by parts of the size, scale, shear in degrees, around the middle."""

    def _set_up(self, translate: Sequence[float], shear: float | Sequence[float]) -> None:
        if not isinstance(translate, (list, tuple)) or len(translate) != 2:
            raise TypeError(f"Affine(translate): expected two numbers, got {translate!r}.")
        self.translate = [number("Affine(translate)", part, -1.0, 1.0) for part in translate]
        if self.scale <= 0:
            raise ConfigError(f"Affine(scale): expected a positive number, got {self.scale}.")
        shears = list(shear) if isinstance(shear, (list, tuple)) else [shear, 0.0]
        if len(shears) != 2:
            raise ConfigError(f"Affine(shear): expected a number or two, got {shear!r}.")
        self.shear = [number("Affine(shear)", angle, -180.0, 180.0) for angle in shears]

    def of_array(self, image: Array) -> Array:
        height, width = image.shape[:2]
        return warp(
            image, np.linalg.inv(self._forward(height, width))[:2], (height, width), self.resample, self.fill_value
        )

    def transformed_pillow(self, image: Any) -> Any:
        """A Pillow image moved by Pillow, for RandomAffine."""
        backward = np.linalg.inv(self._forward(image.height, image.width, half=1.0))[:2]
        module = pillow("Affine")
        coefficients = tuple(float(value) for value in backward.reshape(-1))
        fill, inter = pillow_fill(self.fill_value, image.mode), pillow_filter("Affine", self.resample)
        return image.transform(image.size, module.Transform.AFFINE, coefficients, inter, fillcolor=fill)

    def _forward(self, height: int, width: int, half: float = 0.0) -> Array:
        turn, shear_x, shear_y = (math.radians(angle) for angle in (self.degrees, *self.shear))
        middle_x, middle_y = (width - 1) / 2.0 + half, (height - 1) / 2.0 + half
        # Source: torchvision's parametrization: rotate by turn - shear_y, shear along x, then along y.
        a = math.cos(turn - shear_y) / math.cos(shear_y)
        b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
        c = math.sin(turn - shear_y) / math.cos(shear_y)
        d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
        linear = np.array([[a, b], [c, d]]) * self.scale
        middle = np.array([middle_x, middle_y])
        shift = np.array([self.translate[0] * width, self.translate[1] * height])
        forward = np.eye(3)
        forward[:2, :2] = linear
        forward[:2, 2] = middle + shift - linear @ middle
        return forward


class RandomAffine(
    RandomImageTransform,
    takes="degrees:symmetric_range translate=None scale=None shear=None resample=Inter.NEAREST fill_value=0",
):
    """`Affine` with drawn rotation, shift (parts of the size), scale and shear."""

    def _set_up(
        self, translate: Sequence[float] | None, scale: Sequence[float] | None, shear: float | Sequence[float] | None
    ) -> None:
        shifts = [0.0] * 4 if translate is None else list(translate)
        if len(shifts) == 2:
            shifts = [-abs(shifts[0]), abs(shifts[0]), -abs(shifts[1]), abs(shifts[1])]
        if len(shifts) != 4 or any(not -1 <= shift <= 1 for shift in shifts):
            raise ConfigError(f"RandomAffine(translate): expected 2 or 4 numbers in [-1, 1], got {translate!r}.")
        self.translate = [float(shift) for shift in shifts]
        self.scale = (1.0, 1.0) if scale is None else number_range("RandomAffine(scale)", scale, 0.0)
        given = (0.0, 0.0) if shear is None else shear
        shears = list(given if isinstance(given, (list, tuple)) else symmetric_range("RandomAffine(shear)", given))
        if len(shears) not in (2, 4):
            raise ConfigError(f"RandomAffine(shear): expected a number, 2 or 4 numbers, got {shear!r}.")
        self.shear = shears if len(shears) == 4 else [*shears, 0.0, 0.0]
        Affine(0.0, [0.0, 0.0], 1.0, 0.0, self.resample, self.fill_value)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        low_x, high_x, low_y, high_y = self.translate
        height, width = height_and_width(image)
        shift = [
            round(generator.uniform(low_x, high_x) * width) / width,
            round(generator.uniform(low_y, high_y) * height) / height,
        ]
        shear = [generator.uniform(low, high) for low, high in (self.shear[:2], self.shear[2:])]
        degrees, scale = generator.uniform(*self.degrees), generator.uniform(*self.scale)
        affine = Affine(degrees, shift, scale, shear, self.resample, self.fill_value)
        return affine.transformed_pillow if is_pillow(image) else affine


def pillow_fill(fill: Sequence[float], mode: str) -> Any:
    """Color of Pillow: one number for one channel, else one for each."""
    numbers = tuple(int(value) for value in fill)
    if mode not in ("RGB", "RGBA"):
        return numbers[0]
    return numbers * len(mode) if len(numbers) == 1 else numbers
