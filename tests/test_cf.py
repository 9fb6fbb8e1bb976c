# SPDX-License-Identifier: Apache-2.0
"""Files along time as CF describes them: units and calendars are decoded, gaps are not crossed, dates select."""

from __future__ import annotations

import datetime
import pathlib
import random
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest
from headrace.arrays import calendars, units

pytest.importorskip("hdf5plugin")  # before netCDF4, or its Blosc cannot write for the tests that follow
netcdf = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")
cftime = pytest.importorskip("cftime")

CALENDARS = ["standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day", "all_leap", "360_day"]


def write(path, steps, unit="days since 2000-01-01", calendar=None, t_units="K", t=None, dtype="f8", kind="NETCDF4", extra=None):
    """t[time, x] = the step's number in tenths, unless given."""
    with netcdf.Dataset(path, "w", format=kind) as f:
        f.createDimension("time", None)
        f.createDimension("x", 3)
        time = f.createVariable("time", dtype, ("time",))
        time.units = unit
        if calendar:
            time.calendar = calendar
        time[:] = steps
        v = f.createVariable("t", "f4", ("time", "x"))
        if t_units is not None:
            v.units = t_units
        v[:] = np.repeat(np.asarray(steps, "f4")[:, None] / 10, 3, 1) if t is None else t
        for name, (dims, data, attributes) in (extra or {}).items():
            for d, n in zip(dims, np.shape(data)):
                if d not in f.dimensions:
                    f.createDimension(d, n)
            f.createVariable(name, "f4", dims)[:] = data
            f[name].setncatts(attributes)


def windows(source, **options):
    ds = hr.open(source, {"t": hr.array("t", **options)})
    return np.stack([s["t"] for s in ds]), ds


# -- the parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("calendar", CALENDARS)
def test_moments_are_those_of_cftime(calendar):
    rng = random.Random(calendar)
    known = 0
    for _ in range(1500):
        year = rng.choice([rng.randint(1, 3000), rng.randint(1570, 1600)])
        text = f"{year:04d}-{rng.randint(1, 12):02d}-{rng.randint(1, 30):02d} {rng.randint(0, 23)}:{rng.randint(0, 59)}:00"
        unit = f"{rng.choice(['hours', 'days', 'seconds', 'minutes'])} since {text}"
        value = rng.randint(-(10**5), 10**5)
        try:
            want = cftime.num2date(value, unit, calendar)
        except ValueError:
            continue
        if want.year < 1:
            continue
        times = calendars.times_of({"units": unit, "calendar": calendar})
        written = f"{want.year:04d}-{want.month:02d}-{want.day:02d} {want.hour}:{want.minute}:{want.second}"
        assert calendars.parse_date(written, times.calendar)[0] == times.at(value), (unit, value)
        known += 1
    assert known > 1000


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("1990", "1990-01-01", "1991-01-01"),
        ("1990-12", "1990-12-01", "1991-01-01"),
        ("2000-02-29", "2000-02-29", "2000-03-01"),
        ("1999-12-31T23", "1999-12-31 23:00:00", "2000-01-01"),
        ("1999-12-31 23:59", "1999-12-31 23:59:00", "2000-01-01"),
        ("2000-01-01T01:00:00+01:00", "2000-01-01", "2000-01-01 00:00:01"),
    ],
)
def test_a_date_is_a_span(text, first, after):
    span = calendars.parse_date(text, "standard")
    assert span == (calendars.parse_date(first, "standard")[0], calendars.parse_date(after, "standard")[0])


@pytest.mark.parametrize("text", ["", "tomorrow", "1990-13", "1999-02-29", "1990-1-1-1", "12:00"])
def test_what_is_no_date(text):
    assert calendars.parse_date(text, "standard") is None


@pytest.mark.parametrize(
    ("of", "to", "value", "want"),
    [
        ("degC", "K", 20, 293.15), ("K", "°C", 0, -273.15), ("hPa", "Pa", 1, 100), ("mbar", "hPa", 3, 3), ("m s-1", "m s**-1", 1, 1),
        ("m/s", "km/h", 1, 3.6), ("g kg-1", "kg kg**-1", 1000, 1), ("%", "1", 50, 0.5), ("mm", "m", 1000, 1), ("degF", "degC", 212, 100),
        ("W m-2", "J m**-2 s**-1", 2, 2), ("mm/day", "m s-1", 86_400_000, 1), ("(0 - 1)", "%", 1, 100), ("foo", "foo", 7, 7),
    ],
)  # fmt: skip
def test_units_of_one_quantity(of, to, value, want):
    scale, offset = units.conversion(of, to)
    assert value * scale + offset == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(
    ("of", "to"), [("kg m-2 s-1", "mm"), ("K", "Pa"), ("foo", "bar"), ("m of water equivalent", "m"), ("m2", "m")]
)
def test_units_of_two_quantities(of, to):
    assert units.conversion(of, to) is None


