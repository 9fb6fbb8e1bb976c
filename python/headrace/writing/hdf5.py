# SPDX-License-Identifier: Apache-2.0
"""Packed arrays as one HDF5 file: the engine packs the chunks, h5py puts them where they belong."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..arrays.hdf5 import _h5py
from ..errors import StorageError, Unsupported, UsageError
from .journal import Written
from .targets import FileTarget, Spec, check_name, numpy_type

_SUFFIXES = (".h5", ".hdf5", ".he5", ".nc", ".nc4")
_BLOSC, _ZSTD = 32001, 32015
_BLOSC_CODES = {"blosc-lz4": 1, "blosc-zstd": 5}
#: Values of variable length that one chunk holds: 16 bytes each, the values lie elsewhere.
VALUES = 1024


class Hdf5Target(FileTarget):
    """gzip and shuffle unless asked: every HDF5 reads them. Blosc and zstd want the plugins of ``pip install hdf5plugin``."""

    format, codec = "hdf5", "gzip"

    def __init__(self, path: str, head: str, samples: int, threads: int) -> None:
        if not path.lower().endswith(_SUFFIXES):
            raise UsageError(f"{path}: an HDF5 file is known by its name; call it {path}.h5")
        super().__init__(path, head, samples, threads)
        self.file: Any = None
        self.h5py = _h5py()
        if not self.complete:
            self.file = self.h5py.File(self.temporary, "w")

    def add(self, spec: Spec) -> None:
        super().add(spec)
        if self.complete:
            return
        h5py, fill = self.h5py, np.frombuffer(spec.fill, spec.numpy)[0] if spec.fill else None
        if not spec.shape or not all(spec.shape):
            self.file.create_dataset(spec.name, spec.shape, spec.numpy, fillvalue=fill)
            return
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(spec.chunk)
        plist.set_obj_track_times(False)
        if fill is not None:
            plist.set_fill_value(np.array(fill, spec.numpy))
        self._filters(plist, spec)
        space = h5py.h5s.create_simple(spec.shape)
        try:
            h5py.h5d.create(self.file.id, spec.name.encode(), h5py.h5t.py_create(spec.numpy), space, plist)
        except (ValueError, OSError) as e:
            # netCDF4 brings plugins for a libhdf5 of its own, which h5py's finds and cannot use.
            hint = "; import hdf5plugin before netCDF4" if spec.codec not in ("gzip", "none") else ""
            raise Unsupported(f"h5py cannot make '{spec.name}' with {spec.codec}: {' '.join(str(e).split())}{hint}") from None

    def _filters(self, plist: Any, spec: Spec) -> None:
        size = math.prod(spec.chunk) * spec.numpy.itemsize
        if size >= 1 << 32:
            raise UsageError(f"'{spec.name}': a chunk of HDF5 has less than 4 GiB, not {size} bytes")
        if spec.codec in ("gzip", "zstd"):
            plist.set_shuffle()
        # Optional: h5py need not have the filter, because it applies none; chunks come as they are stored.
        optional = self.h5py.h5z.FLAG_OPTIONAL
        if spec.codec == "gzip":
            plist.set_deflate(min(9, spec.level))
        elif spec.codec == "zstd":
            plist.set_filter(_ZSTD, optional, (spec.level,))
        elif spec.codec in _BLOSC_CODES:
            code = _BLOSC_CODES[spec.codec]
            plist.set_filter(_BLOSC, optional, (2, 2, spec.numpy.itemsize, size, spec.level, 1, code))

    def write(self, spec: Spec, begin: Sequence[int], size: Sequence[int], data: Any, shape: Sequence[int] | None = None) -> None:
        dataset = self.file[spec.name]
        if not spec.shape:
            dataset[()] = np.frombuffer(data, spec.numpy)[0]
            return
        compressor = {"gzip": "zlib"}.get(spec.codec, spec.codec)
        described = spec.described(compressor, spec.codec in ("gzip", "zstd"))
        for at, chunk in _core.encode_slab(described, list(begin), list(size), data, self.threads):
            dataset.id.write_direct_chunk(tuple(a * c for a, c in zip(at, spec.chunk)), chunk)
            self.bytes += len(chunk)

    def add_values(self, name: str, count: int, text: bool, dtype: str) -> None:
        """Values of variable length: ``vlen`` uint8 (or other numbers), or strings."""
        check_name(name)
        if self.complete:
            return
        stored = self.h5py.string_dtype() if text else self.h5py.vlen_dtype(numpy_type(dtype))
        self.file.create_dataset(name, (count,), stored, chunks=(min(VALUES, count),))

    def write_values(self, name: str, begin: int, data: Any, lengths: Any, text: bool, dtype: str) -> None:
        dataset, item = self.file[name], numpy_type(dtype).itemsize
        ends = np.cumsum(lengths) // item
        values = np.empty(len(lengths), dataset.dtype)
        if text:
            whole = data.tobytes()
            if b"\0" in whole:
                raise UsageError(
                    f"field '{name}': a text with a NUL in it, which strings of HDF5 end with; pack with --drop {name}"
                )
            values[:] = [whole[e - n : e] for e, n in zip(ends.tolist(), lengths.tolist())]
        else:
            for i, part in enumerate(np.split(np.frombuffer(data, numpy_type(dtype)), ends[:-1])):
                values[i] = part
        # Not by dataset[begin:end] = values: values that happen to be of one length would be taken for two axes.
        h5s, place = self.h5py.h5s, dataset.id.get_space()
        place.select_hyperslab((begin,), (len(lengths),))
        dataset.id.write(h5s.create_simple((len(lengths),)), place, values)
        self.bytes += len(data)

    def finish(self, attributes: Mapping[str, Any]) -> list[Written]:
        for name, value in attributes.items():
            _set(self.file, name, value)
        for spec in self.specs.values():
            for name, value in spec.attributes.items():
                _set(self.file[spec.name], name, np.asarray(value, spec.numpy) if name == "_FillValue" else value)
        self._dimensions()
        try:
            self.file.close()
        except (OSError, RuntimeError) as e:  # a full disk is known when h5py writes what it holds back
            raise StorageError(f"{self.path}: h5py: {' '.join(str(e).split())}") from None
        self.file = None
        return self._appear()

    def _dimensions(self) -> None:
        """As NetCDF-4 has them: coordinates are scales; an axis that has none gets one that holds nothing."""
        lengths: dict[str, int] = {}
        for spec in self.specs.values():
            for dim, n in zip(spec.dims, spec.shape):
                if lengths.setdefault(dim, n) != n:  # not one dimension: names alone
                    lengths[dim] = -1
        own = {s.name for s in self.specs.values() if len(s.shape) == 1 and s.dims == (s.name,)}
        for dim, n in lengths.items():
            if n < 0 or (dim in self.file and dim not in own):
                continue
            if dim not in own:
                self.file.create_dataset(dim, (n,), ">f4")
            bare = f"This is a netCDF dimension but not a netCDF variable. {n:>10}"
            self.file[dim].make_scale(dim if dim in own else bare)
        for spec in self.specs.values():
            for axis, dim in enumerate(spec.dims):
                scale = self.file.get(dim)
                if scale is not None and scale.is_scale and lengths[dim] >= 0:
                    if spec.name != dim:
                        self.file[spec.name].dims[axis].attach_scale(scale)
                else:
                    self.file[spec.name].dims[axis].label = dim

    def close(self) -> None:
        if self.file is not None:
            with contextlib.suppress(OSError, RuntimeError):  # it is thrown away
                self.file.close()
            self.file = None
        super().close()


def _set(where: Any, name: str, value: Any) -> None:
    # What HDF5 has no type for, or is larger than 64 KiB, is left out: no element depends on it.
    with contextlib.suppress(TypeError, ValueError, OSError):
        where.attrs[name] = value
