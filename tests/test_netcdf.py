# SPDX-License-Identifier: Apache-2.0
"""Classic NetCDF: every value as netCDF4, scipy and xarray give it; damaged files are errors."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest

with contextlib.suppress(ImportError):
    import hdf5plugin  # noqa: F401  before netCDF4, whose own filters take its place otherwise

netcdf = pytest.importorskip("netCDF4")
scipy_io = pytest.importorskip("scipy.io")

KINDS = {"NETCDF3_CLASSIC": 1, "NETCDF3_64BIT_OFFSET": 2, "NETCDF3_64BIT_DATA": 5}
TYPES = {1: ["i1", "i2", "i4", "f4", "f8"], 5: ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]}
TYPES[2] = TYPES[1]


def cube(dtype, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def same(got, want):
    want = np.asarray(want)
    want = want.astype(want.dtype.newbyteorder("="))
    got = np.asarray(got)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


def write(path, kind, variables, records=7):
    """``variables``: {name: (dtype, dims)} over (time: records, y: 5, x: 3); returns the values."""
    want = {}
    with netcdf.Dataset(path, "w", format=kind) as f:
        f.set_fill_off()
        f.title = "made for a test"
        for name, n in (("time", None), ("y", 5), ("x", 3)):
            f.createDimension(name, n)
        for i, (name, (dtype, dims)) in enumerate(variables.items()):
            v = f.createVariable(name, dtype, dims)
            v.units, v.levels = "K", np.array([1, 2], "i2")
            shape = tuple({"time": records, "y": 5, "x": 3}[d] for d in dims)
            want[name] = cube(dtype, shape, i)
            v[...] = want[name]
    return want


def check_all(path, want, along="time"):
    """Every variable with the axis, by windows; the others as they are in every sample."""
    for name, data in want.items():
        if data.shape[:1] == (7,):
            ds = hr.open(path, {"x": hr.array(name, along=along, window=3, horizon=2)})
            assert len(ds) == 3
            for i in range(3):
                sample = ds[i]
                same(sample["x"], data[i : i + 3])
                same(sample["x_target"], data[i + 3 : i + 5])
        else:
            other = next(n for n, d in want.items() if d.shape[:1] == (7,))
            ds = hr.open(path, {"t": hr.array(other, along=along), "x": hr.array(name)})
            same(np.asarray(ds[4]["x"], data.dtype) if data.ndim == 0 else ds[4]["x"], data)  # a lone number is Python's


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_netcdf4(tmp_path, kind):
    path = tmp_path / "a.nc"
    dims = [("time", "y", "x"), ("time",), ("time", "x"), ("y", "x"), ("x",), ()]
    types = TYPES[KINDS[kind]]
    variables = {f"{t}_{len(d)}{d[0] if d else ''}": (t, d) for t, d in itertools.product(types, dims)}
    want = write(path, kind, variables)
    assert path.read_bytes()[:4] == b"CDF" + bytes([KINDS[kind]])
    with netcdf.Dataset(path) as f:
        f.set_auto_maskandscale(False)
        for name in want:
            same(f[name][...], want[name])
    check_all(path, want)
    assert hr.open(path).format == "netcdf"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["i1", "i2", "f8"])
@pytest.mark.parametrize("dims", [("time", "x"), ("time",), ("time", "y", "x")], ids=len)
def test_a_lone_record_variable_has_no_filling(tmp_path, kind, dtype, dims):
    path = tmp_path / "a.nc"
    want = write(path, kind, {"v": (dtype, dims), "y": ("f4", ("y",))})
    check_all(path, want)


@pytest.mark.parametrize("version", [1, 2])
def test_values_are_those_of_scipy(tmp_path, version):
    path = tmp_path / "a.nc"
    want = {"a": cube("i2", (7, 3)), "b": cube("f4", (7, 5, 3)), "c": cube("i1", (7,)), "z": cube("f8", (5,))}
    with scipy_io.netcdf_file(path, "w", version=version) as f:
        for name, n in (("time", None), ("y", 5), ("x", 3)):
            f.createDimension(name, n)
        for name, dims in (("a", ("time", "x")), ("b", ("time", "y", "x")), ("c", ("time",)), ("z", ("y",))):
            f.createVariable(name, want[name].dtype, dims)[:] = want[name]
    with scipy_io.netcdf_file(path, "r", mmap=False) as f:
        for name in want:
            assert np.array_equal(f.variables[name][:], want[name])
    check_all(path, want)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_and_missing_numbers_are_those_of_xarray(tmp_path, kind):
    xr = pytest.importorskip("xarray")
    path = tmp_path / "a.nc"
    rng = np.random.default_rng(1)
    with netcdf.Dataset(path, "w", format=kind) as f:
        for name, n in (("time", None), ("level", 3), ("x", 4)):
            f.createDimension(name, n)
        f.createVariable("level", "i4", ("level",))[:] = [500, 700, 850]
        for name, dtype, options in (
            ("packed", "i2", {"scale_factor": 0.5, "add_offset": 100.0, "_FillValue": -999}),
            ("old", "i2", {"scale_factor": np.float32(0.25), "missing_value": np.int16(-999)}),
            ("real", "f4", {"_FillValue": -999.0}),
            ("plain", "f8", {}),
        ):
            v = f.createVariable(name, dtype, ("time", "level", "x"), fill_value=options.pop("_FillValue", None))
            for key, value in options.items():
                v.setncattr(key, value)
            v.set_auto_maskandscale(False)
            data = rng.integers(0, 50, (6, 3, 4)).astype(dtype)
            data[2, 1, 1:3] = -999 if name != "plain" else 7
            v[:] = data
        f.createVariable("names", "S1", ("time", "x"))[:] = np.full((6, 4), b"q", "S1")
    fields = {n: hr.array(n, window=2, sel={"level": [850, 500]}) for n in ("packed", "old", "real", "plain")}
    ds = hr.open(path, fields)
    with xr.open_dataset(path, decode_times=False) as x:
        for name in fields:
            want = x[name].sel(level=[850, 500]).values
            for i in range(5):
                same(ds[i][name], want[i : i + 2].astype(ds[i][name].dtype))
                assert ds[i][name].dtype == ("f8" if name == "plain" else "f4")
            assert np.isnan(x[name].values).any() == (name != "plain")


def test_several_texts_a_sample_are_left_out_by_name(tmp_path, caplog):
    path = tmp_path / "a.nc"
    write(path, "NETCDF3_CLASSIC", {"v": ("i4", ("time", "x")), "names": ("S1", ("time", "y", "x"))})
    assert [n for n, _ in hr.open(path).schema] == ["v"]
    assert "'names' (it holds several texts (char) a sample)" in caplog.text
    with pytest.raises(hr.Unsupported, match="'names' cannot be read: it holds several texts"):
        hr.open(path, {"x": hr.array("names")})


def test_the_bytes_tell_not_the_name(tmp_path):
    h5py = pytest.importorskip("h5py")
    data = cube("i4", (7, 3))
    write(tmp_path / "a.h5", "NETCDF3_CLASSIC", {"v": ("i4", ("time", "x"))})
    with h5py.File(tmp_path / "b.nc", "w") as f:
        f["v"] = data
    shutil.copy(tmp_path / "a.h5", tmp_path / "bare")
    for name, format in (("a.h5", "netcdf"), ("b.nc", "hdf5"), ("bare", "netcdf")):
        ds = hr.open(tmp_path / name)
        assert ds.format == format
        same(ds[3]["v"], data[3])


def test_files_follow_each_other(tmp_path):
    parts = []
    for year, records in ((2000, 3), (2001, 4), (2002, 2)):
        parts.append(
            write(tmp_path / f"c-{year}.nc", "NETCDF3_CLASSIC", {"v": ("i2", ("time", "x")), "w": ("i1", ("time",))}, records)
        )
    for name in ("v", "w"):
        data = np.concatenate([p[name] for p in parts])
        ds = hr.open(tmp_path / "c-{2000..2002}.nc", {"x": hr.array(name, window=5)})
        assert len(ds) == 5
        for i in range(5):
            same(ds[i]["x"], data[i : i + 5])
    with hr.Loader(tmp_path / "c-*.nc", 4, {"v": hr.array("v", window=2)}, seed=3, output="numpy") as loader:
        firsts = np.concatenate([np.array(b["v"])[:, 0] for b in loader])
    assert sorted(map(tuple, firsts)) == sorted(map(tuple, np.concatenate([p["v"] for p in parts])[:8]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_has_as_many_records_as_the_file_holds(tmp_path, kind):
    path = tmp_path / "a.nc"
    want = write(path, kind, {"v": ("i2", ("time", "x")), "w": ("f4", ("time", "y"))})
    data = bytearray(path.read_bytes())
    data[4 : 12 if KINDS[kind] == 5 else 8] = b"\xff" * (8 if KINDS[kind] == 5 else 4)
    path.write_bytes(data)
    check_all(path, want)


def test_long_headers_are_read_to_their_end(tmp_path):
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w", format="NETCDF3_CLASSIC") as f:
        f.history = "x" * 400_001
        f.createDimension("time", 7)
        f.createVariable("v", "i2", ("time",))[:] = np.arange(7)
    same(hr.open(path, {"x": hr.array("v", window=7)})[0]["x"], np.arange(7, dtype="i2"))


def test_no_record_yet_is_said(tmp_path):
    path = tmp_path / "a.nc"
    write(path, "NETCDF3_CLASSIC", {"v": ("i2", ("time", "x")), "w": ("f4", ("y",))}, records=0)
    with pytest.raises(hr.UsageError, match="'time' has only 0"):
        hr.open(path, {"v": hr.array("v")})
    assert hr.open(path, {"w": hr.array("w")})[1]["w"] == cube("f4", (5,), 1)[1]


# -- damage -------------------------------------------------------------------------------------


def looked_at(path):
    """Opens it and reads all; whatever is wrong must be one of our errors."""
    try:
        ds = hr.open(path)
        for i in range(min(len(ds), 8)):
            ds[i]
    except hr.Error as e:
        return e
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_is_an_error_with_its_offset(tmp_path, kind):
    path = tmp_path / "a.nc"
    write(path, kind, {"v": ("i2", ("time", "x")), "w": ("f4", ("y",))})
    data = path.read_bytes()
    last = len(data) - 1  # the filling behind the last record may be missing
    for n in [*range(0, last, 3)]:
        path.write_bytes(data[:n])
        error = looked_at(path)
        assert isinstance(error, hr.DataError), n
        if n >= 4:
            assert str(path) in str(error)
            assert "offset" in str(error)
    (tmp_path / "a.nc").write_bytes(b"CDF\x03" + data[4:])
    assert isinstance(looked_at(path), hr.DataError)


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bytes_never_crash(tmp_path, kind):
    path = tmp_path / "a.nc"
    write(path, kind, {"v": ("i2", ("time", "x")), "w": ("f4", ("y",))})
    data = path.read_bytes()
    rng = random.Random(kind)
    errors = 0
    for _ in range(1500):
        bad = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            bad[rng.randrange(4, len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        path.write_bytes(bad)
        errors += looked_at(path) is not None
    assert errors > 300


@pytest.mark.parametrize(
    ("where", "what", "words"),
    [
        (4, 0x7FFFFFF0, "records of 6 bytes"),
        (12, 0x7FFFFFF0, "the name of a dimension"),
        (8, 0x0B, "tag 0xb where dimensions begin"),
    ],
)
@pytest.mark.unsanitized  # bounds the address space, of which AddressSanitizer takes 20 TB
def test_large_numbers_cost_nothing(tmp_path, where, what, words):
    path = tmp_path / "a.nc"
    write(path, "NETCDF3_CLASSIC", {"v": ("i2", ("time", "x"))})
    data = bytearray(path.read_bytes())
    data[where : where + 4] = what.to_bytes(4, "big")
    path.write_bytes(data)
    code = (
        "import resource, sys, headrace as hr\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "try: hr.open(sys.argv[1])\nexcept hr.DataError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60)
    assert words in done.stdout, done.stderr
    assert "offset" in done.stdout


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_several_missing_values_are_all_missing(tmp_path, kind):
    """As for netCDF4 and xarray."""
    with netcdf.Dataset(tmp_path / "a.nc", "w", format=kind) as f:
        f.createDimension("time", 4)
        for name, dtype, fill, missing in (
            ("two", "i2", -1, np.int16(-2)),
            ("three", "i4", -1, np.array([-2, 4], "i4")),
            ("one", "i2", -1, np.int16(-1)),
            ("nan", "f4", np.nan, np.float32(4)),
            ("real", "f8", -1.0, np.float64(4)),
            ("wide", "f4", np.float32(1e20), np.float64(1e20)),
        ):
            v = f.createVariable(name, dtype, ("time",), fill_value=fill)
            v.missing_value, v.scale_factor = missing, 0.5
            v.set_auto_maskandscale(False)
            v[:] = np.array([1, 1e20 if dtype == "f4" else -1, 4, 4 if dtype == "f4" else -2], dtype)
    ds = hr.open(tmp_path / "a.nc")
    with pytest.importorskip("xarray").open_dataset(tmp_path / "a.nc") as x:
        for name in ("two", "three", "one", "nan", "real", "wide"):
            np.testing.assert_array_equal(np.array([float(s[name]) for s in ds]), x[name].values.astype("f8"), err_msg=name)
        assert np.isnan(x["three"].values).sum() == 3


# -- attributes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_text_attributes_are_read(tmp_path, kind):
    """_Unsigned above all: bytes of 255 are no -1."""
    xr = pytest.importorskip("xarray")
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w", format=kind) as f:
        f.title, f.institution = "Überschrift", "ETH\0\0"
        f.createDimension("time", 4)
        time = f.createVariable("time", "i4", ("time",))
        time.units, time.calendar = "hours since 1999-12-31 12:00", "noleap"
        time[:] = [0, 6, 12, 18]
        for name, dtype, options in (
            ("u", "i1", {"_Unsigned": "true"}),
            ("scaled", "i2", {"_Unsigned": "true", "scale_factor": np.float32(0.01), "add_offset": np.float32(44.64)}),
            ("filled", "i1", {"_Unsigned": "true", "scale_factor": 2.0}),
        ):
            v = f.createVariable(name, dtype, ("time",), fill_value=-1 if name == "filled" else None)
            v.set_auto_maskandscale(False)
            v.setncatts({**options, "units": "K", "long_name": f"{name} of a test"})
            v[:] = np.array([-1, 0, 100, -128], dtype)
    ds = hr.open(path)
    with xr.open_dataset(path) as x:
        for name in ("u", "scaled", "filled"):
            np.testing.assert_allclose([float(s[name]) for s in ds], x[name].values.astype("f8"), rtol=1e-6, err_msg=name)
        assert [int(s["u"]) for s in ds] == [255, 0, 100, 128]
        shown = hr.to_xarray(ds)
        assert shown["u"].attrs["long_name"] == "u of a test"
        assert shown["u"].attrs["units"] == "K"
        assert [str(t) for t in shown["time"].values] == [str(t) for t in x["time"].values]
        for to, name in (("zarr", "p.zarr"), ("hdf5", "p.h5")):
            hr.pack(path, tmp_path / name, to=to)
            with xr.open_dataset(tmp_path / name, engine="zarr" if to == "zarr" else "netcdf4") as packed:
                for v in ("u", "scaled", "filled"):
                    np.testing.assert_allclose(packed[v], x[v], rtol=1e-6)
                    assert packed[v].attrs["long_name"] == f"{v} of a test"
                assert packed.attrs["title"] == "Überschrift"
                assert list(map(str, packed["time"].values)) == list(map(str, x["time"].values))


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_those_of_netcdf4(tmp_path, kind):
    path = tmp_path / "a.nc"
    names = ["Zürich", "Bern", "", "La Chaux-de-Fonds", "x"]
    with netcdf.Dataset(path, "w", format=kind) as f:
        f.createDimension("station", 5)
        f.createDimension("letters", 20)
        f.createVariable("n", "i4", ("station",))[:] = np.arange(5)
        raw = np.array([n.encode().ljust(20, b"\0") for n in names], "S20")
        f.createVariable("name", "S1", ("station", "letters"))[:] = raw.view("S1").reshape(5, 20)
    ds = hr.open(path)
    assert [s["name"] for s in ds] == names
    assert [s["n"] for s in ds] == list(range(5))
