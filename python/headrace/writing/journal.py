# SPDX-License-Identifier: Apache-2.0
"""What of a pack of arrays is done: ``headrace.unfinished`` while it goes on, ``headrace.json`` in the end.

The manifest is that of packs of records (src/pack/journal.h): a line for each file with its size and CRC-32C. That of
a single file lies beside it, ``cube.h5.headrace.json``.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError

MANIFEST, UNFINISHED = "headrace.json", "headrace.unfinished"


@dataclass
class Written:
    name: str  # relative to the folder
    bytes: int
    crc32c: int
    samples: int = 0


def head_line(plan: str, format: str, samples: int) -> str:
    return f'{{"headrace": 1, "pack": "{plan}", "format": "{format}", "samples": {samples}, "shards": ['


def manifest_text(head: str, files: Iterable[Written]) -> str:
    lines = [
        f'{{"name": {json.dumps(f.name, ensure_ascii=False)}, "samples": {f.samples}, "bytes": {f.bytes}, "crc32c": "{f.crc32c:08x}"}}'
        for f in files
    ]
    return head + "\n" + ",\n".join(lines) + "\n]}\n"


def durable(path: str, data: bytes | str) -> None:
    """The file appears complete or not at all."""
    temporary = f"{path}.part"
    with open(temporary, "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)
    sync_folder(os.path.dirname(path) or ".")


def sync_folder(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.readline().rstrip("\n")
    except FileNotFoundError:
        return ""


class Lock:
    """One process writes at a time; the kernel lets go of it when the process dies."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "ab+")  # noqa: SIM115
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UsageError(f"{path}: another process packs into it at this moment") from None

    def close(self) -> None:
        self._file.close()


@dataclass
class Journal:
    """A folder that is being written. Lines of JSON: what was written in one go, and its files."""

    folder: str
    head: str
    complete: bool = False
    done: dict[str, list[Written]] = field(default_factory=dict)
    _lock: Lock | None = None

    @staticmethod
    def open(folder: str, head: str, resume: bool = True) -> Journal:
        out = Journal(folder, head)
        manifest, unfinished = (os.path.join(folder, name) for name in (MANIFEST, UNFINISHED))
        known = first_line(manifest) or first_line(unfinished)
        there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise UsageError(f"{folder} is there already, and no folder; give a new one")
        if known and known != head:
            raise UsageError(f"{folder} holds another pack: other data or other options; give a new folder")
        if there and not known:
            raise UsageError(f"{folder}: the folder is not empty: '{there[0]}' is there; give a new one")
        if first_line(manifest):
            out.complete = True
            if os.path.exists(unfinished):
                os.unlink(unfinished)
            return out
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(unfinished):
            durable(unfinished, head + "\n")
        out._lock = Lock(unfinished)
        if resume:
            out._read(unfinished)
        return out

    def _read(self, path: str) -> None:
        with open(path, encoding="utf-8", errors="replace") as f:
            f.readline()
            for line in f:
                try:
                    found = json.loads(line)
                    files = [Written(*row) for row in found["files"]]
                except (ValueError, KeyError, TypeError):
                    continue  # a kill cut it short: done again
                if all(self._is_there(w) for w in files):
                    self.done[found["what"]] = files

    def _is_there(self, file: Written) -> bool:
        try:
            return os.path.getsize(os.path.join(self.folder, file.name)) == file.bytes
        except OSError:
            return False

    def add(self, what: str, files: list[Written]) -> None:
        self.done[what] = files
        row: dict[str, Any] = {"what": what, "files": [[w.name, w.bytes, w.crc32c, w.samples] for w in files]}
        with open(os.path.join(self.folder, UNFINISHED), "a", encoding="utf-8") as f:
            f.write("\n" + json.dumps(row) + "\n")
            f.flush()
            os.fsync(f.fileno())

    def finish(self, files: list[Written]) -> None:
        durable(os.path.join(self.folder, MANIFEST), manifest_text(self.head, files))
        os.unlink(os.path.join(self.folder, UNFINISHED))
        self.close()

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
