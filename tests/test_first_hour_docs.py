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


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *PAGES]


def commands() -> set[str]:
    import typer.main
    from headrace.cli import app

    return set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_the_readme_lists_the_commands_that_there_are() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"`headrace (\w[\w-]+(?: \| [\w-]+)+)`", text)
    assert set(listed.split(" | ")) == commands()


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda p: p.name)
def test_pages_name_only_commands_that_exist(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```bash\n(.*?)^```", text, re.S | re.M))
    quoted = re.findall(r"`headrace ([a-z][\w-]*)", text) + re.findall(r"^headrace ([a-z][\w-]*)", blocks, re.M)
    assert set(quoted) <= commands()
    script = (ROOT / "dev").read_text(encoding="utf-8")
    for name in re.findall(r"`\./dev ([a-z]\w*)", text):
        assert f"cmd_{name}()" in script, name


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda p: p.name)
def test_no_page_denies_what_there_is(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    there = {
        r"(object stores|HTTP)[^.|]*not yet": hasattr(hr, "storage"),
        r"local files only|not yet: local files": hasattr(hr, "storage"),
        r"(the cache|caching)[^.|]*not yet": hasattr(hr, "cache"),
        r"overlapped[^.|]*not yet": True,
        r"packing[^.|]*not yet": hasattr(hr, "packed"),
        r"gzip'?d? ones must be unpacked": True,
    }
    for words, exists in there.items():
        assert not (exists and re.search(words, text)), words
