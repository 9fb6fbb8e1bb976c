# SPDX-License-Identifier: Apache-2.0
"""Zarr, versions 2 and 3, in folders and zips: the metadata are parsed here; the engine finds the chunks, which are files."""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from .. import _core
from ..errors import DataError, Unsupported
from .groups import in_group
from .model import Listed, Stored, grid_of, plain_attributes
from .stored_files import absolute, base, is_file, is_url, join, parent, relative
from .values import join_values
from .zarr_python import through_zarr, zarr_texts
from .zarr_types import fill_bytes, filter_step, take_fill, take_scaled, take_type, type_of3
from .zarr_zip import ZipTree

MOST_METADATA = 64 << 20


class StoreTree:
    """A store that is a folder, wherever it lies: its metadata, read by the engine."""

    def __init__(self, path: str) -> None:
        self.root = path
        self._texts, consolidated, self.looked_at = _core.zarr_documents(path)
        self._documents: dict[str, Any] = {}
        if consolidated:
            self._documents = _unfolded(join(path, consolidated), self._texts.pop(consolidated))

    def document(self, path: str) -> Any:
        """Parsed; None where there is none."""
        name = relative(path, self.root)
        if name not in self._documents and name in self._texts:
            self._documents[name] = _parsed(path, self._texts[name])
        return self._documents.get(name)

    def folders(self) -> list[str]:
        """Those of metadata, in the order of their names."""
        found = {n.rpartition("/")[0] for n in (*self._texts, *self._documents)}
        return [join(self.root, n) if n else self.root for n in sorted(found, key=lambda n: n.split("/"))]

    def chunks(self, folder: str, grid: Sequence[int], lead: str, separator: str, form: Any) -> tuple[Any, list[str], Any]:
        *found, looked_at = _core.zarr_chunks(folder, list(grid), lead, separator, form)
        self.looked_at += looked_at
        return found[0], found[1], found[2]


def _unfolded(path: str, raw: bytes) -> dict[str, Any]:
    """The documents of all groups and arrays, by their names, of metadata that are consolidated."""
    parsed = _parsed(path, raw)
    if path.endswith("/.zmetadata"):
        return dict(parsed["metadata"])
    below = parsed.pop("consolidated_metadata")["metadata"]
    return {"zarr.json": parsed, **{f"{name}/zarr.json": document for name, document in below.items()}}


Tree = Union[StoreTree, ZipTree]


def _tree(path: str) -> Tree:
    is_zip = path.lower().endswith(".zip") and is_file(path)
    return ZipTree(path) if is_zip or (not is_url(path) and os.path.isfile(path)) else StoreTree(path)


