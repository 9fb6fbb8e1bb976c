# SPDX-License-Identifier: Apache-2.0
"""Every kind of chunk index of HDF5: whatever libhdf5 says of the places of chunks, values are those that h5py reads."""

from __future__ import annotations

import itertools

import headrace as hr
import numpy as np
import pytest
from headrace.arrays import hdf5_chunks

h5py = pytest.importorskip("h5py")

SHAPE, CHUNK = (7, 6, 9), (2, 2, 3)
LIBVERS = ["earliest", "v108", "v110", "v112", "latest"]
FILTERS = {
    "plain": {},
    "gzip": {"compression": "gzip", "shuffle": True},
    "lzf": {"compression": "lzf", "fletcher32": True},
}
#: None: unlimited; 0: as long as it is; 5: may grow by so much.
MAXIMA = list(itertools.product((None, 0, 5), repeat=3))


def made(path, libver, maximum, filters, data=None, shape=SHAPE, chunk=CHUNK):
    data = np.arange(np.prod(shape), dtype="i4").reshape(shape) * 7919 if data is None else data
    with h5py.File(path, "w", libver=libver) as f:
        f.create_dataset("x", data=data, chunks=chunk, maxshape=maximum, **filters)
    return data


def read(path, notice=None):
    """All of it; and not through h5py, which would be slow, unless said."""
    ds = hr.open(path)
    assert [n for n in ds.notices if "h5py" in n] == [] if notice is None else any(notice in n for n in ds.notices)
    return np.stack([ds[i]["x"] for i in range(len(ds))])


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("libver", LIBVERS)
def test_values_are_h5pys_for_every_index(tmp_path, libver, filters):
    for n, more in enumerate(MAXIMA):
        path = str(tmp_path / f"{n}.h5")
        maximum = tuple(None if m is None else s + m for m, s in zip(more, SHAPE))
        data = made(path, libver, maximum, FILTERS[filters])
        assert np.array_equal(read(path), data), maximum


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_other_ranks(tmp_path, rank):
    shape, chunk = (5, 7, 4, 6)[:rank], (2, 3, 3, 1)[:rank]
    for free in range(rank):
        path = str(tmp_path / f"{free}.h5")
        maximum = tuple(None if a == free else n + 2 * a for a, n in enumerate(shape))
        data = made(path, "latest", maximum, {}, shape=shape, chunk=chunk)
        assert np.array_equal(read(path), data), maximum


def test_chunks_allocated_early_have_an_index_without_a_table(tmp_path):
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w", libver="latest") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(CHUNK)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        h5py.h5d.create(f.id, b"x", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple(SHAPE), plist)
        data = f["x"][...] = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    assert np.array_equal(read(path), data)


@pytest.mark.parametrize("free", [1, 2])
def test_an_axis_that_grew_and_holes(tmp_path, free):
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w", libver="latest") as f:
        maximum = tuple(None if a == free else n for a, n in enumerate(SHAPE))
        x = f.create_dataset("x", SHAPE, "f4", chunks=CHUNK, maxshape=maximum, fillvalue=-1)
        x[2:4] = np.random.default_rng(0).random((2, 6, 9))
        x.resize(SHAPE[free] + 8, axis=free)
        x[5:, ..., -1] = 3
        want = x[...]
    assert np.array_equal(read(path), want)


def test_the_first_row_alone_is_told_from_a_flat_index(tmp_path):
    for libver in LIBVERS:
        path = str(tmp_path / f"{libver}.h5")
        with h5py.File(path, "w", libver=libver) as f:
            x = f.create_dataset("x", SHAPE, "i4", chunks=CHUNK, maxshape=(7, None, 9))
            x[:2] = 1 + np.arange(2 * 6 * 9).reshape(2, 6, 9)
            want = x[...]
        assert np.array_equal(read(path), want), libver


def test_equal_chunks_lie_in_their_places(tmp_path):
    path = str(tmp_path / "x.h5")
    data = np.full(SHAPE, 5, "i4")
    data[5:, 3:, 7:] = 6
    made(path, "latest", (7, None, 9), {}, data)
    assert np.array_equal(read(path), data)


def test_chunks_that_do_not_tell_are_read_through_h5py(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_chunks, "_lies_there", lambda *_: True)
    path = str(tmp_path / "x.h5")
    data = made(path, "latest", (7, None, 9), {})
    assert np.array_equal(read(path, "unlimited axis that is not the first"), data)


@pytest.mark.parametrize("reports", ["right", "wrong"])
def test_another_libhdf5_is_not_believed(tmp_path, monkeypatch, reports):
    """One that is said to be right, and is not, is found out; one that is wrong in another way is not asked."""
    monkeypatch.setattr(hdf5_chunks, "_library_reports", lambda _: reports)
    path = str(tmp_path / "x.h5")
    data = made(path, "latest", (7, None, 9), {})
    assert np.array_equal(read(path, "read through h5py"), data)


def test_stats_pack_and_windows_too(tmp_path):
    path = str(tmp_path / "x.h5")
    data = made(path, "latest", (7, 6, None), FILTERS["gzip"])
    stats = hr.stats(path, fields=["x"])
    assert stats["x"]["mean"] == pytest.approx(data.mean())
    ds = hr.open(path, {"x": hr.array("x", window=3, patch=(2, 4))})
    assert ds[0]["x"].shape == (3, 2, 4)
    hr.pack(path, str(tmp_path / "y.zarr"), to="zarr")
    assert np.array_equal(read(str(tmp_path / "y.zarr")), data)


# -- chunks that are stored short ---------------------------------------------------------------


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_an_unfiltered_chunk_that_is_short_is_an_error_and_not_the_next_one(tmp_path, libver):
    """h5py writes any number of bytes as a chunk; libhdf5 then reads what lies behind it."""
    path = str(tmp_path / "x.h5")
    with h5py.File(path, "w", libver=libver) as f:
        x = f.create_dataset("x", (8, 4), "i4", chunks=(2, 4), maxshape=(None, 4) if libver == "earliest" else None)
        for i in range(4):
            x.id.write_direct_chunk((2 * i, 0), (np.arange(8, dtype="i4") + i).tobytes()[: 12 if i == 1 else 32])
        info = x.id.get_chunk_info_by_coord((2, 0))
    if info.size == 32:
        pytest.skip("this index keeps no sizes")
    ds = hr.open(path)
    assert np.array_equal(ds[0]["x"], [0, 1, 2, 3])
    assert np.array_equal(ds[6]["x"], [3, 4, 5, 6])
    for i in (2, 3):
        with pytest.raises(hr.DataError, match=f"shorter than its shape says.*|{info.byte_offset}") as e:
            ds[i]
        assert path in str(e.value)
        assert "offset" in str(e.value)
