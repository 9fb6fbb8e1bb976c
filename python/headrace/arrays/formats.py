# SPDX-License-Identifier: Apache-2.0
"""Files of arrays, as ``hr.formats()`` lists them: read by windows and patches, written in chunks."""

from __future__ import annotations

from typing import Any


def _row(name: str, suffixes: list[str], write: bool, doc: str, checksum: bool = False) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "doc": doc, "suffixes": suffixes, "read": True, "write": write, "only": []}
    return row | {"checksum": checksum, "end": True, "lengths": True, "python": name in ("hdf5", "netcdf"), "holds": "arrays"}


ARRAY_FORMATS = [
    _row(
        "hdf5",
        [".h5", ".hdf5", ".he5"],
        True,
        "HDF5: arrays in chunks, plain or compressed; written from arrays and from samples",
    ),
    _row("netcdf", [".nc", ".nc4", ".cdf"], False, "NetCDF: variables with named dimensions, coordinates, packed numbers"),
    _row("zarr", [".zarr"], True, "Zarr 2 and 3, with shards; written as version 3 from arrays and from samples"),
    _row("npy", [".npy"], True, "NumPy's .npy: one array; written as a folder of them, or one"),
]
