# SPDX-License-Identifier: Apache-2.0
"""A generated matrix over files of arrays: every value as the format's own readers give it.

A combination is (format, filter, type, byte order, memory order, chunks, what of it makes a sample). The readers are NumPy, h5py,
netCDF4, zarr-python, TensorStore and xarray, whichever open the file; they must agree with each other first.
"""

from __future__ import annotations

import contextlib
import itertools
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import headrace as hr
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
hdf5plugin = pytest.importorskip("hdf5plugin")
netcdf = pytest.importorskip("netCDF4")
numcodecs = pytest.importorskip("numcodecs")
tensorstore = pytest.importorskip("tensorstore")
xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"]
DIMS = ("time", "level", "lat", "lon")
SHAPE = (9, 3, 5, 6)
SECOND = (4, 3, 5, 6)  # of the file that follows
LEVELS = [500, 700, 850]
CHUNKS = [SHAPE, (1, 3, 5, 6), (4, 2, 3, 4), (2, 1, 5, 3), (9, 1, 2, 5), (3, 3, 4, 1)]

HDF5 = {
    "contiguous": None,
    "chunks": {},
    "gzip": {"compression": "gzip"},
    "gzip shuffle": {"compression": "gzip", "shuffle": True},
    "shuffle fletcher32": {"shuffle": True, "fletcher32": True},
    "lzf shuffle fletcher32": {"compression": "lzf", "shuffle": True, "fletcher32": True},
    "lz4": dict(hdf5plugin.LZ4(nbytes=64)),
    "zstd": dict(hdf5plugin.Zstd()),
    "blosc lz4": dict(hdf5plugin.Blosc(cname="lz4", shuffle=1)),
    "blosc zstd bits": dict(hdf5plugin.Blosc(cname="zstd", shuffle=2)),
}
NETCDF = {
    "contiguous": {"contiguous": True},
    "chunks": {},
    "zlib": {"compression": "zlib", "shuffle": False},
    "zlib shuffle": {"compression": "zlib", "shuffle": True},
    "zlib fletcher32": {"compression": "zlib", "fletcher32": True},
    "zstd": {"compression": "zstd"},
}
ZARR2: dict[str, Any] = {
    "none": (None, None),
    "zlib": (numcodecs.Zlib(), None),
    "gzip": (numcodecs.GZip(), None),
    "lz4": (numcodecs.LZ4(), None),
    "zstd": (numcodecs.Zstd(), None),
    "blosc lz4": (numcodecs.Blosc(cname="lz4", shuffle=1), None),
    "blosc zstd bits": (numcodecs.Blosc(cname="zstd", shuffle=2), None),
    "shuffle zlib": (numcodecs.Zlib(), lambda t: numcodecs.Shuffle(t.itemsize)),
    "delta lz4": (numcodecs.LZ4(), lambda t: numcodecs.Delta(t) if t.kind in "iu" and t.byteorder != ">" else None),
    "crc32c": (None, lambda t: numcodecs.CRC32C()),
}
codecs = zarr.codecs
ZARR3: dict[str, Any] = {
    "none": None,
    "gzip": [codecs.GzipCodec()],
    "zstd": [codecs.ZstdCodec(checksum=True)],
    "zstd crc32c": [codecs.ZstdCodec(), codecs.Crc32cCodec()],
    "blosc lz4": [codecs.BloscCodec(cname="lz4", shuffle="shuffle")],
    "blosc zstd bits": [codecs.BloscCodec(cname="zstd", shuffle="bitshuffle")],
}
FORMATS: dict[str, Any] = {"npy": {"plain": 0, "again": 1}, "hdf5": HDF5, "netcdf": NETCDF, "zarr2": ZARR2, "zarr3": ZARR3}
FORMATS["zarr3 sharded"] = {k: ZARR3[k] for k in ("none", "gzip", "zstd crc32c", "blosc lz4")}

# What makes a sample; "variables" and "files" are the test's own words, all others hr.array's.
CHOICES: list[dict[str, Any]] = [
    {},
    {"window": 1},
    {"window": 4, "stride": 2},
    {"window": 3, "horizon": 2},
    {"window": 2, "horizon": 1, "stride": 3},
    {"horizon": 1},
    {"along": "lat", "window": 3},
    {"along": "lon"},
    {"patch": (2, 4), "tiled": True},
    {"window": 2, "patch": (3, 4, 5), "tiled": True},
    {"window": 2, "patch": (3, 4)},
    {"window": 3, "patch": (4, 5), "periodic": "lon"},
    {"patch": (5, 6), "periodic": ["lat", "lon"]},
    {"window": 2, "sel": {"level": [850, 500]}},
    {"sel": {"level": slice(600, 900), "lon": [5, 0, 1]}},
    {"sel": {"level": 700}, "patch": (2, 3), "tiled": True},
    {"variables": ["v", "w"], "window": 2},
    {"variables": ["w", "v"], "patch": (3, 3), "window": 2},
    {"files": 2, "window": 3},
    {"files": 2, "window": 6, "horizon": 3, "stride": 2},
]
PER_FILE = 4  # choices that each file is read by


