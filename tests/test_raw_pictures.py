# SPDX-License-Identifier: Apache-2.0
"""Pictures that lie as numbers: arrays, .npy files, plain bytes. Pixels are Pillow's on the same array."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pytest
from PIL import Image
from support import write_tar


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def noise(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).integers(0, 256, shape, dtype=np.uint8)


def png(array: np.ndarray[Any, Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, "png")
    return out.getvalue()


SHAPES = [(37, 51), (37, 51, 1), (37, 51, 3), (37, 51, 4)]
STEPS = {
    "whole": lambda f: f,
    "resize": lambda f: f.resize((20, 24)),
    "bicubic": lambda f: f.resize(16, filter="bicubic").center_crop(14),
    "crop": lambda f: f.random_resized_crop(18).random_flip(),
    "colours": lambda f: f.random_crop(16, padding=3).color_jitter(0.4, 0.4, 0.4, 0.1).normalize(hr.IMAGENET),
    "turned": lambda f: f.random_rotation(30).resize((12, 12)).layout("NHWC"),
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_array_gives_the_pixels_of_the_same_picture_as_png(tmp_path: pathlib.Path, shape: tuple[int, ...], steps: str) -> None:
    array = noise(*shape)
    flat = array[:, :, 0] if shape[2:] == (1,) else array
    first = array if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1))
    members = {
        "a.png": png(flat), "b.npy": npy(array), "c.npy": npy(np.asfortranarray(array)),
        "d.npy": npy(first), "e.raw": array.tobytes(), "f.raw": first.tobytes(),
    }  # fmt: skip
    url = str(write_tar(tmp_path / "a.tar", [("0." + name, value) for name, value in members.items()]))
    make = STEPS[steps]
    sources = {
        "a.png": {}, "b.npy": {}, "c.npy": {}, "d.npy": {"layout": "CHW"}, "e.raw": {"shape": array.shape},
        "f.raw": {"shape": first.shape, "layout": "CHW"},
    }  # fmt: skip
    for mode in ("RGB",) if steps == "colours" else ("RGB", "L", "RGBA"):
        results = [hr.open(url, {"x": make(hr.image(name, mode=mode, **options))})[0]["x"] for name, options in sources.items()]
        for name, result in zip(sources, results):
            np.testing.assert_array_equal(result, results[0], err_msg=f"{name} {mode}")
    if steps == "whole":
        want = np.asarray(Image.fromarray(flat).convert("RGB")).transpose(2, 0, 1)
        np.testing.assert_array_equal(hr.open(url, {"x": hr.image("b.npy")})[0]["x"], want)
        assert hr.image_size(members["b.npy"]) == (51, 37)
    if steps == "resize" and shape == (37, 51, 3):
        want = np.asarray(Image.fromarray(flat).resize((24, 20), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
        got = hr.open(url, {"x": hr.image("b.npy").resize((20, 24))})[0]["x"]
        assert np.abs(got.astype(int) - want).max() <= 1


def test_a_known_shape_needs_no_resize(tmp_path: pathlib.Path) -> None:
    arrays = [noise(3, 8, 9 + 0 * i) + np.uint8(i) for i in range(5)]
    url = str(write_tar(tmp_path / "a.tar", [(f"{i}.raw", a.tobytes()) for i, a in enumerate(arrays)]))
    with hr.Loader(url, 5, {"x": hr.image("raw", shape=(3, 8, 9), layout="CHW")}, shuffle=False, output="numpy") as loader:
        (batch,) = loader.epoch(0)
    np.testing.assert_array_equal(batch["x"], np.stack(arrays))
    for shape in ((-1, 9, 3), (8, -1, 3)):
        ds = hr.open(url, {"x": hr.image("raw", shape=shape)})
        assert ds[0]["x"].shape == (3, 8, 9)


def test_masks_of_numbers(tmp_path: pathlib.Path) -> None:
    array = noise(20, 30)
    url = str(write_tar(tmp_path / "a.tar", [("0.npy", npy(array)), ("1.npy", npy(noise(20, 30, 3)))]))
    ds = hr.open(url, {"x": hr.mask("npy")})
    np.testing.assert_array_equal(ds[0]["x"][0], array)
    with pytest.raises(hr.DataError, match="mode 'P'"):
        ds[1]


def test_what_is_no_picture_is_said(tmp_path: pathlib.Path) -> None:
    values = [
        npy(noise(3, 8, 9)),
        npy(noise(8, 9, 2)),
        npy(np.zeros((8, 9), "f4")),
        npy(noise(9)),
        npy(noise(0, 9)),
        npy(noise(8, 9))[:-3],
    ]
    url = str(write_tar(tmp_path / "a.tar", [(f"{i}.npy", v) for i, v in enumerate(values)]))
    ds = hr.open(url, {"x": hr.image("npy")})
    for i, text in enumerate(['layout="CHW"', "no picture", "u8, this is f32", "no picture", "no picture", "bytes of data"]):
        with pytest.raises(hr.Error, match=text):
            ds[i]
    with pytest.raises(hr.UsageError, match="HWC or CHW"):
        hr.open(url, {"x": hr.image("npy", layout="NHWC")})
    with pytest.raises(hr.UsageError, match="no picture"):
        hr.open(url, {"x": hr.image("npy", shape=(3, 4, 5, 6))})
    raw = str(write_tar(tmp_path / "b.tar", [("0.raw", b"x" * 10)]))
    with pytest.raises(hr.DataError, match="10 elements"):
        hr.open(raw, {"x": hr.image("raw", shape=(2, 2, 3))})[0]
