# SPDX-License-Identifier: Apache-2.0
"""Names of classes that lie beside the data: Hugging Face's ClassLabel in Arrow and Parquet files, what ``hr.pack`` wrote down."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from .errors import Error

#: Columns that are asked first where several have names.
_USUAL = ("label", "labels", "cls", "fine_label")


def _features(path: str) -> Mapping[str, Any]:
    """The features that Hugging Face's datasets wrote down: beside an Arrow file, or in a Parquet file's schema."""
    info = os.path.join(os.path.dirname(path), "dataset_info.json")
    if path.endswith(".arrow") and os.path.isfile(info):
        with open(info, encoding="utf-8") as f:
            return json.load(f).get("features") or {}
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if path.endswith(".parquet"):
            metadata = pq.read_schema(path).metadata
        else:
            with pa.memory_map(path) as f:
                try:
                    metadata = pa.ipc.open_file(f).schema.metadata
                except pa.ArrowInvalid:
                    metadata = pa.ipc.open_stream(f).schema.metadata
    except (ImportError, OSError, ValueError):
        return {}
    stored = (metadata or {}).get(b"huggingface")
    return (json.loads(stored).get("info", {}).get("features") or {}) if stored else {}


def hugging_face_classes(source: _core.Source, urls: Any) -> list[str]:
    """The names of a ClassLabel: the usual column's, or the only one's; [] where there are none."""
    if source.format not in ("arrow", "parquet") or not isinstance(urls, list):
        return []
    from .hub import resolved

    found = _core.expand_urls(resolved(urls))
    named = {
        n: list(f["names"]) for n, f in _features(str(found[0])).items() if isinstance(f, dict) and f.get("_type") == "ClassLabel"
    }
    for usual in _USUAL:
        if usual in named:
            return named[usual]
    return next(iter(named.values())) if len(named) == 1 else []


def _manifest(folder: str) -> str:
    return os.path.join(folder, "headrace.json")


def keep_classes(folder: str, classes: Sequence[str]) -> None:
    """Writes the names into the manifest of a pack that is done."""
    text = _core.read_file(_manifest(folder)).decode()
    # Its first line describes the pack, then come the shards, a line each: that shape stays.
    made = text.replace(', "shards": [', f', "classes": {json.dumps(list(classes))}, "shards": [', 1)
    _core.write_file(_manifest(folder), made.encode())


def packed_classes(urls: Any) -> list[str]:
    """Those that a pack wrote down: of a folder, or of shards in one."""
    if not isinstance(urls, list) or not urls:
        return []
    path = str(urls[0]).split("#")[0].rstrip("/")
    is_folder = not os.path.splitext(path)[1] if "://" in path else os.path.isdir(path)
    folder = path if is_folder else os.path.dirname(path)
    try:
        found = json.loads(_core.read_file(_manifest(folder))).get("classes", [])
    except (Error, ValueError, AttributeError):
        return []
    return [str(name) for name in found] if isinstance(found, list) else []
