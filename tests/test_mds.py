# SPDX-License-Identifier: Apache-2.0
"""MDS: what MosaicML Streaming wrote we read; what we write is laid out as it reads (make_golden_mds.py reads it)."""

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
from support import good_after_changes, good_samples, write_tar

GOLDEN = pathlib.Path(__file__).parent / "golden/mds"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
COUNT = 12


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
    return described(np.asarray(Image.open(io.BytesIO(value))))


NUMBERS = ["int", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"]
RAW = {
    "raw": lambda v: {"hex": v.hex()},
    "text": lambda v: v.decode(),
    "meta": json.loads,
    "photo": picture,
    "mask": picture,
    "plain": npy,
    "any": npy,
    "long": npy,
    "box": lambda v: described(np.frombuffer(v, "<f4").reshape(2, 3)),
}


def raw_fields(names: Any) -> dict[str, Any]:
    return {name: hr.bytes(name) for name in names}


def test_every_scalar_encoding_is_what_mosaicml_reads(golden: pathlib.Path) -> None:
    ds = hr.open(golden / "scalars")
    assert len(ds) == COUNT
    for i, want in enumerate(EXPECTED["scalars"]):
        got = dict(ds[i])
        assert {name: got[name] for name in NUMBERS} == {name: want[name] for name in NUMBERS}
        assert (got["si"], got["sf"]) == (want["si"], want["sf"])
        assert got["sd"] == want["sd"]
    assert ds.key(3) == "shard.00000/00000003"


@pytest.mark.parametrize("name", ["values", "zstd"])
def test_every_other_encoding_is_what_mosaicml_reads(golden: pathlib.Path, name: str) -> None:
    assert len(list((golden / name).glob("shard.*"))) > 1
    ds = hr.open(golden / name, raw_fields(RAW))
    assert len(ds) == COUNT
    order = [*range(COUNT), 7, 0, 11, 3]  # random access is the same as one after the other
    for i in order:
        got, want = ds[i], EXPECTED[name][i]
        for field, read in RAW.items():
            assert read(got[field]) == want[field], (i, field)


def test_numbers_of_compressed_shards_are_in_the_index(golden: pathlib.Path) -> None:
    ds = hr.open(golden / "zstd", {name: hr.scalar(name) for name in NUMBERS})
    assert [{n: ds[i][n] for n in NUMBERS} for i in range(COUNT)] == [{n: s[n] for n in NUMBERS} for s in EXPECTED["zstd"]]


@pytest.mark.parametrize("name", ["values", "zstd"])
def test_batches_have_the_values_too(golden: pathlib.Path, name: str) -> None:
    fields = {**raw_fields(["raw", "any"]), "image": hr.image("photo").resize((8, 8))}
    with hr.Loader(golden / name, 4, fields, shuffle=True, tail="keep", output="numpy") as loader:
        got = {int(i): (r, a) for b in loader.epoch(0) for i, r, a in zip(b.indices, b["raw"], b["any"])}
    assert {i: RAW["raw"](bytes(r)) for i, (r, _) in got.items()} == {i: s["raw"] for i, s in enumerate(EXPECTED[name])}
    assert {i: npy(bytes(a)) for i, (_, a) in got.items()} == {i: s["any"] for i, s in enumerate(EXPECTED[name])}


def test_a_shard_by_itself_opens_too(golden: pathlib.Path) -> None:
    (golden / "values/shard.00001.mds").rename(golden / "alone.mds")
    ds = hr.open(golden / "alone.mds", raw_fields(["raw"]))
    first, second, _ = (s["samples"] for s in json.loads((golden / "values/index.json").read_text())["shards"])
    assert [RAW["raw"](s["raw"]) for s in ds] == [s["raw"] for s in EXPECTED["values"][first : first + second]]


def test_the_raw_shard_is_taken_where_both_are_there(golden: pathlib.Path) -> None:
    (golden / "both/shard.00000.mds.zstd").write_bytes(b"not zstd")
    assert [s["int"] for s in hr.open(golden / "both")] == [s["int"] for s in EXPECTED["scalars"]]


def test_a_shard_in_gzip_is_read(golden: pathlib.Path) -> None:
    assert [s["int"] for s in hr.open(golden / "gz")] == [s["int"] for s in EXPECTED["scalars"]]
    shard = golden / "gz/shard.00000.mds.gz"
    whole = shard.read_bytes()
    for n in (0, 1, 3, 20, len(whole) // 2, len(whole) - 1):
        shard.write_bytes(whole[:n])
        with pytest.raises(hr.Error, match="bytes"):
            hr.open(golden / "gz")
    for at in range(0, len(whole), 7):
        shard.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            samples = [s["int"] for s in hr.open(golden / "gz")]
        except hr.Error:
            continue
        assert samples == [s["int"] for s in EXPECTED["scalars"]], at  # a byte that means nothing, as the time


def test_other_compressions_and_pickles_are_refused_by_name(golden: pathlib.Path) -> None:
    edit_index(golden / "gz", lambda index: index["shards"][0].update(compression="br:11"))
    with pytest.raises(hr.Unsupported, match=r"shard.00000.mds.gz.*compressed with br:11; zstd and gz are read"):
        hr.open(golden / "gz")
    with pytest.raises(hr.Unsupported, match="column 'any' holds pickles"):
        hr.open(golden / "pickle")


def test_a_folder_of_data_sets_lists_them(golden: pathlib.Path) -> None:
    for name in ("both", "gz", "lists", "pickle", "zstd"):
        shutil.rmtree(golden / name)
    (golden / "expected.json").unlink()
    with pytest.raises(hr.UsageError, match=r"2 MDS data sets: scalars, values; open one of them: .*/scalars"):
        hr.open(golden)


def edit_index(folder: pathlib.Path, change: Any) -> None:
    index = json.loads((folder / "index.json").read_text())
    change(index)
    (folder / "index.json").write_text(json.dumps(index))


def test_a_missing_shard_is_named(golden: pathlib.Path) -> None:
    (golden / "values/shard.00001.mds").unlink()
    with pytest.raises(hr.Error, match=r"index.json names shard 1 of the data set, 'shard.00001.mds', which is not there"):
        hr.open(golden / "values")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda x: x["shards"][1].update(samples=9), r"index.json says that the shard has 9 samples, its own head says \d;"),
        (lambda x: x["shards"][1]["raw_data"].update(bytes=99), "index.json says that the shard has 99 bytes, and it has"),
        (lambda x: x.update(version=3), "version 3 of MDS; 2 is read"),
        (lambda x: x["shards"][0].update(version=3), "shard 0 has version 3 of MDS"),
        (lambda x: x["shards"][2].update(format="csv"), "shard 2 has the format 'csv'"),
        (lambda x: x["shards"][2]["raw_data"].update(basename="../x"), "not inside the folder"),
        (lambda x: x["shards"].clear(), "no shard is named"),
    ],
)
def test_an_index_that_does_not_agree_is_an_error(golden: pathlib.Path, change: Any, error: str) -> None:
    edit_index(golden / "values", change)
    with pytest.raises(hr.Error, match=error):
        hr.open(golden / "values")


