# SPDX-License-Identifier: Apache-2.0
"""LitData: what it wrote we read, leaf by leaf, raw and in each of its ways of zstd."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import shutil
import struct
from typing import Any

import headrace as hr
import numpy as np
import pytest
from layouts import read_mds
from PIL import Image
from support import good_after_changes, good_samples

GOLDEN = pathlib.Path(__file__).parent / "golden/litdata"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
COUNT = 10
PACKINGS = ["every", "zstd_chunk", "zstd_batch", "zstd_sample"]


@pytest.fixture
def golden(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy: indexes are written beside the data."""
    shutil.copytree(GOLDEN, tmp_path / "golden")
    return tmp_path / "golden"


def described(array: Any) -> dict[str, Any]:
    sha = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha}


def npy(value: bytes) -> dict[str, Any]:
    return described(np.load(io.BytesIO(value)))


def picture(value: bytes) -> dict[str, Any]:
    """As LitData gives it: channels first."""
    return described(np.asarray(Image.open(io.BytesIO(value))).transpose(2, 0, 1))


RAW = {
    "raw": lambda v: {"hex": v.hex()},
    "text": lambda v: v.decode(),
    "photo": picture,
    "plain": npy,
    "pack.grid": npy,
    "pack.zero": npy,
    "table": npy,
    "ids": lambda v: described(np.frombuffer(v, "<i8")),
    "mask": lambda v: described(np.frombuffer(v, "<u2")),
}
NUMBERS = ["id", "weight", "even"]


def wanted(name: str, i: int, field: str) -> Any:
    value = EXPECTED[name][i]
    for key in field.split("."):
        value = value[key]
    return value


@pytest.mark.parametrize("name", PACKINGS)
def test_every_leaf_is_what_litdata_reads(golden: pathlib.Path, name: str) -> None:
    fields = {**{f: hr.bytes(f) for f in RAW}, **{f: hr.scalar(f) for f in NUMBERS}}
    ds = hr.open(golden / name, fields)
    assert len(ds) == COUNT
    for i in [*range(COUNT), 7, 0, 9, 3]:  # random access is the same as one after the other
        got = ds[i]
        for field in NUMBERS:
            assert got[field] == wanted(name, i, field), (i, field)
        for field, read in RAW.items():
            assert read(got[field]) == wanted(name, i, field), (i, field)
    assert ds.key(5) == "chunk-0-1/00000001"


@pytest.mark.parametrize("name", PACKINGS)
def test_batches_have_the_leaves_too(golden: pathlib.Path, name: str) -> None:
    fields = {"grid": hr.bytes("pack.grid"), "raw": hr.bytes("raw"), "image": hr.image("photo").resize((8, 8))}
    with hr.Loader(golden / name, 4, fields, shuffle=True, tail="keep", output="numpy") as loader:
        got = {int(i): (g, r) for b in loader.epoch(0) for i, g, r in zip(b.indices, b["grid"], b["raw"])}
    assert len(got) == COUNT
    for i, (grid, raw) in got.items():
        assert npy(bytes(grid)) == wanted(name, i, "pack.grid")
        assert RAW["raw"](bytes(raw)) == wanted(name, i, "raw")


def test_a_tuple_has_numbers_and_one_leaf_is_data(golden: pathlib.Path) -> None:
    assert [[s["0"], s["1"]] for s in hr.open(golden / "pair")] == EXPECTED["pair"]
    assert [{"hex": s["data"].hex()} for s in hr.open(golden / "leaf")] == EXPECTED["leaf"]


def test_tokens_are_read_by_document(golden: pathlib.Path) -> None:
    ds = hr.open(golden / "tokens", {"data": hr.bytes("data")})
    assert [np.frombuffer(s["data"], "<i4").tolist() for s in ds] == EXPECTED["tokens"]


