# SPDX-License-Identifier: Apache-2.0
"""What data sets around Python objects are opened from."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _core
from ..dataset import Dataset
from ..errors import UsageError
from ..fields import Field
from ..messages import tell_once
from ..opening import Parts
from .columns import Column, columns_of, source_of
from .items import Items
from .learning import learn, on_thread, probed

Fields = Mapping[str, Field]


@atexit.register
def _end() -> None:
    """Before the interpreter goes."""
    remote = sys.modules.get(f"{__package__}.remote")
    if remote is not None:
        remote.close_pools()
    _core.end_item_threads()


class _Opened(Parts):
    """A source that is made once, and again where it was pickled to."""

    _source: _core.Source | None = None

    @property
    def parts(self) -> list[Dataset]:  # type: ignore[override]
        return []

    def make(self) -> _core.Source:
        raise NotImplementedError

    def open(self, fields: Fields | None) -> tuple[_core.Source, Fields | None]:
        if self._source is None:
            self._source = self.make()
            for notice in self._source.notices:
                tell_once(notice)
        return self._source, fields

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_source", "_thread", "_columns")}


class ObjectItems(_Opened):
    """Samples that an object's ``__getitem__`` makes."""

    def __init__(self, obj: Any, owner: str, fingerprint: str | None, probe: int | None, processes: int | str = 0) -> None:
        self._object, self._owner, self._said, self._probe = obj, owner, fingerprint, probe
        self._processes = processes  # "auto": chosen when it is made
        self._size = _length(obj, owner)
        self._items: Items | None = None

    def make(self) -> _core.Source:
        obj = self._object
        thread = _core.ItemThread()
        if self._items is None:
            numbers = probed(self._size, self._probe)
            self._items = on_thread(thread, lambda: learn(self._owner, obj.__getitem__, numbers))
        assert self._items is not None
        items = self._items
        classes = getattr(obj, "classes", None)
        named = isinstance(classes, (list, tuple)) and all(isinstance(c, str) for c in classes)
        many = _fetch_many(obj)
        pool = None
        processes = self._processes
        if processes == "auto":
            from .choosing import chosen_processes

            processes = on_thread(thread, lambda: chosen_processes(obj, items, self._size))
        assert isinstance(processes, int)
        if processes > 0:
            from .remote import pool_of

            thread = _core.ItemThread(processes)
            pool = pool_of(obj, items, many is not None, processes)
        return _core.item_source(
            {
                "format": "python",
                "name": self._owner,
                "samples": self._size,
                "fingerprint": ["items", self._owner, str(self._size), self._said or ""],
                "fields": items.schema(),
                "objects": items.objects,
                "classes": list(classes) if named and classes else [],
                "notices": [],
                "encoder": items.encoder(),
                "object": obj,
                "fetch_many": many,
                "processes": pool,
                "row_bytes": items.row_bytes,
                "explain": items.explain,
            },
            thread,
        )


def _fetch_many(obj: Any) -> Callable[[list[int]], Any] | None:
    """``__getitems__``, where it is more than a loop: torch's Subset has one whatever it is a part of."""
    many = getattr(obj, "__getitems__", None)
    inner = obj
    while type(inner).__module__.startswith("torch.utils.data") and type(inner).__name__ == "Subset":
        inner = inner.dataset
        if not callable(getattr(inner, "__getitems__", None)):
            return None
    return many if callable(many) else None


def _length(obj: Any, owner: str) -> int:
    try:
        size = len(obj)
    except TypeError:
        raise UsageError(f"{owner} has no length: a data set needs __len__ and __getitem__") from None
    if size == 0:
        raise UsageError(f"{owner} has no sample")
    return size


class MemoryColumns(_Opened):
    """Columns that lie in memory."""

    def __init__(self, table: Mapping[Any, Any], owner: str, fingerprint: str | None) -> None:
        self._table, self._owner, self._said = table, owner, fingerprint

    def make(self) -> _core.Source:
        columns: list[Column] = columns_of(self._table)
        return source_of(columns, self._owner, self._said)


class FilesAndColumns(_Opened):
    """A frame of which some columns name files: these are read, beside the others."""

    def __init__(self, table: Mapping[Any, Any], files: Sequence[str], root: str, owner: str, fingerprint: str | None) -> None:
        self._table, self._files, self._root, self._owner, self._said = table, files, root, owner, fingerprint

    def make(self) -> _core.Source:
        from ..made import Made, keys_of

        parts = [("columns", source_of(columns_of(self._table), self._owner, self._said))]
        for name in self._files:
            if name not in self._table:
                raise UsageError(f"files={name!r}: there is no such column; there are {', '.join(self._table)}")
            values = self._table[name]
            paths = values.to_list() if hasattr(values, "to_list") else list(values)
            given = [p if isinstance(p, (str, os.PathLike)) else None for p in paths]
            if not any(given):
                raise UsageError(f"column '{name}' names no files: it holds {type(paths[0]).__name__}")
            texts = [None if p is None else os.fspath(p) for p in given]
            made = Made("files", keys_of([t or "" for t in texts]))
            made.add_files(texts)
            parts.insert(len(parts) - 1, (name, made.source(self._root)))
        return _core.join_sources(parts)
