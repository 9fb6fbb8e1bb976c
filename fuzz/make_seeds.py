# SPDX-License-Identifier: Apache-2.0
"""Writes inputs for the fuzz targets to begin with: python fuzz/make_seeds.py FOLDER.

The golden files that are small, each with the byte behind it that tells format_fuzz what it is.
"""

import gzip
import struct
import sys
import zlib
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
LARGEST = 65000  # ./dev fuzz gives inputs of 64 KiB at most
WHOLE, FOLDER, OPENED, INDEX, PATCHED, MADE_UP = 0, 1, 2, 3, 4, 6
SHAPES = 10
WRITERS = 8


def whole_files():
    for path in sorted(GOLDEN.rglob("*")):
        if path.suffix in (".arrow", ".tfrecord", ".mds", ".idx") or path.name.endswith(".tfrecord.gz"):
            yield path.name, path.read_bytes()
        elif path.name.endswith(".beton.gz"):
            yield path.name, gzip.decompress(path.read_bytes())


def folders():
    """The index.json beside a shard, which is called `shard` in it."""
    for index in sorted(GOLDEN.glob("*/*/index.json")):
        for shard in sorted(index.parent.iterdir()):
            if shard.name == "index.json":
                continue
            text = index.read_text().replace(f'"{shard.name}"', '"shard"').encode()
            yield f"{index.parent.name}-{shard.name}", struct.pack("<H", len(text)) + text + shard.read_bytes()


def format_seeds():
    seeds = [(name, data, WHOLE) for name, data in whole_files()]
    seeds += [(name, data, FOLDER) for name, data in folders()]
    seeds += [(f"opened-{n}", struct.pack("<II", n, 128) + bytes(64), OPENED) for n in (1, 2, 3, 4, 16, 64, 2**31 | 1)]
    seeds += [("index", bytes(32), INDEX)]
    seeds += [(f"patched-{n}", bytes([0, 0, 0]), PATCHED + 8 * n) for n in range(WRITERS)]
    seeds += [(f"made-up-{n}", bytes(range(256)) * 2, MADE_UP + 8 * n) for n in range(SHAPES)]
    return {name: data + bytes([choice]) for name, data, choice in seeds}


EXPRESSIONS = [
    "cls < 10 and not (width < 256 or source in [\"web\", 'scan'])",
    '0 <= score < 0.5 and key != "a/b"',
    "`a name with blanks` == 3 or x not in [1, 2.5, -3e2]",
]


def classic_netcdf(version: int, records: int) -> bytes:
    """Two dimensions, attributes, a variable with records and two without; the elements are zeros."""
    size = ">q" if version == 5 else ">i"

    def count(n):
        return struct.pack(size, n)

    def name(text):
        return count(len(text)) + text + bytes(-len(text) % 4)

    def attribute(called, kind, n, values):
        return name(called) + struct.pack(">i", kind) + count(n) + values + bytes(-len(values) % 4)

    def listed(tag, parts):
        return struct.pack(">i", tag if parts else 0) + count(len(parts)) + b"".join(parts)

    def variable(called, dims, attributes, kind, nbytes, begin):
        where = struct.pack(">i" if version == 1 else ">q", begin)
        axes = count(len(dims)) + b"".join(map(count, dims))
        return name(called) + axes + listed(12, attributes) + struct.pack(">i", kind) + count(nbytes) + where

    packed = [attribute(b"scale_factor", 6, 1, struct.pack(">d", 0.5)), attribute(b"units", 2, 1, b"K")]
    head = b"CDF" + bytes([version]) + count(records) + listed(10, [name(b"time") + count(0), name(b"x") + count(3)])
    variables = [
        variable(b"t", [0, 1], packed, 3, 8, 600), variable(b"u", [0], [], 5, 4, 608), variable(b"x", [1], [], 4, 12, 588)
    ]  # fmt: skip
    return (head + listed(12, [attribute(b"title", 2, 4, b"seed")]) + listed(11, variables)).ljust(600 + 12 * 4, b"\0")


