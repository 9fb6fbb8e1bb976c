# SPDX-License-Identifier: Apache-2.0
"""From places to data: which format, layout or library opens them."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .checks import path
from .errors import DataError, Unsupported, UsageError
from .fields import ArrayField, Field
from .index_progress import IndexProgress
from .messages import tell_once
from .source_paths import as_list
from .stored_names import with_columns

if TYPE_CHECKING:
    from .caching import Cache
    from .dataset import Dataset

_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1024
_LOOKED_AT = 64

#: Of which fields say what a sample is.
ARRAY_FORMATS = ("hdf5", "netcdf", "npy", "zarr")


#: Of URLs that end so nothing else is looked for: what recognises files of arrays takes 3 ms to import.
RECORD_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".parquet", ".arrow", ".tfrecord", ".jpg", ".jpeg", ".png")


def _are_arrays(urls: Sequence[str], fields: Mapping[str, Field] | None) -> bool:
    asked = isinstance(fields, Mapping) and any(isinstance(f, ArrayField) for f in fields.values())
    if not asked and all("://" in u and u.rstrip("}").endswith(RECORD_SUFFIXES) for u in urls):
        return False
    from .arrays.files import are_arrays

    return are_arrays(urls, fields)


class Parts(abc.ABC):
    """What a data set that is made of others is opened from, in the place of paths."""

    parts: list[Dataset]

    @abc.abstractmethod
    def open(self, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]: ...


def open_source(
    urls: list[str], index: Any = None, root: Any = None, in_memory: bool | str = False, cache: Cache | None = None
) -> _core.Source:
    from .hub import resolved
    from .layouts import recognise, refuse_misread

    made = None
    if index is None:
        urls = resolved(urls)
        made = recognise(urls, None if root is None else os.fspath(root))
    if root is not None:
        urls = [as_list(url) for url in urls]
    if made is not None:
        source = with_cache(made, cache)
    else:
        progress = IndexProgress()
        try:
            source = _core.open_source(urls, path(index, "index"), path(root, "root"), progress, _cache_options(cache))
        finally:
            progress.end()
        refuse_misread(source, urls)
    if in_memory == "decoded":
        from .decoded import open_decoded

        source = open_decoded(source)
    elif in_memory:
        source = _core.hold(source)
    tell_of_cache(source)
    for notice in source.notices:
        tell_once(notice)
    return source


def refuse_pointers(urls: list[str]) -> None:
    """A clone without Git LFS has small texts in the place of the data; a table of such a text would even open."""
    for url in urls[:_LOOKED_AT]:
        file = url.partition("#")[0] if "#" in url and not os.path.exists(url) else url
        if not os.path.isfile(file) or os.path.getsize(file) > _POINTER_BYTES:
            continue
        with open(file, "rb") as f:
            if f.read(len(_POINTER)) == _POINTER:
                raise DataError(f"{file}: a pointer of Git LFS in the place of the data; run 'git lfs pull' in the repository")


def cache_of(value: Any) -> Cache | None:
    """What was given as ``cache=``."""
    if value is None:
        return None
    from .caching import Cache, cache

    return value if isinstance(value, Cache) else cache(value)


def _cache_options(value: Cache | None) -> _core.CacheOptions | None:
    if value is None:
        return None
    return _core.CacheOptions(value.path, value.bytes or 0, -1 if value.keep_free is None else value.keep_free)


def tell_of_cache(source: _core.Source) -> None:
    """Says what the cache of a data set has to say: that it is full, that its disk is."""
    for notice in source.cache_notices():
        tell_once(notice)


def with_cache(source: _core.Source, cache: Cache | None) -> _core.Source:
    """The same data, read through the cache folder."""
    options = _cache_options(cache)
    if options is None:
        return source
    source = source.cached(options)
    tell_of_cache(source)
    return source


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
    from .tokens import open_windows, wants_windows

    if isinstance(urls, Parts):
        return with_columns(*urls.open(fields))
    if isinstance(urls, list):
        refuse_pointers(urls)
    if wants_windows(fields) and fields is not None:
        source = with_cache(open_windows(urls, fields, index), cache)
        if root is not None or in_memory == "decoded":
            raise UsageError("root= and in_memory='decoded' are not for files of tokens")
        if in_memory:
            source = _core.hold(source)
        for notice in source.notices:
            tell_once(notice)
        return source, fields
    if not isinstance(urls, Sequence):  # an xarray Dataset, as arrays.xarray.Traced
        from .arrays.open import open_arrays  # what most never need takes 9 ms
        from .arrays.xarray import XarrayCube

        source, fields = open_arrays(XarrayCube(urls), fields)
    elif not _are_arrays(urls, fields):
        for name, field in fields.items() if isinstance(fields, Mapping) else ():
            if isinstance(field, ArrayField) and (field.windows or len(field.variables) > 1):
                said = ", ".join(field.windows) or "several names"
                raise UsageError(
                    f"field '{name}': {said} are for files of arrays (HDF5, NetCDF, Zarr, npy; npz with along='file'), which {urls[0]!r} is not"
                )
        return with_columns(open_source(list(urls), index, root, in_memory, cache), fields)
    else:
        from .arrays.open import open_arrays

        source, fields = open_arrays(urls, fields, path(index, "index") if index is not None else None)
    if root is not None:
        raise Unsupported("root= is for lists of files and COCO; leave it out for files of arrays")
    if in_memory == "decoded":
        raise UsageError("in_memory='decoded' is for pictures; for arrays say in_memory=True")
    source = with_cache(source, cache)
    if in_memory:
        source = _core.hold(source)
    for notice in source.notices:
        tell_once(notice)
    return with_columns(source, fields)


def class_names(source: _core.Source, urls: Any) -> list[str]:
    from .labels import hugging_face_classes, packed_classes

    return list(source.classes) or packed_classes(urls) or hugging_face_classes(source, urls)
