# SPDX-License-Identifier: Apache-2.0
"""Files of arrays as data sets: which variables there are, and what a sample takes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from .arrays_model import Stored, is_npy_folder, listed, npy_arrays, npy_folder
from .arrays_netcdf import netcdf_arrays, sniff
from .errors import Unsupported, UsageError
from .fields import ArrayField, Field

_HDF5 = (".h5", ".hdf5", ".he5", ".nc", ".nc3", ".nc4", ".cdf")


def _parts(url: str) -> tuple[str, str]:
    """``path#group`` as two, unless there is a file of that very name."""
    if "#" in url and not os.path.exists(url):
        path, _, group = url.rpartition("#")
        return path, group
    return url, ""


def _kind(url: str) -> str:
    path = _parts(url)[0].rstrip("/")
    lower = path.lower()
    if lower.endswith(_HDF5):
        return sniff(path) or "hdf5"
    if lower.endswith(".npy"):
        return "npy"
    if lower.endswith(".zarr"):
        return "zarr"
    if os.path.isdir(path):
        from .arrays_zarr import is_zarr

        return "zarr" if is_zarr(path) else "npy" if is_npy_folder(path) else ""
    return sniff(path) if "." not in os.path.basename(path) else ""


def are_arrays(urls: Sequence[str]) -> bool:
    kinds = [_kind(url) for url in urls]
    if any(kinds) and not all(kinds):
        raise UsageError(f"{urls[kinds.index('')]!r} is no file of arrays, and others of the list are")
    return any(kinds)


