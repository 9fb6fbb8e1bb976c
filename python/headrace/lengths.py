# SPDX-License-Identifier: Apache-2.0
"""How long the values of a field are: counted once, and kept beside the data.

Beside the first file ``X`` of a local data set, ``X.<16 hex digits>.hrlengths``; of data on servers, and where that cannot
be written, in this user's folder of indexes. The digits name the data and the field:

    0          8           12          16         24
    +----------+-----------+-----------+----------+- - - - - - -+
    | HRLENGTH | version 1 | crc32 of  | number n | n lengths,  |
    |          | u32       | all after | u64      | u32 each    |
    +----------+-----------+-----------+----------+- - - - - - -+

Little-endian. The fingerprint of the data is among what the digits name, so other data never finds the lengths of these; of
texts and chats that are tokenised while loading, also the tokenizer's and the template's.
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

from . import _core
from .errors import UsageError
from .field import Called
from .fields import Field
from .messages import tell_once
from .tokenizing.on_the_fly import Tokens, tokens_of

if TYPE_CHECKING:
    from .dataset import Dataset

_HEAD = struct.Struct("<8sIIQ")
_MAGIC, _VERSION = b"HRLENGTH", 1
#: So many shards are counted without being asked; more are counted ahead, by the command.
MOST_SHARDS = 1000
Lengths = np.ndarray[Any, np.dtype[np.uint32]]


def lengths_of(data: Dataset, name: str, field: Field, *, ahead: bool = False) -> Lengths:
    """Of the values of ``field`` (the output ``name``) in every sample. ``ahead``: also of very many shards."""
    made_by = tokens_of(field)
    if made_by is not None and made_by.is_fixed:
        raise UsageError(f"field '{name}': fixed=True fills every sample up to max_len; leave it out")
    for place in _places(data, field):
        kept = _read(pathlib.Path(place), len(data))
        if kept is not None:
            return _cut(kept, made_by)
    found = _from_index(data, field)
    if found is None:
        if len(data._source.shards) > MOST_SHARDS and not ahead:
            where = data._urls[0] if isinstance(data._urls, list) else data._urls
            raise UsageError(
                f"the lengths of '{field.field}' in {len(data._source.shards):,} shards are not counted yet: "
                f"headrace index '{where}' --lengths {field.field}{'' if made_by is None else ' ' + made_by.options()}"
            )
        found = _counted(data, name, field)
        _keep(_places(data, field, make=True), found)
    return _cut(found, made_by)


def _cut(lengths: Lengths, made_by: Tokens | None) -> Lengths:
    """Tokens are counted as if there were no max_len, so that another one needs no counting."""
    return lengths if made_by is None else made_by.cut_lengths(lengths)


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
    counted = field._with(packing="list")
    made_by = tokens_of(field)
    if made_by is not None:
        called = Called((None,), "i64", field.called.processes, field.called.timeout, parallel=True)
        counted = counted._with(functions=[made_by.counting()], called=called)
    with Loader(data, 256, {name: counted}, **options) as loader:
        for batch in loader.epoch(0):
            out[batch.indices] = [_length(name, value) for value in batch[name]]
    return out


def _length(name: str, value: Any) -> int:
    if np.ndim(value) != 1:
        raise UsageError(f"field '{name}': values with one axis have a length, and these are of shape {np.shape(value)}")
    return len(value)


def _places(data: Dataset, field: Field, make: bool = False) -> list[str]:
    """Where the lengths are kept: beside the first file, or in this user's folder of indexes. Nowhere of views, and of data
    that pass through functions but tokenizers."""
    urls = data._urls
    made_by = tokens_of(field)
    if (field.functions and made_by is None) or field.group is not None or not isinstance(urls, list) or not urls or data._views:
        return []
    shards = data._source.shards
    if not shards:
        return []
    cuts = [params for step, params in field.steps if step == "truncate"]  # nothing else changes a length
    words = f"{data._source.fingerprint}\n{field.field}\n{cuts}\n{field.options}"
    if made_by is not None:
        words += f"\n{made_by.identity()}\n{field.default!r}"
    elif field.default is not None:  # as long as it is
        words += f"\n{np.shape(field.default)}"
    digits = hashlib.sha256(words.encode()).hexdigest()[:16]
    if "://" in urls[0]:
        return [place for place in [_core.cached_sidecar(f"{urls[0]}.{digits}.hrlengths", make)] if place]
    first = pathlib.Path(urls[0].split("#")[0])
    if any(c in urls[0] for c in "*?[{") or first.is_dir():
        first = (first if first.is_dir() else first.parent) / pathlib.Path(shards[0][0]).name
    if not first.parent.is_dir():
        return []
    beside = str(first.with_name(f"{first.name}.{digits}.hrlengths"))
    return [place for place in [beside, _core.cached_sidecar(os.path.abspath(beside), make)] if place]


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


def _keep(places: list[str], lengths: Lengths) -> None:
    """In the first of these places that can be written."""
    why = None
    for place in places:
        try:
            return _write(pathlib.Path(place), lengths)
        except OSError as e:
            why = e
    if why is not None:
        tell_once(f"the lengths are not kept, and counted again the next time: {why}")


def _write(place: pathlib.Path, lengths: Lengths) -> None:
    tail = struct.pack("<Q", len(lengths)) + lengths.astype("<u4").tobytes()
    content = _MAGIC + struct.pack("<II", _VERSION, zlib.crc32(tail)) + tail
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as f:
        f.write(content)
    os.replace(f.name, place)
