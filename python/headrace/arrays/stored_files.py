# SPDX-License-Identifier: Apache-2.0
"""Files by their paths or URLs, wherever they lie: what ``os.path`` and ``open`` are for local ones, through the engine's stores."""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from typing import Any, NamedTuple

from .. import _core


class Info(NamedTuple):
    bytes: int
    modified_ns: int  # 0 where the store has none
    is_folder: bool
    version: str  # an ETag or the like; "" where it costs a request


def is_url(path: str) -> bool:
    """Of another store than the local file system."""
    return "://" in path and not path.startswith("file://")


def plain(path: str) -> str:
    """Without ``file://``."""
    return path.removeprefix("file://")


def absolute(path: str) -> str:
    return path if is_url(path) else os.path.abspath(plain(path))


def join(folder: str, name: str) -> str:
    if not name:
        return folder
    return folder if name == "." else f"{folder.rstrip('/')}/{name}" if is_url(folder) else os.path.join(folder, name)


def parent(path: str) -> str:
    return path.rpartition("/")[0] if is_url(path) else os.path.dirname(path)


def base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def relative(path: str, folder: str) -> str:
    """From ``folder``; "." where it is that."""
    if not is_url(path):
        return os.path.relpath(path, folder)
    return path.removeprefix(folder.rstrip("/")).strip("/") or "."


def stat_all(paths: list[str]) -> list[Info | None]:
    """None where there is nothing of that name."""
    return [None if found is None else Info(*found) for found in _core.stat_all(paths)]


def stat(path: str) -> Info | None:
    """None where there is nothing of that name. What cannot be looked at raises; of local paths it is as if it were not there."""
    if is_url(path):
        return stat_all([path])[0]
    try:
        info = os.stat(plain(path))
    except (OSError, ValueError):
        return None
    is_folder = (info.st_mode & 0o170000) == 0o040000
    return Info(info.st_size, info.st_mtime_ns, is_folder, f"{info.st_size}-{info.st_mtime_ns}")


def exists(path: str) -> bool:
    return stat(path) is not None


def is_file(path: str) -> bool:
    return os.path.isfile(plain(path)) if not is_url(path) else (i := stat(path)) is not None and not i.is_folder


def is_folder(path: str) -> bool:
    return (i := stat(path)) is not None and i.is_folder


def read(path: str, offset: int, length: int) -> bytes:
    """All of it, or an error that names the file."""
    return bytes(_core.read_range(path, offset, length))


def read_all(path: str) -> bytes:
    info = stat(path)
    return read(path, 0, info.bytes if info is not None else 0)


def entries(folder: str) -> list[tuple[str, bool]]:
    """(name, whether it is a folder), sorted."""
    return list(_core.list_folder(folder))


#: Metadata lie in clumps: few requests of this size find them.
_BLOCK = 1 << 20
_MOST_BLOCKS = 64


class StoreFile(io.RawIOBase):
    """A file of a store as Python reads files; blocks of 1 MiB are kept, the last 64 that were wanted."""

    def __init__(self, path: str, size: int | None = None) -> None:
        super().__init__()
        self.path = path
        if size is None:
            info = stat(path)
            if info is None or info.is_folder:
                raise FileNotFoundError(f"there is no {path}")
            size = info.bytes
        self._size, self._at = size, 0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"{self.path}: there is no place {start + offset}")
        self._at = start + offset
        return self._at

    def readinto(self, into: Any) -> int:
        view = memoryview(into).cast("B")
        count = max(0, min(len(view), self._size - self._at))
        if count > _BLOCK:  # an array: who reads it does so once
            view[:count] = read(self.path, self._at, count)
            self._at += count
            return count
        done = 0
        while done < count:
            number, skip = divmod(self._at, _BLOCK)
            piece = memoryview(self._block(number))[skip : skip + count - done]
            view[done : done + len(piece)] = piece
            done += len(piece)
            self._at += len(piece)
        return done

    def read_begin(self) -> None:
        """Reads the first block, where metadata lie: outside of a library whose lock lets one thread in."""
        if self._size > 0:
            self._block(0)

    def _block(self, number: int) -> bytes:
        found = self._blocks.get(number)
        if found is None:
            begin = number * _BLOCK
            found = self._blocks[number] = read(self.path, begin, min(_BLOCK, self._size - begin))
            if len(self._blocks) > _MOST_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return found


def open_file(path: str) -> Any:
    """For libraries that read files: a local one as it is, any other through its store."""
    return StoreFile(path) if is_url(path) else open(plain(path), "rb")
