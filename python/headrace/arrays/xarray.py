# SPDX-License-Identifier: Apache-2.0
"""xarray Datasets whose variables lie in files: which file, which array of it, what of each axis.

xarray keeps a variable that nobody has loaded as a chain of wrappers around the file's array, and dask keeps such chains as
the leaves of a graph. A chain is followed link by link; one that is not known here may have changed values, so it is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import Unsupported, UsageError
from .alike import check_same_units
from .calendars import times_of
from .cube import Cube
from .files import kind_of, named_arrays
from .model import Stored, listed, number_type
from .timeline import Timeline

#: Links that change no value.
_THROUGH = (
    "MemoryCachedArray",
    "CopyOnWriteArray",
    "ImplicitToExplicitIndexingAdapter",
    "NativeEndiannessArray",
    "BoolTypeArray",
)
_REMEDY = "open the files by their paths, or give hr.open the Dataset as xr.open_dataset or xr.open_zarr returned it (with cache=False it stays so)"


class _Refused(Exception):
    """Why a variable cannot be read from its file."""


@dataclass(frozen=True)
class Backed:
    """One array of one file, and what xarray does to it."""

    path: str
    group: str
    name: str
    picks: tuple[Any, ...] = ()  # of each axis: None for all, else the indexes
    scale: float | None = None
    offset: float | None = None
    missing: float | None = None
    also_missing: tuple[float, ...] = ()
    astype: str = ""  # what xarray takes the stored numbers for


@dataclass
class Traced:
    """What of an xarray Dataset headrace opens; plain data, can be pickled."""

    variables: dict[str, tuple[tuple[str, ...], int, list[Backed]]] = field(
        default_factory=dict
    )  # dims, axis of the files, files
    refused: dict[str, str] = field(default_factory=dict)
    coordinates: dict[str, Any] = field(default_factory=dict)
    coordinate_attributes: dict[str, Any] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)


def is_xarray(source: Any) -> bool:
    module = sys.modules.get("xarray")  # whoever has a Dataset has imported it
    return module is not None and isinstance(source, (module.Dataset, module.DataArray))


def trace(source: Any) -> Traced:
    """Follows every data variable to its file."""
    if type(source).__name__ == "DataArray":
        source = source.to_dataset(name=source.name or "data")
    out = Traced()
    for name, variable in source.data_vars.items():
        try:
            axis, files = _files(variable.variable._data)
            _note_cuts(out, variable.dims, files)
        except _Refused as e:
            out.refused[str(name)] = str(e)
            continue
        out.variables[str(name)] = (tuple(map(str, variable.dims)), axis, files)
    for name in source.dims:
        if name in source.coords and source[name].dtype.kind in "iufM":
            out.coordinates[str(name)] = np.asarray(source[name].values)
            out.coordinate_attributes[str(name)] = {k: v for k, v in source[name].attrs.items() if k in ("units", "calendar")}
    if not out.variables:
        reasons = "; ".join(f"'{n}': {why}" for n, why in out.refused.items()) or "it has no data variable"
        raise Unsupported(f"no variable of the xarray Dataset lies in a file as it is: {reasons}; {_REMEDY}")
    return out


def _note_cuts(out: Traced, dims: Sequence[Any], files: list[Backed]) -> None:
    """Axes that isel or sel made shorter, the same for all variables."""
    if len(files[0].picks) != len(dims):
        raise _Refused("it has other axes than the array in the file")
    if len(files) > 1 and any(p is not None for f in files for p in f.picks):
        raise _Refused("its files were cut one by one before they were put together")
    for dim, pick in zip(dims, files[0].picks):
        known = next((v for v in out.variables.values() if str(dim) in v[0]), None)
        if pick is None and str(dim) not in out.cuts:
            continue
        if known is not None and out.cuts.get(str(dim)) != pick:
            raise _Refused(f"it was cut along '{dim}' in another way than the variables before it")
        if not pick:
            raise _Refused(f"nothing of it is left along '{dim}'")
        out.cuts[str(dim)] = pick


def _files(data: Any) -> tuple[int, list[Backed]]:
    """The axis along which the files follow each other, and the files."""
    if not type(data).__module__.startswith("dask."):
        return 0, [_follow(data)]
    layers = data.dask.layers
    if not data.name.startswith("concatenate-"):
        return 0, [_leaf(layers, data.name)]
    blocks: dict[str, list[tuple[int, ...]]] = {}
    for key, value in layers[data.name].items():
        target = getattr(value, "target", value)
        if not isinstance(target, tuple) or not isinstance(target[0], str):
            raise _Refused("dask computes it")
        blocks.setdefault(target[0], []).append(key[1:])
    if len(blocks) == 1:
        return 0, [_leaf(layers, next(iter(blocks)))]
    # Files stand side by side along one axis: there, and only there, each has blocks of its own.
    first = [np.array(at) for at in blocks.values()]
    axes = [a for a in range(len(data.shape)) if len({tuple(sorted(set(f[:, a]))) for f in first}) == len(first)]
    if len(axes) != 1:
        raise _Refused("its files follow each other along more than one axis")
    names = sorted(blocks, key=lambda name: min(at[axes[0]] for at in blocks[name]))
    return axes[0], [_leaf(layers, name) for name in names]


def _leaf(layers: Any, name: str) -> Backed:
    original = layers.get(f"original-{name}") if name.startswith("open_dataset-") else None
    if name.startswith(("broadcast_to-", "where-")):
        raise _Refused(
            "xarray makes it of all files; open_mfdataset(..., data_vars='minimal', coords='minimal', compat='override') takes the first's"
        )
    if original is None:
        remedy = "; of a Dataset opened with chunks=None, isel and sel are followed" if name.startswith("getitem-") else ""
        raise _Refused(f"dask computes it ({name.rpartition('-')[0]}){remedy}")
    value = dict(original)[f"original-{name}"]
    return _follow(getattr(value, "value", value))


def _follow(data: Any) -> Backed:
    out = Backed("", "", "")
    while True:
        kind = type(data).__name__
        if kind == "LazilyIndexedArray":
            out = _indexed(data, out)
        elif kind == "_ElementwiseFunctionArray":
            out = _decoded(data.func, out)
        elif kind == "ZarrArrayWrapper":
            return _zarr_place(data, out)
        elif hasattr(data, "datastore") and hasattr(data, "variable_name"):
            return _file_place(data, out)
        elif kind not in _THROUGH:
            if isinstance(data, np.ndarray) or kind in ("NumpyIndexingAdapter", "PandasIndexingAdapter"):
                raise _Refused("its values are in memory, computed or loaded")
            raise _Refused(f"it went through xarray's {kind}, which headrace does not follow")
        data = data.array


def _indexed(data: Any, out: Backed) -> Backed:
    if out.picks:
        raise _Refused("it was indexed more than once")
    picks: list[Any] = []
    for key, extent in zip(data.key.tuple, data.array.shape):
        if isinstance(key, slice):
            indexes = range(*key.indices(extent))
            picks.append(None if indexes == range(extent) else list(indexes))
        elif np.ndim(key) == 1:
            picks.append(np.arange(extent)[np.asarray(key)].tolist())
        else:
            raise _Refused("an axis was taken out of it by one index; isel(level=[3]) keeps the axis")
    return replace(out, picks=tuple(picks))


def _decoded(function: Any, out: Backed) -> Backed:
    """What xarray does to stored numbers: masks and scales."""
    name = getattr(getattr(function, "func", None), "__name__", "")
    options = getattr(function, "keywords", {})
    if name == "_apply_mask":
        given = list(options["encoded_fill_values"])
        if any(np.asarray(v).dtype.kind not in "iuf" for v in [*given, options["decoded_fill_value"]]):
            raise _Refused("its missing values are texts")
        values = sorted({float(v) for v in given if not np.isnan(v)})
        if not np.isnan(options["decoded_fill_value"]):
            raise _Refused(f"xarray puts {options['decoded_fill_value']!r} where values are missing")
        return replace(out, missing=values[0], also_missing=tuple(values[1:])) if values else out
    if name == "_scale_offset_decoding":
        numbers = {k: None if options[k] is None else float(np.ravel(options[k])[0]) for k in ("scale_factor", "add_offset")}
        return replace(out, scale=numbers["scale_factor"], offset=numbers["add_offset"])
    if name == "asarray" and "dtype" in options:
        return replace(out, astype=number_type(np.dtype(options["dtype"])))
    raise _Refused(f"xarray decodes it ({name or function!r}): dates and texts are no numbers in the file")


def _zarr_place(data: Any, out: Backed) -> Backed:
    store = data._array.store
    root = getattr(store, "root", None) or getattr(store, "path", None)
    if root is None or "://" in str(root) or not os.path.isdir(root):
        raise _Refused(f"it lies in a {type(store).__name__}; local folders are read")
    return replace(out, path=os.path.abspath(root), group=data._array.path, name=os.path.basename(data._array.path) or "data")


def _file_place(data: Any, out: Backed) -> Backed:
    store = data.datastore
    path = getattr(store, "_filename", None)
    if path is None:
        path = getattr(getattr(store, "_manager", None), "_args", [None])[0]
    if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
        raise _Refused("it does not lie in a local file")
    return replace(out, path=os.path.abspath(path), group=getattr(store, "_group", None) or "", name=data.variable_name)


class XarrayCube(Cube):
    """The variables of an xarray Dataset, with its names, dimensions and coordinates."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.cuts = traced.cuts
        self._read: dict[tuple[str, str], Mapping[str, Stored]] = {}
        self._stored = {name: [self._array(name, dims, f) for f in files] for name, (dims, _, files) in traced.variables.items()}
        first = {name: stored[0] for name, stored in self._stored.items()}
        self.files = [first | {n: Stored(n, (), why=f"{why}; {_REMEDY}") for n, why in traced.refused.items()}]
        self.paths = [(f.path, f.group) for _, _, files in traced.variables.values() for f in files[:1]]
        self.where = f"the xarray Dataset of {self.paths[0][0]}"
        self.kind = kind_of(self.paths[0][0]) or "hdf5"

    def _array(self, name: str, dims: tuple[str, ...], backed: Backed) -> Stored:
        place = (backed.path, backed.group)
        if place not in self._read:
            self._read[place] = named_arrays(*place)
        arrays = self._read[place]
        stored = arrays.get(backed.name) or (next(iter(arrays.values())) if len(arrays) == 1 else None)
        if stored is None:
            raise UsageError(f"{backed.path} has no variable '{backed.name}', which xarray finds there; it has {listed(arrays)}")
        out = copy(stored)  # and no replace(), which would look for the chunks of all variables
        out.name, out.dims = name, dims
        if out.why:
            return out
        values = (backed.scale, backed.offset, backed.missing)
        out.packed = any(v is not None for v in values)
        out.scale = 1.0 if backed.scale is None else backed.scale
        out.offset = -0.0 if backed.offset is None else backed.offset
        out.missing, out.also_missing = backed.missing, list(backed.also_missing)
        if len(out.shape) != len(dims) or backed.astype not in ("", out.dtype) or (out.packed and out.dtype == "f16"):
            out.why = "xarray sees another array than the one in the file"
        return out

    def segments(self, name: str, along: str | None) -> list[Stored]:
        dims, axis, files = self.traced.variables[name]
        if len(files) > 1 and along != dims[axis]:
            raise UsageError(f"the files of '{name}' follow each other along '{dims[axis]}'; samples must run along it")
        check_same_units(name, [(f.path, s) for f, s in zip(files, self._stored[name])])
        return self._stored[name]

    def timeline(self, along: str) -> Timeline | None:
        values = self.traced.coordinates.get(along)
        if values is None:
            return None
        if values.dtype.kind == "M":
            return Timeline(along, values.astype("M8[ns]").astype(np.int64), times_of({"units": "ns since 1970-01-01"}))
        attributes = self.traced.coordinate_attributes.get(along, {})
        times = times_of(attributes)
        return Timeline(along, values, times, times is not None or "units" not in attributes)

    def coordinate(self, dim: str, extent: int) -> Any:
        values = self.traced.coordinates.get(dim)
        return values if values is not None and values.shape == (extent,) and values.dtype.kind != "M" else None

    def open_all(self) -> None:
        for name, why in self.traced.refused.items():
            raise Unsupported(f"'{name}' of {self.where} cannot be read: {why}; {_REMEDY}, or leave it out: ds[[...]]")
