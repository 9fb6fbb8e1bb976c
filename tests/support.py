# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python surface share: data sets made once, and a few ways to run a loader."""

from __future__ import annotations

import concurrent.futures
import csv
import hashlib
import io
import json
import os
import pathlib
import pickle
import random
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import headrace as hr
import numpy as np
from headrace import photos

CLASSES = (17, 3, 11, 1, 21)  # pictures of each class
COUNT = sum(CLASSES)  # 53, a prime: no batch size divides it
NUMBERS = 211  # likewise, for the orders
SHARDS_OF_NUMBERS = 23
# AddressSanitizer is preloaded by ./dev test --long; everything takes its time then.
SANITIZED = "libclang_rt.asan" in os.environ.get("LD_PRELOAD", "")
SLOWDOWN = 5 if SANITIZED else 1


@dataclass
class Sample:
    key: str
    label: int
    jpeg: bytes
    size: tuple[int, int]  # width, height
    text: str = field(init=False)

    def __post_init__(self) -> None:
        self.text = f"caption of {self.key}, Zürich 日本 {self.label}"


def make_samples() -> list[Sample]:
    """In the order of the class folders, which is the order of the shards too."""
    rng = np.random.default_rng(5)
    out = []
    for label, count in enumerate(CLASSES):
        for i in range(count):
            size = (int(rng.integers(64, 201)), int(rng.integers(48, 151)))
            out.append(Sample(f"class{label}/img{i:04d}", label, photos.make_photo(len(out), size), size))
    return out


def add_member(tar: tarfile.TarFile, name: str, value: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(value)
    tar.addfile(info, io.BytesIO(value))


def write_tar(path: pathlib.Path, members: Iterable[tuple[str, bytes]], format: int = tarfile.USTAR_FORMAT) -> pathlib.Path:
    with tarfile.open(path, "w", format=format) as tar:
        for name, value in members:
            add_member(tar, name, value)
    return path


def members_of(sample: Sample) -> list[tuple[str, bytes]]:
    return [
        (f"{sample.key}.jpg", sample.jpeg),
        (f"{sample.key}.cls", str(sample.label).encode()),
        (f"{sample.key}.json", json.dumps({"key": sample.key, "size": sample.size}).encode()),
        (f"{sample.key}.txt", sample.text.encode()),
    ]


class Data:
    """The same 53 pictures in every shape they may lie in."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.samples = make_samples()
        self.folder = root / "folder"
        for s in self.samples:
            path = self.folder / f"{s.key}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(s.jpeg)
        self.tar = self._write_shards("train", [20, 9, 0, 24])
        self._write_lists()

    def _write_shards(self, name: str, sizes: list[int]) -> str:
        at = 0
        for shard, n in enumerate(sizes):
            members = [m for s in self.samples[at : at + n] for m in members_of(s)]
            write_tar(self.root / f"{name}-{shard:04d}.tar", members)
            at += n
        assert at == len(self.samples)
        return str(self.root / f"{name}-{{0000..{len(sizes) - 1:04d}}}.tar")

    def _write_lists(self) -> None:
        rows = [(f"{s.key}.jpg", s.label) for s in self.samples]
        self.pickle = self.folder / "index.pkl"
        self.pickle.write_bytes(pickle.dumps(dict(rows)))
        self.csv = self.folder / "index.csv"
        with self.csv.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["path", "cls", "caption"])
            writer.writerows((path, label, s.text) for (path, label), s in zip(rows, self.samples))
        self.list = self.folder / "index.txt"
        self.list.write_text("".join(f"{path} {label}\n" for path, label in rows))
        self.jsonl = self.folder / "index.jsonl"
        with self.jsonl.open("w") as out:
            for (path, label), s in zip(rows, self.samples):
                out.write(json.dumps({"path": path, "cls": label, "caption": s.text, "size": s.size}) + "\n")

    @property
    def everywhere(self) -> dict[str, str]:
        return {n: str(getattr(self, n)) for n in ("folder", "tar", "pickle", "csv", "list", "jsonl")}


def write_numbers(root: pathlib.Path) -> str:
    """211 samples whose cls is their number, in 23 uneven shards, one of them empty: 22 blocks."""
    rng = np.random.default_rng(9)
    cuts = np.sort(rng.choice(np.arange(1, NUMBERS), SHARDS_OF_NUMBERS - 2, replace=False))
    ends = [0, *cuts.tolist()[:10], cuts.tolist()[10], cuts.tolist()[10], *cuts.tolist()[11:], NUMBERS]
    for shard, (begin, end) in enumerate(zip(ends, ends[1:])):
        write_tar(root / f"n-{shard:03d}.tar", [(f"{i:05d}.cls", str(i).encode()) for i in range(begin, end)])
    return str(root / f"n-{{000..{len(ends) - 2:03d}}}.tar")


# -- running loaders ---------------------------------------------------------------------------------

NUMBER = {"n": hr.scalar("cls")}


def crop(size: int = 24) -> hr.ImageField:
    return hr.image("jpg").random_resized_crop(size).random_flip()


def indices_of(batches: Iterable[hr.Batch]) -> list[int]:
    return [int(i) for b in batches for i in b.indices]


def valid_of(batches: Iterable[hr.Batch]) -> list[int]:
    return [int(i) for b in batches for i in b.indices[b.valid]]


def as_bytes(value: Any) -> bytes:
    if isinstance(value, (list, tuple)):
        return b"".join(as_bytes(v) for v in value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    return np.asarray(value).tobytes()


def digest(batches: Iterable[hr.Batch]) -> str:
    """Of every byte delivered, in order."""
    out = hashlib.sha256()
    for batch in batches:
        out.update(batch.indices.tobytes() + batch.valid.tobytes())
        for name, value in batch.items():
            out.update(name.encode() + as_bytes(value))
    return out.hexdigest()


@dataclass(frozen=True)
class Shape:
    """A way to cut the work: how many ranks, and the batch of each."""

    ranks: int
    batch: int


def on_ranks(
    source: Any,
    shape: Shape,
    fields: Mapping[str, hr.Field] = NUMBER,
    *,
    state: Mapping[str, Any] | None = None,
    use: Callable[[hr.Loader], Any],
    **options: Any,
) -> list[Any]:
    """What `use` makes of the loader of each rank."""
    out = []
    for rank in range(shape.ranks):
        options.setdefault("output", "numpy")
        with hr.Loader(source, shape.batch, fields, rank=rank, world_size=shape.ranks, **options) as loader:
            if state is not None:
                loader.load_state_dict(state)
            out.append(use(loader))
    return out


def one_epoch(n: int = 0) -> Callable[[hr.Loader], list[hr.Batch]]:
    return lambda loader: list(loader.epoch(n))


def rest_of_epoch(loader: hr.Loader) -> list[hr.Batch]:
    return list(iter(loader))


def run_python(code: str, *args: str, timeout: float = 60, **options: Any) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter; where it takes too long it is ended, with every child it forked."""
    command = [sys.executable, "-c", code, *args]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )
    try:
        out, err = child.communicate(timeout=timeout * SLOWDOWN)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        raise AssertionError(f"it hangs:\n{code}\n{out}{err}") from None
    return subprocess.CompletedProcess(command, child.returncode, out, err)


