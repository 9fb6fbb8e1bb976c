# SPDX-License-Identifier: Apache-2.0
"""Zarr, versions 2 and 3, in folders and zips: which arrays there are. The engine says what their metadata mean, and finds the chunks."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Union

from .. import _core
from ..errors import DataError
from .groups import in_group
from .model import Listed, Stored, plain_attributes, stored_of
from .stored_files import absolute, base, is_file, is_url, join, parent, relative
from .values import join_values
from .zarr_python import through_zarr, zarr_texts
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
    second = _json(tree, join(folder, ".zarray"))
    said = None if second is None else _json(tree, join(folder, ".zattrs"))
    document = second if second is not None else _json(tree, join(folder, "zarr.json"))
    try:
        found = _core.zarr_array(base(folder), _text(document), None if said is None else _text(said))
    except DataError as e:
        raise DataError(f"the metadata of {folder} are not as Zarr has them: {e}") from None
    described, grid, lead, separator, form = found
    out = stored_of(described, Listed)
    assert isinstance(out, Listed)
    if not out.name.isprintable() and any("\udc80" <= c <= "\udcff" for c in out.name):
        out.why = "the name of its folder is not UTF-8"
    if out.why:
        return out
    reason = described.get("by_python", "")
    if reason == "texts":
        return zarr_texts(tree.root, folder, out)
    if reason:
        return through_zarr(tree.root, folder, out, f"{folder}: {reason}")
    out.finder = lambda: tree.chunks(folder, grid, lead, separator, form)
    out.looked_at = tree.looked_at
    return out


def _text(document: Any) -> bytes:
    return json.dumps(document).encode()


def zarr_attributes(path: str, group: str) -> dict[str, Any]:
    """Of the group itself."""
    tree, folder = _tree(absolute(path)), join(absolute(path), group)
    if _is_array(tree, folder):
        return {}
    third = _json(tree, join(folder, "zarr.json"))
    found = third.get("attributes") if isinstance(third, dict) else _json(tree, join(folder, ".zattrs"))
    return plain_attributes(found) if isinstance(found, dict) else {}
