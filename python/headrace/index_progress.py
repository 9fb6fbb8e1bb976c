# SPDX-License-Identifier: Apache-2.0
"""A line that shows how far the index of a data set is, where someone sits at the terminal and it takes a while."""

from __future__ import annotations

import sys
import time

_PATIENCE = 1.0  # seconds before it is worth a line
_EVERY = 0.1


class IndexProgress:
    """Called with what is done; ``end()`` takes the line away."""

    def __init__(self) -> None:
        self._start = self._shown = time.monotonic()
        self._width = 0

    def __call__(self, done: int, shards: int, samples: int) -> None:
        now = time.monotonic()
        if now - self._start < _PATIENCE or now - self._shown < _EVERY or not sys.stderr.isatty():
            return
        self._shown = now
        bar = "=" * (20 * done // max(1, shards))
        text = f"headrace: indexing [{bar:20}] {done:,} of {shards:,} shards, {samples:,} samples, {now - self._start:.0f} s"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
