# SPDX-License-Identifier: Apache-2.0
"""Files of one variable that are packed in different ways, as downloaded years of ERA5 are: each by its own parameters."""

from __future__ import annotations

import itertools
import json
import math
import pathlib
import subprocess
import sys
import warnings
from typing import Any

import headrace as hr
import numpy as np
import pytest

pytest.importorskip("hdf5plugin")  # before netCDF4, or its Blosc cannot write for the tests that follow
netcdf = pytest.importorskip("netCDF4")
xarray = pytest.importorskip("xarray")

DIMS = ("time", "level", "lat", "lon")
LENGTHS = (5, 1, 4)
REST = (2, 4, 6)
LEVELS = [500, 850]
MINIMAL: dict[str, Any] = {"data_vars": "minimal", "coords": "minimal", "compat": "override"}

# Of each of three files; "scale" and "offset" are f64, as ERA5's are.
PACKINGS: dict[str, list[dict[str, float]]] = {
    "all differ": [
        {"scale": 0.01, "offset": 250.0, "fill": -10},
        {"scale": 1 / 3, "offset": -7.25, "fill": 3},
        {"scale": -2.5e-4, "offset": 1e3, "fill": 17},
    ],
    "another scale": [{"scale": 0.1, "offset": 1.0}, {"scale": 0.2, "offset": 1.0}, {"scale": 0.3, "offset": 1.0}],
    "one file without": [{"scale": 0.7, "offset": 3.0, "fill": 5}, {}, {"scale": 0.1, "offset": 2.0}],
    "the first without": [{}, {"scale": 0.7, "offset": 3.0}, {"scale": 0.1, "offset": 2.0, "fill": 0}],
    "fill in one alone": [{"scale": 0.7, "offset": 3.0}, {"scale": 0.7, "offset": 3.0, "fill": 4}, {"scale": 0.7, "offset": 3.0}],
    "a fill and no scale": [{"fill": 2}, {"scale": 0.5, "offset": 0.0}, {"scale": 11.0}],
    "NaN as scale": [{"scale": math.nan, "offset": 1.0}, {"scale": 2.0, "offset": 1.0}, {"scale": math.nan}],
    "NaN as offset": [{"scale": 1.5, "offset": 1.0}, {"scale": 1.5, "offset": math.nan}, {"offset": 4.0}],
    "zero and infinite": [{"scale": 0.0, "offset": 1.0}, {"scale": math.inf, "offset": 0.0}, {"scale": 1e300, "offset": -1e300}],
    "fills alone": [{"fill": 2}, {"fill": 3}, {}],
}
# What the files are: HDF5 inside, or classic; records among those of another variable, or not.
KINDS = {
    "nc4": ["NETCDF4"] * 3,
    "nc4 zlib": ["NETCDF4 zlib"] * 3,
    "cdf1": ["NETCDF3_CLASSIC"] * 3,
    "cdf2 records": ["NETCDF3_64BIT_OFFSET records"] * 3,
    "mixed": ["NETCDF4 zlib", "NETCDF3_CLASSIC records", "NETCDF4 big"],
}
DTYPES = ["i1", "i2", "i4", "f4", "f8"]
CHOICES: list[dict[str, Any]] = [
    {},
    {"window": 2},
    {"window": 7, "stride": 2},  # over three files
    {"window": 3, "horizon": 2},
    {"window": 2, "patch": (3, 4)},
    {"window": 4, "patch": (2, 5), "tiled": True},
    {"window": 2, "patch": (3, 4), "periodic": "lon"},
    {"window": 3, "sel": {"level": 850}},
    {"sel": {"level": [850, 500], "lon": [5, 0, 1]}, "window": 2},
]


def numbers(dtype: str, shape: tuple[int, ...], *seed: int) -> Any:
    data = np.random.default_rng(seed).integers(-20, 20, shape).astype(dtype)
    if dtype[0] == "f":
        data[data == 1] = np.nan
        data[data == -1] = -0.0
    return data


