# SPDX-License-Identifier: Apache-2.0
"""Whether samples share what opens only as a whole is found out, whatever the format: shuffling says so where memory is short."""

from __future__ import annotations

import gzip
import pathlib
import shutil

import headrace as hr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import write_tar

ROWS, BYTES = 64, 100_000  # 6.4 MB


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({"data": [rng.bytes(BYTES) for _ in range(ROWS)]})


def arrow(path: pathlib.Path, compression: str | None, rows: int = ROWS) -> pathlib.Path:
    what = table()
    with pa.ipc.new_file(path, what.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as out:
        out.write_table(what, max_chunksize=rows)
    return path


def tar(path: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    return pathlib.Path(write_tar(path, [(f"{i:03}.data", rng.bytes(BYTES)) for i in range(ROWS)]))


def tfrecord(path: pathlib.Path, packed: bool) -> pathlib.Path:
    hr.pack(str(tar(path.with_suffix(".tar"))), path.parent / "pack", to="tfrecord", shards=1)
    (made,) = (path.parent / "pack").glob("*.tfrecord")
    if packed:
        path.write_bytes(gzip.compress(made.read_bytes(), 1))
    else:
        shutil.copy(made, path)
    return path


def parquet(path: pathlib.Path, rows: int) -> pathlib.Path:
    pq.write_table(table(), path, row_group_size=rows)
    return path


CASES = {
    "arrow": (lambda f: arrow(f / "x.arrow", None), False),
    "arrow zstd": (lambda f: arrow(f / "x.arrow", "zstd"), True),
    "arrow lz4": (lambda f: arrow(f / "x.arrow", "lz4"), True),
    "arrow zstd, one row a batch": (lambda f: arrow(f / "x.arrow", "zstd", 1), False),
    "parquet": (lambda f: parquet(f / "x.parquet", ROWS), True),
    "parquet, one row a group": (lambda f: parquet(f / "x.parquet", 1), False),
    "tfrecord": (lambda f: tfrecord(f / "x.tfrecord", False), False),
    "tfrecord gzip": (lambda f: tfrecord(f / "x.tfrecord.gz", True), True),
    "tar": (lambda f: tar(f / "x.tar"), False),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("indexed", [False, True])
def test_shuffling_what_shares_units_asks_for_their_memory(tmp_path: pathlib.Path, case: str, indexed: bool) -> None:
    make, shares = CASES[case]
    place = hr.open(make(tmp_path))
    if indexed:
        hr.build_index(make(tmp_path), str(tmp_path / "index"))
        place = hr.open(make(tmp_path), index=tmp_path / "index")
    with hr.Loader(place, 4, {"data": hr.bytes("data")}, shuffle="global", memory_budget="2MiB") as loader:
        notes = loader._inner.notes()  # which are told once in a process
    assert any("row groups or compressed chunks" in note for note in notes) == shares, notes
