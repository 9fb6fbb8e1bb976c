# SPDX-License-Identifier: Apache-2.0
"""LMDB, against py-lmdb: what it writes we read, what we write it reads."""

from __future__ import annotations

import pathlib
import random
import struct
import tarfile
from collections.abc import Iterable, Mapping
from typing import Any

import headrace as hr
import lmdb
import numpy as np
import pytest
from support import COUNT, Data, crop, members_of, write_tar

PAGE = 4096


def write_lmdb(
    path: pathlib.Path, entries: Mapping[bytes, bytes], *, folder: bool = False, name: bytes | None = None, **options: Any
) -> pathlib.Path:
    """In transactions of up to 100 entries, in no order."""
    with lmdb.open(str(path), subdir=folder, map_size=1 << 28, max_dbs=8, sync=False) as env:
        db = env.open_db(name, **options)
        items = list(entries.items())
        random.Random(7).shuffle(items)
        for at in range(0, len(items), 100):
            with env.begin(write=True, db=db) as txn:
                for key, value in items[at : at + 100]:
                    txn.put(key, value)
    return path


def read_lmdb(path: pathlib.Path) -> dict[bytes, bytes]:
    with lmdb.open(str(path), subdir=False, readonly=True, lock=False) as env, env.begin() as txn:
        return dict(txn.cursor())


def entries_of(data: Data) -> dict[bytes, bytes]:
    return {name.encode(): value for s in data.samples for name, value in members_of(s)}