def test_an_index_that_is_no_json_is_an_error(golden: pathlib.Path) -> None:
    path = golden / "values/index.json"
    path.write_text(path.read_text()[:100])
    with pytest.raises(hr.DataError, match=r"index.json, offset \d+"):
        hr.open(golden / "values")


@pytest.mark.parametrize("name", ["values/shard.00001.mds", "zstd/shard.00001.mds.zstd"])
def test_a_shard_that_is_cut_or_changed_is_an_error(golden: pathlib.Path, name: str) -> None:
    path = golden / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with pytest.raises(hr.DataError, match=r"shard.00001.mds.*index.json says .* bytes, and it has"):
        hr.open(path.parent)
    if name.endswith(".zstd"):
        path.write_bytes(whole[:30] + b"\xff" * 40 + whole[70:])
        with pytest.raises(hr.DataError, match=r"shard.00001.mds.zstd.*zstd do not unpack"):
            hr.open(path.parent)
        return
    n = struct.unpack("<I", whole[:4])[0]
    path.write_bytes(struct.pack("<I", n + 1) + whole[4:])
    with pytest.raises(hr.DataError, match=r"shard.00001.mds"):
        hr.open(path.parent)
    for at in range(4, 4 * (n + 2), 4):
        data = bytearray(whole)
        data[at + 1] ^= 0x40
        path.write_bytes(data)
        with pytest.raises(hr.DataError, match=r"shard.00001.mds, offset"):
            hr.open(path.parent)


def test_an_unknown_encoding_is_refused_by_name(golden: pathlib.Path) -> None:
    path = golden / "scalars/shard.00000.mds"
    path.write_bytes(path.read_bytes().replace(b'"str_decimal"', b'"str_decimul"'))
    with pytest.raises(hr.Unsupported, match="column 'sd' has the encoding 'str_decimul'"):
        hr.open(golden / "scalars")


