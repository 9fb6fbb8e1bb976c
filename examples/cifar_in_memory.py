# SPDX-License-Identifier: Apache-2.0
"""A small data set of raw pictures, CIFAR's layout, held in memory and shared by the ranks of a node.

Makes random pictures in a tar: 32 x 32 pixels, the channels first, as CIFAR's files have them, without any
picture format around them. Two data sets over the same files use one copy in /dev/shm; the last one removes it.

python examples/cifar_in_memory.py
"""

from __future__ import annotations

import io
import pathlib
import tarfile
import tempfile

import headrace as hr
import numpy as np

SAMPLES = 500


def write(path: pathlib.Path, pixels: np.ndarray, labels: np.ndarray) -> None:
    with tarfile.open(path, "w") as tar:
        for i, (picture, label) in enumerate(zip(pixels, labels)):
            for name, value in (("raw", picture.tobytes()), ("cls", str(label).encode())):
                info = tarfile.TarInfo(f"{i:05d}.{name}")
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))


def main() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (SAMPLES, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, SAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cifar.tar"
        write(path, pixels, labels)
        raw = hr.image("raw", shape=(3, 32, 32), layout="CHW")
        train = hr.open(path, {"image": raw.random_crop(32, padding=4).random_flip().normalize(hr.IMAGENET)}, in_memory=True)
        evaluate = hr.open(path, {"image": raw, "label": hr.scalar("cls")}, in_memory=True)
        with hr.Loader(train, batch_size=50, seed=1, output="numpy") as loader:
            for epoch, batches in loader.epochs(2):
                print(f"epoch {epoch}: {[b['image'].shape for b in batches][:2]} …")
        with hr.Loader(evaluate, batch_size=64, shuffle=False, output="numpy") as loader:
            for batch in loader.epoch(0):
                assert np.array_equal(batch["image"], pixels[batch.indices])
                assert np.array_equal(batch["label"], labels[batch.indices])
        print("the pixels are exactly those that were written")
        del train, evaluate


if __name__ == "__main__":
    main()
