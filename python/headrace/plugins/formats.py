# SPDX-License-Identifier: Apache-2.0
"""Data sets of registered formats: their samples as an index, which the engine reads by."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import DataError, NotFound, UsageError, remember
from ..made import _KINDS, Made
from .registry import Extent, Format, format_of


class SourceFile:
    """A file as the function of a format sees it: ``path``, ``size``, ``read(offset, length)``."""

    def __init__(self, path: str) -> None:
        self.path = path
        (found,) = _core.stat_all([path])
        if found is None or found[2]:
            raise NotFound(f"there is no file {path}")
        self.size: int = found[0]

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file: all of them, or an error."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise DataError(f"{self.path}: bytes {offset} to {offset + length} are asked for, and it has {self.size}")
        return bytes(_core.read_range(self.path, offset, length))


def open_registered(urls: Sequence[str]) -> _core.Source | None:
    """The data set, where its files are of a registered format."""
    paths = list(urls)
    if len(paths) == 1 and "://" not in paths[0] and os.path.isdir(paths[0]):
        inside = sorted(n for n in os.listdir(paths[0]) if not n.startswith(".") and not n.endswith(".hridx"))
        if not inside or len({format_of(n) for n in inside}) > 1:
            return None
        paths = [os.path.join(paths[0], n) for n in inside]
    form = format_of(paths[0])
    if form is None:
        return None
    if any(set("*?{[") & set(p) and ("://" in p or not os.path.exists(p)) for p in paths):
        paths = [str(p) for p in _core.expand_urls(paths)]
    for path in paths:
        if format_of(path) is not form:
            raise UsageError(f"{path!r} is no file of the format '{form.name}', and the others are; open it by itself")
    return build(form, paths)


def build(form: Format, paths: Sequence[str]) -> _core.Source:
    """The index of all files, made by the format's function; or kept since it was."""
    index = _Index(form, paths)
    places = index.places()
    if places is not None:
        kept = _core.kept_source(places, form.name)
        if kept is not None:
            return kept
    for number, path in enumerate(index.paths):
        file = SourceFile(index.whole(path))
        try:
            index.add(number, file, form.samples(file))
        except (DataError, UsageError, OSError, MemoryError):
            raise
        except Exception as e:
            remember(e)
            raise DataError(f"{path}: the function of the format '{form.name}' raised {type(e).__name__}: {e}") from e
    return index.source()


def _folder_of(paths: Sequence[str]) -> str:
    """The folder that all of them lie in, of URLs too."""
    folders = [p.split("/")[:-1] for p in paths]
    shared = folders[0]
    for folder in folders[1:]:
        same = next((i for i, (a, b) in enumerate(zip(shared, folder)) if a != b), min(len(shared), len(folder)))
        shared = shared[:same]
    return "/".join(shared)


class _Index:
    """Samples on their way into columns."""

    def __init__(self, form: Format, paths: Sequence[str]) -> None:
        self.form = form
        given = [p if "://" in p else os.path.abspath(p) for p in paths]
        self.root = _folder_of(given)
        self.paths = [p[len(self.root) + 1 :] for p in given]
        self.files: dict[str, int] = {p: i for i, p in enumerate(self.paths)}
        self.sizes: dict[str, int] = {}
        self.keys: list[str] = []
        self.columns: dict[str, dict[int, Any]] = {}

    def places(self) -> dict[str, Any] | None:
        """What the kept index is found by; None where it is not kept."""
        if self.form.version is None:
            return None
        root = self.root if "://" in self.root else os.path.abspath(self.root or "/")
        said = f"{self.form.version} {sorted(self.form.fields.items())}"
        return {"root": root, "files": self.paths, "version": said}

    def whole(self, path: str) -> str:
        return f"{self.root}/{path}"

    def add(self, number: int, file: SourceFile, samples: Iterable[Any]) -> None:
        path = self.paths[number]
        self.sizes[path] = file.size
        for found in samples:
            if (
                not isinstance(found, tuple)
                or len(found) != 2
                or not isinstance(found[0], str)
                or not isinstance(found[1], Mapping)
            ):
                raise UsageError(f"the format '{self.form.name}' yields (key, {{name: value}}) for a sample, not {found!r}")
            key, values = found
            row = len(self.keys)
            for name, value in values.items():
                if value is not None:
                    where = self.columns.setdefault(name, {})
                    where[row] = self._extent(path, key, name, value) if isinstance(value, Extent) else value
            self.keys.append(key)

    def _extent(self, path: str, key: str, name: str, extent: Extent) -> tuple[int, int, int]:
        if extent.file is not None:
            path = f"{path.rpartition('/')[0]}/{extent.file}".lstrip("/")
            if path not in self.files:
                self.files[path] = len(self.files)
                self.sizes[path] = SourceFile(self.whole(path)).size
        offset, length = int(extent.offset), int(extent.length)
        if offset < 0 or length < 0 or offset + length > self.sizes[path]:
            raise DataError(
                f"{self.whole(path)}: '{name}' of sample '{key}' is said to lie at {offset}, {length} bytes long; the file has {self.sizes[path]}"
            )
        return self.files[path], offset, length

    def source(self) -> _core.Source:
        if not self.keys:
            raise DataError(f"{self.whole(self.paths[0])}: the format '{self.form.name}' finds no sample")
        made = Made(self.form.name, self.keys)
        for name, rows in self.columns.items():
            self._column(made, name, rows)
        made.files = list(self.files)
        root = self.root if "://" in self.root else os.path.abspath(self.root or "/")
        return _core.make_source({**made.description(root), "name": "", "keep": self.places()})

    def _column(self, made: Made, name: str, rows: Mapping[int, Any]) -> None:
        inside = [isinstance(value, tuple) for value in rows.values()]
        dtype, shape = self.form.fields.get(name, (None, ()))
        if all(inside):
            places = np.full((3, len(self.keys)), -1, np.int64)
            for row, place in rows.items():
                places[:, row] = place
            kind = "array" if dtype else _KINDS.get(name.rpartition(".")[2], "bytes")
            made._add(name, kind, dtype, shape, file=places[0], offset=np.maximum(places[1], 0), bytes=np.maximum(places[2], 0))
        elif any(inside):
            raise UsageError(
                f"the format '{self.form.name}' gives field '{name}' as an Extent in some samples and as a value in others"
            )
        else:
            values = [rows.get(i) for i in range(len(self.keys))]
            if any(isinstance(v, (bytes, bytearray)) for v in values):
                made._add(name, _KINDS.get(name, "bytes"), values=[None if v is None else bytes(v) for v in values])
            else:
                made.add_values(name, values)
