# SPDX-License-Identifier: Apache-2.0
"""Files of arrays that are not on this machine: opened by their URLs through the engine's stores, in few requests."""

from __future__ import annotations

import io
import os
import time

import headrace as hr
import numpy as np
import pytest
from headrace import _core
from headrace.arrays.stored_files import StoreFile

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore")

DATA = np.random.default_rng(0).random((20, 6, 10)).astype("f4")


@pytest.fixture
def far(tmp_path, monkeypatch):
    """far://x is the file x of tmp_path/far."""
    (tmp_path / "far").mkdir()
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    store = _core.testing_scheme("far", str(tmp_path / "far"), latency_ms=1)
    yield store
    store.close()


def column(ds, name):
    return np.stack([np.asarray(s[name]) for s in ds])


def write_hdf5(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=DATA, chunks=(3, 6, 5), compression="gzip")
        f.create_dataset("label", data=np.arange(20))
        f.create_dataset("name", data=np.array([f"sample {i}" for i in range(20)], object), dtype=h5py.string_dtype())
        f["x"].attrs["units"] = "K"


def write_zarr(path, version=3, **options):
    root = zarr.open_group(str(path), mode="w", zarr_format=version)
    names = {"dimension_names": ["time", "lat", "lon"]} if version == 3 else {}
    root.create_array("x", data=DATA, chunks=(3, 6, 5), **names, **options)
    root.create_array("n", data=np.arange(20), chunks=(7,), **({"dimension_names": ["time"]} if version == 3 else {}))
    root.create_group("deep").create_array("y", data=np.arange(20) * 2, chunks=(5,))


def test_hdf5(tmp_path, far):
    write_hdf5(tmp_path / "far/a.h5")
    ds = hr.open("far://a.h5")
    assert far.reads <= 8  # the metadata lie in one block; the references and the heap of the texts
    assert np.array_equal(column(ds, "x"), DATA)
    assert [s["name"] for s in ds] == [f"sample {i}" for i in range(20)]
    assert column(ds, "label").tolist() == list(range(20))
    assert ds.fingerprint == hr.open(tmp_path / "far/a.h5").fingerprint
    with hr.Loader("far://a.h5", 4, {"x": hr.array("x", window=3)}, seed=1, output="numpy") as loader:
        assert sum(len(b["x"]) for b in loader) == 16


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
def test_zarr(tmp_path, far, version, consolidated):
    write_zarr(tmp_path / "far/a.zarr", version)
    if consolidated:
        zarr.consolidate_metadata(str(tmp_path / "far/a.zarr"))
    near = hr.open(tmp_path / "far/a.zarr", {"x": hr.array("x")})
    far.reset()
    ds = hr.open("far://a.zarr", {"x": hr.array("x")})
    if consolidated:
        assert far.reads <= 5  # the root's documents and the index of the local one, which is none of this
    assert np.array_equal(column(ds, "x"), DATA)
    assert ds.fingerprint == near.fingerprint
    assert hr.open("far://a.zarr#deep")[3]["y"] == 6


def test_zarr_in_shards_in_a_zip_and_without_listings(tmp_path, far):
    write_zarr(tmp_path / "far/s.zarr", shards=(6, 6, 10))
    assert np.array_equal(column(hr.open("far://s.zarr", {"x": hr.array("x")}), "x"), DATA)
    store = zarr.storage.ZipStore(str(tmp_path / "far/z.zarr.zip"), mode="w")
    zarr.open_group(store, mode="w").create_array("x", data=DATA, chunks=(4, 3, 10))
    store.close()
    assert np.array_equal(column(hr.open("far://z.zarr.zip"), "x"), DATA)
    write_zarr(tmp_path / "far/w.zarr")
    zarr.consolidate_metadata(str(tmp_path / "far/w.zarr"))
    os.unlink(tmp_path / "far/w.zarr/x/c/1/0/1")  # a chunk that was never written is the fill
    web = _core.testing_scheme("web", str(tmp_path / "far"), latency_ms=1, lists=False)
    try:
        got = column(hr.open("web://w.zarr", {"x": hr.array("x")}), "x")
    finally:
        web.close()
    want = DATA.copy()
    want[3:6, :, 5:] = 0
    assert np.array_equal(got, want)


