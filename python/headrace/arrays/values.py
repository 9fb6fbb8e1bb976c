# SPDX-License-Identifier: Apache-2.0
"""Values of variable length in Zarr: NAME holds them one after the other, NAME_offsets where each begins.

The attribute ``offsets`` of NAME names the other array, ``kind`` says what the values are; ``headrace pack --to zarr`` writes both.
"""

from __future__ import annotations

import numpy as np

from .model import Listed, Stored, no_places

_TEXT = ("text", "json")
_NUMBERS = ("array", "tokens")


def join_values(arrays: list[Stored]) -> list[Stored]:
    """Each pair as one array, an element of which is a value."""
    named = {a.name: a for a in arrays}
    pairs = {a.name: named[o] for a in arrays if isinstance(o := a.attributes.get("offsets"), str) and _fits(a, named.get(o))}
    starts = {id(offsets) for offsets in pairs.values()}
    return [_joined(a, pairs[a.name]) if a.name in pairs else a for a in arrays if id(a) not in starts]


def _fits(flat: Stored, offsets: Stored | None) -> bool:
    if offsets is None or offsets.why or flat.why or "kind" not in flat.attributes:
        return False
    return len(flat.shape) == len(offsets.shape) == 1 and offsets.dtype == "i64" and offsets.shape[0] > 0


def _joined(flat: Stored, offsets: Stored) -> Stored:
    kind = flat.attributes["kind"]
    count = offsets.shape[0] - 1
    out = Listed(flat.name, offsets.dims, (count,), (max(1, count),), flat.dtype)
    out.kind = "text" if kind in _TEXT else "array" if kind in _NUMBERS else "bytes"
    out.finder = lambda: (no_places(0), flat.files + offsets.files, np.concatenate([flat.file_bytes, offsets.file_bytes]))
    out.values, out.looked_at = {"flat": flat, "offsets": offsets}, flat.looked_at
    if flat.filters:
        out.why = "its values lie in compressed chunks, which are not read; write them without compression"
    return out
