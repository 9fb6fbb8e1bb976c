#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/wheel.py runs where headrace was installed from a wheel: wheel_trial.py FOLDER (of wheel_data.py).

Needs NumPy and headrace alone. HDF5 and Parquet want h5py and pyarrow: without them the error must name the remedy.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import headrace as hr
import numpy as np

COUNT = 24
CUBE = np.arange(40 * 32 * 64, dtype="f4").reshape(40, 32, 64)


def check_libraries() -> None:
    """All that a build may leave out is there, and lies with the wheel."""
    missing = [f"{what}: {words}" for what, fine, words in hr.doctor() if not fine]
    assert not missing, missing
    import headrace._core

    home = pathlib.Path(headrace._core.__file__).resolve().parent.parent
    mapped = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    names = ("jpeg", "spng", "webp", "zstd", "lz4", "blosc", "deflate", "lzma", "libz", "snappy", "fmt", "sharpyuv")
    strangers = [m for m in mapped if any(n in os.path.basename(m) for n in names) and not m.startswith(str(home))]
    # Python brings its own zlib and lzma modules, with the system's libraries below them; OpenSSL may use the system's zstd.
    ours = {os.path.basename(m).split("-")[0] for m in mapped if m.startswith(str(home))}
    allowed = ("libz.", "lzma", "_zstd", "lib-dynload")
    others = [s for s in strangers if not any(n in s for n in allowed) and os.path.basename(s).split(".")[0] not in ours]
    assert not others, others


def check_pictures(source: pathlib.Path, field: str, label: str = "cls") -> None:
    fields = {"image": hr.image(field).random_resized_crop(48).normalize(hr.IMAGENET), "label": hr.scalar(label)}
    with hr.Loader(source, 8, fields, seed=1, output="numpy") as loader:
        batches = [(b["image"].copy(), b["label"].tolist()) for b in loader.epoch(0)]
    assert sorted(n for _, labels in batches for n in labels) == list(range(COUNT)), batches
    for image, _ in batches:
        assert image.shape == (8, 3, 48, 48) and image.std() > 0.1


def check_cube(source: str, name: str) -> None:
    field = hr.array(name, window=4, horizon=2, patch=(16, 16), starts=[[i, i % 16, 2 * i] for i in range(24)])
    with hr.Loader(source, 4, {"x": field}, shuffle=False, output="numpy") as loader:
        x = np.concatenate([b["x"] for b in loader.epoch(0)])
    for i in range(24):
        assert np.array_equal(x[i], CUBE[i : i + 4, i % 16 : i % 16 + 16, 2 * i : 2 * i + 16]), (source, name, i)


def check_packing(folder: pathlib.Path, work: pathlib.Path) -> None:
    """One format into another, and back into bytes that are the same."""
    first = {s["__key__"]: s["jpg"] for s in _samples(folder / "jpg.tar")}
    for to in ("lmdb", "tfrecord", "mds", "arrow", "zarr"):
        hr.pack(folder / "jpg.tar", work / f"packed.{to}", to=to)
        check_pictures(work / f"packed.{to}", "jpg")
        if to != "zarr":
            assert {s["__key__"]: s["jpg"] for s in _samples(work / f"packed.{to}")} == first, to
    hr.pack(folder / "cube.zarr", work / "cube.zarr", to="zarr", codec="zstd", fields=["lz4"], window=4, patch=16)
    check_cube(f"{work / 'cube.zarr'}", "lz4")


def _samples(source: pathlib.Path) -> list[dict[str, object]]:
    return [dict(s) for s in hr.open(source, {"__key__": hr.key(), "jpg": hr.bytes("jpg")})]


def check_volumes(folder: pathlib.Path) -> None:
    options = {"along": "file", "patch": (4, 16, 16)}
    fields = {"x": hr.array("x", **options, foreground="y", share=1.0), "y": hr.array("y", **options)}
    with hr.Loader(str(folder / "case*.npz"), 2, fields, seed=1, output="numpy") as loader:
        for batch in loader.epoch(0):
            assert np.array_equal(batch["y"], batch["x"] % 7 == 0) and batch["y"].any(axis=(1, 2, 3)).all()


def check_optional(package: str, source: pathlib.Path, check: object) -> None:
    """With the package it is read; without it the error says how to get it."""
    if importlib.util.find_spec(package):
        check()  # type: ignore[operator]
        return
    said = ""
    try:
        hr.open(source)
    except hr.Error as e:
        said = str(e)
    assert f"pip install {package}" in said, (source, said)
    print(f"  without {package}: {said}")


def check_hdf5(folder: pathlib.Path, work: pathlib.Path) -> None:
    check_pictures(folder / "data.h5#/", "images", "labels")
    for name in ("gzip", "lzf"):
        check_cube(f"{folder / 'data.h5'}#cubes", name)
    hr.pack(folder / "cube.zarr", work / "cube.h5", to="hdf5", fields=["lz4"])
    check_cube(str(work / "cube.h5"), "lz4")


def main(folder: pathlib.Path) -> None:
    print("trying", hr.__file__)
    for suffix in ("jpg", "png", "webp"):
        check_pictures(folder / f"{suffix}.tar", suffix)
    for codec in ("uncompressed", "lz4", "zstd"):
        check_pictures(folder / f"{codec}.arrow", "image", "label")
    check_pictures(folder / "photos.lmdb", "jpg")
    for name in ("lz4", "zstd", "zlib", "blosclz"):
        check_cube(str(folder / "cube.zarr"), name)
    check_volumes(folder)
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        check_packing(folder, work)
        check_optional("h5py", folder / "data.h5", lambda: check_hdf5(folder, work))
    check_optional("pyarrow", folder / "table.parquet", lambda: check_pictures(folder / "table.parquet", "image", "label"))
    check_libraries()
    command = pathlib.Path(sys.executable).parent / "headrace"
    subprocess.run([command, "inspect", folder / "cube.zarr"], check=True, stdout=subprocess.DEVNULL)
    more = "".join(f", {what}" for p, what in (("h5py", "HDF5"), ("pyarrow", "Parquet")) if importlib.util.find_spec(p))
    print(f"read tar (JPEG, PNG, WebP), Arrow, LMDB, Zarr, npz{more}; packed one into another")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
