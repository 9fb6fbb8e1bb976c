# SPDX-License-Identifier: Apache-2.0
"""Every format that can be read, packed into every format that can be written: the samples are the same."""

from __future__ import annotations

import numbers
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import photos
from support import Data, crop, digest, pack_what_fits

COUNT = 40
# Not a place for pictures, captions and labels.
NO_PICTURES = {"megatron": "holds tokens alone"}
READ_ONLY = {"files": "is where the data come from"}
KEEP_KEYS = {"tar", "tfrecord"}  # at least; where others do it is checked too

FORMATS = {f["name"]: f for f in hr.formats() if f["holds"] == "records"}
WRITABLE = [name for name, f in FORMATS.items() if f["write"] and name not in NO_PICTURES]

Sample = tuple[bytes, Any, Any]  # picture, label, caption


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> hr.Dataset:
    root = tmp_path_factory.mktemp("matrix")
    lines = ["path,cls,caption"]
    for i in range(COUNT):
        (root / f"pic{i:03d}.jpg").write_bytes(photos.make_photo(i, (24 + i, 20)))
        lines.append(f"pic{i:03d}.jpg,{i % 7},caption {i} Zürich")
    (root / "list.csv").write_text("\n".join(lines) + "\n")
    return hr.open(root / "list.csv")


def values_of(value: Any) -> Iterator[Any]:
    """Each value of a field; arrays of one element are numbers."""
    if isinstance(value, list):
        yield from (v for one in value for v in values_of(one))
    elif isinstance(value, np.ndarray) and value.size == 1:
        yield value.item()
    else:
        yield value


def canonical(sample: dict[str, Any]) -> Sample:
    """What a sample is, whatever its fields are called: a picture, a number, a text."""
    picture, label, caption = b"", None, None
    for value in (v for field in sample.values() for v in values_of(field)):
        if isinstance(value, (bytes, np.ndarray)) and bytes(value).startswith(b"\xff\xd8"):
            picture = bytes(value)
        elif isinstance(value, numbers.Number) or (isinstance(value, bytes) and re.fullmatch(rb"\d+(\.0)?", value)):
            label = float(value)  # type: ignore[arg-type]  # a tar has digits, and knows only a .cls to be a number
        elif isinstance(value, (str, bytes)) and (value if isinstance(value, bytes) else value.encode()).startswith(b"caption"):
            caption = value if isinstance(value, str) else value.decode()
    return picture, label, caption


def contents(ds: hr.Dataset) -> dict[str, Sample]:
    return {ds.key(i): canonical(ds[i]) for i in range(len(ds))}


def expected(wanted: dict[str, Sample], dropped: list[str]) -> dict[str, Sample]:
    return {
        key: (p, None if "cls" in dropped else label, None if "caption" in dropped else caption)
        for key, (p, label, caption) in wanted.items()
    }


@pytest.fixture(scope="module")
def packed(source: hr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[pathlib.Path, dict[str, Sample]]]:
    """The data in each format, and what they are there."""
    out = {}
    wanted = contents(source)
    for name in WRITABLE:
        folder = tmp_path_factory.mktemp("first") / name
        dropped = pack_what_fits(source, folder, name, shards=2)
        have = contents(hr.open(folder))
        should = expected(wanted, dropped)
        assert sorted(have.values(), key=repr) == sorted(should.values(), key=repr), name
        if name in KEEP_KEYS:
            assert have == should
        out[name] = (folder, have)
    return out


def test_the_data_are_what_they_are_meant_to_be(source: hr.Dataset) -> None:
    samples = contents(source)
    assert len(samples) == COUNT and len(set(samples.values())) == COUNT
    assert all(p.startswith(b"\xff\xd8") and label is not None and c for p, label, c in samples.values())


def test_every_format_takes_part_or_says_why_not() -> None:
    left_out = set(FORMATS) - set(WRITABLE)
    read_only = {name for name, f in FORMATS.items() if not f["write"]}
    assert left_out == (set(NO_PICTURES) & set(FORMATS)) | read_only
    assert {"tar", "tfrecord", "recordio"} <= set(WRITABLE)


@pytest.mark.parametrize("second", WRITABLE)
@pytest.mark.parametrize("first", WRITABLE)
def test_any_to_any(packed: dict[str, Any], tmp_path: pathlib.Path, first: str, second: str) -> None:
    folder, wanted = packed[first]
    source = hr.open(folder)
    names = {f["name"]: f["kind"] for f in source._source.fields}
    dropped = [
        {"int": "cls", "float": "cls", "text": "caption"}.get(names[n], "caption")
        for n in pack_what_fits(source, tmp_path / "b", second, shards=2)
    ]
    have = contents(hr.open(tmp_path / "b"))
    should = expected(wanted, dropped)
    assert sorted(have.values(), key=repr) == sorted(should.values(), key=repr)
    if second in KEEP_KEYS:
        assert have == should


@pytest.mark.parametrize("name", WRITABLE)
def test_verify_is_content_with_every_format(packed: dict[str, Any], name: str) -> None:
    from headrace.verify import check_packs, verify

    folder = str(packed[name][0])
    found = verify([folder])
    found.compare(check_packs([folder], 1))
    assert found.good and found.samples == COUNT and found.pictures == COUNT, found
    assert found.files >= 2


@pytest.mark.parametrize("name", WRITABLE)
def test_inspect_shows_every_format(packed: dict[str, Any], name: str) -> None:
    from headrace.inspection import look, page

    facts = look([str(packed[name][0])], root=None, index=None, number=0, samples=8)
    assert facts["samples"] == COUNT and facts["format"] == name
    assert {"kind", "dtype", "shape", "many", "bytes"} <= {k for f in facts["fields"] for k in f}
    page(facts)


@pytest.mark.parametrize(
    "to", ["arrow", "lmdb", "mds", "npz", "parquet", "tfrecord"]
)  # lmdb: the keys of these data are in order
def test_what_keeps_keys_and_order_gives_the_same_batches(data: Data, tmp_path: pathlib.Path, to: str) -> None:
    hr.pack(data.tar, tmp_path / "out", to=to, shards=3, keep_order=True)
    fields = {"image": crop(), "label": hr.scalar("cls"), "text": hr.text("txt"), "key": hr.key()}
    digests = set()
    for source in (data.tar, tmp_path / "out"):
        with hr.Loader(source, 8, fields, shuffle="global", seed=3, output="numpy") as loader:
            digests.add(digest(loader.epoch(1)))
    assert len(digests) == 1
