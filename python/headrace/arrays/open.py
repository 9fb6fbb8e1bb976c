# SPDX-License-Identifier: Apache-2.0
"""Files of arrays as data sets: which variables there are, and what a sample takes of them."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import Unsupported, UsageError
from ..fields import ArrayField, ColumnsField, Field, Starts
from .model import Stored, held_if_small, is_npy_folder, listed, npy_arrays, npy_folder
from .netcdf import netcdf_arrays, sniff
from .volumes import CASES, asks_for_cases, label_places, read_cases

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
    if lower.endswith((".npy", ".npz")):
        return lower[-3:]
    if lower.endswith(".zarr"):
        return "zarr"
    if os.path.isdir(path):
        from .zarr import is_zarr

        return "zarr" if is_zarr(path) else "npy" if is_npy_folder(path) else ""
    return sniff(path) if "." not in os.path.basename(path) else ""


def are_arrays(urls: Sequence[str], fields: Any = None) -> bool:
    """Whether they are files of arrays; .npz are where each is one sample of them, else a format of records."""
    cases = asks_for_cases(fields)
    kinds = [k if k != "npz" or cases else "" for k in map(_kind, urls)]
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


def read_arrays(path: str, group: str) -> list[Stored]:
    """What the metadata of one file or folder say."""
    kind = _kind(path)
    if not os.path.exists(path):
        from ..errors import NotFound

        raise NotFound(f"there is no {path}")
    if os.path.exists(os.path.join(path, "headrace.unfinished")):
        raise UsageError(f"{path} is an unfinished pack: the same `headrace pack` again goes on with it")
    if kind == "hdf5":
        from .hdf5 import hdf5_arrays

        return hdf5_arrays(path, group)
    if kind == "netcdf":
        return netcdf_arrays(path, group)
    if kind == "npy":
        return npy_folder(path) if os.path.isdir(path) else npy_arrays(path)
    if kind == "npz":
        from .npz import npz_arrays

        return npz_arrays(path)
    from .zarr import zarr_arrays

    return zarr_arrays(path, group)


class Cube:
    """The variables of one or several files that follow each other along one axis."""

    #: Axes of which only some indexes are there.
    cuts: Mapping[str, list[int]] = {}

    def __init__(self, urls: Sequence[str]) -> None:
        self.paths = _expanded(urls)
        self.kind = _kind(self.paths[0][0])
        self.files = [{a.name: a for a in read_arrays(path, group)} for path, group in self.paths]
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

    def segments(self, name: str, along: str | None) -> list[Stored]:
        """Those of all files; of one that does not run along the axis, the first's."""
        if along is None:
            return [self.files[0][name]]
        out = []
        for (path, _), arrays in zip(self.paths, self.files):
            if name not in arrays:
                raise UsageError(f"{path} has no variable {name!r}, which {self.where} has; it has {listed(arrays)}")
            if arrays[name].why:
                raise Unsupported(f"{path}: '{name}' cannot be read: {arrays[name].why}")
            out.append(arrays[name])
        return out

    def coordinate(self, dim: str, extent: int) -> Any:
        """The values of the axis; None where it has none."""
        stored = self.files[0].get(dim)
        if stored is None or stored.why or stored.shape != (extent,) or stored.kind != "array" or stored.values is not None:
            return None
        return values_of(self, stored)

    def open_all(self) -> None:
        """Called where all variables are asked for."""

    def lead(self) -> Stored:
        """The variable whose first axis samples run along unless told: the one of most axes."""
        good = [a for a in self.files[0].values() if not a.why and len(a.shape) > a.inner]
        if not good:
            reasons = "; ".join(f"'{a.name}': {a.why or 'it is one number'}" for a in self.files[0].values())
            raise Unsupported(f"{self.where} holds no array that can be read: {reasons}")
        return max(good, key=lambda a: len(a.shape) - a.inner)


