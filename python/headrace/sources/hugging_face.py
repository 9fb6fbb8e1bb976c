# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's ``datasets.Dataset``: its Arrow files, read by the engine, where it is made of such as they lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dataset import Dataset
from ..dataset import open as open_dataset
from ..errors import Unsupported, UsageError
from ..fields import Field
from ..messages import tell_once


def _in_python(why: str) -> None:
    tell_once(f"this Dataset of Hugging Face's is read through its own __getitems__, in Python: {why}")


def from_hugging_face(obj: Any, fields: Mapping[str, Field] | None) -> Dataset | None:
    """The data set in its files; None where only its own code knows its samples."""
    if isinstance(obj, dict):
        raise UsageError(
            f"this is a DatasetDict: give one of its splits, ds[{next(iter(obj), 'train')!r}]; it has {', '.join(obj)}"
        )
    if type(obj).__name__ != "Dataset":
        return None  # an IterableDataset: a stream
    given = obj.format
    if given["type"] is not None or list(given["columns"]) != list(obj.column_names):
        _in_python(f"it has a format or a transform ({given['type'] or 'some of its columns'})")
        return None
    from datasets.table import list_table_cache_files  # type: ignore[import-untyped,import-not-found,unused-ignore]

    files = list_table_cache_files(obj.data)  # not obj.cache_files: those of an indices mapping are among them
    opened = _in_files(obj, files, fields) if files else _in_memory(obj, fields)
    if opened is None or obj._indices is None:
        return opened
    return opened[np.asarray(obj._indices.column(0)).astype(np.int64)]  # as select, shuffle and filter left it


def _in_files(obj: Any, files: list[str], fields: Mapping[str, Field] | None) -> Dataset | None:
    if _rows_in(files, obj.data.schema) != obj.data.num_rows:
        _in_python("its rows or columns are not those of its files; ds.save_to_disk() makes it so")
        return None
    try:
        return open_dataset(files, fields)
    except Unsupported as e:
        _in_python(str(e))
        return None


def _in_memory(obj: Any, fields: Mapping[str, Field] | None) -> Dataset | None:
    from .frames import frame_table
    from .parts import MemoryColumns

    if not all(type(feature).__name__ in ("Value", "ClassLabel") for feature in obj.features.values()):
        _in_python("it lies in memory, and its features are more than numbers and texts; ds.save_to_disk() puts it into files")
        return None
    return Dataset(MemoryColumns(frame_table(obj.data.table), "Dataset", None), fields)


def _rows_in(files: list[str], schema: Any) -> int:
    """Samples of all files; -1 where one has other columns than the data set: renamed, cast or removed since."""
    import pyarrow as pa

    rows = 0
    for name in files:
        with pa.memory_map(name) as mapped:
            try:
                reader = pa.ipc.open_stream(mapped)
            except pa.ArrowInvalid:
                return -1
            if not reader.schema.equals(schema, check_metadata=False):
                return -1
            rows += sum(batch.num_rows for batch in reader)
    return rows