def _parsed(path: str, raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise DataError(f"{path} is not JSON: {e}") from None


def _json(tree: Tree, path: str) -> Any:
    if isinstance(tree, StoreTree):
        return tree.document(path)
    raw = tree.read(path, MOST_METADATA)
    return None if raw is None else _parsed(path, raw)


def zarr_arrays(path: str, group: str) -> list[Stored]:
    """The arrays of one group of the store."""
    path = absolute(path)
    tree = _tree(path)
    if group and _is_array(tree, join(path, group)):
        return [_array(tree, join(path, group))]
    if _is_array(tree, path):
        only = _array(tree, path)
        only.name = "data"  # the folder's name says nothing of it
        return [only]
    groups: dict[str, list[str]] = {}
    for folder in tree.folders():
        if folder == path or not _is_array(tree, folder):
            continue
        above = relative(parent(folder), path)
        groups.setdefault("" if above == "." else above, []).append(folder)
    out: dict[str, list[Stored]] = {}
    for prefix, folder in in_group(path, group, groups):
        out.setdefault(prefix, []).append(_array(tree, folder))
    for prefix, arrays in out.items():
        out[prefix] = join_values(arrays)
        for array in out[prefix]:
            array.name = prefix + array.name
    return [a for arrays in out.values() for a in arrays]


def _is_array(tree: Tree, folder: str) -> bool:
    if _json(tree, join(folder, ".zarray")) is not None:
        return True
    found = _json(tree, join(folder, "zarr.json"))
    return isinstance(found, dict) and found.get("node_type") == "array"


def _array(tree: Tree, folder: str) -> Stored:
    try:
        second = _json(tree, join(folder, ".zarray"))
        if second is not None:
            out = _version2(tree, folder, second, _json(tree, join(folder, ".zattrs")) or {})
        else:
            out = _version3(tree, folder, _json(tree, join(folder, "zarr.json")))
    except (KeyError, TypeError, ValueError, AttributeError, struct.error) as e:
        raise DataError(f"the metadata of {folder} are not as Zarr has them: {type(e).__name__}: {e}") from None
    if not out.name.isprintable() and any("\udc80" <= c <= "\udcff" for c in out.name):
        out.why = "the name of its folder is not UTF-8"
    return out


def _version2(tree: Tree, folder: str, meta: dict[str, Any], attributes: dict[str, Any]) -> Stored:
    name, shape, chunk = base(folder), tuple(meta["shape"]), tuple(meta["chunks"])
    dims = attributes.get("_ARRAY_DIMENSIONS") or [f"axis{i}" for i in range(len(shape))]
    out = Listed(name, tuple(dims), shape, chunk)
    dtype = np.dtype(meta["dtype"]) if isinstance(meta["dtype"], str) else np.dtype("V1")
    steps = [*(meta.get("filters") or []), *filter(None, [meta.get("compressor")])]
    if dtype.kind in "OU":
        return zarr_texts(tree.root, folder, out)
    out.fortran = meta.get("order") == "F"
    attributes = {**take_type(out, dtype), **attributes}
    if not out.dtype:
        out.why = f"its type is {meta['dtype']}; numbers are wanted"
        return out
    if out.why:
        return out
    if out.kind != "array":
        out.fill = b""
    else:
        take_fill(out, fill_bytes(meta.get("fill_value"), dtype), dtype)
    try:
        steps = take_scaled(out, steps, dtype)
        out.filters = [s for c in steps if (s := filter_step(folder, c, dtype)) is not None]
    except Unsupported as e:
        return through_zarr(tree.root, folder, out, dtype, str(e))
    separator = meta.get("dimension_separator", ".")
    _find_later(tree, folder, out, "", separator)
    if out.kind != "array" or out.packed:
        out.attributes = plain_attributes(attributes)
        return out
    fill = meta.get("fill_value")
    # xarray keeps a missing value as the fill value alone; 0 in floats is what zarr-python writes where nobody said anything.
    if {"scale_factor", "add_offset"} & set(attributes) or ("_ARRAY_DIMENSIONS" in attributes and fill != 0):
        attributes = {"_FillValue": fill, **attributes}
    out.unpack_by(attributes)
    return out


def _version3(tree: Tree, folder: str, meta: dict[str, Any]) -> Stored:
    name, shape = base(folder), tuple(meta["shape"])
    if meta["chunk_grid"]["name"] != "regular":
        return Stored(name, (), why=f"its chunk grid is {meta['chunk_grid']['name']!r}; regular ones are read")
    chunk = tuple(meta["chunk_grid"]["configuration"]["chunk_shape"])
    dims = meta.get("dimension_names") or [None] * len(shape)
    attributes = meta.get("attributes") or {}
    dims = attributes.get("_ARRAY_DIMENSIONS", dims)
    out = Listed(name, tuple(d or f"axis{i}" for i, d in enumerate(dims)), shape, chunk)
    dtype = type_of3(meta["data_type"])
    if dtype.kind in "OU":
        return zarr_texts(tree.root, folder, out)
    attributes = {**take_type(out, dtype), **attributes}
    if not out.dtype:
        out.why = f"its type is {meta['data_type']}; numbers are wanted"
        return out
    if out.why:
        return out
    encoding = meta["chunk_key_encoding"]
    separator = (encoding.get("configuration") or {}).get("separator", "/" if encoding["name"] == "default" else ".")
    lead = "c" if encoding["name"] == "default" else ""
    try:
        shard = _codecs3(folder, out, meta["codecs"], dtype)
    except Unsupported as e:
        return through_zarr(tree.root, folder, out, dtype, str(e))
    if out.kind == "array":
        stored = dtype.newbyteorder(">" if out.big_endian else "<")
        take_fill(out, fill_bytes(meta.get("fill_value"), stored), stored)
    _find_later(tree, folder, out, lead, separator, shard)
    if out.kind != "array" or out.packed:
        out.attributes = plain_attributes(attributes)
    else:
        out.unpack_by(_missing3(attributes))
    return out


def _missing3(attributes: dict[str, Any]) -> dict[str, Any]:
    """xarray writes the missing value of floats as the base64 of a little-endian double."""
    words = attributes.get("_FillValue")
    if isinstance(words, str):
        named = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
        try:
            raw = b"" if words in named else base64.b64decode(words, validate=True)
        except ValueError:
            raw = b""  # a text, which is no element of numbers
        missing = named.get(words, struct.unpack("<d", raw)[0] if len(raw) == 8 else None)
        attributes = {**attributes, "_FillValue": missing}
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
            out.big_endian = options.get("endian") == "big" and out.kind == "array"
        elif name == "transpose":
            order, axes = options["order"], list(range(len(out.shape)))
            if order not in (axes, axes[::-1], "C", "F"):
                raise Unsupported(f"{folder}: chunks transposed by {order} are not read; C and F order are")
            out.fortran = order in (axes[::-1], "F") and len(axes) > 1
        elif (step := filter_step(folder, codec, dtype)) is not None:
            out.filters.append(step)
    return None


def _find_later(tree: Tree, folder: str, out: Listed, lead: str, separator: str, shard: dict[str, Any] | None = None) -> None:
    """Sets what finds the files that are chunks of the grid, or shards of them."""
    if separator not in (".", "/"):
        raise ValueError(f"the parts of chunk keys are joined by {separator!r}; '.' and '/' are known")
    axes = len(out.shape) - out.inner  # an inner axis lies within an element
    grid = grid_of(out.name, out.shape[:axes], out.chunk[:axes])
    form = _open_shards(out, shard) if shard else None
    out.finder = lambda: tree.chunks(folder, grid, lead, separator, form)
    out.looked_at = tree.looked_at


def _open_shards(out: Listed, options: dict[str, Any]) -> tuple[list[int], list[int], bool, bool] | None:
    """Chunks within shards: each shard's index says where they lie."""
    inner = tuple(options["chunk_shape"]) + out.chunk[len(out.chunk) - out.inner :]
    if len(inner) != len(out.shape) or any(i < 1 or o % i for i, o in zip(inner, out.chunk)):
        raise DataError(f"'{out.name}' has shards of {out.chunk} that do not divide into chunks of {inner}")
    codecs = [c["name"] for c in options.get("index_codecs", [])]
    if codecs not in (["bytes", "crc32c"], ["bytes"]):
        out.why = f"the index of its shards is stored as {codecs}, which is not read"
        return None
    axes = len(inner) - out.inner
    per_shard = [o // i for i, o in zip(inner, out.chunk)][:axes]
    out.chunk = inner
    return (
        per_shard,
        list(grid_of(out.name, out.shape[:axes], inner[:axes])),
        options.get("index_location", "end") == "start",
        "crc32c" in codecs,
    )


def zarr_attributes(path: str, group: str) -> dict[str, Any]:
    """Of the group itself."""
    tree, folder = _tree(absolute(path)), join(absolute(path), group)
    if _is_array(tree, folder):
        return {}
    third = _json(tree, join(folder, "zarr.json"))
    found = third.get("attributes") if isinstance(third, dict) else _json(tree, join(folder, ".zattrs"))
    return plain_attributes(found) if isinstance(found, dict) else {}
