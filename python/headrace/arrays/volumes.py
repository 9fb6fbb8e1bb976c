# SPDX-License-Identifier: Apache-2.0
"""Files (or groups of files) that are a sample each: volumes, of any extents where patches are cut."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import UsageError
from .kept import Kept
from .model import Stored

#: What ``along`` says where a sample is no position along an axis.
CASES = ("file", "group")


def asks_for_cases(fields: Any) -> bool:
    values = fields.values() if isinstance(fields, Mapping) else ()
    return any(getattr(f, "windows", {}).get("along") in CASES for f in values)


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path.rstrip("/")))[0]


def _paired(paths: Sequence[str]) -> dict[str, dict[str, str]] | None:
    """``case_000_x.npy`` and ``case_000_y.npy`` are 'x' and 'y' of one sample; None where names are otherwise."""
    cases: dict[str, dict[str, str]] = {}
    for path in paths:
        case, _, name = _stem(path).rpartition("_")
        if not case or not name.isidentifier():
            return None
        cases.setdefault(case, {})[name] = path
    names = [set(c) for c in cases.values()]
    return cases if sum(map(len, names)) == len(paths) and all(n == names[0] for n in names) else None


def read_cases(
    paths: Sequence[tuple[str, str]], along: str, kept: Kept, kind: str
) -> tuple[list[str], list[Mapping[str, Stored]]]:
    """The keys of the samples, and the arrays of each by name."""
    from .files import named_arrays

    if along == "group":
        return _groups(paths, kind, kept)

    def read(path: str, group: str) -> Mapping[str, Stored]:
        return kept.arrays(path, group, lambda: named_arrays(path, group))

    pairs = _paired([p for p, _ in paths]) if kind == "npy" else None
    if pairs is None:
        return [_stem(p) for p, _ in paths], [read(path, group) for path, group in paths]
    out: list[Mapping[str, Stored]] = []
    for members in pairs.values():
        case = {}
        for name, path in members.items():
            (stored,) = read(path, "").values()
            case[name] = replace(stored, name=name)
        out.append(case)
    return list(pairs), out


def _groups(paths: Sequence[tuple[str, str]], kind: str, kept: Kept) -> tuple[list[str], list[Mapping[str, Stored]]]:
    from .hdf5 import hdf5_groups

    if kind != "hdf5":
        raise UsageError(f'along="group" is for HDF5; of other files each is a sample by along="file" ({paths[0][0]})')
    names: list[str] = []
    files: list[Mapping[str, Stored]] = []
    for path, within in paths:
        for group, arrays in kept.groups(path, within, lambda p=path, w=within: hdf5_groups(p, w)):  # type: ignore[misc]
            names.append(f"{_stem(path)}/{group}" if len(paths) > 1 else group)
            files.append({a.name: a for a in arrays})
    return names, files
