# SPDX-License-Identifier: Apache-2.0
"""What only h5py can read of HDF5, as bytes for the engine. Slow: one call at a time."""

from __future__ import annotations

import math
import os
import threading
import weakref
from typing import Any

import numpy as np

from . import stored_files
from .stored_files import StoreFile, is_url

#: Chunks that h5py keeps open; its own default is 1 MiB.
_CACHE_BYTES = 64 << 20


def bytes_of(value: Any) -> bytes:
    """One value of variable length."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return value
    return np.asarray(value).tobytes() if value is not None else b""


_readers: weakref.WeakSet[_Reader] = weakref.WeakSet()


def _new_locks() -> None:
    """A thread of the parent, which the child does not have, may hold one."""
    for reader in list(_readers):
        reader._lock = threading.Lock()


os.register_at_fork(after_in_child=_new_locks)


class _Reader:
    """A data set, or one member of its records. Opens the file when it is first asked, once in a process."""

    def __init__(self, path: str, name: str, member: tuple[str, ...] = ()) -> None:
        self.path, self.name, self.member = path, name, member
        self._lock = threading.Lock()
        self._owner = 0
        self._dataset: Any = None
        _readers.add(self)

    def _opened(self) -> Any:
        import h5py

        if self._dataset is None or self._owner != os.getpid():
            file = StoreFile(self.path) if is_url(self.path) else self.path
            self._dataset = h5py.File(file, "r", rdcc_nbytes=_CACHE_BYTES)[self.name]
            self._owner = os.getpid()
        return self._dataset

    def _taken(self, dataset: Any, index: tuple[Any, ...]) -> Any:
        data = dataset[index]
        for part in self.member:
            data = data[part]
        return data

    def spec(self) -> list[Any]:
        """For the index: what ``reader_of`` makes it of again."""
        return ["values", self.name, 0, list(self.member)]


def reader_of(spec: list[Any], path: str) -> Any:
    """The reader that an index names, of the file or store that it is of."""
    kind, name, element_bytes, member = spec
    if kind == "zarr":
        from .zarr_python import ZarrNumbers

        return ZarrNumbers(path, stored_files.join(path, name), element_bytes)
    return Numbers(path, name, element_bytes, tuple(member)) if kind == "numbers" else Values(path, name, tuple(member))


class Numbers(_Reader):
    """``reader(offset, length)`` gives bytes of the array as if its elements lay one after the other."""

    def __init__(self, path: str, name: str, element_bytes: int, member: tuple[str, ...] = ()) -> None:
        super().__init__(path, name, member)
        self.element_bytes = element_bytes

    def spec(self) -> list[Any]:
        return ["numbers", self.name, self.element_bytes, list(self.member)]

    def __call__(self, offset: int, length: int | None) -> bytes:
        if not length:
            return b""
        with self._lock:
            dataset = self._opened()
            index: list[Any] = []
            first, last, step = 0, 0, self.element_bytes
            for axis in range(dataset.ndim):  # down to the axis on which more than one index is wanted
                step = self.element_bytes * math.prod(dataset.shape[axis + 1 :])
                first, last = offset // step, (offset + length - 1) // step
                if first != last or axis + 1 == dataset.ndim:
                    break
                index.append(first)
                offset -= first * step
            if dataset.ndim:
                index.append(slice(first, last + 1))
            raw = np.asarray(self._taken(dataset, tuple(index))).tobytes()
        skip = offset - first * step
        return raw[skip : skip + length]


class Values(_Reader):
    """``reader(number, None)`` gives a value of variable length by its number."""

    def __call__(self, offset: int, length: int | None) -> bytes:
        with self._lock:
            dataset = self._opened()
            index = tuple(int(i) for i in np.unravel_index(offset, dataset.shape)) if dataset.ndim else ()
            return bytes_of(self._taken(dataset, index))
