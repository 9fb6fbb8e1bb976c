# SPDX-License-Identifier: Apache-2.0
"""Copies of data sets near by: ``hr.stage("s3://bucket/train-*.tar", "/nvme/train")``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from . import _core, ranks
from .checks import checked_bool, path, whole
from .errors import UsageError
from .loader_options import TAILS, global_batch, shuffle_of, window_bytes
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
    share: Mapping[str, Any] | None = None,
) -> dict[str, int]:
    """Copies all files of a data set, and the indexes beside them, to a folder that ``hr.open`` then opens: the same
    fingerprint, the same states. After a kill the same call goes on where it stood.

    source: paths or URLs, as ``hr.open`` takes them.
    to: a folder that is empty or not there yet, on a near disk or in /dev/shm (which is memory, and is said so).
    streams: files and parts of files that are copied at a time; chosen by the storage unless given.
    storage: ``hr.storage(...)`` of data on servers.
    verify: reads the copies again, against the checksums made while copying.
    progress: called with (bytes there, bytes in all).
    share: copies only the files that the ranks of this node read in the first ``reassign_every`` epochs, for
        ``Loader(source, stage=to, stage_share=True, ...)``: the arguments of that Loader that settle its order, like
        ``{"batch_size": 256, "shuffle": "pool", "seed": 42, "reassign_every": 10}``. ``to`` may hold several such copies;
        all of a node's ranks may call this, one of them copies.

    Returns ``files``, ``bytes`` and ``copied_bytes``. Raises StorageError with both numbers where it does not fit.
    """
    if share is not None:
        return _stage_share(source, to, share, streams, verify, storage, progress)
    urls = [url if "://" in url else os.path.abspath(url) for url in urls_of(source)]
    folder, count = _folder(to), _streams(streams)
    with using(storage, urls):
        report = _core.stage(urls, _named_files(urls), folder, count, checked_bool(verify, "verify"), progress)
    return _told(report)


#: Arguments of a Loader that settle which samples a rank gets.
_OF_ORDER = (
    "batch_size", "global_batch_size", "shuffle", "seed", "tail", "rank", "world_size", "local_ranks", "index", "root",
    "shuffle_window", "window", "reassign_every",
)  # fmt: skip


def _stage_share(
    source: Any,
    to: str | os.PathLike[str],
    share: Mapping[str, Any],
    streams: int | None,
    verify: bool,
    storage: Storage | None,
    progress: Callable[[int, int], None] | None,
) -> dict[str, int]:
    from .parts import parts_of

    if unknown := sorted(set(share) - set(_OF_ORDER)):
        raise UsageError(
            f"share has {unknown[0]!r}, which settles no order; of a Loader's arguments it takes {', '.join(_OF_ORDER)}"
        )
    given = dict.fromkeys(_OF_ORDER) | dict(share)
    mode = shuffle_of(given["shuffle"] if "shuffle" in share else True)
    tail = given["tail"] or ("keep" if mode == _core.Shuffle.NONE else "drop")
    if tail not in TAILS:
        raise UsageError(f"tail is one of {', '.join(TAILS)}, not {tail!r}")
    me = ranks.find(given["rank"], given["world_size"])
    if given["local_ranks"] is not None:
        me = ranks.Ranks(me.rank, me.world, me.source, whole(given["local_ranks"], "local_ranks", 1, me.world))
    epochs = whole(given["reassign_every"] or 1, "reassign_every", 1)
    folder, count = _folder(to), _streams(streams)
    with using(storage, source, given["index"], once=True):
        parts = parts_of(source, None, given["index"], given["root"])
        plan = _core.PlanOptions(
            seed=whole(given["seed"] or 0, "seed", 0, (1 << 64) - 1),
            shuffle=mode,
            window=window_bytes(given["shuffle_window"], given["window"]),
            reassign_every=epochs,
            global_batch=global_batch(given["batch_size"], given["global_batch_size"], me.world),
            rank=me.rank,
            world=me.world,
            tail=TAILS[tail],
            weights=[],
            epoch_draws=0,
        )
        if len(parts) != 1:
            raise UsageError("stage the sources of a blend one by one: a share is of one data set")
        (files,) = share_of(parts, plan, me, epochs)
        report = parts[0].source.stage_kept(files, folder, count, checked_bool(verify, "verify"), progress)
    return _told(report)


def _folder(to: str | os.PathLike[str]) -> str:
    folder = path(to, "to")
    if "://" in folder or not folder:
        raise UsageError(f"staging copies to a folder of this machine, not {folder!r}")
    return os.path.abspath(folder)


def _streams(streams: int | None) -> int:
    return 0 if streams is None else whole(streams, "streams", 1, 1024)


def _told(report: dict[str, Any]) -> dict[str, int]:
    if notice := report.pop("notice"):
        tell_once(notice)
    return dict(report)


def remove_stage(folder: str | os.PathLike[str]) -> int:
    """Removes what ``hr.stage`` copied to the folder, whole data sets or shares, and nothing else; the bytes that went."""
    return int(_core.remove_stage(os.path.abspath(path(folder, "folder"))))


def _named_files(urls: list[str]) -> list[str]:
    """Files that lists and tables name: they are part of the data set, wherever they lie."""
    lists = (".txt", ".csv", ".tsv", ".jsonl", ".ndjson", ".pkl", ".pickle", ".json")
    if not any(url.lower().partition("#")[0].endswith(lists) for url in urls):
        return []
    return list(_core.open_source(urls).files())


def share_of(parts: Any, plan: _core.PlanOptions, me: ranks.Ranks, epochs: int) -> list[list[str]]:
    """The files of each part that the ranks of this node read in the first epochs."""
    first = me.rank // me.local * me.local
    here = list(range(first, min(first + me.local, me.world)))
    return _core.share_of([(part.name, part.source) for part in parts], plan, here, epochs)


def staged(source: _core.Source, folder: Any, only: list[str] | None = None) -> _core.Source:
    """The same data, copied to the folder in the background and read from there as it comes; of ``only`` these files."""
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise UsageError(f"stage is a folder, like stage='/dev/shm/hr', not {folder!r}")
    return source.staged(os.path.abspath(folder), only)


def tell(source: _core.Source) -> None:
    for notice in source.stage_notices():
        tell_once(notice)
