# SPDX-License-Identifier: Apache-2.0
"""Pictures of several extensions are packed as one field, ``image``, also where they are made smaller, encoded anew or raw."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pytest
from PIL import Image
from test_codecs import make_picture, save

FILES = {
    "cat/a.jpg": save(make_picture(1, (80, 60)), "JPEG", quality=95),
    "cat/b.png": save(make_picture(2, (50, 90)), "PNG"),
    "dog/c.webp": save(make_picture(3, (30, 20)), "WEBP", lossless=True),
    "dog/d.bmp": save(make_picture(4, (100, 40)), "BMP"),
    "dog/e.png": save(make_picture(5, (44, 90), "RGBA"), "PNG"),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "as they are": {},
    "smaller": {"max_side": 32},
    "quality": {"quality": 60},
    "smaller, quality": {"max_side": 40, "quality": 80},
    "raw": {"raw": True},
    "raw, smaller": {"raw": True, "max_side": 32},
    "named": {"max_side": 32, "recode": ["image"]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("mixed")
    for name, data in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)
    return root


def by_pillow(data: bytes, side: int | None) -> Any:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    if side is not None:
        image.thumbnail((side, side), Image.Resampling.BICUBIC)
    return np.asarray(image, int)


@pytest.mark.parametrize("to", ["tar", "parquet", "arrow", "lmdb", "mds"])
@pytest.mark.parametrize("how", OPTIONS)
def test_a_mixed_folder_becomes_one_field(folder: pathlib.Path, tmp_path: pathlib.Path, how: str, to: str) -> None:
    options = OPTIONS[how]
    hr.pack(folder, tmp_path / "out", to=to, keep_order=True, **options)
    packed = hr.open(tmp_path / "out")
    assert sorted(name for name, _ in packed.schema) == ["cls", "image"]
    ds = hr.open(tmp_path / "out", {"image": hr.image("image").layout("NHWC"), "cls": hr.scalar("cls"), "key": hr.key()})
    assert [ds[i]["cls"] for i in range(5)] == [0, 0, 1, 1, 1]
    for i, (name, data) in enumerate(FILES.items()):
        got, want = ds[i]["image"].astype(int), by_pillow(data, options.get("max_side"))
        assert got.shape == want.shape, name
        if not name.endswith("e.png"):  # its hidden colours are resized with their alpha
            encoded = not options.get("raw") and bool({"quality", "max_side"} & set(options))
            assert np.abs(got - want).mean() < (15 if encoded else 1), name
        assert ds[i]["key"].startswith(name[:5])


def test_named_extensions_stay_apart(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(folder, tmp_path / "out", recode=["png"], max_side=32)
    assert {"jpg", "png", "webp", "bmp"} <= {name for name, _ in hr.open(tmp_path / "out").schema}
