# SPDX-License-Identifier: Apache-2.0
"""A segmentation set: `images/` and `masks/` of equal names. Pictures and masks are cropped and flipped alike; compared with Pillow.

python examples/first_hour/images_and_masks.py
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
import numpy as np
from PIL import Image


def make(root: pathlib.Path) -> pathlib.Path:
    """Each pixel of a picture says where it lies; its mask is computed of the same."""
    y, x = np.mgrid[0:60, 0:80]
    for i in range(12):
        for name, pixels in (("images", np.stack([x, y, np.full_like(x, i)], -1)), ("masks", (x + 3 * y + i) % 7)):
            (root / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{i:04d}.png")
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary) / "cells")

    ds = hr.join(images=root / "images", masks=root / "masks")
    fields = hr.joint(
        image=hr.image("images.image").random_crop(32).random_flip().layout("NHWC"),
        mask=hr.mask("masks.image").random_crop(32).random_flip(),
    )
    loader = hr.Loader(ds, batch_size=4, fields=fields, seed=1, output="numpy")
    seen = [pair for batch in loader for pair in zip(batch["image"], batch["mask"])]

    for image, mask in seen:
        x, y, i = (image[..., c].astype(int) for c in range(3))
        assert np.array_equal(mask.squeeze(), (x + 3 * y + i) % 7)
    for i in range(len(ds)):
        theirs = [np.asarray(Image.open(root / name / f"{i:04d}.png")) for name in ("images", "masks")]
        ours = [
            hr.open(root / name, {"p": hr.image("png", mode="RGB" if name == "images" else "L")})[i]["p"]
            for name in ("images", "masks")
        ]
        assert np.array_equal(ours[0].transpose(1, 2, 0), theirs[0]) and np.array_equal(ours[1].squeeze(), theirs[1])
    print(f"{len(seen)} pictures with their masks, cropped and flipped alike")
