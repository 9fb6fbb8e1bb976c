# SPDX-License-Identifier: Apache-2.0
"""Megatron's pairs: what Megatron-Core wrote we read; what we write is right by a reader made from its layout."""

from __future__ import annotations

import json
import pathlib
import shutil
import struct
from collections.abc import Sequence
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import Data

GOLDEN = pathlib.Path(__file__).parent / "golden/megatron"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
TYPES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}


class Pair:
    """Reads a pair as Megatron-Core does: everything by the index, nothing guessed."""

    def __init__(self, prefix: pathlib.Path) -> None:
        index = pathlib.Path(f"{prefix}.idx").read_bytes()
        assert index[:9] == b"MMIDIDX\x00\x00"
        version, code, sequences, documents = struct.unpack_from("<QBQQ", index, 9)
        assert version == 1
        lengths = np.frombuffer(index, "<i4", sequences, 34)
        begins = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
        self.documents = np.frombuffer(index, "<i8", documents, 34 + 12 * sequences).tolist()
        rest = index[34 + 12 * sequences + 8 * documents :]
        assert len(rest) in (0, sequences)
        self.modes = np.frombuffer(rest, "i1").tolist()
        self.type = np.dtype(TYPES[code])
        tokens = pathlib.Path(f"{prefix}.bin").read_bytes()
        assert len(tokens) == int(lengths.sum()) * self.type.itemsize
        self.sequences = [np.frombuffer(tokens, self.type, n, at).tolist() for n, at in zip(lengths, begins)]

    def by_document(self) -> list[list[list[int]]]:
        return [self.sequences[a:b] for a, b in zip(self.documents[:-1], self.documents[1:])]


def write_pair(prefix: pathlib.Path, documents: Sequence[Sequence[int]], type: str = "<i4") -> pathlib.Path:
    """One sequence a document."""
    codes = {v: k for k, v in TYPES.items()}
    lengths = np.array([len(d) for d in documents], "<i4")
    begins = (np.cumsum(lengths, dtype="<i8") - lengths) * np.dtype(type).itemsize
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, codes[type], len(lengths), len(lengths) + 1)
    index = prefix.with_suffix(".idx")
    index.write_bytes(
        head + lengths.tobytes() + begins.astype("<i8").tobytes() + np.arange(len(lengths) + 1, dtype="<i8").tobytes()
    )
    prefix.with_suffix(".bin").write_bytes(b"".join(np.array(d, type).tobytes() for d in documents))
    return index


def write_legacy(prefix: pathlib.Path, documents: list[list[list[int]]], type: str, *, megatron: bool) -> pathlib.Path:
    """TNTIDX, as Megatron-LM and (without documents) fairseq wrote it."""
    codes = {v: k for k, v in TYPES.items()}
    sequences = [s for d in documents for s in d]
    sizes = [len(s) for s in sequences]
    ends = np.cumsum([0, *sizes]).tolist()
    bounds = np.cumsum([0, *(len(d) for d in documents)]).tolist()
    head = [1, codes[type], np.dtype(type).itemsize, len(sizes), len(sizes), *([len(bounds)] if megatron else [])]
    body = [*range(len(sizes) + 1), *ends, *sizes, *(bounds if megatron else [])]
    index = prefix.with_suffix(".idx")
    index.write_bytes(b"TNTIDX\x00\x00" + struct.pack(f"<{len(head)}Q", *head) + struct.pack(f"<{len(body)}q", *body))
    prefix.with_suffix(".bin").write_bytes(b"".join(np.array(s, type).tobytes() for s in sequences))
    return index


def tokens(source: Any, type: str, field: str = "tokens") -> list[list[int]]:
    ds = hr.open(source, {"x": hr.bytes(field)})
    return [np.frombuffer(s["x"], type).tolist() for s in ds]


def joined(documents: list[list[list[int]]]) -> list[list[int]]:
    return [[t for s in d for t in s] for d in documents]


