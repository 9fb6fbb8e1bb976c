# SPDX-License-Identifier: Apache-2.0
"""The exact results that steps are compared with: equal to torchvision's in doubles, and no others pass."""

from __future__ import annotations

from typing import Any

import headrace as hr
import numpy as np
import pixel_reference as exactly
import pytest
import torch
from pixel_reference import Answer, Exact, Motion, Pixels
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F
from transform_cases import MODES, results, sources, with_steps


def in_doubles(pixels: Pixels) -> torch.Tensor:
    """Given these, torchvision computes in doubles, and does not round in the end."""
    return torch.from_numpy(pixels.transpose(2, 0, 1).astype(float))


def theirs(t: torch.Tensor) -> np.ndarray:
    return t.numpy().transpose(1, 2, 0)


MOTIONS = [
    Motion(30.0),
    Motion(-77.5, translate=(3, -2)),
    Motion(scale=0.43),
    Motion(5.0, scale=1.3, shear=(-20.0, 8.0)),
    Motion(-60.0, scale=0.9, shear=(3.0, 0.0), center=(1, 2)),
]


@pytest.mark.parametrize("fill", [None, 40.0])
@pytest.mark.parametrize("interpolation", MODES)
@pytest.mark.parametrize("motion", MOTIONS, ids=str)
def test_motion_is_torchvisions_in_doubles(motion: Motion, interpolation: str, fill: Any) -> None:
    undecided = []
    for pixels in sources("RGB"):
        center = motion.center and list(motion.center)
        want = theirs(
            F.affine(
                in_doubles(pixels), motion.angle, list(motion.translate), motion.scale, list(motion.shear),
                InterpolationMode(interpolation), fill, center,
            )
        )  # fmt: skip
        if interpolation == "bilinear":
            got = exactly.bilinear_at(pixels, *motion.sources(pixels.shape[1], pixels.shape[0]), fill)
            assert np.abs(got - want).max() < 1e-6
        else:
            answer = exactly.nearest(pixels, motion, fill)
            assert answer.difference(want.astype(np.uint8)) == 0
            undecided.append(answer.undecided.ravel())
    assert not undecided or np.concatenate(undecided).mean() < 0.02


@pytest.mark.parametrize(("extents", "sigma"), [((3, 3), 0.9), ((5, 3), 1.5), ((1, 7), 2.0)])
def test_blur_is_torchvisions_in_doubles(extents: tuple[int, int], sigma: float) -> None:
    for pixels in sources("RGB"):
        if min(pixels.shape[:2]) > max(extents):
            want = theirs(F.gaussian_blur(in_doubles(pixels), list(extents), [sigma, sigma]))
            assert np.abs(exactly.blur_of(pixels, extents, sigma) - want).max() < 1e-9


def test_hue_is_torchvisions_share_of_255_999() -> None:
    """F.adjust_hue computes in f32 whatever it is given, so to a thousandth of a level."""
    for pixels in sources("RGB"):
        for turn in (-0.3, 0.1):
            shares = theirs(F.adjust_hue(in_doubles(pixels).float() / 255, turn)).astype(float)
            assert exactly.hue(turn)(pixels).difference(np.floor(shares * 255.999).astype(np.uint8)) == 0


WRONG = [
    (".random_rotation((30, 30))", exactly.moved(exactly.turned(30.5))),
    (".random_rotation((30, 30))", exactly.moved(exactly.turned(-30))),
    (".random_rotation((30, 30), 'bilinear')", exactly.moved(exactly.turned(30.05), "bilinear")),
    (".random_rotation((30, 30), 'bilinear')", exactly.moved(exactly.turned(30), "nearest")),
    (".random_affine((0, 0), scale=(1.3, 1.3))", exactly.moved(Motion(scale=1.31))),
    (".random_affine((0, 0), shear=(11, 11))", exactly.moved(Motion(shear=(0.0, 11.0)))),
    (".color_jitter(brightness=(1.3, 1.3))", exactly.brightness(1.31)),
    (".color_jitter(contrast=(0.4, 0.4))", exactly.contrast(0.41)),
    (".color_jitter(saturation=(0.4, 0.4))", exactly.saturation(0.42)),
    (".color_jitter(hue=(0.1, 0.1))", exactly.hue(0.11)),
    (".random_adjust_sharpness(1.7, p=1)", exactly.sharpness(1.8)),
    (".gaussian_blur(3, (0.9, 0.9))", exactly.gaussian_blur((3, 3), 0.92)),
    (".random_equalize(p=1)", exactly.autocontrast),
]


@pytest.mark.parametrize(("how", "exact"), WRONG, ids=[f"{i} {how}" for i, (how, _) in enumerate(WRONG)])
def test_a_step_with_another_amount_does_not_pass(how: str, exact: Exact) -> None:
    """In one picture, where an amount is a little off; where it is right, all pass in test_transforms.py."""
    got, pixels = results(with_steps(how, hr.image("jpg")))[0], sources("RGB")[0]
    answer = exact(pixels)
    assert answer.difference(got) > 0
    right = (answer.options == got).any(axis=0).all(axis=2)
    assert (~right & ~answer.undecided).any()


def test_one_level_off_in_one_pixel_does_not_pass() -> None:
    got, pixels = results(hr.image("jpg").random_rotation((30, 30), "bilinear"))[0].copy(), sources("RGB")[0]
    answer = exactly.moved(exactly.turned(30), "bilinear")(pixels)
    assert answer.difference(got) == 0
    y, x = np.argwhere(~answer.undecided & (got < 255).all(axis=2))[7]
    got[y, x, 1] += 1
    assert answer.difference(got) == 1


def test_an_undecided_pixel_is_one_of_those_beside_it() -> None:
    """Turned by 90 degrees, a picture of even width and odd height has every place between two pixels."""
    pixels = np.random.default_rng(0).integers(0, 256, (5, 8, 1)).astype(np.uint8)
    answer = exactly.nearest(pixels, exactly.turned(90), 7)
    inside = answer.undecided[:, 2:-2]
    assert inside.all()
    kept = answer.options[:, 2, 4, 0]
    x, y = (v[2, 4] for v in exactly.turned(90).sources(8, 5))
    around = pixels[int(np.floor(y)) : int(np.floor(y)) + 2, int(np.floor(x)) : int(np.floor(x)) + 2, 0]
    assert set(kept) <= set(around.ravel()) and len(set(kept)) > 1
    assert Answer(answer.options[:1]).undecided.sum() == 0


def test_levels_by_a_tie_go_either_way() -> None:
    values = np.array([[[10.4996, 10.4, 10.9996, 11.0004, 255.9999, -0.0001]]])
    assert exactly.rounded(values).options[:, 0, 0].T.tolist() == [[10, 11], [10, 10], [11, 11], [11, 11], [255, 255], [0, 0]]
    assert exactly.cut(values).options[:, 0, 0].T.tolist() == [[10, 10], [10, 10], [10, 11], [10, 11], [255, 255], [0, 0]]
