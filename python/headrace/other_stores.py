# SPDX-License-Identifier: Apache-2.0
"""Schemes that headrace does not read itself, through fsspec where it is installed: ``hr.open("memory://…")``, ``"abfs://…"``."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from .messages import tell_once

Row = tuple[int, int, bool, str]


class Reader:
    """fsspec's file systems of one scheme, as the engine asks them."""

    def __init__(self, scheme: str, kind: Any) -> None:
        self._scheme, self._kind = scheme, kind

    def _files(self, url: str) -> Any:
        """The one of the server that the URL names (ftp, sftp, hdfs, …); fsspec keeps those that it has made."""
        import fsspec  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return fsspec.filesystem(self._scheme, **self._kind._get_kwargs_from_urls(url))

    def info(self, url: str) -> Row:
        return _row(self._files(url).info(url))

    def list(self, url: str) -> list[tuple[str, Row]]:
        files = self._files(url)
        files.invalidate_cache()
        own = files._strip_protocol(url).strip("/")
        found = files.ls(url, detail=True)
        inside = [entry for entry in found if entry["name"].strip("/") != own]  # some list the folder itself
        if not inside and any(entry["type"] != "directory" for entry in found):
            raise NotADirectoryError(f"{url} is a file")
        return [(entry["name"].rstrip("/").rsplit("/", 1)[-1], _row(entry)) for entry in inside]

    def read(self, url: str, offset: int, length: int | None) -> bytes:
        end = None if length is None else offset + length
        return bytes(self._files(url).cat_file(url, start=offset, end=end))


def _row(info: Mapping[str, Any]) -> Row:
    size, modified = int(info.get("size") or 0), _time_ns(info)
    tag = info.get("ETag") or info.get("etag") or info.get("md5Hash") or info.get("generation") or ""
    if not tag and modified:
        tag = f"{size}-{modified}"
    return size, modified, info.get("type") == "directory", str(tag)


def _time_ns(info: Mapping[str, Any]) -> int:
    for name in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        value = info.get(name)
        if isinstance(value, datetime.datetime):
            return int(value.timestamp() * 1e6) * 1000
        if isinstance(value, (int, float)):
            return int(value * 1e6) * 1000
    return 0


def open_reader(scheme: str) -> Reader:
    """ValueError and ImportError say what is missing."""
    try:
        import fsspec  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise ImportError("other schemes need fsspec: pip install fsspec") from None
    try:
        kind = fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise ValueError(f"fsspec knows no {scheme}:// either; check the spelling") from None
    tell_once(f"{scheme}:// is read through fsspec ({kind.__name__}), which is slower than what headrace reads itself")
    return Reader(scheme, kind)
