# SPDX-License-Identifier: Apache-2.0
"""Loads for a long time: every epoch complete, every value right, memory flat, no descriptor or thread left over.

./dev soak [MINUTES] [--only tar,zarr,hdf5,values,volumes] [--json FILE]

All kinds of data are loaded in turn, a second each, by loaders that live all the time; between them others are made, begun and
left early, as notebooks do. Memory, descriptors and threads at the end are compared with those after two fifths of the time,
and at least two epochs of each kind (by then the loaders' buffers go round); what the allocator keeps for later is given back before memory is looked at.
A minute without a batch counts as a hang: where all threads are is told, and the run has failed.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import faulthandler
import gc
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import h5py
import headrace as hr
import numpy as np
import zarr
from photo_set import ROOT, make_data

IMAGES, VOLUMES, SIDE = 1000, 12, 48
STEPS, WINDOW, HORIZON, PATCH = 64, 4, 2, 48
#: Each element is its own number, which f32 holds exactly.
CUBE = np.arange(STEPS * 181 * 360, dtype=np.float32).reshape(STEPS, 181, 360)
HANG = 60  # seconds


@dataclasses.dataclass
class Kind:
    """One kind of data. ``check`` says whether a batch is what it should be."""

    name: str
    source: Any
    fields: dict[str, Any]
    batch: int
    samples: int
    check: Callable[[hr.Batch], bool]
    epochs: int = 0

    def loader(self) -> hr.Loader:
        return hr.Loader(
            self.source, self.batch, self.fields, seed=1, tail="keep", output="numpy", memory_budget="64MiB", threads=2
        )

    def batches(self, loader: hr.Loader) -> Iterator[None]:
        """Epoch after epoch, each of which must have every sample once."""
        for epoch, batches in loader.epochs(1 << 40):
            seen = []
            for batch in batches:
                if not self.check(batch):
                    raise SystemExit(f"{self.name}, epoch {epoch}: wrong values in a batch of {batch.indices}")
                seen.append(batch.indices.copy())
                yield
            if not np.array_equal(np.sort(np.concatenate(seen)), np.arange(self.samples)):
                raise SystemExit(f"{self.name}, epoch {epoch}: samples are missing or repeated")
            self.epochs += 1


def _windows_are_right(batch: hr.Batch) -> bool:
    """The first element says where the window lies; it goes over the end of the longitudes."""
    for index, x, after in zip(batch.indices, batch["x"], batch["x_target"]):
        step, lat, lon = np.unravel_index(int(x[0, 0, 0]), CUBE.shape)
        columns = np.arange(lon, lon + PATCH) % CUBE.shape[2]
        want = CUBE[step : step + WINDOW + HORIZON, lat : lat + PATCH][:, :, columns]
        if step != index or not np.array_equal(np.concatenate([x, after]), want):
            return False
    return True


def _volumes_are_right(batch: hr.Batch) -> bool:
    return bool(np.array_equal(batch["y"], batch["x"] % 5 == 0))


def make_arrays(folder: pathlib.Path, photos: pathlib.Path) -> None:
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    codec = zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=4)
    group = zarr.open_group(folder / "cube.zarr", mode="w", zarr_format=3)
    options = {"shape": CUBE.shape, "chunks": (3, 61, 120), "dtype": "f4", "dimension_names": ["time", "lat", "lon"]}
    group.create_array("t2m", compressors=codec, **options)[:] = CUBE
    with h5py.File(folder / "cube.h5", "w") as f:
        f.create_dataset("t2m", data=CUBE, chunks=(3, 61, 120), compression="gzip", shuffle=True)
    files = sorted(photos.glob("*/*.jpg"))
    with h5py.File(folder / "images.h5", "w") as f:
        images = f.create_dataset("images", (len(files),), h5py.vlen_dtype(np.uint8))
        for i, name in enumerate(files):
            images[i] = np.frombuffer(name.read_bytes(), np.uint8)
        f["labels"] = np.arange(len(files))
    for i in range(VOLUMES):
        x = (np.arange(SIDE**3, dtype=np.float32) + i).reshape(SIDE, SIDE, SIDE)
        save = np.savez_compressed if i % 2 else np.savez
        save(folder / f"case{i:02}.npz", x=x, y=(x % 5 == 0).astype(np.uint8))
    (folder / "complete").touch()


def make_kinds() -> list[Kind]:
    data = make_data(ROOT / "data/bench", IMAGES)
    folder = ROOT / "data/bench/soak"
    make_arrays(folder, data.photos)
    crop = hr.image("jpg").random_resized_crop(224).random_flip().normalize(hr.IMAGENET)

    def window(lon: str) -> dict[str, Any]:
        return {"x": hr.array("t2m", window=WINDOW, horizon=HORIZON, patch=(PATCH, PATCH), periodic=lon)}

    options: dict[str, Any] = {"along": "file", "patch": (24, 24, 24)}
    volume = {
        "x": hr.array("x", **options, foreground="y", share=0.5).random_flip((-3, -2, -1)),
        "y": hr.array("y", **options).random_flip((-3, -2, -1)),
    }
    stored = {"x": hr.image("images").resize((64, 64)), "y": hr.scalar("labels")}
    steps = STEPS - WINDOW - HORIZON + 1
    return [
        Kind("tar", data.shards, {"image": crop, "label": hr.scalar("cls")}, 8, IMAGES, lambda b: b["image"].std() > 0.1),
        Kind("zarr", folder / "cube.zarr", window("lon"), 8, steps, _windows_are_right),
        Kind("hdf5", folder / "cube.h5", window("axis2"), 8, steps, _windows_are_right),
        Kind("values", folder / "images.h5", stored, 64, IMAGES, lambda b: np.array_equal(b["y"], b.indices)),
        Kind("volumes", str(folder / "case*.npz"), volume, 4, VOLUMES, _volumes_are_right),
    ]


class _MallInfo(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = tuple((name, ctypes.c_size_t) for name in names.split())


def _allocated_bytes() -> int:
    """Of all arenas, and what is mapped by itself; 0 where the C library does not tell."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return 0
    ask.restype = _MallInfo
    info = ask()
    return int(info.uordblks + info.hblkhd)


