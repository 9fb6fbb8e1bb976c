# SPDX-License-Identifier: Apache-2.0
"""What every contender's script shares: the job it is given, how it is timed, the line it prints.

A script defines `batches(job)`, which gives batches of pictures for ever, and calls `main(batches)`.
It needs NumPy and the peer, not headrace. Where the peer reads a format of its own, `prepare(job)` writes
it once from the same JPEG bytes.

`job.action` is one of
    prepare   write the peer's own format below job.cache
    pixels    job.exact: unshuffled, shorter side to 256, middle 224, no flip; saved for the comparison
    rate      shuffled, random crop, flip; timed
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

BATCH, SIZE, SHORT = 64, 224, 256
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
WARM_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class Job:
    action: str
    mode: str  # u8 or f32; bytes: as they are stored, a list of 64; arrays
    photos: str  # class folders
    shards: str  # the same pictures in tar shards
    cache: str  # where the peer's own format lies
    workers: int
    seconds: float
    started: float  # time.monotonic() before the process was started
    out: str = ""  # where pixels go
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def exact(self) -> bool:
        return self.action == "pixels"

    def files(self) -> list[str]:
        """In the order that all formats have."""
        return sorted(str(p) for p in pathlib.Path(self.photos).glob("*/*.jpg"))

    def tars(self) -> list[str]:
        return sorted(str(p) for p in pathlib.Path(self.shards).glob("*.tar"))


def _memory_of(pid: int) -> float:
    """Proportional set size in MB: what processes share counts once."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024
    except (OSError, StopIteration):
        return 0


def memory_mb() -> float:
    """Of this process and all below it."""
    parents: dict[int, list[int]] = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        parents.setdefault(parent, []).append(int(entry.parent.name))
    todo, total = [os.getpid()], 0.0
    while todo:
        pid = todo.pop()
        total += _memory_of(pid)
        todo += parents.get(pid, [])
    return total


def _check(batch: Any, mode: str) -> None:
    if mode == "arrays":  # bench/arrays.py has compared them
        return
    if mode == "bytes":
        if len(batch) != BATCH or any(bytes(value[:2]) != b"\xff\xd8" for value in batch):
            raise TypeError(f"expected {BATCH} JPEGs as bytes")
        return
    kind = {"u8": "uint8", "f32": "float32"}[mode]
    if tuple(batch.shape) != (BATCH, 3, SIZE, SIZE) or not str(batch.dtype).endswith(kind):
        raise TypeError(f"expected a batch of {(BATCH, 3, SIZE, SIZE)} {kind}, not {tuple(batch.shape)} {batch.dtype}")


def rate(job: Job, batches: Iterator[Any]) -> dict[str, float]:
    """Images per second, after a second of warming up: memory is there, workers are up."""
    _check(next(batches), job.mode)
    first = time.monotonic() - job.started
    warm = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < warm:
        next(batches)
    start, images = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < job.seconds:
        images += len(next(batches))
    return {"rate": images / elapsed, "first": first, "memory": memory_mb()}


def _save_pixels(job: Job, batches: Iterator[Any]) -> dict[str, float]:
    import numpy as np

    batch = np.asarray(next(batches))
    _check(batch, job.mode)
    np.save(job.out, batch)
    return {}


def _write_cache(job: Job, prepare: Callable[[Job], None]) -> None:
    """Half a cache never has the cache's name."""
    part = job.cache + ".part"
    if os.path.isdir(part):
        shutil.rmtree(part)
    elif os.path.exists(part):
        os.remove(part)
    prepare(dataclasses.replace(job, cache=part))
    os.rename(part, job.cache)


def report(result: dict[str, float]) -> None:
    """One line, the last: peers print too."""
    print("\n" + json.dumps(result), flush=True)
    os._exit(0)  # worker processes need no farewell


def main(batches: Callable[[Job], Iterator[Any]], prepare: Callable[[Job], None] | None = None) -> None:
    job = Job(**json.loads(sys.argv[1]))
    if job.action == "prepare":
        if prepare is not None and not os.path.exists(job.cache):
            _write_cache(job, prepare)
        report({})
    report(_save_pixels(job, batches(job)) if job.exact else rate(job, batches(job)))