def test_texts_of_zarr(tmp_path, far):
    root = zarr.open_group(str(tmp_path / "far/t.zarr"), mode="w")
    root.create_array("t", shape=(3,), chunks=(2,), dtype=str)[:] = np.array(["a", "bcd", "é"], object)
    assert [s["t"] for s in hr.open("far://t.zarr")] == ["a", "bcd", "é"]


def test_npy_npz_and_classic_netcdf(tmp_path, far):
    netcdf = pytest.importorskip("netCDF4")
    np.save(tmp_path / "far/a.npy", DATA)
    np.savez(tmp_path / "far/b.npz", x=DATA[0])
    np.savez_compressed(tmp_path / "far/c.npz", x=DATA[1])
    for i in range(2):
        with netcdf.Dataset(tmp_path / f"far/t{i}.nc", "w", format="NETCDF3_CLASSIC") as f:
            f.createDimension("time", None)
            f.createDimension("lon", 10)
            f.createVariable("v", "f4", ("time", "lon"))[:] = DATA[i * 3 : i * 3 + 3, 0]
    assert np.array_equal(column(hr.open("far://a.npy"), "data"), DATA)
    ds = hr.open(["far://b.npz", "far://c.npz"], {"x": hr.array("x", along="file")})
    assert np.array_equal(column(ds, "x"), DATA[:2])
    assert np.array_equal(column(hr.open("far://t*.nc"), "v"), DATA[:6, 0])
    assert hr.stats("far://t*.nc")["v"]["mean"] == pytest.approx(DATA[:6, 0].mean(), rel=1e-6)


def test_pack_reads_from_there(tmp_path, far):
    write_hdf5(tmp_path / "far/a.h5")
    hr.pack("far://a.h5", tmp_path / "out.zarr", to="zarr", fields=["x", "label"])
    assert np.array_equal(column(hr.open(tmp_path / "out.zarr"), "x"), DATA)


def test_labels_of_volumes(tmp_path, far):
    for i in range(3):
        with h5py.File(tmp_path / f"far/case{i}.h5", "w") as f:
            f["x"] = np.zeros((8, 8, 8), "f4")
            mask = np.zeros((8, 8, 8), "u1")
            mask[i, 2, 3] = 1
            f["mask"] = mask
    fields = {
        "x": hr.array("x", along="file", patch=(2, 2, 2), foreground="mask", share=1.0),
        "mask": hr.array("mask", along="file", patch=(2, 2, 2), foreground="mask", share=1.0),
    }
    with hr.Loader("far://case*.h5", 3, fields, seed=0, output="numpy") as loader:
        (batch,) = list(loader)
    assert (batch["mask"].reshape(3, -1).max(1) == 1).all()


