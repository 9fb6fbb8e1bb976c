# SPDX-License-Identifier: Apache-2.0
"""Samples packed as HDF5, Zarr and npy: read by the formats' own libraries, and back."""

from __future__ import annotations

import io
import json
import os
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import PIL.Image
import pytest
from support import write_tar
from test_array_pack import TARGETS, cube, digests, hdf5_plain, headrace, same, values_of

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")

COUNT = 70


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> hr.Dataset:
    rng = np.random.default_rng(3)
    members = []
    for i in range(COUNT):
        array = tmp_path_factory.mktemp("npy") / "x.npy"
        np.save(array, np.full((3, 4), i, "f4"))
        pixels = rng.integers(0, 256, (*rng.integers(8, 480, 2), 3), np.uint8)  # of very different sizes
        jpeg = io.BytesIO()
        PIL.Image.fromarray(pixels).save(jpeg, "jpeg", quality=90)
        for extension, data in (
            ("jpg", jpeg.getvalue()), ("cls", b"%d" % (i % 7)), ("txt", f"caption {i} Zürich".encode()), ("npy", array.read_bytes()),
            ("json", b'{"a": %d}' % i),
        ):  # fmt: skip
            members.append((f"{i:04d}.{extension}", data))
    return hr.open(write_tar(tmp_path_factory.mktemp("samples") / "x.tar", members))


def test_samples_as_hdf5_are_read_by_h5py(samples: hr.Dataset, tmp_path: pathlib.Path) -> None:
    hr.pack(samples, tmp_path / "a.h5", to="hdf5", keep_order=True)
    with h5py.File(tmp_path / "a.h5", "r") as f:
        assert set(f) == {"key", "jpg", "cls", "txt", "npy", "json"} and f["npy"].shape == (COUNT, 3, 4)
        for i in range(COUNT):
            want = samples[i]
            assert f["jpg"][i].dtype == np.uint8 and f["jpg"][i].tobytes() == want["jpg"]
            assert f["cls"][i] == want["cls"] and f["txt"].asstr()[i] == want["txt"] and f["key"].asstr()[i] == samples.key(i)
            assert np.array_equal(f["npy"][i], want["npy"]) and json.loads(f["json"][i]) == {"a": i}


def test_samples_as_zarr_are_read_by_zarr(samples: hr.Dataset, tmp_path: pathlib.Path) -> None:
    hr.pack(samples, tmp_path / "a.zarr", to="zarr", keep_order=True, shard_size="1M")
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    offsets = group["jpg_offsets"][:]
    assert offsets.shape == (COUNT + 1,) and offsets.dtype == np.int64 and offsets[-1] == group["jpg"].shape[0]
    assert len([p for p in (tmp_path / "a.zarr" / "jpg").rglob("*") if p.is_file()]) > 4  # several shards
    texts, ends = group["txt"][:].tobytes(), group["txt_offsets"][:]
    for i in range(COUNT):
        want = samples[i]
        assert group["jpg"][offsets[i] : offsets[i + 1]].tobytes() == want["jpg"]
        assert texts[ends[i] : ends[i + 1]].decode() == want["txt"]
        assert group["cls"][i] == want["cls"] and np.array_equal(group["npy"][i], want["npy"])


