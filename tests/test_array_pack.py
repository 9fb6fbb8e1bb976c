# SPDX-License-Identifier: Apache-2.0
"""Packs of arrays: every source into every target, read by the formats' own libraries; kills, chunks, refusals."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import packing
from headrace.writing import layout as pack_layout

h5py = pytest.importorskip("h5py")
try:
    import hdf5plugin  # before netCDF4, whose plugins h5py cannot use
except ImportError:
    hdf5plugin = None
zarr = pytest.importorskip("zarr")

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
SHAPE = (13, 6, 9)
TARGETS = {"zarr": "out.zarr", "hdf5": "out.h5", "npy": "out"}


def cube(dtype: str, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Any:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


# -- sources: name -> writer of {name: array} -----------------------------------------------------


def hdf5_plain(path: pathlib.Path, data: dict[str, Any]) -> pathlib.Path:
    with h5py.File(path / "a.h5", "w") as f:
        for name, value in data.items():
            f[name] = value
    return path / "a.h5"


def hdf5_chunked(path: pathlib.Path, data: dict[str, Any]) -> pathlib.Path:
    with h5py.File(path / "a.h5", "w") as f:
        for name, value in data.items():
            big = value.astype(value.dtype.newbyteorder(">"))
            f.create_dataset(name, data=big, chunks=(4, 5, 4), compression="gzip", shuffle=True, fillvalue=3)
    return path / "a.h5"


def netcdf(path: pathlib.Path, data: dict[str, Any]) -> pathlib.Path:
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(path / "a.nc", "w") as f:
        for name, n in zip(("time", "lat", "lon"), SHAPE):
            f.createDimension(name, n)
        for name, value in data.items():
            if value.dtype != np.float16:
                f.createVariable(name, value.dtype, ("time", "lat", "lon"), zlib=True, chunksizes=(3, 6, 2), fill_value=False)[
                    :
                ] = value
    return path / "a.nc"


def netcdf_classic(path: pathlib.Path, data: dict[str, Any]) -> pathlib.Path:
    """With records: the steps of all variables lie one after the other."""
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(path / "a.nc", "w", format="NETCDF3_64BIT_DATA") as f:
        for name, n in zip(("time", "lat", "lon"), (None, *SHAPE[1:])):
            f.createDimension(name, n)
        for name, value in data.items():
            if value.dtype != np.float16:
                f.createVariable(name, value.dtype, ("time", "lat", "lon"), fill_value=False)[:] = value
    return path / "a.nc"


def zarr2(path: pathlib.Path, data: dict[str, Any]) -> pathlib.Path:
    group = zarr.open_group(path / "a.zarr", mode="w", zarr_format=2)
    for name, value in data.items():
        group.create_array(name, shape=value.shape, dtype=value.dtype, chunks=(5, 2, 9), order="F")[:] = value
    return path / "a.zarr"


def zarr3(path: pathlib.Path, data: dict[str, Any]) -> pathlib.Path:
    group = zarr.open_group(path / "a.zarr", mode="w", zarr_format=3)
    for name, value in data.items():
        made = group.create_array(
            name, shape=value.shape, dtype=value.dtype, chunks=(2, 3, 3), shards=(6, 6, 9), dimension_names=["time", "lat", "lon"]
        )
        made[:] = value
    return path / "a.zarr"


def npy_files(path: pathlib.Path, data: dict[str, Any]) -> pathlib.Path:
    """One array: the others would be further files of it."""
    np.save(path / "data.npy", np.asfortranarray(next(iter(data.values()))))
    return path / "data.npy"


SOURCES = {f.__name__: f for f in (hdf5_plain, hdf5_chunked, netcdf, netcdf_classic, zarr2, zarr3, npy_files)}


def values_of(path: pathlib.Path, to: str) -> dict[str, Any]:
    """By h5py, zarr-python or NumPy."""
    if to == "zarr":
        return {name: a[...] for name, a in zarr.open_group(path, mode="r").arrays()}
    if to == "hdf5":
        with h5py.File(path, "r") as f:
            return {
                n: f[n][()] for n in f if not bytes(np.bytes_(f[n].attrs.get("NAME", b""))).startswith(b"This is a netCDF dim")
            }
    if path.suffix == ".npy":
        return {"data": np.load(path)}
    return {p.stem: np.load(p) for p in path.glob("*.npy")}


def same(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype.newbyteorder("=")
    assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("access", [{}, {"window": 3, "patch": 2}], ids=str)
def test_every_source_into_every_target(tmp_path: pathlib.Path, source: str, to: str, access: dict[str, Any]) -> None:
    data = {f"v_{d}": cube(d, i) for i, d in enumerate(DTYPES)}
    url = SOURCES[source](tmp_path, data)
    if source == "npy_files":
        data = {"data": next(iter(data.values()))}
    if source.startswith("netcdf"):
        data.pop("v_f2")
    out = tmp_path / TARGETS[to]
    result = hr.pack(url, out, to=to, memory=4096, **access)
    found = values_of(out, to)
    assert set(found) == set(data)
    for name, want in data.items():
        same(found[name], want)
    ds = hr.open(out)
    assert len(ds) == SHAPE[0]
    for name, want in data.items():
        same(np.asarray(ds[5][name]), want[5])
    assert not result["was_complete"]
    assert hr.pack(url, out, to=to, memory=1 << 20, threads=1, **access)["was_complete"]


CODECS = ["blosc-lz4", "blosc-zstd", "zstd", "zstd:9", "gzip", "gzip:1", "none"]


@pytest.mark.parametrize("to", ["zarr", "hdf5"])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("shard_size", [None, 4096, 1])
def test_codecs_are_read_by_others(tmp_path: pathlib.Path, to: str, codec: str, shard_size: int | None) -> None:
    if to == "hdf5":
        if shard_size:
            pytest.skip("HDF5 has no shards")
        if codec.split("-")[0].split(":")[0] in ("blosc", "zstd") and hdf5plugin is None:
            pytest.skip("h5py has no such filter")
    data = {f"v_{d}": cube(d, i, (40, 33, 21)) for i, d in enumerate(("u1", "i2", "f4", "f8"))}
    out = tmp_path / TARGETS[to]
    hr.pack(
        hdf5_plain(tmp_path, data),
        out,
        to=to,
        codec=codec,
        window=2,
        patch=8,
        **({"shard_size": shard_size} if shard_size else {}),
    )
    found = values_of(out, to)
    ds = hr.open(out)
    for name, want in data.items():
        same(found[name], want)
        same(np.asarray(ds[39][name]), want[39])


def test_tensorstore_reads_it(tmp_path: pathlib.Path) -> None:
    tensorstore = pytest.importorskip("tensorstore")
    data = {"x": cube("f4", 0, (40, 33, 21)), "y": cube("u1", 1, (40, 33, 21))}
    source = hdf5_plain(tmp_path, data)
    for codec, size in itertools.product(CODECS, (None, 8192)):
        out = tmp_path / f"{codec}-{size}.zarr".replace(":", "-")
        hr.pack(source, out, to="zarr", codec=codec, window=2, patch=8, **({"shard_size": size} if size else {}))
        for name, want in data.items():
            spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{out / name}/"}}
            same(tensorstore.open(spec).result().read().result(), want)


def test_files_that_follow_each_other_become_one(tmp_path: pathlib.Path) -> None:
    data = cube("f4")
    for i, (a, b) in enumerate(((0, 4), (4, 5), (5, 13))):
        with h5py.File(tmp_path / f"part-{i}.h5", "w") as f:
            f.create_dataset("x", data=data[a:b], chunks=(1, 4, 4), compression="gzip")
    for to, name in TARGETS.items():
        hr.pack(str(tmp_path / "part-{0..2}.h5"), tmp_path / name, to=to)
        same(values_of(tmp_path / name, to)["x"], data)


def climate(path: pathlib.Path) -> tuple[pathlib.Path, Any]:
    netcdf4 = pytest.importorskip("netCDF4")
    stored = cube("i2", 0, (20, 32, 64)) - 50
    with netcdf4.Dataset(path / "cube.nc", "w") as f:
        f.title = "a cube"
        for name, n in zip(("time", "lat", "lon"), stored.shape):
            f.createDimension(name, n)
        for name, n in (("time", 20), ("lat", 32), ("lon", 64)):
            made = f.createVariable(name, "f8", (name,))
            made[:] = np.arange(n) * 0.5
            made.units = "hours since 1979-01-01" if name == "time" else "degrees"
        v = f.createVariable("t2m", "i2", ("time", "lat", "lon"), fill_value=-32768)
        v.scale_factor, v.add_offset, v.units = 0.01, 273.15, "K"
        v.set_auto_maskandscale(False)
        stored[3, 2, 1] = -32768
        v[:] = stored
        w = f.createVariable("u10", "f4", ("time", "lat", "lon"), fill_value=np.float32(np.nan), zlib=True)
        w[:] = stored
        f.createVariable("crs", "i4", ())[...] = 7
    return path / "cube.nc", stored


@pytest.mark.parametrize("to", TARGETS)
def test_axes_coordinates_and_packed_numbers_stay(tmp_path: pathlib.Path, to: str) -> None:
    source, _ = climate(tmp_path)
    out = tmp_path / TARGETS[to]
    hr.pack(source, out, to=to, window=4, patch=8)
    fields = {"x": hr.array("t2m", along="time", window=2, sel={"lat": [1.5, 2.0]}), "u": hr.array("u10", along="time")}
    want, got = hr.open(source, fields), hr.open(out, fields)
    assert len(want) == len(got) == 19
    for i in (0, 2, 3, 18):
        for name in ("x", "u"):
            assert np.array_equal(np.asarray(want[i][name]), np.asarray(got[i][name]), equal_nan=True)
    assert np.isnan(np.asarray(got[2]["u"])).sum() == np.isnan(np.asarray(want[2]["u"])).sum()
    if to == "hdf5":  # and as NetCDF-4
        netcdf4 = pytest.importorskip("netCDF4")
        with netcdf4.Dataset(out) as a, netcdf4.Dataset(source) as b:
            assert a.title == "a cube" and a["t2m"].dimensions == ("time", "lat", "lon") and a["time"].units == b["time"].units
            for name in ("t2m", "u10", "time", "crs"):
                assert np.ma.allequal(a[name][...], b[name][...])
    if to == "zarr":
        group = zarr.open_group(out, mode="r")
        assert group.attrs["title"] == "a cube" and group["t2m"].metadata.dimension_names == ("time", "lat", "lon")
        assert group["t2m"].attrs["scale_factor"] == 0.01 and group["crs"][()] == 7
        assert group.metadata.consolidated_metadata is not None


def test_fields_dropped_and_renamed(tmp_path: pathlib.Path) -> None:
    source = hdf5_plain(tmp_path, {"a": cube("f4"), "b": cube("f4", 1), "c": cube("u1")})
    hr.pack(source, tmp_path / "x.zarr", to="zarr", drop=["b"], rename={"new": "c"})
    assert set(values_of(tmp_path / "x.zarr", "zarr")) == {"a", "new"}
    hr.pack(source, tmp_path / "y.npy", to="npy", fields=["b"])
    same(np.load(tmp_path / "y.npy"), cube("f4", 1))
    with pytest.raises(hr.UsageError, match="no array named 'z'"):
        hr.pack(source, tmp_path / "z.zarr", to="zarr", drop=["z"])


@pytest.mark.parametrize("to", ["zarr", "hdf5"])
def test_chunks_of_nothing_but_the_fill_are_not_stored(tmp_path: pathlib.Path, to: str) -> None:
    data = np.full((64, 64, 64), -7, "i4")
    data[10, 20, 30] = 5
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=data, fillvalue=-7)
    out = tmp_path / TARGETS[to]
    hr.pack(tmp_path / "a.h5", out, to=to, codec="none", window=1, patch=32)
    same(values_of(out, to)["x"], data)
    same(np.asarray(hr.open(out)[10]["x"]), data[10])
    size = out.stat().st_size if to == "hdf5" else sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    assert size < data.nbytes / 3


# -- chunks ---------------------------------------------------------------------------------------


def test_chunks_are_cut_for_what_is_asked() -> None:
    shape = (8760, 721, 1440)
    dims = ("time", "lat", "lon")
    windows = pack_layout.wanted_of(dims, shape, "time", 4, (128, 128))
    assert windows == [(4, True), (128, True), (128, True)]
    chunk = pack_layout.choose_chunk(shape, 4, windows)
    size = np.prod(chunk) * 4
    assert pack_layout.LEAST <= size <= pack_layout.MOST
    cost = pack_layout.expected(shape, chunk, 4, windows, 1.0)
    whole = pack_layout.expected(shape, (1, 721, 1440), 4, windows, 1.0)
    assert cost["bytes"] < whole["bytes"] / 8 and cost["chunks"] < 20
    assert 0.1 < cost["used"] <= 1
    points = pack_layout.wanted_of(dims, shape, "time", 8760, (1, 1))  # all of time at one place
    assert pack_layout.choose_chunk(shape, 4, points)[0] > 1000
    assert pack_layout.choose_chunk((1000, 28, 28), 1, None) == (334, 28, 28)  # rows, about 256 KiB
    assert pack_layout.choose_chunk((10, 512, 512, 128), 2, None)[0] == 1


def test_costs_are_those_of_the_reader(tmp_path: pathlib.Path) -> None:
    """What is expected is what the reader's requests come to, to within a tenth."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset(
            "x", data=np.random.default_rng(0).random((64, 256, 256), np.float32), chunks=(1, 256, 256), compression="gzip"
        )
    work = packing.prepare(tmp_path / "a.h5", tmp_path / "a.zarr", to="zarr", window=4, patch=32)
    expected = work.estimate()["reads"]
    measured = work.run()["reads"]
    assert expected["sample"] == [4, 32, 32] and expected["source"] == measured["source"]
    assert expected["source"]["chunks"] == 4
    assert expected["packed"]["chunks"] == pytest.approx(measured["packed"]["chunks"], rel=0.1)
    assert expected["packed"]["bytes"] == pytest.approx(measured["packed"]["bytes"], rel=0.1)
    assert measured["packed"]["bytes"] < measured["source"]["bytes"] / 2


