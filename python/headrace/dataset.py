# SPDX-License-Identifier: Apache-2.0
"""Map-style data sets: ``ds = hr.open("train-{0000..0007}.tar"); ds[3]``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from .checks import path, whole
from .errors import Unsupported, UsageError
from .fields import ArrayField, ColumnsField, Field
from .views import Views

Urls = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

#: Of which fields say what a sample is.
ARRAY_FORMATS = ("hdf5", "netcdf", "npy", "zarr")

_told: set[str] = set()


def tell_once(text: str) -> None:
    """Says something to the user, once in a process."""
    if text not in _told:
        _told.add(text)
        print(f"headrace: {text}", file=sys.stderr)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def places_of(source: Any) -> Any:
    """``urls_of`` a path; of an xarray Dataset where its variables lie."""
    from .arrays.xarray import is_xarray, trace

    return trace(source) if is_xarray(source) else urls_of(source)


def urls_of(source: Any) -> list[str]:
    """A path, a glob, braces, or a list of them."""
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if isinstance(source, Sequence) and source and all(isinstance(s, (str, os.PathLike)) for s in source):
        urls = [os.fspath(s) for s in source]
        for url in urls:
            if not isinstance(url, str) or not url or "\0" in url or not _encodes(url):
                raise UsageError(f"a source is a path, not {url!r}")
        return urls
    if type(source).__module__.startswith("xarray."):
        raise UsageError(
            "an xarray Dataset is taken by hr.open and hr.Loader; here hr.open(ds) or the path of its files is wanted"
        )
    raise UsageError(f"a source is a path, a glob, a list of them, or a data set; got {source!r}")


def open_source(urls: list[str], index: Any = None, root: Any = None, in_memory: bool | str = False) -> _core.Source:
    source = _core.open_source(urls, path(index, "index"), path(root, "root"))
    if in_memory == "decoded":
        from .decoded import open_decoded

        source = open_decoded(source)
    elif in_memory:
        source = _core.hold(source)
    for notice in source.notices:
        tell_once(notice)
    return source


def open_data(
    urls: Any, fields: Mapping[str, Field] | None, index: Any = None, root: Any = None, in_memory: bool | str = False
) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """The data, and the fields as they are to be asked of it: of files of arrays they say what a sample is."""
    from .arrays.files import are_arrays
    from .arrays.open import open_arrays
    from .arrays.xarray import Traced, XarrayCube

    if isinstance(urls, Traced):
        source, fields = open_arrays(XarrayCube(urls), fields)
    elif not are_arrays(urls, fields):
        for name, field in fields.items() if isinstance(fields, Mapping) else ():
            if isinstance(field, ArrayField) and (field.windows or len(field.variables) > 1):
                said = ", ".join(field.windows) or "several names"
                raise UsageError(
                    f"field '{name}': {said} are for files of arrays (HDF5, NetCDF, Zarr, npy; npz with along='file'), which {urls[0]!r} is not"
                )
        return with_columns(open_source(urls, index, root, in_memory), fields)
    else:
        source, fields = open_arrays(urls, fields)
    if index is not None or root is not None:
        raise Unsupported("index and root are not there for files of arrays")
    if in_memory == "decoded":
        raise UsageError("in_memory='decoded' is for pictures; of arrays say in_memory=True")
    if in_memory:
        source = _core.hold(source)
    for notice in source.notices:
        tell_once(notice)
    return with_columns(source, fields)


def with_columns(source: _core.Source, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """The data with a field more for every ``hr.columns``, and the fields as they are to be asked of it."""
    stacks = {n: f for n, f in fields.items() if isinstance(f, ColumnsField)} if isinstance(fields, Mapping) else {}
    if not stacks or fields is None:
        return source, fields
    known = {name for name, _, _ in source.schema}
    described, given = [], dict(fields)
    for name, field in stacks.items():
        inner = name
        while inner in known:
            inner += "'"
        fill = float("nan") if isinstance(field.missing, str) else float(field.missing)
        missing = field.missing if isinstance(field.missing, str) else "fill"
        described.append({"name": inner, "columns": field.columns, "dtype": field.dtype, "missing": missing, "fill": fill})
        given[name] = field._with(field=inner)
    return source.stacked(described), given


def field_specs(fields: Mapping[str, Field] | None, source: _core.Source) -> list[dict[str, Any]]:
    """Fields as the engine takes them. Functions are called once, to learn what they give."""
    if fields is None:
        return []
    if not isinstance(fields, Mapping) or not fields:
        raise UsageError("fields is a dict: {'image': hr.image('jpg'), ...}")
    specs = []
    for name, field in fields.items():
        if not isinstance(name, str):
            raise UsageError(f"fields: the name of an output is a text, not {name!r}")
        if not isinstance(field, Field):
            raise UsageError(f"field '{name}' is {field!r}; write hr.image('jpg'), hr.scalar('cls'), …")
        if any("stats" in params for _, params in field.steps):  # of a view, or no file of arrays: one number each
            from .arrays.statistics import settled

            field = settled(field, name, [field.field], (), (), ())
        spec: dict[str, Any] = {
            "output": name,
            "field": field.field,
            "what": field.what,
            "options": field.options,
            "steps": field.steps,
            "packing": field.packing,
            "many": field.many,
        }
        if field.packing == "padded":
            spec["pad"] = field.pad_value
        if field.joint:
            spec.update(joint=field.joint, leads=field.leads)
        if field.functions:
            from .mapping import map_spec

            spec["map"] = map_spec(name, field, spec, source)
        specs.append(spec)
    return specs


def finishes(fields: Mapping[str, Field] | None, source: _core.Source, specs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """How each output reaches Python: (name, "array" | "scalar" | "text" | "bytes" | "json")."""
    if fields is None:
        kinds = dict.fromkeys(("int", "float", "array", "npy", "tokens"), "array") | {"text": "text", "json": "text"}
        return [(name, kinds.get(kind, "bytes")) for name, kind, _ in source.schema]
    out = []
    for (name, field), spec in zip(fields.items(), specs):
        how = field.finish
        if "map" in spec:
            how = spec["map"]["result"]
        if field.packing in ("padded", "ragged"):
            how = "array"
        out.append((name, how))
    return out


def parsed(value: Any) -> Any:
    """JSON, or a list of such."""
    return [parsed(v) for v in value] if isinstance(value, list) else json.loads(value)


class Dataset(Views):
    """Samples by number. A drop-in for ``torch.utils.data.Dataset``; can be pickled."""

    def __init__(
        self,
        urls: Any,
        fields: Mapping[str, Field] | None = None,
        *,
        index: Any = None,
        root: Any = None,
        in_memory: bool | str = False,
        views: tuple[Any, ...] = (),
    ) -> None:
        self._urls, self._given, self._index, self._root, self._views = urls, fields, index, root, views
        self._in_memory = in_memory
        source, self._fields = open_data(urls, fields, index, root, in_memory)
        for view in views:
            source = source.slice(*view) if isinstance(view, tuple) else source.view(view)
        self._attach(source)

    def _attach(self, source: _core.Source) -> None:
        self._source = source
        specs = field_specs(self._fields, source)
        self._finishes = finishes(self._fields, source, specs)
        self._core = _core.Dataset.make(source, specs)

    def __getstate__(self) -> dict[str, Any]:
        # Absolute: whoever unpickles it may stand in another folder.
        urls = self._urls
        if isinstance(urls, list):
            urls = [os.path.abspath(url) if "://" not in url else url for url in urls]
        index, root = (p if p is None else os.path.abspath(p) for p in (self._index, self._root))
        return {"args": (urls, self._given, index, root, self._in_memory, self._views)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        urls, fields, index, root, in_memory, views = state["args"]
        self.__init__(urls, fields, index=index, root=root, in_memory=in_memory, views=views)  # type: ignore[misc]

    def __len__(self) -> int:
        return self._source.size

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return self._view(i.indices(len(self)))
        numbers: Any = np.asarray(i) if not isinstance(i, (str, bytes)) else np.empty(0, np.str_)
        if numbers.size == 0 and isinstance(i, (list, tuple)):
            numbers = numbers.astype(np.int64)
        if numbers.dtype == np.bool_ and numbers.shape == (len(self),):
            numbers = np.flatnonzero(numbers)
        if numbers.dtype.kind not in "iu" or numbers.ndim > 1:
            raise UsageError(f"a sample number, a slice, a list of numbers or a mask is wanted, not {i!r}")
        outside = numbers[(numbers < -len(self)) | (numbers >= len(self))] if numbers.size else numbers
        if outside.size:
            raise IndexError(f"sample {outside.flat[0]} of a data set of {len(self)}")
        numbers = np.where(numbers < 0, numbers + len(self), numbers)
        return self._sample(int(numbers)) if numbers.ndim == 0 else self._numbers(numbers)

    def _sample(self, n: int) -> dict[str, Any]:
        out = {}
        for (name, how), value in zip(self._finishes, self._core.at(n, [how for _, how in self._finishes])):
            if value is not None:
                out[name] = parsed(value) if how == "json" else value
        return out

    def _view(self, view: Any) -> Dataset:
        other = object.__new__(Dataset)
        other._urls, other._fields, other._index, other._root = self._urls, self._fields, self._index, self._root
        other._given = self._given
        other._in_memory = self._in_memory
        other._views = (*self._views, view)
        other._attach(self._source.slice(*view) if isinstance(view, tuple) else self._source.view(view))
        return other

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name} ({kind})" for name, kind, _ in self._source.schema)
        return f"<headrace data set: {len(self)} samples, {self.format}, fields {fields}>"

    @property
    def format(self) -> str:
        return self._source.format

    @property
    def schema(self) -> list[tuple[str, str]]:
        """The fields of the data: (name, kind)."""
        return [(name, kind) for name, kind, _ in self._source.schema]

    @property
    def notices(self) -> list[str]:
        """What was said when it was opened: what was left out, what is read slowly and why."""
        return list(self._source.notices)

    @property
    def fingerprint(self) -> str:
        """Tells data sets apart by names, sizes and counts; moving the data changes nothing."""
        return self._source.fingerprint

    def key(self, i: int) -> str:
        return str(self._source.key(whole(i, "a sample number", 0, max(0, len(self) - 1))))


def open(
    source: Any,
    fields: Mapping[str, Field] | None = None,
    *,
    in_memory: bool | str = False,
    index: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Opens a data set as it lies; builds the index beside it where there is none yet.

    source: a path, a glob, braces, a list of these: shards and files of any format of ``hr.formats()``, a
        folder of class folders, a file list, a CSV, a pickle or JSON-lines index. Or an xarray Dataset whose variables
        lie in files, which are read in its place.
    fields: what to make of each field; without it raw bytes, scalars and text as they lie.
    index: where ``headrace index SRC --to URL`` put the index.
    root: what the paths of a list are relative to; the list's own folder unless given.
    in_memory: reads all files of the data set, as they lie, into memory, once for all processes of a node:
        a file in /dev/shm that the first of them writes and the last removes. At most half of the memory.
        Where /dev/shm has no room each process keeps its own copy, and says so. "decoded" holds the pixels of
        pictures instead: decoded once, by the first process, and gone with the last; for small pictures.
    """
    if not isinstance(in_memory, bool) and in_memory != "decoded":
        raise UsageError(f"in_memory is True, False or 'decoded', not {in_memory!r}")
    return Dataset(places_of(source), fields, index=index, root=root, in_memory=in_memory)
