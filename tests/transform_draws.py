# SPDX-License-Identifier: Apache-2.0
"""Steps that draw out of a set: all that torchvision could make of one picture, and how likely each is."""

from __future__ import annotations

import collections
import functools
import io
import itertools
import pathlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import headrace as hr
import numpy as np
import torch
from headrace import photos
from PIL import Image
from support import write_tar
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F
from transform_cases import Pixels, difference, tensor

Outcomes = list[tuple[float, torch.Tensor]]  # probabilities add up to 1
WIDTH, HEIGHT = 40, 32


@dataclass
class Row:
    step: str
    does: str
    equals: str
    field: hr.ImageField
    outcomes: Callable[[torch.Tensor], Outcomes]
    draws: int


@functools.lru_cache(maxsize=1)
def place() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    out = io.BytesIO()
    Image.fromarray(photos.make_pixels(3, (WIDTH, HEIGHT))).save(out, "JPEG", quality=95, subsampling=0)
    write_tar(pathlib.Path(folder.name) / "x.tar", [("0.jpg", out.getvalue())])
    return folder


def drawn(field: hr.ImageField, draws: int) -> list[Pixels]:
    """The same picture so many times, each with draws of its own."""
    ds = hr.open(pathlib.Path(place().name) / "x.tar")[[0] * draws]
    with hr.Loader(ds, 50, {"i": field.layout("NHWC").list()}, seed=7, shuffle=False, output="numpy") as loader:
        return [pixels.copy() for batch in loader.epoch(0) for pixels in batch["i"]]


@functools.lru_cache(maxsize=1)
def source() -> torch.Tensor:
    return tensor(drawn(hr.image("jpg"), 50)[0])


@functools.lru_cache(maxsize=64)
def expected(which: int) -> tuple[dict[bytes, float], list[Pixels]]:
    """Of ROWS[which]: the probability of each picture, and the pictures in that order."""
    chances: dict[bytes, float] = collections.defaultdict(float)
    pictures = {}
    for chance, t in ROWS[which].outcomes(source()):
        pixels = np.ascontiguousarray(t.numpy().transpose(1, 2, 0))
        chances[pixels.tobytes()] += chance
        pictures[pixels.tobytes()] = pixels
    assert abs(sum(chances.values()) - 1) < 1e-9
    return dict(chances), list(pictures.values())


@functools.lru_cache(maxsize=64)
def found(which: int) -> tuple[int, dict[bytes, int]]:
    """The largest difference from the nearest outcome, and how often each was drawn."""
    row = ROWS[which]
    chances, pictures = expected(which)
    most = 0
    counts: collections.Counter[bytes] = collections.Counter()
    for pixels in drawn(row.field, row.draws):
        name = pixels.tobytes()
        if name not in chances:
            nearest = min(pictures, key=lambda p: difference(p, pixels))
            most = max(most, difference(nearest, pixels))
            name = nearest.tobytes()
        counts[name] += 1
    return most, dict(counts)


def worst(row: Row) -> int:
    return found(ROWS.index(row))[0]


# -- what torchvision could make ---------------------------------------------------------------------


def crops(t: torch.Tensor, size: tuple[int, int]) -> Outcomes:
    h, w = size
    places = list(itertools.product(range(t.shape[1] - h + 1), range(t.shape[2] - w + 1)))
    return [(1 / len(places), t[:, y : y + h, x : x + w]) for y, x in places]


def jitter_orders(t: torch.Tensor) -> Outcomes:
    changes = [
        lambda x: F.adjust_brightness(x, 1.2),
        lambda x: F.adjust_contrast(x, 0.6),
        lambda x: F.adjust_saturation(x, 1.5),
        lambda x: F.adjust_hue(x, 0.25),
    ]
    return [(1 / 24, functools.reduce(lambda x, f: f(x), order, t)) for order in itertools.permutations(changes)]


def erased(t: torch.Tensor, side: int) -> Outcomes:
    places = list(itertools.product(range(HEIGHT - side + 1), range(WIDTH - side + 1)))
    value = torch.tensor([250.0, 3.0, 99.0])[:, None, None]
    out = [(0.75 / len(places), F.erase(t, y, x, side, side, value)) for y, x in places]
    return [(0.25, t), *out]


