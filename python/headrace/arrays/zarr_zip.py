# SPDX-License-Identifier: Apache-2.0
"""Zarr stores in one zip file, as zarr's ZipStore writes them: stored members are read where they lie."""

from __future__ import annotations

import itertools
import math
import os
import struct
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import DataError, Unsupported
from .model import no_places
from .npz import member_begin
from .stored_files import join, open_file, relative

_METADATA = (".zarray", "zarr.json", ".zgroup")
_NOT_THERE = (1 << 64) - 1


def is_zarr_zip(path: str) -> bool:
    """By its directory: something of Zarr's in it."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as z:
            return any(n.rpartition("/")[2] in _METADATA for n in z.namelist())
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


class ZipTree:
    """The members of one file, by their names. ``folder`` in what follows is the file's path, "/" and a name within."""

    def __init__(self, path: str) -> None:
        self.path, self.root, self.looked_at = path, path, None
        try:
            with open_file(path) as file, zipfile.ZipFile(file) as z:
                self.members = {i.filename: i for i in z.infolist() if not i.is_dir()}
        except (zipfile.BadZipFile, ValueError) as e:
            raise DataError(f"{path} is a damaged zip: {e}") from None

    def _within(self, path: str) -> str:
        return relative(path, self.path).replace(os.sep, "/").removeprefix("./")

    def read(self, path: str, most: int) -> bytes | None:
        info = self.members.get(self._within(path))
        if info is None:
            return None
        if info.file_size > most:
            raise DataError(f"{path} has more than {most} bytes")
        try:
            with open_file(self.path) as file, zipfile.ZipFile(file) as z:
                return z.read(info)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as e:
            raise DataError(f"{self.path}: member '{info.filename}' cannot be read: {e}") from None

    def folders(self) -> list[str]:
        """All that hold metadata, in the order of their names."""
        found = {n.rpartition("/")[0] for n in self.members if n.rpartition("/")[2] in _METADATA}
        return [join(self.path, n) if n else self.path for n in sorted(found)]

    def chunks(self, folder: str, grid: Sequence[int], lead: str, separator: str, form: Any) -> tuple[Any, list[str], Any]:
        """As ``_core.zarr_chunks`` gives them, of this one file."""
        within = self._within(folder)
        prefix = "" if within == "." else within + "/"
        places = no_places(math.prod(grid))
        with open_file(self.path) as file:
            size = file.seek(0, os.SEEK_END)
            for number, at in enumerate(itertools.product(*map(range, grid))):
                key = separator.join(map(str, at)) or ("0" if not lead else "")
                name = prefix + (f"{lead}{separator}{key}" if lead and key else lead or key)
                info = self.members.get(name)
                if info is None:
                    continue
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise Unsupported(
                        f"{self.path}: member '{name}' is compressed by the zip or encrypted; write the store with "
                        "ZipStore(…, compression=zipfile.ZIP_STORED), or unpack it"
                    )
                places[number] = (0, 0, member_begin(self.path, file, info, size), info.file_size)
            if form is not None:
                places = _in_shards(self.path, file, places, grid, *form)
        return places, [self.path], np.array([size], np.uint64)


def _in_shards(
    path: str, file: Any, shards: Any, grid: Sequence[int], per_shard: list[int], chunks: list[int], at_start: bool, checked: bool
) -> Any:
    """Places of the chunks, by the index of each shard: (offset, bytes) of every chunk, last axis fastest."""
    out = no_places(math.prod(chunks)).reshape(*chunks, 4)
    count = math.prod(per_shard)
    length = 16 * count + (4 if checked else 0)
    for shard, (_, _, offset, size) in zip(itertools.product(*map(range, grid)), shards.tolist()):
        if not size:
            continue
        if size < length:
            raise DataError(f"{path}, offset {offset}: a shard of {size} bytes is smaller than its index")
        file.seek(offset if at_start else offset + size - length)
        raw = file.read(length)
        if checked and struct.unpack("<I", raw[-4:])[0] != _core.crc32c(raw[:-4]):
            raise DataError(f"{path}, offset {offset}: the index of a shard does not have its checksum")
        index = np.frombuffer(raw[: 16 * count], "<u8").reshape(count, 2)
        for (begin, stored), inner in zip(index.tolist(), itertools.product(*map(range, per_shard))):
            at = tuple(s * p + i for s, p, i in zip(shard, per_shard, inner))
            if begin == _NOT_THERE or any(a >= n for a, n in zip(at, chunks)):
                continue
            if begin > size or stored > size - begin:
                raise DataError(f"{path}, offset {offset}: a chunk runs past its shard")
            out[at] = (0, 0, offset + begin, stored)
    return out.reshape(-1, 4)
