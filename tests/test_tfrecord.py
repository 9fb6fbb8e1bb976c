# SPDX-License-Identifier: Apache-2.0
"""TFRecord: what TensorFlow wrote we read; what we write is right by the published layout."""

from __future__ import annotations

import json
import pathlib
import struct
import subprocess
import sys
from typing import Any

import headrace as hr
import numpy as np
import pytest
from layouts import example, masked_crc, message, read_tfrecord, varint, write_tfrecord
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


def test_a_file_without_records_and_one_in_gzip_are_refused_clearly(golden: pathlib.Path) -> None:
    with pytest.raises(hr.DataError, match="no sample"):
        hr.open(golden / "empty.tfrecord")
    with pytest.raises(hr.Error, match="gzip -d"):
        hr.open(golden / "zipped.tfrecord.gz")


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


def test_packed_it_gives_the_same_batches(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "out", to="tfrecord", shards=3, keep_order=True)
    digests = set()
    for source in (data.tar, tmp_path / "out"):
        fields = {"image": crop(), "label": hr.scalar("cls"), "text": hr.text("txt"), "key": hr.key()}
        with hr.Loader(source, 8, fields, shuffle="global", seed=3, output="numpy") as loader:
            digests.add(digest(loader.epoch(1)))
    assert len(digests) == 1


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