# -- files along time ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_each_year_may_count_its_days_from_its_own_first(tmp_path, kind):
    for year in (2000, 2001, 2002):
        write(tmp_path / f"{year}.nc", np.arange(5), f"days since {year}-01-01", kind=kind)
    paths = sorted(tmp_path.glob("*.nc"))
    ds = hr.open([str(p) for p in paths], {"time": hr.array("time")})
    got = [s["time"] for s in ds]
    want = np.concatenate([xr.open_dataset(p)["time"].values for p in paths])
    assert np.array_equal(np.array(got), (want - np.datetime64("2000-01-01")) / np.timedelta64(1, "D"))


@pytest.mark.parametrize(("unit", "scale"), [("hours", 24), ("minutes", 1440), ("seconds", 86400)])
def test_other_lengths_of_the_unit(tmp_path, unit, scale):
    write(tmp_path / "a.nc", [0, 1, 2])
    write(tmp_path / "b.nc", np.array([3, 4]) * scale, f"{unit} since 2000-01-01")
    ds = hr.open([tmp_path / "a.nc", tmp_path / "b.nc"], {"time": hr.array("time")})
    assert [s["time"] for s in ds] == [0, 1, 2, 3, 4]


def test_another_calendar_is_refused(tmp_path):
    write(tmp_path / "a.nc", [0, 1], calendar="noleap")
    write(tmp_path / "b.nc", [0, 1], "days since 2001-01-01", calendar="standard")
    with pytest.raises(hr.UsageError, match=r"calendar 'noleap'.*'standard'"):
        hr.open([tmp_path / "a.nc", tmp_path / "b.nc"], {"time": hr.array("time")})
    write(tmp_path / "c.nc", [2, 3], calendar="365_day")
    ds = hr.open([tmp_path / "a.nc", tmp_path / "c.nc"], {"time": hr.array("time")})
    assert [s["time"] for s in ds] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_units_are_brought_to_the_first_files(tmp_path, kind):
    kelvin = 280 + np.arange(18, dtype="f4").reshape(6, 3)
    write(tmp_path / "a.nc", [0, 1, 2], t=kelvin[:3], kind=kind)
    write(tmp_path / "b.nc", [3, 4, 5], t_units="degC", t=kelvin[3:] - 273.15, kind=kind)
    got, _ = windows([tmp_path / "a.nc", tmp_path / "b.nc"], window=3)
    np.testing.assert_allclose(got, np.stack([kelvin[i : i + 3] for i in range(4)]), rtol=1e-6)
    back, _ = windows([tmp_path / "b.nc", tmp_path / "a.nc"], window=3, gaps=True)
    np.testing.assert_allclose(back[0], kelvin[3:] - 273.15, rtol=1e-4)
    assert hr.stats([str(tmp_path / "a.nc"), str(tmp_path / "b.nc")], fields=["t"])["t"]["mean"] == pytest.approx(
        kelvin.mean(), rel=1e-6
    )


@pytest.mark.parametrize("other", ["Pa", None, "furlongs"])
def test_units_of_another_quantity_are_refused(tmp_path, other):
    write(tmp_path / "a.nc", [0, 1])
    write(tmp_path / "b.nc", [2, 3], t_units=other)
    said = repr(other) if other else "no units"
    with pytest.raises(hr.UsageError, match=f"'t' has 'K' in .*a.nc and {said} in") as e:
        hr.open([tmp_path / "a.nc", tmp_path / "b.nc"], {"t": hr.array("t")})
    assert "b.nc" in str(e.value)
    ds = hr.open([tmp_path / "a.nc", tmp_path / "b.nc"], {"time": hr.array("time")})  # of variables that are asked for
    assert len(ds) == 4


