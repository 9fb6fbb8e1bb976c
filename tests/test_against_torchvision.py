# SPDX-License-Identifier: Apache-2.0
"""Pixels as Pillow and torchvision make them, draws as torchvision draws them, through hr.open and hr.Loader."""

from __future__ import annotations

import io
import math
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from headrace import photos
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from support import write_tar
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F
from torchvision.transforms.v2 import RandomResizedCrop

SIZES = [
    (64, 48),
    (48, 64),
    (200, 150),
    (150, 200),
    (97, 61),
    (61, 97),
    (33, 200),
    (200, 33),
    (128, 128),
    (65, 64),
    (199, 149),
    (17, 23),
]
FILTERS = {"bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}


def encode(image: Image.Image, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90, **options)
    return out.getvalue()


def picture(i: int, size: tuple[int, int]) -> Image.Image:
    return Image.fromarray(photos.make_pixels(i, size))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Image.Image], str]:
    """Pillow's decoded RGB, and a tar of the same: colour with three samplings, progressive, gray, CMYK."""
    jpegs = []
    for i, size in enumerate(SIZES):
        jpegs += [encode(picture(i, size), subsampling=s) for s in (0, 1, 2)]
        jpegs.append(encode(picture(i, size), progressive=True))
        jpegs.append(encode(picture(i, size).convert("L")))
        jpegs.append(encode(picture(i, size).convert("CMYK")))
    path = tmp_path_factory.mktemp("pixels") / "x.tar"
    write_tar(path, [(f"{i:04d}.jpg", j) for i, j in enumerate(jpegs)])
    return [Image.open(io.BytesIO(j)).convert("RGB") for j in jpegs], str(path)


def worst(pictures: tuple[list[Image.Image], str], field: hr.ImageField, want: Any) -> int:
    """The largest difference of any pixel of any picture, in levels."""
    ds = hr.open(pictures[1], {"image": field.layout("NHWC")})
    most = 0
    for i, image in enumerate(pictures[0]):
        a, b = ds[i]["image"], np.asarray(want(image))
        assert a.shape == b.shape, (i, a.shape, b.shape)
        most = max(most, int(np.abs(a.astype(int) - b.astype(int)).max()))
    return most


def test_a_decoded_picture_is_pillows(pictures: Any) -> None:
    assert worst(pictures, hr.image("jpg"), lambda p: p) <= 1


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("size", [16, 31, 64, 256])
def test_resize_of_the_shorter_side_is_torchvisions(pictures: Any, size: int, filter: str) -> None:
    assert worst(pictures, hr.image("jpg").resize(size, filter=filter), lambda p: F.resize(p, size, FILTERS[filter])) <= 1


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("size", [(32, 32), (17, 91), (150, 40), (224, 224), (1, 1)])
def test_resize_to_height_and_width_is_torchvisions(pictures: Any, size: tuple[int, int], filter: str) -> None:
    assert worst(pictures, hr.image("jpg").resize(size, filter=filter), lambda p: F.resize(p, list(size), FILTERS[filter])) <= 1


@pytest.mark.parametrize("size", [8, 33, (20, 51), 100, (300, 30)])
def test_center_crop_is_torchvisions(pictures: Any, size: Any) -> None:
    assert (
        worst(
            pictures, hr.image("jpg").center_crop(size), lambda p: F.center_crop(p, size if isinstance(size, int) else list(size))
        )
        <= 1
    )


@pytest.mark.parametrize("filter", FILTERS)
def test_the_usual_evaluation_is_torchvisions(pictures: Any, filter: str) -> None:
    field = hr.image("jpg").resize(256, filter=filter).center_crop(224)
    assert worst(pictures, field, lambda p: F.center_crop(F.resize(p, 256, FILTERS[filter]), 224)) <= 1


def test_crop_and_resize_and_crop_again_is_torchvisions(pictures: Any) -> None:
    field = hr.image("jpg").center_crop(60).resize((40, 30)).center_crop((31, 33))
    assert worst(pictures, field, lambda p: F.center_crop(F.resize(F.center_crop(p, 60), [40, 30]), [31, 33])) <= 1


def test_a_flip_with_certainty_mirrors(pictures: Any) -> None:
    assert worst(pictures, hr.image("jpg").random_flip(1.0), lambda p: F.hflip(p)) <= 1
    assert worst(pictures, hr.image("jpg").random_flip(0.0), lambda p: p) <= 1


def test_gray_is_pillows(pictures: Any) -> None:
    ds = hr.open(pictures[1], {"image": hr.image("jpg", mode="L").layout("NHWC")})
    for i in range(len(ds)):
        image = Image.open(io.BytesIO(hr.open(pictures[1])[i]["jpg"]))
        want = np.asarray(image.convert("L") if image.mode != "CMYK" else image.convert("RGB").convert("L"))
        assert np.abs(ds[i]["image"][..., 0].astype(int) - want.astype(int)).max() <= 2, i


