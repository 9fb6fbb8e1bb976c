# SPDX-License-Identifier: Apache-2.0
"""Record formats written down a second time, from their published layouts, in plain Python: what the tests hold ours against."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Iterable, Iterator


def _crc32c_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc32c_table()


def masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# -- TFRecord ----------------------------------------------------------------------------------------


def write_tfrecord(path: pathlib.Path, records: Iterable[bytes]) -> pathlib.Path:
    with path.open("wb") as out:
        for record in records:
            length = struct.pack("<Q", len(record))
            out.write(length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record)))
    return path


def read_tfrecord(path: pathlib.Path) -> Iterator[bytes]:
    data = path.read_bytes()
    at = 0
    while at < len(data):
        (n, crc) = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc(data[at : at + 8])
        record = data[at + 12 : at + 12 + n]
        assert len(record) == n and struct.unpack_from("<I", data, at + 12 + n)[0] == masked_crc(record)
        yield record
        at += 16 + n


def varint(n: int) -> bytes:
    n &= 2**64 - 1
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def message(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def example(features: dict[str, bytes]) -> bytes:
    """Of ready-made Feature messages."""
    entries = b"".join(message(1, message(1, name.encode()) + message(2, f)) for name, f in features.items())
    return message(1, entries)
