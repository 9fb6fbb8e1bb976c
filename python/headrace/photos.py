# SPDX-License-Identifier: Apache-2.0
"""Pictures that cost a JPEG decoder what photographs cost, made from a seed.

Light over a scene (smooth gradients), 1/f noise in luma and chroma as natural scenes have it,
shapes with hard edges, a regular texture, and a little sensor noise.  At 500 x 375, quality 90,
4:2:0, they average about 97 KB, as the photographs of ImageNet do.

The same seed gives the same bytes for one version of NumPy and Pillow.
"""

from __future__ import annotations

import functools
import io
import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TILE = 512  # side of the noise that pictures take their windows from
_QUALITY = 90
_SENSOR = np.float32(10.5)  # brings the average to 97 KB


@functools.lru_cache(maxsize=4)
def _noise(power: float) -> NDArray[np.float32]:
    """1/f^power noise of unit variance, periodic, twice in each direction; made once per process."""
    rng = np.random.default_rng(int(power * 100))
    fy = np.fft.fftfreq(_TILE)[:, None]
    fx = np.fft.rfftfreq(_TILE)[None, :]
    amplitude = np.maximum(np.hypot(fx, fy), 1 / _TILE) ** -power
    phase = rng.uniform(0, 2 * np.pi, amplitude.shape)
    plane = np.fft.irfft2(amplitude * np.exp(1j * phase), s=(_TILE, _TILE))
    return np.tile((plane / plane.std()).astype(np.float32), (2, 2))


def _window(rng: np.random.Generator, power: float, height: int, width: int) -> NDArray[np.float32]:
    """A random part of the noise, mirrored at random; pictures larger than it repeat it."""
    tile = _noise(power)
    if height > _TILE or width > _TILE:
        tile = np.tile(tile, (1 + height // _TILE, 1 + width // _TILE))
    y, x = rng.integers(_TILE, size=2)
    part = tile[y : y + height, x : x + width]
    flips = rng.integers(2, size=2) * -2 + 1
    return part[:: flips[0], :: flips[1]]


def _ellipses(rng: np.random.Generator, out: NDArray[np.float32]) -> None:
    """Sharp-edged ellipses, each with a colour of its own."""
    height, width = out.shape[:2]
    for _ in range(rng.integers(3, 8)):
        ry, rx = (rng.uniform(0.05, 0.3, 2) * (height, width)).astype(int) + 1
        top, left = rng.integers(0, height), rng.integers(0, width)
        part = out[top : top + 2 * ry, left : left + 2 * rx]
        y = (np.arange(part.shape[0], dtype=np.float32) / ry - 1)[:, None] ** 2
        x = (np.arange(part.shape[1], dtype=np.float32) / rx - 1)[None, :] ** 2
        colour = rng.uniform(-40, 40, 3).astype(np.float32)
        part += (y + x < 1)[:, :, None] * colour


def make_pixels(seed: int, size: tuple[int, int] = (500, 375)) -> NDArray[np.uint8]:
    """A picture of (width, height) as HWC u8."""
    rng = np.random.default_rng([0x9807, seed])
    width, height = size
    y = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    x = np.linspace(0, 1, width, dtype=np.float32)[None, :]
    fine = np.float32(rng.uniform(0.6, 1.4))  # from a clear sky to a meadow
    light, down, right = rng.uniform((70, -60, -60), (170, 60, 60)).astype(np.float32)
    luma = (light + down * y) + right * x
    luma += 30 * fine * _window(rng, 1.0, height, width)
    luma += _SENSOR * fine * _window(rng, 0.0, height, width)
    period = rng.uniform(0.01, 0.06, 2)
    waves = np.sin(2 * np.pi * y / period[0]) * rng.uniform(0, 14)
    luma += (waves * np.sin(2 * np.pi * x / period[1])).astype(np.float32) * (_window(rng, 1.5, height, width) > 0.5)
    colour = 14 * _window(rng, 1.2, height, width)
    out = np.stack((luma + colour, luma, luma - colour * np.float32(rng.uniform(0.3, 1))), axis=2)
    _ellipses(rng, out)
    return np.clip(out, 0, 255, out=out).astype(np.uint8)


def make_photo(seed: int, size: tuple[int, int] = (500, 375)) -> bytes:
    """The same as a JPEG, 4:2:0, quality 90."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(make_pixels(seed, size)).save(out, "JPEG", quality=_QUALITY, subsampling="4:2:0")
    return out.getvalue()


def write_class_folders(
    root: str | os.PathLike[str], count: int = 48, classes: int = 3, size: tuple[int, int] = (160, 120)
) -> str:
    """``root/class0/000.jpg`` and so on: a small data set to try things with. Returns ``root``."""
    for i in range(count):
        folder = os.path.join(root, f"class{i % classes}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{i:03d}.jpg"), "wb") as out:
            out.write(make_photo(i, size))
    return os.fspath(root)
