"""Policies: AutoAugment, RandAugment, TrivialAugmentWide, UniformAugment, RandomSelectSubpolicy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform, apply_operation
from msdump.mindspore.dataset.vision.base import ImageTransform, RandomImageTransform, height_and_width
from msdump.mindspore.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Enhance,
    Equalize,
    Invert,
    Posterize,
    Solarize,
)
from msdump.mindspore.dataset.vision.geometry import fill_values, inter_of
from msdump.mindspore.dataset.vision.utils import AutoAugmentPolicy, Inter
from msdump.mindspore.dataset.vision.warp import Affine, Rotate

# Operation, probability, level (of 0 ... 9), twice in each sub-policy.   Source: AutoAugment, appendix, tables 7 to 9.
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize .4 8 Rotate .6 9; Solarize .6 5 AutoContrast .6 0; Equalize .8 0 Equalize .6 0;
        Posterize .6 7 Posterize .6 6; Equalize .4 0 Solarize .2 4; Equalize .4 0 Rotate .8 8;
        Solarize .6 3 Equalize .6 0; Posterize .8 5 Equalize 1 0; Rotate .2 3 Solarize .6 8;
        Equalize .6 0 Posterize .4 6; Rotate .8 8 Color .4 0; Rotate .4 9 Equalize .6 0;
        Equalize 0 0 Equalize .8 0; Invert .6 0 Equalize 1 0; Color .6 4 Contrast 1 8; Rotate .8 8 Color 1 2;
        Color .8 8 Solarize .8 7; Sharpness .4 7 Invert .6 0; ShearX .6 5 Equalize 1 0; Color .4 0 Equalize .6 0;
        Equalize .4 0 Solarize .2 4; Solarize .6 5 AutoContrast .6 0; Invert .6 0 Equalize 1 0;
        Color .6 4 Contrast 1 8; Equalize .8 0 Equalize .6 0""",
    AutoAugmentPolicy.CIFAR10: """
        Invert .1 0 Contrast .2 6; Rotate .7 2 TranslateX .3 9; Sharpness .8 1 Sharpness .9 3;
        ShearY .5 8 TranslateY .7 9; AutoContrast .5 0 Equalize .9 0; ShearY .2 7 Posterize .3 7;
        Color .4 3 Brightness .6 7; Sharpness .3 9 Brightness .7 9; Equalize .6 0 Equalize .5 0;
        Contrast .6 7 Sharpness .6 5; Color .7 7 TranslateX .5 8; Equalize .3 0 AutoContrast .4 0;
        TranslateY .4 3 Sharpness .2 6; Brightness .9 6 Color .2 8; Solarize .5 2 Invert 0 0;
        Equalize .2 0 AutoContrast .6 0; Equalize .2 0 Equalize .6 0; Color .9 9 Equalize .6 0;
        AutoContrast .8 0 Solarize .2 8; Brightness .1 3 Color .7 0; Solarize .4 5 AutoContrast .9 0;
        TranslateY .9 9 TranslateY .7 9; AutoContrast .9 0 Solarize .8 3; Equalize .8 0 Invert .1 0;
        TranslateY .7 9 AutoContrast .9 0""",
    AutoAugmentPolicy.SVHN: """
        ShearX .9 4 Invert .2 0; ShearY .9 8 Invert .7 0; Equalize .6 0 Solarize .6 6; Invert .9 0 Equalize .6 0;
        Equalize .6 0 Rotate .9 3; ShearX .9 4 AutoContrast .8 0; ShearY .9 8 Invert .4 0; ShearY .9 5 Solarize .2 6;
        Invert .9 0 AutoContrast .8 0; Equalize .6 0 Rotate .9 3; ShearX .9 4 Solarize .3 3; ShearY .8 8 Invert .7 0;
        Equalize .9 0 TranslateY .6 6; Invert .9 0 Equalize .6 0; Contrast .3 3 Rotate .8 4;
        Invert .8 0 TranslateY 0 2; ShearY .7 6 Solarize .4 8; Invert .6 0 Rotate .8 4; ShearY .3 7 TranslateX .9 3;
        ShearX .1 6 Invert .6 0; Solarize .7 2 TranslateY .6 7; ShearY .8 4 Invert .8 0; ShearX .7 9 TranslateY .8 3;
        ShearY .8 5 AutoContrast .7 0; ShearX .7 2 Invert .1 0""",
}
# Name -> (largest strength, whether the sign is drawn); where it is None there is no strength.
_NARROW: dict[str, tuple[float | None, bool]] = {
    "Identity": (None, False),
    "ShearX": (0.3, True),
    "ShearY": (0.3, True),
    "TranslateX": (150.0 / 331.0, True),
    "TranslateY": (150.0 / 331.0, True),
    "Rotate": (30.0, True),
    "Brightness": (0.9, True),
    "Color": (0.9, True),
    "Contrast": (0.9, True),
    "Sharpness": (0.9, True),
    "Posterize": (4.0, False),
    "Solarize": (255.0, False),
    "AutoContrast": (None, False),
    "Equalize": (None, False),
}
_WIDE = {
    **_NARROW,
    **dict.fromkeys(("ShearX", "ShearY", "Brightness", "Color", "Contrast", "Sharpness"), (0.99, True)),
    **dict.fromkeys(("TranslateX", "TranslateY"), (32.0, True)),
    "Rotate": (135.0, True),
    "Posterize": (6.0, False),
}
_FACTORS: dict[str, Callable[[float], Enhance]] = {
    "Brightness": AdjustBrightness,
    "Color": AdjustSaturation,
    "Contrast": AdjustContrast,
    "Sharpness": AdjustSharpness,
}
_PLAIN: dict[str, Callable[[], ImageTransform]] = {"AutoContrast": AutoContrast, "Equalize": Equalize, "Invert": Invert}