class Cases(Cube):
    """Files, or groups of them, that are a sample each."""

    def __init__(self, urls: Sequence[str], along: str) -> None:
        self.paths = _expanded(urls)
        self.kind = _kind(self.paths[0][0])
        self.names, self.files = read_cases(self.paths, along, read_arrays, self.kind)
        self.where = self.paths[0][0]

    def segments(self, name: str, along: str | None) -> list[Stored]:
        out = []
        for case, arrays in zip(self.names, self.files):
            if name not in arrays:
                raise UsageError(f"{case} has no variable {name!r}, which {self.names[0]} has; it has {listed(arrays)}")
            if arrays[name].why:
                raise Unsupported(f"{case}: '{name}' cannot be read: {arrays[name].why}")
            out.append(arrays[name])
        return out


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
            segments = self.cube.segments(stored.name, self.along if moves else None)
            self._numbers[stored.name] = self.add(stored, segments, stored.dims.index(self.along) if moves else None)
        return self._numbers[stored.name]

    def add(self, stored: Stored, segments: Sequence[Stored], axis: int | None) -> int:
        numbers = []
        for segment in segments:
            numbers.append(len(self.arrays))
            self.arrays.append(held_if_small(segment, axis).described(len(self.files)))
            self.files += segment.files
            if segment.reader is not None:
                self.readers[segment.files[0]] = segment.reader
                self.slow.append(f"{segment.files[0]} is read through h5py, one thread at a time and slowly: {segment.slow}")
        self.variables.append({"name": stored.name, "dims": list(stored.dims), "segments": numbers, "along": axis})
        return len(self.variables) - 1

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

    def filled(self, **samples: Any) -> dict[str, Any]:
        """For the engine; ``samples``: which there are."""
        gathered = {"files": self.files, "arrays": self.arrays, "variables": self.variables, "fields": self.fields}
        return gathered | {"starts": None, "end": 0, "stride": 1, "tiled": False, "readers": self.readers or None} | samples

    def open(
        self, reach: int, stride: int, tiled: bool, notices: list[str], table: Starts | None = None, **labels: Any
    ) -> _core.Source:
        names = self.cube.names if isinstance(self.cube, Cases) and self.along in CASES else None
        total = self.length() if names is None else len(names)
        cut = self.cube.cuts.get(self.along)
        starts: Any = []
        if cut is not None:
            if cut != list(range(cut[0], cut[0] + len(cut))):
                raise UsageError(
                    f"the Dataset holds some indexes of '{self.along}' that do not follow each other: take a view of it"
                )
            total = len(cut)
            starts = list(range(cut[0], cut[0] + total - reach + 1, stride))
        if reach > total:
            raise UsageError(f"a sample takes {reach} steps (window and horizon) and '{self.along}' has {total}")
        starts = np.array(starts, np.int64).reshape(-1, 1) if len(starts) else None
        if table is not None:
            starts = self._checked(table.rows, total - reach, cut[0] if cut else 0)
        samples = {"starts": starts, "end": total - reach + 1, "stride": stride, "tiled": tiled, "names": names}
        filled = self.filled(**samples, **labels)
        return _core.open_arrays({**filled, "format": self.cube.kind, "notices": notices + self.slow})

    def _checked(self, rows: Any, last: int, first: int) -> Any:
        """Rows of (position, corner): positions that there are, corners where there are patches."""
        outside = np.flatnonzero((rows[:, 0] < 0) | (rows[:, 0] > last))
        if outside.size:
            row = int(outside[0])
            raise UsageError(
                f"row {row} of starts: there is no sample at {rows[row, 0]} along '{self.along}'; the last is at {last}"
            )
        if rows.shape[1] > 1 and not any(patch for f in self.fields for _, patch, _ in f["axes"]):
            raise UsageError("the rows of starts have more numbers than a position, and no field has a patch")
        return rows + np.array([first] + [0] * (rows.shape[1] - 1))


def values_of(cube: Cube, stored: Stored, choice: Sequence[list[int]] | None = None, parts: Sequence[Stored] = ()) -> Any:
    """The elements of an array at the indexes of each axis, empty for all: coordinates, and what a user looks at.

    ``parts``: the array of another file in its place."""
    d = Description(cube, along="\0")
    number = d.add(stored, parts or [stored], None)
    # One sample that takes all of it: an axis of its own that nothing runs along.
    one = Stored("\0", ("\0",), (1,), (1,), "u8", places=np.zeros((1, 4), np.uint64))
    d.arrays.append(one.described(0))
    d.variables.append({"name": "\0", "dims": ["\0"], "segments": [len(d.arrays) - 1], "along": 0})
    d.fields = [
        {
            "name": "v",
            "variables": [number],
            "from": 0,
            "count": 0,
            "axes": [(c, 0, False) for c in choice or [[]] * len(stored.shape)],
        },
    ]
    source = d.open(1, 1, False, [])
    return np.asarray(_core.Dataset.make(source, []).at(0, ["array"])[0])


def _indexes(cube: Cube, dim: str, wanted: Any, extent: int) -> list[int]:
    """The indexes of an axis that ``sel`` names by the values of its coordinate, or by number."""
    known = cube.coordinate(dim, extent)
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
        cut = cube.cuts.get(dim) if dim != along else None
        indexes = _indexes(cube, dim, sel[dim], len(cut) if cut else stored.shape[i]) if dim in sel else []
        if cut is not None:
            if i in size:
                raise UsageError(f"field '{name}': a patch along '{dim}', of which the Dataset holds a part: open all of it")
            indexes = [cut[n] for n in indexes] if indexes else list(cut)
        out.append((indexes, size.get(i, 0), dim in periodic))
    return out


def _shared(fields: Mapping[str, Field], name: str, default: Any) -> Any:
    """An option that is one for all fields."""
    said = {k: f.windows[name] for k, f in fields.items() if isinstance(f, ArrayField) and name in f.windows}
    if len(set(said.values())) > 1:
        a, b = list(said)[:2]
        raise UsageError(f"{name} must be the same for all fields; '{a}' says {said[a]!r} and '{b}' says {said[b]!r}")
    return next(iter(said.values())) if said else default