def write(path: pathlib.Path, kind: str, dtype: str, packing: dict[str, float], stored: dict[str, Any]) -> None:
    form, *more = kind.split()
    with netcdf.Dataset(path, "w", format=form) as f:
        for name, n in zip(DIMS, next(iter(stored.values())).shape):
            f.createDimension(name, None if name == "time" and "records" in more else n)
        f.createVariable("level", "i4", ("level",))[:] = LEVELS
        for name, data in stored.items():
            options: dict[str, Any] = {"fill_value": packing["fill"]} if "fill" in packing else {}
            if form == "NETCDF4":
                options["chunksizes"] = (min(2, len(data)), 1, 3, 4)
            if "zlib" in more:
                options["compression"] = "zlib"
            if "big" in more:
                options["endian"] = "big"
            v = f.createVariable(name, np.dtype(dtype).newbyteorder(">" if "big" in more else "="), DIMS, **options)
            v.set_auto_maskandscale(False)
            if "scale" in packing:
                v.scale_factor = np.float64(packing["scale"])
            if "offset" in packing:
                v.add_offset = np.float64(packing["offset"])
            v[:] = data


def unpacked(stored: Any, packing: dict[str, float], whole: list[dict[str, float]]) -> Any:
    """By the rule of docs/arrays.md, in words of NumPy."""
    floats = stored.dtype.kind == "f"
    if not any({"scale", "offset"} & set(p) or (floats and "fill" in p) for p in whole):
        return stored
    out = stored.astype("f8")
    if "scale" in packing:
        out = out * packing["scale"]
    if "offset" in packing:
        out = out + packing["offset"]
    if "fill" in packing:
        out[stored == packing["fill"]] = np.nan
    return out.astype("f4" if stored.dtype.itemsize <= 2 or stored.dtype == "f4" else "f8")


def made(
    folder: pathlib.Path, kinds: str, dtype: str, packing: str, names: tuple[str, ...] = ("v", "w")
) -> tuple[list[str], Any]:
    urls, parts = [], []
    for n, (length, kind, how) in enumerate(zip(LENGTHS, KINDS[kinds], PACKINGS[packing])):
        stored = {name: numbers(dtype, (length, *REST), n, i) for i, name in enumerate(names)}
        urls.append(str(folder / f"year-{n}.nc"))
        write(folder / f"year-{n}.nc", kind, dtype, how, stored)
        parts.append({name: unpacked(data, how, PACKINGS[packing]) for name, data in stored.items()})
    return urls, {name: np.concatenate([p[name] for p in parts]) for name in names}


def assert_same_bits(got: Any, want: Any, why: Any = "") -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), why
    if want.dtype.kind == "f":
        gone = np.isnan(want)
        assert np.array_equal(np.isnan(got), gone), why
        got, want = np.where(gone, 0, got), np.where(gone, 0, want)
        assert np.array_equal(np.signbit(got), np.signbit(want)), why
    assert np.array_equal(got, want), why


