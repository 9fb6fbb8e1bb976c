# SPDX-License-Identifier: Apache-2.0
"""What a field was, it is after a pack: also in formats that know names and bytes alone (tar, LMDB)."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pyarrow as pa
import pytest
from support import pack_what_fits
from test_matrix import WRITABLE

COUNT = 12
DTYPES = {"u8": "u1", "i16": "i2", "i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8"}  # ours, NumPy's


def values(i: int) -> dict[str, Any]:
    """One sample: arrays of every type, numbers, text."""
    arrays = {f"a{ours}": (np.arange(6).reshape(2, 3) + i).astype(numpys) for ours, numpys in DTYPES.items()}
    return {**arrays, "n": i - 3, "r": i / 4, "name": f"sample {i}"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> hr.Dataset:
    """Arrow: fixed-size lists, so that the arrays are raw numbers whose type only the schema knows."""
    rows = [values(i) for i in range(COUNT)]
    columns: dict[str, Any] = {}
    for name, first in rows[0].items():
        if isinstance(first, np.ndarray):
            flat = pa.array(np.concatenate([row[name].ravel() for row in rows]))
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(flat, 3), 2)
        else:
            columns[name] = pa.array([row[name] for row in rows], {"n": pa.int32(), "r": pa.float32()}.get(name))
    columns["varies"] = pa.array([list(range(i)) for i in range(COUNT)], pa.list_(pa.int16()))
    path = tmp_path_factory.mktemp("types") / "x.arrow"
    table = pa.table(columns)
    with pa.ipc.new_file(path, table.schema) as out:
        out.write_table(table)
    return hr.open(path)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("name", [n for n in WRITABLE if n != "recordio"])
def test_types_survive(source: hr.Dataset, tmp_path: pathlib.Path, name: str) -> None:
    dropped = pack_what_fits(source, tmp_path / "out", name, shards=2, keep_order=True)
    kept = {field for field, _ in source.schema} - set(dropped)
    assert len(kept) >= 8
    places: list[Any] = [
        tmp_path / "out",
        sorted(p for p in (tmp_path / "out").iterdir() if p.name.startswith("shard-") and p.suffix != ".hridx"),
    ]
    for place in places:
        packed = hr.open(place)
        mine, theirs = dict(source.schema), dict(packed.schema)
        for field in kept:
            assert theirs[field] == mine[field] or {theirs[field], mine[field]} == {"npy", "array"}, field
        for i in range(COUNT):
            sample = packed[i]
            for field in kept:
                assert same(source[i][field], sample[field]), (field, source[i][field], sample[field])
        for path in (tmp_path / "out").glob("*.hridx"):  # and without the indexes that the pack wrote along
            path.unlink()


def test_batches_have_the_types_of_the_source(source: hr.Dataset, tmp_path: pathlib.Path) -> None:
    hr.pack(source, tmp_path / "out", to="tar", shards=2, keep_order=True)
    batches = []
    for place in (source, tmp_path / "out"):
        with hr.Loader(place, 4, output="numpy", shuffle=False) as loader:
            batches.append(next(iter(loader)))
    for name, _ in source.schema:
        assert same(batches[0][name], batches[1][name]), name


def test_an_index_of_ones_own_knows_them_too(source: hr.Dataset, tmp_path: pathlib.Path) -> None:
    hr.pack(source, tmp_path / "out", to="tar", shards=2, keep_order=True)
    hr.build_index(tmp_path / "out", str(tmp_path / "index"))
    packed = hr.open(tmp_path / "out", index=tmp_path / "index")
    assert same(packed[5]["af32"], source[5]["af32"])


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{",
        b"no json at all\n",
        b"[]\n",
        b'{"format": "tar", "shards": [\n',
        b'{"format": "mds", "fields": [{"name": "af32", "kind": "array", "dtype": "f32", "shape": [2, 3]}], "shards": [\n',
        b'{"format": "tar", "fields": 7, "shards": [\n',
        b'{"format": "tar", "fields": [7, {}, {"name": "af32"}, {"name": "af32", "kind": "array"}], "shards": [\n',
        b'{"format": "tar", "fields": [{"name": "af32", "kind": "array", "dtype": "f32", "shape": [null, null]}], "shards": [\n',
        b'{"format": "tar", "fields": [{"name": "af32", "kind": "array", "dtype": "f99", "shape": [6]}], "shards": [\n',
        b'{"format": "tar", "fields": [{"name": "af32", "kind": "array", "dtype": "f32", "shape": [-1]}], "shards": [\n',
    ],
)
def test_a_manifest_that_says_nothing_leaves_bytes(source: hr.Dataset, tmp_path: pathlib.Path, head: bytes) -> None:
    hr.pack(source, tmp_path / "out", to="tar", shards=1, keep_order=True)
    (tmp_path / "out/headrace.json").write_bytes(head)
    packed = hr.open(tmp_path / "out")
    assert dict(packed.schema)["af32"] == "bytes"
    assert packed[3]["af32"] == source[3]["af32"].tobytes()


def test_a_manifest_that_lies_is_an_error_that_names_the_field(source: hr.Dataset, tmp_path: pathlib.Path) -> None:
    hr.pack(source, tmp_path / "out", to="tar", shards=1, keep_order=True)
    manifest = tmp_path / "out/headrace.json"
    manifest.write_text(
        manifest.read_text().replace(
            '"af32", "kind": "array", "dtype": "f32", "shape": [2, 3]',
            '"af32", "kind": "array", "dtype": "f32", "shape": [2, 300]',
        )
    )
    with pytest.raises(hr.Error, match="af32"):
        hr.open(tmp_path / "out")[3]
    assert json.loads(manifest.read_text())["fields"]