def _expanded(urls: Sequence[str]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for url in urls:
        path, group = _parts(url)
        path = path.removeprefix("file://")
        paths = _core.expand_urls([path]) if any(c in path for c in "*?[{") and not os.path.exists(path) else [path]
        out += [(p.rstrip("/") or p, group) for p in paths]
    return out


def _read(path: str, group: str) -> list[Stored]:
    kind = _kind(path)
    if not os.path.exists(path):
        from .errors import NotFound

        raise NotFound(f"there is no {path}")
    if os.path.exists(os.path.join(path, "headrace.unfinished")):
        raise UsageError(f"{path} is an unfinished pack: the same `headrace pack` again goes on with it")
    if kind == "hdf5":
        from .arrays_hdf5 import hdf5_arrays

        return hdf5_arrays(path, group)
    if kind == "netcdf":
        return netcdf_arrays(path, group)
    if kind == "npy":
        return npy_folder(path) if os.path.isdir(path) else npy_arrays(path)
    from .arrays_zarr import zarr_arrays

    return zarr_arrays(path, group)


class Cube:
    """The variables of one or several files that follow each other along one axis."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.paths = _expanded(urls)
        self.kind = _kind(self.paths[0][0])
        self.files = [{a.name: a for a in _read(path, group)} for path, group in self.paths]
        self.where = self.paths[0][0]

    def variable(self, name: str) -> Stored:
        first = self.files[0]
        if not isinstance(name, str) or name not in first:
            if len(first) == 1 and name in ("", "data"):
                name = next(iter(first))
            else:
                raise UsageError(f"{self.where} has no variable {name!r}; it has {listed(first)}")
        stored = first[name]
        if stored.why:
            raise Unsupported(f"{self.where}: '{name}' cannot be read: {stored.why}")
        return stored

    def segments(self, name: str) -> list[Stored]:
        out = []
        for (path, _), arrays in zip(self.paths, self.files):
            if name not in arrays:
                raise UsageError(f"{path} has no variable {name!r}, which {self.where} has; it has {listed(arrays)}")
            if arrays[name].why:
                raise Unsupported(f"{path}: '{name}' cannot be read: {arrays[name].why}")
            out.append(arrays[name])
        return out

    def lead(self) -> Stored:
        """The variable whose first axis samples run along unless told: the one of most axes."""
        good = [a for a in self.files[0].values() if not a.why and len(a.shape) > a.inner]
        if not good:
            reasons = "; ".join(f"'{a.name}': {a.why or 'it is one number'}" for a in self.files[0].values())
            raise Unsupported(f"{self.where} holds no array that can be read: {reasons}")
        return max(good, key=lambda a: len(a.shape) - a.inner)


class Description:
    """What ``_core.open_arrays`` takes, gathered piece by piece."""

    def __init__(self, cube: Cube, along: str) -> None:
        self.cube, self.along = cube, along
        self.files: list[str] = []
        self.arrays: list[dict[str, Any]] = []
        self.variables: list[dict[str, Any]] = []
        self.fields: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}
        self.readers: dict[str, Any] = {}
        self.slow: list[str] = []

    def variable(self, name: str) -> int:
        stored = self.cube.variable(name)
        if stored.name not in self._numbers:
            moves = self.along in stored.dims
            numbers = []
            for segment in self.cube.segments(stored.name) if moves else [stored]:
                numbers.append(len(self.arrays))
                self.arrays.append(segment.described(len(self.files)))
                self.files += segment.files
                if segment.reader is not None:
                    self.readers[segment.files[0]] = segment.reader
                    self.slow.append(f"{segment.files[0]} is read through h5py, one thread at a time and slowly: {segment.slow}")
            self._numbers[stored.name] = len(self.variables)
            axis = stored.dims.index(self.along) if moves else None
            self.variables.append({"name": stored.name, "dims": list(stored.dims), "segments": numbers, "along": axis})
        return self._numbers[stored.name]

    def length(self) -> int:
        """Along the axis, over all files; equal for all variables that run along it."""
        lengths = {}
        for v in self.variables:
            if v["along"] is not None:
                lengths[v["name"]] = sum(self.arrays[n]["shape"][v["along"]] for n in v["segments"])
        if len(set(lengths.values())) > 1:
            a, b = sorted(lengths.items(), key=lambda item: item[1])[:: len(lengths) - 1]
            raise UsageError(
                f"'{a[0]}' has {a[1]} along '{self.along}' and '{b[0]}' has {b[1]}: variables of a sample must agree"
            )
        if not lengths:
            raise UsageError(f"no variable that is asked for has the axis '{self.along}' that samples run along")
        return next(iter(lengths.values()))

    def open(self, reach: int, stride: int, tiled: bool, notices: list[str]) -> _core.Source:
        total = self.length()
        if reach > total:
            raise UsageError(f"a sample takes {reach} steps (window and horizon) and '{self.along}' has {total}")
        return _core.open_arrays(
            {
                "files": self.files,
                "arrays": self.arrays,
                "variables": self.variables,
                "fields": self.fields,
                "starts": [],
                "end": total - reach + 1,
                "stride": stride,
                "tiled": tiled,
                "format": self.cube.kind,
                "notices": notices + self.slow,
                "readers": self.readers or None,
            }
        )


def values_of(cube: Cube, stored: Stored) -> Any:
    """All elements of a small array: coordinates."""
    d = Description(cube, along="\0")
    number = d.variable(stored.name)
    # One sample that takes all of it: an axis of its own that nothing runs along.
    one = Stored("\0", ("\0",), (1,), (1,), "u8", places=np.zeros((1, 4), np.uint64))
    d.arrays.append(one.described(0))
    d.variables.append({"name": "\0", "dims": ["\0"], "segments": [len(d.arrays) - 1], "along": 0})
    d.fields = [
        {"name": "v", "variables": [number], "from": 0, "count": 0, "axes": [([], 0, False)] * len(stored.shape)},
    ]
    source = d.open(1, 1, False, [])
    return np.asarray(_core.Dataset.make(source, []).at(0, ["array"])[0])


def _indexes(cube: Cube, dim: str, wanted: Any, extent: int) -> list[int]:
    """The indexes of an axis that ``sel`` names by the values of its coordinate, or by number."""
    coordinate = cube.files[0].get(dim)
    known = None
    numbers = coordinate is not None and coordinate.kind == "array" and coordinate.values is None
    if coordinate is not None and numbers and not coordinate.why and coordinate.shape == (extent,):
        known = values_of(cube, coordinate)
    if isinstance(wanted, slice):
        if wanted.step is not None:
            raise UsageError(f"sel: a slice of '{dim}' with a step; write the values as a list")
        if known is None:
            return list(range(extent))[wanted]
        low = -np.inf if wanted.start is None else wanted.start
        high = np.inf if wanted.stop is None else wanted.stop
        out = np.flatnonzero((known >= min(low, high)) & (known <= max(low, high))).tolist()
        if not out:
            raise UsageError(f"sel: no value of '{dim}' lies between {low} and {high}")
        return out
    values = np.ravel(np.asarray(wanted))
    if values.size == 0 or values.dtype.kind not in "iuf":
        raise UsageError(f"sel: '{dim}' wants numbers, not {wanted!r}")
    out = []
    for value in values.tolist():
        if known is None:
            if value != int(value) or not 0 <= value < extent:
                raise UsageError(f"sel: there is no index {value} on '{dim}', which has {extent} and no coordinate")
            out.append(int(value))
            continue
        near = np.flatnonzero(np.isclose(known, value, rtol=1e-6, atol=0))
        if near.size != 1:
            shown = ", ".join(map(str, known[:20].tolist()))
            raise UsageError(f"sel: '{dim}' has {'no' if near.size == 0 else 'several'} value {value}; it has {shown}")
        out.append(int(near[0]))
    return out


def _axes(cube: Cube, stored: Stored, along: str, options: Mapping[str, Any], name: str) -> list[tuple[list[int], int, bool]]:
    patch = options.get("patch") or ()
    periodic = options.get("periodic") or ()
    sel = options.get("sel") or {}
    for dim in [*sel, *periodic]:
        if dim not in stored.dims:
            raise UsageError(f"field '{name}': '{stored.name}' has no axis '{dim}'; it has {listed(stored.dims)}")
        if dim == along:
            raise UsageError(f"field '{name}': samples run along '{dim}'; window and horizon say what they take of it")
    free = [i for i, dim in enumerate(stored.dims) if dim != along and dim not in sel]
    if len(patch) > len(free):
        raise UsageError(
            f"field '{name}': a patch of {len(patch)} axes, and '{stored.name}' has {len(free)} beside '{along}' and sel"
        )
    size = dict(zip(free[len(free) - len(patch) :], patch))
    out: list[tuple[list[int], int, bool]] = []
    for i, dim in enumerate(stored.dims):
        indexes = _indexes(cube, dim, sel[dim], stored.shape[i]) if dim in sel else []
        out.append((indexes, size.get(i, 0), dim in periodic))
    return out


def _shared(fields: Mapping[str, Field], name: str, default: Any) -> Any:
    """An option that is one for all fields."""
    said = {k: f.windows[name] for k, f in fields.items() if isinstance(f, ArrayField) and name in f.windows}
    if len(set(said.values())) > 1:
        a, b = list(said)[:2]
        raise UsageError(f"{name} must be the same for all fields; '{a}' says {said[a]!r} and '{b}' says {said[b]!r}")
    return next(iter(said.values())) if said else default


def open_arrays(urls: Sequence[str], fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """The data set and the fields as they are to be asked of it."""
    cube = Cube(urls)
    if fields is None:
        return _open_all(cube), None
    if not isinstance(fields, Mapping) or not fields:
        raise UsageError("fields is a dict: {'x': hr.array('t2m', window=4), ...}")
    for name, f in fields.items():
        if not isinstance(f, Field):
            raise UsageError(f"field '{name}' is {f!r}; write hr.array('t2m', window=4), hr.image('images'), …")
    wanted = {n: f for n, f in fields.items() if f.what != "key"}
    if not wanted:
        raise UsageError("no field but the key is asked for")
    along = _shared(wanted, "along", None) or _first_axis(cube, wanted)
    d = Description(cube, along)
    given: dict[str, Field] = {}
    reach = 1
    for name, f in fields.items():
        if f.what == "key":
            given[name] = f
            continue
        options = f.windows if isinstance(f, ArrayField) else {}
        numbers = [d.variable(v) for v in (f.variables if isinstance(f, ArrayField) else [f.field])]
        stored = cube.variable(d.variables[numbers[0]]["name"])
        kind = _kind_of(name, f, stored)
        axes = _axes(cube, stored, along, options, name)
        window, horizon = options.get("window", 0), options.get("horizon", 0)
        if window and along not in stored.dims:
            raise UsageError(f"field '{name}': '{stored.name}' has no axis '{along}' for a window; it has {listed(stored.dims)}")
        d.fields.append({"name": name, "variables": numbers, "from": 0, "count": window, "axes": axes, "kind": kind})
        given[name] = f._with(field=name)
        if horizon:
            target = f"{name}_target"
            if target in fields:
                raise UsageError(f"field '{name}' with a horizon gives '{target}', and a field of that name is asked for")
            d.fields.append({"name": target, "variables": numbers, "from": max(1, window), "count": horizon, "axes": axes})
            given[target] = f._with(field=target)
        reach = max(reach, max(1, window) + horizon)
    return d.open(reach, _shared(wanted, "stride", 1), bool(_shared(wanted, "tiled", False)), []), given


def _kind_of(name: str, f: Field, stored: Stored) -> str:
    """What the field's bytes are to the engine; refuses what cannot be made of them."""
    made = ("array", "tokens", "scalar", "bytes")
    if stored.kind != "array":
        made = ("image", "bytes", "text", "json", "scalar", "array", "tokens")
    elif stored.values is None and stored.dtype == "u8":
        made = ("image", *made)
    if f.what not in made:
        raise UsageError(f"field '{name}' is {f!r}; of '{stored.name}' " + ", ".join(f"hr.{m}" for m in made) + " are made")
    # Bytes that are said to be numbers are: those of a vlen of u8.
    is_numbers = f.what in ("array", "tokens") and stored.kind == "bytes" and "dtype" not in f.options
    return "array" if is_numbers else stored.kind


def _first_axis(cube: Cube, fields: Mapping[str, Field]) -> str:
    for f in fields.values():
        stored = cube.variable(f.variables[0] if isinstance(f, ArrayField) else f.field)
        if stored.dims:
            return stored.dims[0]
    raise UsageError("the variables have no axis that samples could run along")


def _open_all(cube: Cube) -> _core.Source:
    """One sample for each index of the first axis, with all variables that have that axis."""
    lead = cube.lead()
    along, length = lead.dims[0], lead.shape[0]
    d = Description(cube, along)
    left = []
    for stored in cube.files[0].values():
        at = stored.dims.index(along) if along in stored.dims and not stored.why else None
        if at is None or stored.shape[at] != length:
            left.append(f"'{stored.name}'" + (f" ({stored.why})" if stored.why else ""))
            continue
        axes: list[tuple[list[int], int, bool]] = [([], 0, False)] * len(stored.shape)
        d.fields.append(
            {
                "name": stored.name,
                "variables": [d.variable(stored.name)],
                "from": 0,
                "count": 0,
                "axes": axes,
                "kind": stored.kind,
            }
        )
    notices = [f"{cube.where}: left out, because samples run along '{along}': {', '.join(left)}"] if left else []
    return d.open(1, 1, False, notices)
