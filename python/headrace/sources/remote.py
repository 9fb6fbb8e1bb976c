# SPDX-License-Identifier: Apache-2.0
"""Samples of an object that other processes make: ``hr.from_torch(dataset, processes=n)``.

The object goes over once, as ``pickle`` or cloudpickle leave it; each process has its own. A call is a list of numbers; the samples
are written into shared memory as the engine takes them, one after the other (``python/src/item_processes.cc``).
"""

from __future__ import annotations

import struct
import traceback
import weakref
from typing import Any

from .. import _core
from ..processes.pool import TIMEOUT, Processes
from .items import Items

_pools: weakref.WeakSet[Processes] = weakref.WeakSet()
_FAILURE = struct.Struct("<IBII")
_ENCODED = bytes(4)  # the form of a call whose samples go into one place, encoded
_MOST_WORDS = 60_000  # bytes about all failures of a call


def close_pools() -> None:
    for pool in list(_pools):
        pool.close()


class Rows:
    """What runs in a process: numbers of samples to the samples, encoded, and those that failed."""

    def __init__(self, obj: Any, items: Items, many: bool) -> None:
        self.obj, self.items, self.many = obj, items, many
        self._encoder: Any = None
        self._fetch: Any = None

    def __getstate__(self) -> tuple[Any, Items, bool]:
        return self.obj, self.items, self.many

    def __setstate__(self, state: tuple[Any, Items, bool]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def serve(self, header: bytes, places: list[memoryview]) -> tuple[bytes, bytes]:
        """The answer, and the rows that the place has no room for."""
        if self._encoder is None:
            self._encoder = _core.ItemEncoder(self.items.encoder())
            self._fetch = _core.ItemFetch(self.obj, self.obj.__getitems__ if self.many else None)
        if header[:4] == _ENCODED:
            answer, more, failed = self._encoder.encode_rows(self._fetch, header[4:], places[0])
        else:
            answer, more, failed = b"", b"", self._encoder.make_rows(self._fetch, header, places)
        if failed:
            room = _MOST_WORDS // len(failed) - _FAILURE.size
            answer += b"".join(self._failure(number, error, room) for number, error in failed)
        return answer, more

    def _failure(self, number: int, error: BaseException, room: int) -> bytes:
        bad, words = self.items.explain(error)
        said = words.encode("utf-8", "backslashreplace")[: max(200, room // 2)]
        where = "".join(traceback.format_exception(type(error), error, error.__traceback__)).encode("utf-8", "backslashreplace")
        where = where[-(room - len(said)) :] if room > len(said) + 500 else b""
        return _FAILURE.pack(number, bad, len(said), len(where)) + said + where


def pool_of(obj: Any, items: Items, many: bool, processes: int) -> Processes:
    pool = Processes()
    pool.add("rows", Rows(obj, items, many), {}, items.owner, processes, TIMEOUT)
    pool.prepare()
    _pools.add(pool)
    return pool