def open_arrays(
    source: Sequence[str] | Cube, fields: Mapping[str, Field] | None
) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """The data set and the fields as they are to be asked of it."""
    cube: Cube
    if isinstance(source, Cube):
        cube = source
    elif isinstance(fields, Mapping) and asks_for_cases(fields):
        cube = Cases(source, _shared(fields, "along", None))
    else:
        cube = Cube(source)
    if fields is None:
        cube.open_all()
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
        if isinstance(f, ColumnsField):
            given[name] = f._with(columns=[_add_column(d, name, column, fields) for column in f.columns])
            continue
        options = f.windows if isinstance(f, ArrayField) else {}
        numbers = [d.variable(v) for v in (f.variables if isinstance(f, ArrayField) else [f.field])]
        stored = cube.variable(d.variables[numbers[0]]["name"])
        kind = _kind_of(name, f, stored)
        axes = _axes(cube, stored, along, options, name)
        window, horizon = options.get("window", 0), options.get("horizon", 0)
        if (window or horizon) and isinstance(cube, Cases):
            raise UsageError(f"field '{name}': window and horizon are steps along an axis, and a sample is a {along}")
        if window and along not in stored.dims:
            raise UsageError(f"field '{name}': '{stored.name}' has no axis '{along}' for a window; it has {listed(stored.dims)}")
        d.fields.append({"name": name, "variables": numbers, "from": 0, "count": window, "axes": axes, "kind": kind})
        given[name] = _normalised(f, name, d, window)._with(field=name)
        if horizon:
            target = f"{name}_target"
            if target in fields:
                raise UsageError(f"field '{name}' with a horizon gives '{target}', and a field of that name is asked for")
            d.fields.append({"name": target, "variables": numbers, "from": max(1, window), "count": horizon, "axes": axes})
            given[target] = _normalised(f, target, d, horizon)._with(field=target)
        reach = max(reach, max(1, window) + horizon)
    table = _shared(wanted, "starts", None)
    if table is not None and _shared(wanted, "stride", None) is not None:
        raise UsageError("starts says where samples begin; stride says it too")
    opened = d.open(
        reach, _shared(wanted, "stride", 1), bool(_shared(wanted, "tiled", False)), [], table, **_foreground(d, wanted)
    )
    return opened, given


def _foreground(d: Description, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Where the label lies that a share of the patches is to hold."""
    name = _shared(fields, "foreground", None)
    if name is None:
        return {}
    if not isinstance(d.cube, Cases):
        raise UsageError('foreground goes with along="file" or "group": a label of each volume')
    sizes = {len([p for _, p, _ in f["axes"] if p]) for f in d.fields} - {0}
    if len(sizes) != 1:
        raise UsageError("foreground goes with patch=(…), over as many axes for all fields that have one")
    if _shared(fields, "tiled", None) or _shared(fields, "starts", None) is not None:
        raise UsageError("foreground draws where patches lie; tiled and starts say it too")
    return {"labels": label_places(Description(d.cube, d.along), name, sizes.pop()), "share": _shared(fields, "share", None)}


def _add_column(d: Description, name: str, column: str, taken: Container[str]) -> str:
    """One number of every sample, for hr.columns; the name of its field."""
    number = d.variable(column)
    stored = d.cube.variable(column)
    if stored.kind != "array" or stored.values is not None or stored.dims != (d.along,):
        what = f"{stored.dtype}{list(stored.shape)}" if stored.kind == "array" and stored.values is None else stored.kind
        raise UsageError(f"field '{name}': column '{column}' holds {what}; columns of numbers along '{d.along}' are wanted")
    inner = column
    while inner in taken:
        inner += "'"
    if all(f["name"] != inner for f in d.fields):
        d.fields.append({"name": inner, "variables": [number], "from": 0, "count": 0, "axes": [([], 0, False)], "kind": "array"})
    return inner


def _normalised(field: Field, name: str, d: Description, count: int) -> Field:
    """The field that was added last, with numbers in place of statistics."""
    from .statistics import settled

    axes = d.fields[-1]["axes"]
    variables = [d.variables[n] for n in d.fields[-1]["variables"]]
    dims, first = variables[0]["dims"], d.arrays[variables[0]["segments"][0]]["shape"]
    extents = [patch or len(indexes) or n for (indexes, patch, _), n in zip(axes, first)]
    if variables[0]["along"] is not None:
        extents[variables[0]["along"]] = max(1, count)
    return settled(field, name, [v["name"] for v in variables], dims, axes, extents)


def _kind_of(name: str, f: Field, stored: Stored) -> str:
    """What the field's bytes are to the engine; refuses what cannot be made of them."""
    made: tuple[str, ...] = ("array", "tokens", "scalar", "bytes")
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
        names = f.columns if isinstance(f, ColumnsField) else f.variables if isinstance(f, ArrayField) else [f.field]
        stored = cube.variable(names[0])
        if len(stored.dims) > stored.inner:
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
        axes = _axes(cube, stored, along, {}, stored.name)
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
