# SPDX-License-Identifier: Apache-2.0
"""Classic NetCDF (CDF-1, CDF-2, CDF-5): the engine parses the header; this names the places."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..errors import UsageError
from .model import Stored, grid_of, listed, no_places, one_place

#: What a file begins with, whatever its name.
CLASSIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
HDF5 = b"\x89HDF\r\n\x1a\n"


def sniff(path: str) -> str:
    """ "netcdf" or "hdf5" by the first bytes of a file; "" for others, and where there is none."""
    try:
        with open(path, "rb") as f:
            head = f.read(8)
    except OSError:
        return ""
    return "netcdf" if head[:4] in CLASSIC else "hdf5" if head == HDF5 else ""


def netcdf_arrays(path: str, group: str) -> list[Stored]:
    """The arrays of the file; ``group``: the one of that name, since there are no groups."""
    out = [_array(d, path) for d in _core.netcdf_file(path)]
    if not group.strip("/"):
        return out
    named = [a for a in out if a.name == group.strip("/")]
    if not named:
        raise UsageError(f"{path} has no array '{group}' (classic NetCDF has no groups); it has {listed(a.name for a in out)}")
    return named


def _array(d: dict[str, Any], path: str) -> Stored:
    shape = tuple(d["shape"])
    out = Stored(d["name"], tuple(d["dims"]), shape, dtype=d["dtype"], big_endian=True, files=[path])
    if not out.dtype:
        out.why = "it holds texts (char)"
        return out
    if d["has_records"] and d["stride"] != d["bytes"]:  # each record is a chunk, among those of other variables
        out.chunk = (1, *shape[1:])
        out.places = no_places(grid_of(out.name, shape, out.chunk)[0])
        out.places[:, 2] = np.uint64(d["begin"]) + np.arange(shape[0], dtype=np.uint64) * np.uint64(d["stride"])
        out.places[:, 3] = d["bytes"]
    else:
        out.chunk = tuple(max(1, s) for s in shape)
        records = shape[0] if d["has_records"] else 1
        out.places = one_place(d["begin"], records * d["bytes"]) if records else no_places(0)
    out.unpack_by(d["attributes"])
    return out
