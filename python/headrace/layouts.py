# SPDX-License-Identifier: Apache-2.0
"""Layouts that are more than one format's files: lists of pictures, detection sets, Hugging Face's hub, tensors."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from typing import Any

from . import _core
from .errors import DataError, NotFound, Unsupported, UsageError
from .hub import split_part
from .made import Made, is_picture, keys_of

_WILD = "*?[{"
_METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
#: Files that hold samples; one of them is none.
_SHARDS = {"parquet", "arrow", "feather", "tar", "tar.gz", "tgz", "tar.zst", "tar.xz", "tfrecord", "tfrecords", "rec"}
_TABLES = {"csv", "tsv", "jsonl", "ndjson", "xlsx"}
#: Folders of detection sets: with one of the second line among them, they are no classes.
_DETECTION = {"images", "labels", "annotations", "JPEGImages", "Annotations", "ImageSets", "SegmentationClass"}
_DETECTION |= {"SegmentationObject", "train2017", "val2017", "test2017", "train2014", "val2014", "test2014"}
_BOXES = {"labels", "annotations", "Annotations"}
_FEW = 16  # files that are looked into for a notice
#: Folders of pictures beside folders of what belongs to each: with one of both lines, and no other, they are no classes.
_INPUTS = {"image", "images", "img", "imgs", "input", "inputs", "frames", "rgb"}
_TARGETS = {"mask", "masks", "gt", "ground_truth", "groundtruth", "target", "targets", "segmentation", "segmentations", "depth"}


def recognise(urls: Sequence[str], root: str | None) -> _core.Source | None:
    """The data set, where it is one of these layouts; else None, and the formats are asked."""
    from .file_columns import open_file_columns
    from .plugins.formats import open_registered

    registered = open_registered(urls)
    if registered is not None:
        return registered
    if any("://" in url and not url.startswith("file://") for url in urls):
        return _far_pictures(urls, root)  # other layouts are looked for in local folders alone
    if len(urls) == 1:
        path, part = split_part(urls[0])
        if os.path.isdir(path):
            is_folder = bool(part) and os.path.isdir(os.path.join(path, part))
            return _folder(os.path.join(path, part) if is_folder else path, part, "" if is_folder else part)
        if path.lower().endswith(".json") and os.path.isfile(path):
            from . import detection

            found = detection.coco(path, root)
            if found is not None:
                return found
        listed = open_file_columns(path, part, root)
        if listed is not None:
            return listed
        if os.path.isfile(path):
            from . import tensors

            if tensors.is_tensors(path):
                return tensors.open_tensors(path, part)
    return _pictures(urls, root)


def refuse_misread(source: _core.Source, urls: Sequence[str]) -> None:
    """Folders and archives whose files or folders say that they are something else than samples in class folders."""
    if source.format not in ("files", "zip", "squashfs") or not urls:
        return
    url, is_archive = str(urls[0]), source.format != "files"
    held = {str(row[0]) for row in source.schema} - {"cls"}
    if is_archive and url.partition("#")[0].lower().endswith((".xlsx", ".xlsm", ".ods")):
        raise UsageError(f"{url} is a spreadsheet; save it as CSV: pandas.read_excel('{url}').to_csv('x.csv', index=False)")
    unpack = f"unpack it (unzip '{url}' -d DIR) and open " if source.format == "zip" else "unpack it and open "
    if held and held <= _SHARDS and (source.classes or is_archive):
        one = sorted(held)[0]
        what = f"{unpack}'DIR/**/*.{one}'" if is_archive else f"open '{url}/*/*.{one}', which reads the samples in them"
        raise UsageError(f"{url} holds .{one} files, each with samples of its own; {what}")
    if is_archive and held and held <= _TABLES:
        raise UsageError(
            f"{url} holds tables ({', '.join('.' + n for n in sorted(held))}), not pictures; {unpack}the tables in DIR"
        )
    classes = set(source.classes)
    if classes and classes <= _DETECTION and classes & _BOXES:
        shown = ", ".join(sorted(classes))
        how = f"{unpack}DIR" if is_archive else f"open its JSON, hr.open('{url}/annotations/NAME.json', root='{url}/images')"
        raise UsageError(f"{url} holds the folders {shown} of a detection set, which are no classes; {how}")
    lower = {c.lower() for c in classes}
    if lower & _INPUTS and lower & _TARGETS and lower <= _INPUTS | _TARGETS:
        names = sorted(classes, key=lambda c: c.lower() not in _INPUTS)
        where = "DIR" if is_archive else url
        parts = ", ".join(f"{n}=hr.open('{where}/{n}')" for n in names)
        raise UsageError(
            f"{url} holds the folders {', '.join(names)}, which are no classes; {unpack + 'join them, ' if is_archive else 'join them: '}"
            f'hr.join({parts}, on="key")'
        )
    if held == {"npy"} and not classes and len(urls) == 1 and os.path.isdir(url):
        _note_columns(source, url)
    if len(classes) == 1 and not is_archive and "://" not in url:
        _look_below(source, url, next(iter(classes)))


def _note_columns(source: _core.Source, url: str) -> None:
    """X.npy beside y.npy: files are samples, and arrays with other numbers of axes are seldom samples of one data set."""
    import numpy as np

    files = sorted(n for n in os.listdir(url) if n.lower().endswith(".npy") and not n.startswith("."))
    if not 2 <= len(files) <= _FEW or len(files) != source.size:
        return
    shapes = {}
    for name in files:
        try:
            shapes[name] = np.load(os.path.join(url, name), mmap_mode="r", allow_pickle=False).shape
        except (OSError, ValueError):
            return  # said where the array is read
    if len({len(s) for s in shapes.values()}) < 2:
        return
    first = next(iter(shapes))
    rows = [n for n, s in shapes.items() if s[:1] == shapes[first][:1] and s[:1]]
    shown = ", ".join(f"{n} {list(s)}" for n, s in list(shapes.items())[:4])
    joined = ", ".join(f"{os.path.splitext(n)[0]}=hr.open('{os.path.join(url, n)}')" for n in rows)
    how = f"hr.join({joined})" if len(rows) > 1 else "hr.join(x=hr.open('x.npy'), y=hr.open('y.npy'))"
    source.add_notice(f"{url}: each file is a sample ({shown}); if their rows are the samples, join the files: {how}")


def _look_below(source: _core.Source, url: str, name: str) -> None:
    """One class whose folder holds folders: what a user wants is mostly the folder below."""
    folders = []
    for at, below, files in os.walk(os.path.join(url, name)):
        below[:] = sorted(f for f in below if not f.startswith("."))
        if "JPEGImages" in below and "Annotations" in below:
            raise UsageError(f"{url} has Pascal VOC's folders further down; open '{at}'")
        if len(below) > 1 and not any(is_picture(f) for f in files):
            folders = [at, *below]
        if len(below) != 1 or files:
            break
    if folders:
        shown = ", ".join(folders[1:4]) + (", …" if len(folders) > 4 else "")
        source.add_notice(
            f"{url}: all samples are of one class, '{name}', whose folder holds {shown}; if these are the classes, open '{folders[0]}'"
        )


def _far_pictures(urls: Sequence[str], root: str | None) -> _core.Source | None:
    """A list, a glob, or one picture, on a server. Which of them are there shows when they are read."""
    if root or not is_picture(urls[0]) or not is_picture(urls[-1]):
        return None
    paths = list(urls)
    if any(c in p for c in _WILD for p in paths):
        paths = [str(p) for p in _core.expand_urls(paths)]
    others = [p for p in paths if not is_picture(p)]
    if others:
        raise UsageError(f"this is a list of pictures, but {others[0]!r} is no picture; leave it out, or open it by itself")
    stems = [p.split("/")[:-1] for p in paths]  # "https:", "", host, folders
    shared = [names[0] for names in itertools.takewhile(lambda names: len(set(names)) == 1, zip(*stems))]
    if len(shared) < 3:
        far = next(p for p, stem in zip(paths, stems) if stem[:3] != stems[0][:3])
        raise UsageError(
            f"one data set lies in one store, '{paths[0]}' and '{far}' are of two: open each, then join them by a + b"
        )
    folder = "/".join(shared)
    names = [p[len(folder) + 1 :] for p in paths]
    made = Made("files", keys_of(names))
    made.add_files(names)
    return _core.make_source({**made.description(folder), "name": ""})


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
        raise UsageError(f"this is a list of pictures, but {others[0]!r} is no picture; leave it out, or open it by itself")
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
        return _image_folder(path, [there[0]])
    below = _metadata_below(path, names)
    if below:
        return _image_folder(path, below)
    return detection.yolo(path, left) or detection.voc(path, names, left) or tensors.idx_folder(path, names, part)


def _rows(path: str) -> list[dict[str, Any]]:
    if path.endswith(".parquet"):
        try:
            import pyarrow.parquet
        except ImportError:
            raise Unsupported(f"{path} is read through pyarrow, which is not installed: pip install pyarrow") from None
        try:
            return list(pyarrow.parquet.read_table(path).to_pylist())
        except (OSError, ValueError) as e:  # pyarrow's errors are of these
            raise DataError(f"{path}: {e}") from None
    with open(path, encoding="utf-8-sig", newline="") as f:
        if path.endswith(".csv"):
            import csv

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


def _metadata_below(path: str, names: Sequence[str]) -> list[str]:
    """The metadata of a folder whose folders each have their own; [] where they are classes or splits."""
    folders = [n for n in names if not n.startswith(".") and os.path.isdir(os.path.join(path, n))]
    found = [os.path.join(f, m) for f in folders for m in _METADATA if os.path.isfile(os.path.join(path, f, m))]
    if not found or all(_core.is_split(f) for f in folders):
        return []
    if len(found) < len(folders):
        raise UsageError(
            f"{path}: '{found[0]}' says what the pictures of its folder are, and other folders have no such file; "
            "open one folder, or put one metadata.jsonl for all of them there"
        )
    return found


def _image_folder(path: str, names: Sequence[str]) -> _core.Source:
    """Hugging Face's ImageFolder with metadata: ``file_name`` and a column for each thing that is known of a picture. A column
    ``mask_file_name`` names files of its own, which are the field ``mask``."""
    rows: list[dict[str, Any]] = []
    named: list[str] = []  # the columns of files
    for name in names:
        where = os.path.join(path, name)
        found = _rows(where)
        columns = [c for c in found[0] if c == "file_name" or str(c).endswith("_file_name")] if found else []
        if not columns:
            raise DataError(f"{where}: it has no column 'file_name', which names the pictures")
        for number, row in enumerate(found):
            for column in columns:
                if not isinstance(row.get(column), str) or not row[column]:
                    raise DataError(f"{where}: row {number + 1} has no {column}")
                row[column] = os.path.normpath(os.path.join(os.path.dirname(name), row[column]))
        for column in columns:
            if not os.path.isfile(os.path.join(path, found[0][column])):
                raise NotFound(f"{where}: the first file that it names is not there: {found[0][column]}")
        named += [c for c in columns if c not in named]
        rows += found
    first = "file_name" if "file_name" in named else named[0]
    made = Made("files", keys_of([r.get(first) or "" for r in rows]))
    for column in named:
        if column == "file_name":
            made.add_files([r.get(column) for r in rows])
        else:
            made.add_file_column(column.removesuffix("_file_name"), [r.get(column) for r in rows])
    for column in dict.fromkeys(k for r in rows for k in r if k not in named):
        values = [r.get(column) for r in rows]
        if all(name.endswith(".csv") for name in names):
            values = _numbers(values)
        if any(isinstance(v, (list, dict)) for v in values):
            made._add(column, "json", values=[None if v is None else json.dumps(v, default=str).encode() for v in values])
        else:
            made.add_values(column, values)
    return made.source(path)
