# SPDX-License-Identifier: Apache-2.0
"""What each step of a picture is equal to, for the same parameters: torchvision's functions and Pillow's.

Ranges that hold one number make random steps certain.  test_transforms.py measures, and writes
docs/transforms.md; what is drawn is tested in test_transforms_draws.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pixel_reference as exactly
from PIL import Image
from pixel_reference import Answer, Pixels
from torchvision.transforms.v2 import functional as F
from transform_cases import (
    Case,
    affine_cases,
    blur_cases,
    both,
    by_pillow,
    case,
    certain,
    crop_cases,
    factor_cases,
    function,
    pad_cases,
    resize_cases,
    results,
    rotation_cases,
    sources,
    wanted,
    whole_crop_cases,
)


@dataclass
class Measured:
    """Differences in levels of 255."""

    exact: int = 0  # from the levels that are right
    theirs: int = 0  # from torchvision's or Pillow's, where one level alone is right
    pixels: int = 0
    undecided: int = 0  # pixels for which more than one level is right

    def add(self, got: Pixels, answer: Answer, want: Pixels) -> None:
        undecided = answer.undecided
        self.exact = max(self.exact, answer.difference(got))
        apart = np.abs(got.astype(int) - want.astype(int)).max(axis=2)
        self.theirs = max(self.theirs, int(apart[~undecided].max(initial=0)))
        self.pixels += undecided.size
        self.undecided += int(undecided.sum())

    @property
    def share(self) -> float:
        return self.undecided / self.pixels


@dataclass
class Row:
    step: str
    does: str
    equals: str
    cases: list[Case] = field(repr=False)


ROWS = [
    Row("resize", "the picture at another size", "Pillow's `resize`, four filters", resize_cases()),
    Row("random_resized_crop", "a random part, resized", "Pillow's `resize` of the crop, four filters", whole_crop_cases()),
    Row(
        "center_crop",
        "the middle, padded where it is smaller",
        "`F.center_crop`",
        [case(f".center_crop({s})", function("center_crop", list(s))) for s in ((8, 8), (33, 21), (100, 300))],
    ),
    Row("random_crop", "a random part of fixed size", "`F.pad`, then `F.crop`", crop_cases()),
    Row("pad", "wider and higher", "`F.pad`, four modes", pad_cases()),
    Row("random_flip", "mirrored left-right", "`F.horizontal_flip`", certain("random_flip", "", F.horizontal_flip)),
    Row(
        "random_vertical_flip",
        "mirrored top-bottom",
        "`F.vertical_flip`",
        [
            *certain("random_vertical_flip", "", F.vertical_flip),
            case(
                ".center_crop(14).random_vertical_flip(1).center_crop((12, 9)).resize((7, 20)).random_vertical_flip(1)",
                both(
                    lambda t: F.center_crop(F.vertical_flip(F.center_crop(t, [14, 14])), [12, 9]),
                    both(by_pillow(lambda i: i.resize((20, 7), Image.Resampling.BILINEAR)), F.vertical_flip),
                ),
            ),
        ],
    ),
    Row("random_rotation", "turned", "`F.rotate` without `expand`, nearest and bilinear", rotation_cases()),
    Row("random_affine", "turned, moved, scaled, sheared", "`F.affine`, nearest and bilinear", affine_cases()),
    Row("color_jitter", "brightness", "`F.adjust_brightness`", factor_cases("brightness", (0.0, 0.4, 1.3, 3.1))),
    Row("color_jitter", "contrast", "`F.adjust_contrast`", factor_cases("contrast")),
    Row("color_jitter", "saturation", "`F.adjust_saturation`", factor_cases("saturation")),
    Row("color_jitter", "hue", "`F.adjust_hue`", factor_cases("hue", (-0.5, -0.3, -0.02, 0.1, 0.25, 0.5))),
    Row(
        "random_grayscale",
        "gray",
        "`F.rgb_to_grayscale`",
        certain("random_grayscale", "", lambda t: F.rgb_to_grayscale(t, num_output_channels=len(t)), exactly.grayscale),
    ),
    Row("gaussian_blur", "blurred", "`F.gaussian_blur`", blur_cases()),
    Row(
        "random_adjust_sharpness",
        "blurred or sharpened",
        "`F.adjust_sharpness`",
        [
            c
            for f in (0.0, 0.3172, 1.6931, 3.0791)
            for c in certain("random_adjust_sharpness", str(f), function("adjust_sharpness", f), exactly.sharpness(f))
        ],
    ),
    Row(
        "random_solarize",
        "light levels inverted",
        "`F.solarize`",
        [
            c
            for t in (0, 100.5, 128, 255)
            for c in certain("random_solarize", str(t), function("solarize", t), exactly.solarize(t))
        ],
    ),
    Row(
        "random_posterize",
        "fewer levels",
        "`F.posterize`",
        [c for b in (0, 1, 3, 8) for c in certain("random_posterize", str(b), function("posterize", b), exactly.posterize(b))],
    ),
    Row(
        "random_autocontrast",
        "each colour stretched",
        "`F.autocontrast`",
        certain("random_autocontrast", "", F.autocontrast, exactly.autocontrast),
    ),
    Row(
        "random_equalize",
        "levels equally frequent",
        "`F.equalize`",
        certain("random_equalize", "", F.equalize, exactly.equalize),
    ),
    Row("random_invert", "255 minus each level", "`F.invert`", certain("random_invert", "", F.invert, exactly.invert)),
]


def measure(row: Row) -> Measured:
    out = Measured()
    for c in row.cases:
        for mode in c.modes:
            for got, pixels in zip(results(c.make(mode)), sources(mode)):
                out.add(got, c.answer(pixels), wanted(c.want, pixels))
    return out
