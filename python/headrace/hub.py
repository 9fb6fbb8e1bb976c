# SPDX-License-Identifier: Apache-2.0
"""Repositories of Hugging Face's hub, cloned or saved to disk: which files are which split, as its ``datasets`` finds them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from . import _core
from .errors import NotFound, UsageError

_TABLE = re.compile(r"\.(csv|tsv|jsonl|ndjson)(\.(gz|zst))?$", re.IGNORECASE)
#: What lies beside data and is none.
_BESIDE = re.compile(r"(^\.)|(^(readme|license|dataset_infos?\.json|state\.json)\b)|(\.(md|py|hridx)$)", re.IGNORECASE)
#: The words by which file names and folders say their split, and what ``datasets`` calls it.
_SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}


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


def _word(name: str) -> str:
    """The word of a name that says its split; "" where there is none."""
    return next((w for w in re.split(r"[^a-z]+", name.lower()) if w in _SPLITS), "")


def _data(path: str) -> list[str]:
    return sorted(n for n in os.listdir(path) if not _BESIDE.search(n))


def _renamed(path: str, part: str) -> list[str] | None:
    """``#validation`` where the files or folders are called ``val`` or ``dev``: the same under their own name."""
    words = {_word(n) for n in _data(path)}
    if part not in _SPLITS.values() or part in words:
        return None
    same = [w for w in words if w and _SPLITS[w] == part]
    return [f"{path}#{same[0]}"] if len(same) == 1 else None


def _tables(path: str, part: str, shown: str) -> list[str] | None:
    """A folder of CSV and JSON-lines files, and of nothing else, is their rows; None where it is none."""
    names = _data(path)
    folders = [n for n in names if os.path.isdir(os.path.join(path, n))]
    if folders and len(folders) == len(names):
        return _table_folders(path, part, folders)
    if folders or not names or not all(_TABLE.search(n) for n in names) or set(names) & {"metadata.csv", "metadata.jsonl"}:
        return None
    splits: dict[str, list[str]] = {}
    for name in names:
        splits.setdefault(_word(name), []).append(os.path.join(path, name))
    if "" in splits:  # not all have one: then none has
        splits = {"": [os.path.join(path, n) for n in names]}
    if len(splits) == 1 and (not part or (part == "train" and "" in splits)):
        return next(iter(splits.values()))
    chosen = [files for word, files in splits.items() if word and part in (word, _SPLITS[word])]
    if len(chosen) != 1:
        words = f"there is no split '{part}'" if part else "say which"
        there = sorted(splits) if "" not in splits else ["train"]
        raise UsageError(f"{path} holds the splits {', '.join(there)}: {words}, as in '{shown}{there[0]}'")
    return chosen[0]


def _table_folders(path: str, part: str, folders: list[str]) -> list[str] | None:
    """Folders that are splits, each of tables."""
    inside = [f for f in folders if part and _word(f) and part in (f, _SPLITS[_word(f)])]
    if len(inside) != 1:
        return None
    return _tables(os.path.join(path, inside[0]), "", f"{path}#{inside[0]}/")


def _of_folder(path: str, part: str, shown: str) -> list[str]:
    if not os.path.isdir(path):
        raise NotFound(f"there is no folder {path}, which the README names")
    return _tables(path, part, shown) or _renamed(path, part) or [f"{path}#{part}" if part else path]


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
    folders: dict[str, str] = {}  # of those that name no files
    default = ""
    for config in _front_matter(path).get("configs") or ():
        name = str(config.get("config_name", "default"))
        files = config.get("data_files")
        if files is None and isinstance(config.get("data_dir"), str):
            folders[name] = os.path.join(path, config["data_dir"])
        if files is None:
            continue
        if isinstance(files, str) or (isinstance(files, list) and all(isinstance(f, str) for f in files)):
            files = [{"split": "train", "path": files}]
        splits = {str(f["split"]): [f["path"]] if isinstance(f["path"], str) else list(f["path"]) for f in files}
        configs[name] = splits
        if config.get("default") or name == "default":
            default = name
    known = [*configs, *folders]
    if not known:
        return None
    config, _, split = part.rpartition("/")
    if not config and part in known:
        config, split = part, ""
    config = config or default or (known[0] if len(known) == 1 else "")
    if config not in known:
        raise UsageError(f"{path} has the configurations {', '.join(known)}: say which, as in '{path}#{known[0]}/train'")
    if config in folders:
        return _of_folder(folders[config], split, f"{path}#{config}/")
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
    """The files of a cloned repository or of a folder of tables, as Hugging Face's ``datasets`` finds them; None where it is none."""
    readme = os.path.isfile(os.path.join(path, "README.md"))
    if readme:
        found = _configured(path, part)
        if found is not None:
            return found
    data = os.path.join(path, "data")
    if not readme or not os.path.isdir(data) or (part and os.path.isdir(os.path.join(path, part))):
        return _tables(path, part, f"{path}#") or _renamed(path, part)
    others = [n for n in os.listdir(path) if not n.startswith(".") and n not in ("README.md", "data", "dataset_infos.json")]
    if any(os.path.isdir(os.path.join(path, n)) for n in others):
        return None
    return _of_folder(data, part, f"{path}#")
