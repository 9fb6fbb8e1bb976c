# SPDX-License-Identifier: Apache-2.0
"""Columns of pandas, polars and Arrow."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dtypes import NAMES
from ..errors import UsageError
from .columns import Column, array_column, list_column


def _is(value: Any, module: str, *names: str) -> bool:
    found = sys.modules.get(module)
    return found is not None and any(isinstance(value, getattr(found, name, ())) for name in names)


def is_frame(value: Any) -> bool:
    if _is(value, "polars", "LazyFrame"):
        raise UsageError("a LazyFrame has no rows yet: give frame.collect()")
    return (
        _is(value, "pandas", "DataFrame", "Series")
        or _is(value, "polars", "DataFrame", "Series")
        or _is(value, "pyarrow", "Table")
    )


def frame_table(frame: Any) -> Mapping[str, Any]:
    """The columns of a frame by name."""
    if _is(frame, "pandas", "Series") or _is(frame, "polars", "Series"):
        return {str(frame.name if frame.name not in (None, "") else 0): frame}
    names = frame.column_names if _is(frame, "pyarrow", "Table") else list(frame.columns)
    if len({str(n) for n in names}) != len(names):
        raise UsageError("a frame has two columns of one name; rename one of them")
    return {str(name): frame[name] for name in names}


def frame_column(name: str, values: Any) -> Column | None:
    """Of a column of a frame; None of what is none."""
    if _is(values, "pandas", "Series", "Index"):
        return _pandas(name, values)
    if _is(values, "polars", "Series"):
        return _polars(name, values)
    if _is(values, "pyarrow", "Array", "ChunkedArray"):
        return _arrow(name, values)
    return None


def _polars(name: str, series: Any) -> Column:
    if str(series.dtype) == "Object":  # Arrow would have their addresses
        return list_column(name, series.to_list())
    import pyarrow as pa

    try:
        return _arrow(name, series.to_arrow())
    except (pa.ArrowException, NotImplementedError):  # a type that Arrow does not have: Int128
        return list_column(name, series.to_list())


def _pandas(name: str, series: Any) -> Column:
    dtype = series.dtype
    if type(dtype).__name__ == "PeriodDtype":
        raise _no_times(name)
    if type(dtype).__name__ == "SparseDtype":
        series = series.sparse.to_dense()
        dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind in "iufb":
            return array_column(name, series.to_numpy())
        if dtype.kind in "mM":
            raise _no_times(name)
        return list_column(name, [None if _is_missing(v) else v for v in series.tolist()])
    try:
        import pyarrow as pa
    except ImportError:
        return list_column(name, [None if _is_missing(v) else v for v in series.tolist()])
    return _arrow(name, pa.array(series, from_pandas=True))


def _is_missing(value: Any) -> bool:
    """None, NaN in a column of objects, and pandas.NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def _no_times(name: str) -> UsageError:
    return UsageError(f"column '{name}' holds times, which are no numbers: convert it, for example by .astype('int64')")


def _arrow(name: str, array: Any) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.ChunkedArray):  # more than one array can hold
        raise UsageError(f"column '{name}' is larger than one Arrow array: write it to files, and hr.open those")
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_temporal(kind):
        raise _no_times(name)
    present = np.asarray(pc.is_valid(array)).astype(np.uint8) if array.null_count else None
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        filled = array.fill_null(pa.scalar(0, kind) if not pa.types.is_boolean(kind) else False) if array.null_count else array
        return array_column(name, filled.to_numpy(zero_copy_only=False), present)
    if any(
        is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    ) or (str(kind) in ("string_view", "binary_view")):
        return _arrow_bytes(name, array, present)
    numbers = getattr(kind, "value_type", None)
    if pa.types.is_fixed_size_list(kind) and str(numbers) in _NUMBERS and not array.null_count:
        flat = array.flatten()
        if flat.null_count:  # NumPy would have NaN in their place, and no whole numbers
            return list_column(name, array.to_pylist())
        return array_column(name, flat.to_numpy(zero_copy_only=False).reshape(len(array), kind.list_size))
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and str(numbers) in _NUMBERS and not array.flatten().null_count:
        return _arrow_lists(name, array, present)
    return list_column(name, array.to_pylist())


#: Arrow's names of numbers, and NumPy's.
_NUMBERS = {"halffloat": "float16", "float": "float32", "double": "float64", **{n: n for n in NAMES if "float" not in n}}


def _arrow_bytes(name: str, array: Any, present: np.ndarray[Any, Any] | None) -> Column:
    import pyarrow as pa

    text = "string" in str(array.type)
    wide = array.cast(pa.large_string() if text else pa.large_binary())
    _, ends, data = wide.buffers()
    if wide.offset or len(wide) == 0:
        wide = pa.concat_arrays([wide])
        _, ends, data = wide.buffers()
    offsets = np.frombuffer(ends, np.uint64)[wide.offset : wide.offset + len(wide) + 1]
    values = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return Column(name, "text" if text else "bytes", len(wide), data=values, offsets=offsets, present=present)


def _arrow_lists(name: str, array: Any, present: np.ndarray[Any, Any] | None) -> Column:
    dtype = _NUMBERS[str(array.type.value_type)]
    ends = np.asarray(array.offsets).astype(np.uint64)
    values = array.values.to_numpy(zero_copy_only=False)
    size = values.dtype.itemsize
    return Column(
        name,
        "array",
        len(array),
        NAMES[dtype],
        (-1,),
        data=np.ascontiguousarray(values),
        offsets=ends * np.uint64(size),
        present=present,
    )
