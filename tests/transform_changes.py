# SPDX-License-Identifier: Apache-2.0
"""The changes that random steps draw from, each three times: by our step, exactly, and by torchvision.

Amounts come from torchvision's own tables, in doubles.  torchvision has them in f32, whose last bits are
the processor's, and so have we: what is exact allows for that.  Where an amount is cut to a whole number
that it may lie on, there are two ways to make the change.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import pixel_reference as exactly
import torch
from pixel_reference import Exact, Motion
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F
from transform_cases import Want, function


@dataclass(frozen=True)
class Change:
    how: str  # our step, as the user writes it
    exact: Exact
    want: Want


@dataclass(frozen=True)
class Look:
    """How a picture that moves is sampled."""

    width: int
    height: int
    interpolation: str = "nearest"
    fill: Optional[int] = None

    def moved(self, how: str, name: str, motion: Motion, *args: Any, **options: Any) -> Change:
        options["interpolation"] = InterpolationMode(self.interpolation)
        options["fill"] = None if self.fill is None else float(self.fill)
        return Change(
            f"{how}, interpolation='{self.interpolation}', fill={self.fill or 0})",
            exactly.moved(motion, self.interpolation, self.fill),
            function(name, *args, **options),
        )


def jitter(what: str, factor: float, exact: Exact) -> Change:
    return Change(f".color_jitter({what}=({factor!r}, {factor!r}))", exact, function(f"adjust_{what}", factor))


IDENTITY = Change("", exactly.sure, lambda t: t)
LEVELS = {  # by name: no amount
    "AutoContrast": Change(".random_autocontrast(p=1)", exactly.autocontrast, F.autocontrast),
    "Equalize": Change(".random_equalize(p=1)", exactly.equalize, F.equalize),
    "Invert": Change(".random_invert(p=1)", exactly.invert, F.invert),
    "Identity": IDENTITY,
}


def spaced_in_f32(exact: list[float]) -> list[float]:
    """Evenly spaced numbers as f32 has them: from either end, by a step that is rounded."""
    n = len(exact)
    begin, end = (float(np.float32(v)) for v in (exact[0], exact[-1]))
    step = float(np.float32(end - begin) / np.float32(n - 1))
    return [float(np.float32(begin + step * i if i < n // 2 else end - step * (n - 1 - i))) for i in range(n)]


def amounts(augment: Any, name: str, bins: int, look: Look) -> tuple[Optional[list[float]], bool]:
    """Of each bin, and whether they go to either side."""
    of, signed = augment._AUGMENTATION_SPACE[name]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        found = of(bins, look.height, look.width)
    finally:
        torch.set_default_dtype(before)
    if found is None:
        return None, signed
    exact = [float(v) for v in found]
    if not found.is_floating_point():
        return exact, signed
    nearly = spaced_in_f32(exact)
    assert np.allclose(exact, nearly, rtol=1e-5, atol=1e-6), name
    return nearly, signed


def cut_to_whole(amount: float) -> set[int]:
    """The whole numbers that it may become."""
    return {math.trunc(amount - exactly.TIE), math.trunc(amount + exactly.TIE)}


def shear(amount: float, axis: int, look: Look) -> Change:
    angle = math.degrees(math.atan(amount))
    by = (angle, 0.0) if axis == 0 else (0.0, angle)
    how = f".random_affine(0, shear=({by[0]!r}, {by[0]!r}, {by[1]!r}, {by[1]!r}), center=(0, 0)"
    return look.moved(how, "affine", Motion(shear=by, center=(0, 0)), 0.0, [0, 0], 1.0, list(by), center=[0, 0])


def translate(pixels: int, axis: int, look: Look) -> Change:
    """Ours would draw how far: the same by a wider picture's middle."""
    by = (pixels, 0) if axis == 0 else (0, pixels)
    sides = (max(2 * by[0], 0), max(2 * by[1], 0), max(-2 * by[0], 0), max(-2 * by[1], 0))
    made = look.moved("", "affine", Motion(translate=by), 0.0, list(by), 1.0, [0.0, 0.0])
    how = f".pad({sides}, fill={look.fill or 0}).center_crop(({look.height}, {look.width}))"
    return Change(how, made.exact, made.want)


def solarize(threshold: float) -> list[Change]:
    near = round(threshold)
    known = threshold in (0, 255) or abs(threshold - near) > exactly.TIE  # the ends are in f32 what they are
    return [
        Change(f".random_solarize({t!r}, p=1)", exactly.solarize(t), function("solarize", t))
        for t in ([threshold] if known else [near - 0.25, near + 0.25])
    ]


def changes(name: str, amount: float, look: Look) -> list[Change]:
    """All ways that this change may be made: mostly one."""
    factor = 1 + amount
    if name in LEVELS:
        return [LEVELS[name]]
    if name.startswith("Shear"):
        return [shear(amount, "XY".index(name[-1]), look)]
    if name.startswith("Translate"):
        return [translate(t, "XY".index(name[-1]), look) for t in sorted(cut_to_whole(amount))]
    if name == "Rotate":
        turn = exactly.turned(amount)
        return [look.moved(f".random_rotation(({amount!r}, {amount!r})", "rotate", turn, amount)]
    if name == "Solarize":
        return solarize(255 * amount)
    if name == "Posterize":
        return [
            Change(f".random_posterize({int(amount)}, p=1)", exactly.posterize(int(amount)), function("posterize", int(amount)))
        ]
    if name == "Sharpness":
        want = function("adjust_sharpness", factor)
        return [Change(f".random_adjust_sharpness({factor!r}, p=1)", exactly.sharpness(factor), want)]
    by_factor = {"Brightness": exactly.brightness_about, "Color": exactly.saturation, "Contrast": exactly.contrast}
    return [jitter({"Color": "saturation"}.get(name, name.lower()), factor, by_factor[name](factor))]


@functools.lru_cache(maxsize=1)
def jitters() -> list[Change]:
    return [
        jitter("brightness", 1.2187, exactly.brightness(1.2187)),
        jitter("contrast", 0.6113, exactly.contrast(0.6113)),
        jitter("saturation", 1.4771, exactly.saturation(1.4771)),
        jitter("hue", 0.2339, exactly.hue(0.2339)),
    ]
