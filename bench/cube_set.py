# SPDX-License-Identifier: Apache-2.0
"""Fields, images and volumes that bench/arrays.py reads: made once below `data/bench`, by the peers' own writers."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil

import h5py
import numpy as np
import zarr
from photo_set import Data

STEPS, HEIGHT, WIDTH = 96, 721, 1440
VOLUMES, SIDE = 24, 128


@dataclasses.dataclass(frozen=True)
class Arrays:
    zarr: pathlib.Path  # t2m in Blosc (LZ4, shuffle), a chunk for each step
    hdf5: pathlib.Path  # the same, gzip and shuffle
    images: pathlib.Path  # HDF5, JPEGs as values of variable length
    volumes: pathlib.Path  # npz, stored
    packed: pathlib.Path  # npz, deflated


def field(step: int) -> np.ndarray:
    """Like a temperature: waves that move, a little noise, rounded to a 32nd of a degree (as bit-rounded archives are)."""
    rng = np.random.default_rng(step)
    y, x = np.mgrid[0:1:721j, 0:1:1440j].astype(np.float32)
    out = 280 + 30 * np.sin(np.pi * y)
    for k in range(1, 7):
        out += 8 / k * np.sin(2 * np.pi * (k * x + 0.02 * step * k) + 5 * y * k)
    out += rng.normal(0, 0.02, out.shape)
    return (np.round(out * 32) / 32).astype(np.float32)


def _write_cube(arrays: Arrays) -> None:
    codec = zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=4)
    group = zarr.open_group(arrays.zarr, mode="w", zarr_format=3)
    shape, chunk = (STEPS, HEIGHT, WIDTH), (1, HEIGHT, WIDTH)
    cube = group.create_array(
        "t2m", shape=shape, chunks=chunk, dtype="f4", compressors=codec, dimension_names=["time", "lat", "lon"]
    )
    with h5py.File(arrays.hdf5, "w") as file:
        other = file.create_dataset("t2m", shape, "f4", chunks=chunk, compression="gzip", shuffle=True)
        for step in range(STEPS):
            cube[step] = other[step] = field(step)


def _write_images(arrays: Arrays, data: Data) -> None:
    files = sorted(data.photos.glob("*/*.jpg"))
    with h5py.File(arrays.images, "w") as file:
        images = file.create_dataset("images", (len(files),), h5py.vlen_dtype(np.uint8))
        for i, name in enumerate(files):
            images[i] = np.frombuffer(name.read_bytes(), np.uint8)
        file["labels"] = np.arange(len(files)) % 10


def _write_volumes(arrays: Arrays) -> None:
    arrays.volumes.mkdir(parents=True, exist_ok=True)
    arrays.packed.mkdir(parents=True, exist_ok=True)
    for i in range(VOLUMES):
        rng = np.random.default_rng(i)
        y = (np.indices((SIDE,) * 3).sum(0) + i) % 90 < 7
        x = (y * 100 + np.round(rng.normal(0, 20, y.shape))).astype(np.float32)
        np.savez(arrays.volumes / f"{i:03d}.npz", x=x, y=y.astype(np.uint8))
        np.savez_compressed(arrays.packed / f"{i:03d}.npz", x=x, y=y.astype(np.uint8))


def make_arrays(folder: pathlib.Path, data: Data) -> Arrays:
    root = folder / f"arrays-{STEPS}-{data.images}"
    out = Arrays(root / "cube.zarr", root / "cube.h5", root / "images.h5", root / "volumes", root / "packed")
    if not root.exists():
        part = root.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        beginning = Arrays(*(part / getattr(out, f.name).name for f in dataclasses.fields(out)))
        _write_cube(beginning)
        _write_images(beginning, data)
        _write_volumes(beginning)
        part.rename(root)
    return out
