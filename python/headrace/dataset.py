# SPDX-License-Identifier: Apache-2.0
"""Map-style data sets: ``ds = hr.open("train-{0000..0007}.tar"); ds[3]``."""

from __future__ import annotations

import abc
import functools
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import numpy as np

from . import _core
from .caching import Cache, cache_of, core_options, tell
from .checks import checked_bool, path, whole
from .errors import Unsupported, UsageError
from .fields import ArrayField, ColumnsField, Field
from .messages import tell_once
from .requests import ask, delivered, masks, tell_of_missing
from .storage import Storage, using
from .views import Views

Urls = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".csv.zst", ".tsv.zst", ".jsonl.zst")

#: What people call the number of a sample's class, the usual one first.
LABELS = ("cls", "label", "labels", "class", "target", "y")

#: Of which fields say what a sample is.
ARRAY_FORMATS = ("hdf5", "netcdf", "npy", "zarr")


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
    """A path, a glob, braces, or a list or generator of them."""
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if isinstance(source, Iterator) or (isinstance(source, Iterable) and type(source) in (set, frozenset)):
        source = sorted(source) if isinstance(source, (set, frozenset)) else list(source)
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
    from .habits import refuse_source

    refuse_source(source)
    raise UsageError(f"a source is a path, a glob, a list of them, or a data set; got {source!r}")


def open_source(
    urls: list[str], index: Any = None, root: Any = None, in_memory: bool | str = False, cache: Cache | None = None
) -> _core.Source:
    from .layouts import recognise, resolved

    made = None
    if index is None:
        urls = resolved(urls)
        made = recognise(urls, None if root is None else os.fspath(root))
    if root is not None:
        urls = [_as_list(url) for url in urls]
    if made is not None:
        source = with_cache(made, cache)
    else:
        source = _core.open_source(urls, path(index, "index"), path(root, "root"), cache=core_options(cache))
    if in_memory == "decoded":
        from .decoded import open_decoded

        source = open_decoded(source)
    elif in_memory:
        source = _core.hold(source)
    tell(source)
    for notice in source.notices:
        tell_once(notice)
    return source


def with_cache(source: _core.Source, cache: Cache | None) -> _core.Source:
    """The same data, read through the cache folder."""
    options = core_options(cache)
    if options is None:
        return source
    source = source.cached(options)
    tell(source)
    return source


def _as_list(url: str) -> str:
    """A root is what paths are relative to: the rows name files."""
    name, _, part = url.rpartition("#") if "#" in url and not os.path.exists(url) else (url, "", "")
    if not name.lower().endswith(_TABLES) or "table=" in part:
        return url
    return f"{name}#{part}&table=no" if part else f"{name}#table=no"


def _reading(urls: Any, header: Any, separator: Any, table: Any) -> Any:
    """Paths with what was said of how their tables are to be read."""
    if header is None and separator is None and table is None:
        return urls
    words = []
    if header is not None:
        if isinstance(header, bool):
            words.append(f"header={'yes' if header else 'no'}")
        elif isinstance(header, Sequence) and not isinstance(header, str) and header and all(isinstance(n, str) for n in header):
            words.append("header=" + ",".join(quote(n, safe="") for n in header))
        else:
            raise UsageError(f"header is True, False, or the names of the columns, not {header!r}")
    if separator is not None:
        if not isinstance(separator, str) or len(separator.encode()) != 1:
            raise UsageError(f"separator is one character, like ';' or '\\t', not {separator!r}")
        words.append("separator=" + quote(separator, safe=""))
    if table is not None:
        words.append(f"table={'yes' if checked_bool(table, 'table') else 'no'}")
    if not isinstance(urls, list):
        raise UsageError("header, separator and table are for CSV, TSV and JSON lines")
    return [f"{url}#{'&'.join(words)}" for url in urls]


