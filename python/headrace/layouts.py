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
from .made import Made, is_picture, keys_of

_WILD = "*?[{"
_METADATA = ("metadata.csv", "metadata.jsonl")


def split_part(url: str) -> tuple[str, str]:
    """``path#part`` as two, unless there is a file of that very name."""
    path = url.removeprefix("file://")
    if "#" in path and not os.path.exists(path):
        path, _, part = path.rpartition("#")
        return path, part
    return path, ""


def resolved(urls: Sequence[str]) -> list[str]:
    """URLs with a repository of Hugging Face's hub replaced by its files of the split that is named."""
    out: list[str] = []
    for url in urls:
        if "://" in url and not url.startswith("file://"):
            out.append(url)
            continue
        path, part = split_part(url)
        out += (os.path.isdir(path) and _hub_files(path, part)) or [url]
    return out


def recognise(urls: Sequence[str], root: str | None) -> _core.Source | None:
    """The data set, where it is one of these layouts; else None, and the formats are asked."""
    from . import detection, tensors
    from .file_columns import open_file_columns

    if any("://" in url and not url.startswith("file://") for url in urls):
        return None  # these layouts are looked for in local folders alone
    if len(urls) == 1:
        path, part = split_part(urls[0])
        if os.path.isdir(path):
            return _folder(os.path.join(path, part) if part and os.path.isdir(os.path.join(path, part)) else path, part)
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


def _folder(path: str, part: str) -> _core.Source | None:
    from . import detection, tensors

    names = sorted(os.listdir(path))
    there = [n for n in _METADATA if n in names]
    if there:
        return _image_folder(path, there[0])
    return detection.yolo(path, part) or detection.voc(path, names) or tensors.idx_folder(path, names, part)


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


# -- Hugging Face's hub ----------------------------------------------------------------------------


def _front_matter(path: str) -> dict[str, Any]:
    """The YAML at the beginning of README.md; {} where there is none, or nothing to read it with."""
    try:
        with open(os.path.join(path, "README.md"), encoding="utf-8") as f:
            text = f.read()
    except (OSError, UnicodeDecodeError):
        return {}
    if not text.startswith("---"):
        return {}
    try:
        import yaml

        found = yaml.safe_load(text[3:].split("\n---", 1)[0])
    except ImportError:
        raise UsageError(
            f"{path}/README.md says which files are which split; reading it needs PyYAML (pip install pyyaml)"
        ) from None
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def _configured(path: str, part: str) -> list[str] | None:
    """By the README's ``configs``: {config: {split: patterns}}."""
    configs: dict[str, dict[str, list[str]]] = {}
    default = ""
    for config in _front_matter(path).get("configs") or ():
        name = str(config.get("config_name", "default"))
        files = config.get("data_files")
        if files is None:
            continue
        if isinstance(files, str) or (isinstance(files, list) and all(isinstance(f, str) for f in files)):
            files = [{"split": "train", "path": files}]
        splits = {str(f["split"]): [f["path"]] if isinstance(f["path"], str) else list(f["path"]) for f in files}
        configs[name] = splits
        if config.get("default") or name == "default":
            default = name
    if not configs:
        return None
    config, _, split = part.rpartition("/")
    if not config and part in configs:
        config, split = part, ""
    config = config or default or (next(iter(configs)) if len(configs) == 1 else "")
    if config not in configs:
        raise UsageError(
            f"{path} has the configurations {', '.join(configs)}: say which, as in '{path}#{next(iter(configs))}/train'"
        )
    splits = configs[config]
    if not split and len(splits) == 1:
        split = next(iter(splits))
    if split not in splits:
        words = f"there is no split '{split}'" if split else "say which split"
        lead = "" if config == default or len(configs) == 1 else f"{config}/"
        raise UsageError(f"{path} holds the splits {', '.join(splits)}: {words}, as in '{path}#{lead}{next(iter(splits))}'")
    out = []
    for pattern in splits[split]:
        out += [str(p) for p in _core.expand_urls([os.path.join(path, pattern)])]
    return out


def _hub_files(path: str, part: str) -> list[str] | None:
    """The files of a cloned repository, as Hugging Face's ``datasets`` finds them; None where it is none."""
    readme = os.path.isfile(os.path.join(path, "README.md"))
    if readme:
        found = _configured(path, part)
        if found is not None:
            return found
    data = os.path.join(path, "data")
    if not readme or not os.path.isdir(data) or (part and os.path.isdir(os.path.join(path, part))):
        return None
    others = [n for n in os.listdir(path) if not n.startswith(".") and n not in ("README.md", "data", "dataset_infos.json")]
    if any(os.path.isdir(os.path.join(path, n)) for n in others):
        return None
    return [f"{data}#{part}" if part else data]
