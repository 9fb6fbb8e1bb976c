# SPDX-License-Identifier: Apache-2.0
"""Mean and standard deviation of pictures: NumPy's over the pixels that Pillow decodes."""

from __future__ import annotations

import io
import json
import pathlib
import subprocess
import sys
from typing import Any

import headrace as hr
import numpy as np
import pytest
from PIL import Image
from support import COUNT, Data, write_tar
from test_codecs import make_picture, save


def pillow(data: bytes, mode: str = "RGB") -> Any:
    image = Image.open(io.BytesIO(data)).convert(mode)
    return np.asarray(image).reshape(-1, len(image.getbands()))


def expected(pictures: list[bytes], mode: str = "RGB") -> dict[str, Any]:
    pixels = np.concatenate([pillow(p, mode) for p in pictures]).astype(np.float64) / 255
    return {"mean": pixels.mean(0), "std": pixels.std(0), "min": pixels.min(0), "max": pixels.max(0), "count": len(pixels)}


def check(entry: dict[str, Any], want: dict[str, Any]) -> None:
    for name in ("mean", "std", "min", "max"):
        np.testing.assert_allclose(entry[name], want[name], atol=1e-6)
    assert entry["count"] == [want["count"]] * len(entry["mean"])


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, list[bytes]]:
    """A folder of pictures of several kinds, modes and sizes, and their bytes in order."""
    root = tmp_path_factory.mktemp("mixed")
    files = {
        "a.png": save(make_picture(1, (31, 20)), "PNG"),
        "b.png": save(make_picture(2, (8, 40), "L"), "PNG"),
        "c.webp": save(make_picture(3, (33, 33)), "WEBP", lossless=True),
        "d.bmp": save(make_picture(4, (17, 9)), "BMP"),
        "e.png": save(make_picture(5, (64, 48), "RGBA"), "PNG"),
        "f.jpg": save(make_picture(6, (50, 40)), "JPEG", quality=95),
    }
    for name, data in files.items():
        (root / name).write_bytes(data)
    return root, list(files.values())


def test_a_mixed_folder_has_the_numbers_of_numpy_over_pillow(mixed: tuple[pathlib.Path, list[bytes]]) -> None:
    found = hr.stats(mixed[0])
    assert list(found) == ["image"] and found["image"]["samples"] == 6 and found["image"]["at"] == ["R", "G", "B"]
    check(found["image"], expected(mixed[1]))


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_every_mode(mixed: tuple[pathlib.Path, list[bytes]], mode: Any) -> None:
    check(hr.stats(mixed[0], {"x": hr.image("image", mode=mode)})["x"], expected(mixed[1], mode))


@pytest.mark.parametrize("where", ["tar", "folder"])
def test_jpegs_of_any_format_on_any_threads(data: Data, where: str) -> None:
    source = getattr(data, where)
    found = [hr.stats(source, "jpg", threads=n) for n in (1, 2, 5)]
    assert found[0] == found[1] == found[2]  # the same bits
    check(found[0]["jpg"], expected([s.jpeg for s in data.samples]))