def test_samples_come_back_from_zarr_and_hdf5(samples: hr.Dataset, tmp_path: pathlib.Path) -> None:
    hr.pack(samples, tmp_path / "a.zarr", to="zarr", keep_order=True, shard_size="300K")
    hr.pack(samples, tmp_path / "b.zarr", to="zarr", keep_order=True, shard_size=1)
    hr.pack(samples, tmp_path / "c.h5", to="hdf5", keep_order=True)
    hr.pack(tmp_path / "c.h5", tmp_path / "d.zarr", to="zarr", keep_order=True)
    hr.pack(tmp_path / "a.zarr", tmp_path / "e.h5", to="hdf5", keep_order=True)
    for name in ("a.zarr", "b.zarr", "c.h5", "d.zarr", "e.h5"):
        back = hr.open(tmp_path / name)
        assert len(back) == COUNT, name
        for i in range(COUNT):
            want, got = samples[i], back[i]
            assert got["jpg"] == want["jpg"] and got["txt"] == want["txt"] and got["cls"] == want["cls"]
            assert np.array_equal(got["npy"], want["npy"]) and json.loads(got["json"]) == {"a": i}
            assert got["key"] == samples.key(i) and set(got) == {*want, "key"}
        batch = next(
            iter(hr.Loader(tmp_path / name, batch_size=16, fields={"x": hr.bytes("jpg"), "y": hr.scalar("cls")}, seed=3))
        )
        assert [len(v) for v in batch["x"]] == [len(samples[int(i)]["jpg"]) for i in batch.indices]
        done = headrace("verify", name, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


def test_zeros_that_zarr_does_not_store_come_back(tmp_path: pathlib.Path) -> None:
    """A chunk of nothing but zeros has no file, and values lie in it and across its ends."""
    values = [b"ab", bytes(700_000), b"c" * 300_000, b"", bytes(10), b"z"]
    url = write_tar(tmp_path / "x.tar", [(f"{i}.bin", v) for i, v in enumerate(values)])
    for size in (1, "256K", "1M", None):
        out = tmp_path / f"{size}.zarr"
        hr.pack(url, out, to="zarr", keep_order=True, **({"shard_size": size} if size else {}))
        back = hr.open(out)
        assert [back[i]["bin"] for i in range(len(values))] == values


def test_offsets_that_do_not_fit_are_named(samples: hr.Dataset, tmp_path: pathlib.Path) -> None:
    for number, bad in enumerate(([0, 5, 3], [0, 10, 1 << 40], [-1, 2, 3])):
        out = tmp_path / f"{number}.zarr"
        hr.pack(samples, out, to="zarr", keep_order=True, fields=["jpg", "cls"], codec="none")
        starts = zarr.open_group(out, mode="r+")["jpg_offsets"]
        starts[:3] = bad
        with pytest.raises(hr.DataError, match="jpg_offsets"):
            hr.open(out)


def test_samples_as_npy(samples: hr.Dataset, tmp_path: pathlib.Path) -> None:
    with pytest.raises(hr.Unsupported, match="--drop jpg"):
        hr.pack(samples, tmp_path / "a", to="npy")
    hr.pack(samples, tmp_path / "a", to="npy", fields=["cls", "npy"], keep_order=True)
    assert np.array_equal(np.load(tmp_path / "a" / "cls.npy"), np.arange(COUNT) % 7)
    assert np.load(tmp_path / "a" / "npy.npy").shape == (COUNT, 3, 4)
    back = hr.open(tmp_path / "a")
    assert len(back) == COUNT and back[9]["cls"] == 2


@pytest.mark.parametrize("to", ["zarr", "hdf5"])
def test_shuffled_samples_are_the_same_every_time(samples: hr.Dataset, tmp_path: pathlib.Path, to: str) -> None:
    name = TARGETS[to]
    for place, threads, memory in (("a", 1, 1 << 16), ("b", 3, 1 << 28)):
        (tmp_path / place).mkdir()
        hr.pack(samples, tmp_path / place / name, to=to, seed=5, threads=threads, memory=memory)
    assert digests(tmp_path / "a" / name) == digests(tmp_path / "b" / name)
    labels = values_of(tmp_path / "a" / name, to)["cls"]
    assert np.array_equal(labels, values_of(tmp_path / "b" / name, to)["cls"])
    assert not np.array_equal(labels, np.arange(COUNT) % 7) and sorted(labels) == sorted(np.arange(COUNT) % 7)


@pytest.mark.parametrize("to", ["zarr", "hdf5", "npy"])
def test_samples_interrupted_and_started_again(samples: hr.Dataset, tmp_path: pathlib.Path, to: str) -> None:
    options: dict[str, Any] = {"to": to, "memory": 1 << 20, "drop": ["jpg", "txt", "json"] if to == "npy" else None}

    def stop(done: int, *_: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "stopped").mkdir()
    (tmp_path / "straight").mkdir()
    stopped, straight = tmp_path / "stopped" / TARGETS[to], tmp_path / "straight" / TARGETS[to]
    with pytest.raises(KeyboardInterrupt):
        hr.pack(samples, stopped, progress=stop, **options)
    with pytest.raises(hr.Error):
        hr.open(stopped)
    assert not hr.pack(samples, stopped, **options)["was_complete"]
    hr.pack(samples, straight, **options)
    assert digests(stopped) == digests(straight)
    assert sorted(os.listdir(stopped.parent)) == sorted(os.listdir(straight.parent))


def test_a_data_set_that_is_files_of_arrays_is_packed_as_they_are(tmp_path: pathlib.Path) -> None:
    ds = hr.open(hdf5_plain(tmp_path, {"x": cube("f4"), "grid": np.arange(6.0)}))
    hr.pack(ds, tmp_path / "a.zarr", to="zarr")
    assert set(values_of(tmp_path / "a.zarr", "zarr")) == {"x", "grid"}
    hr.pack(ds[3:9], tmp_path / "b.zarr", to="zarr", keep_order=True)  # a view: sample by sample
    same(values_of(tmp_path / "b.zarr", "zarr")["x"], cube("f4")[3:9])


def test_texts_that_hdf5_cannot_hold_are_refused(tmp_path: pathlib.Path) -> None:
    url = write_tar(tmp_path / "x.tar", [("a.txt", b"one\0two"), ("b.txt", b"three")])
    with pytest.raises(hr.UsageError, match="NUL"):
        hr.pack(url, tmp_path / "a.h5", to="hdf5")
    assert not (tmp_path / "a.h5").exists()
    with pytest.raises(hr.UsageError, match=r"call it .*\.h5"):
        hr.pack(url, tmp_path / "a", to="hdf5")


def test_tokens_of_varying_length(tmp_path: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [list(range(n)) for n in (3, 0, 5, 1)]
    table = pa.table({"ids": pa.array(rows, pa.list_(pa.int32())), "n": pa.array([1, 2, 3, 4], pa.int16())})
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    hr.pack(tmp_path / "x.arrow", tmp_path / "a.h5", to="hdf5", keep_order=True)
    with h5py.File(tmp_path / "a.h5", "r") as f:
        assert [v.tolist() for v in f["ids"][:]] == rows and f["ids"][0].dtype == np.int32 and f["n"].dtype == np.int16
    hr.pack(tmp_path / "x.arrow", tmp_path / "a.zarr", to="zarr", keep_order=True)
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert group["ids_offsets"][:].tolist() == [0, 3, 3, 8, 9] and group["ids"].dtype == np.int32
    assert group["ids"][:].tolist() == [n for row in rows for n in row]


def test_samples_that_lack_a_field_are_refused(tmp_path: pathlib.Path) -> None:
    members = [("a.jpg", b"\xff\xd8\xff"), ("a.cls", b"1"), ("b.jpg", b"\xff\xd8\xff")]
    url = write_tar(tmp_path / "x.tar", members)
    with pytest.raises(hr.UsageError, match=r"no value of field 'cls'.*--drop cls"):
        hr.pack(url, tmp_path / "a.h5", to="hdf5")
    hr.pack(url, tmp_path / "b.h5", to="hdf5", drop=["cls"])
