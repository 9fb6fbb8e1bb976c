# SPDX-License-Identifier: Apache-2.0
"""``hr.open(..., in_memory="decoded")``: pictures decoded once, their pixels in /dev/shm for all processes of a node.

    /dev/shm/headrace-decoded-<user>-<fingerprint>         npz shards, as ``hr.pack(..., raw=True)`` writes them
    /dev/shm/headrace-decoded-<user>-<fingerprint>.lock    held by who writes (alone) and by all who read (together)

The protocol is that of all that processes of a node share (src/storage/shared_use.h): the first writes, the others wait for it,
the last removes it; locks end with their process, so what killed ones left is removed by the next that comes.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import TYPE_CHECKING

from . import _core
from .errors import Unsupported, UsageError

if TYPE_CHECKING:
    from .packing import Job

PICTURES = ("jpeg", "png", "webp")
ROOM = Path("/dev/shm")
_held: dict[str, _core.SharedUse] = {}  # by folder, to the end of this process
atexit.register(_held.clear)


def open_decoded(source: _core.Source, room: Path = ROOM) -> _core.Source:
    """The same samples in the same order, with pixels in place of files of pictures."""
    pictures = [name for name, kind, _ in source.schema if kind in PICTURES]
    if not pictures:
        raise UsageError("in_memory='decoded' is for pictures, and the data have none: say in_memory=True")
    prefix = f"headrace-decoded-{os.geteuid()}-"
    folder = room / (prefix + source.fingerprint)
    if str(folder) not in _held:
        _held[str(folder)] = _core.share_folder(str(folder), lambda: _write(source, folder, pictures))
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


def _write(source: _core.Source, folder: Path, pictures: list[str]) -> None:
    job = _packing(source, folder, pictures)
    _check_room(job)
    _core.pack(source, str(folder), job.options, None)


def _check_room(job: Job) -> None:
    wanted = job.estimate()["bytes"]
    usable = _core.usable_memory_bytes()
    if wanted > usable // 2:
        raise Unsupported(
            f"decoded, the data take about {wanted >> 20} MiB, and half of the memory that may be used is {usable >> 21} MiB: "
            "say in_memory=True to hold the files as they lie, or leave it out"
        )