def test_normalize_is_torchvisions_arithmetic(pictures: Any) -> None:
    mean, std = hr.IMAGENET
    ds = hr.open(
        pictures[1], {"u8": hr.image("jpg").resize((32, 32)), "f32": hr.image("jpg").resize((32, 32)).normalize(hr.IMAGENET)}
    )
    for sample in ds:
        want = F.normalize(torch.from_numpy(sample["u8"].copy()).float() / 255, list(mean), list(std))
        assert np.abs(sample["f32"] - want.numpy()).max() < 1e-5


def test_normalize_with_one_number_serves_all_channels(pictures: Any) -> None:
    ds = hr.open(pictures[1], {"u8": hr.image("jpg").resize((8, 8)), "f32": hr.image("jpg").resize((8, 8)).normalize(0.5, 0.25)})
    assert np.abs(ds[0]["f32"] - (ds[0]["u8"] / 255 - 0.5) / 0.25).max() < 1e-5


def test_fast_is_close_for_large_reductions(pictures: Any, tmp_path: pathlib.Path) -> None:
    path = write_tar(tmp_path / "x.tar", [(f"{i}.jpg", photos.make_photo(i, (400, 300))) for i in range(4)])
    exact, fast = (hr.open(path, {"i": hr.image("jpg", fast=f).resize((40, 40))}) for f in (False, True))
    differences = [np.abs(a["i"].astype(int) - b["i"].astype(int)) for a, b in zip(exact, fast)]
    assert max(d.max() for d in differences) > 0 and np.mean([d.mean() for d in differences]) < 4


# -- draws -------------------------------------------------------------------------------------------

W, H = 160, 100
DRAWS = 1500


@pytest.fixture(scope="module")
def ramp(tmp_path_factory: pytest.TempPathFactory) -> hr.Dataset:
    """One picture many times, whose colours tell where each pixel was: red is x, green is y."""
    x, y = np.meshgrid(np.arange(W), np.arange(H))
    pixels = np.stack([x, y, np.full_like(x, 128)], axis=2).astype(np.uint8)
    path = tmp_path_factory.mktemp("ramp") / "x.tar"
    write_tar(path, [("0.jpg", encode(Image.fromarray(pixels), subsampling=0))])
    return hr.open(path)[[0] * DRAWS]


def boxes(ramp: hr.Dataset, **options: Any) -> np.ndarray:
    """(left, top, width, height) of each crop, as far as colours tell: to a pixel or two."""
    n = 32
    with hr.Loader(
        ramp, 50, {"i": hr.image("jpg").random_resized_crop(n, **options)}, seed=1, shuffle=False, output="numpy"
    ) as loader:
        crops = np.concatenate([b["i"] for b in loader.epoch(0)]).astype(float)
    x, y = crops[:, 0].mean(axis=1), crops[:, 1].mean(axis=2)  # along the width, along the height
    inner = slice(4, -4)
    out = []
    for row, column in zip(x, y):
        dx = np.polyfit(np.arange(n)[inner] + 0.5, row[inner], 1)
        dy = np.polyfit(np.arange(n)[inner] + 0.5, column[inner], 1)
        out.append((dx[1] + 0.5, dy[1] + 0.5, dx[0] * n, dy[0] * n))
    return np.array(out)


def theirs(**options: Any) -> np.ndarray:
    torch.manual_seed(0)
    crop = RandomResizedCrop(32, **options)
    image = torch.zeros(3, H, W, dtype=torch.uint8)
    out = []
    for _ in range(DRAWS):
        p = crop.make_params([image])
        out.append((p["left"], p["top"], p["width"], p["height"]))
    return np.array(out, dtype=float)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Kolmogorov and Smirnov's: the largest gap between the two distributions."""
    both = np.sort(np.concatenate([a, b]))
    return float(
        np.abs(np.searchsorted(np.sort(a), both, "right") / len(a) - np.searchsorted(np.sort(b), both, "right") / len(b)).max()
    )


