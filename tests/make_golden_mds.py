# SPDX-License-Identifier: Apache-2.0
"""Writes MDS folders with MosaicML Streaming, for our reader to agree with; reads ours with it.

peer | write FOLDER | check FOLDER: see golden_script.py; bench/peers/mosaic.txt has the versions.
"""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import shutil
from decimal import Decimal
from importlib.metadata import version
from typing import Any

import numpy as np
import zstd  # type: ignore[import-not-found,unused-ignore]
from golden_script import agree, expected, run, sets_in
from PIL import Image
from streaming import MDSWriter, StreamingDataset  # type: ignore[import-not-found,unused-ignore]

COUNT = 12
PEER = f"mosaicml-streaming {version('mosaicml-streaming')}"


def pixels(i: int, *shape: int) -> Any:
    return ((np.arange(np.prod(shape)) * 7 + 31 * i) % 256).astype(np.uint8).reshape(shape)


def picture(i: int, mode: str = "RGB") -> Any:
    channels = {"RGB": (3,), "L": (), "RGBA": (4,)}[mode]
    return Image.fromarray(pixels(i, 6 + i % 3, 9, *channels), mode)


def jpeg(i: int) -> bytes:
    out = io.BytesIO()
    picture(i).save(out, "JPEG")
    return out.getvalue()


SCALARS: dict[str, tuple[str, Any]] = {
    "int": ("int", lambda i: 2**62 * (-1) ** i + i),
    "i8": ("int8", lambda i: np.int8(-128 + i)),
    "i16": ("int16", lambda i: np.int16(-(2**15) + i)),
    "i32": ("int32", lambda i: np.int32(-(2**31) + i)),
    "i64": ("int64", lambda i: np.int64(-(2**63) + i)),
    "u8": ("uint8", lambda i: np.uint8(255 - i)),
    "u16": ("uint16", lambda i: np.uint16(2**16 - 1 - i)),
    "u32": ("uint32", lambda i: np.uint32(2**32 - 1 - i)),
    "u64": ("uint64", lambda i: np.uint64(2**63 - 1 - i)),
    "f16": ("float16", lambda i: np.float16(i / 8 - 0.25)),
    "f32": ("float32", lambda i: np.float32(i / 3)),
    "f64": ("float64", lambda i: np.float64(-i / 7)),
    "si": ("str_int", lambda i: 10**9 * i - 5),
    "sf": ("str_float", lambda i: i / 9),
    "sd": ("str_decimal", lambda i: Decimal(i) / Decimal(3)),
}
VALUES: dict[str, tuple[str, Any]] = {
    "raw": ("bytes", lambda i: bytes(range(i))),
    "text": ("str", lambda i: f"caption {i} ü" * (i % 3)),
    "meta": ("json", lambda i: {"id": i, "tags": ["a", None, 0.5][: i % 4]}),
    "photo": ("jpeg", lambda i: jpeg(i)),
    "mask": ("png", lambda i: picture(i, "L")),
    "plain": ("pil", lambda i: picture(i, ["RGB", "L", "RGBA"][i % 3])),
    "views": ("list[jpeg]", lambda i: [jpeg(i + k) for k in range(i % 3)]),
    "shots": ("jpeg_array", lambda i: [jpeg(i + k) for k in range(1 + i % 2)]),
    "masks": ("list[png]", lambda i: [picture(i, "L")]),
    "any": ("ndarray", lambda i: pixels(i, 1 + i, 3).astype(["u1", "<i8", "<f4"][i % 3])),
    "long": ("ndarray:uint16", lambda i: np.arange(300 * (1 + i % 2), dtype=np.uint16)),
    "box": ("ndarray:float32:2,3", lambda i: np.full((2, 3), i / 2, np.float32)),
}
PLAINS: dict[str, tuple[str, Any]] = {"plains": ("list[pil]", lambda i: [picture(i + k) for k in range(2)])}


def columns(*tables: dict[str, tuple[str, Any]]) -> dict[str, str]:
    return {name: encoding for table in tables for name, (encoding, _) in table.items()}


def sample(i: int, *tables: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """Lists of pictures take bytes only where the encoding itself does."""
    out = {name: make(i) for table in tables for name, (_, make) in table.items()}
    if "views" in out:
        out["views"] = [Image.open(io.BytesIO(b)) for b in out["views"]]
    return out


def as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Image.Image):
        if value.format in ("JPEG", "PNG"):
            value.fp.seek(0) if getattr(value, "fp", None) else None
        return as_json(np.asarray(value))
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return {"dtype": value.dtype.str, "shape": list(value.shape), "sha256": digest}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return [as_json(v) for v in value]
    return value


def read(folder: pathlib.Path) -> list[dict[str, Any]]:
    data = StreamingDataset(local=str(folder), shuffle=False, batch_size=1)
    out = []
    for i in range(len(data)):
        out.append({name: as_json(value) for name, value in data[i].items()})
    return out


def write(root: pathlib.Path) -> None:
    sets: dict[str, tuple[Any, dict[str, Any]]] = {
        "scalars": ((SCALARS,), {}),
        "values": ((VALUES,), {"size_limit": 20_000, "hashes": ["sha1", "xxh64"]}),
        "zstd": ((VALUES, SCALARS), {"size_limit": 20_000, "compression": "zstd:7"}),
        "both": ((SCALARS,), {"compression": "zstd"}),
        "lists": ((PLAINS,), {"compression": "zstd"}),
        "gz": ((SCALARS,), {"compression": "gz"}),
        "pickle": (({"any": ("pkl", lambda i: {"x": i})},), {}),
    }
    wanted: dict[str, Any] = {"writer": PEER}
    for name, (tables, options) in sets.items():
        folder = root / name
        shutil.rmtree(folder, ignore_errors=True)
        with MDSWriter(out=str(folder), columns=columns(*tables), **options) as out:
            for i in range(COUNT):
                out.write(sample(i, *tables))
        if name in ("scalars", "values", "zstd"):
            copy = root / "read back"
            shutil.copytree(folder, copy)
            wanted[name] = read(copy)
            shutil.rmtree(copy)
    packed = root / "both/shard.00000.mds.zstd"
    packed.with_suffix("").write_bytes(zstd.decompress(packed.read_bytes()))
    (root / "expected.json").write_text(json.dumps(wanted, indent=1) + "\n")


def check(folder: pathlib.Path) -> None:
    """As headrace writes them: lists that never have two are values, decimals are texts, raw pictures arrays."""
    for packed in sets_in(folder):
        want, got = expected("mds")[packed.name], read(packed)
        for sample in got:
            assert isinstance(sample.pop("__key__"), str)
        for sample in want:
            if "masks" in sample:
                sample["masks"] = sample["masks"][0]
        agree(packed.name, got, want)


if __name__ == "__main__":
    run(PEER, write, check)
