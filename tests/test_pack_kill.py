# SPDX-License-Identifier: Apache-2.0
"""A pack killed with -9 at any moment, and started again, ends with the bytes of one that was left alone."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import random
import signal
import time
from typing import Any

import headrace as hr
import pytest
from support import pack_what_fits, write_tar
from test_matrix import WRITABLE

# The child gives way to everyone: beside other tests it would hardly run.
pytestmark = pytest.mark.alone
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


def written(folder: pathlib.Path) -> int:
    """Bytes of shards, finished or begun, that are there."""
    total = 0
    with contextlib.suppress(FileNotFoundError):  # not there yet, or renamed meanwhile
        for file in os.scandir(folder):
            if file.name.startswith("shard-") or file.name.endswith(".hrtmp"):
                total += file.stat().st_size
    return total


def kill_at(source: hr.Dataset, folder: pathlib.Path, size: int, options: dict[str, Any]) -> bool:
    """Packs in a child, kills it when it has written so many bytes; whether that was in the middle.

    The child is the humblest process of the machine: what keeps the machine busy holds up the child before it holds up
    the one that watches.
    """
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.nice(19)
            hr.pack(source, folder, **options)
        os._exit(0)
    end = time.monotonic() + 60
    while written(folder) < size and not (folder / "headrace.json").exists() and time.monotonic() < end:
        os.sched_yield()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return (folder / "headrace.unfinished").exists() and not (folder / "headrace.json").exists()


def kill_many(source: hr.Dataset, root: pathlib.Path, name: str, kills: int) -> int:
    """At least so many kills in the middle; how many of them left a shard or the beginning of one."""
    options: dict[str, Any] = {"to": name, "shards": SHARDS}
    options["drop"] = pack_what_fits(source, root / "straight", **options)
    wanted, size = files_of(root / "straight"), written(root / "straight")
    rng = random.Random(name)
    middle = traces = tries = 0
    while middle < kills and tries < 6 * kills:
        folder = root / f"killed{tries}"
        # Up to three in a row before it may end; one in ten before anything is written.
        for _ in range(rng.randint(1, 3)):
            tries += 1
            if not kill_at(source, folder, int(rng.uniform(-0.1, 0.8) * size), options):
                continue
            middle += 1
            traces += written(folder) > 0
            with pytest.raises(hr.Error, match=r"not finished|unfinished"):
                hr.open(folder)
        hr.pack(source, folder, **options)
        assert files_of(folder) == wanted
        for path in folder.iterdir():
            path.unlink()
    assert middle >= kills
    return traces


@pytest.mark.parametrize("name", WRITABLE)
def test_a_killed_pack_ends_with_the_same_bytes(source: hr.Dataset, tmp_path: pathlib.Path, name: str) -> None:
    assert kill_many(source, tmp_path, name, 3) >= 1


@pytest.mark.slow  # 3 kills of each format: test_a_killed_pack_ends_with_the_same_bytes
@pytest.mark.parametrize("name", WRITABLE)
def test_so_does_one_that_is_killed_many_times(source: hr.Dataset, tmp_path: pathlib.Path, name: str) -> None:
    kills, traces = (50, 40) if name == "tar" else (10, 5)
    assert kill_many(source, tmp_path, name, kills) >= traces
