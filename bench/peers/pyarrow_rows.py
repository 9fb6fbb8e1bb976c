# SPDX-License-Identifier: Apache-2.0
"""pyarrow itself, one thread: rows at random from a Parquet or an Arrow file, 64 at a time, as bytes.

`access` says how: "take" of a data set (what people write first), "rows" of a mapped Arrow file's record batches.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.ipc

from peers.common import BATCH, Job, main


def _files(source: str, suffix: str) -> list[str]:
    return sorted(str(p) for p in pathlib.Path(source).glob(f"*{suffix}"))


def _orders(count: int) -> Iterator[Any]:
    numbers = np.random.default_rng(1)
    while True:
        order = numbers.permutation(count)
        for at in range(0, count - BATCH + 1, BATCH):
            yield order[at : at + BATCH]


def _taken(job: Job) -> Iterator[Any]:
    data = pa.dataset.dataset(_files(job.options["source"], job.options["suffix"]), format=job.options["suffix"][1:])
    field = job.options["field"]
    for rows in _orders(data.count_rows()):
        yield data.take(pa.array(rows), columns=[field])[field].to_pylist()


def _mapped(job: Job) -> Iterator[Any]:
    tables = [pa.ipc.open_file(pa.memory_map(name)).read_all() for name in _files(job.options["source"], ".arrow")]
    column = pa.concat_tables(tables)[job.options["field"]]
    for rows in _orders(len(column)):
        yield [column[int(row)].as_py() for row in rows]


def batches(job: Job) -> Iterator[Any]:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    return _taken(job) if job.options["access"] == "take" else _mapped(job)


if __name__ == "__main__":
    main(batches)
