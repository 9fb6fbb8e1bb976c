# SPDX-License-Identifier: Apache-2.0
"""``hr.to_xarray(ds)``: a data set as a lazy xarray Dataset, for looking at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dataset import Dataset
from ..errors import Unsupported, UsageError
from ..opening import ARRAY_FORMATS
from .model import unpacked_alike

if TYPE_CHECKING:
    from .cube import Cube
    from .model import Stored


def _xarray() -> Any:
    try:
        import xarray
    except ImportError as e:
        raise Unsupported(f"hr.to_xarray needs xarray, which cannot be imported ({e}): pip install xarray") from None
    return xarray


def to_xarray(ds: Dataset) -> Any:
    """The data set as an ``xarray.Dataset`` that reads through headrace, and only what is looked at.

    Of files of arrays opened without ``fields``: their variables, with dimensions, coordinates and attributes; several
    files are one variable. Of any other data set, and of views: numbers of one shape, with ``sample`` as first dimension.

    >>> hr.to_xarray(hr.open("cube.zarr"))["t2m"].sel(time="1979-01-01", lat=47.4, method="nearest").plot()
    """
    if not isinstance(ds, Dataset):
        raise UsageError(f"hr.to_xarray takes a data set, hr.open(...), not {ds!r}")
    if ds.format in ARRAY_FORMATS and ds._given is None and not ds._views:
        return _of_arrays(ds)
    return _of_samples(ds)


def _lazy(xarray: Any, dims: tuple[str, ...], array: Any, attributes: dict[str, Any]) -> Any:
    data = xarray.core.indexing.LazilyIndexedArray(_backend(xarray, array))
    return xarray.Variable(dims, data, attributes)


def _backend(xarray: Any, array: Any) -> Any:
    """xarray asks for boxes; ``array`` reads them: indexes of every axis."""

    class Backend(xarray.backends.BackendArray):  # type: ignore[misc]
        shape, dtype = array.shape, array.dtype

        def __getitem__(self, key: Any) -> Any:
            support = xarray.core.indexing.IndexingSupport.OUTER
            return xarray.core.indexing.explicit_indexing_adapter(key, self.shape, support, self.read)

        def read(self, key: tuple[Any, ...]) -> Any:
            wanted = [np.arange(n)[k] for n, k in zip(self.shape, key)]
            values = array.read([np.atleast_1d(w).tolist() for w in wanted])
            return values.reshape([w.size for w in wanted if w.ndim])

    return Backend()


class _CubeArray:
    """A variable of files that follow each other along one axis."""

    def __init__(self, cube: Cube, stored: Stored, parts: list[Stored], axis: int) -> None:
        parts = unpacked_alike(parts)
        stored = parts[0] if parts else stored
        self._cube, self._stored, self._parts, self._axis = cube, stored, parts, axis
        self._ends = np.cumsum([p.shape[axis] for p in parts]) if stored.shape else np.zeros(0, np.int64)
        shape = list(stored.shape)
        if len(parts) > 1:
            shape[axis] = int(self._ends[-1])
        self._cuts = {a: c for a, d in enumerate(stored.dims) if (c := cube.cuts.get(d)) is not None}
        for a, cut in self._cuts.items():
            shape[a] = len(cut)
        self.shape = tuple(shape)
        name = stored.dtype
        if stored.packed:
            name = "f64" if any(p.unpacked_dtype == "f64" for p in parts) else stored.unpacked_dtype
        self.dtype = np.dtype(f"{name[0]}{int(name[1:]) // 8}")

    def read(self, wanted: list[list[int]]) -> Any:
        from .description import values_of

        out = np.empty([len(w) for w in wanted], self.dtype)
        if out.size == 0:
            return out
        wanted = [[self._cuts[a][i] for i in w] if a in self._cuts else w for a, w in enumerate(wanted)]
        if len(self._parts) <= 1:
            out[...] = values_of(self._cube, self._stored, wanted, self._parts)
            return out
        along = np.asarray(wanted[self._axis])
        owner = np.searchsorted(self._ends, along, side="right")
        for part in np.unique(owner):
            here = np.flatnonzero(owner == part)
            first = int(self._ends[part]) - self._parts[part].shape[self._axis]
            mine = [*wanted[: self._axis], (along[here] - first).tolist(), *wanted[self._axis + 1 :]]
            place = [slice(None)] * len(wanted)
            place[self._axis] = here  # type: ignore[call-overload]
            out[tuple(place)] = values_of(self._cube, self._stored, mine, [self._parts[part]])
        return out


def _of_arrays(ds: Dataset) -> Any:
    xarray = _xarray()
    from .cube import Cube
    from .xarray import Traced, XarrayCube

    cube = XarrayCube(ds._urls) if isinstance(ds._urls, Traced) else Cube(ds._urls)
    along = cube.lead().dims[0]
    variables = {}
    for name, stored in cube.files[0].items():
        if stored.why or stored.kind != "array" or stored.values is not None:
            continue  # texts, values of variable length
        moves = along in stored.dims
        parts = cube.segments(name, along if moves else None)
        if stored.dims == (name,) and len(parts) > 1:
            variables[name] = _dates(xarray, cube, stored, parts)
            continue
        array = _CubeArray(cube, stored, parts, stored.dims.index(along) if moves else 0)
        variables[name] = _lazy(xarray, stored.dims, array, _plain(stored.attributes))
    for dim, values in cube.traced.coordinates.items() if isinstance(cube, XarrayCube) else ():
        variables[dim] = xarray.Variable((dim,), values)
    coordinates = [n for n, v in variables.items() if v.dims == (n,)]
    out = xarray.Dataset(variables).set_coords(coordinates)
    return xarray.decode_cf(out, mask_and_scale=False)  # numbers are unpacked already


def _dates(xarray: Any, cube: Cube, stored: Stored, parts: list[Stored]) -> Any:
    """A coordinate over several files, each of which may count its hours from another day."""
    from .description import values_of

    values = []
    for part in parts:
        numbers = values_of(cube, stored, [[]], [part])
        raw = xarray.Dataset({stored.name: xarray.Variable(stored.dims, numbers, _plain(part.attributes))})
        values.append(xarray.decode_cf(raw, mask_and_scale=False)[stored.name].values)
    attributes = {k: v for k, v in _plain(stored.attributes).items() if k not in ("units", "calendar")}
    return xarray.Variable(stored.dims, np.concatenate(values), attributes)


#: Attributes by which formats keep their own accounts.
_INNER = ("_", "DIMENSION_", "REFERENCE_LIST", "CLASS", "NAME", "scale_factor", "add_offset", "missing_value")


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Texts as texts; numbers of one element as numbers; nothing of how the format keeps them."""
    out = {}
    for name, value in attributes.items():
        if name.startswith(_INNER):
            continue
        value = np.asarray(value)
        if value.dtype.kind in "SUiuf" or value.dtype == object:
            value = value.astype(str) if value.dtype.kind == "S" else value
            out[name] = value.reshape(()).item() if value.size == 1 else value.tolist()
    return out


class _SampleArray:
    """One field of all samples."""

    def __init__(self, ds: Dataset, name: str, like: Any) -> None:
        self._ds, self._name = ds, name
        self.shape, self.dtype = (len(ds), *like.shape), like.dtype

    def read(self, wanted: list[list[int]]) -> Any:
        out = np.empty([len(w) for w in wanted], self.dtype)
        for n, i in enumerate(wanted[0]):
            value = np.asarray(self._ds[i][self._name])
            out[n] = value[np.ix_(*wanted[1:])] if value.ndim else value
        return out


def _of_samples(ds: Dataset) -> Any:
    xarray = _xarray()
    variables = {}
    for name, value in ds[0].items() if len(ds) else ():
        if isinstance(value, (int, float, np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "iufb":
            like = np.asarray(value)
            dims = ("sample", *(f"{name}_{i}" for i in range(like.ndim)))
            variables[name] = _lazy(xarray, dims, _SampleArray(ds, name, like), {})
    if not variables:
        raise Unsupported(f"{ds!r} has no numbers that xarray could show")
    return xarray.Dataset(variables)