def heap_collection(objects):
    """A global heap collection of HDF5, addresses of 8 bytes."""
    body = b""
    for number, data in enumerate(objects, 1):
        body += struct.pack("<HHIQ", number, 1, 0, len(data)) + data + bytes(-len(data) % 8)
    body += struct.pack("<HHIQ", 0, 0, 0, 32) + bytes(16)
    return b"GCOL" + struct.pack("<BxxxQ", 1, 16 + len(body)) + body


def heap_seeds():
    """References to values of variable length, plain and in a chunk, and what they refer to."""
    objects = [b"one", b"", b"three" * 9]
    out = {}
    for chain, pack in ((0, bytes), (1, zlib.compress)):
        for base in (0, 64):
            stored = b""
            for _ in range(3):  # the packed length moves the addresses, which may change the length
                at = base + -(-len(stored) // 8) * 8
                references = [(len(o), at - base, i + 1) for i, o in enumerate(objects)] + [(0, 0, 0)]
                stored = pack(b"".join(struct.pack("<IQI", *r) for r in references))
            file = stored + bytes(at - len(stored)) + heap_collection(objects)
            out[f"{chain}-{base}"] = struct.pack("<BBHH", 16 if base else 0, chain, 4, len(stored)) + file
    return out


def lz4_block(data):
    """Literals alone: what no fuzzer needs help with is the rest."""
    length = (
        b"\xf0" + b"\xff" * ((len(data) - 15) // 255) + bytes([(len(data) - 15) % 255])
        if len(data) >= 15
        else bytes([len(data) << 4])
    )
    return length + data


def chunk_seeds():
    """Chunks of 4-byte numbers: a Blosc frame of two blocks and a rest, split and not, and bare ones."""
    block, item = 2048, 4
    planes = [bytes(block // item), bytes(range(256)) * 2, b"\1\2" * 256, b"\x41" * 512]
    streams = [
        b"\x1f\0\1\0\xff" + bytes([512 - 1 - 5 - 4 - 15 - 255]) + b"\x50" + bytes(5),
        planes[1],
        lz4_block(planes[2]),
        planes[3],
    ]
    split = b"".join(struct.pack("<I", len(s)) + s for s in streams)
    rest = lz4_block(bytes(100))
    rest = struct.pack("<I", len(rest)) + rest
    out = {}
    for flags, body in ((0x21, split), (0x31, struct.pack("<I", block) + b"".join(planes)), (0x20, split)):
        starts = [16 + 12, 16 + 12 + len(body), 16 + 12 + 2 * len(body)]
        whole = struct.pack("<3I", *starts) + 2 * body + rest
        head = struct.pack("<BBBBIII", 2, 1, flags, item, 2 * block + 100, block, 16 + len(whole))
        out[f"blosc-{flags}"] = b"\7\4\0\0" + head + whole
    data = bytes(range(64)) * 8
    out["zlib"] = b"\0\4\x40\0" + zlib.compress(data)
    out["lz4"] = b"\3\4\x40\0" + struct.pack("<I", 512) + lz4_block(data)
    out["shuffle"] = b"\x08\4\x40\0" + data
    return out


def main(to: Path):
    seeds = {
        "netcdf_fuzz": {f"{v}-{n}": classic_netcdf(v, n) for v in (1, 2, 5) for n in (4, 0, -1)},
        "format_fuzz": format_seeds(),
        "hdf5_heap_fuzz": heap_seeds(),
        "chunk_fuzz": chunk_seeds(),
        "expression_fuzz": {f"{i}": b"\0" + text.encode() for i, text in enumerate(EXPRESSIONS)},
        "json_array_fuzz": {
            f"{i}": text
            for i, text in enumerate((b"[1, -2]", b"[[1.5, 2], [true, NaN]]", b"[]", b"[[], []]", b"[[[1e3]], [[-Infinity]]]"))
        },
    }
    for target, files in seeds.items():
        (to / target).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            if len(data) <= LARGEST:
                (to / target / name).write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
