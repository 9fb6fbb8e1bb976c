# SPDX-License-Identifier: Apache-2.0
"""TFRecord: what TensorFlow wrote we read; what we write is right by the published layout."""

from __future__ import annotations

import gzip
import json
import pathlib
import random
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from typing import Any

import headrace as hr
import numpy as np
import pytest
from layouts import example, feature, masked_crc, message, read_tfrecord, varint, write_tfrecord
from support import COUNT, Data, crop, digest, write_tar

GOLDEN = pathlib.Path(__file__).parent / "golden/tfrecord"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


def from_json(value: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"]) if "hex" in value else {k: from_json(v) for k, v in value.items()}
    return [from_json(v) for v in value] if isinstance(value, list) else value


@pytest.fixture
def golden(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy: indexes are written beside the data."""
    for path in GOLDEN.glob("*.tfrecord*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_features_with_one_value_are_what_tensorflow_wrote(golden: pathlib.Path) -> None:
    ds = hr.open(golden / "scalars.tfrecord")
    want = [from_json(s) for s in EXPECTED["scalars"]]
    for s in want:
        s["txt"] = s["txt"].decode()
    assert [dict(ds[i]) for i in range(len(ds))] == want
    assert ds.key(3) == "scalars/00000003"


def test_pictures_of_tensorflow_are_decoded(golden: pathlib.Path) -> None:
    ds = hr.open(golden / "scalars.tfrecord", {"image": hr.image("image/encoded"), "label": hr.scalar("label")})
    assert [ds[i]["image"].shape for i in range(10)] == [(3, 8 + i, 12) for i in range(10)]


def test_lists_of_numbers_are_arrays_as_raw_bytes(golden: pathlib.Path) -> None:
    path = golden / "lists.tfrecord"
    ds = hr.open(path, {"ids": hr.bytes("ids"), "box": hr.bytes("box"), "big": hr.scalar("big")})
    want = [from_json(s) for s in EXPECTED["lists"]]
    assert [np.frombuffer(s["ids"], "<i8").tolist() for s in ds] == [s["ids"] for s in want]
    assert [np.frombuffer(s["box"], "<f4").tolist() for s in ds] == [s["box"] for s in want]
    assert [s["big"] for s in ds] == [s["big"] for s in want]
    with hr.Loader(path, 3, {"ids": hr.bytes("ids")}, shuffle=True, tail="keep", output="numpy") as loader:
        got = {int(i): v for b in loader.epoch(0) for i, v in zip(b.indices, b["ids"])}
    assert [np.frombuffer(got[i], "<i8").tolist() for i in range(7)] == [s["ids"] for s in want]


def test_records_that_are_no_example_are_data(golden: pathlib.Path) -> None:
    assert [s["data"] for s in hr.open(golden / "raw.tfrecord")] == [from_json(r) for r in EXPECTED["raw"]]


def test_a_file_without_records_is_refused_clearly(golden: pathlib.Path) -> None:
    with pytest.raises(hr.DataError, match="no sample"):
        hr.open(golden / "empty.tfrecord")


def pack_gzip(path: pathlib.Path, data: bytes) -> pathlib.Path:
    path.write_bytes(gzip.compress(data, mtime=0))
    return path


def in_members(data: bytes) -> bytes:
    """Members one after the other, one of them empty, cut anywhere."""
    cuts = [0, 5, 1000, 1000, len(data)]
    return b"".join(gzip.compress(data[a:b]) for a, b in zip(cuts, cuts[1:]))


def test_a_file_that_tensorflow_wrote_in_gzip_is_the_same(golden: pathlib.Path) -> None:
    plain, packed = hr.open(golden / "scalars.tfrecord"), hr.open(golden / "zipped.tfrecord.gz")
    assert [dict(s) for s in packed] == [dict(s) for s in plain]
    assert packed.key(3) == "zipped/00000003"


@pytest.mark.parametrize("name", ["scalars", "lists", "raw"])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, in_members])
def test_packed_files_give_the_same_samples(golden: pathlib.Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    path = golden / f"{name}.tfrecord"
    fields = {"ids": hr.bytes("ids"), "box": hr.bytes("box"), "big": hr.scalar("big")} if name == "lists" else None
    plain = hr.open(path, fields)
    packed_path = golden / "packed"  # no suffix: its bytes tell
    packed_path.write_bytes(pack(path.read_bytes()))
    packed = hr.open(packed_path, fields)
    assert [dict(s) for s in packed] == [dict(s) for s in plain]
    for i in random.Random(4).choices(range(len(plain)), k=30):
        assert dict(packed[i]) == dict(plain[i])


def test_a_loader_gives_the_batches_of_the_file_unpacked(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "plain", to="tfrecord", shards=3, keep_order=True)
    (tmp_path / "packed").mkdir()
    for path in (tmp_path / "plain").glob("*.tfrecord"):
        pack_gzip(tmp_path / f"packed/{path.name}.gz", path.read_bytes())
    fields = {"image": crop(), "label": hr.scalar("cls"), "text": hr.text("txt"), "key": hr.key()}
    digests = set()
    for folder in ("plain", "packed"):
        with hr.Loader(tmp_path / folder, 8, fields, shuffle="global", seed=3, output="numpy") as loader:
            digests.add(digest(loader.epoch(1)))
    assert len(digests) == 1


def test_numbers_one_by_one_in_a_packed_file_are_arrays(tmp_path: pathlib.Path) -> None:
    loose = message(2, b"".join(b"\x0d" + struct.pack("<f", x) for x in (1.5, -2.0, 3.25)))
    run = message(2, message(1, struct.pack("<2f", 7.0, 8.0)))
    ints = [[5, -1, 2**63 - 1], [], [9]]
    records = [
        example({"i": message(3, message(1, b"".join(varint(n) for n in row))), "f": f, "x": message(1, message(1, b"tail"))})
        for row, f in zip(ints, (loose, run, loose))
    ]
    path = pack_gzip(tmp_path / "x.tfrecord.gz", write_tfrecord(tmp_path / "x.tfrecord", records).read_bytes())
    ds = hr.open(path)
    assert [np.frombuffer(s["i"], "<i8").tolist() for s in ds] == ints
    assert [np.frombuffer(s["f"], "<f4").tolist() for s in ds] == [[1.5, -2.0, 3.25], [7.0, 8.0], [1.5, -2.0, 3.25]]
    assert [s["x"] for s in ds] == [b"tail"] * 3


def test_damage_in_a_packed_file_is_an_error_with_its_place(tmp_path: pathlib.Path) -> None:
    plain = write_tfrecord(tmp_path / "x.tfrecord", [bytes([i]) * 50 for i in range(5)]).read_bytes()
    path = tmp_path / "x.tfrecord.gz"

    def refused(data: bytes, match: str) -> None:
        path.write_bytes(data)
        with pytest.raises(hr.DataError, match=match):
            hr.open(path)

    packed = gzip.compress(plain)
    refused(packed[:-9], "offset .*cut short: its stream has no end")
    refused(packed[:-1], "offset .*cut short: its stream has no end")
    refused(packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:], "do not inflate: incorrect data check")
    refused(packed + b"garbage", "do not inflate: incorrect header check")
    refused(gzip.compress(plain[:-3]), r"cut short: 50 bytes .* \(offset 264 of the unpacked data\); the last good .*number 3")
    flipped = bytearray(plain)
    flipped[66 + 20] ^= 1
    refused(gzip.compress(flipped), r"checksum .* \(offset 78 of the unpacked data\); the last good sample is 'x/00000000'")
    length = struct.pack("<Q", 2**64 - 5)
    refused(gzip.compress(length + struct.pack("<I", masked_crc(length)) + b"x" * 20), "cut short: 18446744073709551611 bytes")
    refused(gzip.compress(b"no record at all, but long enough"), "no TFRecord")


def test_any_damage_in_a_packed_file_is_noticed(golden: pathlib.Path) -> None:
    path = golden / "zipped.tfrecord.gz"
    whole = path.read_bytes()
    want = [dict(s) for s in hr.open(path)]
    rng = random.Random(8)
    for cut in [*range(40), *rng.sample(range(len(whole)), 150)]:
        path.write_bytes(whole[:cut])
        with pytest.raises(hr.Error):
            hr.open(path)
    for at in [*range(12), *rng.sample(range(len(whole)), 200)]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            got = [dict(s) for s in hr.open(path)]
        except hr.Error:
            continue
        assert got == want, at  # a time, a name: bytes of gzip's head that say nothing about the data


def test_numbers_are_read_packed_and_one_by_one(tmp_path: pathlib.Path) -> None:
    ints = [5, -1, 2**63 - 1, -(2**63)]
    one_by_one = message(3, b"".join(b"\x08" + varint(n) for n in ints))
    packed = message(3, message(1, b"".join(varint(n) for n in ints)))
    halves = message(3, message(1, varint(5) + varint(-1)) + b"".join(b"\x08" + varint(n) for n in ints[2:]))
    floats = [1.5, -2.0, 3.25]
    loose = message(2, b"".join(b"\x0d" + struct.pack("<f", x) for x in floats))
    run = message(2, message(1, struct.pack("<3f", *floats)))
    records = [example({"i": i, "f": f}) for i, f in ((one_by_one, loose), (packed, run), (halves, run))]
    ds = hr.open(write_tfrecord(tmp_path / "x.tfrecord", records))
    for i in range(3):
        assert np.frombuffer(ds[i]["i"], "<i8").tolist() == ints
        assert np.frombuffer(ds[i]["f"], "<f4").tolist() == floats


def test_what_it_is_is_told_by_its_bytes(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (golden / "scalars.tfrecord").rename(tmp_path / "train-00000-of-00001")
    assert len(hr.open(tmp_path / "train-00000-of-00001")) == 10


def test_packed_and_packed_back_it_has_the_same_bytes(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "tar", shards=2, keep_order=True)
    hr.pack(data.tar, tmp_path / "tfrecord", to="tfrecord", shards=1, keep_order=True)
    hr.pack(tmp_path / "tfrecord", tmp_path / "back", shards=2, keep_order=True)
    for path in (tmp_path / "tar").glob("*.tar"):
        a, b = hr.open(path), hr.open(tmp_path / "back" / path.name)
        assert [(a.key(i), a[i]) for i in range(len(a))] == [(b.key(i), b[i]) for i in range(len(b))]


def test_what_is_packed_is_right_by_the_layout(data: Data, tmp_path: pathlib.Path) -> None:
    command = [
        sys.executable,
        "-m",
        "headrace",
        "pack",
        str(data.folder),
        str(tmp_path / "out"),
        "--to",
        "tfrecord",
        "--keep-order",
    ]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = (tmp_path / "out").glob("*.tfrecord")
    records = list(read_tfrecord(path))
    want = [
        example(
            {
                "__key__": message(1, message(1, s.key.encode())),
                "jpg": message(1, message(1, s.jpeg)),
                "cls": message(3, message(1, varint(s.label))),
            }
        )
        for s in data.samples
    ]
    assert len(records) == COUNT and records == want


@pytest.mark.parametrize("where", ["length", "length checksum", "data", "data checksum"])
def test_a_flipped_bit_is_an_error_with_its_place(tmp_path: pathlib.Path, where: str) -> None:
    records = [example({"x": message(1, message(1, bytes([i]) * 50))}) for i in range(5)]
    path = write_tfrecord(tmp_path / "x.tfrecord", records)
    third = 2 * (16 + len(records[0]))
    at = third + {"length": 0, "length checksum": 9, "data": 40, "data checksum": 12 + len(records[0])}[where]
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)
    place = third + 12 if where.startswith("data") else third
    with pytest.raises(
        hr.DataError, match=rf"x.tfrecord, offset {place}: .*checksum.*last good sample is 'x/00000001', number 1"
    ):
        hr.open(path)


def test_a_length_that_cannot_be_and_a_cut_are_errors(tmp_path: pathlib.Path) -> None:
    path = write_tfrecord(tmp_path / "x.tfrecord", [b"some bytes", b"others"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(hr.DataError, match="offset 26: the record is cut short: 6 bytes and a checksum are wanted, 9 are there"):
        hr.open(path)
    length = struct.pack("<Q", 2**64 - 5)
    path.write_bytes(whole + length + struct.pack("<I", masked_crc(length)) + b"x" * 20)
    with pytest.raises(hr.DataError, match="cut short: 18446744073709551611 bytes"):
        hr.open(path)
    path.write_bytes(b"not a record at all, but long enough")
    with pytest.raises(hr.DataError, match="no TFRecord"):
        hr.open(path)


def test_a_feature_of_two_types_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    records = [example({"label": message(3, message(1, varint(1)))}), example({"label": message(1, message(1, b"one"))})]
    with pytest.raises(hr.DataError, match="feature 'label' is bytes here and int64 in the records before"):
        hr.open(write_tfrecord(tmp_path / "x.tfrecord", records))


def test_a_label_that_is_no_number_cannot_be_packed(tmp_path: pathlib.Path) -> None:
    source = write_tar(tmp_path / "x.tar", [("a.cls", b"three")])
    with pytest.raises(hr.Error, match="field 'cls' holds no integer"):
        hr.pack(source, tmp_path / "out", to="tfrecord")


def test_lists_of_numbers_are_arrays_that_know_their_type(golden: pathlib.Path) -> None:
    ds = hr.open(golden / "lists.tfrecord")
    types = {f["name"]: (f["kind"], f["dtype"], f["shape"]) for f in ds._source.fields}
    assert (
        types["ids"] == ("array", "i64", (None,))
        and types["box"] == ("array", "f32", (None,))
        and types["big"][:2] == ("int", "i64")
    )
    want = [from_json(s) for s in EXPECTED["lists"]]
    assert [s["ids"].tolist() for s in ds] == [s["ids"] for s in want]
    assert all(s["ids"].dtype == np.int64 and s["box"].dtype == np.float32 for s in ds)
    asked = hr.open(golden / "lists.tfrecord", {"ids": hr.array("ids")})
    assert [s["ids"].tolist() for s in asked] == [s["ids"] for s in want]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_shard_of_single_values_beside_one_of_lists(tmp_path: pathlib.Path, order: tuple[int, int]) -> None:
    rows = [[([1], [0.5]), ([2], [1.5])], [([3, 4], [0.25, 0.75]), ([], []), ([5], [2.5])]]
    rows = [rows[k] for k in order]
    for n, shard in enumerate(rows):
        records = [example({"i": feature(i), "f": feature(f)}) for i, f in shard]
        write_tfrecord(tmp_path / f"{n}.tfrecord", records)
    want = [(i, f) for shard in rows for i, f in shard]
    for ds in (hr.open(tmp_path), hr.open(tmp_path, {"i": hr.array("i"), "f": hr.array("f")})):
        assert [(s["i"].tolist(), s["f"].tolist()) for s in ds] == want
        assert all(s["i"].dtype == np.int64 and s["f"].dtype == np.float32 for s in ds)
    with hr.Loader(tmp_path, 2, {"i": hr.array("i").list()}, shuffle=False, tail="keep", output="numpy") as loader:
        assert [v.tolist() for b in loader.epoch(0) for v in b["i"]] == [i for i, _ in want]
    hr.pack(tmp_path, tmp_path / "out", to="tfrecord", shards=1, keep_order=True)
    assert [(s["i"].tolist(), s["f"].tolist()) for s in hr.open(tmp_path / "out")] == want
