# SPDX-License-Identifier: Apache-2.0
"""Which chunk files of a Zarr store are there: names, links, sizes; what is not looked at."""

from __future__ import annotations

import os
import shutil
import time

import headrace as hr
import numpy as np
import pytest
import servers
from headrace.arrays.cube import Cube
from headrace.arrays.model import Listed

zarr = pytest.importorskip("zarr")

SHAPE, CHUNK = (13, 6, 10), (2, 3, 5)
KEYS = {
    "2 flat": {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "."}},
    "2 nested": {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "3 nested": {"zarr_format": 3, "chunk_key_encoding": {"name": "default", "separator": "/"}},
    "3 flat": {"zarr_format": 3, "chunk_key_encoding": {"name": "default", "separator": "."}},
    "3 as 2": {"zarr_format": 3, "chunk_key_encoding": {"name": "v2", "separator": "."}},
}


def data():
    return np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)


def write(path, keys="3 nested", **options):
    options = {"fill_value": -7, "compressors": None, **KEYS[keys], **options}
    z = zarr.create_array(str(path), shape=SHAPE, chunks=CHUNK, dtype="i4", overwrite=True, **options)
    z[:] = data()
    return z


def chunk_files(path):
    return sorted(p for p in path.rglob("*") if p.is_file() and p.name not in ("zarr.json", ".zarray", ".zattrs"))


def read(path):
    ds = hr.open(path)
    return np.stack([ds[i]["data"] for i in range(len(ds))])


@pytest.mark.parametrize("keys", KEYS)
def test_files_that_are_gone_hold_the_fill_value_for_every_form_of_keys(tmp_path, keys):
    url = tmp_path / "a.zarr"
    z = write(url, keys)
    assert np.array_equal(read(url), data())
    files = chunk_files(url)
    assert len(files) == 7 * 2 * 2
    for path in files[::3]:
        path.unlink()
    assert np.array_equal(read(url), z[:])
    assert (read(url) == -7).sum() > 100


@pytest.mark.parametrize("keys", KEYS)
def test_numbers_without_axes(tmp_path, keys):
    """One chunk, of a key of its own."""
    zarr.create_group(str(tmp_path / "g.zarr"), zarr_format=KEYS[keys]["zarr_format"])
    at = {"shape": (), "dtype": "f8", "compressors": None, "fill_value": 0.0, **KEYS[keys]}
    zarr.create_array(str(tmp_path / "g.zarr"), name="one", **at)[...] = 2.5
    zarr.create_array(str(tmp_path / "g.zarr"), name="x", **{**at, "shape": (4,), "chunks": (2,)})[...] = 1
    ds = hr.open(tmp_path / "g.zarr", {"one": hr.array("one"), "x": hr.array("x")})
    assert ds[1]["one"] == 2.5


@pytest.mark.parametrize("keys", KEYS)
def test_names_that_are_no_keys_change_nothing(tmp_path, keys):
    url = tmp_path / "a.zarr"
    write(url, keys)
    before = hr.open(url).fingerprint
    some = chunk_files(url)[0]
    for name in (some.name + ".partial", "01", "99.0.0", "c.99.0.0", "-1", "0.0", "+0.0.0"):
        (some.parent / name).write_bytes(b"no chunk")
    for name in (b"\xff\xfe", b"0.0.\xff", b"0.0.0\n"):
        with open(os.path.join(os.fsencode(some.parent), name), "wb") as f:
            f.write(b"no chunk")
    (url / "__MACOSX").mkdir()
    (url / "__MACOSX/0.0.0").write_bytes(b"no chunk")
    assert np.array_equal(read(url), data())
    assert hr.open(url).fingerprint == before


def test_links_lead_to_chunks_and_loops_are_refused(tmp_path):
    url = tmp_path / "a.zarr"
    write(url)
    shutil.move(url / "c/3", tmp_path / "elsewhere")
    (url / "c/3").symlink_to(tmp_path / "elsewhere")
    shutil.move(url / "c/0/0/0", tmp_path / "one")
    (url / "c/0/0/0").symlink_to(tmp_path / "one")
    assert np.array_equal(read(url), data())
    (tmp_path / "one").unlink()
    ds = hr.open(url)
    with pytest.raises(FileNotFoundError, match="c/0/0/0"):  # never the fill value
        ds[0]
    (url / "c/0/0/0").unlink()
    shutil.rmtree(url / "c/5")
    (url / "c/5").symlink_to(".")
    shutil.rmtree(url / "c/6")
    (url / "c/6").symlink_to("..")
    with pytest.raises(hr.DataError, match="link to one above it"):
        hr.open(url)


def test_names_that_are_not_utf8_on_the_way(tmp_path):
    """A group may be called anything; an array of such a name is refused, and its neighbours are read."""
    group = zarr.create_group(str(tmp_path / "x.zarr"))
    group.create_array("x", shape=SHAPE, chunks=CHUNK, dtype="i4")[:] = data()
    odd = os.path.join(tmp_path, "g.zarr", os.fsdecode(b"caf\xe9"))
    shutil.copytree(tmp_path / "x.zarr", odd)
    shutil.copytree(tmp_path / "x.zarr/x", os.path.join(odd, os.fsdecode(b"y\xff")))
    ds = hr.open(tmp_path / "g.zarr", {"x": hr.array("x")})
    assert np.array_equal(ds[7]["x"], data()[7])
    with pytest.raises(hr.Unsupported, match="not UTF-8"):
        hr.open(tmp_path / "g.zarr", {"y": hr.array(os.fsdecode(b"y\xff"))})


