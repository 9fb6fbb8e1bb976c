# SPDX-License-Identifier: Apache-2.0
"""Reads our RecordIO files with DALI's MXNet reader, and says whether payloads and labels are what was packed.

    python tests/make_golden_recordio.py FILE.rec...

Each .rec with its .idx beside it. What is right is read by `tests/layouts.py`, from the published layout. Run it in an environment
of its own: pip install -r bench/peers/dali.txt (no GPU is needed).
"""

from __future__ import annotations

import pathlib
import struct
import sys

import numpy as np
import nvidia.dali as dali  # type: ignore[import-not-found,unused-ignore]
from layouts import read_recordio
from nvidia.dali import fn  # type: ignore[import-not-found,unused-ignore]


def by_layout(path: pathlib.Path) -> list[tuple[bytes, list[float]]]:
    out = []
    for _, record in read_recordio(path):
        flag, label = struct.unpack_from("<If", record)
        labels = list(struct.unpack_from(f"<{flag}f", record, 24)) if flag else [label]
        out.append((record[24 + 4 * flag :], labels))
    return out


@dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)  # type: ignore[untyped-decorator,unused-ignore]
def reader(path: pathlib.Path) -> object:
    payload, labels = fn.readers.mxnet(path=[str(path)], index_path=[str(path.with_suffix(".idx"))])
    return payload, labels


def by_dali(path: pathlib.Path, count: int) -> list[tuple[bytes, list[float]]]:
    pipe = reader(path)
    pipe.build()
    out = []
    for _ in range(count):
        payload, labels = pipe.run()
        out.append((bytes(np.array(payload[0])), np.array(labels[0]).ravel().tolist()))
    return out


def main() -> None:
    for name in sys.argv[1:]:
        want = by_layout(pathlib.Path(name))
        got = by_dali(pathlib.Path(name), len(want))
        for i, (a, b) in enumerate(zip(got, want)):
            if a != b:
                sys.exit(f"{name}: record {i} differs: {len(a[0])} bytes and {a[1]}, not {len(b[0])} and {b[1]}")
        print(f"DALI {dali.__version__} reads the {len(want)} records of {name} as they are")


if __name__ == "__main__":
    main()
