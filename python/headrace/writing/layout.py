# SPDX-License-Identifier: Apache-2.0
"""Which chunks an array is cut into, and what reading a sample of it will cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

#: What a chunk has when stored: less, and finding and opening chunks costs more than reading them; more, and
#: most of what a sample reads is not wanted.
LEAST, MOST = 64 << 10, 4 << 20
#: Finding, reading and opening a chunk takes as long as reading this many bytes more.
_EACH = 64 << 10
#: Of a chunk along the first axis, where nothing is known of how it will be read.
_ROWS = 256 << 10
#: More files than this for one array, and chunks go into shards.
MOST_FILES = 256

#: (steps, whether from a place that is drawn) on each axis; not drawn: all of the axis.
Wanted = list[tuple[int, bool]]


def wanted_of(dims: Sequence[str], shape: Sequence[int], along: str, window: int, patch: Sequence[int]) -> Wanted | None:
    """What a sample takes of each axis; None where windows and patches have nothing to do with the array."""
    free = [a for a, dim in enumerate(dims) if dim != along]
    if len(patch) > len(free) or len(dims) < 2 or (along not in dims and not patch):
        return None
    sizes = dict(zip(free[len(free) - len(patch) :], patch))
    if along in dims:
        sizes[list(dims).index(along)] = max(1, window)
    return [(min(sizes[a], n), True) if a in sizes else (n, False) for a, n in enumerate(shape)]


def touched(steps: int, drawn: bool, extent: int, chunk: int) -> float:
    """Chunks on one axis that a sample touches, on average."""
    if not drawn or extent <= steps:
        return float(-(-extent // chunk))
    starts = np.arange(extent - steps + 1) if extent < 100_000 else np.linspace(0, extent - steps, 100_000, dtype=np.int64)
    return float(np.mean((starts + steps - 1) // chunk - starts // chunk + 1))


def _candidates(steps: int, drawn: bool, extent: int) -> list[int]:
    if drawn:
        powers = [1 << k for k in range(extent.bit_length()) if 1 << k <= extent]
        sizes = {*powers, steps, -(-steps // 2), 2 * steps, extent}
    else:
        sizes = {-(-extent // (1 << k)) for k in range(extent.bit_length() + 1)}
    return sorted(s for s in sizes if 1 <= s <= extent)


def choose_chunk(shape: Sequence[int], item: int, wanted: Wanted | None, ratio: float = 1.0) -> tuple[int, ...]:
    """The chunk that makes a sample cheapest: chunks touched, times what each costs. ``ratio``: stored by plain bytes."""
    if wanted is None or math.prod(shape) * item * ratio <= LEAST:
        return _rows(shape, item)
    axes = [_candidates(steps, drawn, n) for (steps, drawn), n in zip(wanted, shape)]
    while math.prod(map(len, axes)) > 2_000_000:  # arrays of many axes: every second size of the longest list
        longest = max(range(len(axes)), key=lambda a: len(axes[a]))
        axes[longest] = axes[longest][::-2][::-1]
    size, chunks = np.float64(item * ratio), np.float64(1)
    for a, sizes in enumerate(axes):
        place = [1] * len(axes)
        place[a] = -1
        size = size * np.array(sizes, np.float64).reshape(place)
        steps, drawn = wanted[a]
        chunks = chunks * np.array([touched(steps, drawn, shape[a], c) for c in sizes]).reshape(place)
    cost = chunks * (size + _EACH)
    cost = np.where((size >= LEAST) & (size <= MOST), cost, np.inf)
    if not np.isfinite(cost).any():
        return _rows(shape, item)
    best = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return tuple(axes[a][i] for a, i in enumerate(best))


def _rows(shape: Sequence[int], item: int) -> tuple[int, ...]:
    """Whole rows of the first axis, about 256 KiB; rows that are larger than 4 MiB are halved on their longest axis."""
    if not shape:
        return ()
    row = max(1, math.prod(shape[1:]) * item)
    chunk = [max(1, min(shape[0], _ROWS // row)), *(max(1, n) for n in shape[1:])]
    while math.prod(chunk) * item > MOST and max(chunk[1:], default=1) > 1:
        longest = max(range(1, len(chunk)), key=lambda a: chunk[a])
        chunk[longest] = -(-chunk[longest] // 2)
    return tuple(chunk)


def grown(unit: Sequence[int], shape: Sequence[int], item: int, limit: int, cover: Sequence[int] = ()) -> tuple[int, ...]:
    """As many units as ``limit`` bytes hold: first what makes source chunks whole (``cover``), then from the last axis on."""
    out = list(unit)
    for a in sorted(range(len(cover)), key=lambda a: -cover[a] / unit[a]):
        wide = [*out]
        wide[a] = min(-(-cover[a] // unit[a]), -(-shape[a] // unit[a])) * unit[a]
        if wide[a] > out[a] and math.prod(wide) * item <= limit:
            out = wide
    for a in reversed(range(len(out))):
        room = limit // max(1, math.prod(out) * item)
        out[a] *= max(1, min(room, -(-shape[a] // out[a])))
        if out[a] < shape[a]:
            break
    return tuple(out)


def choose_shard(shape: Sequence[int], chunk: Sequence[int], item: int, size: int, asked: bool) -> tuple[int, ...]:
    """The chunks that lie in one file; () where each has its own."""
    files = math.prod(-(-n // c) for n, c in zip(shape, chunk))
    if files <= 1 or (files <= MOST_FILES and not asked):
        return ()
    shard = grown(chunk, shape, item, size)
    return () if shard == tuple(chunk) else shard


def expected(shape: Sequence[int], chunk: Sequence[int], item: int, wanted: Wanted, ratio: float) -> dict[str, Any]:
    """What a sample will read: chunks, stored bytes, and which part of what they open to is used."""
    chunks = math.prod(touched(s, d, n, c) for (s, d), n, c in zip(wanted, shape, chunk))
    opened = chunks * math.prod(chunk) * item
    used = math.prod(s for s, _ in wanted) * item
    return {"chunks": chunks, "bytes": opened * ratio, "used": used / opened}


def passes(shape: Sequence[int], source: Sequence[int], slab: Sequence[int]) -> float:
    """How often a chunk of the source is opened, on average, where slabs are made one after the other."""
    out = 1.0
    for n, c, s in zip(shape, source, slab):
        cuts = {*range(0, n, c), *range(0, n, s)} if n // c + n // s < 1_000_000 else ()
        out *= len(cuts) / -(-n // c) if cuts else 1.0
    return out
