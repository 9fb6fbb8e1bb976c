# SPDX-License-Identifier: Apache-2.0
"""Documents with any number of pictures and paragraphs, as vision-language models take them.

Makes a small TFRecord file in which a field has several values, or none, and prints what a batch holds:
lists of texts, and one tensor of all pictures with the place where each document begins.

python examples/interleaved_documents.py
"""

from __future__ import annotations

import pathlib
import struct
import tempfile

import headrace as hr
import numpy as np
from headrace import photos

COUNTS = [3, 0, 1, 5, 2, 2, 0, 4]  # pictures of each document


def varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def message(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def document(n: int) -> bytes:
    """A tf.train.Example: the features `jpg` and `txt` are lists of bytes."""
    fields = {
        "jpg": [photos.make_photo(10 * n + k, (32 + 4 * k, 24)) for k in range(COUNTS[n])],
        "txt": [f"paragraph {k} of document {n}".encode() for k in range(COUNTS[n] + 1)],
    }
    entries = b""
    for name, values in fields.items():
        feature = message(1, b"".join(message(1, v) for v in values))
        entries += message(1, message(1, name.encode()) + message(2, feature))
    return message(1, entries)


def write(path: pathlib.Path) -> None:
    with path.open("wb") as out:
        for n in range(len(COUNTS)):
            record, length = document(n), struct.pack("<Q", len(document(n)))
            out.write(length + struct.pack("<I", crc32c(length)) + record + struct.pack("<I", crc32c(record)))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "documents.tfrecord"
        write(path)
        fields = {
            "pictures": hr.image("jpg", many=True).random_resized_crop(16).random_flip().ragged(),
            "texts": hr.text("txt", many=True),
        }
        seen = 0
        with hr.Loader(path, batch_size=4, fields=fields, seed=1, output="numpy") as loader:
            for batch in loader.epoch(0):
                pixels, begins = batch["pictures"]
                print(f"documents {batch.indices.tolist()}: pictures {pixels.shape}, begins {begins.tolist()}")
                for k, n in enumerate(batch.indices):
                    own = pixels[begins[k] : begins[k + 1]]
                    assert len(own) == COUNTS[n] and len(batch["texts"][k]) == COUNTS[n] + 1
                    print(f"  {n}: {len(own)} pictures, {len(batch['texts'][k])} texts, the last {batch['texts'][k][-1]!r}")
                seen += len(pixels)
        assert seen == int(np.sum(COUNTS))
        print(f"every picture came exactly once: {seen}")


if __name__ == "__main__":
    main()
