# SPDX-License-Identifier: Apache-2.0
"""The demo's data set, in ImageNet's layout, and the same packed.

DIR/train/n01440764/n01440764_0.JPEG …   class folders
DIR/train.pkl                            {"train/n01440764/n01440764_0.JPEG": 0, …}
DIR/shards/                              tar shards with the same samples in the same order
DIR/headrace-demo.json                   that this folder is the demo's, and what it holds
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import headrace as hr

SYNSETS = (
    "n01440764", "n01443537", "n01484850", "n01491361", "n01494475",
    "n01496331", "n01498041", "n01514668", "n01514859", "n01518878",
)  # fmt: skip
SIZE = (500, 375)
SHARDS = 8
_MARK = "headrace-demo.json"
_TASK = 8  # pictures a process makes at a time


@dataclass
class Data:
    """What was made; `labels` and `checksums` are by sample number, from the files themselves."""

    folder: str
    pickle: str
    shards: str
    labels: np.ndarray
    checksums: np.ndarray
    bytes: int
    made: int  # pictures made now and not found ready

    @property
    def samples(self) -> int:
        return len(self.labels)

    def sources(self) -> dict[str, str]:
        return {"class folders": self.folder, "pickle index": self.pickle, "tar shards": self.shards}


def names(images: int) -> list[str]:
    """Paths below DIR, sorted: the order that class folders have. Classes are even to within one."""
    per_class = [len(range(c, images, len(SYNSETS))) for c in range(len(SYNSETS))]
    return [f"train/{s}/{s}_{i:05}.JPEG" for s, n in zip(SYNSETS, per_class) for i in range(n)]


def _make_pictures(folder: str, numbered: list[tuple[int, str]]) -> int:
    """In a process of its own. A picture is there wholly or not at all."""
    from headrace.photos import make_photo

    for seed, name in numbered:
        path = os.path.join(folder, name)
        with open(path + ".part", "wb") as f:
            f.write(make_photo(seed, SIZE))
        os.rename(path + ".part", path)
    return len(numbered)


def _leave_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to answer


def _claim(folder: Path, images: int) -> None:
    """Marks the folder as the demo's. Other people's folders are left alone."""
    mark, wanted = folder / _MARK, {"images": images, "size": list(SIZE), "shards": SHARDS}
    if folder.exists() and not folder.is_dir():
        raise hr.UsageError(f"{folder} is a file; --dir wants a folder")
    if mark.exists():
        if mark.read_text() == json.dumps(wanted):
            return
        shutil.rmtree(folder / "train", ignore_errors=True)
        shutil.rmtree(folder / "shards", ignore_errors=True)
    elif folder.exists() and any(folder.iterdir()):
        raise hr.UsageError(f"{folder} holds something else than a demo; name an empty folder with --dir")
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(json.dumps(wanted))


def make(folder: Path, images: int, progress: Callable[[int, int], None]) -> Data:
    """Makes what is not there yet, on all CPUs."""
    from headrace import _core

    _claim(folder, images)
    for synset in SYNSETS:
        (folder / "train" / synset).mkdir(parents=True, exist_ok=True)
    paths = names(images)
    todo = [(i, name) for i, name in enumerate(paths) if not (folder / name).exists()]
    done = images - len(todo)
    progress(done, images)
    if todo:
        shutil.rmtree(folder / "shards", ignore_errors=True)  # of other pictures
        tasks = [todo[i : i + _TASK] for i in range(0, len(todo), _TASK)]
        # spawn: a fork would copy a process that has threads.
        with ProcessPoolExecutor(min(_core.usable_cpus(), len(tasks)), get_context("spawn"), _leave_ctrl_c) as pool:
            for n in pool.map(_make_pictures, [str(folder)] * len(tasks), tasks):
                done += n
                progress(done, images)
    label_of = {name: SYNSETS.index(name.split("/")[1]) for name in paths}
    with open(folder / "train.pkl", "wb") as f:
        pickle.dump(label_of, f)
    contents = [(folder / name).read_bytes() for name in paths]
    return Data(
        folder=str(folder / "train"),
        pickle=str(folder / "train.pkl"),
        shards=str(folder / "shards"),
        labels=np.array(list(label_of.values())),
        checksums=np.array([zlib.crc32(c) for c in contents]),
        bytes=sum(map(len, contents)),
        made=len(todo),
    )
