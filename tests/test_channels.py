# SPDX-License-Identifier: Apache-2.0
"""Variables of several stored types as channels, and every n-th step: both as xarray has them."""

from __future__ import annotations

import headrace as hr
import numpy as np
import pytest

pytest.importorskip("hdf5plugin")  # before netCDF4, or its Blosc cannot write for the tests that follow
xr = pytest.importorskip("xarray")

STEPS, Y, X = 30, 4, 6
RNG = np.random.default_rng(3)
TYPES = ["f4", "f8", "f2", "i2", "u1", "i4", "i8", "u8"]


def channel(dtype, n):
    if dtype.startswith("f"):
        return (RNG.random((STEPS, Y, X)) + n).astype(dtype)
    return RNG.integers(0, 100, (STEPS, Y, X)).astype(dtype)


def write(path, names, packed=(), engine="netcdf4", fill=None):
    """One variable for each type; those of ``packed`` as i16 with a scale, as ERA5 has them."""
    days = {"units": "days since 2000-01-01"}
    ds = xr.Dataset(coords={"time": ("time", np.arange(STEPS), days), "y": np.arange(Y) * 10.0, "x": np.arange(X) * 5})
    encoding = {}
    for n, name in enumerate(names):
        ds[name] = (("time", "y", "x"), channel(name.partition("_")[0] if name not in packed else "f4", n))
        if name in packed:
            encoding[name] = {"dtype": "i2", "scale_factor": 0.001, "add_offset": 1.5, "_FillValue": -32768}
        elif fill:
            ds[name].attrs["_FillValue"] = np.array(fill, ds[name].dtype)[()]
    if str(path).endswith(".zarr"):
        ds.to_zarr(path, encoding=encoding)
    else:
        ds.to_netcdf(path, engine=engine, encoding=encoding)
    return path


def opened(path):
    """As xarray decodes it, without times."""
    return (
        xr.open_dataset(path, decode_times=False) if not str(path).endswith(".zarr") else xr.open_zarr(path, decode_times=False)
    )


def stacked(path, names, **options):
    return hr.open(path, {"x": hr.array(names, **options)})


@pytest.mark.parametrize("kind", ["nc", "zarr"])
@pytest.mark.parametrize(
    "names", [["f4", "i2_packed"], ["f4", "f8"], ["i2_packed", "f8", "u1", "f4"], ["u1", "i4"], ["f2", "f4", "i8"]]
)
def test_channels_of_other_types_are_those_of_xarray(tmp_path, names, kind):
    if kind == "nc" and "f2" in names:
        pytest.skip("NetCDF has no such type")
    path = write(tmp_path / f"c.{kind}", names, packed=[n for n in names if n.endswith("_packed")])
    ds = stacked(path, names, window=3)
    with opened(path) as theirs:
        want = theirs[names].to_array().transpose("time", "variable", "y", "x").values
    for i in (0, 7, len(ds) - 1):
        got = ds[i]["x"]
        assert got.shape == (len(names), 3, Y, X)
        assert np.allclose(got, want[i : i + 3].swapaxes(0, 1), rtol=1e-6, atol=0)
    wide = {"f8", "i4", "i8", "u8"} & set(names)
    assert ds[0]["x"].dtype == ("f8" if wide else "f4")


@pytest.mark.parametrize("a", TYPES)
@pytest.mark.parametrize("b", TYPES)
def test_any_two_types_give_the_float_that_holds_both(tmp_path, a, b):
    path = write(tmp_path / "c.zarr", [a, f"{b}_2"])
    ds = stacked(path, [a, f"{b}_2"])
    got = ds[5]["x"]
    with opened(path) as theirs:
        want = [theirs[a].values[5], theirs[f"{b}_2"].values[5]]
    assert np.array_equal(got[0], want[0])
    assert np.array_equal(got[1], want[1])
    common = np.result_type(a, b) if a == b else np.result_type(a, b, "f4")
    assert got.dtype == common


