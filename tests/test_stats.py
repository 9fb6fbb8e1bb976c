# SPDX-License-Identifier: Apache-2.0
"""hr.stats and ``headrace stats``: NumPy's numbers, the same bits on any number of threads; normalising by them."""

from __future__ import annotations

import json
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")

SHAPE = (23, 3, 7, 10)
DIMS = ("time", "level", "lat", "lon")


def numbers(dtype="f4", seed=0, shape=SHAPE, nans=True):
    rng = np.random.default_rng(seed)
    data = rng.normal(280, 15, shape)
    if np.dtype(dtype).kind != "f":
        return np.clip(data / 3, 0, 120).astype(dtype)
    data = data.astype(dtype)
    if nans:
        data[rng.random(shape) < 0.1] = np.nan
    return data


@pytest.fixture
def store(tmp_path):
    url = str(tmp_path / "c.zarr")
    group = zarr.open_group(url, mode="w")
    want = {"t": numbers(), "z": numbers("f8", 1) * 1e6, "mask": numbers("u1", 2, SHAPE[2:])}
    group.create_array("t", data=want["t"], chunks=(5, 2, 4, 6), dimension_names=DIMS)
    group.create_array("z", data=want["z"], chunks=(4, 3, 7, 10), dimension_names=DIMS)
    group.create_array("mask", data=want["mask"], dimension_names=DIMS[2:])
    group.create_array("level", data=np.array([500, 700, 850]), dimension_names=("level",))
    return url, want


def check(entry, data, axes=None):
    data = np.asarray(data, "f8")
    for name, want in (
        ("count", (~np.isnan(data)).sum(axes)),
        ("nan", np.isnan(data).sum(axes)),
        ("mean", np.nanmean(data, axes)),
        ("std", np.nanstd(data, axes)),
        ("min", np.nanmin(data, axes)),
        ("max", np.nanmax(data, axes)),
    ):
        assert np.allclose(entry[name], want, rtol=1e-12, atol=0), name


def test_numbers_are_those_of_numpy(store):
    url, want = store
    got = hr.stats(url)
    assert sorted(got) == ["mask", "t", "z"]  # not the coordinate
    for name, data in want.items():
        check(got[name], data)


@pytest.mark.parametrize(("per", "axes"), [("time", (1, 2, 3)), ("level", (0, 2, 3)), ("lat", (0, 1, 3)), ("lon", (0, 1, 2))])
def test_each_index_of_an_axis(store, per, axes):
    url, want = store
    got = hr.stats(url, ["t", "z"], per=per)
    for name in ("t", "z"):
        check(got[name], want[name], axes)
        assert got[name]["per"] == per
        assert got[name]["at"] == ([500, 700, 850] if per == "level" else list(range(SHAPE[DIMS.index(per)])))


def test_variables_without_the_axis_have_one_number(store):
    url, want = store
    got = hr.stats(url, ["t", "mask"], per="level")
    assert "per" not in got["mask"]
    check(got["mask"], want["mask"])


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("order", ["<C", ">C", "<F"])
def test_every_type_and_order(tmp_path, dtype, order):
    data = numbers(dtype, 3)
    np.save(tmp_path / "a.npy", np.asarray(data.astype(np.dtype(dtype).newbyteorder(order[0])), order=order[1]))
    check(hr.stats(tmp_path / "a.npy")["data"], data)
    check(hr.stats(tmp_path / "a.npy", per="axis1")["data"], data, (0, 2, 3))


@pytest.mark.parametrize("fortran", [False, True])
def test_large_plain_arrays_are_taken_in_pieces(tmp_path, fortran):
    data = numbers("f8", 4, (3, 401, 1003))  # 9.6 MB in one chunk
    np.save(tmp_path / "a.npy", np.asarray(data, order="F" if fortran else "C"))
    seen = []
    got = hr.stats(tmp_path / "a.npy", per="axis0", progress=lambda done, total: seen.append((done, total)))
    check(got["data"], data, (1, 2))
    assert seen[-1][0] == seen[-1][1]


def test_the_same_bits_on_any_number_of_threads(store):
    url, _ = store
    for per in (None, "level"):
        all_of_them = {json.dumps(hr.stats(url, per=per, threads=n)) for n in (1, 2, 3, 7)}
        assert len(all_of_them) == 1


def test_far_from_zero_nothing_is_lost(tmp_path):
    data = np.random.default_rng(0).normal(1e9, 1e-3, 100_000)
    np.save(tmp_path / "a.npy", data)
    got = hr.stats(tmp_path / "a.npy")["data"]
    assert np.isclose(got["std"], (data - 1e9).std(), rtol=1e-5)  # sums of squares would have nothing left
    assert abs(got["mean"] - 1e9) < 1e-4


