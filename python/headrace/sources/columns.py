# SPDX-License-Identifier: Apache-2.0
"""Arrays and dicts of columns: row i of each is what sample i has. The engine reads them where they lie.

Numbers and arrays are not copied, as long as a row's elements lie one after the other; texts, bytes and objects of
lists are put side by side once, when the data set is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core
from ..dtypes import NAMES
from ..errors import UsageError
from .items import Value, as_array, as_float, both, convert, describe, dtype_of, is_tensor, numbers_as

_LENT = 512  # bytes: longer rows are lent to the engine, and follow each other (index/memory_source.h)
_MUCH = 64 << 20


@dataclass
class Column:
    """One field, and where its rows lie."""

    name: str
    kind: str
    rows: int
    dtype: str | None = None
    shape: tuple[int, ...] = ()
    data: np.ndarray[Any, Any] | None = None
    row_bytes: int = 0
    stride: int = 0
    offsets: np.ndarray[Any, Any] | None = None
    present: np.ndarray[Any, Any] | None = None
    is_object: bool = False
    notices: list[str] = field(default_factory=list)

    def description(self) -> dict[str, Any]:
        def address(array: np.ndarray[Any, Any] | None) -> int:
            return 0 if array is None else int(array.ctypes.data)

        return {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype,
            "shape": self.shape,
            "data": address(self.data),
            "row_bytes": self.row_bytes,
            "stride": self.stride,
            "offsets": address(self.offsets),
            "present": address(self.present),
            "keep": (self.data, self.offsets, self.present),
        }


def array_column(name: str, values: Any, present: np.ndarray[Any, Any] | None = None) -> Column:
    """Of a NumPy array or a tensor: rows along its first axis."""
    array = as_array(values)
    if array is None:
        if isinstance(values, np.ndarray) and values.ndim == 1:
            return list_column(name, values.tolist())
        raise UsageError(f"column '{name}' is an array of {values.dtype}, which headrace has no type for: convert it to numbers")
    if array.ndim == 0:
        raise UsageError(f"column '{name}' is a single number; a column has a row for each sample")
    dtype = dtype_of(values, array)
    out = Column(name, "array", len(array), NAMES[dtype], array.shape[1:], present=present)
    if array.ndim == 1 and dtype != "bfloat16":
        too_large = array.dtype == np.uint64 and array.size > 0 and int(array.max()) >= 1 << 63
        if array.dtype.kind in "iu" and not too_large:
            out.kind = "int"
        elif dtype == "float64":
            out.kind = "float"
    out.row_bytes = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    inside = array[:1].size == 0 or array[0].flags.c_contiguous
    follow = len(array) < 2 or array.strides[0] == out.row_bytes
    if not inside or (out.row_bytes > _LENT and not follow):
        if array.nbytes > _MUCH:
            out.notices.append(
                f"column '{name}': its rows do not lie one after the other in memory: it was copied, {array.nbytes >> 20} MiB"
            )
        array = np.ascontiguousarray(array)
    out.data = array
    out.stride = array.strides[0] if len(array) > 1 else out.row_bytes
    return out


def _as_numbers(name: str, values: Sequence[Any], form: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
    if form == "float":
        values = [None if v is None else as_float(v, name) for v in values]
    numbers = np.array([0 if v is None else v for v in values], np.int64 if form == "int" else np.float64)
    missing = any(v is None for v in values)
    return numbers, np.array([v is not None for v in values], np.uint8) if missing else None


def list_column(name: str, values: Sequence[Any]) -> Column:
    """Of any values: one after the other in memory of our own."""
    kind: Value | None = None
    for value in values:
        kind = both(kind, describe(value))
    wanted = Value("object") if kind is None or kind == Value("list") else kind  # empty lists alone say nothing
    if wanted.form in ("int", "float"):
        return array_column(name, *_as_numbers(name, values, wanted.form))
    if wanted.form == "list":
        return _number_lists(name, values, wanted.dtype)
    encoded = [convert(value, name, wanted) for value in values]
    return blob_column(name, wanted, encoded)


def _number_lists(name: str, values: Sequence[list[Any] | None], dtype: str) -> Column:
    encoded = [None if value is None else numbers_as(value, name, dtype).tobytes() for value in values]
    return blob_column(name, Value("array", dtype, (-1,)), encoded)


def blob_column(name: str, wanted: Value, encoded: Sequence[bytes | None]) -> Column:
    offsets = np.zeros(len(encoded) + 1, np.uint64)
    np.cumsum([len(b) if b is not None else 0 for b in encoded], out=offsets[1:])
    data = np.frombuffer(b"".join(b for b in encoded if b is not None), np.uint8)
    missing = any(b is None for b in encoded)
    return Column(
        name,
        {"object": "bytes"}.get(wanted.form, wanted.form),
        len(encoded),
        NAMES[wanted.dtype] if wanted.form == "array" else None,
        wanted.shape,
        data=data,
        offsets=offsets,
        present=np.array([b is not None for b in encoded], np.uint8) if missing else None,
        is_object=wanted.form == "object",
    )


def column_of(name: str, values: Any) -> Column:
    """Of whatever a dict of columns holds."""
    if isinstance(values, np.ndarray) or is_tensor(values):
        return array_column(name, values)
    from .frames import frame_column

    column = frame_column(name, values)
    if column is not None:
        return column
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise UsageError(
            f"column '{name}' is a {type(values).__name__}; an array, a tensor or a list with a row for each sample is wanted"
        )
    return list_column(name, values)


def columns_of(table: Mapping[Any, Any]) -> list[Column]:
    if not table:
        raise UsageError("a dict of columns is empty")
    out = []
    for name, values in table.items():
        if not isinstance(name, str) or not name or ";" in name:
            raise UsageError(f"the name of a column is a text without ';', not {name!r}")
        out.append(column_of(name, values))
    rows = {column.name: column.rows for column in out}
    if len(set(rows.values())) > 1:
        said = ", ".join(f"'{name}' {count}" for name, count in rows.items())
        raise UsageError(f"columns have a row for each sample, all equally many; these have {said}")
    return out


def source_of(columns: Sequence[Column], owner: str, fingerprint: str | None, notices: Sequence[str] = ()) -> _core.Source:
    """The data set of the columns."""
    rows = columns[0].rows
    if rows == 0:
        raise UsageError(f"{owner} has no sample")
    shapes = [f"{c.name}:{c.kind}:{c.dtype}:{list(c.shape)}" for c in columns]
    return _core.column_source(
        {
            "format": "memory",
            "name": owner,
            "samples": rows,
            "fingerprint": ["columns", owner, str(rows), *shapes, fingerprint or ""],
            "fields": [c.description() for c in columns],
            "objects": [c.name for c in columns if c.is_object],
            "classes": [],
            "notices": [*notices, *(n for c in columns for n in c.notices)],
        }
    )
