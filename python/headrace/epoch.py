# SPDX-License-Identifier: Apache-2.0
"""The batches of one epoch, with the time that the loop around them takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .batch import Batch
from .errors import UsageError

if TYPE_CHECKING:
    from .loader import Loader


class Epoch(Iterator[Batch]):
    """The batches of one epoch, so many as ``len`` says; ended by the start of another."""

    def __init__(self, loader: Loader, generation: int, steps: int) -> None:
        self._loader, self._generation, self._left = loader, generation, steps
        self._returned_at: float | None = None

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Batch:
        if self._left == 0:
            raise StopIteration
        loader, run = self._loader, self._loader._running
        if not loader._inner.is_current(self._generation):
            raise UsageError("this epoch was ended: another one was started, or a state was loaded")
        start = time.perf_counter()
        try:
            batch = loader._take()
        except BaseException:
            self._left = 0
            raise
        if batch is None:
            self._left = 0
            loader._inner  # noqa: B018  # another thread may have closed it
            raise StopIteration
        self._left -= 1
        now = time.perf_counter()
        run.batches += 1
        run.wait_s += now - start
        if self._returned_at is not None:
            run.step_s += start - self._returned_at
        self._returned_at = now
        return batch
