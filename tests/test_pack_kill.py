# SPDX-License-Identifier: Apache-2.0
"""A pack killed with -9 at any moment, and started again, ends with the bytes of one that was left alone."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import random
import re
import signal
import time
from typing import Any

import headrace as hr
import pytest
from support import write_tar
from test_matrix import WRITABLE

SHARDS = 4
SAMPLES = 240
BYTES = 100_000  # of a sample: 24 MB, so that a pack takes long enough to be met in the middle


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> hr.Dataset:
    rng = random.Random(1)
    folder = tmp_path_factory.mktemp("kill")
    members = ((f"{i:04d}.{e}", v) for i in range(SAMPLES) for e, v in (("jpg", rng.randbytes(BYTES)), ("cls", b"%d" % i)))
    return hr.open(write_tar(folder / "x.tar", members))


def files_of(folder: pathlib.Path) -> dict[str, str]:
    """All but the indexes, which know the times of their shards."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.suffix != ".hridx"}


def options_for(source: hr.Dataset, folder: pathlib.Path, name: str) -> dict[str, Any]:
    """Without fields that the format cannot hold."""
    options: dict[str, Any] = {"to": name, "shards": SHARDS, "drop": []}
    for _ in range(3):
        try:
            hr.pack(source, folder, **options)
            break
        except hr.Unsupported as e:
            options["drop"].append(re.search(r"--drop (\S+)", str(e))[1])  # type: ignore[index]
    return options


def kill_at(source: hr.Dataset, folder: pathlib.Path, delay: float, options: dict[str, Any]) -> bool:
    """Packs in a child, kills it so long after it has begun to write; whether that was in the middle."""
    child, mark = begin(source, folder, options)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return mark.exists() and not (folder / "headrace.json").exists()


def begin(source: hr.Dataset, folder: pathlib.Path, options: dict[str, Any]) -> tuple[int, pathlib.Path]:
    """A child that packs; returns when the mark is there that says that a pack is under way."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            hr.pack(source, folder, **options)
        os._exit(0)
    mark, end = folder / "headrace.unfinished", time.monotonic() + 20
    while not mark.exists() and not (folder / "headrace.json").exists() and time.monotonic() < end:
        os.sched_yield()
    return child, mark


def seconds_of_child(source: hr.Dataset, folder: pathlib.Path, options: dict[str, Any]) -> float:
    """From the mark to the end, in a child: a fork is slower than its parent."""
    child, _ = begin(source, folder, options)
    start = time.perf_counter()
    os.waitpid(child, 0)
    return time.perf_counter() - start


def is_writing(folder: pathlib.Path) -> bool:
    """Whether a shard, or the beginning of one, is there."""
    return folder.exists() and any(p.name.startswith("shard-") or p.name.endswith(".hrtmp") for p in folder.iterdir())


def kill_many(source: hr.Dataset, root: pathlib.Path, name: str, kills: int, while_writing: int) -> tuple[int, int]:
    """(kills in the middle, kills that left a finished shard or a temporary file behind).

    A busy machine may let a pack end before the kill comes: such kills are made up for, three times as many at most.
    """
    options = options_for(source, root / "straight", name)
    seconds, least = seconds_of_child(source, root / "timed", options), 0.0
    wanted = files_of(root / "straight")
    rng = random.Random(name)
    middle = traces = done = 0
    while done < kills or (traces < while_writing and done < 3 * kills):
        folder = root / f"killed{done}"
        # Up to three in a row before it may end.
        for _ in range(rng.randint(1, 3)):
            done += 1
            if not kill_at(source, folder, rng.uniform(least, seconds), options):
                seconds = max(0.8 * seconds, 0.002)  # it was over: come earlier
                least = min(least, 0.5 * seconds)
                continue
            middle += 1
            with pytest.raises(hr.Error, match=r"not finished|unfinished"):
                hr.open(folder)
            writing = is_writing(folder)
            traces += writing
            if not writing and least < 0.8 * seconds:
                least += 0.1 * seconds  # it had not begun to write: come later
        hr.pack(source, folder, **options)
        assert files_of(folder) == wanted
        for path in folder.iterdir():
            path.unlink()
    return middle, traces


def test_a_pack_killed_50_times_ends_with_the_same_bytes(source: hr.Dataset, tmp_path: pathlib.Path) -> None:
    middle, traces = kill_many(source, tmp_path, "tar", 50, while_writing=40)
    assert middle >= 40 and traces >= 40


@pytest.mark.parametrize("name", [n for n in WRITABLE if n != "tar"])
def test_so_does_every_other_format(source: hr.Dataset, tmp_path: pathlib.Path, name: str) -> None:
    middle, _ = kill_many(source, tmp_path, name, 10, while_writing=5)
    assert middle >= 5
