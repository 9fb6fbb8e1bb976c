#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what tools/wheel_trial.py reads, each by its format's own writer: wheel_data.py FOLDER."""

from __future__ import annotations

import io
import pathlib
import sys
import tarfile

import h5py
import lmdb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import zarr
from headrace.photos import make_photo
from numcodecs import Blosc
from PIL import Image

COUNT = 24
CUBE = np.arange(40 * 32 * 64, dtype="f4").reshape(40, 32, 64)


def pictures() -> dict[str, list[bytes]]:
    """The same pictures as JPEG, PNG and WebP."""
    jpegs = [make_photo(i, (160, 120)) for i in range(COUNT)]
    out = {"jpg": jpegs}
    for suffix, name, options in (("png", "PNG", {}), ("webp", "WEBP", {"quality": 90})):
        out[suffix] = []
        for jpeg in jpegs:
            made = io.BytesIO()
            Image.open(io.BytesIO(jpeg)).save(made, name, **options)
            out[suffix].append(made.getvalue())
    return out


def write_tar(path: pathlib.Path, members: list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as out:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))


def write_zarr(path: pathlib.Path) -> None:
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    for name in ("lz4", "zstd", "zlib", "blosclz"):
        array = group.create_array(name, shape=CUBE.shape, chunks=(8, 16, 32), dtype="f4", compressors=Blosc(name))
        array[:] = CUBE
        array.attrs["_ARRAY_DIMENSIONS"] = ["time", "lat", "lon"]


def write_hdf5(path: pathlib.Path, jpegs: list[bytes]) -> None:
    with h5py.File(path, "w") as f:
        images = f.create_dataset("images", (COUNT,), h5py.vlen_dtype(np.uint8))
        for i, jpeg in enumerate(jpegs):
            images[i] = np.frombuffer(jpeg, np.uint8)
        f["labels"] = np.arange(COUNT)
        f.create_dataset("cubes/gzip", data=CUBE, chunks=(8, 16, 32), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("cubes/lzf", data=CUBE, chunks=(8, 16, 32), compression="lzf")


def main(folder: pathlib.Path) -> None:
    made = pictures()
    for suffix, values in made.items():
        members = [(f"{i:03}.{s}", d) for i, v in enumerate(values) for s, d in ((suffix, v), ("cls", str(i).encode()))]
        write_tar(folder / f"{suffix}.tar", members)
    write_zarr(folder / "cube.zarr")
    write_hdf5(folder / "data.h5", made["jpg"])
    table = pa.table({"image": made["jpg"], "label": np.arange(COUNT)})
    for codec in ("uncompressed", "lz4", "zstd"):
        pyarrow.feather.write_feather(table, folder / f"{codec}.arrow", codec)
    pyarrow.parquet.write_table(table, folder / "table.parquet", compression="zstd")
    with lmdb.open(str(folder / "photos.lmdb"), subdir=False, map_size=1 << 26) as env, env.begin(write=True) as txn:
        for i, jpeg in enumerate(made["jpg"]):
            txn.put(f"{i:03}.jpg".encode(), jpeg)
            txn.put(f"{i:03}.cls".encode(), str(i).encode())
    for i in range(4):
        np.savez_compressed(folder / f"case{i}.npz", x=CUBE[i : i + 8], y=(CUBE[i : i + 8] % 7 == 0).astype("u1"))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