def test_missing_chunks_hold_the_fill_value(tmp_path):
    url = str(tmp_path / "a.zarr")
    v = zarr.create_array(url, shape=(10, 6), chunks=(3, 4), dtype="f4", fill_value=2.5)
    v[4, 5] = 10
    check(hr.stats(url)["data"], v[:])


def test_packed_numbers_and_files_along_time(tmp_path):
    netcdf = pytest.importorskip("netCDF4")
    parts = []
    for year, kind in ((0, "NETCDF4"), (1, "NETCDF4"), (2, "NETCDF4")):
        with netcdf.Dataset(tmp_path / f"c-{year}.nc", "w", format=kind) as f:
            for name, n in (("time", None), ("level", 3), ("x", 50)):
                f.createDimension(name, n)
            v = f.createVariable("t", "i2", ("time", "level", "x"), fill_value=-999)
            v.scale_factor, v.add_offset = 0.01, 273.15
            v.set_auto_maskandscale(False)
            packed = np.random.default_rng(year).integers(0, 3000, (4 + year, 3, 50)).astype("i2")
            packed[1, 1, ::7] = -999
            v[:] = packed
            parts.append(np.where(packed == -999, np.nan, packed * 0.01 + 273.15).astype("f4"))
    url = str(tmp_path / "c-{0..2}.nc")
    data = np.concatenate(parts)
    check(hr.stats(url)["t"], data)
    check(hr.stats(url, per="level")["t"], data, (0, 2))
    check(hr.stats(url, per="time")["t"], data, (1, 2))
    assert len(hr.stats(url, per="time")["t"]["mean"]) == 15


# -- normalising --------------------------------------------------------------------------------


def normal(data, mean, std):
    return (data.astype("f4") - np.asarray(mean, "f4")) / np.asarray(std, "f4")


def test_fields_are_normalised_by_their_variables(store, tmp_path):
    url, want = store
    found = hr.stats(url)
    found.save(tmp_path / "s.json")
    for given in (found, dict(found), tmp_path / "s.json", str(tmp_path / "s.json")):
        ds = hr.open(url, {"t": hr.array("t", window=2, horizon=1).normalize(given), "m": hr.array("mask").normalize(given)})
        s = ds[4]
        assert np.array_equal(s["t"], normal(want["t"][4:6], found["t"]["mean"], found["t"]["std"]), equal_nan=True)
        assert np.array_equal(s["t_target"], normal(want["t"][6:7], found["t"]["mean"], found["t"]["std"]), equal_nan=True)
        assert np.array_equal(s["m"], normal(want["mask"], found["mask"]["mean"], found["mask"]["std"]))
    with hr.Loader(url, 4, {"t": hr.array("t").normalize(found).cast("f64")}, output="numpy") as loader:
        got = np.concatenate([b["t"] for b in loader])
    assert abs(np.nanmean(got)) < 0.1
    assert abs(np.nanstd(got) - 1) < 0.1


def test_levels_and_stacked_variables_have_their_own(tmp_path):
    url = str(tmp_path / "c.zarr")
    group = zarr.open_group(url, mode="w")
    data = {name: numbers("f4", i) * (i + 1) for i, name in enumerate("abs")}
    for name in "ab":
        group.create_array(name, data=data[name], chunks=(5, 2, 4, 6), dimension_names=DIMS)
    group.create_array("level", data=np.array([500, 700, 850]), dimension_names=("level",))
    apart = hr.stats(url, per="level")
    whole = hr.stats(url)
    mean = {k: np.reshape(apart[k]["mean"], (3, 1, 1)) for k in "ab"}
    std = {k: np.reshape(apart[k]["std"], (3, 1, 1)) for k in "ab"}
    want = np.stack([normal(data[k][3:7], mean[k], std[k]) for k in "ab"])

    def got(stats, **options):
        return hr.open(url, {"x": hr.array(["a", "b"], window=4, **options).normalize(stats)})[3]["x"]

    assert np.array_equal(got(apart), want, equal_nan=True)
    assert np.array_equal(got(apart, sel={"level": [850, 500]}), want[:, :, [2, 0]], equal_nan=True)
    mixed = {"a": apart["a"], "b": whole["b"]}
    want[1] = normal(data["b"][3:7], whole["b"]["mean"], whole["b"]["std"])
    assert np.array_equal(got(mixed), want, equal_nan=True)
    want[0] = normal(data["a"][3:7], whole["a"]["mean"], whole["a"]["std"])
    assert np.array_equal(got(whole), want, equal_nan=True)
    one = hr.open(url, {"x": hr.array("a").normalize(apart)})[5]["x"]
    assert np.array_equal(one, normal(data["a"][5], mean["a"], std["a"]), equal_nan=True)


