# SPDX-License-Identifier: Apache-2.0
"""One pair of files as Megatron reads it: ``x.bin`` with tokens, ``x.idx`` with where each document lies.

A shard is there when its record ``x.done`` is: it is written last, so that whatever kills the process leaves a shard
that is whole, or none.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core

_NUMPY = {"u16": "<u2", "i32": "<i4"}


class ShardWriter:
    """Of one shard. Its files appear with ``finish``, or not at all."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self._folder, self._name = folder, name
        self._files = _core.TokenWriter(str(folder / place(name, "idx")), str(folder / place(name, "bin")), dtype)
        self._width = np.dtype(_NUMPY[dtype]).itemsize
        self._lengths: list[np.ndarray] = []
        self._sum = 0
        self.tokens = 0

    def add(self, tokens: bytes, begin: int, lengths: np.ndarray) -> None:
        """Documents of so many tokens each, one after the other from token ``begin`` on."""
        count = int(lengths.sum())
        self._files.add(tokens, begin * self._width, (lengths * self._width).tolist())
        written = memoryview(tokens)[begin * self._width : (begin + count) * self._width]
        self._sum = zlib.crc32(written, self._sum)
        self._lengths.append(lengths)
        self.tokens += count

    def finish(self, **more: Any) -> dict[str, Any]:
        """What is said of it, and ``more``."""
        self._files.finish()
        index = (self._folder / place(self._name, "idx")).read_bytes()
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths])
        record = {
            "documents": len(lengths),
            "tokens": self.tokens,
            "bin_bytes": self.tokens * self._width,
            "idx_bytes": len(index),
            "bin_crc32": self._sum,
            "idx_crc32": zlib.crc32(index),
            "lengths": histogram(lengths),
            **more,
        }
        write_json(self._folder / place(self._name, "done"), record)
        return record


def write_json(path: Path, data: dict[str, Any]) -> None:
    """There whole, or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "w", encoding="utf-8") as f:
        json.dump(data, f, indent=1)
        f.write("\n")
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)


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