def test_scaled_packed_and_of_other_units_at_once(tmp_path):
    for name, scale, add, unit in (("a", 0.5, 100.0, "hPa"), ("b", 2.0, 10000.0, "Pa")):
        with netcdf.Dataset(tmp_path / f"{name}.nc", "w") as f:
            f.createDimension("time", 4)
            v = f.createVariable("p", "i2", ("time",), fill_value=-1)
            v.scale_factor, v.add_offset, v.units = scale, add, unit
            v.set_auto_maskandscale(False)
            v[:] = [0, 7, -1, 9]
    ds = hr.open([tmp_path / "a.nc", tmp_path / "b.nc"], {"p": hr.array("p")})
    got = np.array([s["p"] for s in ds])
    a, b = (xr.open_dataset(tmp_path / f"{n}.nc")["p"].values for n in "ab")
    np.testing.assert_allclose(got, np.concatenate([a, b / 100]), rtol=1e-6)


def test_windows_do_not_cross_a_missing_year(tmp_path):
    write(tmp_path / "a.nc", np.arange(4))
    write(tmp_path / "b.nc", np.arange(4), "days since 2002-01-01")
    files = [tmp_path / "a.nc", tmp_path / "b.nc"]
    got, ds = windows(files, window=2)
    assert len(got) == 6
    assert any("1 gaps" in n and "gaps=True" in n for n in ds.notices)
    assert np.allclose(got[:, 0, 0], [0, 0.1, 0.2, 0, 0.1, 0.2])
    assert len(windows(files, window=2, gaps=True)[0]) == 7
    assert len(windows(files)[0]) == 8  # one step crosses nothing
    assert [n for n in windows(files)[1].notices if "gap" in n] == []
    assert len(windows(files, window=2, horizon=2)[0]) == 2
    with pytest.raises(hr.UsageError, match=r"no 5 steps of 'time' follow each other without a gap.*gaps=True"):
        windows(files, window=5)


def test_files_in_the_wrong_order_are_a_gap(tmp_path):
    write(tmp_path / "a.nc", [8, 9])
    write(tmp_path / "b.nc", [0, 1])
    got, _ = windows([tmp_path / "a.nc", tmp_path / "b.nc"], window=2)
    assert np.allclose(got[:, :, 0], [[0.8, 0.9], [0, 0.1]])


@pytest.mark.parametrize(
    "steps",
    [
        np.cumsum([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30]),  # months
        [0, 365, 730, 1096, 1461],  # years
        [0, 1, 2, 3.4, 4.4],
        [4, 3, 2, 1, 0],
        [7, 7, 7, 7, 7],  # says nothing
    ],
)
def test_what_is_no_gap(tmp_path, steps):
    write(tmp_path / "a.nc", steps)
    assert len(windows(tmp_path / "a.nc", window=2)[0]) == len(steps) - 1


def test_levels_have_steps_of_their_own(tmp_path):
    write(
        tmp_path / "a.nc",
        [0, 1],
        extra={"plev": (("plev",), [1000, 925, 850, 500, 200], {"units": "hPa"}), "z": (("plev", "x"), np.ones((5, 3)), {})},
    )
    assert len(hr.open(tmp_path / "a.nc", {"z": hr.array("z", window=2)})) == 4


@pytest.mark.parametrize(
    ("sel", "want"),
    [
        (("2000", "2001"), range(0, 6)),
        (("2001", "2001"), range(3, 6)),
        ("2001", range(3, 6)),
        (slice("2001", None), range(3, 9)),
        (("2000-07", "2001-06-30"), range(2, 4)),
        ((datetime.datetime(2001, 1, 1), np.datetime64("2002-03-01")), range(3, 7)),
        ((0, 366), range(0, 4)),
    ],
)
def test_time_is_selected_by_date(tmp_path, sel, want):
    for year in (2000, 2001, 2002):
        write(tmp_path / f"{year}.nc", [0, 181, 300], f"days since {year}-01-01")
    files = [str(p) for p in sorted(tmp_path.glob("*.nc"))]
    ds = hr.open(files, {"time": hr.array("time", sel={"time": sel})})
    everything = [s["time"] for s in hr.open(files, {"time": hr.array("time")})]
    assert [s["time"] for s in ds] == [everything[i] for i in want]


@pytest.mark.parametrize("calendar", ["360_day", "noleap"])
def test_dates_are_of_the_files_calendar(tmp_path, calendar):
    write(tmp_path / "a.nc", np.arange(0, 720, 30), calendar=calendar)
    ds = hr.open(tmp_path / "a.nc", {"time": hr.array("time", sel={"time": ("2000-02", "2000-12")})})
    dates = cftime.num2date(np.arange(0, 720, 30), "days since 2000-01-01", calendar)
    assert [s["time"] for s in ds] == [30 * i for i, d in enumerate(dates) if d.year == 2000 and d.month >= 2]