def test_many_chunks_go_into_shards(tmp_path: pathlib.Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = np.random.default_rng(0).integers(0, 255, (2048, 128, 128), np.uint8)
    result = hr.pack(tmp_path / "a.h5", tmp_path / "a.zarr", to="zarr", window=1, patch=128, codec="none")
    files = [p for p in (tmp_path / "a.zarr" / "x").rglob("*") if p.is_file() and p.name != "zarr.json"]
    assert result["arrays"][0]["shard"] and result["chunks"] > 256 and len(files) < 16
    hr.pack(tmp_path / "a.h5", tmp_path / "b.zarr", to="zarr", window=1, patch=128, codec="none", shard_size=1)
    files = [p for p in (tmp_path / "b.zarr" / "x").rglob("*") if p.is_file() and p.name != "zarr.json"]
    assert len(files) == result["chunks"]


# -- kills ----------------------------------------------------------------------------------------


def digests(path: pathlib.Path) -> dict[str, str]:
    paths = (
        [path, path.with_name(path.name + ".headrace.json")] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    )
    return {p.name if path.is_file() else str(p.relative_to(path)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def underway(folder: pathlib.Path) -> bool:
    """Something is written, and not all."""
    for p in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # renamed meanwhile
            if p.is_file() and ("part" in p.name or "unfinished" in p.name) and p.stat().st_size > 600:
                return True
    return False


@pytest.mark.parametrize("to", TARGETS)
def test_killed_and_started_again_it_ends_with_the_same_bytes(tmp_path: pathlib.Path, to: str) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for name in "abcd":
            f.create_dataset(
                name, data=rng.integers(0, 99, (120, 128, 128)).astype("f4"), chunks=(8, 128, 128), compression="gzip"
            )
    options = [sys.executable, "-m", "headrace", "pack", "a.h5", TARGETS[to], "--to", to, "--memory", "2M", "--threads", "1"]
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    for place in (straight, killed):
        place.mkdir()
        (place / "a.h5").symlink_to(tmp_path / "a.h5")
    assert subprocess.run(options, cwd=straight, capture_output=True).returncode == 0
    met = 0
    for attempt in range(20):
        process = subprocess.Popen(options, cwd=killed, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        begun = time.monotonic()
        while process.poll() is None and time.monotonic() - begun < 60:
            if underway(killed):
                time.sleep(0.03 * attempt)
                break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0
            break
        met += 1
        if to != "npy" or not (killed / "out" / "headrace.json").exists():
            with pytest.raises(hr.Error):
                hr.open(killed / TARGETS[to])
        if met == 3:
            break
    assert met >= 1
    done = subprocess.run(options, cwd=killed, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert digests(killed / TARGETS[to]) == digests(straight / TARGETS[to])
    if to == "zarr":
        assert "were there already" in done.stdout


# -- verify, inspect, refusals --------------------------------------------------------------------


def headrace(*arguments: Any, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "headrace", *map(str, arguments)], cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize("to", TARGETS)
def test_verify_finds_a_changed_byte(tmp_path: pathlib.Path, to: str) -> None:
    source = hdf5_plain(tmp_path, {"x": cube("f4", 0, (40, 33, 21))})
    out = tmp_path / TARGETS[to]
    hr.pack(source, out, to=to)
    good = headrace("verify", out.name, cwd=tmp_path)
    assert good.returncode == 0 and "0 not as written" in good.stdout, good.stderr
    file = out if out.is_file() else max((p for p in out.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) - 100] ^= 1
    file.write_bytes(data)
    bad = headrace("verify", out.name, cwd=tmp_path)
    assert bad.returncode == 1 and file.name in bad.stdout


def test_a_quote_in_the_name_of_a_file(tmp_path: pathlib.Path) -> None:
    """The manifest is JSON all the same, and is found to be true."""
    np.save(tmp_path / "a.npy", np.arange(40))
    hr.pack(tmp_path / "a.npy", tmp_path / 'a "b".h5', to="hdf5")
    manifest = json.loads((tmp_path / 'a "b".h5.headrace.json').read_text())
    assert manifest["shards"][0]["name"] == 'a "b".h5'


def test_what_is_said(tmp_path: pathlib.Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=cube("f4", 0, (64, 128, 128)), chunks=(1, 128, 128), compression="gzip")
    done = headrace("pack", "a.h5", "a.zarr", "--to", "zarr", "--window", 4, "--patch", 32, cwd=tmp_path)
    assert done.returncode == 0 and "expected: a sample of 4x32x32 of 'x' reads" in done.stderr, done.stderr
    assert "in the source: 4.0 chunks" in done.stdout
    facts = json.loads(headrace("inspect", "a.zarr", "--json", cwd=tmp_path).stdout)
    [row] = facts["arrays"]
    assert row["name"] == "x" and row["filters"] == "blosc" and row["shape"] == [64, 128, 128]
    assert headrace("inspect", "a.zarr", cwd=tmp_path).returncode == 0
    again = headrace("pack", "a.h5", "a.zarr", "--to", "zarr", "--window", 4, "--patch", 32, cwd=tmp_path)
    assert "nothing to do" in again.stdout


def test_refusals(tmp_path: pathlib.Path) -> None:
    source = hdf5_plain(tmp_path, {"x": cube("f4")})
    for options, words in (
        ({"codec": "lzma"}, "there is no 'lzma'"),
        ({"codec": "zstd:99"}, "level of zstd is 1 to 22"),
        ({"window": 99}, "99"),
        ({"patch": 100}, "100"),
        ({"along": "depth"}, "no array .* has an axis 'depth'"),
        ({"max_side": 4}, "for pictures"),
        ({"shards": 4}, "for formats of records"),
        ({"split": {"a": 0.5}}, "split"),
        ({"to": "npy", "codec": "gzip"}, "not compressed"),
        ({"to": "hdf5", "shard_size": "1M"}, "shard_size is for Zarr"),
        ({"to": "tar", "window": 4}, "are for arrays"),
    ):
        with pytest.raises(hr.Error, match=words):
            hr.pack(source, tmp_path / "new", **{"to": "zarr", **options})
        assert not (tmp_path / "new").exists(), options


def test_what_is_there_is_not_written_over(tmp_path: pathlib.Path) -> None:
    source = hdf5_plain(tmp_path, {"x": cube("f4")})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("mine")
    (tmp_path / "file.h5").write_text("mine")
    with pytest.raises(hr.UsageError, match="not empty: 'precious'"):
        hr.pack(source, tmp_path / "full", to="zarr")
    with pytest.raises(hr.UsageError, match="not empty: 'precious'"):
        hr.pack(source, tmp_path / "full", to="npy")
    with pytest.raises(hr.UsageError, match="there already"):
        hr.pack(source, tmp_path / "file.h5", to="hdf5")
    hr.pack(source, tmp_path / "a.zarr", to="zarr")
    with pytest.raises(hr.UsageError, match="another pack"):
        hr.pack(source, tmp_path / "a.zarr", to="zarr", codec="gzip")
    assert sorted(os.listdir(tmp_path / "full")) == ["precious"] and (tmp_path / "file.h5").read_text() == "mine"


def test_arrays_that_cannot_be_read_are_named(tmp_path: pathlib.Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = cube("f4")
        f.create_dataset("z", (13,), h5py.ref_dtype)
    with pytest.raises(hr.Unsupported, match="--drop z"):
        hr.pack(tmp_path / "a.h5", tmp_path / "a.zarr", to="zarr")
    hr.pack(tmp_path / "a.h5", tmp_path / "a.zarr", to="zarr", drop=["z"])


def test_files_whose_units_differ_are_brought_to_the_first_ones(tmp_path: pathlib.Path) -> None:
    for i in range(3):
        with h5py.File(tmp_path / f"{i}.h5", "w") as f:
            f["x"], f["time"] = cube("f4"), np.arange(13.0)
            f["time"].make_scale("time")
            f["x"].dims[0].attach_scale(f["time"])
            f["time"].attrs["units"] = f"days since 198{i}-01-01" if i < 2 else "K"
    hr.pack([tmp_path / "0.h5", tmp_path / "1.h5"], tmp_path / "a.zarr", to="zarr")
    packed = values_of(tmp_path / "a.zarr", "zarr")
    assert packed["x"].shape == (26, 6, 9)
    assert packed["time"].tolist() == [*range(13), *range(366, 379)]
    with pytest.raises(hr.UsageError, match=r"'time' has 'days since 1980-01-01' in .*0.h5 and 'K' in .*2.h5"):
        hr.pack([tmp_path / "0.h5", tmp_path / "2.h5"], tmp_path / "b.zarr", to="zarr")
    hr.pack([tmp_path / "0.h5", tmp_path / "2.h5"], tmp_path / "b.zarr", to="zarr", drop=["time"])


def test_a_full_disk_is_said_and_leaves_no_half_file(tmp_path: pathlib.Path) -> None:
    """A limit on the size of files stands for the disk: the kernel fails the write alike."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = np.random.default_rng(0).random((64, 128, 128))
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "from headrace.cli import main; sys.argv[0] = 'headrace'; main()"
    )
    for to, name in TARGETS.items():
        command = [sys.executable, "-c", code, "pack", "a.h5", name, "--to", to, "--codec", "none"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and "error:" in done.stderr, (to, done.stderr)
        with pytest.raises(hr.Error):
            hr.open(tmp_path / name)


def test_formats_list_files_of_arrays() -> None:
    rows = {f["name"]: f for f in hr.formats() if f["holds"] == "arrays"}
    assert {n for n, f in rows.items() if f["write"]} == {"hdf5", "zarr", "npy"} and rows["netcdf"]["read"]
