# SPDX-License-Identifier: Apache-2.0
"""Map-style data sets: ``ds = hr.open("train-{0000..0007}.tar"); ds[3]``."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import headrace as hr  # for annotations: hr.Cache is imported by whoever resolves them

from . import _core
from .checks import whole
from .errors import UsageError
from .fields import Field
from .opening import apply_view, cache_of, class_names, open_data
from .requests import FROM_ENGINE, ask, delivered, finished, masks, tell_of_missing
from .source_paths import places_of, reading
from .storage import Storage, using
from .stored_names import renamed_fields, stored_names
from .views import Views

#: What people call the number of a sample's class, the usual one first.
LABELS = ("cls", "label", "labels", "class", "target", "y")


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
        cache: hr.Cache | None = None,
    ) -> None:
        self._cache = cache
        self._urls, self._given, self._index, self._root, self._views = urls, fields, index, root, views
        self._in_memory, self._storage = in_memory, storage
        with using(storage, urls, index, once=True):
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
        values = self._core.at(n, [FROM_ENGINE.get(how, how) for _, how in self._finishes])
        for (name, how), value in zip(self._finishes, values):
            if how == "hidden":  # goes into a function
                continue
            if value is not None:
                out[name] = finished(value, how) if how in FROM_ENGINE else value
            elif name in self._masks:
                out[name] = None
        for name, is_there in zip(self._masks, values[len(self._finishes) :]):
            if (name, "hidden") in self._finishes:
                continue
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
        with using(self._storage):
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
            raise UsageError("make views first and weights last: hr.weighted(ds.where(…), weights)")
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
    def unused_tokens(self) -> int:
        """Of windows of tokens: how many tokens at the ends of the files are too few for one more window, and in none."""
        from .tokens import unused_tokens

        return unused_tokens(self._source, self._fields)

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
    cache: str | os.PathLike[str] | hr.Cache | None = None,
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
        reading(places_of(source), header, separator, table),
        fields,
        index=index,
        root=root,
        in_memory=in_memory,
        storage=storage,
        cache=cache_of(cache),
    )
