# SPDX-License-Identifier: Apache-2.0
"""MXNet's RecordIO, against a reader and a writer made from its published layout."""

from __future__ import annotations

import pathlib
import struct
import subprocess
import sys

import headrace as hr
import pytest
from layouts import RECORDIO_MAGIC, image_record, read_recordio, write_recordio
from support import COUNT, Data, crop, digest


@pytest.mark.parametrize("idx", [False, True])
def test_pictures_and_labels_are_read(data: Data, tmp_path: pathlib.Path, idx: bool) -> None:
    records = [image_record(float(s.label), i, s.jpeg) for i, s in enumerate(data.samples)]
    path = write_recordio(tmp_path / "train.rec", records, idx=idx)
    ds = hr.open(path, {"jpg": hr.bytes("jpg"), "label": hr.scalar("label", dtype="i64"), "key": hr.key()})
    assert [(s["jpg"], s["label"]) for s in ds] == [(s.jpeg, s.label) for s in data.samples]
    assert ds[7]["key"] == "train/00000007"
    with hr.Loader(path, 8, {"image": crop()}, shuffle=True, output="numpy") as loader:
        assert sum(len(b["image"]) for b in loader.epoch(0)) == COUNT // 8 * 8


def test_labels_that_are_no_whole_numbers_are_floats(tmp_path: pathlib.Path) -> None:
    path = write_recordio(tmp_path / "x.rec", [image_record(i / 4, i, b"payload") for i in range(5)])
    ds = hr.open(path, {"label": hr.scalar("label", dtype="f32"), "data": hr.bytes("data")})
    assert [(float(s["label"]), s["data"]) for s in ds] == [(i / 4, b"payload") for i in range(5)]
    with pytest.raises(hr.DataError, match="not an integer"):
        hr.open(path, {"label": hr.scalar("label", dtype="i64")})[1]


def test_many_labels_are_an_array(tmp_path: pathlib.Path) -> None:
    labels: list[float | list[float]] = [1.0, [2.0, 3.5], [], [4.0]]
    path = write_recordio(tmp_path / "x.rec", [image_record(v, i, b"p" * i) for i, v in enumerate(labels)])
    ds = hr.open(path, {"label": hr.array("label"), "data": hr.bytes("data")})
    assert [s["label"].tolist() for s in ds] == [[1.0], [2.0, 3.5], [0.0], [4.0]]
    assert [s["data"] for s in ds] == [b"p" * i for i in range(4)]
    hr.pack(path, tmp_path / "out", to="recordio", shards=1, keep_order=True)
    found = [record for _, record in read_recordio(tmp_path / "out/shard-000000.rec")]
    assert found == [image_record(v, i, b"p" * i) for i, v in enumerate([1.0, [2.0, 3.5], 0.0, 4.0])]


def test_records_in_several_parts_are_joined(tmp_path: pathlib.Path) -> None:
    payloads = [RECORDIO_MAGIC, b"abcd" + RECORDIO_MAGIC * 3 + b"ef", b"x" + RECORDIO_MAGIC, RECORDIO_MAGIC + b"12345", b""]
    path = write_recordio(tmp_path / "x.rec", [image_record(i, i, p) for i, p in enumerate(payloads)], idx=True)
    ds = hr.open(path)
    assert [s["data"] for s in ds] == payloads and [s["label"] for s in ds] == [0, 1, 2, 3, 4]
    with hr.Loader(path, 2, {"data": hr.bytes("data")}, shuffle=True, tail="keep", output="numpy") as loader:
        assert sorted(v for b in loader.epoch(0) for v in b["data"]) == sorted(payloads)
    hr.pack(path, tmp_path / "out", to="recordio", shards=1, keep_order=True)
    assert (tmp_path / "out/shard-000000.rec").read_bytes() == path.read_bytes()
    assert (tmp_path / "out/shard-000000.idx").read_bytes() == path.with_suffix(".idx").read_bytes()


def test_what_is_packed_is_right_by_the_layout(data: Data, tmp_path: pathlib.Path) -> None:
    command = [
        sys.executable,
        "-m",
        "headrace",
        "pack",
        str(data.folder),
        str(tmp_path / "out"),
        "--to",
        "recordio",
        "--keep-order",
    ]
    subprocess.run(command, check=True, capture_output=True)
    found = list(read_recordio(tmp_path / "out/shard-000000.rec"))
    assert [r for _, r in found] == [image_record(float(s.label), i, s.jpeg) for i, s in enumerate(data.samples)]
    lines = (tmp_path / "out/shard-000000.idx").read_text().splitlines()
    assert lines == [f"{i}\t{at}" for i, (at, _) in enumerate(found)]


def test_packed_it_gives_the_same_batches(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.folder, tmp_path / "out", to="recordio", shards=3, keep_order=True)
    digests = set()
    for source, label in ((data.folder, "cls"), (tmp_path / "out", "label")):
        fields = {"image": crop(), "label": hr.scalar(label, dtype="i64")}
        with hr.Loader(source, 8, fields, shuffle="global", seed=3, output="numpy") as loader:
            digests.add(digest(loader.epoch(1)))
    assert len(digests) == 1


def test_what_a_record_cannot_hold_is_refused_by_name(data: Data, tmp_path: pathlib.Path) -> None:
    with pytest.raises(hr.Error, match="one payload: 'jpg', and no 'json'"):
        hr.pack(data.tar, tmp_path / "out", to="recordio")


def test_bad_files_are_errors_with_their_place(tmp_path: pathlib.Path) -> None:
    records = [image_record(float(i), i, bytes([i]) * 40) for i in range(4)]
    whole = write_recordio(tmp_path / "good.rec", records).read_bytes()
    step = len(whole) // 4

    def error(content: bytes) -> str:
        (tmp_path / "x.rec").write_bytes(content)
        with pytest.raises(hr.DataError) as e:
            hr.open(tmp_path / "x.rec")
        return str(e.value)

    last = "the last good sample is 'x/00000001', number 1"
    cut = error(whole[: 3 * step - 1])
    assert f"x.rec, offset {2 * step}: the record is cut short" in cut and last in cut
    wrong = error(whole[: 2 * step] + b"zzzz" + whole[2 * step + 4 :])
    assert f"offset {2 * step}: no record begins here: 7a7a7a7a where the magic ced7230a belongs" in wrong and last in wrong
    assert "too few for the header" in error(RECORDIO_MAGIC + struct.pack("<I", 8) + b"12345678")
    many = struct.pack("<IfQQ", 2**32 - 1, 0, 0, 0)
    assert "4294967295 labels do not fit" in error(RECORDIO_MAGIC + struct.pack("<I", 24) + many)
    assert "begins with its middle" in error(RECORDIO_MAGIC + struct.pack("<I", 2 << 29 | 24) + many)
    assert "before the record has its last part" in error(RECORDIO_MAGIC + struct.pack("<I", 1 << 29 | 24) + many)


def test_an_idx_that_does_not_fit_is_an_error(tmp_path: pathlib.Path) -> None:
    path = write_recordio(tmp_path / "x.rec", [image_record(0.0, i, b"1234") for i in range(4)], idx=True)
    idx = path.with_suffix(".idx")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])  # between two records: only the .idx can tell
    with pytest.raises(hr.DataError, match=r"x.idx names 4 records and the file has 2"):
        hr.open(path)
    path.write_bytes(whole)
    idx.write_text("0\t0\n\nnonsense\n")
    with pytest.raises(hr.DataError, match=r"line 2 of .*x.idx is no id and offset"):
        hr.open(path)