def test_a_declared_type_is_what_it_becomes(tmp_path):
    path = write(tmp_path / "c.nc", ["f4", "f8", "i2_packed"], packed=["i2_packed"])
    names = ["f4", "f8", "i2_packed"]
    assert stacked(path, names)[0]["x"].dtype == "f8"
    got = stacked(path, names, dtype="f32")[0]["x"]
    assert got.dtype == "f4"
    with opened(path) as theirs:
        assert np.allclose(got, theirs[names].to_array().values[:, 0], rtol=1e-6)
    with hr.Loader(path, 4, {"x": hr.array(names, dtype="f32", window=2)}, output="numpy") as loader:
        assert next(iter(loader))["x"].dtype == "f4"


def test_an_integers_fill_value_is_nan_beside_floats(tmp_path):
    path = write(tmp_path / "c.nc", ["f4", "i4"], fill=7)
    with opened(path) as theirs:
        want = theirs[["f4", "i4"]].to_array().values
    assert np.isnan(want).any()
    ds = stacked(path, ["f4", "i4"])
    got = np.stack([s["x"] for s in ds], 1)
    assert np.array_equal(got, want, equal_nan=True)


def test_files_one_after_the_other_and_chunks_in_zlib(tmp_path):
    h5py = pytest.importorskip("h5py")
    want = {"u": [], "v": []}
    for n in range(3):
        with h5py.File(tmp_path / f"{n}.h5", "w") as f:
            u, v = RNG.random((5, 3), "f4"), RNG.integers(-9, 9, (5, 3)).astype(">i2")
            f.create_dataset("u", data=u, chunks=(2, 3), compression="gzip")
            f.create_dataset("v", data=v, chunks=(3, 2), compression="gzip", shuffle=True)
            want["u"].append(u)
            want["v"].append(v)
    whole = np.stack([np.concatenate(want["u"]), np.concatenate(want["v"]).astype("f4")])
    ds = stacked(str(tmp_path / "*.h5"), ["u", "v"], window=4)
    for i in range(len(ds)):
        assert np.array_equal(ds[i]["x"], whole[:, i : i + 4])


def test_integers_that_f64_does_not_hold_are_refused(tmp_path):
    np.savez(tmp_path / "c.npz", a=np.array([[1.5, 2.5]]), b=np.array([[3, 2**53 + 1]]))
    ds = hr.open(tmp_path / "c.npz", {"x": hr.array(["a", "b"], along="file")})
    with pytest.raises(hr.UsageError, match=r"'b' holds 9007199254740993, which f64 does not hold exactly"):
        ds[0]


def test_texts_are_no_channels(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "c.h5", "w") as f:
        f["a"] = np.zeros((3, 2), "f4")
        f["t"] = np.array([[b"ab", b"c"]] * 3)
    with pytest.raises(hr.Error):
        stacked(tmp_path / "c.h5", ["a", "t"])


# -- every n-th step ----------------------------------------------------------------------------

SELECTIONS = [
    {"x": slice(None, None, 2)},
    {"x": slice(5, 20, 2)},
    {"y": slice(None, None, -1)},
    {"y": slice(30, 10, -1), "x": slice(0, 25, 3)},
]


@pytest.mark.parametrize("sel", SELECTIONS, ids=str)
def test_every_nth_index_of_an_axis_is_xarrays(tmp_path, sel):
    path = write(tmp_path / "c.nc", ["f4"])
    ds = stacked(path, "f4", sel=sel)
    with opened(path) as theirs:
        want = theirs["f4"].sel(sel).values
    assert np.array_equal(np.stack([s["x"] for s in ds]), want)


@pytest.mark.parametrize("step", [1, 2, 7])
@pytest.mark.parametrize("span", [(None, None), ("2000-01-05", "2000-01-25"), (4, 20)])
@pytest.mark.parametrize("window", [None, 3])
def test_every_nth_step_is_xarrays(tmp_path, step, span, window):
    """The data set is ``ds.sel(time=slice(first, last, step))``: windows and strides count its steps."""
    path = write(tmp_path / "c.nc", ["f4"])
    sel = {"time": slice(*span, step)}
    decoded = span[0] is None or isinstance(span[0], str)
    with xr.open_dataset(path, decode_times=decoded) as theirs:
        want = theirs["f4"].sel(sel).values
    options = {} if window is None else {"window": window, "horizon": 1, "stride": 2}
    if window and len(want) < window + 1:
        with pytest.raises(hr.UsageError):
            stacked(path, "f4", sel=sel, **options)
        return
    ds = stacked(path, "f4", sel=sel, **options)
    if window is None:
        assert np.array_equal(np.stack([s["x"] for s in ds]), want)
        return
    starts = range(0, len(want) - window, 2)
    assert len(ds) == len(starts)
    for i, start in enumerate(starts):
        assert np.array_equal(ds[i]["x"], want[start : start + window])
        assert np.array_equal(ds[i]["x_target"], want[start + window : start + window + 1])