def test_what_is_not_there_is_named(tmp_path, far):
    for url in ("far://no.h5", "far://no.npy", "far://no.zarr", "far://no*.nc"):
        with pytest.raises(hr.Error, match="no"):
            hr.open(url)
    (tmp_path / "far/bad.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + b"\1" * 200)
    with pytest.raises(hr.DataError, match=r"far://bad\.h5"):
        hr.open("far://bad.h5")
    with pytest.raises(hr.Error, match="nowhere"):
        hr.open("nowhere://a.h5")


def test_a_file_of_a_store_reads_as_a_file(tmp_path, far):
    raw = np.random.default_rng(1).bytes((3 << 20) + 17)
    (tmp_path / "far/raw").write_bytes(raw)
    file, like = StoreFile("far://raw"), io.BytesIO(raw)
    rng = np.random.default_rng(2)
    for _ in range(200):
        at, n = int(rng.integers(0, len(raw) + 100)), int(rng.choice([1, 8, 4096, 1 << 20, 2 << 20]))
        assert file.seek(at) == like.seek(at)
        assert file.read(n) == like.read(n)
    assert far.reads < 60  # small reads come from blocks that are kept
    assert file.seek(-5, os.SEEK_END) == like.seek(-5, os.SEEK_END)
    assert file.read() == like.read()
    with pytest.raises(FileNotFoundError):
        StoreFile("far://none")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i2", "u1", "<u8", "bool"])
@pytest.mark.parametrize("shards", [None, (6, 6, 10)])
def test_the_core_sees_what_python_sees_of_zarr(tmp_path, version, dtype, shards):
    from headrace.arrays.zarr import zarr_arrays

    if version == 2 and shards:
        pytest.skip("version 2 has no shards")
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=version)
    names = {"dimension_names": ["time", "lat", "lon"]} if version == 3 else {}
    more = {"shards": shards} if shards else {}
    x = root.create_array(
        "x", shape=(20, 6, 10), chunks=(3, 6, 5), dtype=dtype, fill_value=3 if dtype != "bool" else True, **names, **more
    )
    x[:13] = (DATA[:13] * 100).astype(dtype)
    attributes = {"units": "K", "scale_factor": 0.5, "add_offset": 10, "missing_value": [7, 9], "valid": [1, 2.5]}
    x.attrs.update(attributes | ({"_ARRAY_DIMENSIONS": ["time", "lat", "lon"]} if version == 2 else {}))
    root.create_array("plain", data=np.arange(20, dtype="<f4"), chunks=(7,), compressors=None)
    core = {d["name"]: d for d in _core.zarr_arrays(str(tmp_path / "a.zarr"), "")}
    for want in zarr_arrays(str(tmp_path / "a.zarr"), ""):
        got = core.pop(want.name)
        assert got["why"] == want.why == ""
        for name in (
            "dtype",
            "big_endian",
            "fortran",
            "fill",
            "packed",
            "scale",
            "offset",
            "also_missing",
            "files",
            "inner",
            "kind",
        ):
            assert got[name] == getattr(want, name), name
        assert got.get("missing") == want.missing
        for name in ("dims", "shape", "chunk"):
            assert tuple(got[name]) == getattr(want, name), name
        assert [tuple(f) for f in got["filters"]] == want.filters
        assert np.array_equal(got["places"], want.places)
        assert np.array_equal(got.get("file_bytes", []), want.file_bytes)
        assert got["attributes"] == want.attributes
    assert not core


def write_steps(folder, files, moved=None):
    """Files that follow each other in time, on one grid, or one of them on another."""
    netcdf4 = pytest.importorskip("netCDF4")
    for i in range(files):
        with netcdf4.Dataset(folder / f"{i:02d}.nc", "w") as f:
            for name, values in (
                ("time", np.arange(2.0) + 2 * i),
                ("lat", np.arange(4.0) + (i == moved)),
                ("lon", np.arange(5.0)),
            ):
                f.createDimension(name, len(values))
                f.createVariable(name, "f8", (name,))[:] = values
            f.createVariable("t", "f4", ("time", "lat", "lon"))[:] = np.arange(40).reshape(2, 4, 5) + 40 * i


def test_grids_of_many_files_are_compared(tmp_path, far):
    write_steps(tmp_path / "far", 8)
    local = hr.open(sorted(str(p) for p in (tmp_path / "far").glob("*.nc")), {"t": hr.array("t")})
    ds = hr.open("far://*.nc", {"t": hr.array("t")})
    assert len(ds) == 16 and np.array_equal(column(ds, "t"), column(local, "t"))
    write_steps(tmp_path / "far", 8, moved=5)
    with pytest.raises(hr.UsageError, match=r"'lat' is 0, 1, 2, 3 in far://00\.nc and 1, 2, 3, 4 in far://05\.nc"):
        hr.open("far://*.nc", {"t": hr.array("t")})


@pytest.mark.alone
def test_coordinates_of_many_files_are_read_at_a_time(tmp_path, monkeypatch):
    """Two axes and the time of 16 files are 48 reads: one after the other they would take 48 latencies more."""
    (tmp_path / "far").mkdir()
    write_steps(tmp_path / "far", 16)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    took = []
    for latency_ms in (1, 40):
        store = _core.testing_scheme("slow", str(tmp_path / "far"), latency_ms=latency_ms)
        ds = hr.open("slow://*.nc")
        start = time.monotonic()
        hr.Loader(ds, 4, {"t": hr.array("t")}, output="numpy").close()
        took.append(time.monotonic() - start)
        store.close()
    assert took[1] - took[0] < 0.039 * 24