@pytest.mark.parametrize("options", [{}, {"shards": (4, 6, 10)}, {"compressors": zarr.codecs.GzipCodec()}], ids=str)
def test_the_fingerprint_knows_the_sizes_of_chunk_files_and_not_where_they_lie(tmp_path, options):
    write(tmp_path / "a.zarr", **options)
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "elsewhere/b.zarr")
    before = hr.open(tmp_path / "a.zarr").fingerprint
    assert hr.open(tmp_path / "elsewhere/b.zarr").fingerprint == before
    path = chunk_files(tmp_path / "a.zarr")[3]
    stored = path.read_bytes()
    path.write_bytes(b"more" + stored)
    assert hr.open(tmp_path / "a.zarr").fingerprint != before
    path.write_bytes(stored)
    assert hr.open(tmp_path / "a.zarr").fingerprint == before
    path.unlink()
    assert hr.open(tmp_path / "a.zarr").fingerprint != before


def test_a_resumed_run_is_refused_where_a_chunk_has_another_size(tmp_path):
    url = tmp_path / "a.zarr"
    z = write(url, compressors=zarr.codecs.GzipCodec())
    fields = {"x": hr.array("data", window=2)}
    with hr.Loader(url, 3, fields, seed=1, output="numpy") as loader:
        next(loader.epoch(0))
        state = loader.state_dict()
    with hr.Loader(url, 3, fields, seed=1, output="numpy") as loader:
        loader.load_state_dict(state)
    z[5] = np.random.default_rng(0).integers(-(2**31), 2**31, SHAPE[1:])
    with hr.Loader(url, 3, fields, seed=1, output="numpy") as loader, pytest.raises(hr.UsageError):
        loader.load_state_dict(state)


def test_an_empty_chunk_file_is_damage_and_no_missing_chunk(tmp_path):
    url = tmp_path / "a.zarr"
    for options in ({}, {"compressors": zarr.codecs.GzipCodec()}):
        write(url, **options)
        chunk_files(url)[0].write_bytes(b"")
        ds = hr.open(url)
        with pytest.raises(hr.DataError, match="c/0/0/0"):
            ds[0]
        assert np.array_equal(ds[12]["data"], data()[12])


def test_chunks_of_arrays_that_nobody_asks_for_are_not_looked_for(tmp_path):
    group = zarr.create_group(str(tmp_path / "g.zarr"))
    for name in ("x", "y"):
        group.create_array(name, shape=SHAPE, chunks=CHUNK, shards=(4, 6, 10), dtype="i4")[:] = data()
    for path in (tmp_path / "g.zarr/y/c").rglob("*"):
        if path.is_file():
            path.write_bytes(b"no shard")
    time.sleep(0.03)  # what was written just now is not kept in an index
    ds = hr.open(tmp_path / "g.zarr", {"x": hr.array("x")})
    assert np.array_equal(ds[3]["x"], data()[3])
    with pytest.raises(hr.DataError, match="shorter than the index"):
        hr.open(tmp_path / "g.zarr", {"y": hr.array("y")})
    cube = Cube([str(tmp_path / "g.zarr")])
    assert cube.files[0]["y"].finder is not None  # not yet, and not in the index
    assert len(cube.files[0]["x"].places) == 7 * 2 * 2
    assert not isinstance(cube.files[0]["x"], Listed)  # by the index


def test_separators_that_are_none_are_refused(tmp_path):
    write(tmp_path / "a.zarr")
    path = tmp_path / "a.zarr/zarr.json"
    path.write_text(path.read_text().replace('"separator": "/"', '"separator": "//"'))
    with pytest.raises(hr.DataError, match="joined by"):
        hr.open(tmp_path / "a.zarr")


@pytest.mark.parametrize("keys", ["2 flat", "3 nested"])
def test_tensorstore_and_headrace_see_the_same_store(tmp_path, keys):
    ts = pytest.importorskip("tensorstore")
    version = KEYS[keys]["zarr_format"]
    write(tmp_path / "a.zarr", keys)
    for path in chunk_files(tmp_path / "a.zarr")[::2]:
        path.unlink()
    spec = {"driver": "zarr" if version == 2 else "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "a.zarr")}}
    assert np.array_equal(read(tmp_path / "a.zarr"), ts.open(spec).result().read().result())


def value(opened, n):
    return next(iter(opened[n].values()))


@pytest.mark.parametrize("keys", list(KEYS))
def test_a_server_that_lists_no_folders_is_asked_for_every_chunk(tmp_path, monkeypatch, keys):
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "z.zarr", keys)
    gone = sorted(chunk_files(tmp_path / "z.zarr"))[-1]  # the last rows
    refused = str(chunk_files(tmp_path / "z.zarr")[0].relative_to(tmp_path))
    with servers.odd_server(tmp_path) as odd:  # which answers 404 to folders
        got = hr.open(odd.url("z.zarr"))
        assert all((value(got, n) == data()[n]).all() for n in range(len(data())))
        gone.rename(tmp_path / "gone")
        assert (value(hr.open(odd.url("z.zarr")), 12) == -7).any()
        (tmp_path / "gone").rename(gone)
        assert (value(hr.open(odd.url("z.zarr")), 12) == data()[12]).all()
        hr.build_index(odd.url("z.zarr"), str(tmp_path / "index"))
        got = hr.open(odd.url("z.zarr"), index=str(tmp_path / "index"))
        assert all((value(got, n) == data()[n]).all() for n in range(len(data())))
    with servers.odd_server(tmp_path) as odd:
        odd.answer = lambda handler, number: handler.path == f"/{refused}" and (handler.body(500, b"") or True)
        with pytest.raises(hr.StorageError, match="answers 500"):
            hr.open(odd.url("z.zarr"), storage=hr.storage(retries=0))[0]