@dataclass(frozen=True)
class Combination:
    format: str
    filters: str
    dtype: str
    order: str  # of bytes and of memory: "<C"
    chunks: tuple[int, ...]
    choice: int


def _fits(form: str, dtype: str, choice: dict[str, Any]) -> bool:
    if form == "netcdf" and dtype in ("f2", "?"):
        return False
    return not (form == "npy" and ("variables" in choice))


def generated() -> list[Combination]:
    out = []
    turn = itertools.count()
    for form, filters in FORMATS.items():
        for (f, name), (t, dtype) in itertools.product(enumerate(filters), enumerate(DTYPES)):
            memory = "CF"[(f + t // 2) % 2] if form in ("npy", "zarr2", "zarr3", "zarr3 sharded") else "C"
            order = "<>"[(f + t) % 2] + memory
            chunks = SHAPE if form == "npy" or name == "contiguous" else CHUNKS[(2 * f + t) % len(CHUNKS)]
            chosen = [n for _ in range(2 * PER_FILE) if _fits(form, dtype, CHOICES[n := next(turn) % len(CHOICES)])]
            out += [Combination(form, name, dtype, order, chunks, n) for n in dict.fromkeys(chosen[:PER_FILE])]
    return out


COMBINATIONS = generated()


# -- files --------------------------------------------------------------------------------------


def numbers(dtype: str, shape: tuple[int, ...], *seed: int) -> Any:
    data = np.random.default_rng(seed).integers(0, 256, shape)
    if dtype == "?":
        return data % 2 == 0
    return (data - 128 if np.dtype(dtype).kind in "if" else data).astype(dtype)


def arrays(dtype: str) -> list[dict[str, Any]]:
    """The variables of the two files."""
    return [{"v": numbers(dtype, shape, n, 0), "w": numbers(dtype, shape, n, 1)} for n, shape in enumerate((SHAPE, SECOND))]


def full_type(c: Combination) -> Any:
    return np.dtype(c.dtype).newbyteorder(c.order[0])


def write_npy(path: pathlib.Path, c: Combination, data: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    np.save(path, np.asarray(data["v"].astype(full_type(c)), order=c.order[1]))  # type: ignore[call-overload]
    return lambda: {"numpy": {"v": np.load(path)}}


def write_hdf5(path: pathlib.Path, c: Combination, data: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    options = HDF5[c.filters]
    with h5py.File(path, "w") as f:
        f["level"] = np.array(LEVELS, "i4")
        for name, values in data.items():
            chunks = {} if options is None else {"chunks": tuple(map(min, c.chunks, values.shape))}
            v = f.create_dataset(name, data=values.astype(full_type(c)), **chunks, **(options or {}))
            for dim, label in zip(v.dims, DIMS):
                dim.label = label

    def read() -> dict[str, Any]:
        with h5py.File(path) as f:
            return {"h5py": {name: f[name][()] for name in data}}

    return read


def write_netcdf(path: pathlib.Path, c: Combination, data: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    with netcdf.Dataset(path, "w") as f:
        for name, n in zip(DIMS, data["v"].shape):
            f.createDimension(name, n)
        f.createVariable("level", "i4", ("level",))[:] = LEVELS
        for name, values in data.items():
            options = NETCDF[c.filters]
            chunks = {} if "contiguous" in options else {"chunksizes": tuple(map(min, c.chunks, values.shape))}
            endian = {"<": "little", ">": "big"}[c.order[0]]
            v = f.createVariable(name, full_type(c), DIMS, endian=endian, fill_value=False, **chunks, **options)
            v[:] = values.astype(full_type(c))
            assert c.dtype[1:] == "1" or v.endian() == endian

    def read() -> dict[str, Any]:
        out = {}
        with netcdf.Dataset(path) as f:
            f.set_auto_mask(False)
            out["netCDF4"] = {name: f[name][:] for name in data}
        for engine in ("netcdf4", "h5netcdf"):
            with xarray.open_dataset(path, engine=engine) as ds:
                out[f"xarray {engine}"] = {name: ds[name].values for name in data}
        return out

    return read


def write_zarr(path: pathlib.Path, c: Combination, data: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    version = 2 if c.format == "zarr2" else 3
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    full = full_type(c)
    for name, values in {"level": np.array(LEVELS, "i4"), **data}.items():
        small = values.ndim == 1
        options: dict[str, Any] = {"chunks": tuple(map(min, c.chunks, values.shape)), "compressors": None}
        if version == 2:
            options["attributes"] = {"_ARRAY_DIMENSIONS": ["level"] if small else list(DIMS)}
        else:
            options["dimension_names"] = ["level"] if small else DIMS
        if small:
            options["chunks"] = (3,)
        elif version == 2:
            options["compressors"], filters = ZARR2[c.filters]
            made = filters(full) if filters else None
            options.update(filters=[made] if made else None, order=c.order[1])
            options["chunk_key_encoding"] = {"name": "v2", "separator": "./"[c.choice % 2]}
        else:
            options["compressors"] = ZARR3[c.filters]
            options["serializer"] = codecs.BytesCodec(endian="big" if c.order[0] == ">" else "little")
            if c.order[1] == "F":
                options["filters"] = [codecs.TransposeCodec(order=(3, 2, 1, 0))]
            if c.format.endswith("sharded"):
                options["shards"] = tuple(n * (1 + (i + c.choice) % 2) for i, n in enumerate(options["chunks"]))
        a = group.create_array(name, shape=values.shape, dtype=values.dtype if small or version == 3 else full, **options)
        a[:] = values
    return lambda: read_zarr(path, version, data)


def read_zarr(path: pathlib.Path, version: int, data: dict[str, Any]) -> dict[str, Any]:
    group = zarr.open_group(str(path), mode="r")
    out = {"zarr": {name: group[name][:] for name in data}}
    # Of version 2 xarray takes the fill value for missing values.
    with xarray.open_zarr(path, consolidated=False, chunks=None, mask_and_scale=False) as ds:
        out["xarray"] = {name: ds[name].values for name in data}
    driver = {2: "zarr", 3: "zarr3"}[version]
    with contextlib.suppress(ValueError):  # it refuses numcodecs' filters
        out["tensorstore"] = {
            n: tensorstore.open({"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/{n}/"}})
            .result()
            .read()
            .result()
            for n in data
        }
    return out


def container(folder: pathlib.Path, c: Combination, files: int) -> tuple[list[str], dict[str, Any], set[str]]:
    """Written; what it holds, by readers that agree; who they are."""
    ending = {"npy": "npy", "hdf5": "h5", "netcdf": "nc"}.get(c.format, "zarr")
    write = {"npy": write_npy, "hdf5": write_hdf5, "netcdf": write_netcdf}.get(c.format, write_zarr)
    parts: list[dict[str, Any]] = []
    urls, readers = [], set()
    for n, data in enumerate(arrays(c.dtype)[:files]):
        path = folder / f"{c.dtype.replace('?', 'bool')}-{n}.{ending}"
        seen = write(path, c, data)()
        readers |= set(seen)
        first = next(iter(seen.values()))
        for reader, values in seen.items():
            for name in values:
                assert np.array_equal(values[name], first[name]), (reader, name, c)
        parts.append(first)
        urls.append(str(path))
    return urls, {k: np.concatenate([p[k] for p in parts]) if k == "v" else parts[0][k] for k in parts[0]}, readers


# -- what a sample must be ----------------------------------------------------------------------


def chosen(data: Any, axis: int, choice: dict[str, Any]) -> Any:
    """The array after ``sel``, positions first."""
    for dim, want in choice.get("sel", {}).items():
        if dim == "level":
            want = [i for i, v in enumerate(LEVELS) if want.start <= v <= want.stop] if isinstance(want, slice) else want
            want = want if isinstance(choice["sel"][dim], slice) else [LEVELS.index(v) for v in np.ravel(want)]
        data = np.take(data, want, DIMS.index(dim))
    return np.moveaxis(data, axis, 0)


def steps(data: Any, at: int, count: int, axis: int) -> Any:
    """``count`` steps from a position on; 0: one, and no axis for it."""
    return np.moveaxis(data[at : at + count], 0, axis) if count else data[at]


def places(choice: dict[str, Any], extents: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Every place that a patch may have, as indexes of the last axes; tiles in their order."""
    names = DIMS[-len(extents) :]
    out = []
    for n, patch, dim in zip(extents, choice["patch"], names):
        if choice.get("tiled"):
            begins = [min(b, n - patch) for b in range(0, n, patch)]
        else:
            begins = list(range(n if dim in np.ravel(choice.get("periodic", [])) else n - patch + 1))
        out.append([np.arange(b, b + patch) % n for b in begins])
    return list(itertools.product(*out))


def cut(data: Any, place: tuple[Any, ...]) -> Any:
    return data[(..., *np.ix_(*place))]


def same(got: Any, want: Any) -> bool:
    want = want.view("u1") if want.dtype.kind == "b" else want.astype(want.dtype.newbyteorder("="))
    return got.dtype == want.dtype and got.shape == want.shape and np.array_equal(got, want)


def check(urls: list[str], data: dict[str, Any], c: Combination, drawn: dict[Any, Any]) -> None:
    choice = dict(CHOICES[c.choice])
    files, variables = choice.pop("files", 1), choice.pop("variables", ["v"])
    options = dict(choice)
    if c.format == "npy":  # axes have no names there, and no coordinates
        options = {k: by_number(v) if k in ("along", "periodic", "sel") else v for k, v in choice.items()}
    names = ["data"] if c.format == "npy" else variables
    ds = hr.open(urls[:files], {"x": hr.array(names if len(names) > 1 else names[0], **options)})
    axis = DIMS.index(choice.get("along", "time"))
    whole = [chosen(data[v] if files > 1 else data[v][: SHAPE[0]], axis, choice) for v in variables]
    window, horizon, stride = choice.get("window", 0), choice.get("horizon", 0), choice.get("stride", 1)
    starts = range(0, len(whole[0]) - max(1, window) - horizon + 1, stride)
    tiles = places(choice, SHAPE[-len(choice["patch"]) :]) if "patch" in choice else [None]
    tiled = len(tiles) if choice.get("tiled") else 1
    assert len(ds) == len(starts) * tiled, c
    for i in sorted({0, 1, len(ds) // 2, len(ds) - 1} & set(range(len(ds)))):
        sample = ds[i]
        at = starts[i // tiled]
        for name, begin, count in (("x", at, window), ("x_target", at + max(1, window), horizon)):
            if name not in sample:
                assert name == "x_target" and not horizon
                continue
            want = [steps(w, begin, count, axis) for w in whole]
            full = np.stack(want) if len(want) > 1 else want[0]
            if tiled > 1:
                assert same(sample[name], cut(full, tiles[i % tiled])), (c, i)
            elif tiles != [None]:
                here = {n for n, place in enumerate(tiles) if same(sample[name], cut(full, place))}
                assert here, (c, i)
                # The place is drawn from seed, epoch and sample: neither format nor type matter.
                drawn[c.choice, i] = drawn.get((c.choice, i), here) & here
                assert drawn[c.choice, i], (c, i)
            else:
                assert same(sample[name], full), (c, i)


def check_batches(url: str, data: Any, name: str) -> None:
    """The same through the engine."""
    with hr.Loader(url, 3, {"x": hr.array(name, window=2)}, shuffle=False, output="numpy") as loader:
        got = np.concatenate([np.array(batch["x"]) for batch in loader])
    assert same(got, np.stack([data[i : i + 2] for i in range(len(data) - 1)]))


def by_number(value: Any) -> Any:
    """Names of axes as those of an array without any."""
    if isinstance(value, dict):
        at = {v: i for i, v in enumerate(LEVELS)}
        out = {}
        for dim, want in value.items():
            want = [i for v, i in at.items() if want.start <= v <= want.stop] if isinstance(want, slice) else want
            levels = dim == "level" and value[dim] is want
            out[f"axis{DIMS.index(dim)}"] = [at[v] for v in np.ravel(want)] if levels else want
        return out
    names = {d: f"axis{i}" for i, d in enumerate(DIMS)}
    return [names[v] for v in value] if isinstance(value, list) else names[value]


# -- the matrix ---------------------------------------------------------------------------------

DRAWN: dict[Any, Any] = {}
KINDS = sorted({(c.format, c.filters) for c in COMBINATIONS})


def test_the_matrix_is_large_and_covers_everything():
    assert len(set(COMBINATIONS)) == len(COMBINATIONS) >= 500
    for form, filters in FORMATS.items():
        mine = [c for c in COMBINATIONS if c.format == form]
        assert {c.filters for c in mine} == set(filters)
        dtypes = [d for d in DTYPES if _fits(form, d, {})]
        assert {(c.dtype, c.order[0]) for c in mine} == set(itertools.product(dtypes, "<>"))
        assert {c.choice for c in mine} == {n for n, choice in enumerate(CHOICES) if _fits(form, "i4", choice)}


@pytest.mark.parametrize(("form", "filters"), KINDS, ids=lambda v: v)
def test_values_are_those_of_the_formats_own_readers(tmp_path, form, filters):
    mine = [c for c in COMBINATIONS if (c.format, c.filters) == (form, filters)]
    readers: set[str] = set()
    for _, group in itertools.groupby(mine, key=lambda c: c.dtype):
        combinations = list(group)
        files = max(CHOICES[c.choice].get("files", 1) for c in combinations)
        urls, data, who = container(tmp_path, combinations[0], files)
        readers |= who
        for c in combinations:
            check(urls, data, c, DRAWN)
    check_batches(urls[0], data["v"][: SHAPE[0]], "data" if form == "npy" else "v")
    expected = {"npy": {"numpy"}, "hdf5": {"h5py"}, "netcdf": {"netCDF4", "xarray netcdf4", "xarray h5netcdf"}}
    assert readers >= expected.get(form, {"zarr", "xarray"})
    if form.startswith("zarr3") or filters.split()[0] not in ("shuffle", "crc32c", "delta", "lz4", "gzip"):
        assert readers >= expected.get(form, {"tensorstore"})


def test_drawn_places_are_not_all_the_same():
    """Runs after the others; what they noted: for each choice and sample one place, whatever the file."""
    if not DRAWN:
        pytest.skip("the matrix was not run")
    for choice in {c for c, _ in DRAWN}:
        found = [v for (c, _), v in DRAWN.items() if c == choice]
        assert all(len(v) == 1 for v in found)
        assert len(set(map(tuple, found))) > 1


# -- packed numbers -----------------------------------------------------------------------------

PACKINGS: dict[str, dict[str, Any]] = {
    "scale": {"scale_factor": 0.25},
    "offset": {"add_offset": -30.0},
    "both": {"scale_factor": 0.5, "add_offset": 273.15},
    "missing": {"scale_factor": 0.5, "add_offset": 2.0, "_FillValue": 99},
    "missing alone": {"_FillValue": 99},
}


@pytest.mark.parametrize("form", ["netcdf4", "zarr2", "zarr3"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_packed_numbers_are_those_of_xarray(tmp_path, form, packing):
    encoding = PACKINGS[packing]
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"):
        if packing == "missing alone" and dtype[0] != "f":
            continue  # integers stay integers
        stored = numbers("i1", (5, 4, 3), 7).astype(dtype)
        stored[0, 0], stored[3, :, 1] = 99, 99
        mine = {k: np.dtype(dtype).type(v) if k == "_FillValue" else v for k, v in encoding.items()}
        raw = xarray.Dataset({"v": (("time", "lat", "lon"), stored, mine)})
        path = tmp_path / f"{dtype}.{'nc' if form == 'netcdf4' else 'zarr'}"
        if form == "netcdf4":
            raw.to_netcdf(path, engine="netcdf4", encoding={"v": {} if "_FillValue" in mine else {"_FillValue": None}})
        else:
            decoded = xarray.decode_cf(raw)  # so that it is xarray that packs
            decoded.to_zarr(path, zarr_format=int(form[-1]), consolidated=False)
        with xarray.open_dataset(path, **({} if form == "netcdf4" else {"engine": "zarr", "consolidated": False})) as ds:
            want = ds["v"].values
        if "_FillValue" in mine:
            assert np.isnan(want).any()
        got = np.stack([sample["v"] for sample in hr.open(path)])
        assert got.dtype == ("f4" if dtype[1] in "12" or dtype == "f4" else "f8")
        np.testing.assert_allclose(got, want, rtol=1e-6 if got.dtype == "f4" else 1e-15, err_msg=dtype)


def test_signed_numbers_that_mean_unsigned_ones(tmp_path):
    with netcdf.Dataset(tmp_path / "a.nc", "w") as f:
        f.createDimension("time", 4)
        v = f.createVariable("v", "i1", ("time",), fill_value=-1)
        v._Unsigned, v.scale_factor = "true", 0.5
        v.set_auto_maskandscale(False)
        v[:] = np.array([1, 127, -128, -1], "i1")
    with xarray.open_dataset(tmp_path / "a.nc") as ds:
        want = ds["v"].values
    np.testing.assert_array_equal(want, [0.5, 63.5, 64, np.nan])
    np.testing.assert_array_equal([s["v"] for s in hr.open(tmp_path / "a.nc")], want)
