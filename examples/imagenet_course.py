# SPDX-License-Identifier: Apache-2.0
"""The way of a course's ImageNet: class folders with a pickled index, the same packed to Arrow, and what each costs.

    python examples/imagenet_course.py [FOLDER]

FOLDER holds class folders and `index.pkl`, a dict of relative path and class, as many courses give their data out. Without it,
a few pictures are made. Nothing in the training loop changes with the format: only the path does.
"""

from __future__ import annotations

import pathlib
import pickle
import sys
import tempfile
import time

import headrace as hr
from headrace.photos import write_class_folders

FIELDS = {"image": hr.image("jpg").random_resized_crop(64).random_flip().normalize(hr.IMAGENET), "label": hr.scalar("cls")}


def make_data(folder: pathlib.Path) -> pathlib.Path:
    write_class_folders(folder, count=120, classes=4)
    paths = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.jpg"))
    (folder / "index.pkl").write_bytes(pickle.dumps({p: int(p[len("class")]) for p in paths}))
    return folder


def size_of(path: pathlib.Path) -> int:
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def timed(source: pathlib.Path) -> tuple[float, list[tuple[str, int]]]:
    """Pictures a second in the second epoch, and which samples came with which label."""
    with hr.Loader(source, 16, {**FIELDS, "key": hr.key()}, seed=1, tail="keep") as loader:
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
        packed = pathlib.Path(temporary) / "packed"
        hr.pack(folder / "index.pkl", packed, to="arrow")
        print(f"{'':24} {'files':>6} {'MB':>8} {'pictures/s':>11}")
        results = []
        for name, source, place in (("folders and index.pkl", folder / "index.pkl", folder), ("Arrow", packed, packed)):
            rate, seen = timed(source)
            results.append(seen)
            files = sum(p.is_file() for p in place.rglob("*"))
            print(f"{name:24} {files:6} {size_of(place) / 1e6:8.2f} {rate:11.0f}")
        assert results[0] == results[1]
        print(f"both gave exactly the same {len(results[0])} samples with the same labels")


if __name__ == "__main__":
    main()
