# SPDX-License-Identifier: Apache-2.0
"""Record formats written down a second time, from their published layouts, in plain Python: what the tests hold ours against."""

from __future__ import annotations

import json
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


def feature(values: list[bytes] | list[int] | list[float]) -> bytes:
    """A Feature message: bytes, int64 or float, by what the list holds."""
    if values and isinstance(values[0], int):
        return message(3, message(1, b"".join(varint(int(v)) for v in values)))
    if values and isinstance(values[0], float):
        return message(2, message(1, struct.pack(f"<{len(values)}f", *values)))
    return message(1, b"".join(message(1, bytes(v)) for v in values))  # type: ignore[arg-type]


# -- MXNet's RecordIO --------------------------------------------------------------------------------

RECORDIO_MAGIC = struct.pack("<I", 0xCED7230A)


def recordio_parts(record: bytes) -> list[bytes]:
    """A record is cut where the magic stands at a multiple of 4, and the magic left out."""
    cuts = [at for at in range(0, len(record) - 3, 4) if record[at : at + 4] == RECORDIO_MAGIC]
    begins = [0, *(at + 4 for at in cuts)]
    return [record[begin:end] for begin, end in zip(begins, [*cuts, len(record)])]


def image_record(labels: float | list[float], number: int, payload: bytes) -> bytes:
    """IRHeader and payload, as mxnet.recordio.pack makes them."""
    if isinstance(labels, list):
        return struct.pack("<IfQQ", len(labels), 0, number, 0) + struct.pack(f"<{len(labels)}f", *labels) + payload
    return struct.pack("<IfQQ", 0, labels, number, 0) + payload


def write_recordio(path: pathlib.Path, records: Iterable[bytes], *, idx: bool = False) -> pathlib.Path:
    lines = []
    with path.open("wb") as out:
        for number, record in enumerate(records):
            lines.append(f"{number}\t{out.tell()}\n")
            parts = recordio_parts(record)
            for i, part in enumerate(parts):
                kind = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
                out.write(RECORDIO_MAGIC + struct.pack("<I", kind << 29 | len(part)) + part + bytes(-len(part) % 4))
    if idx:
        path.with_suffix(".idx").write_text("".join(lines))
    return path


def read_recordio(path: pathlib.Path) -> Iterator[tuple[int, bytes]]:
    """Where each record begins, and the record."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        begin, record, kind = at, b"", 1
        while kind in (1, 2):
            assert data[at : at + 4] == RECORDIO_MAGIC
            (word,) = struct.unpack_from("<I", data, at + 4)
            kind, length = word >> 29, word & (1 << 29) - 1
            if at > begin:
                record += RECORDIO_MAGIC
            record += data[at + 8 : at + 8 + length]
            at += 8 + (length + 3) // 4 * 4
        yield begin, record


def read_mds(path: pathlib.Path) -> list[dict[str, bytes]]:
    """The columns of every sample of a shard, as the layout has them."""
    data = path.read_bytes()
    n = struct.unpack_from("<I", data)[0]
    offsets = struct.unpack_from(f"<{n + 1}I", data, 4)
    config = json.loads(data[4 * (n + 2) : offsets[0]])
    assert (config["format"], config["version"], offsets[-1]) == ("mds", 2, len(data))
    samples = []
    for begin in offsets[:-1]:
        fixed = config["column_sizes"]
        varying = iter(struct.unpack_from(f"<{fixed.count(None)}I", data, begin))
        at = begin + 4 * fixed.count(None)
        sample = {}
        for name, size in zip(config["column_names"], fixed):
            size = next(varying) if size is None else size
            sample[name] = data[at : at + size]
            at += size
        samples.append(sample)
    return samples