def texts(rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [r["data"] for r in rows]


@pytest.mark.parametrize("form", ["{:03d}", "{:03d}.jpg"])
def test_keys_about_the_database_are_no_samples(tmp_path: pathlib.Path, form: str) -> None:
    """``__len__`` and ``__keys__``, as scripts write them beside what torchvision's folders held."""
    entries = {form.format(i).encode(): b"value %d" % i for i in range(5)}
    path = write_lmdb(tmp_path / "x.lmdb", {**entries, b"__len__": b"5", b"__keys__": b"..."})
    ds = hr.open(path)
    assert [ds.key(i) for i in range(len(ds))] == [f"{i:03d}" for i in range(5)]
    assert any("2 keys like '__keys__' are about the database" in n for n in ds.notices)
    assert texts(hr.open(f"{path}#__len__")) == [b"5"]


@pytest.mark.parametrize("folder", [False, True])
def test_pictures_and_labels_of_py_lmdb_are_read(data: Data, tmp_path: pathlib.Path, folder: bool) -> None:
    path = write_lmdb(tmp_path / "x.lmdb", entries_of(data), folder=folder)
    (path / "lock.mdb" if folder else tmp_path / "x.lmdb-lock").unlink()
    fields = {"jpg": hr.bytes("jpg"), "cls": hr.scalar("cls", dtype="i64"), "txt": hr.text("txt"), "key": hr.key()}
    ds = hr.open(path, fields)
    want = sorted(data.samples, key=lambda s: s.key)
    assert [(s["key"], s["jpg"], s["cls"], s["txt"]) for s in ds] == [(s.key, s.jpeg, s.label, s.text) for s in want]
    with hr.Loader(path, 8, {"image": crop()}, shuffle=True, output="numpy") as loader:
        assert sum(len(b["image"]) for b in loader.epoch(0)) == COUNT // 8 * 8
    assert not list(tmp_path.rglob("*lock*")), "no lock file is made"


def test_folders_found_by_a_glob_are_databases(tmp_path: pathlib.Path) -> None:
    for i in range(3):
        write_lmdb(tmp_path / f"train-{i}", {f"{i}{k}.txt".encode(): b"v" for k in range(4)}, folder=True)
    assert [hr.open(tmp_path / "train-*").key(i) for i in (0, 11)] == ["00", "23"]


def test_keys_without_a_dot_are_samples_of_their_own(tmp_path: pathlib.Path) -> None:
    entries = {f"{i:05d}".encode(): bytes([i % 256]) * (i * 7) for i in range(1000)}
    ds = hr.open(write_lmdb(tmp_path / "x.lmdb", entries))
    assert [(ds.key(i).encode(), ds[i]["data"]) for i in range(1000)] == sorted(entries.items())


def test_keys_that_are_no_text_are_hex_and_integers_are_numbers(tmp_path: pathlib.Path) -> None:
    # Some of these have a dot among their bytes: it means nothing there.
    entries = {struct.pack(">Q", i * 7919): str(i).encode() for i in range(300)}
    ds = hr.open(write_lmdb(tmp_path / "x.lmdb", entries))
    assert [(bytes.fromhex(ds.key(i)), ds[i]["data"]) for i in range(300)] == sorted(entries.items())
    numbers = {struct.pack("=Q", i * 7919): str(i).encode() for i in range(300)}
    ds = hr.open(str(write_lmdb(tmp_path / "y.lmdb", numbers, name=b"ids", integerkey=True)) + "#ids")
    assert [(ds.key(i), ds[i]["data"]) for i in range(300)] == [(str(i * 7919), str(i).encode()) for i in range(300)]


def test_most_keys_tell_what_an_entry_is(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    entries = {f"{i}.txt".encode(): b"a" for i in range(10)} | {b"length": b"10"}
    ds = hr.open(write_lmdb(tmp_path / "x.lmdb", entries))
    assert "1 keys are not of the form key.field and are no part of a sample, the first 'length'" in caplog.text
    assert len(ds) == 10 and ds.key(9) == "9"
    entries = {f"{i}".encode(): b"a" for i in range(10)} | {b"0.json": b"{}"}
    ds = hr.open(write_lmdb(tmp_path / "y.lmdb", entries))
    assert [ds.key(i) for i in range(3)] == ["0", "0.json", "1"]
    both = {f"{i}.{ext}".encode(): b"a" for i in range(10) for ext in ("x", "X")} | {b"%d" % i: b"" for i in range(30)}
    assert len(hr.open(write_lmdb(tmp_path / "z.lmdb", both))) == 50


def test_a_part_is_a_sub_database_or_a_prefix(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_lmdb(tmp_path / "x.lmdb", {f"{i}.txt".encode(): b"train" for i in range(30)}, name=b"train")
    write_lmdb(path, {f"{i}.txt".encode(): b"val" for i in range(9)}, name=b"val")
    assert [s["txt"] for s in hr.open(f"{path}#val")] == ["val"] * 9
    assert [s["txt"] for s in hr.open(f"{path}#train")] == ["train"] * 30
    with pytest.raises(hr.Error, match="all data lie in sub-databases: train, val; open one as path#name"):
        hr.open(path)
    with pytest.raises(hr.StorageError, match="no sub-database 'test' and no key begins with it; sub-databases: train, val"):
        hr.open(f"{path}#test")
    write_lmdb(path, {f"extra/{i}.txt".encode(): b"main" for i in range(5)})
    assert len(hr.open(path)) == 5
    assert "sub-databases are beside these entries: train, val" in caplog.text
    plain = write_lmdb(tmp_path / "y.lmdb", {f"{s}/{i}.txt".encode(): s.encode() for s in ("a", "b") for i in range(7)})
    assert [s["txt"] for s in hr.open(f"{plain}#b/")] == ["b"] * 7
    with pytest.raises(hr.StorageError, match=r"sub-databases: none; its keys go from 'a/0.txt' to 'b/6.txt'"):
        hr.open(f"{plain}#c/")


def test_dupsort_is_refused(tmp_path: pathlib.Path) -> None:
    path = write_lmdb(tmp_path / "x.lmdb", {b"a": b"1"}, name=b"many", dupsort=True)
    with pytest.raises(hr.Unsupported, match="dupsort"):
        hr.open(f"{path}#many")


def test_a_database_with_deletions_and_overwritten_values_is_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.lmdb"
    rng = random.Random(3)
    want: dict[bytes, bytes] = {}
    with lmdb.open(str(path), subdir=False, map_size=1 << 28, sync=False) as env:
        for _ in range(60):
            with env.begin(write=True) as txn:
                for _ in range(40):
                    key = b"%06d" % rng.randrange(2000)
                    if rng.random() < 0.3:
                        txn.delete(key)
                        want.pop(key, None)
                    else:
                        want[key] = rng.randbytes(rng.choice([0, 10, 500, 2019, 2020, 2024, 2025, 4080, 4081, 9000]))
                        txn.put(key, want[key])
    ds = hr.open(path)
    assert [(ds.key(i).encode(), ds[i]["data"]) for i in range(len(ds))] == sorted(want.items())
    compact = tmp_path / "compact.lmdb"
    with lmdb.open(str(path), subdir=False, readonly=True, lock=False) as env:
        env.copy(str(compact), compact=True)
    assert texts(hr.open(compact)) == [v for _, v in sorted(want.items())]


@pytest.mark.parametrize("keep_order", [False, True])
def test_what_is_packed_py_lmdb_reads(data: Data, tmp_path: pathlib.Path, keep_order: bool) -> None:
    hr.pack(data.tar, tmp_path / "out", to="lmdb", shards=3, keep_order=keep_order)
    found: dict[bytes, bytes] = {}
    for path in sorted((tmp_path / "out").glob("*.lmdb")):
        before = path.read_bytes()
        found |= read_lmdb(path)
        assert path.read_bytes() == before
    assert found == entries_of(data)
    assert sorted(hr.open(tmp_path / "out").key(i) for i in range(COUNT)) == sorted(s.key for s in data.samples)


def test_a_packed_database_can_be_written_to_by_lmdb(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "out", to="lmdb", shards=1)
    path = tmp_path / "out/shard-000000.lmdb"
    want = entries_of(data)
    with lmdb.open(str(path), subdir=False, map_size=1 << 28) as env, env.begin(write=True) as txn:
        for i in range(500):
            want[b"zz%03d.txt" % i] = b"more" * i
            txn.put(b"zz%03d.txt" % i, b"more" * i)
        for s in data.samples[::3]:
            txn.delete(s.key.encode() + b".jpg")
            del want[s.key.encode() + b".jpg"]
    assert read_lmdb(path) == want


def test_packed_twice_it_is_the_same_bytes(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "a", to="lmdb", shards=2, keep_order=True)
    hr.pack(data.tar, tmp_path / "b", to="lmdb", shards=2, keep_order=True)
    assert (tmp_path / "a/shard-000001.lmdb").read_bytes() == (tmp_path / "b/shard-000001.lmdb").read_bytes()


def test_keys_that_cannot_be_are_refused_when_packing(tmp_path: pathlib.Path) -> None:
    long = write_tar(tmp_path / "x.tar", [("k" * 600 + ".txt", b"1")], tarfile.PAX_FORMAT)
    with pytest.raises(hr.Unsupported, match="at most 511 bytes"):
        hr.pack(long, tmp_path / "out", to="lmdb")
    twice = [write_tar(tmp_path / f"{i}.tar", [("k.txt", b"1")]) for i in range(2)]
    with pytest.raises(hr.Unsupported, match=r"samples 0 and 1 have the key 'k', and a shard of format lmdb holds a key once"):
        hr.pack(twice, tmp_path / "out2", to="lmdb", shards=1)


def test_cuts_and_flips_are_errors_or_what_was_written(tmp_path: pathlib.Path) -> None:
    entries = {f"{i:03d}.bin".encode(): bytes([i]) * (i * 37) for i in range(200)}
    whole = write_lmdb(tmp_path / "good.lmdb", entries).read_bytes()
    with lmdb.open(str(tmp_path / "good.lmdb"), subdir=False, readonly=True, lock=False) as env:
        used = (env.info()["last_pgno"] + 1) * PAGE
    assert used == len(whole)
    path = tmp_path / "x.lmdb"
    rng = random.Random(5)
    for _ in range(60):
        path.write_bytes(whole[: rng.randrange(len(whole) - PAGE)])
        with pytest.raises(hr.DataError, match=r"x\.lmdb"):
            hr.open(path)
    tree = [n for n in range(len(whole) // PAGE) if whole[n * PAGE + 10] in (1, 2, 8) and whole[n * PAGE] == n % 256]
    errors = []
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[rng.choice(tree) * PAGE + rng.choice([rng.randrange(PAGE), rng.randrange(160)])] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        (tmp_path / "x.lmdb.hridx").unlink(missing_ok=True)
        try:
            rows = list(hr.open(path))
        except hr.Error as e:
            errors.append(str(e))
        else:
            assert len(rows) in (100, 199, 200)  # the transaction before, a key without its dot, all
    assert errors
    assert all("x.lmdb" in e for e in errors)


def test_what_is_no_lmdb_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.lmdb"
    for content, text in ((b"", "0 bytes do not hold"), (bytes(9000), "00000000 where the magic beefc0de belongs")):
        path.write_bytes(content)
        with pytest.raises(hr.DataError, match=text):
            hr.open(path)
    good = bytearray(write_lmdb(tmp_path / "y.lmdb", {b"a": b"b"}).read_bytes())
    good[20] = 9
    path.write_bytes(good)
    with pytest.raises(hr.Unsupported, match="data version 9"):
        hr.open(path)


def test_values_on_all_sides_of_the_limit_for_pages_of_their_own(tmp_path: pathlib.Path) -> None:
    members = [
        (f"{i:05d}.bin", np.random.default_rng(i).bytes(i))
        for i in [*range(0, 40), *range(1990, 2060), *range(4050, 4110), 12270, 12271, 12272, 12273]
    ]
    hr.pack(write_tar(tmp_path / "x.tar", members), tmp_path / "out", to="lmdb", shards=1)
    assert read_lmdb(tmp_path / "out/shard-000000.lmdb") == {k.encode(): v for k, v in members}