class Ahead:
    """Runs job(**parameters) of a module's selected tests on all cores, ahead of the tests that look at the results.

    For a module-scoped fixture; the tests are those that use it.
    """

    def __init__(self, request: Any, job: Callable[..., Any]) -> None:
        pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        request.addfinalizer(lambda: pool.shutdown(cancel_futures=True))
        mine = [i for i in request.session.items if i.path == request.path and request.fixturename in i.fixturenames]
        self._runs = {item.callspec.id: pool.submit(job, **item.callspec.params) for item in mine}

    def result(self, request: Any) -> Any:
        return self._runs[request.node.callspec.id].result()


def pack_what_fits(source: Any, folder: pathlib.Path, to: str, **options: Any) -> list[str]:
    """Packs, without what the format cannot hold: the error names it. Returns what was dropped."""
    drop: list[str] = []
    while True:
        try:
            hr.pack(source, folder, to=to, drop=drop, **options)
            return drop
        except hr.Unsupported as e:
            named = re.search(r"--drop (\S+)", str(e))
            if named is None or named[1] in drop or folder.exists():
                raise
            drop.append(named[1])


def wait_until(what: Callable[[], bool], seconds: float = 20) -> None:
    """For what another thread will do; gives the processor away in between."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        os.sched_yield()


def resident_bytes() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return sorted(a) == sorted(b)


def good_samples(path: Any, fields: Any = None) -> int:
    """How many samples can be read; errors must be ours."""
    try:
        ds = hr.open(path, fields)
    except hr.Error:
        return 0
    good = 0
    for i in range(len(ds)):
        try:
            ds[i]
            good += 1
        except hr.Error:
            pass
    return good


def good_after_changes(path: pathlib.Path, open_as: pathlib.Path, fields: Any, rounds: int = 60) -> list[int]:
    """What `good_samples` finds each time that one to three bytes of the file are others."""
    whole, rng, found = path.read_bytes(), random.Random(3), []
    for _ in range(rounds):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        path.write_bytes(changed)
        for sidecar in path.parent.glob("*.hridx"):
            sidecar.unlink()
        found.append(good_samples(open_as, fields))
    return found
