# SPDX-License-Identifier: Apache-2.0
"""Which files hold arrays, of which format, and what their metadata say."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from ..errors import NotFound, StorageError, Unsupported, UsageError
from . import stored_files
from .model import Stored, is_npy_folder, npy_arrays, npy_folder
from .netcdf import netcdf_arrays, sniff
from .volumes import asks_for_cases

_HDF5 = (".h5", ".hdf5", ".he5", ".nc", ".nc3", ".nc4", ".cdf")
#: Other names that HDF5 goes by: AnnData, MATLAB 7.3, NASA's, NeXus, ILASTIK, PyTables and Keras.
_OTHERS = (".h5ad", ".loom", ".mat", ".hdf", ".nxs", ".hdf4", ".h4", ".ilp", ".keras", ".h5py", ".hdfs", ".nwb", ".cxi", ".nx")


#: Of longer lists no entry is looked at for being a folder of files.
_MOST_FOLDERS = 1000

#: Lists of such files are long.
_NEVER: tuple[str, ...] = (
    ".csv",
    ".tsv",
    ".txt",
    ".json",
    ".jsonl",
    ".gz",
    ".zst",
    ".xz",
    ".bz2",
    ".zip",
    ".jpg",
    ".jpeg",
    ".png",
)
_NEVER += (
    ".webp",
    ".gif",
    ".bmp",
    ".tif",
    ".tiff",
    ".ppm",
    ".pgm",
    ".mp4",
    ".wav",
    ".mp3",
    ".flac",
    ".xml",
    ".pt",
    ".safetensors",
)


def _parts(url: str) -> tuple[str, str]:
    """``path#group`` as two, unless there is a file of that very name."""
    if "#" in url and not stored_files.exists(url):
        path, _, group = url.rpartition("#")
        return path, group
    return url, ""


def _is_wild(path: str) -> bool:
    return any(c in path for c in "*?[{")


def kind_of(url: str) -> str:
    """ "hdf5", "netcdf", "npy", "npz" or "zarr"; "" of what holds no arrays."""
    path = _parts(url)[0].rstrip("/")
    lower = path.lower()
    if lower.endswith(_HDF5):
        return (not _is_wild(path) and sniff(path)) or "hdf5"
    if lower.endswith((".npy", ".npz")):
        return lower[-3:]
    if lower.endswith((".zarr", ".zarr.zip")):
        return "zarr"
    ending = os.path.splitext(lower)[1]
    if stored_files.is_url(path) and (_is_known(ending) or _is_wild(path)):
        return ""  # of a list of many nothing is looked at: each look is a request
    if lower.endswith(".zip") and stored_files.is_file(path):
        from .zarr_zip import is_zarr_zip

        return "zarr" if is_zarr_zip(path) else ""
    if stored_files.is_url(path) and not ending:
        return "zarr" if _core.is_zarr(path) else "npy" if is_npy_folder(path) else sniff(path)
    if stored_files.is_folder(path):
        return "zarr" if _core.is_zarr(path) else "npy" if is_npy_folder(path) else ""
    return sniff(path) if ending == "" or ending in _OTHERS or not _is_known(ending) else ""


def _holds_arrays(url: str) -> str:
    """As ``kind_of`` without a look at what the name tells: lists are long."""
    lower = _parts(url)[0].rstrip("/").lower()
    return "hdf5" if lower.endswith(_HDF5) else kind_of(url)


@functools.lru_cache(maxsize=1)
def _known_endings() -> frozenset[str]:
    """Of formats that hold records: files of these names are not looked into."""
    return frozenset(s for row in _core.formats() for s in row["suffixes"])


def _is_known(ending: str) -> bool:
    return ending in _known_endings() or ending in _NEVER


def array_files(folder: str) -> list[str]:
    """The files of a folder, where all of them are HDF5 or NetCDF by name; [] else."""
    try:
        names = [n for n, _ in stored_files.entries(folder) if not n.startswith(".") and not n.endswith(".hridx")]
    except (Unsupported, StorageError):
        return []
    good = bool(names) and all(n.lower().endswith((*_HDF5, *_OTHERS)) for n in names)
    return [stored_files.join(folder, n) for n in names] if good else []


def _check_folder(url: str) -> None:
    """A folder of array files is two things."""
    path = _parts(url)[0].rstrip("/")
    files = array_files(path) if not _is_wild(path) and stored_files.is_folder(path) else []
    if files:
        ending = os.path.splitext(files[0])[1]
        raise UsageError(
            f"{path} is a folder of {len(files)} files of arrays: write {path}/*{ending} to read them one after the other along "
            'their first axis, or hr.array(…, along="file") for a sample of each'
        )


def are_arrays(urls: Sequence[str], fields: Any = None) -> bool:
    """Whether they are files of arrays; .npz are where each is one sample of them, else a format of records."""
    cases = asks_for_cases(fields)
    if cases and any(stored_files.is_folder(u) and array_files(u) for u in urls):
        return True
    kinds = [k if k != "npz" or cases else "" for k in map(_holds_arrays, urls)]
    if not any(kinds) and len(urls) <= _MOST_FOLDERS:
        for url in urls:
            if not stored_files.is_url(url) or not os.path.splitext(url)[1]:
                _check_folder(url)
    if any(kinds) and not all(kinds):
        raise UsageError(f"{urls[kinds.index('')]!r} is no file of arrays, but others of the list are; open it by itself")
    return any(kinds)


def expanded(urls: Sequence[str]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for url in urls:
        path, group = _parts(url)
        path = stored_files.plain(path)
        paths = _core.expand_urls([path]) if _is_wild(path) and not stored_files.exists(path) else [path]
        for p in paths:
            named = p.lower().endswith((*_HDF5, ".npy", ".npz", ".zarr"))
            inside = array_files(p) if not named and stored_files.is_folder(p) and not kind_of(p) else []
            out += [(f, group) for f in inside] or [(p.rstrip("/") or p, group)]
    return out


def named_arrays(path: str, group: str, all_of_them: bool = False) -> Mapping[str, Stored]:
    """What the metadata of one file or folder say, by the names of its arrays. ``all_of_them``: all will be asked for."""
    if kind_of(path) == "hdf5" and stored_files.exists(path):
        from .hdf5 import hdf5_arrays

        return hdf5_arrays(path, group, all_of_them)
    return {a.name: a for a in read_arrays(path, group)}


def read_arrays(path: str, group: str) -> list[Stored]:
    """What the metadata of one file or folder say."""
    kind = kind_of(path)
    if not (kind == "zarr" and stored_files.is_url(path)) and not stored_files.exists(path):
        raise NotFound(f"there is no {path}")
    if kind in ("zarr", "npy") and stored_files.exists(stored_files.join(path, "headrace.unfinished")):
        raise UsageError(f"{path} is an unfinished pack: the same `headrace pack` again goes on with it")
    if kind == "hdf5":
        from .hdf5 import hdf5_arrays

        return list(hdf5_arrays(path, group).values())
    if kind == "netcdf":
        return netcdf_arrays(path, group)
    if kind == "npy":
        return npy_folder(path) if stored_files.is_folder(path) else npy_arrays(path)
    if kind == "npz":
        from .npz import npz_arrays

        return npz_arrays(path)
    from .zarr import zarr_arrays

    return zarr_arrays(path, group)