class _Policy(RandomImageTransform):
    """What draws operations by name. Sizes of shifts are parts of the image's size, or pixels when above 1."""

    def __init__(self, interpolation: Inter, fill_value: int | Sequence[int]) -> None:
        where = type(self).__name__
        self._inter = inter_of(f"{where}(interpolation)", interpolation)
        self._fill = fill_value
        fill_values(f"{where}(fill_value)", fill_value)

    def operation(self, name: str, strength: float, image: Any) -> Callable[[Any], Any] | None:
        """The transform of a name, of a signed strength; None: it changes nothing."""
        if name in _PLAIN:
            return _PLAIN[name]().of_pixels
        if name in _FACTORS:
            factor = _FACTORS[name](1.0 + strength)
            return lambda image: factor(np.asarray(image))
        if name == "Posterize":
            return Posterize(8 - round(strength))
        if name == "Solarize":
            return Solarize(255.0 - strength)
        if name == "Rotate":
            return Rotate(strength, self._inter, fill_value=self._fill)
        return self._moved(name, strength, image)

    def _moved(self, name: str, strength: float, image: Any) -> Callable[[Any], Any] | None:
        if name == "Identity":
            return None
        shear, shift = [0.0, 0.0], [0.0, 0.0]
        axis = 0 if name.endswith("X") else 1
        if name.startswith("Shear"):
            shear[axis] = float(np.degrees(np.arctan(strength)))
        else:
            size = height_and_width(image)[1 - axis]
            shift[axis] = float(np.clip(strength if abs(strength) <= 1 else strength / size, -1.0, 1.0))
        return Affine(0.0, shift, 1.0, shear, self._inter, self._fill)


class AutoAugment(_Policy):
    """One of 25 learned pairs of operations."""

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Inter = Inter.NEAREST,
        fill_value: int | Sequence[int] = 0,
    ) -> None:
        super().__init__(interpolation, fill_value)
        if not isinstance(policy, AutoAugmentPolicy):
            raise TypeError(f"AutoAugment(policy): expected an AutoAugmentPolicy, got {type(policy).__name__}.")
        self._policy = policy

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        pairs = sub_policies(self._policy)
        chosen = []
        for name, share, level in pairs[int(generator.integers(len(pairs)))]:
            largest, is_signed = _NARROW.get(name, (None, False))
            sign = -1.0 if is_signed and generator.random() < 0.5 else 1.0
            if generator.random() <= share:
                chosen.append(self.operation(name, (largest or 0.0) * level / 9.0 * sign, image))
        return _chain(chosen)


