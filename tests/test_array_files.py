# SPDX-License-Identifier: Apache-2.0
"""HDF5, NetCDF-4, Zarr and npy: every value as h5py, netCDF4, zarr-python and NumPy give it."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"]
SHAPE = (13, 6, 9)
CHUNKS = [(1, 6, 9), (4, 5, 4), (13, 1, 2), (5, 6, 9)]
WINDOWS = [{}, {"window": 1}, {"window": 4, "stride": 2}, {"window": 3, "horizon": 2}]


def cube(dtype, seed=0, shape=SHAPE):
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 100, shape)
    return (data % 2 == 0) if np.dtype(dtype).kind == "b" else data.astype(dtype)


def same(got, want):
    want = np.asarray(want)
    want = want.view("u1") if want.dtype.kind == "b" else want.astype(want.dtype.newbyteorder("="))
    got = np.asarray(got)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


def check_windows(url, name, data, window):
    """All samples of one window, through the map-style data set."""
    ds = hr.open(url, {"x": hr.array(name, **window)})
    steps, horizon, stride = window.get("window", 0), window.get("horizon", 0), window.get("stride", 1)
    reach = max(1, steps) + horizon
    starts = range(0, data.shape[0] - reach + 1, stride)
    assert len(ds) == len(starts)
    for i, s in enumerate(starts):
        sample = ds[i]
        same(sample["x"], data[s : s + steps] if steps else data[s])
        if horizon:
            same(sample["x_target"], data[s + max(1, steps) : s + reach])


# -- HDF5 ---------------------------------------------------------------------------------------

HDF5_FILTERS = {
    "none": {},
    "gzip": {"compression": "gzip"},
    "gzip shuffle": {"compression": "gzip", "shuffle": True},
    "gzip fletcher": {"compression": "gzip", "fletcher32": True},
    "shuffle fletcher": {"shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "lzf shuffle fletcher": {"compression": "lzf", "shuffle": True, "fletcher32": True},
}


def extra_filters():
    try:
        import hdf5plugin as p
    except ImportError:
        return {}
    out = {"lz4": p.LZ4(), "lz4 blocks": p.LZ4(nbytes=64), "zstd": p.Zstd()}
    for codec in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            out[f"blosc {codec} {shuffle}"] = p.Blosc(cname=codec, shuffle=shuffle)
    return {k: dict(v) for k, v in out.items()}


ALL_HDF5 = HDF5_FILTERS | extra_filters()


@pytest.mark.parametrize("filters", ALL_HDF5)
def test_hdf5_values_are_those_of_h5py(tmp_path, filters):
    rng = random.Random(filters)
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        for dtype, order in itertools.product(DTYPES, "<>"):
            f.create_dataset(dtype + order, data=cube(dtype).astype(np.dtype(dtype).newbyteorder(order)),
                             chunks=rng.choice(CHUNKS), **ALL_HDF5[filters])  # fmt: skip
    with h5py.File(url, "r") as f:
        for name in f:
            check_windows(url, name, f[name][()], rng.choice(WINDOWS))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("chunks", [None, *CHUNKS], ids=str)
def test_hdf5_layouts_and_windows(tmp_path, chunks, window):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w", userblock_size=1024) as f:
        f.create_dataset("v", data=cube("f4"), chunks=chunks)
    check_windows(url, "v", cube("f4"), window)


def test_hdf5_chunks_never_written_hold_the_fill_value(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        v = f.create_dataset("v", SHAPE, ">i4", chunks=(4, 5, 4), compression="gzip", fillvalue=-7)
        v[2:5, 3:] = 5
        f.create_dataset("w", SHAPE, "f4", fillvalue=1.5)  # contiguous, not allocated
        want = {"v": v[()], "w": f["w"][()]}
    for name in want:
        check_windows(url, name, want[name], {"window": 3})


def test_hdf5_a_chunk_that_left_a_filter_out(tmp_path):
    url = tmp_path / "a.h5"
    data = cube("i4", shape=(4, 8))
    with h5py.File(url, "w") as f:
        v = f.create_dataset("v", data=data, chunks=(2, 8), compression="gzip", shuffle=True)
        v.id.write_direct_chunk((2, 0), data[2:].tobytes(), filter_mask=3)
    check_windows(url, "v", data, {})


def test_hdf5_groups_are_listed_and_chosen(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        f["train/x"], f["test/x"] = cube("f4"), cube("f4", 1)
    with pytest.raises(hr.UsageError, match=r"has the splits 'test', 'train': write .*#test"):
        hr.open(url)
    same(hr.open(f"{url}#test")[3]["x"], cube("f4", 1)[3])
    same(hr.open(f"{url}#train/x")[3]["x"], cube("f4")[3])
    with pytest.raises(hr.UsageError, match="no group or array 'valid'"):
        hr.open(f"{url}#valid")
    with h5py.File(url, "w") as f:
        f["only/one/x"] = cube("f4")
    same(hr.open(url)[3]["x"], cube("f4")[3])


# -- Zarr ---------------------------------------------------------------------------------------

V2_CODECS = {
    "none": (None, None),
    "zlib": (numcodecs.Zlib(), None),
    "gzip": (numcodecs.GZip(), None),
    "lz4": (numcodecs.LZ4(), None),
    "zstd": (numcodecs.Zstd(), None),
    "zstd checked": (numcodecs.Zstd(checksum=True), None),
    "shuffle zlib": (numcodecs.Zlib(), "shuffle"),
    "delta lz4": (numcodecs.LZ4(), "delta"),
    "crc32c": (None, "crc32c"),
} | {
    f"blosc {c} {s}": (numcodecs.Blosc(cname=c, shuffle=s), None)
    for c, s in itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"), (0, 1, 2))
}


def v2_filters(kind, dtype):
    if kind == "delta":
        return [numcodecs.Delta(dtype)] if np.dtype(dtype).kind in "iu" and np.dtype(dtype).byteorder != ">" else None
    return {"shuffle": [numcodecs.Shuffle(np.dtype(dtype).itemsize)], "crc32c": [numcodecs.CRC32C()], None: None}[kind]


@pytest.mark.parametrize("codec", V2_CODECS)
def test_zarr_2_values_are_those_of_zarr(tmp_path, codec):
    rng = random.Random(codec)
    compressor, filters = V2_CODECS[codec]
    url = str(tmp_path / "a.zarr")
    group = zarr.open_group(url, mode="w", zarr_format=2)
    for dtype, order in itertools.product(DTYPES, "<>"):
        full = np.dtype(dtype).newbyteorder(order)
        a = group.create_array(dtype + ("le" if order == "<" else "be"), shape=SHAPE, dtype=full, chunks=rng.choice(CHUNKS),
                               compressors=compressor, filters=v2_filters(filters, full), order=rng.choice("CF"),
                               chunk_key_encoding={"name": "v2", "separator": rng.choice("./")})  # fmt: skip
        a[:] = cube(dtype)
    for name, a in group.arrays():
        check_windows(url, name, a[:], rng.choice(WINDOWS))


V3_CODECS = {
    "none": [],
    "gzip": [zarr.codecs.GzipCodec()],
    "zstd": [zarr.codecs.ZstdCodec()],
    "crc32c": [zarr.codecs.Crc32cCodec()],
    "gzip crc32c": [zarr.codecs.GzipCodec(), zarr.codecs.Crc32cCodec()],
} | {f"blosc {c}": [zarr.codecs.BloscCodec(cname=c)] for c in ("blosclz", "lz4", "zlib", "zstd")}


@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("codec", V3_CODECS)
def test_zarr_3_values_are_those_of_zarr(tmp_path, codec, shards):
    rng = random.Random(codec)
    url = str(tmp_path / "a.zarr")
    group = zarr.open_group(url, mode="w", zarr_format=3)
    for dtype, endian in itertools.product(DTYPES, ("little", "big")):
        chunks = (2, 3, 4) if shards else rng.choice(CHUNKS)
        f_order = [zarr.codecs.TransposeCodec(order=(2, 1, 0))] if rng.random() < 0.3 else "auto"
        a = group.create_array(dtype.replace("?", "b") + endian, shape=SHAPE, dtype=dtype, chunks=chunks,
                               shards=(4, 6, 8) if shards else None, filters=f_order,
                               compressors=V3_CODECS[codec] or None,
                               serializer=zarr.codecs.BytesCodec(endian=endian) if np.dtype(dtype).itemsize > 1 else "auto")  # fmt: skip
        a[:] = cube(dtype)
    for name, a in group.arrays():
        check_windows(url, name, a[:], rng.choice(WINDOWS))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("fill", [0, -1.5, float("nan"), float("inf")])
def test_zarr_chunks_that_are_not_there_hold_the_fill_value(tmp_path, version, fill):
    url = str(tmp_path / "a.zarr")
    a = zarr.create_array(url, shape=SHAPE, chunks=(4, 5, 4), dtype="f4", zarr_format=version, fill_value=fill)
    a[3:6, :2] = 7
    check_windows(url, "data", a[:], {"window": 4})


def test_zarr_with_shards_that_lack_chunks(tmp_path):
    url = str(tmp_path / "a.zarr")
    a = zarr.create_array(url, shape=SHAPE, chunks=(2, 3, 4), shards=(4, 6, 8), dtype="i2", fill_value=-3)
    a[5:7, 1:4] = cube("i2")[5:7, 1:4]
    check_windows(url, "data", a[:], {"window": 4})


def test_zarr_groups_within_groups(tmp_path):
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    for name in ("one/deep", "two"):
        root.create_group(name).create_array("x", data=cube("f4", len(name)))
    with pytest.raises(hr.UsageError, match=r"several groups.*'one/deep', 'two'"):
        hr.open(tmp_path / "a.zarr")
    same(hr.open(f"{tmp_path}/a.zarr#one/deep")[2]["x"], cube("f4", 8)[2])
    same(hr.open(f"{tmp_path}/a.zarr#two/x")[2]["x"], cube("f4", 3)[2])


# -- npy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("order", ["<C", "<F", ">C", ">F"])
def test_npy_values_are_those_of_numpy(tmp_path, order, window):
    for dtype in DTYPES:
        url = tmp_path / "a.npy"
        np.save(url, np.asarray(cube(dtype).astype(np.dtype(dtype).newbyteorder(order[0])), order=order[1]))
        check_windows(url, "data", cube(dtype), window)


# -- NetCDF-4 -----------------------------------------------------------------------------------


@pytest.fixture
def climate(tmp_path):
    """Three files along time, as a climate archive has them; returns the pattern and the values."""
    netcdf = pytest.importorskip("netCDF4")
    want = {"t2m": [], "u10": []}
    for year in range(3):
        with netcdf.Dataset(tmp_path / f"cube-{2000 + year}.nc", "w") as f:
            for name, n in (("time", None), ("level", 3), ("lat", 6), ("lon", 8)):
                f.createDimension(name, n)
            f.createVariable("level", "i4", ("level",))[:] = [500, 700, 850]
            f.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-75, 75, 6)
            for k, name in enumerate(want):
                v = f.createVariable(name, "i2", ("time", "level", "lat", "lon"), zlib=True, shuffle=True,
                                     chunksizes=(2, 1, 4, 8), fill_value=-999)  # fmt: skip
                v.scale_factor, v.add_offset = 0.5 + k, 100.0
                v.set_auto_maskandscale(False)
                packed = np.random.default_rng([year, k]).integers(0, 50, (5, 3, 6, 8)).astype("i2")
                packed[0, 0, 0, 0] = -999
                v[:] = packed
                want[name].append(np.where(packed == -999, np.nan, packed * (0.5 + k) + 100.0).astype("f4"))
    return str(tmp_path / "cube-{2000..2002}.nc"), {k: np.concatenate(v) for k, v in want.items()}


def test_netcdf_is_unpacked_and_windows_go_over_files(climate):
    url, want = climate
    for window in WINDOWS:
        check_windows(url, "t2m", want["t2m"], window)


def test_several_variables_stack_and_levels_are_chosen_by_their_values(climate):
    url, want = climate
    ds = hr.open(url, {"x": hr.array(["t2m", "u10"], window=4, sel={"level": [850, 500]})})
    assert len(ds) == 12
    for i in range(len(ds)):
        same(ds[i]["x"], np.stack([want[v][i : i + 4][:, [2, 0]] for v in ("t2m", "u10")]))
    ds = hr.open(url, {"x": hr.array("t2m", sel={"level": slice(600, 900), "lat": slice(0, None), "lon": [1, 2]})})
    same(ds[7]["x"], want["t2m"][7][1:, 3:, 1:3])
    with pytest.raises(hr.UsageError, match="'level' has no value 600; it has 500, 700, 850"):
        hr.open(url, {"x": hr.array("t2m", sel={"level": 600})})


@pytest.mark.parametrize(
    ("dim", "wanted", "words"),
    [
        ("lon", slice(5, 5), "is nothing"),
        ("lon", slice(100, 200), "is nothing"),
        ("lon", slice(0.5, 2), "whole numbers"),
        ("lon", float("nan"), "no index nan"),
        ("level", slice("a", "b"), "has no units of time"),
        ("level", float("nan"), "no value nan"),
    ],
)
def test_selections_of_nothing_are_refused(tmp_path, dim, wanted, words):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        x = file.create_dataset("x", data=np.zeros((6, 3, 4), np.float32))
        for axis, name in enumerate(("time", "level", "lon")):
            x.dims[axis].label = name
        file["level"] = np.array([500, 850, 1000])
    with pytest.raises(hr.UsageError, match=words):
        hr.open(tmp_path / "a.h5", {"x": hr.array("x", along="time", sel={dim: wanted})})


def test_a_data_set_opens_by_itself(climate, caplog):
    url, want = climate
    ds = hr.open(url)
    assert [name for name, _ in ds.schema] == ["t2m", "u10"]
    assert len(ds) == 15
    same(ds[9]["u10"], want["u10"][9])
    assert "'time': 'lat', 'level'" in caplog.text.replace("'level', 'lat'", "'lat', 'level'")


# -- samples ------------------------------------------------------------------------------------


def batches(loader, epoch=0):
    return [{k: np.array(v) for k, v in b.items()} for b in loader.epoch(epoch)]


@pytest.fixture
def field(tmp_path):
    """[time, lat, lon], each value its own number, in small chunks."""
    url = str(tmp_path / "f.zarr")
    data = np.arange(24 * 10 * 12, dtype="i4").reshape(24, 10, 12)
    group = zarr.open_group(url, mode="w")
    group.create_array("v", data=data, chunks=(5, 4, 5), dimension_names=("time", "lat", "lon"))
    group.create_array("mask", data=data[0], dimension_names=("lat", "lon"))
    return url, data


def test_shuffled_epochs_hold_every_window_once(field):
    url, data = field
    fields = {"x": hr.array("v", window=4, horizon=1), "mask": hr.array("mask"), "k": hr.key()}
    with hr.Loader(url, 5, fields, seed=3, tail="keep", output="numpy") as loader:
        got = batches(loader)
        firsts = np.concatenate([b["x"][:, 0, 0, 0] for b in got])
        assert sorted(firsts) == list(range(0, 20 * 120, 120))
        assert list(firsts) != sorted(firsts)
        for b in got:
            for x, target, mask in zip(b["x"], b["x_target"], b["mask"]):
                t = x[0, 0, 0] // 120
                same(x, data[t : t + 4])
                same(target, data[t + 4 : t + 5])
                same(mask, data[0])


@pytest.mark.parametrize("periodic", [None, "lon", ["lat", "lon"]], ids=str)
def test_patches_are_cut_where_the_seed_says(field, periodic):
    url, data = field
    fields = {"x": hr.array("v", window=2, patch=(4, 5), periodic=periodic)}

    def run(seed, epoch=0):
        with hr.Loader(url, 4, fields, seed=seed, output="numpy") as loader:
            return np.concatenate([b["x"] for b in batches(loader, epoch)])

    got = run(1)
    same(got, run(1))
    assert not np.array_equal(got, run(2))
    assert not np.array_equal(
        np.sort(got.reshape(len(got), -1)[:, 0] % 120), np.sort(run(1, 1).reshape(len(got), -1)[:, 0] % 120)
    )
    wraps = 0
    for x in got:
        t, place = divmod(int(x[0, 0, 0]), 120)
        lat, lon = divmod(place, 12)
        rows, columns = np.arange(lat, lat + 4), np.arange(lon, lon + 5)
        wraps += bool(rows[-1] > 9 or columns[-1] > 11)
        same(x, data[t : t + 2][:, rows % 10][:, :, columns % 12])
    assert (wraps > 0) == (periodic is not None)


def test_tiles_cover_the_field_in_order(field):
    url, data = field
    ds = hr.open(url, {"x": hr.array("v", patch=(4, 5), tiled=True)})
    assert len(ds) == 24 * 3 * 3
    seen = np.zeros(data.shape, int)
    for i in range(len(ds)):
        x = ds[i]["x"]
        seen.ravel()[x.ravel()] += 1
        t, tile = divmod(i, 9)
        lat, lon = min(4 * (tile // 3), 6), min(5 * (tile % 3), 7)
        same(x, data[t, lat : lat + 4, lon : lon + 5])
    assert seen.min() == 1
    assert ds.key(10) == "1/1"


def test_resumed_and_straight_give_the_same(field):
    url, _ = field
    fields = {"x": hr.array("v", window=2, patch=(3, 3))}
    with hr.Loader(url, 3, fields, seed=5, output="numpy") as straight:
        whole = batches(straight)
    with hr.Loader(url, 3, fields, seed=5, output="numpy") as first:
        it = first.epoch(0)
        head = [{k: np.array(v) for k, v in next(it).items()} for _ in range(3)]
        state = first.state_dict()
    with hr.Loader(url, 3, fields, seed=5, output="numpy") as second:
        second.load_state_dict(state)
        rest = batches(second)
    assert len(head) + len(rest) == len(whole)
    for a, b in zip(head + rest, whole):
        same(a["x"], b["x"])
    with hr.Loader(url, 3, {"x": hr.array("v", window=3)}, seed=5, output="numpy") as other, pytest.raises(hr.UsageError):
        other.load_state_dict(state)


def test_ranks_share_the_samples(field):
    url, _ = field
    fields = {"x": hr.array("v", window=1)}
    seen = []
    for rank in range(3):
        with hr.Loader(url, 2, fields, seed=5, rank=rank, world_size=3, output="numpy") as loader:
            seen.append(np.concatenate([b["x"][:, 0, 0, 0] for b in batches(loader)]))
    assert len({len(s) for s in seen}) == 1
    assert sorted(np.concatenate(seen)) == list(range(0, 24 * 120, 120))


def test_views_and_pickles(field):
    url, data = field
    ds = hr.open(url, {"x": hr.array("v", window=2)})
    view = ds[5:15:2]
    same(view[1]["x"], data[7:9])
    same(pickle.loads(pickle.dumps(view))[2]["x"], data[9:11])
    parts = ds.split(train=0.5, test=0.5, seed=1)
    assert len(parts["train"]) + len(parts["test"]) == len(ds)
    with hr.Loader(view, 2, shuffle=False, output="numpy") as loader:
        same(np.concatenate([b["x"][:, 0] for b in batches(loader)]), data[5:15:2])
    with pytest.raises(hr.UsageError, match="before the view"):
        hr.Loader(view, 2, {"x": hr.array("v")}, output="numpy")
    with hr.Loader(view, 2, {"y": hr.array("x").normalize(1, 2)}, shuffle=False, output="numpy") as loader:
        same(next(iter(loader))["y"][0], ((data[5:7] - 1) / 2).astype("f4"))
    with hr.Loader(hr.open(url), 2, {"x": hr.array("v", window=3)}, output="numpy") as loader:
        assert next(iter(loader))["x"].shape == (2, 3, 10, 12)


def test_packing_and_blends(field, tmp_path):
    url, data = field
    hr.pack(hr.open(url, {"x": hr.array("v", window=2)}), tmp_path / "out", to="npz")
    packed = hr.open(tmp_path / "out")
    got = np.stack([packed[i]["x"] for i in range(len(packed))])
    same(got[np.argsort(got[:, 0, 0, 0])], np.stack([data[i : i + 2] for i in range(23)]))
    parts = {"a": (url, 0.5), "b": (hr.open(url), 0.5)}
    with hr.Loader(hr.blend(parts), 4, output="numpy") as loader:
        for x in next(iter(loader))["v"]:
            same(x, data[x[0, 0] // 120])


def test_bytes_and_lists_are_what_is_assembled(tmp_path):
    url = tmp_path / "a.npy"
    np.save(url, cube("i4").astype(">i4"))
    fields = {"b": hr.bytes("data"), "v": hr.array("data").list()}
    with hr.Loader(url, 4, fields, shuffle=False, output="numpy") as loader:
        got = [(b, v) for batch in loader for b, v in zip(batch["b"], batch["v"])]
    for (b, v), want in zip(got, cube("i4"), strict=True):
        assert bytes(b) == want.tobytes()
        same(v, want)
    empty = str(tmp_path / "e.zarr")
    zarr.create_array(empty, shape=(6, 2), chunks=(2, 2), dtype="i4", fill_value=3)
    with hr.Loader(empty, 4, {"v": hr.array("data").list(), "b": hr.bytes("data")}, tail="keep", output="numpy") as loader:
        for batch in loader:
            for v in batch["v"]:
                same(v, np.full(2, 3, "i4"))
    np.save(url, np.arange(9.0))
    with hr.Loader(url, 9, {"n": hr.scalar("data")}, shuffle=False, output="numpy") as loader:
        same(next(iter(loader))["n"], np.arange(9.0))


def test_steps_follow_windows(field):
    url, data = field
    fields = {"x": hr.array("v", window=2).normalize(10, 2)}
    same(hr.open(url, fields)[3]["x"], ((data[3:5].astype("f4") - 10) / 2).astype("f4"))


# -- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("w", {}), "no variable 'w'; it has 'mask', 'v'"),
        (("v", {"window": 25}), "needs 25 steps .* but 'time' has only 24"),
        (("v", {"window": 20, "horizon": 5}), "needs 25 steps"),
        (("v", {"patch": (11, 2)}), "a patch of 11 does not fit into 'lat', which has 10"),
        (("v", {"patch": (1, 2, 3)}), "patch has 3 axes"),
        (("v", {"along": "year"}), "axis 'year'"),
        (("v", {"periodic": "height", "patch": (2, 2)}), "no axis 'height'"),
        (("v", {"sel": {"lat": [99]}}), "no index 99"),
        (("v", {"sel": {"time": [1]}}), "samples run along 'time'"),
        ((["v", "mask"], {}), "must be alike"),
        (("v", {"window": 0}), "window"),
        (("v", {"tiled": True}), "needs the size of the patches"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_said(field, options, words):
    with pytest.raises(hr.UsageError, match=words):
        hr.open(field[0], {"x": hr.array(options[0], **options[1])})


def test_other_bad_input(tmp_path, field):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        f["a"], f["b"] = np.zeros((5, 2)), np.zeros((6, 2))
        f.create_dataset("images", (5,), h5py.vlen_dtype("u1"))
        f.create_dataset("c", data=np.zeros(5, "c8"))
    with pytest.raises(hr.UsageError, match="'a' has 5 along 'axis0' and 'b' has 6"):
        hr.open(url, {"a": hr.array("a"), "b": hr.array("b")})
    with pytest.raises(hr.Unsupported, match="variable length"):
        hr.open(url, {"x": hr.array("images", window=2)})
    with pytest.raises(hr.UsageError, match=r"no variable 'c'; it has 'a', 'b', 'c\.r', 'c\.i'"):
        hr.open(url, {"x": hr.array("c")})
    with pytest.raises(hr.UsageError, match=r"hr\.array"):
        hr.open(url, {"x": hr.image("a")})
    with pytest.raises(hr.StorageError):
        hr.open(tmp_path / "none.h5")
    (tmp_path / "bad.h5").write_bytes(b"nothing of the kind")
    with pytest.raises(hr.DataError, match="h5py"):
        hr.open(tmp_path / "bad.h5")
    (tmp_path / "images").mkdir()
    with pytest.raises(hr.UsageError, match="files of arrays"):
        hr.open(tmp_path / "images", {"x": hr.array("x", window=3)})
    with pytest.raises(hr.UsageError, match="no file of arrays"):
        hr.open([str(url), "a.tar"])


def test_damaged_chunks_are_bad_data(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        v = f.create_dataset("v", data=cube("f4"), chunks=(1, 6, 9), compression="gzip", fletcher32=True)
        place = v.id.get_chunk_info(4)
    data = bytearray(url.read_bytes())
    data[place.byte_offset + 9] ^= 0x55
    url.write_bytes(data)
    ds = hr.open(url)
    same(ds[3]["v"], cube("f4")[3])
    with pytest.raises(hr.DataError, match="checksum") as e:
        ds[4]
    assert e.value.file.endswith("a.h5")
    assert e.value.offset == place.byte_offset
    with hr.Loader(url, 3, shuffle=False, bad_samples="replace", output="numpy") as loader:
        assert sum(len(b["v"]) for b in loader) == 13
        assert [q["sample"] for q in loader.quarantine] == [4]


def test_a_damaged_shard_index_is_bad_data(tmp_path):
    url = tmp_path / "a.zarr"
    zarr.create_array(str(url), shape=(8, 8), chunks=(2, 2), shards=(8, 8), dtype="i4")[:] = 1
    shard = url / "c/0/0"
    data = bytearray(shard.read_bytes())
    data[-20] ^= 1
    shard.write_bytes(data)
    with pytest.raises(hr.DataError, match="checksum of the shard's index"):
        hr.open(url)
    shard.write_bytes(data[:10])
    with pytest.raises(hr.DataError, match="shorter"):
        hr.open(url)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"zarr_format": 2}', '{"shape": [-1], "chunks": [0], "dtype": "<f4"}',
                                  '{"shape": [1e99], "chunks": [1], "dtype": "<f4"}',
                                  '{"shape": [99999999999999], "chunks": [1], "dtype": "<f4"}'])  # fmt: skip
def test_odd_metadata_are_errors(tmp_path, text):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr/.zarray").write_text(text)
    with pytest.raises(hr.Error):
        hr.open(tmp_path / "a.zarr")


def test_a_stride_far_beyond_the_axis_gives_one_sample(tmp_path):
    """Times the 16 MiB of a position it is 2^64."""
    np.lib.format.open_memmap(tmp_path / "a.npy", "w+", "f4", (4, 2048, 2048)).flush()  # holes
    code = "import sys, headrace as hr; print(len(hr.open(sys.argv[1], {'x': hr.array('data', stride=1 << 40)})))"
    ended = subprocess.run(
        [sys.executable, "-c", code, os.fspath(tmp_path / "a.npy")], capture_output=True, text=True, timeout=60
    )
    assert ended.stdout == "1\n", (ended.returncode, ended.stderr)


def test_without_h5py_the_error_says_what_to_install(tmp_path):
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    code = (
        "import sys; sys.modules['h5py'] = None\nimport headrace as hr\n"
        "assert 'zarr' not in sys.modules\n"
        "try: hr.open(sys.argv[1])\nexcept hr.Unsupported as e: assert 'pip install h5py' in str(e), e\nelse: raise SystemExit(1)"
    )
    subprocess.run([sys.executable, "-c", code, os.fspath(tmp_path / "a.h5")], check=True, timeout=60)