def with_names(source: _core.Source, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """Fields by the name that the data have: ``"jpg;png"`` is the first that a sample has, ``"image"`` a picture of any extension."""
    if not isinstance(fields, Mapping):
        return source, fields
    known = {f["name"]: f for f in source.fields}
    given, added = dict(fields), {}
    for name, field in fields.items():
        wanted = getattr(field, "field", None)
        if wanted in known and field.what == "boxes" and known[wanted]["kind"] == "array" and "objects" in known:
            given[name] = field._with(field="objects")  # what a detection set has in the form that follows the geometry
        if not isinstance(field, Field) or isinstance(field, ColumnsField) or not wanted or wanted in known:
            continue
        names = stored_names(wanted, known, may_lack=field.optional or field.default is not None)
        if not names:
            continue
        stored = names[0] if len(names) == 1 else ";".join(names)
        if len(names) > 1 and stored not in known:
            added[stored] = {"name": stored, "of": names, "replaces": False}
        given[name] = field._with(field=stored)
    return (source.either(list(added.values())) if added else source), given


def _part_name(name: str, field: Mapping[str, Any]) -> str:
    """What a joined field is called in its part."""
    return name.removeprefix(f"{field['part']}.") if field["part"] else name


def _in_part(wanted: str, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """``images.jpg`` of a join, also where no other part has a jpg; ``images.image``."""
    for part in {f["part"] for f in known.values() if f["part"]}:
        if wanted.startswith(f"{part}."):
            own = {_part_name(n, f): n for n, f in known.items() if f["part"] == part}
            inner = wanted[len(part) + 1 :]
            plain = {name: {**known[n], "part": None} for name, n in own.items()}
            return [own[inner]] if inner in own else [own[n] for n in stored_names(inner, plain)]
    return []


def stored_names(wanted: str, known: Mapping[str, Mapping[str, Any]], may_lack: bool = False) -> list[str]:
    """The fields of the data that a name stands for; none where it is no such name."""
    of_part = _in_part(wanted, known)
    if of_part:
        return of_part
    if ";" in wanted:
        names = [n.strip() for n in wanted.split(";")]
        found = [n for n in dict.fromkeys(names) if n in known]
        if not found and not may_lack:
            raise UsageError(f"there is no field {' or '.join(map(repr, names))} in the data; it has {', '.join(known)}")
        return found
    if wanted == "image":
        pictures = {n: f for n, f in known.items() if f["picture"] and not set(".;") & set(_part_name(n, f))}
        parts = dict.fromkeys(f["part"] for f in pictures.values())
        if len(parts) > 1:
            raise UsageError(f"'image': which one? {', '.join(f'{part}.image' for part in parts)} are there")
        return list(pictures)
    return []


class Parts(abc.ABC):
    """What a data set that is made of others is opened from, in the place of paths."""

    parts: list[Dataset]

    @abc.abstractmethod
    def open(self, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]: ...


def apply_view(source: _core.Source, view: Any) -> _core.Source:
    """A slice, a list of numbers, new names of fields, or weights of samples."""
    if isinstance(view, tuple):
        return source.slice(*view)
    if not isinstance(view, Mapping):
        return source.view(view)
    return source.either(view["rename"]) if "rename" in view else source.weighted(view["weights"], view["draws"])


def open_data(
    urls: Any,
    fields: Mapping[str, Field] | None,
    index: Any = None,
    root: Any = None,
    in_memory: bool | str = False,
    cache: Cache | None = None,
) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """The data, and the fields as they are to be asked of it: of files of arrays they say what a sample is."""
    from .arrays.files import are_arrays
    from .arrays.open import open_arrays
    from .arrays.xarray import Traced, XarrayCube
    from .tokens import open_windows, wants_windows

    if isinstance(urls, Parts):
        return with_columns(*urls.open(fields))
    if wants_windows(fields) and fields is not None:
        source = with_cache(open_windows(urls, fields, index), cache)
        if root is not None or in_memory == "decoded":
            raise UsageError("root= and in_memory='decoded' are not for files of tokens")
        if in_memory:
            source = _core.hold(source)
        for notice in source.notices:
            tell_once(notice)
        return source, fields
    if isinstance(urls, Traced):
        source, fields = open_arrays(XarrayCube(urls), fields)
    elif not are_arrays(urls, fields):
        for name, field in fields.items() if isinstance(fields, Mapping) else ():
            if isinstance(field, ArrayField) and (field.windows or len(field.variables) > 1):
                said = ", ".join(field.windows) or "several names"
                raise UsageError(
                    f"field '{name}': {said} are for files of arrays (HDF5, NetCDF, Zarr, npy; npz with along='file'), which {urls[0]!r} is not"
                )
        return with_columns(open_source(urls, index, root, in_memory, cache), fields)
    else:
        source, fields = open_arrays(urls, fields, path(index, "index") if index is not None else None)
    if root is not None:
        raise Unsupported("root is not there for files of arrays")
    if in_memory == "decoded":
        raise UsageError("in_memory='decoded' is for pictures; of arrays say in_memory=True")
    source = with_cache(source, cache)
    if in_memory:
        source = _core.hold(source)
    for notice in source.notices:
        tell_once(notice)
    return with_columns(source, fields)


def with_columns(source: _core.Source, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """The data with a field more for every ``hr.columns``, and the fields as they are to be asked of it."""
    source, fields = with_names(source, fields)
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


def class_names(source: _core.Source, urls: Any) -> list[str]:
    from .labels import hugging_face_classes, packed_classes

    return list(source.classes) or packed_classes(urls) or hugging_face_classes(source, urls)


def parsed(value: Any) -> Any:
    """JSON, or a list of such."""
    return [parsed(v) for v in value] if isinstance(value, list) else json.loads(value)


def renamed_fields(fields: Mapping[str, Field] | None, view: Any) -> Mapping[str, Field] | None:
    """Fields after a view: those that ask for what it renamed, by the new name."""
    if fields is None or not isinstance(view, Mapping) or "rename" not in view:
        return fields
    new = {entry["of"][0]: entry["name"] for entry in view["rename"]}
    return {name: field._with(field=new.get(field.field, field.field)) for name, field in fields.items()}


class Column(Sequence[Any]):
    """One field of all samples, read as they are asked for."""

    def __init__(self, dataset: Dataset, *names: str) -> None:
        self._dataset, self._names = dataset, names

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[n] for n in range(*i.indices(len(self)))]
        sample = self._dataset[i]
        return next((sample[n] for n in self._names if n in sample), None)

    def __repr__(self) -> str:
        return f"<column {';'.join(self._names)} of {len(self)} samples>"


if TYPE_CHECKING:
    from torch.utils.data import Dataset as TorchDataset

    class _Base(Views, TorchDataset[Any]):  # type: ignore[misc]
        """What type checkers see: a data set of PyTorch's too."""
else:
    _Base = Views


@functools.cache
def _torch_class(cls: type, base: type) -> type:
    return type(cls.__name__, (cls, base), {"__module__": cls.__module__, "__doc__": cls.__doc__})


class Dataset(_Base):
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
        storage: Storage | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._cache = cache
        self._urls, self._given, self._index, self._root, self._views = urls, fields, index, root, views
        self._in_memory, self._storage = in_memory, storage
        with using(storage, urls, index):
            source, self._fields = open_data(urls, fields, index, root, in_memory, cache)
        self._opened = source
        self._kept: dict[str, _core.Column] = {}  # what was looked into, for all views
        for view in views:
            source = apply_view(source, view)
            self._fields = renamed_fields(self._fields, view)
        self._attach(source)

    def _attach(self, source: _core.Source) -> None:
        self._source = source
        asked = ask(self._fields, source)
        self._finishes, self._masks = delivered(asked, source), masks(asked)
        self._core = _core.Dataset.make(source, [a.request for a in asked])
        tell_of_missing(self._fields, source)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # isinstance(ds, torch.utils.data.Dataset) asks this; torch may be imported later than headrace, or never.
        torch = sys.modules.get("torch.utils.data")
        return Dataset if torch is None else _torch_class(Dataset, torch.Dataset)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.__getstate__(),)

    def __getstate__(self) -> dict[str, Any]:
        # Absolute: whoever unpickles it may stand in another folder.
        urls = self._urls
        if isinstance(urls, list):
            urls = [os.path.abspath(url) if "://" not in url else url for url in urls]
        index, root = (p if p is None or "://" in str(p) else os.path.abspath(p) for p in (self._index, self._root))
        return {
            "args": (urls, self._given, index, root, self._in_memory, self._views),
            "storage": self._storage,
            "cache": self._cache,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        urls, fields, index, root, in_memory, views = state["args"]
        storage, cache = state.get("storage"), state.get("cache")
        self.__init__(urls, fields, index=index, root=root, in_memory=in_memory, views=views, storage=storage, cache=cache)  # type: ignore[misc]

    def __len__(self) -> int:
        return self._source.size

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, str):
            return self._column(i)
        if isinstance(i, slice):
            return self._view(i.indices(len(self)))
        numbers: Any = np.asarray(i) if not isinstance(i, bytes) else np.empty(0, np.str_)
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
        values = self._core.at(n, [how for _, how in self._finishes])
        for (name, how), value in zip(self._finishes, values):
            if value is not None:
                out[name] = parsed(value) if how == "json" else value
            elif name in self._masks:
                out[name] = None
        for name, is_there in zip(self._masks, values[len(self._finishes) :]):
            out[f"{name}_valid"] = is_there
        return out

    def _column(self, name: str) -> Any:
        """``ds["cls"]``: numbers as one array, texts as a list, anything else read when it is asked for."""
        from .inside import find_look

        if name in (self._fields or ()):
            return Column(self, name)
        known = {f["name"]: f for f in self._source.fields}
        names = [name] if name in known else stored_names(name, known)
        if not names and name != "key" and find_look(self, name) is not None:
            column = self._whole_column(name)
            return np.asarray(column) if all(isinstance(v, (int, float)) for v in column) else column
        if not names and name != "key":
            raise UsageError(f"there is no field '{name}'; there are {', '.join(n for n, _ in self.schema)}")
        if name == "key" or (
            len(names) == 1 and known[names[0]]["kind"] in ("int", "float", "text") and not known[names[0]]["many"]
        ):
            (column,) = self._source.columns([name if name == "key" else names[0]], 0, len(self))
            numbers = all(isinstance(v, (int, float)) for v in column)
            return np.asarray(column) if numbers else column
        raw = self if self._fields is None else self._raw()
        return Column(raw, *names)

    def _looked_at(self, names: list[str], begin: int, end: int) -> list[Any]:
        kinds = {f["name"]: f["kind"] for f in self._source.fields}
        plain = [n for n in names if n not in (self._fields or ()) and (n == "key" or kinds.get(n) in ("int", "float", "text"))]
        cheap = dict(zip(plain, self._source.columns(plain, begin, end))) if plain else {}
        return [cheap[n] if n in cheap else list(self._column(n)[begin:end]) for n in names]

    def _raw(self) -> Dataset:
        """The same samples as they lie."""
        other = object.__new__(Dataset)
        other.__dict__.update(self.__dict__)
        other._fields = other._given = None
        other._attach(self._source)
        return other

    def _kept_answers(self, function: Any, names: list[str], keep: str) -> np.ndarray[Any, Any]:
        from .inside import kept_answers

        return kept_answers(self, function, names, keep)

    def _columns_of(self, condition: str) -> dict[str, Any]:
        from .inside import columns_of

        return columns_of(self, condition)

    def _whole_column(self, name: str) -> list[Any]:
        from .inside import whole_column

        return whole_column(self, name)

    def _label(self) -> str:
        """The field that says which class a sample is of."""
        known = [*(self._fields or ()), *(name for name, _ in self.schema)]
        for usual in LABELS:
            if usual in known:
                return usual
        raise UsageError(f"which field has the classes? Say field=; there are {', '.join(dict.fromkeys(known))}")

    @property
    def classes(self) -> list[str]:
        """Names of the classes that labels count: of class folders, of categories, of Hugging Face's ClassLabel."""
        return class_names(self._source, self._urls)

    def _view(self, view: Any) -> Dataset:
        other = object.__new__(Dataset)
        other._urls, other._fields, other._index, other._root = self._urls, self._fields, self._index, self._root
        other._given = self._given
        other._in_memory, other._storage = self._in_memory, self._storage
        other._cache = self._cache
        other._opened, other._kept = self._opened, self._kept
        other._views = (*self._views, view)
        if self._source.is_weighted:
            raise UsageError("views come before weights: hr.weighted(ds.where(…), weights)")
        other._fields = renamed_fields(self._fields, view)
        other._attach(apply_view(self._source, view))
        return other

    def __add__(self, other: Any) -> Dataset:
        """One data set after the other."""
        from .joining import concatenate

        return concatenate([self, other])

    def rename(self, names: Mapping[str, str]) -> Dataset:
        """``ds.rename({"new": "old"})``: the same samples, with other names for stored fields."""
        known = {name for name, _ in self.schema}
        if not isinstance(names, Mapping) or not all(isinstance(n, str) for pair in names.items() for n in pair):
            raise UsageError(f"rename takes a dict {{'new': 'old'}}, not {names!r}")
        for new, old in names.items():
            if old not in known:
                raise UsageError(f"rename: there is no field '{old}'; there are {', '.join(sorted(known))}")
            if not new or new in known - set(names.values()):
                raise UsageError(f"rename: there is a field '{new}' already" if new else "rename: a name is empty")
        return self._view({"rename": [{"name": new, "of": [old], "replaces": True} for new, old in names.items()]})

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name} ({kind})" for name, kind in self.schema)
        return f"<headrace data set: {len(self)} samples, {self.format}, fields {fields}>"

    def _repr_html_(self) -> str:
        from .notebook import dataset_html

        return dataset_html(self)

    @property
    def format(self) -> str:
        return self._source.format

    @property
    def schema(self) -> list[tuple[str, str]]:
        """The fields of the data: (name, kind)."""
        return [(name, kind) for name, kind, _ in self._source.schema if ";" not in name]

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