@lru_cache(maxsize=3)
def sub_policies(policy: AutoAugmentPolicy) -> list[list[tuple[str, float, int]]]:
    """Pairs of (operation, probability, level) of one policy."""
    pairs = []
    for text in _POLICIES[policy].split(";"):
        words = text.split()
        pairs.append([(words[at], float(words[at + 1]), int(words[at + 2])) for at in (0, 3)])
    return pairs


class RandAugment(_Policy):
    """`num_ops` operations, all of strength `magnitude` of `num_magnitude_bins`."""

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Inter = Inter.NEAREST,
        fill_value: int | Sequence[int] = 0,
    ) -> None:
        super().__init__(interpolation, fill_value)
        self._count = checks.whole_number("RandAugment(num_ops)", num_ops, 0)
        bins = checks.whole_number("RandAugment(num_magnitude_bins)", num_magnitude_bins, 2)
        if checks.whole_number("RandAugment(magnitude)", magnitude, 0) >= bins:
            raise ConfigError(f"RandAugment(magnitude): expected a number below {bins}, got {magnitude}.")
        self._share = magnitude / (bins - 1)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        return _chain([_drawn(self, _NARROW, self._share, generator, image) for _ in range(self._count)])


class TrivialAugmentWide(_Policy):
    """One operation of a random strength, of a wide range."""

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Inter = Inter.NEAREST,
        fill_value: int | Sequence[int] = 0,
    ) -> None:
        super().__init__(interpolation, fill_value)
        self._bins = checks.whole_number("TrivialAugmentWide(num_magnitude_bins)", num_magnitude_bins, 2)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        share = int(generator.integers(self._bins)) / (self._bins - 1)
        return _chain([_drawn(self, _WIDE, share, generator, image)])


def _drawn(
    policy: _Policy,
    space: dict[str, tuple[float | None, bool]],
    share: float,
    generator: np.random.Generator,
    image: Any,
) -> Callable[[Any], Any] | None:
    name = list(space)[int(generator.integers(len(space)))]
    largest, is_signed = space[name]
    sign = -1.0 if is_signed and generator.random() < 0.5 else 1.0
    return policy.operation(name, (largest or 0.0) * share * sign, image)


def _chain(transforms: Sequence[Callable[[Any], Any] | None]) -> Callable[[Any], Any]:
    def run(image: Any) -> Any:
        image = np.asarray(image)
        for transform in transforms:
            if transform is not None:
                image = transform(image)
        return image

    return run


class UniformAugment(RandomTransform):
    """`num_ops` of the `transforms`, in random order, each with probability one half."""

    def __init__(self, transforms: Sequence[Callable[..., Any]], num_ops: int = 2) -> None:
        self._transforms = _checked("UniformAugment(transforms)", transforms)
        self._count = checks.whole_number("UniformAugment(num_ops)", num_ops)
        if self._count > len(self._transforms):
            raise ConfigError(
                f"UniformAugment(num_ops): expected at most {len(self._transforms)}, the transforms, got {num_ops}."
            )

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        for place in generator.permutation(len(self._transforms))[: self._count]:
            if generator.random() < 0.5:
                values = apply_operation(self._transforms[place], values, lambda: generator)
        return values[0] if len(values) == 1 else values


class RandomSelectSubpolicy(RandomTransform):
    """One of the lists of (transform, probability), its transforms one after the other."""

    def __init__(self, policy: Sequence[Sequence[tuple[Callable[..., Any], float]]]) -> None:
        where = "RandomSelectSubpolicy(policy)"
        if not isinstance(policy, list) or not policy or not all(isinstance(part, list) and part for part in policy):
            raise ConfigError(f"{where}: expected lists of (transform, probability), got {policy!r}.")
        for part in policy:
            _checked(where, [pair[0] for pair in part])
        self._policy = [[(transform, checks.probability(where, prob)) for transform, prob in part] for part in policy]

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        for transform, prob in self._policy[int(generator.integers(len(self._policy)))]:
            if generator.random() < prob:
                values = apply_operation(transform, values, lambda: generator)
        return values[0] if len(values) == 1 else values


def _checked(where: str, transforms: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
    if not isinstance(transforms, (list, tuple)) or not transforms:
        raise ConfigError(f"{where}: expected a list of at least one transform, got {transforms!r}.")
    for transform in transforms:
        if isinstance(transform, type) or not callable(transform):
            raise TypeError(f"{where}: expected transforms or functions, got {transform!r}.")
    return list(transforms)
