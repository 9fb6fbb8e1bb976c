# SPDX-License-Identifier: Apache-2.0
"""Schemes that headrace does not read itself, through fsspec where it is installed: ``hr.open("memory://…")``, ``"abfs://…"``."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from .messages import tell_once

Row = tuple[int, int, bool, str]


class Reader:
    """One of fsspec's file systems, as the engine asks it."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def info(self, url: str) -> Row:
        return _row(self._files.info(url))

    def list(self, url: str) -> list[tuple[str, Row]]:
        self._files.invalidate_cache()
        own = self._files._strip_protocol(url).strip("/")
        found = self._files.ls(url, detail=True)
        inside = [entry for entry in found if entry["name"].strip("/") != own]  # some list the folder itself
        if not inside and any(entry["type"] != "directory" for entry in found):
            raise NotADirectoryError(f"{url} is a file")
        return [(entry["name"].rstrip("/").rsplit("/", 1)[-1], _row(entry)) for entry in inside]

    def read(self, url: str, offset: int, length: int | None) -> bytes:
        end = None if length is None else offset + length
        return bytes(self._files.cat_file(url, start=offset, end=end))


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
        files = fsspec.filesystem(scheme)
    except ValueError:
        raise ValueError(f"fsspec knows no {scheme}:// either; check the spelling") from None
    tell_once(f"{scheme}:// is read through fsspec ({type(files).__name__}), which is slower than what headrace reads itself")
    return Reader(files)
