# SPDX-License-Identifier: Apache-2.0
"""Arrays of HDF5 that only h5py can read: their bytes as if they lay one after the other. Slow: one call at a time."""

from __future__ import annotations

import math
import os
import threading
from typing import Any

#: Chunks that h5py keeps open; its own default is 1 MiB.
_CACHE_BYTES = 64 << 20


class H5pyReader:
    """``reader(offset, length)`` gives bytes of the array in C order. Opens the file when it is first called."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        self._lock = threading.Lock()
        self._owner = 0
        self._dataset: Any = None

    def __call__(self, offset: int, length: int) -> bytes:
        if length == 0:
            return b""
        with self._lock:
            dataset = self._opened()
            index: list[Any] = []
            axis, first, last, step = 0, 0, 0, dataset.dtype.itemsize
            for axis in range(dataset.ndim):
                step = dataset.dtype.itemsize * math.prod(dataset.shape[axis + 1 :])
                first, last = offset // step, (offset + length - 1) // step
                if first != last or axis + 1 == dataset.ndim:
                    break
                index.append(first)
                offset -= first * step
            if dataset.ndim:
                index.append(slice(first, last + 1))
            raw: bytes = dataset[tuple(index)].tobytes()
        skip = offset - first * step
        return raw[skip : skip + length]

    def _opened(self) -> Any:
        import h5py

        if self._dataset is None or self._owner != os.getpid():
            self._dataset = h5py.File(self.path, "r", rdcc_nbytes=_CACHE_BYTES)[self.name]
            self._owner = os.getpid()
        return self._dataset