def _unpickled(state: dict[str, Any]) -> Dataset:
    dataset = object.__new__(Dataset)
    dataset.__setstate__(state)
    return dataset


def open(
    source: Any,
    fields: Mapping[str, Field] | None = None,
    *,
    in_memory: bool | Literal["decoded"] = False,
    index: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | Cache | None = None,
    header: bool | Sequence[str] | None = None,
    separator: str | None = None,
    table: bool | None = None,
    storage: Storage | None = None,
) -> Dataset:
    """Opens a data set as it lies; builds the index beside it where there is none yet.

    source: a path, a glob, braces, a list of these: shards and files of any format of ``hr.formats()``, a
        folder of class folders, a list of pictures, a CSV, a pickle or JSON-lines file. Or an xarray Dataset whose variables
        lie in files, which are read in its place.
    fields: what to make of each field; without it raw bytes, scalars and text as they lie.
    index: where ``headrace index SRC --to URL`` put the index.
    root: what the paths of a list are relative to; the list's own folder unless given.
    storage: ``hr.storage(...)``: endpoint, region and credentials of data on http(s)://, s3://, gs:// and hf://.
    header, separator, table: how a CSV, TSV or JSON-lines file is read, where its bytes leave it open. ``header``: whether
        line 1 names the columns, or their names; ``separator``: one character; ``table=True``: rows hold values, and
        name no files.
    cache: a folder on a near disk that keeps what was read, for all jobs of the machine: ``cache="/nvme/hr"``, or
        ``hr.cache(path, bytes="200GB")``.
    in_memory: reads all files of the data set, as they lie, into memory, once for all processes of a node:
        a file in /dev/shm that the first of them writes and the last removes. At most half of the memory.
        Where /dev/shm has no room each process keeps its own copy, and says so. "decoded" holds the pixels of
        pictures instead: decoded once, by the first process, and gone with the last; for small pictures.
    """
    if not isinstance(in_memory, bool) and in_memory != "decoded":
        raise UsageError(f"in_memory is True, False or 'decoded', not {in_memory!r}")
    return Dataset(
        _reading(places_of(source), header, separator, table),
        fields,
        index=index,
        root=root,
        in_memory=in_memory,
        storage=storage,
        cache=cache_of(cache),
    )
