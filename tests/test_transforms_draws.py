# SPDX-License-Identifier: Apache-2.0
"""What steps draw is as likely as torchvision has it; which pixels that gives is in test_transforms.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from torchvision.transforms import v2
from transform_draws import HEIGHT, ROWS, WIDTH, drawn, expected, found, image, source


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """For pictures this small, torch's threads wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def unlikely(counts: list[float], chances: list[float]) -> float:
    """Pearson's statistic in deviations from its mean, of as many classes as 8 or more are expected in."""
    total = sum(counts)
    statistic = classes = rest_got = rest_want = 0.0
    for got, chance in zip(counts, chances):
        want = chance * total
        if want < 8:
            rest_got, rest_want = rest_got + got, rest_want + want
            continue
        statistic, classes = statistic + (got - want) ** 2 / want, classes + 1
    if rest_want >= 8:
        statistic, classes = statistic + (rest_got - rest_want) ** 2 / rest_want, classes + 1
    freedom = max(classes - 1, 1)
    return float((statistic - freedom) / math.sqrt(2 * freedom))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("which", range(len(ROWS)), ids=[f"{r.step} {r.does}" for r in ROWS])
def test_outcomes_are_as_likely_as_torchvisions(which: int) -> None:
    chances = expected(which).chances
    _, counts = found(which)
    if len(chances) > ROWS[which].draws / 8:  # too many for their own counts: those drawn twice must be few
        assert len(counts) > 0.6 * len(chances) * (1 - math.exp(-ROWS[which].draws / len(chances)))
        return
    assert unlikely([counts.get(name, 0) for name in chances], list(chances.values())) < 5


def test_the_statistic_notices_what_is_wrong() -> None:
    assert unlikely([500, 500], [0.5, 0.5]) < 1 < 5 < unlikely([600, 400], [0.5, 0.5])


CERTAIN = {
    "random_flip": {},
    "random_vertical_flip": {},
    "random_grayscale": {},
    "random_autocontrast": {},
    "random_equalize": {},
    "random_invert": {},
    "random_solarize": {"threshold": 100},
    "random_posterize": {"bits": 2},
    "random_adjust_sharpness": {"sharpness_factor": 3},
    "color_jitter": {"brightness": (0.5, 0.5)},
    "gaussian_blur": {"kernel_size": 5, "sigma": (2, 2)},
}


@pytest.mark.parametrize("step", CERTAIN)
def test_a_step_happens_with_its_probability(step: str) -> None:
    as_it_was = source().numpy().transpose(1, 2, 0)
    for p in (0.0, 0.3, 1.0):
        changed = [not np.array_equal(x, as_it_was) for x in drawn(getattr(image(), step)(**CERTAIN[step], p=p), 400)]
        assert abs(sum(changed) - 400 * p) <= 4.5 * math.sqrt(400 * p * (1 - p))


