# SPDX-License-Identifier: Apache-2.0
"""Texts of fixed length that is another from file to file: held in memory, as texts of any length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from .model import Stored, no_places

if TYPE_CHECKING:
    from .cube import Cube

#: Bytes of all of them; more are left as they are, and the engine refuses them.
_MOST_HELD = 256 << 20


def texts_alike(cube: Cube, segments: Sequence[Stored]) -> list[Stored]:
    """The arrays as they are, unless they are texts of fixed lengths that differ."""
    if segments[0].kind != "text" or any(s.kind != "text" or not s.inner or s.values is not None for s in segments):
        return list(segments)
    total = sum(math.prod(s.shape) for s in segments)
    if len({s.shape[-1] for s in segments}) == 1 or total > _MOST_HELD:
        return list(segments)
    return [_held(cube, s) for s in segments]


def _held(cube: Cube, stored: Stored) -> Stored:
    from .description import values_of

    plain = copy(stored)
    plain.kind, plain.text_end, plain.inner = "array", "", 0
    raw = values_of(cube, plain, parts=[plain]) if all(stored.shape) else None
    count, length = math.prod(stored.shape[:-1]), stored.shape[-1]
    rows = raw.reshape(count, length) if raw is not None else [b""] * count
    values = [_ended(bytes(row), stored.text_end) for row in rows]
    out = Stored(stored.name, stored.dims[:-1], stored.shape[:-1], tuple(max(1, n) for n in stored.shape[:-1]), "u8", kind="text")
    out.values = {"literal": b"".join(values), "lengths": np.array([len(v) for v in values], np.uint64)}
    out.places, out.files, out.attributes = no_places(0), stored.files, stored.attributes
    return out


def _ended(text: bytes, end: str) -> bytes:
    """Without what fills it up."""
    if end == "first nul":
        return text.partition(b"\0")[0]
    return text.rstrip(b" ") if end == "blanks" else text.rstrip(b"\0")