@pytest.fixture
def golden(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy: indexes are written beside the data."""
    shutil.copytree(GOLDEN, tmp_path / "golden")
    return tmp_path / "golden"


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64", "uint16"])
def test_documents_of_megatron_core_are_samples(golden: pathlib.Path, name: str) -> None:
    prefix = golden / f"documents-{name}"
    type = np.dtype(name).newbyteorder("<").str.replace("|", "<")
    assert tokens(prefix, type) == joined(EXPECTED["documents"])
    assert tokens(prefix, "<i4", "lengths") == [[len(s) for s in d] for d in EXPECTED["documents"]]
    assert Pair(prefix).by_document() == EXPECTED["documents"], "the reader of these tests agrees with Megatron's writer"
    assert hr.open(prefix, {"x": hr.bytes("tokens")}).key(2) == f"documents-{name}/00000002"


def test_modes_of_sequences_are_a_field(golden: pathlib.Path) -> None:
    assert tokens(golden / "modes.idx", "i1", "modes") == EXPECTED["modes"]
    assert tokens(golden / "modes.idx", "<i4") == joined(EXPECTED["documents"])


def test_every_way_to_name_a_pair(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for url in ("plain", "plain.idx", "plain.bin", "plain.*", "plai*"):
        assert tokens(golden / url, "<u2") == joined(EXPECTED["plain"]), url
    folder = tmp_path / "folder"
    folder.mkdir()
    for i in range(3):
        write_pair(folder / f"part{i}", [[i, 7]] * 4)
    assert tokens(folder, "<i4") == [[i, 7] for i in range(3) for _ in range(4)]


@pytest.mark.parametrize("megatron", [False, True])
@pytest.mark.parametrize("type", ["<u2", "<i4", "<i8"])
def test_the_old_index_is_read(tmp_path: pathlib.Path, type: str, megatron: bool) -> None:
    documents = EXPECTED["documents"]
    path = write_legacy(tmp_path / "x", documents, type, megatron=megatron)
    assert tokens(path, type) == (joined(documents) if megatron else [s for d in documents for s in d])


def test_packed_pairs_are_right_by_the_layout(golden: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for name in ("documents-int64", "modes", "plain"):
        hr.pack(golden / f"{name}.idx", tmp_path / name, to="megatron", shards=1, keep_order=True)
        for suffix in (".idx", ".bin"):
            packed = (tmp_path / name / "shard-000000").with_suffix(suffix).read_bytes()
            assert packed == (golden / name).with_suffix(suffix).read_bytes(), "what Megatron-Core wrote, byte for byte"


def test_packed_in_shards_every_document_is_there_once(tmp_path: pathlib.Path) -> None:
    documents = [[i, *range(i % 17)] for i in range(500)]
    source = write_pair(tmp_path / "x", documents, "<u2")
    result = hr.pack(source, tmp_path / "out", to="megatron", shards=4, seed=3)
    pairs = [Pair(p.with_suffix("")) for p in sorted((tmp_path / "out").glob("*.idx"))]
    assert sorted(s for p in pairs for s in p.sequences) == sorted(documents)
    assert all(p.type == np.dtype("<u2") and p.documents == list(range(126)) for p in pairs)
    written = sum(f.stat().st_size for f in (tmp_path / "out").glob("shard-*") if f.suffix in (".idx", ".bin"))
    assert getattr(result, "bytes", written) == written
    with hr.Loader(tmp_path / "out", 8, {"x": hr.bytes("tokens")}, shuffle="global", tail="keep", output="numpy") as loader:
        got = [np.frombuffer(v, "<u2").tolist() for b in loader.epoch(0) for v in b["x"]]
    assert sorted(got) == sorted(documents)


def test_what_it_cannot_hold_is_refused_by_name_before_a_file_is_written(data: Data, tmp_path: pathlib.Path) -> None:
    with pytest.raises(hr.Unsupported, match=r"cannot hold the field '(jpg|cls)'"):
        hr.pack(data.tar, tmp_path / "out", to="megatron")
    assert not list(tmp_path.rglob("*.idx"))


def test_a_bin_that_is_short_missing_or_gone_is_an_error(tmp_path: pathlib.Path) -> None:
    path = write_pair(tmp_path / "x", [[1, 2, 3], [4]])
    bin = path.with_suffix(".bin")
    whole = bin.read_bytes()
    bin.write_bytes(whole[:-1])
    with pytest.raises(hr.DataError, match=r"x\.idx: x\.bin is cut short: it has 15 bytes, the index says 16"):
        hr.open(path)
    bin.write_bytes(whole + b"\0\0")
    with pytest.raises(hr.DataError, match=r"x\.idx: x\.bin has 2 bytes more than the index names, so they are no pair"):
        hr.open(path)
    bin.unlink()
    with pytest.raises(hr.StorageError, match=r"x\.bin is missing"):
        hr.open(path)
    bin.write_bytes(whole)
    assert len(hr.open(path, {"x": hr.bytes("tokens")})) == 2  # and an index is kept
    bin.unlink()
    with pytest.raises(hr.StorageError, match=r"x\.bin"):
        hr.open(path)


def test_bad_indexes_are_errors(tmp_path: pathlib.Path) -> None:
    path = write_pair(tmp_path / "x", [[1, 2, 3], [4]])
    whole = path.read_bytes()

    def error(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(hr.Error) as e:
            hr.open(path)
        return str(e.value)

    assert "neither MMIDIDX nor TNTIDX" in error(b"X" + whole[1:])
    assert "version 2 of the index" in error(whole[:9] + b"\x02" + whole[10:])
    assert "bytes do not fit an index of 2 sequences" in error(whole[:-1])
    assert "no type of tokens has the number 0" in error(whole[:17] + b"\x00" + whole[18:])
    for n in range(len(whole)):
        assert "x.idx" in error(whole[:n])
