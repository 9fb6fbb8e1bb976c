# SPDX-License-Identifier: Apache-2.0
"""A small data set of raw pictures, in CIFAR's own files, held in memory and shared by the processes of a node.

    python examples/cifar_in_memory.py [FOLDER]

FOLDER: `cifar-10-batches-py` as it comes from its archive. Without it, random pictures are written as CIFAR's are: pickled dicts with
`data`, a row of 3 x 32 x 32 bytes for each picture, and `labels`. They are read without executing anything in them. Two data sets over
the same files use one copy in /dev/shm; the last one removes it.
"""

from __future__ import annotations

import pathlib
import pickle
import sys
import tempfile

import headrace as hr
import numpy as np

SAMPLES = 500  # in each of two files


def write(folder: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    for n in (1, 2):
        pixels = rng.integers(0, 256, (SAMPLES, 3 * 32 * 32), dtype=np.uint8)
        batch = {"data": pixels, "labels": rng.integers(0, 10, SAMPLES).tolist(), "batch_label": f"batch {n} of 2"}
        (folder / f"data_batch_{n}").write_bytes(pickle.dumps(batch))
    return folder


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else write(pathlib.Path(temporary))
        files = sorted(folder.glob("data_batch_*"))
        raw = hr.image("data", shape=(3, 32, 32), layout="CHW")
        steps = raw.random_crop(32, padding=4).random_flip().normalize(hr.IMAGENET)
        train = hr.open(files, {"image": steps, "label": hr.scalar("labels")}, in_memory=True)
        evaluate = hr.open(files, {"image": raw, "label": hr.scalar("labels")}, in_memory=True)
        with hr.Loader(train, batch_size=50, seed=1, output="numpy") as loader:
            for epoch, batches in loader.epochs(2):
                shapes = {batch["image"].shape for batch in batches}
                print(f"epoch {epoch}: {len(loader)} batches of {shapes}")
        stored = [pickle.loads(path.read_bytes(), encoding="latin1") for path in files]
        pixels = np.concatenate([batch["data"] for batch in stored]).reshape(-1, 3, 32, 32)
        labels = np.concatenate([batch["labels"] for batch in stored])
        with hr.Loader(evaluate, batch_size=64, shuffle=False, output="numpy") as loader:
            for batch in loader.epoch(0):
                assert np.array_equal(batch["image"], pixels[batch.indices])
                assert np.array_equal(batch["label"], labels[batch.indices])
        print("pixels and labels are exactly those of the files")
        del train, evaluate


if __name__ == "__main__":
    main()