def test_an_axis_without_a_coordinate_has_steps_too(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(60).reshape(20, 3))
    ds = hr.open(tmp_path / "a.npy", {"x": hr.array("data", sel={"axis0": slice(None, None, 6), "axis1": slice(None, None, 2)})})
    assert np.array_equal(np.stack([s["x"] for s in ds]), np.arange(60).reshape(20, 3)[::6, ::2])


@pytest.mark.parametrize(("step", "words"), [(0, "whole number"), (1.5, "whole number"), (-1, "from its first step on")])
def test_steps_that_are_none_are_said(tmp_path, step, words):
    path = write(tmp_path / "c.nc", ["f4"])
    with pytest.raises(hr.UsageError, match=words):
        stacked(path, "f4", sel={"time": slice(None, None, step)})


# -- files of other types, one after the other ---------------------------------------------------


def years(folder, kinds, rows=6):
    """A file for each kind: "packed" is i16 with a scale, as the Climate Data Store's files were before they became f32."""
    want = []
    for n, kind in enumerate(kinds):
        time = ("time", np.arange(rows) + n * rows, {"units": "days since 2000-01-01"})
        values = (RNG.random((rows, Y, X)) * 50).astype("f4" if kind == "packed" else kind)
        ds = xr.Dataset({"t": (("time", "y", "x"), values, {"units": "K"})}, {"time": time})
        encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 20.0, "_FillValue": -32768} if kind == "packed" else {}
        ds.to_netcdf(folder / f"{n}.nc", encoding={"t": {**encoding, "zlib": n % 2 == 0, "chunksizes": (4, Y, 3)}})
        with opened(folder / f"{n}.nc") as theirs:
            want.append(theirs["t"].values)
    return sorted(map(str, folder.glob("*.nc"))), np.concatenate(want)


KINDS = [("packed", "f4"), ("f4", "packed", "f8"), ("i2", "f4"), ("i4", "i2", "packed"), ("u1", "i8")]


@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_files_of_other_types_follow_each_other(tmp_path, kinds):
    files, want = years(tmp_path, kinds)
    ds = stacked(files, "t", window=4, dilation=2)
    wide = {"f8", "i4", "i8"} & set(kinds)
    assert ds[0]["x"].dtype == ("f8" if wide else "f4")
    for i in range(len(ds)):
        assert np.allclose(ds[i]["x"], want[i : i + 8 : 2], rtol=1e-6, atol=0)
    patches = hr.open(files, {"x": hr.array(["t", "t"], window=3, patch=(2, 3), tiled=True)})
    assert np.allclose(patches[6 * 4]["x"][1], want[6:9, :2, :3], rtol=1e-6, atol=0)
    looked = hr.to_xarray(hr.open(files))["t"]
    assert np.allclose(looked.values, want, rtol=1e-6) and looked.dtype == ds[0]["x"].dtype
    assert np.isclose(hr.stats(files, ["t"])["t"]["mean"], want.mean(dtype="f8"), rtol=1e-6)


@pytest.mark.parametrize("to", ["zarr", "hdf5"])
def test_packed_they_are_of_one_type(tmp_path, to):
    files, want = years(tmp_path, ("packed", "f4"))
    out = tmp_path / f"out.{to}"
    hr.pack(files, out, to=to)
    packed = stacked(out, "t")
    assert np.allclose(np.stack([s["x"] for s in packed]), want, rtol=1e-6) and packed[0]["x"].dtype == "f4"


def test_cases_of_other_types(tmp_path):
    for n, dtype in enumerate(["f4", "i2", "f8"]):
        np.savez(tmp_path / f"c{n}.npz", x=(np.arange(6).reshape(2, 3) * 3).astype(dtype))
    ds = hr.open(tmp_path / "c*.npz", {"x": hr.array("x", along="file")})
    for sample in ds:
        assert sample["x"].dtype == "f8" and np.array_equal(sample["x"], np.arange(6).reshape(2, 3) * 3)
