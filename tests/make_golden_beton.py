# SPDX-License-Identifier: Apache-2.0
"""Writes .beton files with FFCV, for our reader to agree with, and what FFCV's own loader reads from them.

peer | write FOLDER: see golden_script.py; bench/peers/ffcv.txt has the versions.
The files are mostly zeros, pages of 2 MiB being the smallest: they are committed in gzip.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from ffcv.fields import (  # type: ignore[import-not-found,unused-ignore]
    BytesField,
    FloatField,
    IntField,
    JSONField,
    NDArrayField,
    RGBImageField,
    TorchTensorField,
)
from ffcv.loader import Loader, OrderOption  # type: ignore[import-not-found,unused-ignore]
from ffcv.writer import DatasetWriter  # type: ignore[import-not-found,unused-ignore]
from golden_script import run

COUNT = 11
HEIGHT, WIDTH = 12, 20
MODES = {
    "jpg": {"write_mode": "jpg"},
    "raw": {"write_mode": "raw"},
    "mixed": {"write_mode": "proportion", "compress_probability": 0.5},
}


def picture(i: int) -> np.ndarray[Any, Any]:
    """Every second one is noise."""
    if i % 2:
        return np.random.default_rng(i).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.stack([rows * 20, columns * 12, np.full_like(rows, 23 * i)], -1).astype(np.uint8)


class Samples:
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, i: int) -> tuple[Any, ...]:
        i = int(i)  # FFCV gives NumPy's
        return (
            i * 37 - 100,
            picture(i),
            i / 8 - 0.5,
            np.frombuffer(bytes(range(i * 20)), np.uint8) if i else np.zeros(0, np.uint8),
            {"number": i, "text": f"Zürich {i}"},
            (np.arange(6, dtype=np.float32) * i).reshape(2, 3),
            torch.arange(4, dtype=torch.int64) - i,
            np.array([i % 2 == 0, True, False]),
        )


def write_mode(folder: pathlib.Path, name: str) -> dict[str, Any]:
    path = folder / f"{name}.beton"
    fields = {
        "label": IntField(),
        "image": RGBImageField(jpeg_quality=90, **MODES[name]),
        "weight": FloatField(),
        "data": BytesField(),
        "meta": JSONField(),
        "box": NDArrayField(np.dtype("<f4"), (2, 3)),
        "tokens": TorchTensorField(torch.int64, (4,)),
        "flags": NDArrayField(np.dtype("bool"), (3,)),
    }
    DatasetWriter(str(path), fields, page_size=1 << 21, num_workers=2).from_indexed_dataset(Samples(), chunksize=3)
    loader = Loader(str(path), batch_size=1, num_workers=1, order=OrderOption.SEQUENTIAL)
    pixels = [batch[1][0].numpy().tobytes().hex() for batch in loader]
    modes = [int(m) for m in loader.reader.metadata["f1"]["mode"]]
    whole = path.read_bytes()
    path.unlink()
    (folder / f"{name}.beton.gz").write_bytes(gzip.compress(whole, 9, mtime=0))
    return {"modes": modes, "pixels": pixels}


def write(folder: pathlib.Path) -> None:
    samples = Samples()
    expected: dict[str, Any] = {name: write_mode(folder, name) for name in MODES}
    expected["samples"] = [
        {
            "label": label,
            "image": image.tobytes().hex(),
            "weight": weight,
            "data": data.tobytes().hex(),
            "meta": meta,
            "box": box.tolist(),
            "tokens": tokens.tolist(),
            "flags": flags.tolist(),
        }
        for label, image, weight, data, meta, box, tokens, flags in (samples[i] for i in range(COUNT))
    ]
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    run(f"ffcv {version('ffcv')}", write)