def test_windows_lie_within_what_is_selected(tmp_path):
    write(tmp_path / "a.nc", np.arange(400))
    ds = hr.open(tmp_path / "a.nc", {"t": hr.array("t", window=3, sel={"time": ("2000-02-01", "2000-02-10")}, stride=2)})
    assert np.allclose([s["t"][0, 0] * 10 for s in ds], [31, 33, 35, 37])
    assert len(ds[0]["t"]) == 3


@pytest.mark.parametrize(
    ("sel", "words"),
    [(("1990", "1991"), "nothing of 'time'"), (("x", "y"), "no date of the calendar"), ([1, 2, 3], "first, last")],
)
def test_what_cannot_be_selected_is_said(tmp_path, sel, words):
    write(tmp_path / "a.nc", np.arange(4))
    with pytest.raises(hr.UsageError, match=words):
        hr.open(tmp_path / "a.nc", {"t": hr.array("t", sel={"time": sel})})


def test_a_file_without_dates_says_so(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 2)))
    with pytest.raises(hr.UsageError, match="no coordinate"):
        hr.open(tmp_path / "a.npy", {"t": hr.array("data", sel={"axis0": ("1990", "1991")})})


# -- dilation, levels as channels ----------------------------------------------------------------


@pytest.mark.parametrize("files", [1, 3])
def test_dilation_takes_every_nth_step(tmp_path, files):
    data = np.random.default_rng(0).random((24, 3)).astype("f4")
    each = 24 // files
    for n in range(files):
        # another scale in each file: the steps of a window are unpacked by their own
        write(
            tmp_path / f"{n}.nc",
            np.arange(n * each, (n + 1) * each),
            t=data[n * each : (n + 1) * each] * (10 if n == 1 else 1),
            t_units="g" if n != 1 else "dg",
        )
    ds = hr.open([str(tmp_path / f"{n}.nc") for n in range(files)], {"t": hr.array("t", window=3, horizon=2, dilation=4)})
    assert len(ds) == 24 - 16
    for i, s in enumerate(ds):
        np.testing.assert_allclose(s["t"], data[i : i + 9 : 4], rtol=1e-6)
        np.testing.assert_allclose(s["t_target"], data[i + 12 : i + 17 : 4], rtol=1e-6)
    with pytest.raises(hr.UsageError, match="dilation"):
        hr.open(str(tmp_path / "0.nc"), {"t": hr.array("t", dilation=2)})


@pytest.mark.parametrize("chunks", [None, (4, 1, 3, 5), (2, 3, 2, 2), (8, 4, 6, 5)])
@pytest.mark.parametrize("form", ["nc", "zarr"])
def test_surface_and_levels_are_channels(tmp_path, form, chunks):
    rng = np.random.default_rng(1)
    t2m, z = rng.random((8, 6, 5), "f4"), rng.random((8, 4, 6, 5), "f4")
    ds = xr.Dataset({"t2m": (("time", "y", "x"), t2m), "z": (("time", "level", "y", "x"), z)}, {"level": [1000, 850, 500, 200]})
    path = str(tmp_path / f"a.{form}")
    if form == "nc":
        ds.to_netcdf(
            path, engine="netcdf4", encoding={"z": {"chunksizes": chunks, "zlib": chunks != (8, 4, 6, 5)}} if chunks else {}
        )
    else:
        ds.to_zarr(path, encoding={"z": {"chunks": chunks}} if chunks else {})
    got = hr.open(path, {"x": hr.array(["t2m", "z"], window=2, sel={"level": [500, 1000]}, patch=(4, 3), tiled=True)})
    all_of_it = hr.open(path, {"x": hr.array(["z", "t2m"], along="time")})
    for i in range(7):
        for tile, (y, x) in enumerate([(0, 0), (0, 2), (2, 0), (2, 2)]):
            cut = (slice(i, i + 2), slice(y, y + 4), slice(x, x + 3))
            want = np.stack([t2m[cut], z[:, 2][cut], z[:, 0][cut]])
            assert np.array_equal(got[4 * i + tile]["x"], want)
        assert np.array_equal(all_of_it[i]["x"], np.concatenate([z[i], t2m[i][None]]))
    stats = hr.stats(path, fields=["t2m", "z"], per="level")
    normal = hr.open(path, {"x": hr.array(["t2m", "z"], along="time", sel={"level": [850]}).normalize(stats)})
    m, s = (stats["z"][k][1] for k in ("mean", "std"))
    np.testing.assert_allclose(normal[3]["x"][1], (z[3, 1] - m) / s, atol=1e-5)


