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
    blocks = _blocks(obj.data)
    mapped = [block for row in blocks for block in row if hasattr(block, "path")]
    opened = _in_files(blocks, obj.data.schema, fields) if mapped else _in_memory(obj, fields)
    if opened is None or obj._indices is None:
        return opened
    return opened[np.asarray(obj._indices.column(0)).astype(np.int64)]  # as select, shuffle and filter left it


def _blocks(table: Any) -> list[list[Any]]:
    """The parts of a table: below each other, and in each row those beside each other."""
    return list(table.blocks) if hasattr(table, "blocks") else [[table]]


#: What may have been done to a mapped file without another value in it; a slice of all rows is one too.
_HARMLESS = {"replace_schema_metadata", "combine_chunks", "slice"}


def _in_files(blocks: list[list[Any]], schema: Any, fields: Mapping[str, Field] | None) -> Dataset | None:
    changed = "its rows or columns are not those of its files; ds.save_to_disk() makes it so"
    files = []
    for row in blocks:
        block = row[0]
        done = {replay[0] for replay in getattr(block, "replays", [("unknown",)])}
        # Each file whole, and nothing from memory beside or between.
        if len(row) != 1 or not done <= _HARMLESS or _rows_in(block.path, schema) != block.num_rows:
            _in_python(changed)
            return None
        files.append(block.path)
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


def _rows_in(name: str, schema: Any) -> int:
    """Samples of a file; -1 where it has other columns than the data set: renamed, cast or removed since."""
    import pyarrow as pa

    with pa.memory_map(name) as mapped:
        try:
            reader = pa.ipc.open_stream(mapped)
        except pa.ArrowInvalid:
            return -1
        if not reader.schema.equals(schema, check_metadata=False):
            return -1
        return sum(batch.num_rows for batch in reader)
