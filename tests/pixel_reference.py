# SPDX-License-Identifier: Apache-2.0
"""What a step makes of a picture, worked out in doubles: the same on every processor.

The formulas are those of torchvision.transforms.v2.functional on u8 tensors.  It computes in f32, in
an order that its processor likes, and so do we: where a number lies within a hair of a tie, either
side of it is right.  Such pixels are undecided.  An Answer holds all levels that are right; a pixel
is undecided where there is more than one.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Callable, Optional

import numpy as np
from numpy.typing import NDArray

TIE = 1e-3  # levels, and pixels between two others: nearer to a tie than this is undecided
PLACE = 1e-4  # pixels: f32 knows a place in a picture of a few hundred pixels better than this

Pixels = NDArray[np.uint8]  # HWC
Doubles = NDArray[np.float64]


@dataclass
class Answer:
    """options[k, y, x, channel]: each is right, for each level by itself."""

    options: NDArray[np.uint8]

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Of each pixel, whatever its channel."""
        return (self.options != self.options[:1]).any(axis=(0, 3))

    def difference(self, got: Pixels) -> int:
        """The largest, in levels, from the nearest level that is right."""
        assert got.shape == self.options.shape[1:], (got.shape, self.options.shape)
        return int(np.abs(self.options.astype(int) - got.astype(int)).min(axis=0).max())


Exact = Callable[[Pixels], Answer]


def sure(pixels: NDArray[np.generic]) -> Answer:
    return Answer(np.asarray(pixels).astype(np.uint8)[None])


def either(*answers: Answer) -> Answer:
    return Answer(np.concatenate([a.options for a in answers]))


def _levels(*values: Doubles) -> Answer:
    return Answer(np.clip(np.stack(values), 0, 255).astype(np.uint8))


def rounded(low: Doubles, high: Optional[Doubles] = None) -> Answer:
    """To the nearest level, of a value between these two."""
    return _levels(np.rint(low - TIE), np.rint((low if high is None else high) + TIE))


def cut(low: Doubles, high: Optional[Doubles] = None) -> Answer:
    """To the level below."""
    return _levels(np.floor(low - TIE), np.floor((low if high is None else high) + TIE))


# -- motion ------------------------------------------------------------------------------------------


@dataclass
class Motion:
    """In degrees and pixels, clockwise; the center counts from the upper left corner, none is the middle."""

    angle: float = 0
    translate: tuple[float, float] = (0, 0)
    scale: float = 1
    shear: tuple[float, float] = (0, 0)
    center: Optional[tuple[float, float]] = None

    def sources(self, width: int, height: int) -> Doubles:
        """[2, height, width]: where each pixel comes from, in columns and in rows."""
        turn, across, down = (math.radians(v) for v in (self.angle, *self.shear))
        rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
        sheared = np.array([[1, 0], [-math.tan(down), 1]]) @ np.array([[1, -math.tan(across)], [0, 1]])
        back = np.linalg.inv(self.scale * rotation @ sheared)
        center = np.array(self.center if self.center is not None else (width / 2, height / 2), dtype=float)
        x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
        moved = np.stack([x, y]) - (center + np.array(self.translate))[:, None, None]
        return np.tensordot(back, moved, 1) + center[:, None, None] - 0.5


def turned(angle: float, center: Optional[tuple[float, float]] = None) -> Motion:
    return Motion(angle=-angle, center=center)


def _take(pixels: Pixels, x: NDArray[np.int64], y: NDArray[np.int64]) -> tuple[Doubles, Doubles]:
    """The pixels there, 0 outside, and 1 where there is one."""
    height, width = pixels.shape[:2]
    inside = ((x >= 0) & (x < width) & (y >= 0) & (y < height)).astype(float)[..., None]
    return pixels[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)] * inside, inside


def _colour(fill: object, channels: int) -> Doubles:
    return np.broadcast_to(np.asarray(0 if fill is None else fill, dtype=float), (channels,))


