# SPDX-License-Identifier: Apache-2.0
"""Years of ERA5-like NetCDF: units that change from year to year, a year that is missing, levels beside the surface.

python examples/first_hour/era5_years.py          makes its data with xarray, and compares every window with xarray's
"""

import pathlib
import tempfile

import headrace as hr
import numpy as np

try:
    import xarray as xr
except ImportError:
    raise SystemExit("xarray is not there: pip install xarray netCDF4") from None


def make_years(folder: pathlib.Path) -> None:
    """Temperature in K, then in degrees Celsius, packed; each year counts its days from its own first."""
    rng = np.random.default_rng(0)
    for year, units in ((1990, "K"), (1991, "degC"), (1993, "K")):
        days = xr.date_range(f"{year}-01-01", periods=365, freq="D", use_cftime=False)
        t2m = 280 + 10 * rng.standard_normal((365, 6, 8)).astype("f4") - (273.15 if units == "degC" else 0)
        z = rng.random((365, 2, 6, 8), "f4")
        ds = xr.Dataset(
            {
                "t2m": (("time", "lat", "lon"), t2m, {"units": units}),
                "z": (("time", "level", "lat", "lon"), z, {"units": "m2 s-2"}),
            },
            {"time": days, "level": [500, 850]},
        )
        packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": float(t2m.mean()), "_FillValue": -32768}
        heights = {"dtype": "i2", "scale_factor": 1e-4, "add_offset": 0.5, "_FillValue": -32768}
        time = {"units": f"days since {year}-01-01", "calendar": "standard", "dtype": "i4"}
        ds.to_netcdf(folder / f"era5-{year}.nc", encoding={"t2m": packed, "z": heights, "time": time}, engine="netcdf4")


def as_xarray_reads_it(folder: pathlib.Path) -> "xr.Dataset":
    """The same by hand: file by file, brought to kelvin."""
    parts = []
    for path in sorted(folder.glob("era5-*.nc")):
        ds = xr.open_dataset(path).load()
        parts.append(ds.assign(t2m=ds["t2m"] + (273.15 if ds["t2m"].attrs["units"] == "degC" else 0)))
    return xr.concat(parts, "time", combine_attrs="drop_conflicts")


def main(folder: pathlib.Path) -> None:
    make_years(folder)
    # --- headrace ---
    fields = {
        # t2m, z at 500 and z at 850 hPa as three channels; windows of four days, two of them apart from each other
        "x": hr.array(["t2m", "z"], window=4, dilation=2, sel={"time": ("1990-06", "1993-06"), "level": [500, 850]}),
        "day": hr.array("time"),  # in the first file's "days since 1990-01-01"
    }
    source = str(folder / "era5-*.nc")
    samples = hr.open(source, fields)
    print("\n".join(samples.notices))  # windows over the missing year 1992 are left out
    with hr.Loader(source, 16, fields, seed=1, tail="keep", output="numpy") as loader:
        seen = [int(i) for batch in loader.epoch(0) for i in batch.indices]
    # --- the same with xarray ---
    want = as_xarray_reads_it(folder)
    times = want["time"].values
    inside = (times >= np.datetime64("1990-06-01")) & (times < np.datetime64("1993-07-01"))
    starts = [
        i
        for i in np.flatnonzero(inside)
        if i + 6 < len(times) and inside[i + 6] and times[i + 6] - times[i] == np.timedelta64(6, "D")
    ]
    assert len(samples) == len(starts) and sorted(seen) == list(range(len(starts)))
    for n, i in enumerate(starts):
        steps = slice(i, i + 7, 2)
        channels = np.stack([want["t2m"][steps], want["z"][steps, 0], want["z"][steps, 1]])
        np.testing.assert_allclose(samples[n]["x"], channels, rtol=1e-6)
        assert samples[n]["day"] == (times[i] - np.datetime64("1990-01-01")) / np.timedelta64(1, "D")
    print(f"{len(samples)} windows of 3 years, in kelvin, none over a gap: exactly those of xarray")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(pathlib.Path(place))
