# SPDX-License-Identifier: Apache-2.0
"""xarray Datasets that lie in files are read by headrace; data sets are looked at through xarray."""

from __future__ import annotations

import pickle
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest

pytest.importorskip("hdf5plugin")  # before netCDF4, whose own filters would be in its way
xarray = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")
pytest.importorskip("h5netcdf")
pytest.importorskip("dask")

LAT, LON, LEVEL = np.linspace(-60, 60, 6), np.arange(8) * 45.0, np.array([500, 700, 850])


def cube(first=0, steps=10):
    rng = np.random.default_rng(first)
    shape = (steps, 3, 6, 8)
    t = rng.integers(-100, 100, shape) * 0.25 + 10
    t[0, 0, 0, :2] = np.nan
    dims = ("time", "level", "lat", "lon")
    time = np.datetime64("2000-01-01", "ns") + np.arange(first, first + steps) * np.timedelta64(6, "h")
    return xarray.Dataset(
        {
            "t": (dims, t, {"units": "K"}),
            "u": (dims, rng.random(shape).astype("f4")),
            "mask": (("lat", "lon"), np.eye(6, 8, dtype="i2")),
        },
        {"time": time, "level": LEVEL, "lat": LAT, "lon": LON},
    )


MINIMAL = {"data_vars": "minimal", "coords": "minimal", "compat": "override"}
PACKED = {"t": {"dtype": "i2", "scale_factor": 0.25, "add_offset": 10.0, "_FillValue": -999}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("xarray")
    for n in range(2):
        encoding = {**PACKED, "u": {"zlib": True, "chunksizes": (4, 1, 6, 8)}}
        cube(10 * n).to_netcdf(folder / f"part-{n}.nc", engine="netcdf4", encoding=encoding)
    cube().to_zarr(folder / "two.zarr", zarr_format=2, encoding=PACKED, consolidated=False)
    cube().to_zarr(folder / "three.zarr", zarr_format=3, encoding=PACKED, consolidated=False)
    cube().to_netcdf(folder / "classic.nc", engine="scipy", format="NETCDF3_64BIT", encoding=PACKED)
    cube().to_netcdf(folder / "grouped.nc", engine="netcdf4", group="a/b")
    return folder


def opened(folder, how):
    first = folder / "part-0.nc"
    return {
        "netcdf4": lambda: xarray.open_dataset(first, engine="netcdf4"),
        "h5netcdf": lambda: xarray.open_dataset(first, engine="h5netcdf"),
        "scipy": lambda: xarray.open_dataset(folder / "classic.nc", engine="scipy"),
        "group": lambda: xarray.open_dataset(folder / "grouped.nc", group="a/b"),
        "dask": lambda: xarray.open_dataset(first, chunks={"time": 3}),
        "raw": lambda: xarray.open_dataset(first, mask_and_scale=False),
        "mfdataset": lambda: xarray.open_mfdataset(str(folder / "part-*.nc"), **MINIMAL),
        "mfdataset chunks": lambda: xarray.open_mfdataset(str(folder / "part-*.nc"), chunks={"time": 4, "lat": 2})[["u", "t"]],
        "zarr 2": lambda: xarray.open_zarr(folder / "two.zarr", consolidated=False),
        "zarr 3": lambda: xarray.open_zarr(folder / "three.zarr", consolidated=False, chunks=None),
        "two names": lambda: xarray.open_dataset(first)[["t", "u"]],
        "renamed": lambda: xarray.open_dataset(first).rename({"t": "temperature", "lat": "y"}),
        "one variable": lambda: xarray.open_dataset(first)["t"],
        "slice": lambda: xarray.open_dataset(first).isel(time=slice(2, 8)),
        "sel": lambda: xarray.open_dataset(first).sel(
            time=slice("2000-01-01T06", "2000-01-02"), level=[850, 500], lat=slice(-40, 40)
        ),
        "step": lambda: xarray.open_dataset(first).isel(lon=slice(1, None, 3), lat=slice(None, None, -1)),
    }[how]()


WAYS = ["netcdf4", "h5netcdf", "scipy", "group", "dask", "raw", "mfdataset", "mfdataset chunks", "zarr 2", "zarr 3", "two names",
        "renamed", "one variable", "slice", "sel", "step"]  # fmt: skip


def close(got, want):
    np.testing.assert_allclose(np.asarray(got, "f8"), np.asarray(want, "f8"), rtol=1e-6)


@pytest.mark.parametrize("how", WAYS)
def test_an_xarray_dataset_is_read_from_its_files(folder, how):
    with opened(folder, how) as ds:
        whole = ds.to_dataset() if isinstance(ds, xarray.DataArray) else ds
        moving = {n: v.values for n, v in whole.load().copy().items() if "time" in v.dims}
    with opened(folder, how) as ds:
        data = hr.open(ds)
        assert {n for n, _ in data.schema} == set(moving)
        steps = len(next(iter(moving.values())))
        assert len(data) == steps
        for i in (0, 1, steps // 2, steps - 1):
            for name, values in moving.items():
                close(data[i][name], values[i])
        name = "temperature" if how == "renamed" else "t"
        with hr.Loader(ds, 2, {"x": hr.array(name, window=3, horizon=1)}, shuffle=False, tail="keep", output="numpy") as loader:
            got = [np.array(b["x"]) for b in loader], [np.array(b["x_target"]) for b in loader.epoch(0)]
        close(np.concatenate(got[0]), np.stack([moving[name][i : i + 3] for i in range(steps - 3)]))
        close(np.concatenate(got[1]), moving[name][3:, None])
        again = pickle.loads(pickle.dumps(data))
        close(again[1][name], moving[name][1])


def test_windows_patches_and_selections_go_by_the_datasets_own_names(folder):
    with opened(folder, "mfdataset") as ds:
        want = ds.t.values
        fields = {
            "x": hr.array("t", along="time", window=4, sel={"level": [850, 500]}, patch=(2, 4), tiled=True),
            "m": hr.array("mask"),
        }
        data = hr.open(ds, fields)
        assert len(data) == 17 * 6
        close(data[9 * 6 + 5]["x"], want[9:13, [2, 0], 4:, 4:])  # over the border of the files
        close(data[0]["m"], np.eye(6, 8))
    with opened(folder, "sel") as ds:
        want = opened(folder, "sel").t.values
        close(
            hr.open(ds, {"x": hr.array("t", window=2, sel={"level": 500, "lat": slice(0, 40)})})[1]["x"], want[1:3, 1:][:, :, 2:]
        )
        with pytest.raises(hr.UsageError, match="patch cuts 'lat', but the xarray Dataset holds only a part"):
            hr.open(ds, {"x": hr.array("t", patch=(2, 2))})
        with pytest.raises(hr.UsageError, match=r"needs 8 steps .* 'time' has only 7"):
            hr.open(ds, {"x": hr.array("t", window=8)})


def test_a_loader_goes_on_where_it_stood(folder):
    fields = {"x": hr.array(["t"], window=2, patch=(3, 3))}
    with opened(folder, "zarr 3") as ds, hr.Loader(ds, 2, fields, seed=1, output="numpy") as loader:
        whole = [np.array(b["x"]) for b in loader.epoch(0)]
        it = loader.epoch(1)
        next(it)
        state = loader.state_dict()
        rest = [np.array(b["x"]) for b in it]
    # The same plan whether xarray or a path says where the data lie.
    with hr.Loader(folder / "three.zarr", 2, fields, seed=1, output="numpy") as loader:
        for a, b in zip(whole, loader.epoch(0), strict=True):
            np.testing.assert_array_equal(a, b["x"])
        loader.load_state_dict(state)
        for a, b in zip(rest, loader.epoch(1), strict=True):
            np.testing.assert_array_equal(a, b["x"])


CHANGED = {
    "computed": (lambda ds: ds + 1, "in memory"),
    "dask computes": (lambda ds: ds.chunk({"time": 2}) * 2, "dask computes it"),
    "loaded": (lambda ds: ds.load(), "in memory"),
    "transposed": (lambda ds: ds.transpose("lat", ...), "LazilyVectorizedIndexedArray"),
    "one level": (lambda ds: ds.isel(level=1), r"isel\(level=\[3\]\) keeps the axis"),
    "nothing left": (lambda ds: ds.isel(time=slice(0, 0)), "nothing of it is left along 'time'"),
    "made": (lambda ds: cube(), "in memory"),
}


@pytest.mark.parametrize("change", CHANGED)
def test_what_is_not_in_a_file_is_refused_by_name(folder, change):
    function, words = CHANGED[change]
    with opened(folder, "netcdf4") as ds, pytest.raises(hr.Unsupported, match=f"'t': .*{words}.*open the files by their paths"):
        hr.open(function(ds[["t", "u"]]))


def test_one_variable_in_memory_is_named_and_the_others_are_read(folder):
    with opened(folder, "netcdf4") as ds:
        ds["speed"] = cube().t
        with pytest.raises(hr.Unsupported, match=r"'speed' of the xarray Dataset of .*part-0.nc.* in memory.*ds\[\[\.\.\.\]\]"):
            hr.open(ds)
        with pytest.raises(hr.Unsupported, match="'speed' cannot be read: its values are in memory"):
            hr.open(ds, {"x": hr.array("speed")})
        close(hr.open(ds, {"x": hr.array("u")})[3]["x"], ds.u.values[3])
        with pytest.raises(hr.UsageError, match="no variable 'v'; it has"):
            hr.open(ds, {"x": hr.array("v")})
    with opened(folder, "netcdf4") as ds, pytest.raises(hr.UsageError, match="are not consecutive"):
        hr.open(ds.isel(time=[1, 5, 3]))
    with opened(folder, "mfdataset") as ds, pytest.raises(hr.UsageError, match="follow each other along 'time'"):
        hr.open(ds, {"x": hr.array("t", along="lat")})
    with opened(folder, "mfdataset") as ds, pytest.raises(hr.Unsupported, match=r"dask computes it \(getitem\)"):
        hr.open(ds.isel(time=slice(5, 15)))
    words = r"'mask' .* makes it of all files; .*data_vars='minimal'"
    with xarray.open_mfdataset(str(folder / "part-*.nc"), data_vars="all") as ds, pytest.raises(hr.Unsupported, match=words):
        hr.open(ds)


def test_blends_and_packs_take_them_and_what_wants_a_path_says_so(folder, tmp_path):
    with opened(folder, "zarr 3") as ds:
        with hr.Loader(hr.blend({"a": (ds[["u"]], 0.5), "b": (hr.open(ds[["u"]]), 0.5)}), 4, output="numpy") as loader:
            assert next(iter(loader))["u"].shape == (4, 3, 6, 8)
        hr.pack(hr.open(ds, {"x": hr.array("u", window=2)}), tmp_path / "out", to="npz")
        assert len(hr.open(tmp_path / "out")) == 9
        for call in (hr.build_index, hr.stats, hr.pack):
            with pytest.raises(hr.UsageError, match=r"hr.open\(ds\) or the path of its files is wanted"):
                call(ds, *([] if call is hr.stats else [tmp_path / "to"]))


# -- looking ------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["part-{0..1}.nc", "two.zarr", "three.zarr", "part-0.nc"])
def test_to_xarray_shows_what_is_there(folder, url):
    want = xarray.open_mfdataset(str(folder / url.replace("{0..1}", "*")), engine=None if ".nc" in url else "zarr",
                                 combine="by_coords", **MINIMAL, **({} if ".nc" in url else {"consolidated": False}))  # fmt: skip
    seen = hr.to_xarray(hr.open(str(folder / url)))
    assert set(seen.variables) == set(want.variables)
    assert dict(seen.sizes) == dict(want.sizes)
    assert seen.t.attrs["units"] == "K"
    for name in want.variables:
        assert seen[name].dims == want[name].dims
    np.testing.assert_array_equal(seen.time.values, want.time.values)  # dates
    at = {"time": "2000-01-02T06", "level": [700, 500]}
    close(seen.t.sel(at), want.t.sel(at))
    close(seen.t.sel(lat=10, method="nearest").isel(time=slice(None, None, -2), lon=[3, 1]),
          want.t.sel(lat=10, method="nearest").isel(time=slice(None, None, -2), lon=[3, 1]))  # fmt: skip
    close(seen.u.mean("time"), want.u.mean("time"))
    assert "t" in repr(seen)


def test_looking_reads_only_what_is_looked_at(folder, tmp_path):
    data = (folder / "part-0.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(data)
    seen = hr.to_xarray(hr.open(tmp_path / "cut.nc"))
    repr(seen)
    assert type(seen.u.variable._data).__name__ != "ndarray"
    import h5py

    with h5py.File(tmp_path / "cut.nc") as f:
        place = f["u"].id.get_chunk_info_by_coord((8, 2, 0, 0))
    with open(tmp_path / "cut.nc", "r+b") as f:
        f.seek(place.byte_offset)
        f.write(bytes(place.size))
    close(seen.u.isel(time=slice(0, 8)), cube().u[:8])
    with pytest.raises(hr.DataError):
        seen.u.isel(time=9, level=2).load()


def test_samples_of_any_data_set_can_be_looked_at(folder, tmp_path):
    ds = hr.open(str(folder / "three.zarr"), {"x": hr.array("u", window=2)})[1:8:2]
    seen = hr.to_xarray(ds)
    assert seen.x.dims == ("sample", "x_0", "x_1", "x_2", "x_3")
    close(seen.x[1, :, 0, 2:4], cube().u.values[3:5, 0, 2:4])
    np.savez(tmp_path / "a.npz", x=np.arange(12.0).reshape(4, 3))
    close(hr.to_xarray(hr.open(tmp_path / "a.npz")).x.isel(sample=0), hr.open(tmp_path / "a.npz")[0]["x"])
    with pytest.raises(hr.UsageError, match="takes a data set"):
        hr.to_xarray(str(folder))


def test_xarray_of_xarray(folder):
    with opened(folder, "sel") as ds:
        seen = hr.to_xarray(hr.open(ds))
        close(seen.t, ds.t)
        np.testing.assert_array_equal(seen.level, ds.level)


def test_xarray_is_imported_only_when_used(folder):
    code = ("import sys, headrace as hr; hr.open(sys.argv[1])[0]; assert 'xarray' not in sys.modules\n"
            "sys.modules['xarray'] = None\ntry: hr.to_xarray(hr.open(sys.argv[1]))\n"
            "except hr.Unsupported as e: assert 'pip install xarray' in str(e)\nelse: raise SystemExit(1)")  # fmt: skip
    subprocess.run([sys.executable, "-c", code, str(folder / "three.zarr")], check=True, timeout=60)