def one_change(augment: Any, t: torch.Tensor, name: str, bin: Iterable[int], bins: int) -> Outcomes:
    """A change of torchvision's own table, at each of these bins, to either side."""
    magnitudes_of, signed = augment._AUGMENTATION_SPACE[name]
    magnitudes = magnitudes_of(bins, t.shape[1], t.shape[2])
    chosen = [0.0] if magnitudes is None else [float(magnitudes[b]) for b in bin]
    out = []
    for m in chosen:
        for sign in (1, -1) if signed else (1,):
            change = augment._apply_image_or_video_transform(t, name, m * sign, augment.interpolation, augment._fill)
            out.append((1 / len(chosen) / (2 if signed else 1), change))
    return out


def any_change(augment: Any, t: torch.Tensor, bin: Iterable[int], bins: int) -> Outcomes:
    names = list(augment._AUGMENTATION_SPACE)
    return [(p / len(names), x) for name in names for p, x in one_change(augment, t, name, list(bin), bins)]


def randaugment(t: torch.Tensor, magnitude: int, ops: int = 1, **options: Any) -> Outcomes:
    augment = v2.RandAugment(ops, magnitude, **options)
    out: Outcomes = [(1.0, t)]
    for _ in range(ops):
        out = [(p * q, y) for p, x in out for q, y in any_change(augment, x, [magnitude], 31)]
    return out


def autoaugment(t: torch.Tensor, policy: v2.AutoAugmentPolicy) -> Outcomes:
    augment = v2.AutoAugment(policy)
    all_of_them: Outcomes = []
    for pair in augment._policies:
        out: Outcomes = [(1 / len(augment._policies), t)]
        for name, chance, bin in pair:
            made = [(p * q * chance, y) for p, x in out for q, y in one_change(augment, x, name, [bin or 0], 10)]
            out = [(p * (1 - chance), x) for p, x in out] + made
        all_of_them += out
    return all_of_them


def image() -> hr.ImageField:
    return hr.image("jpg")


def row(
    step: str,
    does: str,
    equals: str,
    field: hr.ImageField,
    outcomes: Callable[..., Outcomes],
    draws: int,
    *args: Any,
    **options: Any,
) -> Row:
    return Row(step, does, equals, field, lambda t: outcomes(t, *args, **options), draws)


ROWS = [
    row("random_crop", "at every place", "`F.crop`", image().random_crop((27, 36)), crops, 1000, (27, 36)),
    Row(
        "random_crop",
        "with padding, at every place",
        "`F.pad` (reflect), then `F.crop`",
        image().random_crop((32, 38), padding=(3, 2), padding_mode="reflect"),
        lambda t: crops(F.pad(t, [3, 2], padding_mode="reflect"), (32, 38)),
        1000,
    ),
    Row(
        "random_crop",
        "larger than the picture",
        "`v2.RandomCrop(pad_if_needed=True)`",
        image().random_crop((34, 38), pad_if_needed=True, fill=77),
        lambda t: crops(F.pad(t, [0, 2], fill=77), (34, 38)),
        600,
    ),
    row(
        "color_jitter",
        "all four, in each order",
        "the four functions in that order",
        image().color_jitter((1.2, 1.2), (0.6, 0.6), (1.5, 1.5), (0.25, 0.25)),
        jitter_orders,
        1000,
    ),
    row(
        "random_erasing",
        "a part covered",
        "`F.erase`",
        image().random_erasing(p=0.75, scale=(0.61, 0.61), ratio=(1, 1), value=(250, 3, 99)),
        erased,
        1500,
        28,
    ),
    *(
        row("rand_augment", f"one change, magnitude {m}", "`v2.RandAugment`", image().rand_augment(1, m), randaugment, 800, m)
        for m in (0, 9, 30)
    ),
    row(
        "rand_augment",
        "one change, bilinear, filled",
        "`v2.RandAugment`",
        image().rand_augment(1, 20, interpolation="bilinear", fill=128),
        randaugment,
        800,
        20,
        interpolation="bilinear",
        fill=128,
    ),
    row("rand_augment", "two changes, as by default", "`v2.RandAugment()`", image().rand_augment(), randaugment, 1500, 9, 2),
    Row(
        "trivial_augment",
        "each change at each magnitude",
        "`v2.TrivialAugmentWide()`",
        image().trivial_augment(),
        lambda t: any_change(v2.TrivialAugmentWide(), t, range(31), 31),
        4000,
    ),
    *(
        row(
            "auto_augment",
            f"all pairs of {p.value}",
            f"`v2.AutoAugment({p})`",
            image().auto_augment(p.value),
            autoaugment,
            1500,
            p,
        )
        for p in v2.AutoAugmentPolicy
    ),
]
