"""AutoAugment: pairs of operations that were learned from data; RandAugment: any of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from msdump.mindspore.dataset.vision import color
from msdump.mindspore.dataset.vision.utils import AutoAugmentPolicy, RandomImageTransform, fill_values
from msdump.mindspore.dataset.vision.warp import Affine, Rotate

# Operation, probability, level (of 0 ... 9), twice in each pair.   Source: AutoAugment, appendix, tables 7 to 9.
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
_Operation = Callable[[Any], Any]


def _moved(shift: tuple[int, int], shear: tuple[int, int]) -> Callable[..., _Operation]:
    """What shifts by a strength, as a part of the size, or shears by it."""

    def make(strength: float, *options: Any) -> _Operation:
        angle = float(np.degrees(np.arctan(strength)))
        return Affine(0.0, [strength * axis for axis in shift], 1.0, [angle * axis for axis in shear], *options)

    return make


# Operation -> strength at level 9, whether it goes both ways, what makes it of (strength, interpolation, fill value).
_OPERATIONS: dict[str, tuple[float, bool, Callable[..., _Operation]]] = {
    "ShearX": (0.3, True, _moved((0, 0), (1, 0))),
    "ShearY": (0.3, True, _moved((0, 0), (0, 1))),
    "TranslateX": (150 / 331, True, _moved((1, 0), (0, 0))),
    "TranslateY": (150 / 331, True, _moved((0, 1), (0, 0))),
    "Rotate": (30.0, True, lambda strength, inter, fill: Rotate(strength, inter, fill_value=fill)),
    "Brightness": (0.9, True, lambda strength, *_: color.AdjustBrightness(1.0 + strength)),
    "Color": (0.9, True, lambda strength, *_: color.AdjustSaturation(1.0 + strength)),
    "Contrast": (0.9, True, lambda strength, *_: color.AdjustContrast(1.0 + strength)),
    "Sharpness": (0.9, True, lambda strength, *_: color.AdjustSharpness(1.0 + strength)),
    "Posterize": (4.0, False, lambda strength, *_: color.Posterize(8 - round(strength))),
    "Solarize": (255.0, False, lambda strength, *_: color.Solarize(255.0 - strength)),
    "AutoContrast": (0.0, False, lambda *_: color.AutoContrast()),
    "Equalize": (0.0, False, lambda *_: color.Equalize()),
    "Invert": (0.0, False, lambda *_: color.Invert()),
}


@lru_cache(maxsize=3)
def sub_policies(policy: AutoAugmentPolicy) -> list[list[tuple[str, float, int]]]:
    """Pairs of (operation, probability, level) of one policy."""
    rows = [text.split() for text in _POLICIES[policy].split(";")]
    return [[(words[at], float(words[at + 1]), int(words[at + 2])) for at in (0, 3)] for words in rows]


class _Policy(RandomImageTransform):
    """Operations one after the other, each with its probability.   Shapes: (H, W, 3) uint8 -> the same"""

    def _set_up(self) -> None:
        fill_values(f"{type(self).__name__}(fill_value)", self.fill_value)

    @abstractmethod
    def steps(self, generator: np.random.Generator) -> Sequence[tuple[str, float, float]]:
        """(operation, probability, level) of each."""

    def choose(self, generator: np.random.Generator, image: Any) -> _Operation:
        chosen = []
        for name, share, level in self.steps(generator):
            strength, goes_both_ways, make = _OPERATIONS[name]
            strength *= level / 9.0 * (-1.0 if goes_both_ways and generator.random() < 0.5 else 1.0)
            if generator.random() < share:
                chosen.append(make(strength, self.interpolation, self.fill_value))

        def run(image: Any) -> Any:
            image = np.asarray(image)
            for operation in chosen:
                image = operation(image)
            return image

        return run


class AutoAugment(
    _Policy,
    takes="policy:AutoAugmentPolicy=AutoAugmentPolicy.IMAGENET interpolation:Inter=Inter.NEAREST fill_value=0",
):
    """One of 25 learned pairs of operations."""

    def steps(self, generator: np.random.Generator) -> Sequence[tuple[str, float, float]]:
        pairs = sub_policies(self.policy)
        return pairs[int(generator.integers(len(pairs)))]


class RandAugment(
    _Policy,
    takes="num_ops:whole=2 magnitude:whole_from_0=9 num_magnitude_bins:whole=31 interpolation:Inter=Inter.NEAREST "
    "fill_value=0",
):
    """`num_ops` operations at the strength `magnitude` of `num_magnitude_bins`; in the place of Invert is none."""

    def steps(self, generator: np.random.Generator) -> Sequence[tuple[str, float, float]]:
        level = 9.0 * self.magnitude / max(self.num_magnitude_bins - 1, 1)
        return [(str(name), float(name != "Invert"), level) for name in generator.choice([*_OPERATIONS], self.num_ops)]
