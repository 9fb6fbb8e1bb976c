# SPDX-License-Identifier: Apache-2.0
"""One pair of files as Megatron reads it: ``x.bin`` with tokens, ``x.idx`` with where each document lies.

A shard is there when its record ``x.done`` is: it is renamed last, so that whatever kills the process leaves a shard
that is whole, or none.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

_CODES = {"u16": 8, "i32": 4}
_NUMPY = {"u16": "<u2", "i32": "<i4"}


def shard_name(number: int, count: int) -> str:
    return f"tokens-{number:0{max(5, len(str(count - 1)))}d}"


class ShardWriter:
    """Of one shard. Files have other names until ``finish``."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self._folder, self._name, self._dtype = folder, name, dtype
        self._temporary = {ending: folder / f".{name}.{os.getpid()}.{ending}" for ending in ("bin", "idx", "done")}
        self._bin = open(self._temporary["bin"], "wb", buffering=1 << 20)  # noqa: SIM115 - finish() and drop() close it
        self._lengths: list[int] = []
        self._sum = 0
        self.tokens = 0

    def add(self, document: np.ndarray) -> None:
        data = document.astype(_NUMPY[self._dtype], copy=False).tobytes()
        self._bin.write(data)
        self._sum = zlib.crc32(data, self._sum)
        self._lengths.append(len(document))
        self.tokens += len(document)

    def finish(self) -> dict[str, Any]:
        self._sync(self._bin)
        lengths = np.array(self._lengths, "<i4")
        begins = np.zeros(len(lengths), "<i8")
        np.cumsum(lengths[:-1], out=begins[1:])
        begins *= np.dtype(_NUMPY[self._dtype]).itemsize
        head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, _CODES[self._dtype], len(lengths), len(lengths) + 1)
        index = b"".join([head, lengths.tobytes(), begins.tobytes(), np.arange(len(lengths) + 1, dtype="<i8").tobytes()])
        with open(self._temporary["idx"], "wb") as f:
            f.write(index)
            self._sync(f)
        record = {
            "documents": len(lengths),
            "tokens": self.tokens,
            "bin_bytes": self.tokens * np.dtype(_NUMPY[self._dtype]).itemsize,
            "idx_bytes": len(index),
            "bin_crc32": self._sum,
            "idx_crc32": zlib.crc32(index),
            "lengths": histogram(lengths),
        }
        with open(self._temporary["done"], "w", encoding="utf-8") as done:
            json.dump(record, done)
            self._sync(done)
        for ending in ("bin", "idx", "done"):
            os.replace(self._temporary[ending], self._folder / place(self._name, ending))
        return record

    def drop(self) -> None:
        self._bin.close()
        for path in self._temporary.values():
            path.unlink(missing_ok=True)

    @staticmethod
    def _sync(f: Any) -> None:
        f.flush()
        os.fsync(f.fileno())
        f.close()


def place(name: str, ending: str) -> str:
    """Records lie apart: the folder holds a data set."""
    return f".tokenize/{name}.done" if ending == "done" else f"{name}.{ending}"


def record_of(folder: Path, name: str) -> dict[str, Any] | None:
    """What is said of a shard that is there and as long as it should be; else None."""
    try:
        record = json.loads((folder / place(name, "done")).read_text(encoding="utf-8"))
        sizes = [(folder / place(name, ending)).stat().st_size for ending in ("bin", "idx")]
        return record if sizes == [record["bin_bytes"], record["idx_bytes"]] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def histogram(lengths: np.ndarray) -> dict[str, int]:
    """How many documents have at most so many tokens, and more than half of that."""
    bins = Counter(int(n) for n in np.where(lengths > 0, 2 ** np.ceil(np.log2(np.maximum(lengths, 1))), 0))
    return {str(n): bins[n] for n in sorted(bins)}