def nearest(pixels: Pixels, motion: Motion, fill: object = None) -> Answer:
    """The pixel that covers the place; just between two of them, any."""
    x, y = motion.sources(pixels.shape[1], pixels.shape[0])
    found = []
    for dx in (-TIE, TIE):
        for dy in (-TIE, TIE):
            value, inside = _take(pixels, np.rint(x + dx).astype(int), np.rint(y + dy).astype(int))
            found.append(value + (1 - inside) * _colour(fill, pixels.shape[2]))
    return _levels(*found)


def bilinear_at(pixels: Pixels, x: Doubles, y: Doubles, fill: object = None) -> Doubles:
    """A colour that is given blends in by the square of what is not covered, as torchvision has it."""
    left, top = np.floor(x), np.floor(y)
    value, covered = 0.0, 0.0
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
        weight = (1 - np.abs(x - left - dx)) * (1 - np.abs(y - top - dy))
        corner, inside = _take(pixels, (left + dx).astype(int), (top + dy).astype(int))
        value, covered = value + corner * weight[..., None], covered + inside * weight[..., None]
    if fill is None:
        return np.asarray(value)
    colour = _colour(fill, pixels.shape[2])
    return np.asarray((value - colour) * covered + colour)


def bilinear(pixels: Pixels, motion: Motion, fill: object = None) -> Answer:
    x, y = motion.sources(pixels.shape[1], pixels.shape[0])
    near = [(dx, dy) for dx in (-PLACE, 0, PLACE) for dy in (-PLACE, 0, PLACE)]
    values = np.stack([bilinear_at(pixels, x + dx, y + dy, fill) for dx, dy in near])
    return rounded(values.min(axis=0), values.max(axis=0))


SAMPLING = {"nearest": nearest, "bilinear": bilinear}


def moved(motion: Motion, interpolation: str = "nearest", fill: object = 0) -> Exact:
    return lambda pixels: SAMPLING[interpolation](pixels, motion, fill)


# -- colour ------------------------------------------------------------------------------------------


def gray(pixels: Pixels) -> Answer:
    """One channel of it."""
    if pixels.shape[2] == 1:
        return sure(pixels)
    return cut((pixels.astype(int) @ np.array([2989, 5870, 1140]))[..., None] / 10000)


def grayscale(pixels: Pixels) -> Answer:
    return Answer(np.broadcast_to(gray(pixels).options, (len(gray(pixels).options), *pixels.shape)))


def _blend(pixels: Pixels, other: Doubles, factor: float, beyond: float = 0) -> Answer:
    """pixels · factor + other · (1 - factor), by so much more or less."""
    if factor == 1:
        return sure(pixels)
    if factor == 0 and beyond == 0 and (other == np.rint(other)).all():  # nothing to round
        return sure(np.broadcast_to(other, pixels.shape))
    value = pixels * factor + other * (1 - factor)
    return cut(value - beyond, value + beyond)


def brightness(factor: float) -> Exact:
    """One product in f32, which is the same number everywhere."""
    return lambda pixels: sure(np.minimum(pixels.astype(np.float32) * np.float32(factor), 255))


def brightness_about(factor: float) -> Exact:
    """Of a factor that is not known to the last bit."""
    return lambda pixels: sure(pixels) if factor == 1 else cut(pixels * factor)


def contrast(factor: float) -> Exact:
    def exact(pixels: Pixels) -> Answer:
        found = gray(pixels)
        undecided = float(found.undecided.mean())  # each may be one more or one less
        return _blend(pixels, np.asarray(found.options[-1].mean()), factor, abs(1 - factor) * undecided)

    return exact


def saturation(factor: float) -> Exact:
    def exact(pixels: Pixels) -> Answer:
        if pixels.shape[2] == 1:
            return sure(pixels)
        return either(*(_blend(pixels, option.astype(float), factor) for option in gray(pixels).options))

    return exact


