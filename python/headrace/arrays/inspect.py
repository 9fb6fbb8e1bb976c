# SPDX-License-Identifier: Apache-2.0
"""What ``headrace inspect`` says of files of arrays: each array, its chunks and what they went through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import terminal
from . import stored_files
from .cube import Cube
from .files import are_arrays
from .model import WHOLE_FILE, Stored


def _stored_bytes(stored: Stored) -> int:
    """Of all chunks that are there."""
    if stored.places is None:
        return 0
    sizes = stored.places[:, 3]
    whole = sizes == np.uint64(WHOLE_FILE)
    if not whole.any():
        return int(sizes.sum())
    numbers = np.unique(stored.places[whole][:, 0])
    if stored.file_bytes is not None:
        return int(sizes[~whole].sum()) + int(stored.file_bytes[numbers].sum())
    return int(sizes[~whole].sum()) + sum(i.bytes for i in stored_files.stat_all([stored.files[int(n)] for n in numbers]) if i)


def _about(stored: Stored) -> dict[str, Any]:
    out: dict[str, Any] = {"name": stored.name, "dims": list(stored.dims), "shape": list(stored.shape), "dtype": stored.dtype}
    if stored.why:
        return {**out, "why": stored.why}
    if stored.values is not None:  # each where it lies; sizes are those of the samples
        return {**out, "why": f"{stored.kind if stored.kind != 'array' else 'numbers'} of variable length", "values": True}
    there = int(np.count_nonzero(stored.places[:, 3])) if stored.places is not None else 0
    chunk = list(stored.chunk)
    return {
        **out,
        "big_endian": stored.big_endian,
        "fortran": stored.fortran,
        "chunk": chunk,
        "chunks": 0 if stored.places is None else len(stored.places),
        "chunks_missing": 0 if stored.places is None else len(stored.places) - there,
        "filters": " ".join(f"{name}:{number}" if number else name for name, number in stored.filters),
        "bytes": math.prod(stored.shape) * (int(stored.dtype[1:]) // 8 if stored.dtype[1:].isdigit() else 2),
        "stored_bytes": _stored_bytes(stored),
        "scale": stored.scale if stored.packed else None,
        "offset": stored.offset + 0.0 if stored.packed else None,
    }


def look_at_arrays(urls: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each array of the first file; [] where these are no files of arrays."""
    if not are_arrays(urls):
        return []
    cube = Cube(urls)
    rows = [_about(stored) for stored in cube.files[0].values()]
    cube.keep()
    return [{**row, "files": len(cube.files)} for row in rows]


def _times(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers)) or "one number"


def arrays_page(rows: list[dict[str, Any]]) -> None:
    out = terminal.console()
    table = terminal.table("array", "type", "axes", "shape", "chunk", ">chunks", "filters", ">stored")
    for row in rows:
        axes = ", ".join(row["dims"])
        if "why" in row:
            table.add_row(
                terminal.plain(row["name"]), row["dtype"], terminal.plain(axes), _times(row["shape"]), terminal.plain(row["why"])
            )
            continue
        kind = row["dtype"] + (", big-endian" if row["big_endian"] else "") + (", first axis fastest" if row["fortran"] else "")
        if (row["scale"], row["offset"]) not in ((None, None), (1, 0)):
            kind += f", x {row['scale']:g} + {row['offset']:g}"
        missing = f" ({row['chunks_missing']:,} missing)" if row["chunks_missing"] else ""
        share = f", {row['stored_bytes'] / row['bytes']:.0%}" if row["bytes"] and row["filters"] else ""
        table.add_row(
            terminal.plain(row["name"]),
            kind,
            terminal.plain(axes),
            _times(row["shape"]),
            _times(row["chunk"]),
            f"{row['chunks']:,}{missing}",
            row["filters"] or "none",
            terminal.size(row["stored_bytes"]) + share,
        )
    out.print(table)
    if rows and rows[0]["files"] > 1:
        out.print(f"[dim]of the first of {rows[0]['files']:,} files[/]\n")
