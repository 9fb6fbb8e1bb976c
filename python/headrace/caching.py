# SPDX-License-Identifier: Apache-2.0
"""A folder near by that keeps what was read from far away: ``cache="/nvme/hr"``, ``hr.cache("/nvme/hr", bytes="200GB")``."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .checks import byte_count
from .errors import UsageError


@dataclass(frozen=True)
class Cache:
    """What ``hr.cache()`` returns."""

    path: str
    bytes: int | None = None
    keep_free: int | None = None


def cache(path: str | os.PathLike[str], bytes: int | str | None = None, keep_free: int | str | None = None) -> Cache:
    """A cache folder, for ``cache=`` of ``hr.open`` and ``hr.Loader``.

    path: a folder of this user's own on a near disk, or in /dev/shm: made if it is not there. All processes and jobs of the
        user on the machine share it.
    bytes: at most so many, or "200GB". Without it: as many as ``keep_free`` leaves; in /dev/shm half of it.
    keep_free: so many bytes of the disk stay free; a twentieth of it unless given.
    """
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise UsageError(f"cache is a folder, like cache='/nvme/hr', not {path!r}")
    free = keep_free if keep_free is None or keep_free == 0 else byte_count(keep_free, "keep_free")
    return Cache(os.path.abspath(path), byte_count(bytes, "bytes") or None, free)
