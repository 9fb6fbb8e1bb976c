# SPDX-License-Identifier: Apache-2.0
"""The pictures that everything in bench/ loads: made once below `data/bench`, from seeds."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import pathlib

import headrace as hr
from headrace.photos import make_photo

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Data:
    photos: pathlib.Path  # class folders
    shards: pathlib.Path  # the same pictures in tar shards
    images: int

    def cache(self, script: str) -> pathlib.Path:
        """The same pictures in the format of a peer."""
        return self.photos.parent / f"{script}-{self.images}"


def _write(job: tuple[int, str]) -> None:
    seed, path = job
    pathlib.Path(path).write_bytes(make_photo(seed))


def make_data(folder: pathlib.Path, images: int) -> Data:
    """Class folders and the same pictures as tar shards."""
    root, shards = folder / f"photos-{images}", folder / f"shards-{images}"
    jobs = [(i, str(root / f"class{i % 10}" / f"{i:06d}.jpg")) for i in range(images)]
    missing = [j for j in jobs if not os.path.exists(j[1])]
    if missing:
        for c in range(10):
            (root / f"class{c}").mkdir(parents=True, exist_ok=True)
        with multiprocessing.get_context("spawn").Pool() as pool:
            pool.map(_write, missing, chunksize=16)
    hr.pack(root, shards, shards=8, keep_order=True)
    return Data(root, shards, images)
