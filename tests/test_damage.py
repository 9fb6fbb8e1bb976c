# SPDX-License-Identifier: Apache-2.0
"""Pictures damaged in known ways: kind of damage x strict x bad_samples, and Pillow beside it."""

from __future__ import annotations

import io
import logging
import pathlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import headrace as hr
import numpy as np
import pytest
from PIL import Image
from support import write_tar
from test_codecs import make_picture, save
from test_codecs_odd import between, flipped, with_byte, with_chunk, with_frame, with_scan, with_segment

SIZE = (64, 48)
PHOTO = make_picture(11, SIZE)
JPEG = save(PHOTO, "JPEG", quality=90)
PROGRESSIVE = save(PHOTO, "JPEG", quality=90, progressive=True)
RESTARTS = save(PHOTO, "JPEG", quality=90, restart_marker_rows=1)
PNG = save(PHOTO, "PNG")
WEBP = save(PHOTO, "WEBP", quality=90)


def ended_early(jpeg: bytes) -> bytes:
    middle = len(jpeg) * 3 // 4
    return jpeg[:middle] + b"\xff\xd9" + jpeg[middle + 2 :]


def without_restart(jpeg: bytes) -> bytes:
    at = jpeg.index(b"\xff\xd0")
    return jpeg[:at] + jpeg[at + 2 :]


def other_bits(jpeg: bytes) -> bytes:
    """Codes that do not exist, in the middle of the scan."""
    middle = len(jpeg) // 2
    return jpeg[:middle] + b"\xff\x00" * 8 + jpeg[middle + 16 :]


def other_end(png: bytes, length: int) -> bytes:
    return png[: len(png) - length]


@dataclass(frozen=True)
class Damage:
    data: Callable[[], bytes]
    # "none": no pixel changed; "warned": a decoder can go on; "fatal": it cannot; "kind": nothing here reads it
    what: str
    pillow_reads: bool = True


