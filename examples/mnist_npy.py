# SPDX-License-Identifier: Apache-2.0
"""MNIST-sized arrays in .npy files, held in memory: one copy for all processes of a node.

    python examples/mnist_npy.py [IMAGES.npy LABELS.npy]

IMAGES is u8 [n, 28, 28], LABELS integers [n]. Without them, 60,000 pictures of ten blurred blobs are made. The file is
read once, as it lies; batches take their rows from there, in a new order every epoch, and a linear classifier learns from them.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
import time

import headrace as hr
import numpy as np

try:
    import torch
except ImportError:
    print("this example needs PyTorch: pip install torch")
    sys.exit(0)

SAMPLES, CLASSES, BATCH = 60_000, 10, 256


def write(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, SAMPLES)
    y, x = np.mgrid[0:28, 0:28]
    blobs = np.stack(
        [np.exp(-((x - 14 - 9 * np.cos(a)) ** 2 + (y - 14 - 9 * np.sin(a)) ** 2) / 20) for a in np.arange(CLASSES) * 0.628]
    )
    images = (blobs * 190).astype("u1")[labels]
    images += rng.integers(0, 60, (1000, 28, 28), dtype="u1")[np.arange(SAMPLES) % 1000]
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels.astype("u1"))
    return folder / "images.npy", folder / "labels.npy"


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        given = [pathlib.Path(a) for a in sys.argv[1:3]]
        pictures, classes = given if len(given) == 2 else write(pathlib.Path(temporary))
        labels = torch.from_numpy(np.load(classes).astype("i8"))  # 60 kB; the batch says whose they are
        field = hr.array("data").normalize(33.3, 78.6)
        model = torch.nn.Linear(28 * 28, CLASSES)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        train = hr.open(pictures, {"image": field}, in_memory=True)
        with hr.Loader(train, BATCH, seed=1) as loader:
            for epoch, batches in loader.epochs(2):
                begin, right, seen = time.perf_counter(), 0, []
                for batch in batches:
                    wanted = labels[batch.indices]
                    scores = model(batch["image"].flatten(1))
                    loss = torch.nn.functional.cross_entropy(scores, wanted)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    right += int((scores.argmax(1) == wanted).sum())
                    seen.append(batch.indices)
                rate = len(loader) * BATCH / (time.perf_counter() - begin)
                print(f"epoch {epoch}: {right / (len(loader) * BATCH):.1%} right, {rate:,.0f} pictures/s")
                assert len(np.unique(np.concatenate(seen))) == len(loader) * BATCH
        stored = np.load(pictures, mmap_mode="r")
        with hr.Loader(pictures, 1000, shuffle=False, output="numpy") as loader:
            assert all(np.array_equal(batch["data"], stored[batch.indices]) for batch in loader)
        del train  # the last one that holds it removes it
        print(f"every epoch had each picture at most once, and {len(stored):,} rows are exactly NumPy's")


if __name__ == "__main__":
    main()
