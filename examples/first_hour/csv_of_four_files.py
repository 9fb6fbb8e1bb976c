# SPDX-License-Identifier: Apache-2.0
"""A CSV with four columns of files and a number: two pictures, a depth map and a caption a row. Compared with pandas, Pillow and NumPy.

python examples/first_hour/csv_of_four_files.py
"""

from __future__ import annotations

import pathlib
import tempfile

import headrace as hr
import numpy as np
import pandas as pd
from PIL import Image


def make(root: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    for name in ("left", "right", "depth", "caption"):
        (root / name).mkdir(parents=True)
    for i in range(10):
        for name in ("left", "right"):
            Image.fromarray(rng.integers(0, 255, (20, 30, 3), np.uint8)).save(root / name / f"{i}.png")
        np.save(root / "depth" / f"{i}.npy", rng.random((20, 30), np.float32))
        (root / "caption" / f"{i}.txt").write_text(f"scene {i}")
    names = {"left": "png", "right": "png", "depth": "npy", "caption": "txt"}
    frame = pd.DataFrame({n: [f"{n}/{i}.{e}" for i in range(10)] for n, e in names.items()} | {"speed": np.arange(10) / 4})
    frame.to_csv(root / "stereo.csv", index=False)
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary) / "stereo")

    fields = {
        "left": hr.image("left").resize((20, 30)).layout("NHWC"),
        "right": hr.image("right").resize((20, 30)).layout("NHWC"),
        "depth": hr.array("depth"),
        "caption": hr.text("caption"),
        "speed": hr.scalar("speed"),
    }
    batch = next(iter(hr.Loader(root / "stereo.csv", batch_size=10, fields=fields, shuffle=False, output="numpy")))

    for i, row in enumerate(pd.read_csv(root / "stereo.csv").itertuples()):
        assert np.array_equal(batch["left"][i], np.asarray(Image.open(root / row.left)))
        assert np.array_equal(batch["right"][i], np.asarray(Image.open(root / row.right)))
        assert np.array_equal(batch["depth"][i], np.load(root / row.depth))
        assert batch["caption"][i] == (root / row.caption).read_text() and batch["speed"][i] == row.speed
    print(f"{len(batch['speed'])} rows of four files each, exactly as pandas, Pillow and NumPy read them")