def test_axes_that_do_not_fit_are_said(tmp_path):
    xr.Dataset({"a": (("time", "y"), np.ones((4, 2))), "b": (("time", "p", "q"), np.ones((4, 2, 2)))}).to_netcdf(
        tmp_path / "a.nc", engine="netcdf4"
    )
    with pytest.raises(hr.UsageError, match="'a' has the axes 'time', 'y' and 'b' has 'time', 'p', 'q'"):
        hr.open(tmp_path / "a.nc", {"x": hr.array(["a", "b"])})


# -- xarray, pack -------------------------------------------------------------------------------


def test_an_xarray_dataset_of_differing_units_is_refused(tmp_path):
    pytest.importorskip("dask")
    write(tmp_path / "a.nc", [0, 1])
    write(tmp_path / "b.nc", [2, 3], t_units="degC")
    both = xr.open_mfdataset(
        [tmp_path / "a.nc", tmp_path / "b.nc"],
        data_vars="minimal",
        coords="minimal",
        compat="override",
        combine="nested",
        concat_dim="time",
    )
    with pytest.raises(hr.UsageError, match=r"'K'.*'degC'.*by their paths"):
        hr.open(both, {"t": hr.array("t")})


def test_an_xarray_datasets_times_have_gaps_too(tmp_path):
    write(tmp_path / "a.nc", [0, 1, 2, 30, 31, 32])
    ds = hr.open(
        xr.open_dataset(tmp_path / "a.nc", cache=False),
        {"t": hr.array("t", window=2, sel={"time": ("2000-01-02", "2000-02-01")})},
    )
    assert np.allclose([s["t"][0, 0] for s in ds], [0.1, 3.0])


def test_pack_writes_one_unit_and_xarray_reads_it(tmp_path):
    kelvin = 280 + np.arange(18, dtype="f4").reshape(6, 3)
    write(tmp_path / "a.nc", [0, 1, 2], t=kelvin[:3])
    write(tmp_path / "b.nc", [0, 1, 2], "days since 2001-01-01", t_units="degC", t=kelvin[3:] - 273.15)
    for to, path in (("zarr", "c.zarr"), ("hdf5", "c.h5")):
        hr.pack([str(tmp_path / "a.nc"), str(tmp_path / "b.nc")], str(tmp_path / path), to=to)
        with xr.open_dataset(tmp_path / path, engine="zarr" if to == "zarr" else "netcdf4") as ds:
            np.testing.assert_allclose(ds["t"], kelvin, rtol=1e-6)
            assert ds["t"].attrs["units"] == "K"
            assert list(ds["time"].dt.year.values) == [2000] * 3 + [2001] * 3


@pytest.mark.timeout(200)
def test_the_example_runs(tmp_path):
    example = pathlib.Path(__file__).resolve().parent.parent / "examples" / "first_hour" / "era5_years.py"
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exactly" in done.stdout


def test_files_of_another_grid_are_refused(tmp_path: pathlib.Path) -> None:
    """Numbers of other places, or of the same in another order, are no further steps of a variable."""

    def write(name: str, lat: np.ndarray, mask: float = 0) -> str:
        values = {"t": (("time", "lat"), np.ones((3, 4), "f4")), "mask": (("lat",), np.full(4, mask))}
        xr.Dataset(values, coords={"lat": lat, "time": np.arange(3)}).to_netcdf(tmp_path / name)
        return str(tmp_path / name)

    first = write("a.nc", np.array([60.1, 20.1, -20.1, -60.1]))
    narrow = write("narrow.nc", np.array([60.1, 20.1, -20.1, -60.1], "f4"))
    assert len(hr.open([first, narrow], {"t": hr.array("t")})) == 6
    for name, lat in {"turned.nc": [-60.1, -20.1, 20.1, 60.1], "moved.nc": [61.1, 21.1, -19.1, -59.1]}.items():
        with pytest.raises(hr.UsageError, match=rf"'lat' is 60.1, 20.1, .* in .*a.nc and .*{name}.* must have one grid"):
            hr.open([first, write(name, np.array(lat))], {"t": hr.array("t")})
    ds = hr.open([first, write("b.nc", np.array([60.1, 20.1, -20.1, -60.1]), 1)], {"t": hr.array("t"), "mask": hr.array("mask")})
    assert any("'mask' has no axis 'time': all samples get the one of" in n for n in ds.notices)
