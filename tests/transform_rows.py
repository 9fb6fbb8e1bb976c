# SPDX-License-Identifier: Apache-2.0
"""What each step of a picture is equal to, for the same parameters: torchvision's functions and Pillow's.

Ranges that hold one number make random steps certain.  test_transforms.py measures, and writes
docs/transforms.md; what is drawn is tested in test_transforms_draws.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import headrace as hr
from PIL import Image
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
    difference,
    factor_cases,
    function,
    pad_cases,
    resize_cases,
    results,
    rotation_cases,
    sources,
    tensor,
    whole_crop_cases,
)


@dataclass
class Row:
    step: str
    does: str
    equals: str
    cases: list[Case]
    # A position just between two pixels may go either way: so much of all pixels may be the other one.
    undecided: float = 0


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
    Row("random_rotation", "turned", "`F.rotate` without `expand`, nearest and bilinear", rotation_cases(), 5e-4),
    Row("random_affine", "turned, moved, scaled, sheared", "`F.affine`, nearest and bilinear", affine_cases(), 5e-4),
    Row(
        "color_jitter",
        "brightness",
        "`F.adjust_brightness`",
        factor_cases("brightness", "adjust_brightness", (0.0, 0.4, 1.3, 3.1)),
    ),
    Row("color_jitter", "contrast", "`F.adjust_contrast`", factor_cases("contrast", "adjust_contrast", (0.0, 0.4, 1.3, 3.1))),
    Row(
        "color_jitter",
        "saturation",
        "`F.adjust_saturation`",
        factor_cases("saturation", "adjust_saturation", (0.0, 0.4, 1.3, 3.1)),
    ),
    Row("color_jitter", "hue", "`F.adjust_hue`", factor_cases("hue", "adjust_hue", (-0.5, -0.3, -0.02, 0.1, 0.25, 0.5))),
    Row(
        "random_grayscale",
        "gray",
        "`F.rgb_to_grayscale`",
        certain("random_grayscale", "", lambda t: F.rgb_to_grayscale(t, num_output_channels=len(t))),
    ),
    Row("gaussian_blur", "blurred", "`F.gaussian_blur`", blur_cases()),
    Row(
        "random_adjust_sharpness",
        "blurred or sharpened",
        "`F.adjust_sharpness`",
        [c for f in (0.0, 0.3, 1.7, 3.0) for c in certain("random_adjust_sharpness", str(f), function("adjust_sharpness", f))],
    ),
    Row(
        "random_solarize",
        "light levels inverted",
        "`F.solarize`",
        [c for t in (0, 100.5, 128, 255) for c in certain("random_solarize", str(t), function("solarize", t))],
    ),
    Row(
        "random_posterize",
        "fewer levels",
        "`F.posterize`",
        [c for b in (0, 1, 3, 8) for c in certain("random_posterize", str(b), function("posterize", b))],
    ),
    Row("random_autocontrast", "each colour stretched", "`F.autocontrast`", certain("random_autocontrast", "", F.autocontrast)),
    Row("random_equalize", "levels equally frequent", "`F.equalize`", certain("random_equalize", "", F.equalize)),
    Row("random_invert", "255 minus each level", "`F.invert`", certain("random_invert", "", F.invert)),
]


def worst(row: Row) -> int:
    most = 0
    for c in row.cases:
        for mode in c.modes:
            for got, pixels in zip(results(c.make(hr.image("jpg", mode=mode))), sources(mode)):
                want = c.want(tensor(pixels)).numpy().transpose(1, 2, 0)
                most = max(most, difference(got, want, row.undecided))
    return most