def test_a_number_that_no_index_holds_is_refused(tmp_path: pathlib.Path) -> None:
    names = {"column_encodings": ["uint64"], "column_names": ["id"], "column_sizes": [8], "format": "mds", "version": 2}
    config = json.dumps(names).encode()
    begin = 12 + len(config)
    (tmp_path / "x.mds").write_bytes(struct.pack("<III", 1, begin, begin + 8) + config + struct.pack("<Q", 2**63))
    with pytest.raises(hr.Unsupported, match="column 'id': the number 9223372036854775808 is beyond"):
        hr.open(tmp_path / "x.mds")


def test_what_is_packed_has_the_columns_of_its_fields(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(golden / "scalars", tmp_path / "out", to="mds", shards=2, keep_order=True)
    index = json.loads((tmp_path / "out/index.json").read_text())
    assert [s["raw_data"]["basename"] for s in index["shards"]] == ["shard-000000.mds", "shard-000001.mds"]
    assert [s["samples"] for s in index["shards"]] == [6, 6]
    encodings = dict(zip(index["shards"][0]["column_names"], index["shards"][0]["column_encodings"]))
    assert encodings["__key__"] == "str" and encodings["f16"] == "float16" and encodings["u64"] == "uint64"
    a, b = hr.open(golden / "scalars"), hr.open(tmp_path / "out")
    assert [(a.key(i), a[i]) for i in range(COUNT)] == [(b.key(i), b[i]) for i in range(COUNT)]


def test_every_value_survives_packing(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(golden / "values", tmp_path / "out", to="mds", shards=1, keep_order=True)
    index = json.loads((tmp_path / "out/index.json").read_text())["shards"][0]
    encodings = dict(zip(index["column_names"], index["column_encodings"]))
    assert (encodings["any"], encodings["box"]) == ("ndarray", "ndarray:float32:2,3")
    assert (encodings["views"], encodings["photo"]) == ("list[jpeg]", "jpeg")
    ds = hr.open(tmp_path / "out", raw_fields(RAW))
    for i in range(COUNT):
        assert {f: read(ds[i][f]) for f, read in RAW.items()} == {f: EXPECTED["values"][i][f] for f in RAW}
    theirs = [s for path in sorted((golden / "values").glob("*.mds")) for s in read_mds(path)]
    ours = read_mds(tmp_path / "out/shard-000000.mds")
    # Where the encoding is the same, so are the bytes: lists and arrays too.
    same = [name for name in theirs[0] if name not in ("plain", "long", "masks", "shots")]
    assert [{f: s[f] for f in same} for s in ours] == [{f: s[f] for f in same} for s in theirs]
    # jpeg_array becomes list[jpeg], which has one word before it; a list that never has two, its value.
    assert [s["masks"] for s in ours] == [s["masks"][12:] for s in theirs]
    assert [s["shots"] for s in ours] == [bytes(4) + s["shots"] for s in theirs]


def test_compressed_shards_pack_to_the_same_bytes(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(golden / "zstd", tmp_path / "out", to="mds", shards=1, keep_order=True)
    hr.pack(golden / "values", tmp_path / "raw", to="mds", shards=1, keep_order=True)
    a, b = (read_mds(tmp_path / name / "shard-000000.mds") for name in ("out", "raw"))
    assert [{f: s[f] for f in b[0] if f != "__key__"} for s in a] == [{f: s[f] for f in s if f != "__key__"} for s in b]


def test_what_mds_cannot_hold_is_refused_by_name(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    gaps = write_tar(tmp_path / "x.tar", [("a.cls", b"1"), ("a.txt", b"t"), ("b.cls", b"2")])
    with pytest.raises(hr.Error, match="no field 'txt', and MDS wants exactly one value in every sample"):
        hr.pack(gaps, tmp_path / "gaps", to="mds")
    with pytest.raises(hr.Error, match="MDS cannot hold field 'plains': some sample has several values"):
        hr.pack(golden / "lists", tmp_path / "many", to="mds")
    arrays = io.BytesIO()
    np.save(arrays, np.zeros((2, 2), bool))
    source = write_tar(tmp_path / "y.tar", [("a.npy", arrays.getvalue())])
    with pytest.raises(hr.Error, match=r"field 'npy': MDS has no arrays of type '\|b1'"):
        hr.pack(source, tmp_path / "bools", to="mds")


@pytest.mark.parametrize("name", ["values/shard.00001.mds", "values/index.json", "zstd/shard.00001.mds.zstd"])
def test_any_change_is_an_error_or_values_but_never_a_crash(golden: pathlib.Path, name: str) -> None:
    (path,) = golden.glob(name)
    fields = {f: hr.bytes(f) for f in RAW}
    whole = good_samples(path.parent, fields)
    found = good_after_changes(path, path.parent, fields)
    assert max(found) <= whole
    assert min(found) < whole or name.endswith((".bin", ".mds"))  # these have no checksum
