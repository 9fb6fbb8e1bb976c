# SPDX-License-Identifier: Apache-2.0
"""Writes LitData folders with LitData, for our reader to agree with.

peer | write FOLDER: see golden_script.py; tests/golden/litdata/requirements.txt has the versions.
"""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import shutil
import tempfile
from typing import Any

import litdata  # type: ignore[import-not-found,unused-ignore]
import numpy as np
import torch
from golden_script import run
from litdata.streaming.item_loader import TokensLoader  # type: ignore[import-not-found,unused-ignore]
from litdata.streaming.writer import BinaryWriter  # type: ignore[import-not-found,unused-ignore]
from PIL import Image

COUNT = 10


def pixels(i: int, *shape: int) -> Any:
    return ((np.arange(np.prod(shape)) * 7 + 31 * i) % 256).astype(np.uint8).reshape(shape)


def jpeg(i: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels(i, 6 + i % 3, 9, 3)).save(out, "JPEG")
    return out.getvalue()


def every(i: int) -> dict[str, Any]:
    """One leaf of each serializer that we read."""
    return {
        "id": 2**62 * (-1) ** i + i,
        "weight": i / 7,
        "even": i % 2 == 0,
        "text": f"caption {i} ü",
        "raw": bytes(range(i)),
        "photo": Image.open(io.BytesIO(jpeg(i))),
        "shots": litdata.types.JpegArray(images=[jpeg(i + k) for k in range(1 + i % 3)]),
        "plain": Image.fromarray(pixels(i, 4, 5 + i, 3)),
        "pack": {"grid": torch.arange(2 * i, dtype=torch.int32).reshape(2, i), "zero": torch.tensor(i / 2)},
        "table": pixels(i, 1 + i, 3).astype("<f8"),
        "ids": torch.arange(i, dtype=torch.int64),
        "mask": np.arange(i, dtype=np.uint16),
    }


def shots(i: int) -> dict[str, Any]:
    return {"id": i, "shots": every(i)["shots"]}


def leaf(i: int) -> bytes:
    return b"item %d " % i * i


def pair(i: int) -> tuple[str, int]:
    return f"name {i}", -i


def described(array: Any) -> dict[str, Any]:
    array = array.numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": digest}


def as_json(value: Any) -> Any:
    if isinstance(value, (bytes, memoryview)):
        return {"hex": bytes(value).hex()}
    if isinstance(value, dict):
        return {k: as_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(v) for v in value]
    if isinstance(value, (torch.Tensor, np.ndarray, Image.Image)):
        return described(value)
    return value


def write_items(folder: pathlib.Path, make: Any, **options: Any) -> list[Any]:
    """The items as LitData reads them back."""
    shutil.rmtree(folder, ignore_errors=True)
    writer = BinaryWriter(str(folder), chunk_size=4, **options)
    for i in range(COUNT):
        writer[i] = make(i)
    writer.done()
    writer.merge()
    with tempfile.TemporaryDirectory() as cache:
        shutil.copytree(folder, cache, dirs_exist_ok=True)
        data = litdata.StreamingDataset(cache, shuffle=False)
        return [as_json(data[i]) for i in range(len(data))]


def write_tokens(folder: pathlib.Path) -> list[list[int]]:
    shutil.rmtree(folder, ignore_errors=True)
    documents = [torch.arange(3 * i, dtype=torch.int32) + i for i in range(1, 6)]
    writer = BinaryWriter(str(folder), chunk_bytes=1 << 20, item_loader=TokensLoader(block_size=4))
    for i, document in enumerate(documents):
        writer[i] = document
    writer.done()
    writer.merge()
    return [d.tolist() for d in documents]


def write(root: pathlib.Path) -> None:
    expected: dict[str, Any] = {"writer": f"litdata {litdata.__version__}"}
    expected["every"] = write_items(root / "every", every)
    for level in ("chunk", "batch", "sample"):
        expected[f"zstd_{level}"] = write_items(
            root / f"zstd_{level}",
            every,
            compression="zstd",
            compression_level=level,
            **({"compression_batch_size": 3} if level == "batch" else {}),
        )
    expected["shots"] = write_items(root / "shots", shots)
    expected["leaf"] = write_items(root / "leaf", leaf)
    expected["pair"] = write_items(root / "pair", pair)
    expected["tokens"] = write_tokens(root / "tokens")
    write_items(root / "pickle", lambda i: {"x": {1, i}})
    (root / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    run(f"litdata {litdata.__version__}", write)