def test_a_sample_of_them_is_spread_over_the_data(data: Data) -> None:
    chosen = [i * COUNT // 10 for i in range(10)]
    found = hr.stats(data.tar, sample=10)["image"]
    assert found["samples"] == 10
    check(found, expected([data.samples[i].jpeg for i in chosen]))
    assert hr.stats(data.tar, sample=10_000)["image"]["samples"] == COUNT


def test_a_view_and_a_data_set_are_taken(data: Data) -> None:
    view = hr.open(data.tar).where("cls == 3")
    check(hr.stats(view)["image"], expected([s.jpeg for s in data.samples if s.label == 3]))


def test_steps_before_normalize_are_done_first(data: Data) -> None:
    field = hr.image("jpg").resize((16, 16)).normalize(hr.IMAGENET)
    found = hr.stats(data.tar, {"image": field, "label": hr.scalar("cls")})
    small = np.stack([s["x"] for s in hr.open(data.tar, {"x": hr.image("jpg").resize((16, 16))})]) / 255.0
    np.testing.assert_allclose(found["image"]["mean"], small.mean((0, 2, 3)), atol=1e-6)
    np.testing.assert_allclose(found["image"]["std"], small.std((0, 2, 3)), atol=1e-6)


def test_normalize_takes_them_in_every_form(data: Data, tmp_path: pathlib.Path) -> None:
    found = hr.stats(data.tar)
    found.save(tmp_path / "s.json")
    fields = [
        hr.image("jpg").resize((8, 8)).normalize(s)
        for s in (found["image"], found, tmp_path / "s.json", str(tmp_path / "s.json"))
    ]
    fields.append(hr.image("jpg").resize((8, 8)).normalize(found["image"]["mean"], found["image"]["std"]))
    got = [hr.open(data.tar, {"x": f})[3]["x"] for f in fields]
    assert all((g == got[0]).all() for g in got)
    every = np.stack([s["x"] for s in hr.open(data.tar, {"x": hr.image("jpg").normalize(found["image"]).layout("NHWC")})[:1]])
    assert every.dtype == np.float32


def test_normalised_pixels_have_mean_0_and_deviation_1(mixed: tuple[pathlib.Path, list[bytes]]) -> None:
    field = hr.image("image").normalize(hr.stats(mixed[0])["image"]).layout("NHWC")
    pixels = np.concatenate([s["x"].reshape(-1, 3) for s in hr.open(mixed[0], {"x": field})]).astype(np.float64)
    np.testing.assert_allclose(pixels.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(pixels.std(0), 1, atol=1e-5)


def test_pictures_that_are_arrays(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    pixels = np.random.default_rng(1).integers(0, 256, (20, 9, 7, 3), dtype=np.uint8)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f["images"] = pixels
    found = hr.stats(tmp_path / "x.h5", {"x": hr.image("images")})["x"]
    np.testing.assert_allclose(found["mean"], pixels.reshape(-1, 3).mean(0) / 255, atol=1e-9)
    np.testing.assert_allclose(found["std"], pixels.reshape(-1, 3).std(0) / 255, atol=1e-9)


def test_several_pictures_a_sample_all_count(tmp_path: pathlib.Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [[save(make_picture(i * 3 + k, (10, 12)), "PNG") for k in range(i)] for i in range(4)]
    pq.write_table(pa.table({"x": pa.array(rows, pa.list_(pa.binary()))}), tmp_path / "x.parquet")
    found = hr.stats(tmp_path / "x.parquet", {"x": hr.image("x", many=True)})["x"]
    check(found, expected([p for row in rows for p in row]))


def test_what_cannot_be_counted_is_said(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    flat = save(Image.new("RGB", (4, 4), (9, 9, 9)), "PNG")
    one = write_tar(tmp_path / "x.tar", [("0.png", flat)])
    for call, error, words in [
        (lambda: hr.stats(tmp_path / "x.csv"), hr.Unsupported, "of pictures, and the data have neither"),
        (lambda: hr.stats(data.tar, "nothing"), hr.UsageError, "nothing"),
        (lambda: hr.stats(data.tar, per="level"), hr.UsageError, "per= is for files of arrays"),
        (lambda: hr.stats(data.tar, {"x": hr.scalar("cls")}), hr.UsageError, "have none"),
        (lambda: hr.stats(data.tar, {"x": hr.image("jpg").map(lambda a: a)}), hr.UsageError, "without map"),
        (lambda: hr.stats(data.tar, sample=0), hr.UsageError, "sample"),
        (lambda: hr.image("png").normalize(hr.stats(one)["image"]), hr.UsageError, "without spread"),
    ]:
        with pytest.raises(error, match=words):
            call()
    bad = write_tar(tmp_path / "y.tar", [("0.png", flat), ("1.png", flat[:30])])
    with pytest.raises(hr.DataError, match="sample 1, key '1'"):
        hr.stats(bad)


def test_the_command_prints_and_writes_them(data: Data, tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "headrace", "stats", data.tar, "--sample", "12"]
    done = subprocess.run([*command, "--json", "--to", str(tmp_path / "s.json")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == hr.stats(data.tar, sample=12) == json.loads((tmp_path / "s.json").read_text())
    table = subprocess.run(command, capture_output=True, text=True).stdout
    assert "channel" in table and "image" in table
