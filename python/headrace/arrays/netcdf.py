# SPDX-License-Identifier: Apache-2.0
"""Classic NetCDF (CDF-1, CDF-2, CDF-5): the engine parses the header; this names the places."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import _core
from ..errors import UsageError
from .model import Stored, grid_of, listed, no_places, one_place, plain_attributes

#: What a file begins with, whatever its name.
CLASSIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
HDF5 = b"\x89HDF\r\n\x1a\n"


def sniff(path: str) -> str:
    """ "netcdf" or "hdf5" by the first bytes of a file; "" for others, and where there is none.

    HDF5 may begin behind a user block of 512 bytes, or of twice, four times, … as many: MATLAB's files do."""
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as f:
            head = f.read(8)
            if head[:4] in CLASSIC:
                return "netcdf"
            for block in (512, 1024, 2048, 4096):
                if head == HDF5:
                    return "hdf5"
                f.seek(block)
                head = f.read(8)
    except OSError:
        return ""
    return "hdf5" if head == HDF5 else ""


def netcdf_arrays(path: str, group: str) -> list[Stored]:
    """The arrays of the file; ``group``: the one of that name, since there are no groups."""
    out = [_array(d, path) for d in _core.netcdf_file(path)[0]]
    if not group.strip("/"):
        return out
    named = [a for a in out if a.name == group.strip("/")]
    if not named:
        raise UsageError(f"{path} has no array '{group}' (classic NetCDF has no groups); it has {listed(a.name for a in out)}")
    return named


def netcdf_attributes(path: str) -> dict[str, Any]:
    """Of the file itself."""
    return plain_attributes(_attributes(_core.netcdf_file(path)[1]))


def _attributes(stored: dict[str, tuple[str, bytes]]) -> dict[str, Any]:
    """Texts and lists of numbers, by the types and bytes that the header has."""
    out: dict[str, Any] = {}
    for name, (dtype, raw) in stored.items():
        if dtype:
            values = np.frombuffer(raw, f">{dtype[0]}{int(dtype[1:]) // 8}")
            out[name] = values.astype(values.dtype.newbyteorder("="))
        else:  # the netCDF library writes UTF-8, others wrote Latin-1; some end texts with zeros
            text = raw.rstrip(b"\0")
            try:
                out[name] = text.decode()
            except UnicodeDecodeError:
                out[name] = text.decode("latin-1")
    return out


def _array(d: dict[str, Any], path: str) -> Stored:
    shape = tuple(d["shape"])
    out = Stored(d["name"], tuple(d["dims"]), shape, dtype=d["dtype"] or "u8", big_endian=bool(d["dtype"]), files=[path])
    if not d["dtype"]:
        out.kind, out.inner, out.text_end = "text", 1, "nuls"
        out.attributes = plain_attributes(_attributes(d["attributes"]))
        if len(shape) > 2 or not shape:
            out.why = "it holds several texts (char) a sample" if shape else "it is one letter (char)"
    if d["has_records"] and d["stride"] != d["bytes"]:  # each record is a chunk, among those of other variables
        out.chunk = (1, *shape[1:])
        out.places = no_places(grid_of(out.name, shape, out.chunk)[0])
        out.places[:, 2] = np.uint64(d["begin"]) + np.arange(shape[0], dtype=np.uint64) * np.uint64(d["stride"])
        out.places[:, 3] = d["bytes"]
    else:
        out.chunk = tuple(max(1, s) for s in shape)
        records = shape[0] if d["has_records"] else 1
        out.places = one_place(d["begin"], records * d["bytes"]) if records else no_places(0)
    if out.kind == "array":
        out.unpack_by(_attributes(d["attributes"]))
    return out
