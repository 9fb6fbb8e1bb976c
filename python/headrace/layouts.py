# SPDX-License-Identifier: Apache-2.0
"""Layouts that are more than one format's files: lists of pictures, detection sets, Hugging Face's hub, tensors."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from typing import Any

from . import _core
from .errors import DataError, NotFound, UsageError
from .hub import split_part
from .made import Made, is_picture, keys_of

_WILD = "*?[{"
_METADATA = ("metadata.csv", "metadata.jsonl")


def recognise(urls: Sequence[str], root: str | None) -> _core.Source | None:
    """The data set, where it is one of these layouts; else None, and the formats are asked."""
    from . import detection, tensors
    from .file_columns import open_file_columns
    from .plugins.formats import open_registered

    registered = open_registered(urls)
    if registered is not None:
        return registered
    if any("://" in url and not url.startswith("file://") for url in urls):
        return None  # these layouts are looked for in local folders alone
    if len(urls) == 1:
        path, part = split_part(urls[0])
        if os.path.isdir(path):
            is_folder = bool(part) and os.path.isdir(os.path.join(path, part))
            return _folder(os.path.join(path, part) if is_folder else path, part, "" if is_folder else part)
        if path.lower().endswith(".json") and os.path.isfile(path):
            found = detection.coco(path, root)
            if found is not None:
                return found
        listed = open_file_columns(path, part, root)
        if listed is not None:
            return listed
        if os.path.isfile(path) and tensors.is_tensors(path):
            return tensors.open_tensors(path, part)
    return _pictures(urls, root)


def _pictures(urls: Sequence[str], root: str | None) -> _core.Source | None:
    """A list, a glob, or one picture."""
    last = urls[-1]
    if not is_picture(last) or not is_picture(urls[0]):
        return None
    paths = [str(p) for p in _core.expand_urls(list(urls))] if len(urls) == 1 else [str(u).removeprefix("file://") for u in urls]
    if any(any(c in p for c in _WILD) and not os.path.lexists(p) for p in paths):
        paths = [str(p) for p in _core.expand_urls(paths)]
    others = [p for p in paths if not is_picture(p)]
    if others:
        raise UsageError(f"a list of pictures: {others[0]!r} is none; open the other files by themselves")
    folder = root or ""
    if not root:
        paths = [os.path.abspath(p) for p in paths]
        folder = os.path.commonpath([os.path.dirname(p) for p in paths])
        paths = [os.path.relpath(p, folder) for p in paths]
    for path in (paths[0], paths[-1]):
        if not os.path.isfile(os.path.join(folder, path)):
            raise NotFound(f"there is no {os.path.join(folder, path)}")
    made = Made("files", keys_of(paths))
    made.add_files(list(paths))
    return made.source(folder)


def _folder(path: str, part: str, left: str) -> _core.Source | None:
    """``left``: the part, where it is not the name of the folder."""
    from . import detection, tensors

    names = sorted(os.listdir(path))
    there = [n for n in _METADATA if n in names]
    if there:
        if left:
            raise UsageError(f"{path} has no part '{left}': {there[0]} lists all of its pictures")
        return _image_folder(path, there[0])
    return detection.yolo(path, left) or detection.voc(path, names, left) or tensors.idx_folder(path, names, part)


def _rows(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8-sig", newline="") as f:
        if path.endswith(".csv"):
            return list(csv.DictReader(f))
        try:
            return [json.loads(line) for line in f if line.strip()]
        except ValueError as e:
            raise DataError(f"{path}: {e}") from None


def _numbers(values: list[Any]) -> list[Any]:
    """Cells of a CSV: numbers where all are, None where a cell is empty."""
    for kind in (int, float):
        try:
            return [None if v in ("", None) else kind(v) for v in values]
        except (TypeError, ValueError):
            continue
    return [None if v == "" else v for v in values]


def _image_folder(path: str, name: str) -> _core.Source:
    """Hugging Face's ImageFolder with metadata: ``file_name`` and a column for each thing that is known of a picture."""
    rows = _rows(os.path.join(path, name))
    where = os.path.join(path, name)
    if not rows or "file_name" not in rows[0]:
        raise DataError(f"{where}: it has no column 'file_name', which names the pictures")
    files = [r.get("file_name") for r in rows]
    for number, file in enumerate(files):
        if not isinstance(file, str) or not file:
            raise DataError(f"{where}: row {number + 1} has no file_name")
    if not os.path.isfile(os.path.join(path, str(files[0]))):
        raise NotFound(f"{where}: the first file that it names is not there: {files[0]}")
    made = Made("files", keys_of([str(f) for f in files]))
    made.add_files([str(f) for f in files])
    for column in dict.fromkeys(k for r in rows for k in r if k != "file_name"):
        values = [r.get(column) for r in rows]
        if name.endswith(".csv"):
            values = _numbers(values)
        if any(isinstance(v, (list, dict)) for v in values):
            made._add(column, "json", values=[None if v is None else json.dumps(v).encode() for v in values])
        else:
            made.add_values(column, values)
    return made.source(path)
