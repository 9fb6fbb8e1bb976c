# SPDX-License-Identifier: Apache-2.0
"""Which files hold arrays, of which format, and what their metadata say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .. import _core
from ..errors import NotFound, UsageError
from .model import Stored, is_npy_folder, npy_arrays, npy_folder
from .netcdf import netcdf_arrays, sniff
from .volumes import asks_for_cases

_HDF5 = (".h5", ".hdf5", ".he5", ".nc", ".nc3", ".nc4", ".cdf")


def _parts(url: str) -> tuple[str, str]:
    """``path#group`` as two, unless there is a file of that very name."""
    if "#" in url and not os.path.exists(url):
        path, _, group = url.rpartition("#")
        return path, group
    return url, ""


def kind_of(url: str) -> str:
    path = _parts(url)[0].rstrip("/")
    lower = path.lower()
    if lower.endswith(_HDF5):
        return sniff(path) or "hdf5"
    if lower.endswith((".npy", ".npz")):
        return lower[-3:]
    if lower.endswith(".zarr"):
        return "zarr"
    if os.path.isdir(path):
        from .zarr import is_zarr

        return "zarr" if is_zarr(path) else "npy" if is_npy_folder(path) else ""
    return sniff(path) if "." not in os.path.basename(path) else ""


def are_arrays(urls: Sequence[str], fields: Any = None) -> bool:
    """Whether they are files of arrays; .npz are where each is one sample of them, else a format of records."""
    cases = asks_for_cases(fields)
    kinds = [k if k != "npz" or cases else "" for k in map(kind_of, urls)]
    if any(kinds) and not all(kinds):
        raise UsageError(f"{urls[kinds.index('')]!r} is no file of arrays, and others of the list are")
    return any(kinds)


def expanded(urls: Sequence[str]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for url in urls:
        path, group = _parts(url)
        path = path.removeprefix("file://")
        paths = _core.expand_urls([path]) if any(c in path for c in "*?[{") and not os.path.exists(path) else [path]
        out += [(p.rstrip("/") or p, group) for p in paths]
    return out


def read_arrays(path: str, group: str) -> list[Stored]:
    """What the metadata of one file or folder say."""
    kind = kind_of(path)
    if not os.path.exists(path):
        raise NotFound(f"there is no {path}")
    if os.path.exists(os.path.join(path, "headrace.unfinished")):
        raise UsageError(f"{path} is an unfinished pack: the same `headrace pack` again goes on with it")
    if kind == "hdf5":
        from .hdf5 import hdf5_arrays

        return hdf5_arrays(path, group)
    if kind == "netcdf":
        return netcdf_arrays(path, group)
    if kind == "npy":
        return npy_folder(path) if os.path.isdir(path) else npy_arrays(path)
    if kind == "npz":
        from .npz import npz_arrays

        return npz_arrays(path)
    from .zarr import zarr_arrays

    return zarr_arrays(path, group)
