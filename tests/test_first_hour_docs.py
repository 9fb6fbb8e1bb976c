# SPDX-License-Identifier: Apache-2.0
"""What the pages about moving here say of other people's formats is true."""

from __future__ import annotations

import gzip
import pathlib
import re
import shutil

import headrace as hr
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs" / "migrate").glob("*.md"))
# What a page is about, and a file of its maker's that is opened to prove the claim.
MAKERS = {
    "ffcv": ("beton", "beton/jpg.beton.gz"),
    "litdata": ("litdata", "litdata/every"),
    "mosaicml_streaming": ("mds", "mds/zstd"),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_no_page_denies_a_format_that_is_read(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    for format in hr.formats():
        if not format["read"]:
            continue
        words = {format["name"], *format["suffixes"]} | {"litdata": {"chunks"}, "mds": {"MDS"}}.get(format["name"], set())
        for word in words:
            pattern = rf"{re.escape(word)}`?\s+(is|are)?\s*(not read|not yet)"
            assert not re.search(pattern, text), (word, page)


@pytest.mark.parametrize("page", sorted(MAKERS))
def test_the_format_that_a_page_says_is_read_opens(page: str, tmp_path: pathlib.Path) -> None:
    name, golden = MAKERS[page]
    assert f"{page}.md" in (ROOT / "docs" / "migrate" / "README.md").read_text(encoding="utf-8")
    path = ROOT / "tests" / "golden" / golden
    if path.suffix == ".gz":
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        path = tmp_path / path.stem
    else:  # no index of ours may stay beside the golden files
        path = pathlib.Path(shutil.copytree(path, tmp_path / path.name))
    ds = hr.open(path)
    assert ds.format == name and len(ds) > 0 and ds[len(ds) - 1]
    assert next(f for f in hr.formats() if f["name"] == name)["read"]
