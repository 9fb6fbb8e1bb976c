# SPDX-License-Identifier: Apache-2.0
"""Reads our RecordIO files with DALI's MXNet reader, and says whether payloads and labels are what was packed.

peer | check FOLDER: see golden_script.py; bench/peers/dali.txt has the versions, and no GPU is needed. DALI has no writer of RecordIO.
Each .rec has its .idx beside it. What is right is read by `tests/layouts.py`, from the published layout.
"""

from __future__ import annotations

import pathlib
import struct

import numpy as np
import nvidia.dali as dali  # type: ignore[import-not-found,unused-ignore]
from golden_script import agree, run, sets_in, shards_in
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


def check(folder: pathlib.Path) -> None:
    for packed in sets_in(folder):
        for path in shards_in(packed, ".rec"):
            want = by_layout(path)
            agree(f"{packed.name}/{path.name}", by_dali(path, len(want)), want)


if __name__ == "__main__":
    run(f"DALI {dali.__version__}", check=check)
