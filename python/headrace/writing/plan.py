# SPDX-License-Identifier: Apache-2.0
"""What packs of arrays and of samples into arrays have in common: where they go, room, plans, slabs."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.cube import Cube
from ..arrays.model import Stored
from ..errors import Exhausted, Unsupported
from .targets import Target, ZarrTarget


@dataclass
class Access:
    """How samples will be read, as far as the user says."""

    along: str | None = None
    window: int | None = None
    patch: Sequence[int] = ()

    @property
    def asked(self) -> bool:
        return self.window is not None or bool(self.patch)


def holds_values(urls: list[str], fields: Sequence[str], drop: Sequence[str]) -> bool:
    """Whether some array has values of variable length or texts: those are packed sample by sample, but for a cube, whose
    axes and coordinates samples do not have."""
    cube = Cube(urls)
    arrays = cube.files[0]
    wanted = [n for n in fields or arrays if n in arrays and n not in drop]
    values = [n for n in wanted if arrays[n].values is not None or arrays[n].kind != "array"]
    if values and is_cube(cube):
        text = ", ".join(f"'{n}'" for n in values)
        raise Unsupported(
            f"{cube.where} is a cube with coordinates, and {text} cannot be packed as arrays (text, or values of variable length): "
            f"pack with {' '.join(f'--drop {n}' for n in values)}"
        )
    return bool(values)


def is_cube(cube: Cube) -> bool:
    """Whether an axis has a coordinate: a variable of its name."""
    arrays = cube.files[0].values()
    shared = {dim for a in arrays for dim in a.dims if len(a.dims) > 1}
    return any(a.dims == (a.name,) and a.name in shared for a in arrays)


def target_class(to: str, path: str) -> type[Target]:
    if to == "zarr":
        return ZarrTarget
    if to == "hdf5":
        from .hdf5 import Hdf5Target

        return Hdf5Target
    from .npy import NpyFolderTarget, NpyTarget

    return NpyTarget if path.endswith(".npy") else NpyFolderTarget


def plan_of(*facts: Any) -> str:
    """All that fixes the bytes, as 32 digits."""
    return hashlib.blake2b(json.dumps(facts, sort_keys=True, default=repr).encode(), digest_size=16).hexdigest()


def free_bytes(path: str) -> int:
    place = os.path.abspath(path)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    return shutil.disk_usage(place).free


def check_room(path: str, wanted: int) -> None:
    """The estimate is from a few chunks: only where it is clearly too much."""
    if 0.9 * wanted > free_bytes(path):
        raise Exhausted(f"{path}: about {wanted // 10**6} MB are to be written, and {free_bytes(path) // 10**6} MB are free")


def slabs(shape: Sequence[int], slab: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(begin, size) of each, last axis fastest."""
    for begin in itertools.product(*(range(0, n, s) for n, s in zip(shape, slab))):
        yield begin, tuple(min(s, n - b) for b, s, n in zip(begin, slab, shape))


def size_of(path: str) -> tuple[int, int]:
    """(bytes, files) of a file or a folder."""
    if os.path.isfile(path):
        return os.path.getsize(path), 1
    sizes = [os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(path) for f in files]
    return sum(sizes), len(sizes)


def written_attributes(stored: Stored) -> dict[str, Any]:
    """Classic NetCDF says of signed types that they are unsigned; what is written has the types. A missing value that the
    type cannot hold (NaN of integers) is no element's, and is left out."""
    out = dict(stored.attributes)
    if out.pop("_Unsigned", None) is not None and stored.dtype.startswith("u"):
        for name in ("_FillValue", "missing_value"):
            if name in out and np.ndim(out[name]) == 0 and float(out[name]) < 0:
                out[name] = int(out[name]) + (1 << int(stored.dtype[1:]))
    for name in ("_FillValue", "missing_value"):
        if name in out and not _holds(stored.dtype, out[name]):
            del out[name]
    return out


def _holds(dtype: str, value: Any) -> bool:
    """Whether the type has these numbers; of floats all have."""
    values = np.ravel(np.asarray(value))
    if values.dtype.kind not in "iuf":
        return False
    if dtype[:1] not in ("i", "u"):
        return True
    bits, signed = int(dtype[1:]), dtype[0] == "i"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return all(float(v).is_integer() and low <= v <= high for v in values.tolist())
