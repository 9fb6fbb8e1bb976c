# SPDX-License-Identifier: Apache-2.0
"""A zip as Kaggle hands it out: splits and class folders inside, read in place. Compared with zipfile and Pillow.

python examples/first_hour/zip_from_kaggle.py
"""

from __future__ import annotations

import io
import pathlib
import tempfile
import zipfile

import headrace as hr
import numpy as np
from PIL import Image


def make(path: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for split, name, count in (("train", "cat", 12), ("train", "dog", 10), ("test", "cat", 4)):
            for i in range(count):
                out = io.BytesIO()
                Image.fromarray(rng.integers(0, 255, (20, 30, 3), np.uint8)).save(out, "JPEG")
                archive.writestr(f"pets/{split}/{name}/{name}.{i}.jpg", out.getvalue())
    return path


with tempfile.TemporaryDirectory() as temporary:
    path = make(pathlib.Path(temporary) / "pets.zip")

    ds = hr.open(f"{path}#train", {"image": hr.image("jpg").list(), "label": hr.scalar("cls")})

    with zipfile.ZipFile(path) as archive:
        for i in range(len(ds)):
            pixels = np.asarray(Image.open(archive.open(f"pets/train/{ds.key(i)}.jpg")))
            assert np.array_equal(ds[i]["image"].transpose(1, 2, 0), pixels)
            assert ds.classes[ds[i]["label"]] == ds.key(i).split("/")[0]
    assert len(ds) == 22
    print(f"{len(ds)} pictures of {ds.classes} out of the zip, exactly Pillow's pixels")
