# SPDX-License-Identifier: Apache-2.0
"""A scraped folder: jpg beside png and webp, notes, and a few files that are no pictures. Compared with Pillow.

python examples/first_hour/scraped_folder.py
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
import numpy as np
from PIL import Image

KINDS = ("jpg", "png", "webp")


def make(root: pathlib.Path) -> pathlib.Path:
    root.mkdir()
    rng = np.random.default_rng(0)
    for i in range(60):
        picture = Image.fromarray(rng.integers(0, 255, (24, 32, 3), np.uint8))
        picture.save(root / f"site.com-{i:02d}.{KINDS[i % 3]}", lossless=True)
    (root / "site.com-59.webp").write_bytes(b"<html>404</html>")
    (root / "urls.txt").write_text("https://site.com")
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary) / "scraped")

    fields = {"image": hr.image("image").resize((24, 32)), "key": hr.key()}
    loader = hr.Loader(root, batch_size=20, fields=fields, output="numpy", bad_samples="replace")
    seen = {key: image for batch in loader.epoch(0) for key, image in zip(batch["key"], batch["image"])}

    assert [bad["key"] for bad in loader.quarantine] == ["site.com-59"]
    for file in root.glob("site.com-*"):
        if file.stem in seen:
            pixels = np.asarray(Image.open(file).convert("RGB")).transpose(2, 0, 1)
            assert np.array_equal(seen[file.stem], pixels)
    print(f"{len(seen)} of 60 pictures of {', '.join(KINDS)}, exactly Pillow's pixels; one was no picture and was replaced")
