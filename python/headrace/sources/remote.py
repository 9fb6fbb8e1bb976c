# SPDX-License-Identifier: Apache-2.0
"""Samples of an object that other processes make: ``hr.from_torch(dataset, processes=n)``.

The object goes over once, as ``pickle`` or cloudpickle leave it; each process has its own. A call is a list of numbers; what comes
back lies in shared memory: the samples as the engine takes them, one after the other.
"""

from __future__ import annotations

import traceback
import weakref
from typing import Any

import numpy as np

from .. import _core
from ..errors import remember_remote
from ..processes import Pool
from .items import Items

_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def close_pools() -> None:
    for pool in list(_pools):
        pool.close()


class Rows:
    """What runs in a process: numbers of samples to (where each ends, all of them, those that failed)."""

    def __init__(self, obj: Any, items: Items, many: bool) -> None:
        self.obj, self.items, self.many = obj, items, many
        self._encoder: Any = None

    def __getstate__(self) -> tuple[Any, Items, bool]:
        return self.obj, self.items, self.many

    def __setstate__(self, state: tuple[Any, Items, bool]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __call__(self, numbers: list[int]) -> tuple[Any, Any, dict[int, tuple[bool, str, str]]]:
        if self._encoder is None:
            self._encoder = _core.ItemEncoder(self.items.encoder())
        rows: list[bytes] = []
        failed: dict[int, tuple[bool, str, str]] = {}
        found = self._together(numbers)
        for i, n in enumerate(numbers):
            try:
                rows.append(self._encoder.encode(self._one(n) if found is None else found[i]))
            except Exception as e:
                bad, words = self.items.explain(e)
                failed[i] = bad, words, "".join(traceback.format_exception(type(e), e, e.__traceback__))
                rows.append(b"")
        ends = np.cumsum([len(r) for r in rows], dtype=np.uint64)
        return ends, np.frombuffer(b"".join(rows), np.uint8), failed

    def _together(self, numbers: list[int]) -> Any:
        if not self.many:
            return None
        try:
            found = self.obj.__getitems__(numbers)
            return found if len(found) == len(numbers) else None
        except Exception:  # one of them: each is asked for by itself
            return None

    def _one(self, n: int) -> Any:
        return self.obj.__getitems__([n])[0] if self.many else self.obj[n]


class RemoteRows:
    """The processes, as the engine's threads call them."""

    def __init__(self, obj: Any, items: Items, many: bool, processes: int) -> None:
        self._pool = Pool(processes, Rows(obj, items, many))
        _pools.add(self._pool)

    def __call__(self, numbers: list[int]) -> Any:
        ends, rows, failed = self._pool.call(numbers)
        for _, words, where in failed.values():
            remember_remote(words, where)
        return ends, rows, failed
