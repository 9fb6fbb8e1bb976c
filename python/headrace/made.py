# SPDX-License-Identifier: Apache-2.0
"""Data sets whose index is made here: files, places in files, and values that the index holds itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core

#: headrace's names of NumPy's types.
DTYPES = {
    "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32", "int32": "i32",
    "uint64": "u64", "int64": "i64", "float16": "f16", "float32": "f32", "float64": "f64",
}  # fmt: skip

_KINDS = {"jpg": "jpeg", "png": "png", "webp": "webp", "npy": "npy", "json": "json", "txt": "text"}


def extension(path: str) -> str:
    """The field that a file is: its extension in lower case, ``jpeg`` as ``jpg``."""
    last = os.path.splitext(path)[1][1:].lower()
    return "jpg" if last == "jpeg" else last


def is_picture(path: str) -> bool:
    return _core.is_picture(extension(path))


@dataclass
class Made:
    """Columns on their way into a source; every column has a value, or None, for each sample."""

    format: str
    keys: list[str]
    files: list[str] = field(default_factory=list)
    fields: list[dict[str, Any]] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def _add(self, name: str, kind: str, dtype: str | None = None, shape: Sequence[int | None] = (), **where: Any) -> None:
        place = {"values": None, "file": None, "offset": None, "bytes": None}
        self.fields.append({"name": name, "kind": kind, "dtype": dtype, "shape": tuple(shape), **place, **where})

    def add_files(self, paths: Sequence[str | None]) -> None:
        """A whole file a sample, in a field for each extension."""
        names = dict.fromkeys(extension(p) or "file" for p in paths if p is not None)
        numbers = {name: np.full(len(paths), -1, np.int64) for name in names}
        for i, path in enumerate(paths):
            if path is not None:
                numbers[extension(path) or "file"][i] = len(self.files)
                self.files.append(path)
        for name, files in numbers.items():
            self._add(name, _KINDS.get(name, "bytes"), file=files)

    def add_file_column(self, name: str, paths: Sequence[str | None]) -> None:
        """A whole file a sample, in a field of this name."""
        numbers = np.full(len(paths), -1, np.int64)
        for i, path in enumerate(paths):
            if path:
                numbers[i] = len(self.files)
                self.files.append(path)
        kinds = {_KINDS.get(extension(path), "bytes") for path in paths if path}
        self._add(name, kinds.pop() if len(kinds) == 1 else "bytes", file=numbers)

    def add_rows(self, name: str, file: int, begin: int, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
        """Row i of an array that lies in a file is the value of sample i."""
        rows = len(self.keys)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        offsets = begin + np.arange(rows, dtype=np.int64) * size
        where = {"file": np.full(rows, file, np.int64), "offset": offsets, "bytes": np.full(rows, size, np.int64)}
        self._add(name, "array", DTYPES[dtype.name], shape, **where)

    def add_values(self, name: str, values: Sequence[Any]) -> None:
        """Numbers and texts."""
        kinds = {type(v) for v in values if v is not None}
        if kinds <= {int, bool}:
            self._add(name, "int", values=[None if v is None else int(v) for v in values])
        elif kinds <= {int, bool, float}:
            self._add(name, "float", values=[None if v is None else float(v) for v in values])
        else:
            self._add(name, "text", values=[None if v is None else str(v).encode() for v in values])

    def add_arrays(self, name: str, arrays: Sequence[np.ndarray[Any, Any]], shape: Sequence[int | None]) -> None:
        """An array a sample, held by the index; the first extent may vary."""
        dtype = arrays[0].dtype if arrays else np.dtype(np.float32)
        self._add(name, "array", DTYPES[dtype.name], shape, values=[np.ascontiguousarray(a).tobytes() for a in arrays])

    def source(self, root: str, name: str = "") -> _core.Source:
        """The data set; paths are relative to ``root``. Without files, which the index then holds all of, it is the file
        that they were read from."""
        return _core.make_source({**self.description(os.path.abspath(root or ".")), "name": name})

    def description(self, root: str) -> dict[str, Any]:
        return {
            "format": self.format,
            "root": root,
            "files": self.files,
            "fields": self.fields,
            "samples": len(self.keys),
            "keys": self.keys,
            "classes": self.classes,
            "notices": self.notices,
            "keep": None,
        }


def keys_of(paths: Sequence[str]) -> list[str]:
    """Paths without their extension; those that would be equal keep it."""
    stems = [os.path.splitext(p)[0] for p in paths]
    seen: dict[str, str] = {}
    twins = set()
    for stem, path in zip(stems, paths):
        if seen.setdefault(stem, path) != path:
            twins.add(stem)
    return [path if stem in twins else stem for stem, path in zip(stems, paths)]


def picture_files(paths: Sequence[str], root: str | None = None) -> Made:
    """A picture a sample, in the order of the list."""
    made = Made("files", keys_of(paths))
    made.add_files(list(paths))
    return made
