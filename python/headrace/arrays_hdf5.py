# SPDX-License-Identifier: Apache-2.0
"""HDF5 and NetCDF-4: h5py says where the chunks lie; the engine reads and opens them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .arrays_model import Stored, choose_group, grid_of, is_big, no_places, number_type, one_place, plain_attributes
from .errors import DataError, NotFound, Unsupported

_FILTERS = {1: "zlib", 2: "shuffle", 3: "fletcher32", 32000: "lzf", 32001: "blosc", 32004: "lz4-hdf5", 32015: "zstd"}
_OTHERS = {4: "szip", 5: "n-bit", 6: "scale-offset", 32008: "bitshuffle", 32013: "zfp", 32026: "Blosc2"}
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as e:
        raise Unsupported(
            f"HDF5 and NetCDF-4 are opened through h5py, which cannot be imported ({e}): pip install h5py"
        ) from None
    return h5py


def hdf5_arrays(path: str, group: str) -> list[Stored]:
    """The arrays of one group of the file."""
    with open(path, "rb") as f:
        head = f.read(4)
    if head[:3] == b"CDF":
        raise Unsupported(f"{path} is classic NetCDF, which is not yet read; nccopy -k nc4 makes NetCDF-4 of it")
    h5py = _h5py()
    try:
        with h5py.File(path, "r") as file:
            return _arrays(h5py, file, path, group)
    except FileNotFoundError:
        raise NotFound(f"there is no {path}") from None
    except OSError as e:
        raise DataError(f"{path}: h5py: {' '.join(str(e).split())}") from None


def _arrays(h5py: Any, file: Any, path: str, group: str) -> list[Stored]:
    groups: dict[str, list[Any]] = {}

    def note(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset):
            groups.setdefault(name.rpartition("/")[0], []).append(thing)

    file.visititems(note)
    for name in [n for g in groups.values() for n in g] if group else []:
        if name.name.strip("/") == group.strip("/"):  # one array of it
            return [_array(h5py, name, path)]
    out = [_array(h5py, d, path) for d in groups[choose_group(path, group, groups)] if not _is_bare_dimension(d)]
    return out


def _is_bare_dimension(dataset: Any) -> bool:
    return bytes(np.bytes_(dataset.attrs.get("NAME", b""))).startswith(_NO_VARIABLE)


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _dims(dataset: Any) -> tuple[str, ...]:
    out = []
    for i, dim in enumerate(dataset.dims):
        name = _short(dim[0].name or "") if len(dim) else dim.label
        if not name and dataset.ndim == 1 and dataset.attrs.get("CLASS", b"") in (b"DIMENSION_SCALE", "DIMENSION_SCALE"):
            name = _short(dataset.name)
        out.append(name or f"axis{i}")
    return tuple(out)


def _array(h5py: Any, dataset: Any, path: str) -> Stored:
    name = _short(dataset.name)
    if dataset.shape is None:
        return Stored(name, (), why="it is empty (a null data space)")
    dtype = dataset.dtype
    out = Stored(name, _dims(dataset), tuple(dataset.shape), dtype=number_type(dtype), files=[os.path.abspath(path)])
    if not out.dtype:
        if h5py.check_vlen_dtype(dtype) is not None or h5py.check_string_dtype(dtype) is not None:
            out.why = "it has values of variable length or texts, which are not yet read"
        else:
            out.why = f"its type is {dtype}; numbers are wanted"
        return out
    out.big_endian = is_big(dtype)
    if dataset.fillvalue is not None:
        out.fill = np.asarray(dataset.fillvalue, dtype).tobytes()
    out.why = _layout(h5py, dataset, out)
    if not out.why:
        out.unpack_by(dataset.attrs)
    return out


def _layout(h5py: Any, dataset: Any, out: Stored) -> str:
    """Where its chunks lie; or why they cannot be read."""
    plist = dataset.id.get_create_plist()
    layout = plist.get_layout()
    if layout == h5py.h5d.VIRTUAL:
        return "it is a virtual data set, which is not yet read"
    if layout == h5py.h5d.COMPACT:
        return "it lies within the metadata (compact layout), which is not yet read; h5repack -l CONTI makes it contiguous"
    if layout == h5py.h5d.CONTIGUOUS:
        if plist.get_external_count():
            return "it lies in an external file, which is not read"
        out.chunk = tuple(max(1, s) for s in out.shape)
        count = int(all(out.shape))
        offset = dataset.id.get_offset()
        out.places = no_places(count) if offset is None or not count else one_place(offset, dataset.id.get_storage_size())
        return ""
    for i in range(plist.get_nfilters()):
        code, _, values, label = plist.get_filter(i)
        if code not in _FILTERS:
            words = _OTHERS.get(code) or label.decode(errors="replace") or "unknown"
            return f"its chunks went through filter {code} ({words}), which is not read; known are {', '.join(_FILTERS.values())}"
        item = (values[0] if values else dataset.dtype.itemsize) if code == 2 else 0
        out.filters.append((_FILTERS[code], int(item)))
    out.chunk = tuple(dataset.chunks)
    _chunk_table(dataset, out)
    return ""


def _chunk_table(dataset: Any, out: Stored) -> None:
    grid = grid_of(out.name, out.shape, out.chunk)
    places = no_places(int(np.prod(grid, dtype=np.int64)))
    steps = [int(np.prod(grid[a + 1 :], dtype=np.int64)) for a in range(len(grid))]

    def note(chunk: Any) -> None:
        at = [o // c for o, c in zip(chunk.chunk_offset, out.chunk)]
        if all(i < n for i, n in zip(at, grid)):  # a shrunk data set keeps none outside, but who knows
            places[sum(i * s for i, s in zip(at, steps))] = (0, chunk.filter_mask, chunk.byte_offset, chunk.size)

    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(note)
    else:
        for i in range(dataset.id.get_num_chunks()):
            note(dataset.id.get_chunk_info(i))
    out.places = places


def hdf5_attributes(path: str, group: str) -> dict[str, Any]:
    """Of the group (or the file) itself."""
    with _h5py().File(path, "r") as file:
        where = file.get(group or "/")
        return plain_attributes(where.attrs) if isinstance(where, _h5py().Group) else {}