def hue(turn: float) -> Exact:
    """On the hexagon of hues; a level is 255.999 times the share, cut."""

    def exact(pixels: Pixels) -> Answer:
        if pixels.shape[2] == 1:
            return sure(pixels)
        r, g, b = np.moveaxis(pixels.astype(float), 2, 0)
        high, low = pixels.max(axis=2).astype(float), pixels.min(axis=2).astype(float)
        span = np.where(high == low, 1, high - low)
        at = np.where(high == r, (g - b) / span, np.where(high == g, 2 + (b - r) / span, 4 + (r - g) / span))
        out = []
        for own in (0, 2, 4):  # where red, green and blue are largest
            away = np.abs((at + 6 * turn - own + 3) % 6 - 3)
            out.append(high - np.clip(away - 1, 0, 1) * (high - low))
        return cut(np.stack(out, axis=2) / 255 * 255.999)

    return exact


def solarize(threshold: float) -> Exact:
    return lambda pixels: sure(np.where(pixels >= threshold, 255 - pixels, pixels))


def posterize(bits: int) -> Exact:
    return lambda pixels: sure(pixels // 2 ** (8 - bits) * 2 ** (8 - bits) if bits else 0 * pixels)


def invert(pixels: Pixels) -> Answer:
    return sure(255 - pixels)


def autocontrast(pixels: Pixels) -> Answer:
    """A product and a quotient in f32, which are the same numbers everywhere."""
    low, high = (f(axis=(0, 1)).astype(np.float32) for f in (pixels.min, pixels.max))
    scale = np.where(high == low, np.float32(1), (high - low) * np.float32(1 / 255))
    return sure(np.clip((pixels - np.where(high == low, np.float32(0), low)) / scale, 0, 255))


def equalize(pixels: Pixels) -> Answer:
    out = pixels.copy()
    for c in range(pixels.shape[2]):
        counts = np.bincount(pixels[..., c].ravel(), minlength=256)
        step = (counts.sum() - counts[np.flatnonzero(counts)[-1]]) // 255
        if step:
            before = np.concatenate([[0], np.cumsum(counts)[:-1]])
            out[..., c] = np.minimum((before + step // 2) // step, 255)[pixels[..., c]]
    return sure(out)


# -- neighbours --------------------------------------------------------------------------------------


def _weighed(pixels: Doubles, weights: Doubles, axis: int) -> Doubles:
    """Along an axis, as far as the weights reach whole."""
    n = pixels.shape[axis] - len(weights) + 1
    return np.asarray(sum(w * np.take(pixels, range(k, k + n), axis) for k, w in enumerate(weights)))


def blur_of(pixels: Pixels, extents: tuple[int, int], sigma: float) -> Doubles:
    out = pixels.astype(float)
    for axis, extent in zip((1, 0), extents):
        k = np.arange(extent) - extent // 2
        weights = np.exp(-0.5 * (k / sigma) ** 2)
        around = [(0, 0)] * 3
        around[axis] = (extent // 2, extent // 2)
        out = _weighed(np.pad(out, around, mode="reflect"), weights / weights.sum(), axis)
    return out


def gaussian_blur(extents: tuple[int, int], sigma: float) -> Exact:
    return lambda pixels: rounded(blur_of(pixels, extents, sigma))


def sharpness(factor: float) -> Exact:
    def exact(pixels: Pixels) -> Answer:
        if min(pixels.shape[:2]) <= 2:
            return sure(pixels)
        whole = pixels.astype(float)
        ones = np.ones(3)
        middle = whole[1:-1, 1:-1]
        blurred = np.rint((_weighed(_weighed(whole, ones, 0), ones, 1) + 4 * middle) / 13)  # never a tie: 13 is odd
        inner = cut(middle + (blurred - middle) * (1 - factor))
        inner.options[:, blurred == middle] = middle[blurred == middle]
        if factor in (0, 1):  # nothing to round
            inner = sure(blurred if factor == 0 else middle)
        out = np.repeat(pixels[None], len(inner.options), axis=0)
        out[:, 1:-1, 1:-1] = inner.options
        return Answer(out)

    return exact


# -- one after another -------------------------------------------------------------------------------


def plainly(*steps: Callable[[Pixels], Pixels]) -> Callable[[Exact], Exact]:
    """Steps that leave nothing undecided, before one that may."""
    return lambda exact: lambda pixels: exact(functools.reduce(lambda p, step: step(p), steps, pixels))
