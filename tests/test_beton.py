# SPDX-License-Identifier: Apache-2.0
"""FFCV's .beton: files that FFCV wrote (make_golden_beton.py) read as it reads them."""

from __future__ import annotations

import gzip
import io
import json
import pathlib
import random
import struct
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import good_samples

GOLDEN = pathlib.Path(__file__).parent / "golden/beton"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
SAMPLES = EXPECTED["samples"]
SHAPE = (12, 20, 3)
RAW = {name: hr.bytes(name) for name in ("image", "data", "box", "tokens", "flags")}
FIELDS = {**RAW, "label": hr.scalar("label"), "weight": hr.scalar("weight"), "meta": hr.json("meta"), "key": hr.key()}


@pytest.fixture
def golden(tmp_path: pathlib.Path) -> pathlib.Path:
    for path in GOLDEN.glob("*.beton.gz"):
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return tmp_path


def pixels_of(hexed: str) -> Any:
    return np.frombuffer(bytes.fromhex(hexed), np.uint8).reshape(SHAPE)


@pytest.mark.parametrize("name", ["jpg", "raw", "mixed"])
def test_values_are_what_was_put_in(golden: pathlib.Path, name: str) -> None:
    ds = hr.open(golden / f"{name}.beton", FIELDS)
    assert len(ds) == len(SAMPLES)
    for i in random.Random(2).choices(range(len(ds)), k=60):
        got, want = ds[i], SAMPLES[i]
        assert (got["label"], got["weight"], got["meta"]) == (want["label"], want["weight"], want["meta"])
        assert got["data"] == bytes.fromhex(want["data"])
        assert np.frombuffer(got["box"], "<f4").reshape(2, 3).tolist() == want["box"]
        assert np.frombuffer(got["tokens"], "<i8").tolist() == want["tokens"]
        assert np.frombuffer(got["flags"], "?").tolist() == want["flags"]
        assert got["key"] == f"{name}/{i:08d}"


@pytest.mark.parametrize("name", ["raw", "mixed"])
def test_raw_pictures_are_npy_that_describe_themselves(golden: pathlib.Path, name: str) -> None:
    ds = hr.open(golden / f"{name}.beton", {"image": hr.bytes("image")})
    modes = EXPECTED[name]["modes"]
    for i, mode in enumerate(modes):
        if mode == 1:
            picture = np.load(io.BytesIO(ds[i]["image"]))
            assert picture.dtype == np.uint8 and (picture == pixels_of(SAMPLES[i]["image"])).all()
        else:
            assert ds[i]["image"][:3] == b"\xff\xd8\xff" and ds[i]["image"][-2:] == b"\xff\xd9"
    assert set(modes) == ({1} if name == "raw" else {0, 1})


def test_jpegs_have_the_pixels_that_ffcv_reads(golden: pathlib.Path) -> None:
    """Within a few levels: FFCV decodes by the fast and less exact transform of libjpeg."""
    ds = hr.open(golden / "jpg.beton", {"image": hr.image("image").layout("NHWC")})
    for i, hexed in enumerate(EXPECTED["jpg"]["pixels"]):
        apart = np.abs(np.asarray(ds[i]["image"]).astype(int) - pixels_of(hexed).astype(int))
        assert apart.max() <= 6 and apart.mean() < 1.5


@pytest.mark.parametrize("name", ["jpg", "raw", "mixed"])
def test_a_loader_gives_what_random_access_gives(golden: pathlib.Path, name: str) -> None:
    path = golden / f"{name}.beton"
    ds = hr.open(path, RAW)
    with hr.Loader(path, 4, RAW, shuffle=True, tail="keep", output="numpy") as loader:
        got = {int(i): {n: b[n][k] for n in RAW} for b in loader.epoch(0) for k, i in enumerate(b.indices) if b.valid[k]}
    assert sorted(got) == list(range(len(ds)))
    for i, sample in got.items():
        assert sample == dict(ds[i])


def test_what_it_is_is_told_by_its_bytes(golden: pathlib.Path) -> None:
    (golden / "raw.beton").rename(golden / "train")
    assert hr.open(golden / "train").format == "beton"


def test_types_that_we_do_not_have_are_plain_bytes(golden: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    path = golden / "jpg.beton"
    whole = bytearray(path.read_bytes())
    at = whole.index(b'[["", "<f4"]]')
    whole[at : at + 13] = b'[["", ">f4"]]'
    path.write_bytes(whole)
    ds = hr.open(path)
    assert "field 'box' holds numbers of type '>f4', which are given as plain bytes" in caplog.text
    assert np.frombuffer(ds[3]["box"], "<f4").reshape(2, 3).tolist() == SAMPLES[3]["box"]


def test_other_versions_custom_fields_and_unfinished_files_are_refused(golden: pathlib.Path) -> None:
    path = golden / "jpg.beton"
    whole = path.read_bytes()

    def refused(at: int, value: bytes, match: str) -> None:
        path.write_bytes(whole[:at] + value + whole[at + len(value) :])
        with pytest.raises(hr.Error, match=match):
            hr.open(path, RAW)

    refused(0, struct.pack("<H", 3), "version 3")
    refused(24, b"\xff", "field 'label' is of a type of the writer's own")
    refused(24, b"\x63", "field 'label' is of no type: 99")
    refused(16, bytes(8), "interrupted")
    refused(8, struct.pack("<Q", 2**60), "cut short")
    box = 24 + 5 * 1041 + 17
    refused(box + 264, b'[["a", "<', "field 'box': an array of '' is not read")
    refused(box, struct.pack("<Q", 2**62), "field 'box': a shape that cannot be")


def test_damage_gives_errors_and_never_a_crash(golden: pathlib.Path) -> None:
    path = golden / "mixed.beton"
    whole = path.read_bytes()
    rng = random.Random(11)
    table = struct.unpack_from("<Q", whole, 16)[0]
    assert good_samples(path, RAW) == len(SAMPLES)
    rows = 24 + 8 * 1041
    cuts = [*rng.sample(range(rows), 40), *rng.sample(range(rows, table), 40), *rng.sample(range(table, len(whole)), 60)]
    for cut in cuts:
        path.write_bytes(whole[:cut])
        assert good_samples(path, RAW) == 0, cut
    places = [*range(24), *rng.sample(range(24, rows), 60), *rng.sample(range(rows, rows + 11 * 88), 100)]
    places += rng.sample(range(table, len(whole)), 60)
    for at in places:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        assert good_samples(path, RAW) <= len(SAMPLES)
