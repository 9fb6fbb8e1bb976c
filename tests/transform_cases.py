# SPDX-License-Identifier: Apache-2.0
"""Settings of steps with certain results, what torchvision or Pillow makes of the same pictures, and what is exact."""

from __future__ import annotations

import functools
import io
import pathlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

import headrace as hr
import numpy as np
import pixel_reference as exactly
import torch
from headrace import photos
from PIL import Image
from pixel_reference import Answer, Exact, Motion, Pixels
from support import write_tar
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

SIZES = [(64, 48), (97, 61), (33, 150), (150, 33), (17, 23), (224, 224), (5, 4)]

Want = Callable[[torch.Tensor], torch.Tensor]


@functools.lru_cache(maxsize=1)
def place() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    jpegs = []
    for i, size in enumerate(SIZES):
        out = io.BytesIO()
        Image.fromarray(photos.make_pixels(i, size)).save(out, "JPEG", quality=95, subsampling=0)
        jpegs.append((f"{i}.jpg", out.getvalue()))
    write_tar(pathlib.Path(folder.name) / "x.tar", jpegs)
    return folder


def results(field: hr.ImageField) -> list[Pixels]:
    ds = hr.open(pathlib.Path(place().name) / "x.tar", {"image": field.layout("NHWC")})
    return [ds[i]["image"].copy() for i in range(len(ds))]


@functools.lru_cache(maxsize=2)
def sources(mode: str) -> list[Pixels]:
    """The decoded pictures: what a step gets."""
    return results(hr.image("jpg", mode=mode))


def tensor(pixels: Pixels) -> torch.Tensor:
    return torch.from_numpy(pixels.transpose(2, 0, 1).copy())


def wanted(want: Want, pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(want(tensor(pixels)).numpy().transpose(1, 2, 0))


def by_pillow(change: Callable[[Image.Image], Image.Image]) -> Want:
    """A function of Pillow's as one of tensors."""

    def want(t: torch.Tensor) -> torch.Tensor:
        pixels = t.numpy().transpose(1, 2, 0)
        out = np.asarray(change(Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[..., 0])))
        return tensor(out if out.ndim == 3 else out[..., None])

    return want


@dataclass
class Case:
    how: str  # as in the chain of steps
    want: Want
    exact: Optional[Exact] = None  # none: `want` copies bytes, or computes in whole numbers
    modes: tuple[str, ...] = ("RGB", "L")

    def make(self, mode: str = "RGB") -> hr.ImageField:
        return with_steps(self.how, hr.image("jpg", mode=mode))

    def answer(self, pixels: Pixels) -> Answer:
        return self.exact(pixels) if self.exact else exactly.sure(wanted(self.want, pixels))


def with_steps(how: str, field: hr.ImageField) -> hr.ImageField:
    """`how` is what the user writes after hr.image("jpg")."""
    made: hr.ImageField = eval(f"field{how}", {"field": field, "hr": hr})
    return made


def case(how: str, want: Want, exact: Optional[Exact] = None, modes: tuple[str, ...] = ("RGB", "L")) -> Case:
    return Case(how, want, exact, modes)


def function(name: str, *args: Any, **options: Any) -> Want:
    return lambda t: getattr(F, name)(t, *args, **options)


def both(first: Want, second: Want) -> Want:
    return lambda t: second(first(t))


RESIZE = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
MODES = {"bilinear": InterpolationMode.BILINEAR, "nearest": InterpolationMode.NEAREST}


def shorter_side(size: int, filter: Image.Resampling) -> Want:
    def change(image: Image.Image) -> Image.Image:
        w, h = image.size
        short, long = size, int(size * max(w, h) / min(w, h))
        return image.resize((short, long) if w <= h else (long, short), filter)

    return by_pillow(change)


def resize_cases() -> list[Case]:
    out = []
    for name, filter in RESIZE.items():
        for h, w in ((32, 32), (90, 31), (1, 7), (300, 260)):
            out.append(
                case(f".resize(({h}, {w}), filter='{name}')", by_pillow(lambda i, s=(w, h), f=filter: i.resize(s, f)))  # type: ignore[misc]
            )
        out.append(case(f".resize(40, filter='{name}')", shorter_side(40, filter)))
    return out


def whole_crop_cases() -> list[Case]:
    """A crop of the whole area in the picture's own shape: what is drawn is always the same."""
    out = []
    for name, filter in RESIZE.items():
        want = both(function("center_crop", [4, 4]), by_pillow(lambda i, f=filter: i.resize((20, 30), f)))  # type: ignore[misc]
        how = f".center_crop(4).random_resized_crop((30, 20), scale=(1, 1), ratio=(1, 1), filter='{name}')"
        out.append(case(how, want))
    return out


