# SPDX-License-Identifier: Apache-2.0
"""Classic NetCDF (CDF-1, CDF-2, CDF-5): the engine parses the header."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..errors import UsageError
from . import stored_files
from .model import Stored, listed, stored_of

#: What a file begins with, whatever its name.
CLASSIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
HDF5 = b"\x89HDF\r\n\x1a\n"


def sniff(path: str) -> str:
    """ "netcdf" or "hdf5" by the first bytes of a file; "" for others, and where there is none.

    HDF5 may begin behind a user block of 512 bytes, or of twice, four times, … as many: MATLAB's files do."""
    try:
        if not stored_files.is_file(path):
            return ""
        with stored_files.open_file(path) as f:
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
    out = [stored_of(d) for d in _core.netcdf_arrays(path)[0]]
    if not group.strip("/"):
        return out
    named = [a for a in out if a.name == group.strip("/")]
    if not named:
        raise UsageError(f"{path} has no array '{group}' (classic NetCDF has no groups); it has {listed(a.name for a in out)}")
    return named


def netcdf_attributes(path: str) -> dict[str, Any]:
    """Of the file itself."""
    return dict(_core.netcdf_arrays(path)[1])