def distance(a: Any, b: Any) -> float:
    """Kolmogorov and Smirnov's: the largest gap between the two distributions."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    return float(np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)).max())


def limit(n: int, m: int) -> float:
    return 1.95 * math.sqrt((n + m) / (n * m))  # one in a thousand


@pytest.mark.parametrize("brightness", [0.4, 1.5, (0.2, 0.7)], ids=str)
def test_a_factor_of_color_jitter_is_drawn_as_torchvision_draws_it(brightness: Any) -> None:
    n = 1000
    gray = image().resize((1, 1)).color_jitter(brightness=0.0001)  # a single pixel
    level = float(drawn(gray, 50)[0].mean())
    ours = [float(x.mean()) / level for x in drawn(image().resize((1, 1)).color_jitter(brightness=brightness), n)]
    torch.manual_seed(0)
    jitter = v2.ColorJitter(brightness=brightness)
    pixel = torch.full((3, 1, 1), round(level), dtype=torch.uint8)
    theirs = [float(jitter(pixel).float().mean()) / round(level) for _ in range(n)]
    assert distance(ours, theirs) < limit(n, n) + 0.02  # a level of reading error


def test_the_deviation_of_a_blur_is_drawn_as_torchvision_draws_it() -> None:
    """The more of it, the smoother the picture."""
    n = 300

    def roughness(x: Any) -> float:
        return float(np.abs(np.diff(np.asarray(x, dtype=float), axis=1)).mean())

    ours = [roughness(x) for x in drawn(image().gaussian_blur(9), n)]
    torch.manual_seed(0)
    blur = v2.GaussianBlur(9)
    theirs = [roughness(blur(source()).numpy().transpose(1, 2, 0)) for _ in range(n)]
    assert distance(ours, theirs) < limit(n, n)


def test_an_erased_part_is_drawn_as_torchvision_draws_it() -> None:
    n = 800
    as_it_was = source().numpy().transpose(1, 2, 0)
    value = (255, 0, 255)
    assert not (as_it_was == value).all(axis=2).any()

    def boxes(pictures: Any) -> np.ndarray:
        out = []
        for x in pictures:
            ys, xs = np.nonzero((x == value).all(axis=2))
            if len(ys) == 0:
                out.append((0, 0, 0, 0))
                continue
            y, h, left, w = ys.min(), np.ptp(ys) + 1, xs.min(), np.ptp(xs) + 1
            assert len(ys) == h * w
            kept = np.ones((HEIGHT, WIDTH), bool)
            kept[y : y + h, left : left + w] = False
            assert np.array_equal(x[kept], as_it_was[kept])
            out.append((y, left, h, w))
        return np.array(out)

    ours = boxes(drawn(image().random_erasing(1.0, value=value), n))
    torch.manual_seed(0)
    erasing = v2.RandomErasing(1.0, value=value)
    theirs = boxes(erasing(source()).numpy().transpose(1, 2, 0) for _ in range(n))
    for k, name in enumerate(("top", "left", "height", "width")):
        assert distance(ours[:, k], theirs[:, k]) < limit(n, n), name


def test_noise_is_normal_after_normalize() -> None:
    ds = drawn(image().random_erasing(1.0, scale=(0.5, 0.5), ratio=(1, 1), value="random"), 50)
    as_it_was = source().numpy().transpose(1, 2, 0)
    noise = np.concatenate([x[(x != as_it_was).all(axis=2)] for x in ds]).astype(float) / 255
    mean, std = (np.array(v) for v in hr.IMAGENET)
    normal = (noise - mean) / std
    assert abs(normal).mean() == pytest.approx(math.sqrt(2 / math.pi), abs=0.04)
    assert normal.mean() == pytest.approx(0, abs=0.04) and normal.std() == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("center", [None, (5.0, 20.0)], ids=str)
def test_angles_are_drawn_as_torchvision_draws_them(center: Any) -> None:
    """By the mean colour of what is left: it depends on the angle alone."""
    n = 300
    ours = [float(x.mean()) for x in drawn(image().random_rotation((-10, 80), center=center), n)]
    torch.manual_seed(0)
    turn = v2.RandomRotation((-10, 80), center=center)
    theirs = [float(turn(source()).float().mean()) for _ in range(n)]
    assert distance(ours, theirs) < limit(n, n)


@pytest.mark.parametrize(
    "options",
    [
        {"degrees": 0, "translate": (0.3, 0.1)},
        {"degrees": 0, "scale": (0.5, 0.9)},
        {"degrees": 0, "shear": (10, 40)},
        {"degrees": 10, "translate": (0.1, 0.2), "scale": (0.7, 1.3), "shear": (-5, 5, -20, 20)},
    ],
    ids=str,
)
def test_motions_are_drawn_as_torchvision_draws_them(options: dict[str, Any]) -> None:
    n = 300
    ours = [float(x.mean()) for x in drawn(image().random_affine(**options, fill=255), n)]
    torch.manual_seed(0)
    move = v2.RandomAffine(**options, fill=255)
    theirs = [float(move(source()).float().mean()) for _ in range(n)]
    assert distance(ours, theirs) < limit(n, n)
