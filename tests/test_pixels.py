# SPDX-License-Identifier: Apache-2.0
"""Bit for bit what the installed Pillow makes: resampling, decoding, crops; draws as torchvision's.

Run by itself it prints the histogram of differences:   .venv/bin/python tests/test_pixels.py
"""

from __future__ import annotations

import collections
import io
import random

import numpy as np
import PIL
import pixels
import pytest
from headrace import photos
from PIL import Image

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "nearest": Image.Resampling.NEAREST}
SIDES = [1, 2, 3, 7, 16, 33, 100, 251, 500]
OUTPUTS = [1, 2, 3, 5, 17, 31, 32, 64, 65, 128, 224, 300]
# Before 13 Pillow always went across first.  Where we go down first, a level may differ.
SAME_ORDER = int(PIL.__version__.split(".")[0]) >= 13


def source(rng: np.random.Generator, width: int, height: int, channels: int, kind: int) -> np.ndarray:
    if kind == 0:  # black and white dots: the most that bicubic can overshoot
        return (rng.integers(0, 2, (height, width, channels)) * 255).astype(np.uint8)
    if kind == 1:
        return rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
    return np.ascontiguousarray(photos.make_pixels(int(rng.integers(100)), (width, height))[:, :, :channels])


def differences(name: str, cases: int, seed: int) -> collections.Counter[int]:
    """How many values differ from Pillow's by how many levels, over random crops, sizes, flips."""
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    counts: collections.Counter[int] = collections.Counter()
    for i in range(cases):
        width, height, channels = choose.choice(SIDES), choose.choice(SIDES), choose.choice([1, 3, 3])
        picture = source(rng, width, height, channels, i % 3)
        x, y = choose.randrange(width), choose.randrange(height)
        w, h = choose.randint(1, width - x), choose.randint(1, height - y)
        size = choose.choice(OUTPUTS), choose.choice(OUTPUTS)
        flip = choose.random() < 0.5
        image = Image.fromarray(picture if channels == 3 else picture[:, :, 0])
        want = np.asarray(image.crop((x, y, x + w, y + h)).resize(size, FILTERS[name])).reshape(size[1], size[0], channels)
        got = pixels.resample(picture, (x, y, w, h), size, name, flip=flip)
        levels = np.abs(got.astype(int) - (want[:, ::-1] if flip else want))
        counts.update(dict(enumerate(np.bincount(levels.ravel()).tolist())))
    return +counts


@pytest.mark.parametrize("name", FILTERS)
def test_resampling_is_pillows_to_the_last_bit(name: str) -> None:
    counts = differences(name, cases=400, seed=1)
    assert sum(counts.values()) > 1_000_000
    assert max(counts) == 0 if SAME_ORDER or name == "nearest" else max(counts) <= (1 if name == "bilinear" else 40)


def encode(picture: np.ndarray, **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "JPEG", **options)
    return out.getvalue()


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("progressive", [False, True])
def test_decoding_and_every_crop_are_pillows(subsampling: str, progressive: bool) -> None:
    choose = random.Random(2)
    for i, (width, height) in enumerate([(500, 375), (33, 17), (100, 231), (7, 5)]):
        jpeg = encode(photos.make_pixels(i, (width, height)), quality=85, subsampling=subsampling, progressive=progressive)
        want = np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))
        assert (pixels.decode(jpeg) == want).all()
        for _ in range(25):
            x, y = choose.randrange(width), choose.randrange(height)
            w, h = choose.randint(1, width - x), choose.randint(1, height - y)
            assert (pixels.decode(jpeg, (x, y, w, h)) == want[y : y + h, x : x + w]).all()


def test_gray_and_cmyk_become_what_convert_makes_of_them() -> None:
    picture = photos.make_pixels(3, (90, 70))
    out = io.BytesIO()
    Image.fromarray(picture).convert("CMYK").save(out, "JPEG", quality=90)
    for jpeg in (encode(picture, quality=90), encode(picture[:, :, 0], quality=90), out.getvalue()):
        for mode in ("RGB", "L"):
            want = np.asarray(Image.open(io.BytesIO(jpeg)).convert(mode)).reshape(70, 90, -1)
            assert (pixels.decode(jpeg, mode=mode) == want).all()


def largest_gap(a: np.ndarray, b: np.ndarray) -> float:
    """Kolmogorov and Smirnov's: the largest distance of the two distribution functions."""
    everything = np.sort(np.concatenate([a, b]))
    return float(
        np.abs(
            np.searchsorted(np.sort(a), everything, "right") / len(a) - np.searchsorted(np.sort(b), everything, "right") / len(b)
        ).max()
    )


@pytest.mark.parametrize("size", [(500, 375), (224, 224), (60, 200)])
def test_crops_are_drawn_as_torchvision_draws_them(size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    transforms = pytest.importorskip("torchvision.transforms")
    width, height = size
    n = 20_000
    torch.manual_seed(5)
    image = Image.new("L", size)
    theirs = np.array([transforms.RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(n)])[
        :, [1, 0, 3, 2]
    ]
    ours = pixels.draw_crops(width, height, n, seed=5)
    limit = 1.95 * (2 / n) ** 0.5  # passed by chance once in a thousand
    for what in (
        lambda c: c[:, 0],
        lambda c: c[:, 1],
        lambda c: c[:, 2],
        lambda c: c[:, 3],
        lambda c: c[:, 2] * c[:, 3],
        lambda c: c[:, 2] / c[:, 3],
        lambda c: c[:, 0] / np.maximum(1, width - c[:, 2]),
        lambda c: c[:, 0] + c[:, 2],
    ):
        assert largest_gap(what(ours), what(theirs)) < limit


if __name__ == "__main__":
    for filter_name in FILTERS:
        print(
            f"Pillow {PIL.__version__}, {filter_name}: levels and counts", dict(sorted(differences(filter_name, 3000, 7).items()))
        )
