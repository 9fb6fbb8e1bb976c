# SPDX-License-Identifier: Apache-2.0
"""Zarr, versions 2 and 3, in local folders: the metadata are parsed here; the engine finds the chunks, which are files."""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import DataError, Unsupported
from .model import Listed, Stored, choose_group, grid_of, is_big, number_type, plain_attributes
from .values import join_values

_PLAIN = {"zlib": "zlib", "gzip": "gzip", "lz4": "lz4", "zstd": "zstd", "blosc": "blosc", "crc32c": "crc32c"}
MOST_METADATA = 64 << 20


def is_zarr(path: str) -> bool:
    return any(os.path.isfile(os.path.join(path, name)) for name in ("zarr.json", ".zarray", ".zgroup"))


def _json(path: str) -> Any:
    try:
        if os.path.getsize(path) > MOST_METADATA:
            raise DataError(f"{path} has more than {MOST_METADATA} bytes")
        with open(path, "rb") as f:
            return json.loads(f.read())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as e:
        raise DataError(f"{path} is not JSON: {e}") from None


def zarr_arrays(path: str, group: str) -> list[Stored]:
    """The arrays of one group of the folder."""
    path = os.path.abspath(path)
    if group and _is_array(os.path.join(path, group)):
        return [_array(os.path.join(path, group))]
    if _is_array(path):
        only = _array(path)
        only.name = "data"  # the folder's name says nothing of it
        return [only]
    groups: dict[str, list[str]] = {}
    for folder in _array_folders(path):
        above = os.path.relpath(os.path.dirname(folder), path)
        groups.setdefault("" if above == "." else above, []).append(folder)
    return join_values([_array(folder) for folder in groups[choose_group(path, group, groups)]])


def _array_folders(path: str) -> Iterator[str]:
    """Those below the folder, in the order of their names. They are not listed themselves: they may have a million chunks."""
    left = [path]
    while left:
        folder = left.pop()
        if folder != path and _is_array(folder):
            yield folder
            continue
        try:
            with os.scandir(folder) as entries:
                below = sorted(e.path for e in entries if e.is_dir(follow_symlinks=False))
        except OSError:  # lost+found and the like: who misses an array is told which there are
            continue
        left += reversed(below)


def _is_array(folder: str) -> bool:
    if os.path.isfile(os.path.join(folder, ".zarray")):
        return True
    found = _json(os.path.join(folder, "zarr.json"))
    return isinstance(found, dict) and found.get("node_type") == "array"


def _array(folder: str) -> Stored:
    try:
        second = _json(os.path.join(folder, ".zarray"))
        if second is not None:
            out = _version2(folder, second, _json(os.path.join(folder, ".zattrs")) or {})
        else:
            out = _version3(folder, _json(os.path.join(folder, "zarr.json")))
    except (KeyError, TypeError, ValueError, AttributeError, struct.error) as e:
        raise DataError(f"the metadata of {folder} are not as Zarr has them: {type(e).__name__}: {e}") from None
    if not out.name.isprintable() and any("\udc80" <= c <= "\udcff" for c in out.name):
        out.why = "the name of its folder is not UTF-8"
    return out


def _fill(value: Any, dtype: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, str) and value.startswith("0x"):
        return int(value, 16).to_bytes(dtype.itemsize, "big" if is_big(dtype) else "little")
    words = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    return np.array(words.get(value, value) if isinstance(value, str) else value).astype(dtype).tobytes()


def _step(folder: str, codec: dict[str, Any], dtype: Any) -> tuple[str, int]:
    """A codec of either version as a filter of ours."""
    name = str(codec.get("id") or codec["name"]).removeprefix("numcodecs.")
    options = codec.get("configuration", codec)
    if name in _PLAIN:
        return _PLAIN[name], 0
    if name == "shuffle":
        return "shuffle", int(options.get("elementsize", dtype.itemsize))
    if name == "delta":
        before, after = np.dtype(options["dtype"]), np.dtype(options.get("astype") or options["dtype"])
        names = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"]
        if before == after and number_type(before) and not (is_big(before) and before.itemsize > 1):
            return "delta", names.index(number_type(before))
    raise Unsupported(
        f"{folder}: chunks went through '{name}' as {json.dumps(options)[:200]}, which is not read; known are "
        f"{', '.join(_PLAIN)}, shuffle, delta"
    )


def _version2(folder: str, meta: dict[str, Any], attributes: dict[str, Any]) -> Stored:
    name, shape, chunk = os.path.basename(folder), tuple(meta["shape"]), tuple(meta["chunks"])
    dims = attributes.get("_ARRAY_DIMENSIONS") or [f"axis{i}" for i in range(len(shape))]
    out = Listed(name, tuple(dims), shape, chunk)
    dtype = np.dtype(meta["dtype"]) if isinstance(meta["dtype"], str) else np.dtype("V1")
    out.dtype, out.big_endian, out.fortran = number_type(dtype), is_big(dtype), meta.get("order") == "F"
    if not out.dtype:
        out.why = f"its type is {meta['dtype']}; numbers are wanted"
        return out
    out.fill = _fill(meta.get("fill_value"), dtype)
    try:
        out.filters = [_step(folder, c, dtype) for c in [*(meta.get("filters") or []), *filter(None, [meta.get("compressor")])]]
    except Unsupported as e:
        out.why = str(e)
        return out
    separator = meta.get("dimension_separator", ".")
    _find_later(folder, out, "", separator)
    fill = meta.get("fill_value")
    # xarray keeps a missing value as the fill value alone; 0 in floats is what zarr-python writes where nobody said anything.
    if {"scale_factor", "add_offset"} & set(attributes) or ("_ARRAY_DIMENSIONS" in attributes and fill != 0):
        attributes = {"_FillValue": fill, **attributes}
    out.unpack_by(attributes)
    return out


