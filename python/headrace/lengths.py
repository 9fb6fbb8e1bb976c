# SPDX-License-Identifier: Apache-2.0
"""How long the values of a field are: counted once, and kept beside the data.

Beside the first file ``X`` of a local data set, ``X.<16 hex digits>.hrlengths``; the digits name the data and the field:

    0          8           12          16         24
    +----------+-----------+-----------+----------+- - - - - - -+
    | HRLENGTH | version 1 | crc32 of  | number n | n lengths,  |
    |          | u32       | all after | u64      | u32 each    |
    +----------+-----------+-----------+----------+- - - - - - -+

Little-endian. The fingerprint of the data is among what the digits name, so other data never finds the lengths of these.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import struct
import tempfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import UsageError
from .fields import Field
from .messages import tell_once

if TYPE_CHECKING:
    from .dataset import Dataset

_HEAD = struct.Struct("<8sIIQ")
_MAGIC, _VERSION = b"HRLENGTH", 1
#: So many shards are counted without being asked; more are counted ahead, by the command.
MOST_SHARDS = 1000
Lengths = np.ndarray[Any, np.dtype[np.uint32]]


def lengths_of(data: Dataset, name: str, field: Field, *, ahead: bool = False) -> Lengths:
    """Of the values of ``field`` (the output ``name``) in every sample. ``ahead``: also of very many shards."""
    place = _place(data, field)
    kept = None if place is None else _read(place, len(data))
    if kept is not None:
        return kept
    found = _from_index(data, field)
    if found is None:
        if len(data._source.shards) > MOST_SHARDS and not ahead:
            where = data._urls[0] if isinstance(data._urls, list) else data._urls
            raise UsageError(
                f"the lengths of '{field.field}' in {len(data._source.shards):,} shards are not counted yet: "
                f"headrace index '{where}' --lengths {field.field}"
            )
        found = _counted(data, name, field)
        if place is not None:
            _write(place, found)
    return found


def _from_index(data: Dataset, field: Field) -> Lengths | None:
    """Where the index knows the sizes of the values; steps that change a length are followed."""
    if field.functions or field.what not in ("tokens", "array") or field.options.get("shape") is not None:
        return None
    if field.default is not None or field.optional or field.group is not None:
        return None
    found = data._source.value_lengths(field.field)
    if found is None:
        return None
    out = np.asarray(found, np.uint32)
    for step, params in field.steps:
        if step == "truncate":
            out = np.minimum(out, np.uint32(min(params["length"], (1 << 32) - 1)))
    return out


def _counted(data: Dataset, name: str, field: Field) -> Lengths:
    from .loader import Loader

    out = np.zeros(len(data), np.uint32)
    options: dict[str, Any] = {"shuffle": False, "tail": "keep", "rank": 0, "world_size": 1, "output": "numpy"}
    with Loader(data, 256, {name: field._with(packing="list")}, **options) as loader:
        for batch in loader.epoch(0):
            out[batch.indices] = [_length(name, value) for value in batch[name]]
    return out


def _length(name: str, value: Any) -> int:
    if np.ndim(value) != 1:
        raise UsageError(f"field '{name}': values with one axis have a length, and these are of shape {np.shape(value)}")
    return len(value)


def _place(data: Dataset, field: Field) -> pathlib.Path | None:
    """Where the lengths are kept; nowhere of data that are not plain local files, or pass through functions."""
    urls = data._urls
    if field.functions or field.group is not None or not isinstance(urls, list) or not urls or data._views:
        return None
    shards = data._source.shards
    first = pathlib.Path(urls[0].split("#")[0])
    if "://" in urls[0] or not shards:
        return None
    if any(c in urls[0] for c in "*?[{") or first.is_dir():
        first = (first if first.is_dir() else first.parent) / pathlib.Path(shards[0][0]).name
    if not first.parent.is_dir():
        return None
    cuts = [params for step, params in field.steps if step == "truncate"]  # nothing else changes a length
    words = f"{data._source.fingerprint}\n{field.field}\n{cuts}\n{field.options}"
    return first.with_name(f"{first.name}.{hashlib.sha256(words.encode()).hexdigest()[:16]}.hrlengths")


def _read(place: pathlib.Path, samples: int) -> Lengths | None:
    try:
        content = place.read_bytes()
    except OSError:
        return None
    if len(content) != _HEAD.size + 4 * samples:
        return None
    magic, version, crc, count = _HEAD.unpack_from(content)
    if magic != _MAGIC or version != _VERSION or count != samples or crc != zlib.crc32(content[16:]):
        tell_once(f"{place} is damaged: the lengths are counted again")
        return None
    return np.frombuffer(content, np.dtype("<u4"), samples, _HEAD.size).astype(np.uint32)


def _write(place: pathlib.Path, lengths: Lengths) -> None:
    tail = struct.pack("<Q", len(lengths)) + lengths.astype("<u4").tobytes()
    content = _MAGIC + struct.pack("<II", _VERSION, zlib.crc32(tail)) + tail
    try:
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as f:
            f.write(content)
        os.replace(f.name, place)
    except OSError as e:  # a folder that is only read: they are counted again the next time
        tell_once(f"the lengths are not kept beside the data: {e}")
