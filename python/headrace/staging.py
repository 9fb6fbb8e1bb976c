# SPDX-License-Identifier: Apache-2.0
"""Copies of data sets near by: ``hr.stage("s3://bucket/train-*.tar", "/nvme/train")``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import _core
from .checks import checked_bool, path, whole
from .errors import UsageError
from .messages import tell_once
from .source_paths import urls_of
from .storage import Storage, using


def stage(
    source: Any,
    to: str | os.PathLike[str],
    *,
    streams: int | None = None,
    verify: bool = False,
    storage: Storage | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, int]:
    """Copies all files of a data set, and the indexes beside them, to a folder that ``hr.open`` then opens: the same
    fingerprint, the same states. After a kill the same call goes on where it stood.

    source: paths or URLs, as ``hr.open`` takes them.
    to: a folder that is empty or not there yet, on a near disk or in /dev/shm (which is memory, and is said so).
    streams: files and parts of files that are copied at a time; chosen by the storage unless given.
    storage: ``hr.storage(...)`` of data on servers.
    verify: reads the copies again, against the checksums made while copying.
    progress: called with (bytes there, bytes in all).

    Returns ``files``, ``bytes`` and ``copied_bytes``. Raises StorageError with both numbers where it does not fit.
    """
    urls = [url if "://" in url else os.path.abspath(url) for url in urls_of(source)]
    folder = path(to, "to")
    if "://" in folder or not folder:
        raise UsageError(f"staging copies to a folder of this machine, not {folder!r}")
    count = 0 if streams is None else whole(streams, "streams", 1, 1024)
    with using(storage, urls):
        report = _core.stage(urls, _named_files(urls), os.path.abspath(folder), count, checked_bool(verify, "verify"), progress)
    if notice := report.pop("notice"):
        tell_once(notice)
    return dict(report)


def remove_stage(folder: str | os.PathLike[str]) -> int:
    """Removes what ``hr.stage`` copied to the folder, and nothing else; the bytes that went."""
    return int(_core.remove_stage(os.path.abspath(path(folder, "folder"))))


def _named_files(urls: list[str]) -> list[str]:
    """Files that lists and tables name: they are part of the data set, wherever they lie."""
    lists = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".pkl", ".pickle", ".json")
    if not any(url.lower().partition("#")[0].endswith(lists) for url in urls):
        return []
    return list(_core.open_source(urls).files())


def share_of(parts: Any, plan: _core.PlanOptions, ranks: Any, epochs: int) -> list[list[str]]:
    """The files of each part that the ranks of this node read in the first epochs."""
    first = ranks.rank // ranks.local * ranks.local
    here = list(range(first, min(first + ranks.local, ranks.world)))
    return _core.share_of([(part.name, part.source) for part in parts], plan, here, epochs)


def staged(source: _core.Source, folder: Any, only: list[str] | None = None) -> _core.Source:
    """The same data, copied to the folder in the background and read from there as it comes; of ``only`` these files."""
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise UsageError(f"stage is a folder, like stage='/dev/shm/hr', not {folder!r}")
    return source.staged(os.path.abspath(folder), only)


def tell(source: _core.Source) -> None:
    for notice in source.stage_notices():
        tell_once(notice)
