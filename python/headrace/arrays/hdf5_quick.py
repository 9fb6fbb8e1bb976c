# SPDX-License-Identifier: Apache-2.0
"""What is asked of every data set of an HDF5 file, in few calls of libhdf5: a file may have thousands of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .model import PACKING, is_plain_name

#: How netCDF-4 numbers the axes of a variable; netCDF itself finds their names by it.
_COORDINATES = b"_Netcdf4Coordinates"
#: Classes of types, as HDF5 numbers them.
_INTEGER, _FLOAT, _STRING = 0, 1, 3


class QuickDataset:
    """An h5py.Dataset that is made when something is asked of it beyond its identifier."""

    def __init__(self, h5py: Any, identifier: Any) -> None:
        self.id = identifier
        self._h5py = h5py

    @functools.cached_property
    def whole(self) -> Any:
        return self._h5py.Dataset(self.id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def __getitem__(self, index: Any) -> Any:
        return self.whole[index]


def attribute_names(h5py: Any, identifier: Any) -> list[bytes]:
    names: list[bytes] = []
    h5py.h5a.iterate(identifier, lambda name, *_: names.append(name))
    return names


def read_attributes(h5py: Any, dataset: Any, names: list[bytes]) -> dict[str, Any]:
    """Each read once, without those that say how the file is built, and those of a type that h5py has no words for."""
    out: dict[str, Any] = {}
    for raw in names:
        name = raw.decode("utf-8", "surrogateescape")
        if name not in PACKING and not is_plain_name(name):
            continue
        try:
            out[name] = _value(h5py.h5a.open(dataset.id, raw), dataset, name)
        except (OSError, TypeError, ValueError, KeyError):
            if name in PACKING:  # numbers would be wrong without it
                raise
    return out


def _value(attribute: Any, dataset: Any, name: str) -> Any:
    """As h5py gives it; numbers and texts of fixed length in fewer steps."""
    tid, shape = attribute.get_type(), attribute.shape
    kind, size = tid.get_class(), tid.get_size()
    if shape is not None and kind == _STRING and not tid.is_variable_str() and size:
        value = np.zeros(shape, f"S{size}")
    elif shape is not None and kind in (_INTEGER, _FLOAT):
        value = np.zeros(shape, tid.dtype)
    else:
        return dataset.attrs[name]
    attribute.read(value, tid)  # bytes as they lie
    return value[()] if shape == () else value


class DimensionNames:
    """Names of axes by the scales that are attached to them, each looked up once: libhdf5 finds the name of a scale by
    searching the file, and the scales of an axis by reading a list of references."""

    def __init__(self, h5py: Any) -> None:
        self._h5py = h5py
        self._by_address: dict[int, str] = {}
        self._by_number: dict[int, str] = {}

    def of(self, identifier: Any, name: str, rank: int, attributes: list[bytes]) -> tuple[str, ...]:
        """``attributes``: the names of those that it has."""
        h5ds = self._h5py.h5ds
        numbers = self._numbers(identifier, rank) if rank and _COORDINATES in attributes else []
        if numbers and all(n in self._by_number for n in numbers):
            return tuple(self._by_number[n] for n in numbers)
        is_scale = h5ds.is_scale(identifier)
        has_list = not is_scale and b"DIMENSION_LIST" in attributes
        out = []
        for i in range(rank):
            dim = None
            if is_scale:
                dim = name if rank == 1 else ""
            elif has_list and h5ds.get_num_scales(identifier, i) > 0:
                dim = h5ds.iterate(identifier, i, self._scale_name)
                if dim and numbers:
                    self._by_number[numbers[i]] = dim
            out.append(dim or h5ds.get_label(identifier, i).decode(errors="replace") or f"axis{i}")
        return tuple(out)

    def _numbers(self, identifier: Any, rank: int) -> list[int]:
        attribute = self._h5py.h5a.open(identifier, _COORDINATES)
        if attribute.get_storage_size() != 4 * rank:
            return []
        numbers = np.empty(rank, np.int32)
        attribute.read(numbers, self._h5py.h5t.NATIVE_INT32)
        return numbers.tolist()

    def _scale_name(self, scale: Any) -> str:
        place = self._h5py.h5o.get_info(scale).addr
        if place not in self._by_address:
            found = self._h5py.h5i.get_name(scale)
            self._by_address[place] = found.decode("utf-8", "surrogateescape").rpartition("/")[2] if found else ""
        return self._by_address[place]


def fill_of_numbers(plist: Any, dtype: str, big_endian: bool) -> bytes:
    """The fill value of integers or floats, as stored; b"" where it cannot be told."""
    value = np.zeros((), f"{'>' if big_endian else '<'}{dtype[0]}{int(dtype[1:]) // 8}")
    try:
        plist.get_fill_value(value)
    except (RuntimeError, TypeError, ValueError):
        return b""
    return value.tobytes()
