# SPDX-License-Identifier: Apache-2.0
"""Three sources with other stored names in one blend: class folders, a tar, a CSV. Compared with the files that they were made of.

python examples/first_hour/three_sources.py
"""

from __future__ import annotations

import collections
import io
import pathlib
import tarfile
import tempfile

import headrace as hr
import numpy as np
from PIL import Image


def png(value: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((24, 32, 3), value, np.uint8)).save(out, "PNG")
    return out.getvalue()


def make(root: pathlib.Path) -> pathlib.Path:
    """Each picture is of one colour, which its label follows from."""
    for i in range(20):
        (root / "folder" / str(i % 4)).mkdir(parents=True, exist_ok=True)
        (root / "folder" / str(i % 4) / f"{i}.png").write_bytes(png(i))
    with tarfile.open(root / "photos.tar", "w") as tar:
        for i in range(20, 40):
            for name, value in ((f"{i}.photo.png", png(i)), (f"{i}.class", str(i % 4).encode())):
                info = tarfile.TarInfo(name)
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))
    (root / "scans").mkdir()
    for i in range(40, 60):
        (root / "scans" / f"{i}.png").write_bytes(png(i))
    (root / "scans.csv").write_text("path,category\n" + "".join(f"scans/{i}.png,{i % 4}\n" for i in range(40, 60)))
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary) / "three")

    def fields(picture: str, label: str) -> dict[str, hr.Field]:
        return {"image": hr.image(picture).resize((12, 16)), "label": hr.scalar(label)}

    mixed = hr.blend(
        {
            "folder": (hr.open(root / "folder", fields("png", "cls")), 0.5),
            "tar": (hr.open(root / "photos.tar", fields("photo.png", "class")), 0.25),
            "list": (hr.open(root / "scans.csv", fields("png", "category")), 0.25),
        },
        epoch_samples=640,
    )
    batches = list(hr.Loader(mixed, batch_size=64, seed=1, output="numpy"))

    shares = collections.Counter(int(source) for batch in batches for source in batch.sources)
    assert [shares[k] for k in range(3)] == [320, 160, 160]
    for batch in batches:
        colour = batch["image"][:, 0, 0, 0]
        assert np.array_equal(batch["label"], colour % 4) and np.array_equal(colour // 20, batch.sources)
    print(f"{sum(shares.values())} samples of three sources, exactly in the shares {[shares[k] / 640 for k in range(3)]}")