def pad_cases() -> list[Case]:
    out = [case(".pad(3)", function("pad", [3])), case(".pad((1, 2), fill=9)", function("pad", [1, 2], fill=9))]
    for mode in ("constant", "edge", "reflect", "symmetric"):
        out.append(case(f".pad((1, 2, 3, 0), padding_mode='{mode}')", function("pad", [1, 2, 3, 0], padding_mode=mode)))
    out.append(case(".pad(2, fill=(1, 200, 3))", function("pad", [2], fill=[1, 200, 3]), modes=("RGB",)))
    resized = by_pillow(lambda i: i.resize((30, 20), Image.Resampling.BILINEAR))
    for mode in ("edge", "reflect", "symmetric"):
        out.append(
            case(
                f".resize((20, 30)).random_flip(1).random_vertical_flip(1).pad((9, 1, 2, 12), padding_mode='{mode}')",
                both(resized, lambda t, m=mode: F.pad(t.flip(1, 2), [9, 1, 2, 12], padding_mode=m)),  # type: ignore[misc]
            )
        )
    out.append(
        case(
            ".pad(2, fill=7).pad(1, padding_mode='reflect').pad((0, 4), fill=9).resize((20, 20))",
            both(
                lambda t: F.pad(F.pad(F.pad(t, [2], fill=7), [1], padding_mode="reflect"), [0, 4], fill=9),
                by_pillow(lambda i: i.resize((20, 20), Image.Resampling.BILINEAR)),
            ),
        )
    )
    return out


def crop_cases() -> list[Case]:
    """Crops as large as the padded picture; the others are in test_transforms_draws.py."""
    return [
        case(".center_crop(20).random_crop(20)", function("center_crop", [20, 20])),
        case(
            ".center_crop(20).random_crop((26, 22), padding=(1, 3))",
            both(function("center_crop", [20, 20]), function("pad", [1, 3])),
        ),
        case(
            ".center_crop(20).random_crop(28, padding=4, fill=5, padding_mode='reflect')",
            both(function("center_crop", [20, 20]), function("pad", [4], padding_mode="reflect")),
        ),
    ]


def affine_case(how: str, interpolation: str, motion: Motion) -> Case:
    options = {"interpolation": MODES[interpolation], "fill": 0, "center": motion.center and list(motion.center)}
    want = function("affine", motion.angle, list(motion.translate), motion.scale, list(motion.shear), **options)
    how = f".random_affine({how}, interpolation='{interpolation}')"
    return case(how, want, exactly.moved(motion, interpolation))


def rotation_cases() -> list[Case]:
    out = []
    for name, mode in MODES.items():
        for angle in (0, 30, -77.5, 90, 180, 270, 359):
            how = f".random_rotation(({angle}, {angle}), interpolation='{name}', fill=40)"
            out.append(case(how, function("rotate", angle, mode, fill=40), exactly.moved(exactly.turned(angle), name, 40)))
        about = exactly.moved(exactly.turned(20, (3, 10)), name)
        how = f".random_rotation((20, 20), '{name}', center=(3, 10))"
        out.append(case(how, function("rotate", 20, mode, center=[3, 10], fill=0), about))
    fill = [250, 0, 99]
    exact = exactly.moved(exactly.turned(9), fill=fill)
    out.append(case(".random_rotation((9, 9), fill=(250, 0, 99))", function("rotate", 9, fill=fill), exact, ("RGB",)))
    return out


def affine_cases() -> list[Case]:
    return [
        affine_case(how, name, motion)
        for name in MODES
        for how, motion in (
            ("(30, 30)", Motion(30.0)),
            ("0, scale=(1.3, 1.3)", Motion(scale=1.3)),
            ("0, scale=(0.4, 0.4)", Motion(scale=0.4)),
            ("0, shear=(11, 11)", Motion(shear=(11.0, 0.0))),
            ("(5, 5), shear=(-20, -20, 8, 8)", Motion(5.0, shear=(-20.0, 8.0))),
            (
                "(-60, -60), scale=(0.9, 0.9), shear=(3, 3), center=(1, 2)",
                Motion(-60.0, scale=0.9, shear=(3.0, 0.0), center=(1, 2)),
            ),
        )
    ]


# Not round, or products of them with levels would lie on ties.
FACTORS = (0.0, 0.3719, 1.2893, 3.1071)


def factor_cases(what: str, factors: tuple[float, ...] = FACTORS) -> list[Case]:
    exact = getattr(exactly, what)
    return [case(f".color_jitter({what}=({f}, {f}))", function(f"adjust_{what}", f), exact(f)) for f in factors]


def certain(step: str, args: str, want: Want, exact: Optional[Exact] = None) -> list[Case]:
    """With probability 1, and with 0."""
    comma = ", " if args else ""
    return [case(f".{step}({args}{comma}p=1)", want, exact), case(f".{step}({args}{comma}p=0)", lambda t: t)]


def blur_cases() -> list[Case]:
    """torch refuses to mirror more than there is, so not of the smallest picture."""
    out = []
    crop = function("center_crop", [40, 40])
    cropped = exactly.plainly(lambda pixels: wanted(crop, pixels))
    for size, sigma in ((3, 0.1), (3, 0.9), ((5, 3), 1.5), ((1, 7), 2.0), (7, 10.0), (23, 2.0), (1, 1.0)):
        extents = (size, size) if isinstance(size, int) else size
        want = both(crop, function("gaussian_blur", list(extents), [sigma, sigma]))
        how = f".center_crop(40).gaussian_blur({size}, ({sigma}, {sigma}))"
        out.append(case(how, want, cropped(exactly.gaussian_blur(extents, sigma))))
    return out