def _version3(folder: str, meta: dict[str, Any]) -> Stored:
    name, shape = os.path.basename(folder), tuple(meta["shape"])
    if meta["chunk_grid"]["name"] != "regular":
        return Stored(name, (), why=f"its chunk grid is {meta['chunk_grid']['name']!r}; regular ones are read")
    chunk = tuple(meta["chunk_grid"]["configuration"]["chunk_shape"])
    dims = meta.get("dimension_names") or [None] * len(shape)
    attributes = meta.get("attributes") or {}
    dims = attributes.get("_ARRAY_DIMENSIONS", dims)
    out = Listed(name, tuple(d or f"axis{i}" for i, d in enumerate(dims)), shape, chunk)
    if not isinstance(meta["data_type"], str):
        out.why = f"its type is {meta['data_type']}; numbers are wanted"
        return out
    try:
        dtype = np.dtype(meta["data_type"])
    except TypeError:
        dtype = np.dtype("V1")
    out.dtype = number_type(dtype)
    if not out.dtype:
        out.why = f"its type is {meta['data_type']}; numbers are wanted"
        return out
    encoding = meta["chunk_key_encoding"]
    separator = (encoding.get("configuration") or {}).get("separator", "/" if encoding["name"] == "default" else ".")
    lead = "c" if encoding["name"] == "default" else ""
    try:
        shard = _codecs3(folder, out, meta["codecs"], dtype)
    except Unsupported as e:
        out.why = str(e)
        return out
    out.fill = _fill(meta.get("fill_value"), dtype.newbyteorder(">" if out.big_endian else "<"))
    _find_later(folder, out, lead, separator, shard)
    out.unpack_by(_missing3(attributes))
    return out


def _missing3(attributes: dict[str, Any]) -> dict[str, Any]:
    """xarray writes the missing value of floats as the base64 of a little-endian double."""
    words = attributes.get("_FillValue")
    if isinstance(words, str):
        raw = base64.b64decode(words)
        attributes = {**attributes, "_FillValue": struct.unpack("<d", raw)[0] if len(raw) == 8 else None}
    return attributes


def _codecs3(folder: str, out: Stored, codecs: list[dict[str, Any]], dtype: Any) -> dict[str, Any] | None:
    """Sets filters and orders; gives the configuration of shards where there are some."""
    for codec in codecs:
        name, options = codec["name"], codec.get("configuration") or {}
        if name == "sharding_indexed":
            if len(codecs) > 1:
                raise Unsupported(f"{folder}: shards within another codec are not read")
            if _codecs3(folder, out, options["codecs"], dtype):
                raise Unsupported(f"{folder}: shards within shards are not read")
            return options
        if name == "bytes":
            out.big_endian = options.get("endian") == "big"
        elif name == "transpose":
            order, axes = options["order"], list(range(len(out.shape)))
            if order not in (axes, axes[::-1], "C", "F"):
                raise Unsupported(f"{folder}: chunks transposed by {order} are not read; C and F order are")
            out.fortran = order in (axes[::-1], "F") and len(axes) > 1
        else:
            out.filters.append(_step(folder, codec, dtype))
    return None


def _find_later(folder: str, out: Listed, lead: str, separator: str, shard: dict[str, Any] | None = None) -> None:
    """Sets what finds the files that are chunks of the grid, or shards of them."""
    from .. import _core

    if separator not in (".", "/"):
        raise ValueError(f"the parts of chunk keys are joined by {separator!r}; '.' and '/' are known")
    grid = grid_of(out.name, out.shape, out.chunk)
    form = _open_shards(out, shard) if shard else None
    out.finder = lambda: _core.zarr_chunks(os.fsencode(folder), list(grid), lead, separator, form)


def _open_shards(out: Listed, options: dict[str, Any]) -> tuple[list[int], list[int], bool, bool] | None:
    """Chunks within shards: each shard's index says where they lie."""
    inner = tuple(options["chunk_shape"])
    if len(inner) != len(out.shape) or any(i < 1 or o % i for i, o in zip(inner, out.chunk)):
        raise DataError(f"'{out.name}' has shards of {out.chunk} that do not divide into chunks of {inner}")
    codecs = [c["name"] for c in options.get("index_codecs", [])]
    if codecs not in (["bytes", "crc32c"], ["bytes"]):
        out.why = f"the index of its shards is stored as {codecs}, which is not read"
        return None
    per_shard = [o // i for i, o in zip(inner, out.chunk)]
    out.chunk = inner
    return (
        per_shard,
        list(grid_of(out.name, out.shape, inner)),
        options.get("index_location", "end") == "start",
        "crc32c" in codecs,
    )


def zarr_attributes(path: str, group: str) -> dict[str, Any]:
    """Of the group itself."""
    folder = os.path.join(path, group)
    if _is_array(folder):
        return {}
    third = _json(os.path.join(folder, "zarr.json"))
    found = third.get("attributes") if isinstance(third, dict) else _json(os.path.join(folder, ".zattrs"))
    return plain_attributes(found) if isinstance(found, dict) else {}