@dataclasses.dataclass
class Use:
    """What the process takes of the machine."""

    resident_mb: float
    allocated_mb: float  # of it in use, as the allocator counts; the rest it keeps for later
    descriptors: int
    threads: int

    @staticmethod
    def now() -> Use:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
        resident = int(status["VmRSS"].split()[0]) / 1024
        return Use(resident, _allocated_bytes() / (1 << 20), len(os.listdir("/proc/self/fd")), int(status["Threads"]))

    def grown_to(self, later: Use) -> str:
        """What grew, in words; "" where nothing did."""
        grown = []
        if later.resident_mb > 1.05 * self.resident_mb + 12:  # a batch or two, in flight or not
            grown.append(f"memory from {self.resident_mb:.0f} to {later.resident_mb:.0f} MB")
        if later.allocated_mb > 1.03 * self.allocated_mb + 6:  # buffers grow until they have met the largest picture
            grown.append(f"allocated memory from {self.allocated_mb:.1f} to {later.allocated_mb:.1f} MB")
        if later.descriptors > self.descriptors + 4:
            grown.append(f"descriptors from {self.descriptors} to {later.descriptors}")
        if later.threads > self.threads:
            grown.append(f"threads from {self.threads} to {later.threads}")
        return ", ".join(grown)


def leave_early(kind: Kind, way: int) -> None:
    """A loader that is begun and left: closed, or dropped within an epoch, or an epoch that is left for the next."""
    loader = kind.loader()
    batches = iter(loader)
    next(batches)
    if way % 3 == 0:
        loader.close()
    elif way % 3 == 1:
        next(iter(loader.epoch(5)))
    del batches, loader


def soak(kinds: list[Kind], minutes: float) -> tuple[Use, Use, int]:
    running = [(kind, kind.batches(kind.loader())) for kind in kinds]
    begin, first, rounds = time.time(), None, 0
    end = begin + 60 * minutes
    while time.time() < end or first is None:
        for kind, batches in running:
            faulthandler.dump_traceback_later(HANG, exit=True)
            turn = time.time() + 1
            while time.time() < turn:
                next(batches)
            faulthandler.dump_traceback_later(HANG, exit=True)
            leave_early(kind, rounds)
        faulthandler.cancel_dump_traceback_later()
        rounds += 1
        now = Use.now()
        if first is None and time.time() > begin + 24 * minutes and all(kind.epochs >= 2 for kind in kinds):
            first = now
        if rounds % 5 == 0:
            done = ", ".join(f"{kind.name} {kind.epochs}" for kind in kinds)
            print(f"{time.time() - begin:5.0f} s: {now.resident_mb:.0f} MB ({now.allocated_mb:.1f} in use), {now.descriptors} descriptors, "
                  f"{now.threads} threads; epochs: {done}", flush=True)  # fmt: skip
    assert first is not None
    return first, Use.now(), rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", nargs="?", type=float, default=10)
    parser.add_argument("--only", default="", help="kinds of data, with commas")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    kinds = [k for k in make_kinds() if not options.only or k.name in options.only.split(",")]
    if not kinds:
        sys.exit(f"--only: there is no {options.only}")
    first, last, rounds = soak(kinds, options.minutes)
    epochs = {kind.name: kind.epochs for kind in kinds}
    print(f"{options.minutes:g} minutes, {len(kinds) * rounds} loaders left early; epochs, each with every sample once and "
          f"right: {', '.join(f'{n} of {k}' for k, n in epochs.items())}")  # fmt: skip
    for word, use in (("after two fifths of the time", first), ("at the end", last)):
        print(
            f"{use.resident_mb:.0f} MB resident, {use.allocated_mb:.1f} of it in use, {use.descriptors} descriptors, {use.threads} threads {word}"
        )
    if options.json:
        about = {"minutes": options.minutes, "epochs": epochs, "left_early": len(kinds) * rounds}
        options.json.write_text(json.dumps({**about, "first": vars(first), "last": vars(last)}, indent=1) + "\n")
    if grown := first.grown_to(last):
        sys.exit(f"grew: {grown}")


if __name__ == "__main__":
    main()
