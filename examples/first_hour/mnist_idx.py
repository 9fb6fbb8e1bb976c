# SPDX-License-Identifier: Apache-2.0
"""MNIST's four idx files, gzipped as they are downloaded. Compared with torchvision's reader.

python examples/first_hour/mnist_idx.py
"""

from __future__ import annotations

import gzip
import pathlib
import struct
import tempfile

import headrace as hr
import numpy as np
from torchvision.datasets.mnist import read_image_file


def make(root: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    for split, count in (("train", 60), ("t10k", 10)):
        images = struct.pack(">IIII", 0x803, count, 28, 28) + rng.integers(0, 255, (count, 28, 28), np.uint8).tobytes()
        labels = struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count))
        (root / f"{split}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (root / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return root


with tempfile.TemporaryDirectory() as temporary:
    root = make(pathlib.Path(temporary))

    fields = {"image": hr.array("images").cast("f32"), "label": hr.scalar("labels")}
    loader = hr.Loader(f"{root}#train", batch_size=20, fields=fields, shuffle=False, output="numpy")
    images = np.concatenate([batch["image"] for batch in loader.epoch(0)])

    (root / "plain").write_bytes(gzip.decompress((root / "train-images-idx3-ubyte.gz").read_bytes()))
    assert np.array_equal(images, read_image_file(str(root / "plain")).numpy())
    print(f"{len(images)} digits, exactly torchvision's")
