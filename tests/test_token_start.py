# SPDX-License-Identifier: Apache-2.0
"""Opening a great many files of tokens: one manifest, no file after file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import headrace as hr
import numpy as np
import pytest

FIELDS = {"t": hr.tokens(seq_len=2048), "p": hr.array("positions")}


def pairs(folder: Path, count: int, documents: int, tokens: int) -> int:
    """So many links to one pair of files, mostly holes, of so many documents of so many tokens each."""
    folder.mkdir()
    first = folder / "00000"
    writer = hr._core.TokenWriter(f"{first}.idx", f"{first}.bin", "u16")
    one = np.arange(tokens, dtype=np.uint16).tobytes()
    writer.add(one, 0, [2 * tokens])
    if documents > 1:  # the index of many documents from that of one
        writer.finish()
        sizes = np.full(documents, tokens, np.int32)
        begins = np.arange(documents, dtype=np.int64) * 2 * tokens
        head = b"MMIDIDX\x00\x00" + np.uint64(1).tobytes() + np.uint8(8).tobytes()
        head += np.uint64(documents).tobytes() + np.uint64(documents + 1).tobytes()
        body = sizes.tobytes() + begins.tobytes() + np.arange(documents + 1, dtype=np.int64).tobytes()
        Path(f"{first}.idx").write_bytes(head + body)
        os.truncate(f"{first}.bin", 2 * tokens * documents)
    else:
        writer.finish()
    for n in range(1, count):
        for ending in ("bin", "idx"):
            os.link(f"{first}.{ending}", folder / f"{n:05d}.{ending}")
    return count * documents * tokens


def zero_all_parts_but_the_first(index: Path) -> None:
    """What is not read at the start cannot stop it."""
    place = index / "headrace.parts"
    size = place.stat().st_size
    first = size // len(list((index.parent / "tokens").glob("*.idx")))
    with open(place, "r+b") as f:
        f.seek(first)
        f.write(bytes(size - first))


def test_windows_are_counted_by_the_manifest_alone(tmp_path: Path) -> None:
    total = pairs(tmp_path / "tokens", 40, 5, 10_000)
    source = str(tmp_path / "tokens" / "*.bin")
    hr.build_index(source, tmp_path / "index")
    slowly = hr.open(source, FIELDS)
    with hr.Loader(slowly, 8, seed=1, output="numpy") as loader:
        wanted = [b["t"].sum() for b in loader.epoch(0)]
    zero_all_parts_but_the_first(tmp_path / "index")
    quickly = hr.open(source, {"t": FIELDS["t"]}, index=tmp_path / "index")
    assert len(quickly) == len(slowly) == 40 * ((total // 40 - 1) // 2048)
    with hr.Loader(quickly, 8, seed=1, output="numpy") as loader:
        assert [b["t"].sum() for b in loader.epoch(0)] == wanted
    whole = hr.open(source, FIELDS, index=tmp_path / "index")  # documents do need their part, when they come up
    with pytest.raises(hr.Error, match="index"):
        list(hr.Loader(whole, 8, seed=1, output="numpy").epoch(0))


@pytest.mark.slow  # windows_are_counted_by_the_manifest_alone
@pytest.mark.alone
def test_10_to_the_12_tokens_open_in_a_second(tmp_path: Path) -> None:
    total = pairs(tmp_path / "tokens", 10_000, 1000, 100_000)
    assert total == 10**12
    source = str(tmp_path / "tokens" / "*.bin")
    hr.build_index(source, tmp_path / "index")
    zero_all_parts_but_the_first(tmp_path / "index")
    begin = time.perf_counter()
    ds = hr.open(source, {"t": FIELDS["t"]}, index=tmp_path / "index")
    opened = time.perf_counter() - begin
    assert len(ds) == 10_000 * ((10**8 - 1) // 2048)
    with hr.Loader(ds, 8, seed=1, output="numpy") as loader:
        next(iter(loader))
    ready = time.perf_counter() - begin
    assert opened < 5 and ready < 10, (opened, ready)
