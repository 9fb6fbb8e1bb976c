# SPDX-License-Identifier: Apache-2.0
"""Members of an .npz as arrays: stored ones are read in part, deflated ones open as a whole."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import Any

from .. import _core
from ..errors import DataError, Unsupported
from . import stored_files
from .model import Stored, no_places, one_place

_HEAD = 1 << 16  # bytes that hold the header of an array
_MOST_FROM_A_BYTE = 1032  # deflate's limit


def npz_arrays(path: str) -> list[Stored]:
    """The arrays of the file, by the names of its members."""
    info = stored_files.stat(path)
    size = info.bytes if info is not None else 0
    try:
        with stored_files.open_file(path) as file, zipfile.ZipFile(file) as z:
            members = [i for i in z.infolist() if i.filename.endswith(".npy")]
            return [_array(path, file, z, info, size) for info in members]
    except (zipfile.BadZipFile, EOFError, struct.error, NotImplementedError, RuntimeError) as e:
        raise DataError(f"{path} is a damaged zip: {e}") from None


def _array(path: str, file: Any, z: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> Stored:
    name = info.filename.removesuffix(".npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
        return Stored(name, (), why="it is encrypted, or compressed by another method than deflate")
    if info.file_size > _MOST_FROM_A_BYTE * (info.compress_size + 64):
        raise DataError(f"{path}: '{name}' says {info.file_size} bytes, which {info.compress_size} cannot become")
    try:
        with z.open(info) as member:
            head = member.read(_HEAD)
            d = _core.npy_member(path, head, info.file_size)
    except Unsupported as e:
        return Stored(name, (), why=str(e))
    except (zlib.error, zipfile.BadZipFile, EOFError) as e:
        raise DataError(
            f"{path}, offset {info.header_offset}: member '{info.filename}' is damaged: {e}; copy or write the file again"
        ) from None
    begin = member_begin(path, file, info, size)
    shape = tuple(d["shape"])
    out = Stored(name, tuple(f"axis{i}" for i in range(len(shape))), shape, tuple(max(1, s) for s in shape), d["dtype"])
    out.big_endian, out.fortran, out.files = d["big_endian"], d["fortran"], [path]
    if not all(shape):
        out.places = no_places(0)
    elif info.compress_type == zipfile.ZIP_STORED:
        out.places = one_place(begin + d["data"], d["bytes"])
        if d["data"] + d["bytes"] == info.file_size:  # else what lies behind the elements is in the sum, and not read
            out.crc = (zlib.crc32(head[: d["data"]]), info.CRC)
    else:  # one record that holds the header and all elements
        out.filters = [("deflate", 0)]
        out.record = (info.file_size, d["data"], len(shape))
        out.places = one_place(begin, info.compress_size)
        out.crc = (0, info.CRC)
    return out


def member_begin(path: str, file: Any, info: zipfile.ZipInfo, size: int) -> int:
    """Where the member's bytes begin: behind a header of its own."""
    at = file.tell()
    file.seek(info.header_offset)
    head = file.read(30)
    file.seek(at)
    if len(head) < 30 or head[:4] != b"PK\x03\x04":
        raise DataError(f"{path}: no member begins at offset {info.header_offset}")
    begin = info.header_offset + 30 + sum(struct.unpack("<HH", head[26:30]))
    if begin > size or info.compress_size > size - begin:
        raise DataError(f"{path}: '{info.filename}' runs past the end of the file from offset {begin} on")
    return int(begin)
