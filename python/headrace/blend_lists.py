# SPDX-License-Identifier: Apache-2.0
"""Lists of files with weights, as Megatron's and BlendCorpus's users keep them: weight, path, corpus, one a line."""

from __future__ import annotations

import math
import os

from .errors import NotFound, UsageError

#: A path may be without these: Megatron names a pair of files by what both have in common.
_ENDINGS = (".bin", ".npy", ".tar", ".arrow", ".parquet")


def read_list(path: str) -> list[tuple[str, list[str], float, bool]]:
    """(name, files, weight, whether the list names it) of each source, in the order of their first lines."""
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
    except OSError as e:
        raise NotFound(f"{path}: the list of files cannot be read: {e.strerror}") from None
    except UnicodeDecodeError as e:
        raise UsageError(f"{path}: it is no list of files: not UTF-8 from byte {e.start} on") from None
    sources: dict[str, tuple[list[str], list[float], bool]] = {}
    columns = 0
    for number, line in enumerate(lines, 1):
        words = line.split("#", 1)[0].replace(",", " ").split()
        if not words:
            continue
        weight, file, corpus = _row(f"{path}, line {number}", words, columns)
        columns = len(words)
        name = corpus or file
        files, weights, _ = sources.setdefault(name, ([], [], bool(corpus)))
        place = _place(path, file, f"{path}, line {number}")
        if place in files:
            raise UsageError(f"{path}, line {number}: '{file}' comes a second time in '{name}'")
        files.append(place)
        weights.append(weight)
    if not sources:
        raise UsageError(f"{path}: the list names no file; a line has a weight, a path, and the corpus that it belongs to")
    return [(name, files, math.fsum(weights), named) for name, (files, weights, named) in sources.items()]


def _row(where: str, words: list[str], columns: int) -> tuple[float, str, str]:
    if len(words) not in (2, 3):
        raise UsageError(f"{where}: weight, path and corpus are wanted, not {len(words)} words")
    if columns not in (0, len(words)):
        raise UsageError(f"{where}: {len(words)} words, and the lines before have {columns}: a corpus for each file, or for none")
    try:
        weight = float(words[0])
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise UsageError(f"{where}: the weight is a number from 0 on, not {words[0]!r}")
    return weight, words[1], words[2] if len(words) == 3 else ""


def _place(path: str, file: str, where: str) -> str:
    if "://" in file:
        return file
    place = file if os.path.isabs(file) else os.path.join(os.path.dirname(path), file)
    if os.path.exists(place) or any(c in file for c in "*?[{"):
        return place
    found = [place + ending for ending in _ENDINGS if os.path.exists(place + ending)]
    if not found:
        raise NotFound(f"{where}: there is no {place}, nor {place}.bin")
    return found[0]