def test_what_cannot_divide_is_said(store, tmp_path):
    url, _ = store
    found = hr.stats(url, per="level")
    for name, value, words in (
        ("std", [1.0, 0.0, 1.0], "standard deviation of 't' at level 700 is 0"),
        ("mean", [1.0, 0.0, None], "'t' at level 850 are no numbers: all values are NaN"),
        ("mean", [1.0, 0.0], "statistics of 2 of 'level', which has 3"),
    ):
        with pytest.raises(hr.UsageError, match=words):
            hr.open(url, {"t": hr.array("t").normalize({"t": {**found["t"], name: value}})})
    with pytest.raises(hr.UsageError, match="field 'x': there are no statistics of 'level', but of 'mask', 't', 'z'"):
        hr.open(url, {"x": hr.array("level").normalize(found)})
    with pytest.raises(hr.UsageError, match="patches are cut from that axis"):
        hr.open(url, {"t": hr.array("t", patch=(2, 2)).normalize(hr.stats(url, "t", per="lat"))})
    with pytest.raises(hr.UsageError, match=r"normalize takes mean and std, or what hr\.stats gives"):
        hr.array("t").normalize(3.0)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(hr.DataError, match="no JSON of statistics"):
        hr.array("t").normalize(tmp_path / "bad.json")
    with pytest.raises(OSError, match=r"none\.json"):
        hr.array("t").normalize(tmp_path / "none.json")


def test_all_nan_and_constant_arrays(tmp_path):
    np.save(tmp_path / "nan.npy", np.full((4, 5), np.nan, "f4"))
    np.save(tmp_path / "one.npy", np.full((4, 5), 3, "f4"))
    found = hr.stats(tmp_path / "nan.npy")
    assert found["data"] == {"count": 0, "nan": 20, "mean": None, "std": None, "min": None, "max": None}
    with pytest.raises(hr.UsageError, match="'data' are no numbers: all values are NaN"):
        hr.open(tmp_path / "nan.npy", {"x": hr.array("data").normalize(found)})
    found = hr.stats(tmp_path / "one.npy")
    with pytest.raises(hr.UsageError, match="standard deviation of 'data' is 0"):
        hr.open(tmp_path / "one.npy", {"x": hr.array("data").normalize(found)})


def test_bad_calls(store, tmp_path):
    url, _ = store
    for call, words in (
        (lambda: hr.stats(url, ["q"]), "no variable 'q'"),
        (lambda: hr.stats(url, per="height"), "no variable has the axis 'height'"),
        (lambda: hr.stats(url, []), "list of names"),
        (lambda: hr.stats(url, threads=-1), "threads"),
    ):
        with pytest.raises(hr.UsageError, match=words):
            call()
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(hr.Unsupported, match="files of arrays"):
        hr.stats(tmp_path / "d/x.csv")
    with pytest.raises(hr.UsageError, match="sample= is for pictures"):
        hr.stats(url, sample=3)


def test_damaged_chunks_name_file_and_offset(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        v = f.create_dataset("v", data=numbers(), chunks=(2, 3, 7, 10), compression="gzip", fletcher32=True)
        place = v.id.get_chunk_info(4)
    data = bytearray(url.read_bytes())
    data[place.byte_offset + 9] ^= 0x55
    url.write_bytes(data)
    for threads in (1, 4):
        with pytest.raises(hr.DataError, match=r"'v': .*checksum") as e:
            hr.stats(url, threads=threads)
        assert e.value.offset == place.byte_offset
        assert e.value.file.endswith("a.h5")


def test_interrupting_ends_it(store):
    url, _ = store

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hr.stats(url, progress=stop)


# -- the command --------------------------------------------------------------------------------


def command(*args):
    return subprocess.run(
        [sys.executable, "-m", "headrace", "stats", *map(str, args)], capture_output=True, text=True, timeout=60
    )


def test_the_command(store, tmp_path):
    url, want = store
    done = command(url, "--fields", "t,mask", "--per", "level", "--to", tmp_path / "s.json")
    assert done.returncode == 0, done.stderr
    assert "850" in done.stdout
    assert f"{np.nanmean(want['t'][:, 2].astype('f8')):.6g}" in done.stdout
    found = json.loads((tmp_path / "s.json").read_text())
    assert found == hr.stats(url, ["t", "mask"], per="level")
    assert json.loads(command(url, "--json").stdout) == hr.stats(url)
    done = command(url, "--per", "height")
    assert done.returncode == 2
    assert "height" in done.stderr