@pytest.mark.parametrize(
    "options", [{}, {"scale": (0.5, 0.9)}, {"ratio": (1.0, 1.0)}, {"scale": (0.9, 1.0), "ratio": (3.0, 4.0)}], ids=str
)
def test_random_resized_crop_is_drawn_as_torchvision_draws_it(ramp: hr.Dataset, options: dict[str, Any]) -> None:
    ours, want = boxes(ramp, **options), theirs(**options)
    limit = 1.95 * math.sqrt(2 / DRAWS) + 0.02  # one in a thousand, and a pixel of reading error
    columns = {"area": lambda b: b[:, 2] * b[:, 3], "ratio": lambda b: np.log(b[:, 2] / b[:, 3])}
    if not options:
        columns |= {"centre x": lambda b: b[:, 0] + b[:, 2] / 2, "centre y": lambda b: b[:, 1] + b[:, 3] / 2}
    for name, column in columns.items():
        a, b = column(ours), column(want)
        assert abs(a.mean() - b.mean()) < 4 * math.hypot(a.std(), b.std()) / math.sqrt(DRAWS) + 0.01 * abs(b.mean()) + 0.01, name
        if b.std() > 0.05 * abs(b.mean()) + 0.05:
            assert distance(a, b) < limit, name


def test_flips_happen_as_often_as_asked(ramp: hr.Dataset) -> None:
    for p in (0.0, 0.2, 0.5, 1.0):
        with hr.Loader(ramp, 50, {"i": hr.image("jpg").resize((4, 8)).random_flip(p)}, shuffle=False, output="numpy") as loader:
            crops = np.concatenate([b["i"] for b in loader.epoch(0)]).astype(int)
        flipped = crops[:, 0, 0, 0] > crops[:, 0, 0, -1]
        assert abs(flipped.mean() - p) <= 4 * math.sqrt(p * (1 - p) / DRAWS)


def test_draws_of_neighbouring_samples_and_epochs_are_independent(ramp: hr.Dataset) -> None:
    with hr.Loader(ramp, 50, {"i": hr.image("jpg").resize((1, 2)).random_flip()}, shuffle=False, output="numpy") as loader:
        flips = [np.concatenate([b["i"][:, 0, 0, 0] > b["i"][:, 0, 0, 1] for b in loader.epoch(e)]) for e in range(3)]
    limit = 4 / math.sqrt(DRAWS)
    for a, b in ((flips[0][:-1], flips[0][1:]), (flips[0], flips[1]), (flips[1], flips[2]), (flips[0], flips[2])):
        assert abs(np.corrcoef(a, b)[0, 1]) < limit


@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
def test_a_crop_of_everything_is_pillows_resize(pictures: Any, filter: str) -> None:
    """With one area and one shape allowed, those of the picture, there is nothing random left."""
    for i, image in enumerate(pictures[0]):
        ratio = image.width / image.height
        field = hr.image("jpg").random_resized_crop((48, 40), scale=(1.0, 1.0), ratio=(ratio, ratio), filter=filter)
        got = hr.open(pictures[1], {"image": field.layout("NHWC")})[i]["image"]
        want = np.asarray(image.resize((40, 48), Image.Resampling[filter.upper()]))
        assert np.abs(got.astype(int) - want.astype(int)).max() <= 1, image.size


# -- any chain of steps ------------------------------------------------------------------------------

steps = st.one_of(
    st.tuples(st.just("resize"), st.integers(1, 90), st.sampled_from(sorted(FILTERS))),
    st.tuples(st.just("resize to"), st.tuples(st.integers(1, 90), st.integers(1, 90)), st.sampled_from(sorted(FILTERS))),
    st.tuples(st.just("crop"), st.tuples(st.integers(1, 90), st.integers(1, 90)), st.just("")),
    st.tuples(st.just("flip"), st.just(0), st.just("")),
)


def chain_of(todo: list[Any], field: hr.ImageField, image: Image.Image) -> tuple[hr.ImageField, Image.Image]:
    for name, size, filter in todo:
        if name == "crop":
            field, image = field.center_crop(size), F.center_crop(image, list(size))
        elif name == "flip":
            field, image = field.random_flip(1.0), F.hflip(image)
        else:
            want = size if name == "resize" else list(size)
            field, image = field.resize(size, filter=filter), F.resize(image, want, FILTERS[filter])
    return field, image


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(size=st.tuples(st.integers(1, 80), st.integers(1, 80)), todo=st.lists(steps, max_size=4), subsampling=st.integers(0, 2))
def test_any_chain_of_steps_is_torchvisions(
    tmp_path_factory: Any, size: tuple[int, int], todo: list[Any], subsampling: int
) -> None:
    jpeg = encode(picture(sum(size), size), subsampling=subsampling)
    image = Image.open(io.BytesIO(jpeg)).convert("RGB")
    try:
        field, want = chain_of(todo, hr.image("jpg"), image)
    except ValueError:
        return  # Pillow refuses a side of 0
    if max(want.size) > 4000:
        return
    path = write_tar(tmp_path_factory.mktemp("chain") / "x.tar", [("0.jpg", jpeg)])
    got = hr.open(path, {"image": field.layout("NHWC")})[0]["image"].astype(int)
    expected = np.asarray(want).astype(int)
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= 1