DAMAGES = {
    "scan parameters": Damage(lambda: with_scan(JPEG, 0, 0, 0), "none"),
    "version of JFIF": Damage(lambda: with_byte(JPEG, JPEG.index(b"JFIF") + 5, 9), "none"),
    "transform of Adobe's": Damage(lambda: with_segment(JPEG, 0xEE, b"Adobe\0\x64\0\0\0\0\x07"), "none"),
    "filler before the end mark": Damage(lambda: PROGRESSIVE[:-2] + bytes(9) + b"\xff\xd9", "none"),
    "bytes between segments": Damage(lambda: between(JPEG), "warned"),
    "bytes between segments, progressive": Damage(lambda: between(PROGRESSIVE), "warned"),
    "an end mark in the scan": Damage(lambda: ended_early(JPEG), "warned"),
    "a restart marker that is missing": Damage(lambda: without_restart(RESTARTS), "warned"),
    "codes that do not exist": Damage(lambda: other_bits(JPEG), "warned"),
    "cut in the scan": Damage(lambda: JPEG[: len(JPEG) * 3 // 4], "warned", pillow_reads=False),
    "checksum of PNG's pixels": Damage(lambda: flipped(PNG, -14), "warned"),
    "checksum of a text in a PNG": Damage(lambda: flipped(with_chunk(PNG, b"tEXt", b"a\0b"), 44), "warned", pillow_reads=False),
    "cut in the header": Damage(lambda: JPEG[:100], "fatal", pillow_reads=False),
    "PNG cut": Damage(lambda: PNG[: len(PNG) // 2], "fatal", pillow_reads=False),
    "WebP cut": Damage(lambda: WEBP[: len(WEBP) // 2], "fatal", pillow_reads=False),
    "no picture": Damage(lambda: b"<html>404</html>", "fatal", pillow_reads=False),
    "12 bits": Damage(lambda: with_frame(JPEG, SIZE[1], SIZE[0], 0xC1, 12), "kind", pillow_reads=False),
    "lossless": Damage(lambda: with_frame(JPEG, SIZE[1], SIZE[0], 0xC3), "kind", pillow_reads=False),
    "HEIC": Damage(lambda: b"\0\0\0\x18ftypheic" + bytes(100), "kind", pillow_reads=False),
}
COUNT, BAD = 7, 3


def by_pillow(data: bytes) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    except Exception:
        return None


def whole(damage: str) -> bytes:
    return PROGRESSIVE if damage.startswith("filler") else PNG if "PNG" in damage else JPEG


@pytest.mark.parametrize("name", DAMAGES)
def test_pillow_says_what_the_table_says(name: str) -> None:
    damage = DAMAGES[name]
    got = by_pillow(damage.data())
    assert (got is not None) == damage.pillow_reads
    if damage.what == "none":
        assert (got == by_pillow(whole(name))).all()


@pytest.mark.parametrize("policy", ["raise", "replace"])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_picture(
    name: str, strict: bool, policy: Any, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    damage = DAMAGES[name]
    data = damage.data()
    tar = write_tar(tmp_path / "x.tar", [(f"{i}.img", data if i == BAD else JPEG) for i in range(COUNT)])
    fields = {"x": hr.image("img", strict=strict).layout("NHWC").list()}
    caplog.set_level(logging.WARNING, "headrace")
    taken = damage.what == "none" or (damage.what == "warned" and not strict)
    with hr.Loader(tar, 1, fields, shuffle=False, output="numpy", bad_samples=policy) as loader:
        if not taken and policy == "raise":
            with pytest.raises(hr.Unsupported if damage.what == "kind" else hr.DataError) as caught:
                list(loader)
            text = str(caught.value)
            assert 'bad_samples="replace"' in text and f"sample {BAD}" in text
            assert ("strict=False" in text) == (damage.what == "warned")
            return
        got = {int(b.indices[0]): b["x"][0] for b in loader}
        assert (BAD in got) == taken and set(range(COUNT)) - {BAD} <= set(got)
        assert [q["sample"] for q in loader.quarantine] == ([] if taken else [BAD])
        assert loader.stats()["damaged"] == (1 if taken and damage.what == "warned" else 0)
    want = by_pillow(data)
    if taken and want is not None:
        assert got[BAD].shape == want.shape
        assert np.abs(got[BAD].astype(int) - want).max() <= 1


def test_a_scraped_set_goes_on_without_what_nothing_reads(tmp_path: pathlib.Path) -> None:
    files = {f"{i}.jpg": JPEG for i in range(9)} | {"a.heic": b"\0\0\0\x18ftypheic" + bytes(100), "b.png": PNG, "c.webp": WEBP}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    fields = {"image": hr.image("image").resize((16, 16))}
    with hr.Loader(tmp_path, 4, fields, tail="keep", output="numpy", bad_samples="replace") as loader:
        seen = {int(i) for b in loader for i in b.indices}
        (bad,) = loader.quarantine
    assert bad["key"] == "a" and "HEIC" in bad["cause"] and len(seen) == len(files) - 1


def test_where_nothing_can_be_read_the_error_says_why(tmp_path: pathlib.Path) -> None:
    tar = write_tar(tmp_path / "x.tar", [(f"{i}.heic", b"\0\0\0\x18ftypheic" + bytes(100)) for i in range(4)])
    with (
        hr.Loader(tar, 2, {"x": hr.image("heic").resize((8, 8))}, output="numpy", bad_samples="replace") as loader,
        pytest.raises(hr.Error, match=r"no good sample is left to replace this one.*HEIC"),
    ):
        list(loader)


def test_several_values_where_one_is_wanted_are_never_replaced(tmp_path: pathlib.Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"x": pa.array([[JPEG], [JPEG, JPEG], [JPEG]], pa.list_(pa.binary()))})
    pq.write_table(table, tmp_path / "x.parquet")
    with (
        hr.Loader(
            tmp_path / "x.parquet", 1, {"x": hr.image("x").resize((8, 8))}, output="numpy", bad_samples="replace"
        ) as loader,
        pytest.raises(hr.UsageError, match="many=True"),
    ):
        list(loader)


def test_the_size_of_a_picture_is_read_as_pillow_reads_it() -> None:
    for name, damage in DAMAGES.items():
        if damage.pillow_reads:
            assert hr.image_size(damage.data()) == SIZE, name
