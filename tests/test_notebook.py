# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows: small, by itself, safe, and never an exception."""

from __future__ import annotations

import base64
import html.parser
import io
import pathlib
import re
import subprocess
import sys
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import notebook
from PIL import Image
from support import Data, write_tar

MOST = 150_000  # characters


class Page(html.parser.HTMLParser):
    """Its pictures, its texts, and that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.pictures: list[Image.Image] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.tags.add(tag)
        if tag == "img":
            source = dict(attrs)["src"]
            assert source.startswith("data:image/")
            picture = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2])))
            picture.load()
            self.pictures.append(picture)
        elif tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page(thing: Any) -> Page:
    text = thing._repr_html_()
    assert len(text) < MOST and "http" not in text
    return Page(text)


def test_a_data_set_shows_fields_and_thumbnails(data: Data) -> None:
    for source in (data.tar, data.folder):
        shown = page(hr.open(source))
        assert len(shown.pictures) == 8 and all(max(p.size) <= 96 for p in shown.pictures)
        assert "53 samples" in "".join(shown.texts) and "jpg" in shown.texts
        first = np.asarray(shown.pictures[0].convert("RGB"), int)
        photo = Image.open(io.BytesIO(data.samples[0].jpeg)).convert("RGB")
        photo.thumbnail((96, 96), Image.Resampling.BICUBIC)
        assert first.shape == np.asarray(photo).shape and np.abs(first - np.asarray(photo)).mean() < 8


def test_a_data_set_with_fields_shows_what_they_make(data: Data) -> None:
    ds = hr.open(data.tar, {"x": hr.image("jpg").resize((40, 60)).normalize(hr.IMAGENET), "label": hr.scalar("cls")})
    shown = page(ds)
    assert [p.size for p in shown.pictures] == [(60, 40)] * 8
    assert "normalize" in "".join(shown.texts)


@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("dtype", ["u8", "f32", "bf16"])
def test_a_batch_shows_shapes_and_pictures(data: Data, output: Any, dtype: str) -> None:
    if output == "numpy" and dtype == "bf16":
        pytest.importorskip("ml_dtypes")
    field = hr.image("jpg").resize((32, 24)).cast(dtype)
    with hr.Loader(data.tar, 12, {"image": field, "label": hr.scalar("cls"), "text": hr.text("txt")}, output=output) as loader:
        shown = page(next(iter(loader)))
    assert len(shown.pictures) == 8 or dtype == "bf16"
    assert all(p.size == (24, 32) for p in shown.pictures)
    words = "".join(shown.texts)
    assert "(12, 3, 32, 24)" in words and "list of str" in words


def test_batches_of_lists_and_of_padded_pictures_are_shown(data: Data) -> None:
    for field in (hr.image("jpg").list(), hr.image("jpg").padded()):
        with hr.Loader(data.tar, 4, {"image": field}, output="numpy") as loader:
            assert len(page(next(iter(loader))).pictures) == 4


def test_texts_are_escaped(tmp_path: pathlib.Path, data: Data) -> None:
    evil = "<script>alert(1)</script>"
    for label in (evil, "b & c"):
        folder = tmp_path / "f" / label.replace("/", "")
        folder.mkdir(parents=True)
        (folder / "<b>x.jpg").write_bytes(data.samples[0].jpeg)
    ds = hr.open(tmp_path / "f")
    shown = page(ds)
    assert "script" not in shown.tags and "b" in shown.tags and len(shown.pictures) == 2
    assert "<script>" not in ds._repr_html_() and "<b>x" not in ds._repr_html_()
    assert "<script>" not in hr.Batch({evil: [evil], "x": np.zeros(3)})._repr_html_()


def test_what_cannot_be_decoded_is_said_in_its_place(tmp_path: pathlib.Path, data: Data) -> None:
    values = [data.samples[0].jpeg, b"no picture", b"", data.samples[1].jpeg]
    ds = hr.open(write_tar(tmp_path / "x.tar", [(f"{i}.jpg", v) for i, v in enumerate(values)]))
    shown = page(ds)
    assert len(shown.pictures) == 2 and "not a picture" in "".join(shown.texts)
    fields = hr.open(tmp_path / "x.tar", {"x": hr.image("jpg")})
    assert len(page(fields).pictures) == 2


def test_data_without_pictures_and_wide_tables_stay_small(tmp_path: pathlib.Path) -> None:
    columns = [f"column_{i}" for i in range(300)]
    (tmp_path / "x.csv").write_text(",".join(columns) + "\n" + "\n".join(",".join("1" * 300) for _ in range(5)) + "\n")
    shown = page(hr.open(tmp_path / "x.csv", table=True))
    assert not shown.pictures and "260 more" in "".join(shown.texts)


def test_the_repr_of_a_loader_and_of_a_blend_say_what_they_are(data: Data) -> None:
    with hr.Loader(data.tar, 8, {"image": hr.image("jpg").resize((8, 8)), "label": hr.scalar("cls")}, seed=5) as loader:
        text = repr(loader)
        for words in (
            "6 batches an epoch",
            "batch_size=8",
            "tail='drop'",
            "shuffle=True",
            "seed=5",
            "rank 0 of 1",
            "image, label",
        ):
            assert words in text
    assert "closed" in repr(loader)
    blend = hr.blend({"a": (data.tar, 0.7), "b": (data.folder, 0.3)})
    assert repr(blend) == "<headrace Blend of 2 sources: 'a': 0.7, 'b': 0.3>"


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_a_contact_sheet_is_one_picture_of_many(data: Data, tmp_path: pathlib.Path, suffix: str) -> None:
    path = tmp_path / f"sheet.{suffix}"
    notebook.write_contact_sheet(hr.open(data.folder), str(path), 9, 64)
    sheet = Image.open(path)
    assert sheet.size == (192, 192) and sheet.format == {"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}[suffix]
    last = Image.open(io.BytesIO(data.samples[-1].jpeg)).convert("RGB")
    last.thumbnail((60, 60), Image.Resampling.BICUBIC)
    want = np.asarray(last, float).mean((0, 1))
    h, w = last.size[1], last.size[0]
    top, left = 128 + (64 - h) // 2, 128 + (64 - w) // 2
    got = np.asarray(sheet.convert("RGB"), float)[top : top + h, left : left + w].mean((0, 1))
    assert np.abs(got - want).max() < 4


def test_inspect_writes_a_contact_sheet(data: Data, tmp_path: pathlib.Path) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "headrace", "inspect", *arguments], capture_output=True, text=True)

    sheet = tmp_path / "s.jpg"
    done = command(data.tar, "--contact-sheet", str(sheet), "--pictures", "4")
    assert done.returncode == 0 and "jpg" in done.stdout
    assert Image.open(sheet).size == (256, 256)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    for arguments, words in [
        ((str(tmp_path / "x.csv"), "--contact-sheet", str(sheet)), "no pictures"),
        ((data.tar, "--contact-sheet", str(tmp_path / "s.gif")), "sheet.jpg"),
    ]:
        done = command(*arguments)
        assert done.returncode == 2 and words in done.stderr and len(re.findall("\n", done.stderr)) <= 2