def test_a_list_of_pictures_has_its_values(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Through MDS, which holds several values too: | 0 | count | bytes of each | pictures |."""
    hr.pack(golden / "shots", tmp_path / "out", to="mds", shards=1, keep_order=True)
    for sample, want in zip(read_mds(tmp_path / "out/shard-000000.mds"), EXPECTED["shots"]):
        value = sample["shots"]
        count = struct.unpack_from("<I", value, 4)[0]
        sizes = struct.unpack_from(f"<{count}I", value, 8)
        begins = [8 + 4 * count + sum(sizes[:i]) for i in range(count)]
        assert [picture(value[b : b + n]) for b, n in zip(begins, sizes)] == want["shots"]


def test_an_array_without_axes_does_not_become_one_of_mds(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(hr.Error, match=r"field 'pack.zero': MDS has no arrays of type '<f4' with 0 axes"):
        hr.pack(golden / "every", tmp_path / "out", to="mds")


def test_what_is_not_read_is_refused_by_name(golden: pathlib.Path) -> None:
    with pytest.raises(hr.Unsupported, match="leaf 'x' is stored as pickle"):
        hr.open(golden / "pickle")


def edit_index(folder: pathlib.Path, change: Any) -> None:
    index = json.loads((folder / "index.json").read_text())
    change(index)
    (folder / "index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda x: x["chunks"][1].update(chunk_size=5), "index.json says that the chunk has 5 items, its own head says 4"),
        (lambda x: x["chunks"][1].update(chunk_bytes=99), "index.json says that the chunk has 99 bytes, and it has"),
        (lambda x: x["chunks"][1].update(filename="../x.bin"), "no filename inside the folder"),
        (lambda x: x["chunks"][1].update(filename="gone.bin"), "names chunk 'gone.bin', which is not there"),
        (lambda x: x["chunks"].clear(), "no chunk is named"),
        (lambda x: x["config"].update(encryption={"algorithm": "fernet"}), "encrypted"),
        (lambda x: x["config"].update(compression="lz4"), "compressed with lz4; zstd is read"),
        (lambda x: x["config"].update(item_loader="ParquetLoader"), "item_loader ParquetLoader"),
        (lambda x: x["config"]["data_format"].pop(), "data_spec has 13 leaves, data_format 12"),
        (lambda x: x["config"]["data_format"].__setitem__(0, "hologram"), "leaf 'id' has the serializer 'hologram'"),
        (lambda x: x["config"].update(data_spec="[2, {}]"), "data_spec of another version"),
        (lambda x: x["config"].update(data_spec="[1, {"), "index.json"),
    ],
)
def test_an_index_that_does_not_agree_is_an_error(golden: pathlib.Path, change: Any, error: str) -> None:
    edit_index(golden / "every", change)
    with pytest.raises(hr.Error, match=error):
        hr.open(golden / "every")


@pytest.mark.parametrize("name", PACKINGS)
def test_a_chunk_that_is_cut_or_changed_is_an_error(golden: pathlib.Path, name: str) -> None:
    (path,) = (golden / name).glob("chunk-0-1*.bin")
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2, 30):
        path.write_bytes(whole[:cut])
        with pytest.raises(hr.DataError, match="chunk-0-1"):
            hr.open(golden / name)
    path.write_bytes(whole[: len(whole) // 2] + b"\xff" * 60 + whole[len(whole) // 2 + 60 :])
    if name != "every":  # which has no checksum, and its sizes are few
        with pytest.raises(hr.DataError, match="chunk-0-1"):
            hr.open(golden / name)


def test_sizes_that_do_not_fit_are_errors_with_their_place(golden: pathlib.Path) -> None:
    path = golden / "every/chunk-0-1.bin"
    whole = path.read_bytes()
    second = struct.unpack_from("<I", whole, 8)[0]
    for leaf in range(13):
        data = bytearray(whole)
        struct.pack_into("<I", data, second + 4 * leaf, 2**32 - 1)
        path.write_bytes(data)
        with pytest.raises(hr.DataError, match=rf"chunk-0-1.bin, offset {second}: .*last good sample is 'chunk-0-1/00000000'"):
            hr.open(golden / "every")


def test_a_chunk_without_its_index_says_so(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copy(golden / "every/chunk-0-0.bin", tmp_path / "chunk-0-0.bin")
    with pytest.raises(hr.Error, match=r"only beside its index.json"):
        hr.open(tmp_path / "chunk-0-0.bin")


@pytest.mark.parametrize("name", [f"{name}/{file}" for name in PACKINGS for file in ("chunk-0-1*.bin", "index.json")])
def test_any_change_is_an_error_or_values_but_never_a_crash(golden: pathlib.Path, name: str) -> None:
    (path,) = golden.glob(name)
    fields = {f: hr.bytes(f) for f in RAW}
    whole = good_samples(path.parent, fields)
    found = good_after_changes(path, path.parent, fields)
    assert max(found) <= whole
    assert min(found) < whole or name.endswith((".bin", ".mds"))  # these have no checksum


def test_a_changed_index_beside_unchanged_chunks_is_noticed(golden: pathlib.Path) -> None:
    """Sidecars hold what index.json said; LitData reads it at every start."""
    folder = golden / "every"
    assert len(hr.open(folder)) == COUNT
    sidecars = {p: p.stat().st_mtime_ns for p in folder.glob("*.hridx")}
    assert sidecars
    hr.open(folder)
    assert {p: p.stat().st_mtime_ns for p in folder.glob("*.hridx")} == sidecars  # they were used
    index = json.loads((folder / "index.json").read_text())
    names = index["config"]["data_spec"]
    assert "weight" in names
    index["config"]["data_spec"] = names.replace("weight", "mass")
    (folder / "index.json").write_text(json.dumps(index))
    ds = hr.open(folder, {"mass": hr.scalar("mass")})
    assert [ds[i]["mass"] for i in range(COUNT)] == [wanted("every", i, "weight") for i in range(COUNT)]
    (folder / "index.json").unlink()
    with pytest.raises(hr.Error):
        hr.open(sorted(folder.glob("*.bin")))