def by_xarray(urls: list[str], like: Any) -> Any:
    """What open_mfdataset makes of the files, in our type: it takes the type of scale_factor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xarray.open_mfdataset(urls, combine="nested", concat_dim="time", **MINIMAL) as ds:
            values = ds["v"].values
        return values.astype(like.dtype)


def checked_against_xarray(urls: list[str], data: Any, packing: str) -> None:
    seen = by_xarray(urls, data)
    if data.dtype.kind == "f" or packing != "fills alone":
        assert_same_bits(data, seen)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("kinds", KINDS)
def test_each_file_is_read_by_its_own_parameters(tmp_path, kinds, packing):
    """Every type, every choice, every sample: the rule's bits, which are those of xarray."""
    for dtype in DTYPES:
        folder = tmp_path / dtype
        folder.mkdir()
        urls, data = made(folder, kinds, dtype, packing)
        v = data["v"]
        checked_against_xarray(urls, v, packing)
        for choice in CHOICES:
            ds = hr.open(urls, {"x": hr.array("v", **choice)})
            window, horizon, stride = choice.get("window", 0), choice.get("horizon", 0), choice.get("stride", 1)
            whole = v
            for dim, want in choice.get("sel", {}).items():
                at = [LEVELS.index(n) for n in np.ravel(want)] if dim == "level" else want
                whole = np.take(whole, at, DIMS.index(dim))
            starts = range(0, len(v) - max(1, window) - horizon + 1, stride)
            tiles = corners(choice)
            assert len(ds) == len(starts) * len(tiles)
            for i in range(len(ds)):
                sample, at = ds[i], starts[i // len(tiles)]
                want = whole[at : at + window] if window else whole[at]
                if "patch" in choice and not choice.get("tiled"):
                    assert holds(sample["x"], want, choice), (dtype, choice, i)
                    continue
                if "patch" in choice:
                    (a, b), (h, w) = tiles[i % len(tiles)], choice["patch"]
                    want = want[..., a : a + h, b : b + w]
                assert_same_bits(sample["x"], want, (dtype, choice, i))
                if horizon:
                    assert_same_bits(sample["x_target"], whole[at + window : at + window + horizon], (dtype, choice, i))


def corners(choice: dict[str, Any]) -> list[tuple[int, int]]:
    if not choice.get("tiled"):
        return [(0, 0)]
    each = [[min(b, n - p) for b in range(0, n, p)] for n, p in zip(REST[1:], choice["patch"])]
    return list(itertools.product(*each))


def holds(got: Any, whole: Any, choice: dict[str, Any]) -> bool:
    """Whether it is a patch of the field, at whatever place."""
    (h, w), (_, rows, columns) = choice["patch"], REST
    around = columns if "periodic" in choice else columns - w + 1
    for a, b in itertools.product(range(rows - h + 1), range(around)):
        want = whole[..., a : a + h, :][..., np.arange(b, b + w) % columns]
        if got.dtype == want.dtype and np.array_equal(got, want, equal_nan=want.dtype.kind == "f"):
            return True
    return False


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("kinds", ["nc4 zlib", "mixed"])
def test_a_loader_reads_them_stacked_and_in_any_order(tmp_path, kinds, in_memory):
    urls, data = made(tmp_path, kinds, "i2", "all differ")
    both = np.stack([data["v"], data["w"]], 1)
    options: dict[str, Any] = {"shuffle": False, "tail": "keep", "output": "numpy"}
    field = hr.array(["v", "w"], window=4, sel={"level": 850})
    with hr.Loader(hr.open(urls, {"x": field}, in_memory=in_memory), 3, **options) as loader:
        got = np.concatenate([np.array(b["x"]) for b in loader])
    want = np.stack([both[i : i + 4].swapaxes(0, 1) for i in range(len(both) - 3)])[:, :, :, 1:]
    assert_same_bits(got, want)
    # The other way round the parameters go with their files.
    with hr.Loader(hr.open(urls[::-1], {"x": hr.array("v")}, in_memory=in_memory), 3, **options) as loader:
        got = np.concatenate([np.array(b["x"]) for b in loader])
    a, b = LENGTHS[0], LENGTHS[0] + LENGTHS[1]
    assert_same_bits(got, np.concatenate([data["v"][b:], data["v"][a:b], data["v"][:a]]))


def test_variables_of_which_one_is_packed_stack(tmp_path):
    a, b = numbers("i2", (5, *REST), 0), numbers("i2", (5, *REST), 1)
    write(tmp_path / "x.nc", "NETCDF4", "i2", {"scale": 0.5, "offset": 1.0}, {"v": a})
    with netcdf.Dataset(tmp_path / "x.nc", "a") as f:
        f.createVariable("w", ">i2", DIMS, fill_value=3, endian="big")[:] = b
    got = hr.open(tmp_path / "x.nc", {"x": hr.array(["w", "v"]), "w": hr.array("w")})[2]
    want = b[2].astype("f4")
    want[b[2] == 3] = np.nan
    assert_same_bits(got["x"], np.stack([want, (a[2] * 0.5 + 1).astype("f4")]))
    assert_same_bits(got["w"], b[2])  # alone it is as it was


@pytest.mark.parametrize("packing", ["all differ", "one file without", "a fill and no scale", "fills alone"])
def test_statistics_are_of_the_unpacked_numbers(tmp_path, packing):
    for dtype in ("i2", "f4"):
        (tmp_path / dtype).mkdir()
        urls, data = made(tmp_path / dtype, "mixed", dtype, packing)
        v = data["v"].astype("f8")
        [one] = [hr.stats(urls, "v", threads=t) for t in (1, 3)][1:]
        assert one == hr.stats(urls, "v", threads=1)
        np.testing.assert_allclose([one["v"]["mean"], one["v"]["std"]], [np.nanmean(v), np.nanstd(v)], rtol=1e-12)
        assert (one["v"]["min"], one["v"]["max"], one["v"]["nan"]) == (np.nanmin(v), np.nanmax(v), np.isnan(v).sum())
        per = hr.stats(urls, "v", per="level")
        np.testing.assert_allclose(per["v"]["mean"], np.nanmean(v, (0, 2, 3)), rtol=1e-12)
        command = [sys.executable, "-m", "headrace", "stats", *urls, "--fields", "v", "--to", str(tmp_path / "s.json")]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        assert json.loads((tmp_path / "s.json").read_text())["v"]["mean"] == one["v"]["mean"]


@pytest.mark.parametrize("kinds", ["nc4", "cdf2 records"])
@pytest.mark.parametrize("packing", ["all differ", "another scale", "fill in one alone"])
def test_xarrays_datasets_and_looking(tmp_path, kinds, packing):
    urls, data = made(tmp_path, kinds, "i2", packing)
    with xarray.open_mfdataset(urls, combine="nested", concat_dim="time", **MINIMAL) as ds:
        got = hr.open(ds, {"x": hr.array("v", along="time", window=7)})
        for i in range(len(got)):
            assert_same_bits(got[i]["x"], data["v"][i : i + 7])
    seen = hr.to_xarray(hr.open(urls))
    assert_same_bits(seen.v.values, data["v"])
    assert_same_bits(seen.v.isel(time=[9, 0, 5, 4]).values, data["v"][[9, 0, 5, 4]])


@pytest.mark.parametrize("packing", ["one file without", "a fill and no scale"])
def test_looking_at_files_of_which_some_are_packed(tmp_path, packing):
    urls, data = made(tmp_path, "mixed", "i2", packing)
    assert_same_bits(hr.to_xarray(hr.open(urls)).v.values, data["v"])


@pytest.mark.parametrize("packing", ["all differ", "one file without", "fill in one alone"])
@pytest.mark.parametrize("to", ["zarr", "hdf5", "npy"])
def test_a_pack_of_them_holds_the_unpacked_numbers(tmp_path, to, packing):
    urls, data = made(tmp_path, "mixed", "i2", packing)
    out = tmp_path / {"zarr": "out.zarr", "hdf5": "out.h5", "npy": "out"}[to]
    hr.pack(urls, out, to=to, window=2)
    packed = hr.open(out, {"v": hr.array("v", window=10), "w": hr.array("w", window=10)})
    assert_same_bits(packed[0]["v"], data["v"])
    assert_same_bits(packed[0]["w"], data["w"])
    if to == "zarr":
        with xarray.open_zarr(out, consolidated=False) as ds:
            assert_same_bits(ds.v.values, data["v"])
            assert not {"scale_factor", "add_offset", "_FillValue"} & {*ds.v.attrs, *ds.v.encoding} or np.isnan(
                ds.v.encoding.get("_FillValue", np.nan)
            )
    samples = tmp_path / "samples"
    hr.pack(hr.open(urls, {"x": hr.array("v", window=3)}), samples, to="npz", keep_order=True)
    assert_same_bits(hr.open(samples)[4]["x"], data["v"][4:7])


def test_a_pack_of_files_that_are_packed_alike_stays_packed(tmp_path):
    stored = [numbers("i2", (n, *REST), n) for n in (3, 4)]
    for n, part in enumerate(stored):
        write(tmp_path / f"{n}.nc", "NETCDF4", "i2", {"scale": 0.5, "offset": 1.0, "fill": 4}, {"v": part})
    result = hr.pack([tmp_path / "0.nc", tmp_path / "1.nc"], tmp_path / "out.zarr", to="zarr")
    assert {a["name"]: a["dtype"] for a in result["arrays"]}["v"] == "i16"
    for n, fill in enumerate((4, 5)):
        write(tmp_path / f"{n}.nc", "NETCDF4", "i2", {"fill": fill}, {"v": stored[n]})
    with pytest.raises(hr.UsageError, match=r"'v' has the _FillValue 4.0 in .*0.nc and 5.0 in .*1.nc"):
        hr.pack([tmp_path / "0.nc", tmp_path / "1.nc"], tmp_path / "again.zarr", to="zarr")


@pytest.mark.parametrize("packing", ["all differ", "one file without", "a fill and no scale"])
def test_volumes_have_parameters_of_their_own(tmp_path, packing):
    for n, how in enumerate(PACKINGS[packing]):
        data = numbers("i2", (4 + n, 2, 6, 7), n)
        write(tmp_path / f"case-{n}.nc", KINDS["mixed"][n], "i2", how, {"v": data})
    ds = hr.open(str(tmp_path / "case-*.nc"), {"x": hr.array("v", along="file", patch=(2, 2, 6, 7))})
    for n, how in enumerate(PACKINGS[packing]):
        whole = unpacked(numbers("i2", (4 + n, 2, 6, 7), n), how, PACKINGS[packing])
        got = ds[n]["x"]
        assert got.dtype == np.float32
        assert any(np.array_equal(got, whole[i : i + 2], equal_nan=True) for i in range(3 + n))


def test_a_run_is_not_resumed_on_other_parameters(tmp_path):
    urls, _ = made(tmp_path, "nc4", "i2", "all differ")
    fields = {"x": hr.array("v", window=2)}
    with hr.Loader(urls, 2, fields, seed=1, output="numpy") as loader:
        it = iter(loader)
        next(it)
        state = loader.state_dict()
    with hr.Loader(urls, 2, fields, seed=1, output="numpy") as loader:
        loader.load_state_dict(state)
    for name in ("scale_factor", "add_offset"):
        with netcdf.Dataset(urls[1], "a") as f:
            before = f["v"].getncattr(name)
            f["v"].setncattr(name, before * 2)
        with hr.Loader(urls, 2, fields, seed=1, output="numpy") as loader, pytest.raises(hr.Error):
            loader.load_state_dict(state)
        with netcdf.Dataset(urls[1], "a") as f:
            f["v"].setncattr(name, before)
        with hr.Loader(urls, 2, fields, seed=1, output="numpy") as loader:
            loader.load_state_dict(state)


@pytest.mark.parametrize("other", ["i4", "f4", "u2"])
def test_other_types_in_other_files_become_one(tmp_path, other):
    how = {"scale": 0.5, "offset": 1.0}
    first, second = numbers("i2", (3, *REST), 0), numbers(other.replace("u", "i"), (3, *REST), 0).astype(other)
    write(tmp_path / "0.nc", "NETCDF4", "i2", how, {"v": first})
    write(tmp_path / "1.nc", "NETCDF4", other, how, {"v": second})
    files = [str(tmp_path / f"{n}.nc") for n in (0, 1)]
    want = np.concatenate([first.astype("f8"), second.astype("f8")]) * 0.5 + 1
    got = np.stack([s["v"] for s in hr.open(files)])
    assert got.dtype == ("f8" if other == "i4" else "f4") and np.array_equal(got, want.astype(got.dtype), equal_nan=True)
    assert np.isclose(hr.stats(files)["v"]["mean"], np.nanmean(want), rtol=1e-6)


@pytest.mark.parametrize("version", [2, 3])
def test_zarrs_have_parameters_of_their_own(tmp_path, version):
    pytest.importorskip("zarr")
    urls, whole = [], []
    for n, how in enumerate(PACKINGS["all differ"]):
        data = unpacked(numbers("i2", (LENGTHS[n], *REST), n), how, PACKINGS["all differ"]).astype("f8")
        keep = {"scale_factor": how["scale"], "add_offset": how["offset"], "_FillValue": np.int16(how["fill"]), "dtype": "i2"}
        cube = xarray.Dataset({"v": (DIMS, data)}, {"level": LEVELS})
        cube.to_zarr(tmp_path / f"{n}.zarr", encoding={"v": keep}, zarr_format=version, consolidated=False)
        urls.append(str(tmp_path / f"{n}.zarr"))
        with xarray.open_zarr(urls[-1], consolidated=False) as seen:
            whole.append(seen.v.values.astype("f4"))
            assert np.allclose(whole[-1], data, equal_nan=True)
    assert np.isnan(np.concatenate(whole)).any()
    ds = hr.open(urls, {"x": hr.array("v", window=4, patch=(4, 6))})
    for i in range(len(ds)):
        assert_same_bits(ds[i]["x"], np.concatenate(whole)[i : i + 4])
