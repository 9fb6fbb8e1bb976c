# SPDX-License-Identifier: Apache-2.0
"""``hr.open(..., in_memory="decoded")``: pictures decoded once, their pixels in /dev/shm for all processes of a node.

    /dev/shm/headrace-decoded-<user>-<fingerprint>         npz shards, as ``hr.pack(..., raw=True)`` writes them
    /dev/shm/headrace-decoded-<user>-<fingerprint>.lock    held by who writes (alone) and by all who read (together)

The first process writes, the others wait for it. Who reads holds the lock until it ends; locks end with their process,
so what nobody holds any more, whatever became of its processes, is removed by the last that leaves or the next that comes.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import random
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from . import _core
from .errors import Unsupported, UsageError

if TYPE_CHECKING:
    from .packing import Job

PICTURES = ("jpeg", "png", "webp")
ROOM = Path("/dev/shm")
_held: dict[str, int] = {}  # folder → lock, of this process


def open_decoded(source: _core.Source, room: Path = ROOM) -> _core.Source:
    """The same samples in the same order, with pixels in place of files of pictures."""
    pictures = [name for name, kind, _ in source.schema if kind in PICTURES]
    if not pictures:
        raise UsageError("in_memory='decoded' is for pictures, and the data have none: say in_memory=True")
    prefix = f"headrace-decoded-{os.geteuid()}-"
    folder = room / (prefix + source.fingerprint)
    if str(folder) not in _held:
        _sweep(room, prefix, folder)
        _held[str(folder)] = _fill(source, folder, pictures)
        atexit.register(_release, str(folder), os.getpid())
    return _core.open_source([str(folder)])


def _packing(source: _core.Source, folder: Path, pictures: list[str]) -> Job:
    from .packing import Packing, prepare

    # A name says what a value is in tar; here it stays, so that the fields that were asked for are found.
    names = {name: name for name in pictures}
    packing = prepare(source, folder, to="npz", keep_order=True, raw=True, rename=names)
    assert isinstance(packing, Packing)
    (job,) = packing.jobs
    job.options["orient"] = False  # that is for the field to say
    return job


def _fill(source: _core.Source, folder: Path, pictures: list[str]) -> int:
    """Writes the pixels unless they are there; gives the lock under which they stay."""
    while True:
        lock = os.open(f"{folder}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        is_ready = is_taken = False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)  # waits for who writes
            if _is_same(lock, f"{folder}.lock"):  # else somebody has swept it
                is_ready = _is_whole(folder)
                is_taken = not is_ready and not _write_alone(source, folder, pictures, lock)
            if is_ready:
                return lock
        finally:
            if not is_ready:
                os.close(lock)
        if is_taken:  # by another that is about to write
            time.sleep(0.01 + 0.04 * random.random())


def _write_alone(source: _core.Source, folder: Path, pictures: list[str], lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    if not _is_whole(folder):
        try:
            job = _packing(source, folder, pictures)
            _check_room(job)
            _core.pack(source, str(folder), job.options, None)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return True


def _is_whole(folder: Path) -> bool:
    return (folder / "headrace.json").exists() and not (folder / "headrace.unfinished").exists()


def _is_same(lock: int, name: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), os.stat(name))
    return False


def _check_room(job: Job) -> None:
    wanted = job.estimate()["bytes"]
    usable = _core.usable_memory_bytes()
    if wanted > usable // 2:
        raise Unsupported(
            f"decoded, the data take about {wanted >> 20} MiB, and half of the memory that may be used is {usable >> 21} MiB: "
            "say in_memory=True to hold the files as they lie, or leave it out"
        )


def _remove_unused(folder: Path) -> None:
    """Removes it where nobody holds its lock."""
    with contextlib.suppress(OSError):
        lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            os.unlink(f"{folder}.lock")
        finally:
            os.close(lock)


def _sweep(room: Path, prefix: str, but: Path) -> None:
    for lock in room.glob(prefix + "*.lock"):
        if lock != Path(f"{but}.lock") and lock.lstat().st_uid == os.geteuid():
            _remove_unused(lock.with_suffix(""))


def _release(folder: str, owner: int) -> None:
    if os.getpid() == owner and folder in _held:  # a forked child leaves it to its parent
        os.close(_held.pop(folder))
        _remove_unused(Path(folder))
