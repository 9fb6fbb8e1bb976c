# SPDX-License-Identifier: Apache-2.0
"""Volumes with labels, as UNet3D learns from them: random 3D crops out of npz and out of HDF5, a given share with a tumour in it.

    python examples/unet3d_volumes.py

Every file is a sample, of its own extents. A compressed npz opens as a whole for each crop; HDF5 in chunks opens those that the crop
touches. Plain random crops are the same from both: their places are drawn from seed, epoch and sample.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
import time
from typing import Any

import headrace as hr
import numpy as np

try:
    import h5py
    import torch
except ImportError as e:
    print(f"this example needs PyTorch and h5py: pip install torch h5py ({e})")
    sys.exit(0)

CASES, CROP, CHUNK, SHARE, EPOCHS = 12, (24, 24, 24), (16, 16, 16), 0.5, 8


def volume(case: int) -> tuple[Any, Any]:
    """A noisy body with a small bright ball in it: the image i16, as scanners give it, and where the ball is."""
    rng = np.random.default_rng(case)
    shape = rng.integers(48, 73, 3)
    z, y, x = np.ogrid[tuple(slice(0, n) for n in shape)]
    center = [rng.integers(12, n - 12) for n in shape]
    ball = (z - center[0]) ** 2 + (y - center[1]) ** 2 + (x - center[2]) ** 2 < 36
    image = rng.normal(100, 30, shape) + 250 * ball + 40 * np.sin(x / 9)
    return image.astype("i2"), ball.astype("u1")


def write(folder: pathlib.Path) -> dict[str, str]:
    for case in range(CASES):
        image, label = volume(case)
        np.savez_compressed(folder / f"case-{case:02d}.npz", image=image, label=label)
        with h5py.File(folder / f"case-{case:02d}.h5", "w") as f:
            f.create_dataset("image", data=image, chunks=CHUNK, compression="gzip", compression_opts=1, shuffle=True)
            f.create_dataset("label", data=label, chunks=CHUNK, compression="gzip", compression_opts=1)
    return {"npz": str(folder / "case-*.npz"), "HDF5": str(folder / "case-*.h5")}


def make_loader(url: str, share: float, output: str = "torch") -> hr.Loader:
    crop: dict[str, Any] = {"along": "file", "patch": CROP}
    if share > 0:
        crop |= {"foreground": "label", "share": share}
    fields = {"image": hr.array("image", **crop).normalize(100.0, 40.0), "label": hr.array("label", **crop), "key": hr.key()}
    return hr.Loader(url, 2, fields, seed=5, output=output)


def crops(url: str, share: float) -> tuple[float, list[Any], float]:
    """Crops a second, the crops, and how many of them have a part of a ball in them."""
    with make_loader(url, share, "numpy") as loader:
        begin = time.perf_counter()
        seen = [{k: np.array(v) for k, v in batch.items()} for n in range(EPOCHS) for batch in loader.epoch(n)]
        rate = 2 * len(seen) / (time.perf_counter() - begin)
    return rate, seen, float(np.mean([label.any() for batch in seen for label in batch["label"]]))


def train(url: str) -> list[float]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Conv3d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv3d(4, 1, 3, padding=1))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    losses = []
    with make_loader(url, SHARE) as loader:
        for _, batches in loader.epochs(EPOCHS):
            for batch in batches:
                wanted = batch["label"][:, None].float()
                loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch["image"][:, None]), wanted)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    return losses


def check(batch: Any) -> None:
    """Each crop with a ball in it is a part of its volume, image and label from the same place."""
    for crop, label, key in zip(batch["image"], batch["label"], batch["key"]):
        image, ball = volume(int(key.rpartition("-")[2]))
        places = (
            np.argwhere((np.lib.stride_tricks.sliding_window_view(ball, CROP) == label).all((3, 4, 5))) if label.any() else []
        )
        parts = [image[tuple(slice(o, o + n) for o, n in zip(place, CROP))] for place in places]
        assert not parts or any(np.allclose(crop, (part - 100.0) / 40.0, atol=1e-4) for part in parts)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        urls = write(pathlib.Path(temporary))
        plain = []
        for name, url in urls.items():
            rate, seen, by_chance = crops(url, 0)
            plain.append(seen)
            _, balanced, share = crops(url, SHARE)
            print(f"{name:5} {rate:5.0f} crops/s, {by_chance:.0%} of them with a ball; {share:.0%} where half are asked for")
            assert share >= SHARE
            check(balanced[0])
        for a, b in zip(*plain):
            assert all(np.array_equal(a[k], b[k]) for k in a)
        losses = train(urls["HDF5"])
        print(f"loss {np.mean(losses[:4]):.3f} at first, {np.mean(losses[-4:]):.3f} at the end")
        assert np.mean(losses[-4:]) < 0.5 * np.mean(losses[:4])
    print("npz and HDF5 gave exactly the same random crops")


if __name__ == "__main__":
    main()
