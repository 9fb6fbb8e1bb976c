# SPDX-License-Identifier: Apache-2.0
"""The way of a course's ImageNet: class folders with a pickled index, the same packed to Arrow and in one HDF5 file, and what each costs.

    python examples/imagenet_course.py [FOLDER]

FOLDER holds class folders and `index.pkl`, a dict of relative path and class, as many courses give their data out. Without it,
a few pictures are made. The HDF5 file is as courses write theirs with h5py: JPEGs as values of variable length, labels beside them, a
group for each split. Nothing in the training loop changes with the format: only the path does, and what the fields are called.
"""

from __future__ import annotations

import pathlib
import pickle
import sys
import tempfile
import time

import headrace as hr
import numpy as np
from headrace.photos import write_class_folders

try:
    import h5py
except ImportError:
    print("this example needs h5py: pip install h5py")
    sys.exit(0)


def fields(image: str, label: str) -> dict[str, hr.Field]:
    steps = hr.image(image).random_resized_crop(64).random_flip().normalize(hr.IMAGENET)
    return {"image": steps, "label": hr.scalar(label), "key": hr.key()}


def make_data(folder: pathlib.Path) -> pathlib.Path:
    write_class_folders(folder, count=120, classes=4)
    paths = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.jpg"))
    (folder / "index.pkl").write_bytes(pickle.dumps({p: int(p[len("class")]) for p in paths}))
    return folder


def write_hdf5(index: pathlib.Path, path: pathlib.Path) -> list[str]:
    """The keys of the pictures, by their numbers in the file."""
    listed = hr.open(index)
    with h5py.File(path, "w") as f:
        images = f.create_dataset("train/images", (len(listed),), h5py.vlen_dtype(np.uint8))
        labels = f.create_dataset("train/labels", (len(listed),), np.int64)
        for i, sample in enumerate(listed):
            images[i], labels[i] = np.frombuffer(sample["jpg"], np.uint8), sample["cls"]
    return [listed.key(i) for i in range(len(listed))]


def size_of(path: pathlib.Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def timed(source: str, names: tuple[str, str]) -> tuple[float, list[tuple[str, int]]]:
    """Pictures a second in the second epoch, and which samples came with which label."""
    with hr.Loader(source, 16, fields(*names), seed=1, tail="keep") as loader:
        for _ in loader.epoch(0):
            pass
        seen: list[tuple[str, int]] = []
        begin = time.perf_counter()
        for batch in loader.epoch(1):
            seen += zip(batch["key"], batch["label"].tolist())
        return len(seen) / (time.perf_counter() - begin), sorted(seen)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else make_data(pathlib.Path(temporary) / "pictures")
        index, packed, one = folder / "index.pkl", pathlib.Path(temporary) / "packed", pathlib.Path(temporary) / "imagenet.h5"
        hr.pack(index, packed, to="arrow")
        keys = write_hdf5(index, one)
        ways = {
            "folders and index.pkl": (str(index), ("jpg", "cls"), folder),
            "Arrow": (str(packed), ("jpg", "cls"), packed),
            "HDF5": (f"{one}#train", ("images", "labels"), one),
        }
        print(f"{'':24} {'files':>6} {'MB':>8} {'pictures/s':>11}")
        results = []
        for name, (source, names, place) in ways.items():
            rate, seen = timed(source, names)
            results.append(sorted((keys[int(k)], c) for k, c in seen) if name == "HDF5" else seen)  # a key is a position there
            files = 1 if place.is_file() else sum(p.is_file() for p in place.rglob("*"))
            print(f"{name:24} {files:6} {size_of(place) / 1e6:8.2f} {rate:11.0f}")
        assert results[0] == results[1] == results[2]
        stored = hr.open(f"{one}#train", {"image": hr.bytes("images")})
        assert all(bytes(a["image"]) == b["jpg"] for a, b in zip(stored, hr.open(index)))
        print(f"all gave exactly the same {len(results[0])} samples with the same labels")


if __name__ == "__main__":
    main()
